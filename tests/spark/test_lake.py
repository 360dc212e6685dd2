"""Delta and Iceberg as formats of an ingest: real tables, their versions, their writers, and jars that do not fit."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.spark.jobs import IngestOptions, run_ingest
from mtosi_jms.spark.jobs._lake import Lake, jar_errors, session_settings, submit_line
from mtosi_jms.spark.jobs._merge import Counts
from mtosi_jms.tables.job import check_format

DELTA_CATALOG = "spark.sql.catalog.spark_catalog"

pytestmark = pytest.mark.spark

KINDS = ("delta", "iceberg")


def names(spark: Any, out: Path, kind: str, **options: str) -> list[str]:
    table = spark.read.format(kind).options(**options).load(str(out / "objectType=ME"))
    return sorted(row["name_text"].rpartition("=")[2] for row in table.select("name_text").collect())


def versions(spark: Any, out: Path, kind: str) -> list[dict[str, str]]:
    """The options that read each version of a table, the oldest first."""
    if kind == "delta":
        rows = spark.sql(f"DESCRIBE HISTORY delta.`{out / 'objectType=ME'}`").collect()
        return [{"versionAsOf": str(version)} for version in sorted(row["version"] for row in rows)]
    rows = spark.read.format(kind).load(f"{out / 'objectType=ME'}#snapshots").orderBy("committed_at").collect()
    return [{"versionAsOf": str(row["snapshot_id"])} for row in rows]


@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.endurance)])
def test_an_ingest_is_a_version(lake: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    options = IngestOptions(landing=landing, out=out, format=kind)
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a") + envelopes.me("b")))
    result = run_ingest(options, spark=lake)
    assert (result.rows, result.submit) == ({"ME": 2}, submit_line(kind, lake.version))
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("c")))
    run_ingest(options, spark=lake)
    first, *_, last = versions(lake, out, kind)
    assert names(lake, out, kind, **first) == ["a", "b"]
    assert names(lake, out, kind, **last) == names(lake, out, kind) == ["c"]
    other = KINDS[kind == KINDS[0]]
    for refused in ("parquet", other):
        with pytest.raises(ConfigError, match=f"holds tables of the format {kind}: choose it"):
            run_ingest(IngestOptions(landing=landing, out=out, format=refused), spark=lake)


@pytest.mark.endurance
@pytest.mark.parametrize("kind", KINDS)
def test_the_guide_compacts_a_table(
    lake: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    for name in ("a", "b"):
        put(f"{name}.xml", envelopes.batch(name, 1, True, envelopes.me(name)))
        options = IngestOptions(landing=landing, out=out, format=kind, write="merge", since_last=True)
        assert run_ingest(options, spark=lake).created == {"ME": 1}
    catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(out)}
    for setting, value in catalog.items():
        lake.conf.set(f"spark.sql.catalog.lake{setting}", value)
    text = (Path(__file__).parents[2] / "docs/spark.md").read_text()
    blocks = re.findall(r"^  ```sql\n(.*?)^  ```$", text, re.DOTALL | re.MULTILINE)
    for statement in blocks[KINDS.index(kind)].replace("OUT", str(out)).replace("2026-", "2099-").split(";")[:-1]:
        lake.sql(statement).collect()
    assert names(lake, out, kind) == ["a", "b"]
    table = str(out / "objectType=ME")
    if kind == "delta":
        assert len(lake.read.format(kind).load(table).inputFiles()) == 1
    else:  # which leaves fewer than five files alone
        assert lake.read.format(kind).load(f"{table}#snapshots").count() == 1


@pytest.mark.endurance
@pytest.mark.parametrize("kind", KINDS)
def test_of_two_writers_one_is_told(lake: Any, tmp_path: Path, kind: str) -> None:
    """Both merge at once, into a table that both have found; nothing of either is lost in part."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    table = Lake(lake, kind, tmp_path)
    table.replace("ME", lake.sql("SELECT 'a' AS name_text, 0 AS value"))

    def write(value: int) -> bool:
        session = lake.newSession()
        with suppress(PySparkException, Py4JError):
            session.conf.set(DELTA_CATALOG, lake.conf.get(DELTA_CATALOG))
            own = Lake(session, kind, tmp_path)
            rows = session.sql(f"SELECT 'a' AS name_text, {value} AS value, false AS gone")
            own.merge("ME", rows, ["name_text"], "gone", Counts(rows=1, replaces=1))
            return True
        return False

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(write, (1, 2)))
    assert any(done)
    (row,) = table.read("ME").collect()
    assert row["value"] in {value for value, written in zip((1, 2), done, strict=True) if written}


def test_tables_of_a_catalog(lake: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path) -> None:
    lake.conf.set("spark.sql.catalog.net", "org.apache.iceberg.spark.SparkCatalog")
    lake.conf.set("spark.sql.catalog.net.type", "hadoop")
    lake.conf.set("spark.sql.catalog.net.warehouse", str(tmp_path / "warehouse"))
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    options = {"landing": landing, "out": tmp_path / "out", "format": "iceberg"}
    run_ingest(IngestOptions(**options, table="net.osi.inventory"), spark=lake)
    assert lake.table("net.osi.inventory_me").count() == 1
    with pytest.raises(ConfigError, match="table inventory: the session's own catalog is in memory"):
        run_ingest(IngestOptions(**options, table="inventory"), spark=lake)


