"""Spark's Python processes: they search folders alone, and what went wrong stands in one line above the traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyspark
from pyspark.errors import PySparkException

from mtosi_jms.spark import parse_messages, register_functions

pytestmark = pytest.mark.spark

Failing = Callable[[Any, Any, Path], Any]
ARCHIVES = Path(pyspark.__file__).parent / "python" / "lib"
_FIND = """
import sys
from mtosi_jms.spark._workers import leave_archives_out
sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry] + {archives}
leave_archives_out()
import pyspark
print(pyspark.__file__)
"""


def searched(rows: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa
    import pyspark

    list(rows)
    yield pa.RecordBatch.from_pylist(
        [{"entry": entry} for entry in (pyspark.__file__, *sys.path, *sys.path_importer_cache)]
    )


def test_a_worker_searches_folders(spark: Any) -> None:
    place, *entries = (row.entry for row in spark.range(1).mapInArrow(searched, "entry string").collect())
    assert place == pyspark.__file__
    assert [entry for entry in entries if Path(entry).suffix in (".zip", ".jar") and Path(entry).exists()] == []


def test_an_archive_of_the_user_stays(root: Path, tmp_path: Path) -> None:
    archive = tmp_path / "own.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("own.py", "")
    code = (
        "from mtosi_jms.spark._workers import leave_archives_out; leave_archives_out(); import own; print(own.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(archive)), done.stderr


@pytest.mark.skipif(not (ARCHIVES / "pyspark.zip").is_file(), reason="this PySpark is no distribution of Spark")
def test_a_pyspark_in_an_archive_is_found(root: Path) -> None:
    archives = [str(path) for path in ARCHIVES.glob("*.zip")]
    done = subprocess.run(
        [sys.executable, "-c", _FIND.format(archives=archives)], cwd=root, capture_output=True, text=True
    )
    assert done.stdout.startswith(str(ARCHIVES)), done.stderr


def while_planning(spark: Any, envelopes: Any, landing: Path) -> Any:
    (landing / "1.xml").write_text("<order/>")
    return spark.read.format("mtosi").option("mode", "FAILFAST").option("columns", "name_text").load(str(landing))


def while_reading(spark: Any, envelopes: Any, landing: Path) -> Any:
    damaged = "".join(map(envelopes.me, "d" * 999)) + "<me:me></me:mo>"
    (landing / "1.xml").write_text(envelopes.batch("d", 1, True, damaged))
    return spark.read.format("mtosi").option("mode", "FAILFAST").option("columns", "name_text").load(str(landing))


def while_parsing(spark: Any, envelopes: Any, landing: Path) -> Any:
    return parse_messages(
        spark.createDataFrame([("<order/>",)], "body string"), "ME", mode="FAILFAST", columns=("name_text",)
    )


def while_analyzing(spark: Any, envelopes: Any, landing: Path) -> Any:
    register_functions(spark)
    return spark.sql("select o.* from values ('x') as m(body), lateral mtosi_objects(body, 'MEE') o")


@pytest.mark.parametrize(
    ("fail", "line"),
    [
        (while_planning, "mtosi_jms.errors.MtosiError: {landing}/1.xml:1: not SOAP: the root element is order"),
        (while_reading, "mtosi_jms.errors.MtosiError: {landing}/1.xml:"),
        (while_parsing, "mtosi_jms.errors.MtosiError: 1: not SOAP: the root element is order"),
        (while_analyzing, "mtosi_jms.errors.ConfigError: objectType 'MEE': no such class in the stubs"),
    ],
)
def test_the_line_comes_before_the_traceback(
    fail: Failing, line: str, spark: Any, envelopes: Any, landing: Path
) -> None:
    with pytest.raises(PySparkException) as failure:
        fail(spark, envelopes, landing).collect()
    text = str(failure.value)
    expected = line.format(landing=landing)
    assert expected in text
    assert text.index(expected) < text.index("Traceback (most recent call last)")
    assert "_workers" in text.partition("Traceback (most recent call last)")[2], "the traceback is there too"
