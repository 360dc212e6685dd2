"""Workers of a local session search folders alone; a PySpark that is only an archive is found as before."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyspark

pytestmark = pytest.mark.spark

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
