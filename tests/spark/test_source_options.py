"""Options of the source: what is taken, what is refused, and with which words."""

from __future__ import annotations

import pickle

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark.options import Mode, OnIncomplete, SourceOptions, Verify, parse_object_types


def test_defaults() -> None:
    options = SourceOptions.parse({"path": "x"})
    assert options == SourceOptions(paths=("x",))
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
            "OBJECTTYPE": "me,Ptp,SubnetworkConnectionType",
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


def test_several_paths() -> None:
    assert SourceOptions.parse({"paths": '["a", "b"]'}).paths == ("a", "b")


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
        ({"path": "x", "batchRows": "0"}, "from 1"),
        ({"path": "x", "numPartitions": "many"}, "from 1"),
        ({"path": "x", "objectType": " , "}, "objectType is empty"),
        ({"path": "x", "objectType": "ME,ALL"}, "stand alone"),
        ({"paths": "a,b"}, "no JSON list"),
    ],
)
def test_refusals_say_what_there_is(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SourceOptions.parse(given)


def test_object_types_are_each_once() -> None:
    assert parse_object_types("ME, me ,EQ") == ("ME", "EQ")


def test_options_pickle() -> None:
    options = SourceOptions.parse({"path": "x", "stubs": "acme, b"})
    assert pickle.loads(pickle.dumps(options)) == options
    assert options.stubs == ("acme", "b")
