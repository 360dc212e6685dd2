"""Options of the source: what is taken, what is refused, and with which words."""

from __future__ import annotations

import pickle

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions, Verify


def test_defaults() -> None:
    options = SourceOptions.parse({"path": "x"})
    assert options == SourceOptions(paths=("x",)) == SourceOptions.parse({"paths": '["x"]'})
    assert (options.object_type, options.mode, options.on_incomplete, options.verify) == (
        "ME",
        Mode.PERMISSIVE,
        OnIncomplete.WARN,
        Verify.ENDS,
    )


def test_names_have_no_case_and_values_little() -> None:
    options = SourceOptions.parse(
        {
            "PATH": "x",
            "OBJECTTYPE": "me,Ptp, ME ,SubnetworkConnectionType",
            "Mode": "failfast",
            "onincomplete": "FILTER",
            "messageTypes": "response,NOTIFICATION",
            "numPartitions": "3",
            "columnNameOfCorruptRecord": "_bad",
            "verify": "Full",
        }
    )
    assert options.object_types == ("ME", "PTP", "SubnetworkConnectionType")
    assert (options.mode, options.on_incomplete) == (Mode.FAILFAST, OnIncomplete.FILTER)
    assert options.message_types == {"response", "notification"}
    assert (options.partitions, options.corrupt_column, options.verify) == (3, "_bad", Verify.FULL)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "no path"),
        ({"path": "x", "objctType": "ME"}, "did you mean objectType"),
        ({"path": "x", "zzz": "1"}, "no option 'zzz'; there are path"),
        ({"path": "x", "mode": "LOOSE"}, "PERMISSIVE, DROPMALFORMED, FAILFAST"),
        ({"path": "x", "onIncomplete": "no"}, "warn, filter, fail"),
        ({"path": "x", "verify": "no"}, "ends, full"),
        ({"path": "x", "messageTypes": "FAULT"}, "RESPONSE, NOTIFICATION"),
        ({"path": "x", "batchRows": "0"}, "at least 1"),
        ({"path": "x", "numPartitions": "many"}, "at least 1"),
        ({"path": "x", "objectType": " , "}, "objectType is empty"),
        ({"path": "x", "objectType": "ME,ALL"}, "stand alone"),
        ({"paths": "a,b"}, "not a JSON list"),
        ({"path": "x", "bulkFiles": "[/a"}, "bulkFiles is not a JSON list"),
    ],
)
def test_refusals_say_what_there_is(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SourceOptions.parse(given)


CATALOG = {"provider": "mtosi", "location": "file:/x", "owner": "me", "path": "file:/x", "serialization.format": "1"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (CATALOG, {"path": "file:/x"}),
        (CATALOG | {"external": "true", "comment": "c", "k": "v", "a.b": "c"}, {"path": "file:/x"}),
        (CATALOG | {"option.objectType": "EQ", "objectType": "EQ"}, {"path": "file:/x", "objectType": "EQ"}),
        (CATALOG | {"option.path": "/y", "option.MODE": "FAILFAST"}, {"path": "/y", "mode": "FAILFAST"}),
        ({"path": "x", "serialization.format": "1", "spark.sql.sources.schema": "{}"}, {"path": "x"}),
    ],
)
def test_properties_of_a_table_are_no_options(given: dict[str, str], meant: dict[str, str]) -> None:
    assert SourceOptions.parse(given) == SourceOptions.parse(meant)


def test_an_option_of_a_table_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="no option 'objcttype'; did you mean objectType"):
        SourceOptions.parse(CATALOG | {"option.objctType": "EQ", "objctType": "EQ"})


@pytest.mark.parametrize(("given", "verify"), [("warn", Verify.ENDS), ("filter", Verify.FULL), ("fail", Verify.FULL)])
def test_what_decides_is_verified(given: str, verify: Verify) -> None:
    assert SourceOptions.parse({"path": "x", "onIncomplete": given}).verify is verify
    assert SourceOptions.parse({"path": "x", "onIncomplete": given, "verify": "ends"}).verify is Verify.ENDS


def test_options_pickle() -> None:
    options = SourceOptions.parse({"path": "x", "stubs": "acme, b", "bulkFiles": '["/a", "/b"]'})
    assert pickle.loads(pickle.dumps(options)) == options
    assert (options.stubs, options.bulk_files) == (("acme", "b"), ("/a", "/b"))
    assert SourceOptions.parse({"path": "x", "bulkfiles": "/a,b"}).bulk_files == ("/a,b",)
