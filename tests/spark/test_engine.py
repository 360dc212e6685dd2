"""Landings that Spark plans: the same as those that the driver plans, on any file system."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from mtosi_jms.errors import ConfigError, ExchangeError, MtosiError, SpoolError
from mtosi_jms.spark import SourceOptions, read_landing, stream_landing
from mtosi_jms.spark._engine import plan_by_engine
from mtosi_jms.spark.jobs import AlarmOptions, IngestOptions, run_alarms, run_ingest
from mtosi_jms.tables.files import list_files
from mtosi_jms.tables.ingest import run_local
from mtosi_jms.tables.landing import look, plan_landing

from .lake_model import GONE, Event
from .test_growth import Network
from .troubles import content, troubled_landing

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


def names(rows: Any) -> list[str]:
    return sorted(row.name_text for row in rows.select("name_text").collect())


def test_an_ingest_from_elsewhere_is_that_from_here(
    spark: Any, landing: Path, mounted: str, put: Put, envelopes: Any, other_prefixes: Any, tmp_path: Path
) -> None:
    """From here by the local engine: that Spark makes the same of it is what `test_engines.py` holds."""
    troubled_landing(put, envelopes, other_prefixes)
    run_local(IngestOptions(landing=landing, out=tmp_path / "here"))
    result = run_ingest(IngestOptions(landing=mounted, out=tmp_path / "there"), spark=spark)
    assert result.rows == {"ME": 1212}
    assert not result.complete
    here, there = content(tmp_path / "here", str(landing)), content(tmp_path / "there", mounted)
    assert there == here


@pytest.mark.endurance
def test_loads_that_add_up_from_elsewhere_are_those_from_here(
    spark: Any, landing: Path, mounted: str, put: Put, envelopes: Any, other_prefixes: Any, tmp_path: Path
) -> None:
    def run(where: Path | str, out: Path) -> dict[str, Any]:
        options = IngestOptions(landing=where, out=out, write="append", on_incomplete="wait")
        run_ingest(options, spark=spark)
        query = "SELECT f.path, size, modified_ns, d.path, state, sha256 FROM file f JOIN document d USING (position)"
        with closing(sqlite3.connect(out / "_report/checkpoint.sqlite")) as database:
            known = sorted(database.execute(query))
        return {**content(out, str(where)), "checkpoint": known}

    def both() -> dict[str, Any]:
        for file in landing.rglob("*"):
            if file.is_file() and file.stat().st_mtime_ns % 1_000:
                os.utime(file, ns=(0, file.stat().st_mtime_ns // 1_000 * 1_000))  # fsspec knows no more
        here, there = run(landing, tmp_path / "here"), run(mounted, tmp_path / "there")
        for name, expected in here.items():
            assert there[name] == expected, name
        summary: dict[str, Any] = there["summary"]
        return summary

    troubled_landing(put, envelopes, other_prefixes)
    first = both()
    assert first["waiting"] == 5
    put("gap/2.xml", envelopes.batch("gap", 2, False, envelopes.me("g2")))
    put("later/w.xml", envelopes.batch("later", 1, True, envelopes.me("w1"), time="2024-02-01T00:00:00Z"))
    put("archives/late.zip", (landing / "archives/some.zip").read_bytes())
    put("bad/soap.xml", envelopes.batch("soap", 1, True, envelopes.me("s1")))
    put("nobody/a.xml", "<changed/>")
    put("event.xml", Network(envelopes, landing, spark).event(Event(GONE, "MD=M/ME=w2", 86_400)))
    (landing / "archives/more.tgz").unlink()
    second = both()
    assert second["waiting"] == 3
    assert [reject["file"] for reject in second["rejected"] if "has changed" in reject["reason"]] == ["/nobody/a.xml"]


def test_a_stream_of_paths(spark: Any, landing: Path, mounted: str, tmp_path: Path) -> None:
    """What it gives is held by `test_streams.py`."""
    given = {"columns": "name_text", "index": str(tmp_path / "index.db")}
    rows = stream_landing(spark, [mounted, str(landing)], **given)
    assert (rows.isStreaming, rows.columns) == (True, ["name_text"])
    with pytest.raises(ConfigError, match="cleanSource is 'burn'"):
        stream_landing(spark, mounted, cleanSource="burn", **given)


def test_a_file_that_changes_or_goes_before_it_is_looked_at_is_an_error(
    landing: Path, mounted: str, put: Put, envelopes: Any
) -> None:
    for name in ("changed", "gone"):
        put(f"{name}.xml", envelopes.batch(name, 1, True, envelopes.me(name)))
    options = SourceOptions.parse({"path": mounted})
    listed = {file.path: file for file in list_files(options.paths, [])}
    put("changed.xml", "<changed/>")
    (landing / "gone.xml").unlink()
    for name, reason in (("changed", "has changed since it was listed"), ("gone", "no such file or folder")):
        (found,) = look([listed[f"{mounted}/{name}.xml"]], options, whole=True)
        assert (found.scanned, found.error) == ((), reason)


def test_what_is_not_there_or_cannot_be_taken_leaves_the_tables(
    spark: Any, landing: Path, mounted: str, put: Put, envelopes: Any, tmp_path: Path
) -> None:
    file = put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    out = tmp_path / "out"
    run_local(IngestOptions(landing=landing, out=out))
    before = content(out, "")
    with pytest.raises(SpoolError, match="no such file or folder"):
        run_ingest(IngestOptions(landing=f"{mounted}/nothing", out=out), spark=spark)
    growing = {"write": "append", "on_incomplete": "wait"}
    for name, options in (("new", {}), ("growing", growing)):
        with pytest.raises(ConfigError, match=r"nowhere.*binaryFile"):
            run_ingest(IngestOptions(landing="nowhere://bucket/landing", out=tmp_path / name, **options), spark=spark)
    with pytest.raises(ExchangeError, match="1 incomplete"):
        run_ingest(IngestOptions(landing=mounted, out=out, on_incomplete="fail"), spark=spark)
    with pytest.raises(ConfigError, match="bulkFiles"):
        read_landing(spark, mounted, bulkFiles=str(landing))
    file.write_text("<x/>")
    with pytest.raises(MtosiError, match="not SOAP"):
        run_ingest(IngestOptions(landing=mounted, out=out, mode="FAILFAST"), spark=spark)
    with pytest.raises(SpoolError, match=r"no message in it can be read.*\n.*1\.xml:1: not SOAP"):
        run_ingest(IngestOptions(landing=mounted, out=out), spark=spark)
    with pytest.raises(SpoolError, match="no message in it can be read"):
        run_alarms(AlarmOptions(landing=mounted, out=tmp_path / "alarms"), spark=spark)
    assert content(out, "") == before


@pytest.mark.obligation("TAB1", "TAB2")
def test_rows_say_what_was_rejected_and_a_file_that_changes_is_an_error(
    spark: Any, landing: Path, put: Put, envelopes: Any
) -> None:
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("a")))
    put("2.xml", envelopes.batch("c", 2, True, envelopes.me("b")))
    put("bad.xml", "<x/>")
    rows = read_landing(spark, str(landing), columnNameOfCorruptRecord="corrupt")
    found = {row.source_file: (row.name_text, row.complete, row.corrupt) for row in rows.collect()}
    assert found == {
        f"{landing}/1.xml": ("MD=M/ME=a", True, None),
        f"{landing}/2.xml": ("MD=M/ME=b", True, None),
        f"{landing}/bad.xml": (None, None, f"{landing}/bad.xml:1: not SOAP: the root element is x"),
    }
    (landing / "2.xml").write_text(envelopes.batch("c", 2, True, envelopes.me("other")))
    changed = rf"SpoolError: {landing}/2\.xml: cannot be read on host \S+: has changed since the landing was planned"
    with pytest.raises(PySparkException, match=changed):
        rows.collect()
    with pytest.raises(MtosiError, match="not SOAP"):
        read_landing(spark, str(landing), mode="FAILFAST")


def test_spark_plans_large_files_and_archives_as_this_process_does(
    spark: Any, landing: Path, put: Put, envelopes: Any, other_prefixes: Any
) -> None:
    troubled_landing(put, envelopes, other_prefixes)
    small = {"wholeFileBytes": "2000", "verify": "full"}
    options = SourceOptions.parse({"path": str(landing), **small})
    here, there = plan_landing(options), plan_by_engine(spark, options)
    assert there.rejects == here.rejects
    assert tuple(there.sequences) == here.sequences
    assert there.counts == here.counts
    assert there.unfollowed == here.unfollowed
    assert there.readable(options).rows(options).count() == 1212


def test_sparks_options_for_files(spark: Any, landing: Path, put: Put, envelopes: Any) -> None:
    for name, folder in (("a1", ""), ("a2", "deep/"), ("b", ""), ("c", "deep/deeper/")):
        put(f"{folder}{name}.xml", envelopes.batch(name, 1, True, envelopes.me(name)))
    os.utime(landing / "b.xml", (0, 1_500_000_000))
    for options, expected in (
        ({"pathGlobFilter": "{a,b}*.xml"}, {"a1", "a2", "b"}),
        ({"pathGlobFilter": "[^a]*"}, {"b", "c"}),
        ({"recursiveFileLookup": "false"}, {"a1", "b"}),
        ({"modifiedAfter": "2020-01-01T00:00:00"}, {"a1", "a2", "c"}),
        ({"modifiedBefore": "2020-01-01T00:00:00"}, {"b"}),
    ):
        settings = SourceOptions.parse({"path": str(landing), **options})
        assert {file.correlation_id for file in plan_landing(settings).files} == expected
    given = {"pathGlobFilter": "[^b]*", "recursiveFileLookup": "false", "modifiedAfter": "2020-01-01T00:00:00+02:00"}
    assert names(read_landing(spark, [f"file:{landing}", str(landing / "dee*")], **given)) == [
        "MD=M/ME=a1",
        "MD=M/ME=a2",
    ]
    with pytest.raises(ConfigError, match="modifiedAfter is 'soon'"):
        read_landing(spark, str(landing), modifiedAfter="soon")
