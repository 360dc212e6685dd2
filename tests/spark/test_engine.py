"""Landings that Spark plans: the same as those that the driver plans, on any Hadoop file system."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mtosi_jms.errors import ConfigError, ExchangeError, MtosiError, SpoolError
from mtosi_jms.spark import SourceOptions, read_landing
from mtosi_jms.spark._engine import plan_by_engine
from mtosi_jms.spark._landing import plan_landing
from mtosi_jms.spark.jobs import AlarmOptions, IngestOptions, run_alarms, run_ingest

from .troubles import content, troubled_landing

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Put = Callable[..., Path]
MOUNT = "fs.viewfs.mounttable.here.link./landing"


@pytest.fixture
def mounted(spark: Any, landing: Path) -> Iterator[str]:
    """The landing on another file system of Hadoop's."""
    spark.conf.set(MOUNT, landing.as_uri())
    yield "viewfs://here/landing"
    spark.conf.unset(MOUNT)


def names(rows: Any) -> list[str]:
    return sorted(row.name_text for row in rows.select("name_text").collect())


def test_an_ingest_from_elsewhere_is_that_from_here(
    spark: Any, landing: Path, mounted: str, put: Put, envelopes: Any, other_prefixes: Any, tmp_path: Path
) -> None:
    troubled_landing(put, envelopes, other_prefixes)
    run_ingest(IngestOptions(landing=landing, out=tmp_path / "here"), spark=spark)
    result = run_ingest(IngestOptions(landing=mounted, out=tmp_path / "there"), spark=spark)
    assert result.rows == {"ME": 3012}
    assert not result.complete
    here, there = content(tmp_path / "here", str(landing)), content(tmp_path / "there", mounted)
    assert there == here


def test_what_is_not_there_or_cannot_be_taken_leaves_the_tables(
    spark: Any, landing: Path, mounted: str, put: Put, envelopes: Any, tmp_path: Path
) -> None:
    file = put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    out = tmp_path / "out"
    run_ingest(IngestOptions(landing=landing, out=out), spark=spark)
    before = content(out, "")
    with pytest.raises(SpoolError, match="no such file or folder"):
        run_ingest(IngestOptions(landing=f"{mounted}/nothing", out=out), spark=spark)
    with pytest.raises(SpoolError, match="nowhere"):
        run_ingest(IngestOptions(landing="nowhere://bucket/landing", out=out), spark=spark)
    with pytest.raises(ExchangeError, match="1 incomplete"):
        run_ingest(IngestOptions(landing=mounted, out=out, on_incomplete="fail"), spark=spark)
    with pytest.raises(ConfigError, match="replace"):
        run_ingest(IngestOptions(landing=mounted, out=tmp_path / "other", write="merge"), spark=spark)
    with pytest.raises(ConfigError, match="bulkFiles"):
        run_ingest(IngestOptions(landing=mounted, out=out, bulk_files=(str(landing),)), spark=spark)
    file.write_text("<x/>")
    with pytest.raises(MtosiError, match="not SOAP"):
        run_ingest(IngestOptions(landing=mounted, out=out, mode="FAILFAST"), spark=spark)
    with pytest.raises(SpoolError, match=r"no message in it can be read.*\n.*1\.xml:1: not SOAP"):
        run_ingest(IngestOptions(landing=mounted, out=out), spark=spark)
    with pytest.raises(SpoolError, match="no message in it can be read"):
        run_alarms(AlarmOptions(landing=mounted, out=tmp_path / "alarms"), spark=spark)
    assert content(out, "") == before


def test_rows_say_what_was_rejected_and_a_file_that_changes_is(
    spark: Any, landing: Path, put: Put, envelopes: Any
) -> None:
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    put("2.xml", envelopes.batch("c", 2, True, envelopes.me("b")))
    put("bad.xml", "<x/>")
    rows = read_landing(spark, str(landing), columnNameOfCorruptRecord="corrupt")
    (landing / "2.xml").write_text(envelopes.batch("c", 2, True, envelopes.me("other")))
    found = {row.source_file: (row.name_text, row.complete, row.corrupt) for row in rows.collect()}
    assert found == {
        f"{landing}/1.xml": ("MD=M/ME=a", True, None),
        f"{landing}/2.xml": (None, None, f"{landing}/2.xml: cannot be read: has changed since it was listed"),
        f"{landing}/bad.xml": (None, None, f"{landing}/bad.xml:1: not SOAP: the root element is x"),
    }
    with pytest.raises(MtosiError, match="not SOAP"):
        read_landing(spark, str(landing), mode="FAILFAST")


def test_large_files_and_archives_pass_by_the_disk(
    spark: Any, landing: Path, put: Put, envelopes: Any, other_prefixes: Any
) -> None:
    troubled_landing(put, envelopes, other_prefixes)
    small = {"wholeFileBytes": "2000", "verify": "full"}
    options = SourceOptions.parse({"path": str(landing), **small})
    here, there = plan_landing(options), plan_by_engine(spark, options)
    assert there.rejects == here.rejects
    assert there.sequences == here.sequences
    assert there.counts == here.counts
    assert there.unfollowed == here.unfollowed
    assert there.readable(options).rows(options).count() == 3012


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"pathGlobFilter": "{a,b}*.xml"}, ["a1", "a2", "b"]),
        ({"pathGlobFilter": "[^a]*"}, ["b", "c"]),
        ({"recursiveFileLookup": "false"}, ["a1", "b"]),
        ({"modifiedAfter": "2020-01-01T00:00:00"}, ["a1", "a2", "c"]),
        ({"modifiedBefore": "2020-01-01T00:00:00"}, ["b"]),
    ],
)
def test_sparks_options_for_files(
    spark: Any, landing: Path, put: Put, envelopes: Any, options: dict[str, str], expected: list[str]
) -> None:
    for name, folder in (("a1", ""), ("a2", "deep/"), ("b", ""), ("c", "deep/deeper/")):
        put(f"{folder}{name}.xml", envelopes.batch(name, 1, True, envelopes.me(name)))
    os.utime(landing / "b.xml", (0, 1_500_000_000))
    settings = SourceOptions.parse({"path": str(landing), **options})
    assert [file.correlation_id for file in sorted(plan_landing(settings).files, key=lambda f: f.path)] == expected
    assert names(read_landing(spark, f"file:{landing}", **options)) == [f"MD=M/ME={name}" for name in expected]