def test_packages_by_version() -> None:
    assert submit_line("iceberg", "4.0.1") == "--packages org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"
    assert submit_line("parquet", "9.9") == ""
    with pytest.raises(ConfigError, match=r"there is no Iceberg for Spark 4\.3\.0, only for 4\.0, 4\.1: pip install"):
        submit_line("iceberg", "4.3.0")
    delta = "--packages io.delta:delta-spark_4.1_2.13:4.4.0 --conf spark.sql.ext"
    assert submit_line("delta", "4.1.4").startswith(delta)
    assert session_settings("iceberg", "4.3.0", {"spark.jars": "own.jar"}) == {"spark.jars": "own.jar"}
    assert "spark.jars" not in session_settings("delta", "4.1.4", {"spark.jars.packages": "own:jar:1"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_jar_that_does_not_fit_is_named(lake: Any, kind: str) -> None:
    from py4j.protocol import Py4JError

    told = rf"'s jar \S*{kind}\S*\.jar does not fit Spark {lake.version}: java\.lang\.NoSuchMethodError: 'void f\(\)'"
    with pytest.raises(ConfigError, match=told) as caught, jar_errors(lake, kind):
        raise Py4JError("An error occurred while calling o39.sql.\n: java.lang.NoSuchMethodError: 'void f()'\n\tat x")
    assert submit_line(kind, lake.version) in str(caught.value)
    with pytest.raises(Py4JError, match="else"), jar_errors(lake, kind):
        raise Py4JError("something else")


@pytest.mark.endurance
def test_a_session_without_the_jar(tmp_path: Path, put: Any, envelopes: Any, landing: Path) -> None:
    """In a process of its own: the session of these tests has the jars."""
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    command = [sys.executable, "-m", "mtosi_jms", "ingest", str(landing), "--out", str(tmp_path / "out")]
    command += ["--format", "iceberg", "--cores", "1", "--conf", "spark.jars="]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    told = "error: the session has no jar of Iceberg (class org.apache.iceberg.spark.SparkCatalog): "
    assert (done.returncode, done.stdout) == (1, "")
    *stages, problem = done.stderr.splitlines()
    assert stages == ["ingesting: plan", "ingesting: start Spark"]
    assert problem.startswith(told)


def test_usage(capsys: pytest.CaptureFixture[str], landing: Path, tmp_path: Path) -> None:
    assert main(["ingest", str(landing), "--format", "csv"]) == 2
    assert main(["ingest", str(landing), "--conf", "spark.jars"]) == 2
    assert "'spark.jars' is not KEY=VALUE" in capsys.readouterr().err
    (tmp_path / "objectType=ME/_delta_log").mkdir(parents=True)
    check_format("delta", tmp_path)
    with pytest.raises(ConfigError, match="holds tables of the format delta"):
        check_format("iceberg", tmp_path)


@pytest.mark.endurance
def test_errors_of_the_merge_are_ours(lake: Any, put: Any, envelopes: Any, landing: Path, tmp_path: Path) -> None:
    """A table whose column has another type now."""
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    options = IngestOptions(landing=landing, out=tmp_path / "out", format="delta", write="merge")
    run_ingest(options, spark=lake)
    table = Lake(lake, "delta", tmp_path / "out")
    rows = table.read("ME").drop("owner").selectExpr("* EXCEPT (location)", "0L AS location").limit(0)
    rows.write.parquet(str(tmp_path / "other"))
    table.replace("ME", lake.read.parquet(str(tmp_path / "other")))
    with pytest.raises(MtosiError, match="column location is bigint in the table and string now: ingest into another"):
        run_ingest(options, spark=lake)


@pytest.mark.endurance
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_a_newer_release_are_added(
    lake: Any, put: Any, envelopes: Any, landing: Path, tmp_path: Path, kind: str
) -> None:
    """A table that an older release made without a column."""
    out = tmp_path / "out"
    options = IngestOptions(landing=landing, out=out, format=kind, write="merge", since_last=True)
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a", "<coi:owner>x</coi:owner>")))
    run_ingest(options, spark=lake)
    table = Lake(lake, kind, out)
    table.read("ME").drop("owner").write.parquet(str(tmp_path / "older"))
    table.replace("ME", lake.read.parquet(str(tmp_path / "older")))
    put("2.xml", envelopes.batch("d", 1, True, envelopes.me("b", "<coi:owner>y</coi:owner>")))
    result = run_ingest(options, spark=lake)
    assert (result.added, result.foreign) == ({"ME": ["`owner`"]}, ["ME"])
    rows = table.read("ME").select("name_text", "owner").collect()
    assert {row["name_text"]: row["owner"] for row in rows} == {"MD=M/ME=a": None, "MD=M/ME=b": "y"}


@pytest.mark.endurance
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_in_between_is_noticed(
    lake: Any, put: Any, envelopes: Any, landing: Path, tmp_path: Path, kind: str
) -> None:
    """Another program commits while the ingest works: nothing is written, and the next ingest has both."""
    out = tmp_path / "out"
    options = IngestOptions(landing=landing, out=out, format=kind, write="merge", since_last=True)
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    run_ingest(options, spark=lake)
    put("2.xml", envelopes.batch("d", 1, True, envelopes.me("b")))
    table = Lake(lake, kind, out)

    def meddle(stage: str, done: int, tasks: int) -> None:
        if stage == "commit" and not tasks:
            lake.sql(f"UPDATE {table.name('ME')} SET owner = 'other'")

    with pytest.raises(MtosiError, match="another program has changed the table meanwhile; nothing was written"):
        run_ingest(options, spark=lake, progress=meddle)
    assert names(lake, out, kind) == ["a"]
    assert run_ingest(options, spark=lake).foreign == ["ME"]
    rows = table.read("ME").select("name_text", "owner").collect()
    assert {row["name_text"]: row["owner"] for row in rows} == {"MD=M/ME=a": "other", "MD=M/ME=b": None}
