"""The least PySpark: what is there is seen without importing it, and one that is too old is refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from mtosi_jms.errors import ConfigError

pytest.importorskip("pyspark")

import pyspark

from mtosi_jms.spark import SPARK_MINIMUM, check_version, pyspark_version


@pytest.mark.parametrize("version", ["3.5.7", "2.4", "3.99.0.dev0"])
def test_too_old(version: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"PySpark {version} is too old: .* requires PySpark 4\.0 or later"
    ) as caught:
        check_version(version)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["4.0.0", "4.3.0", "10.1", "4.0.0.dev1", "", "vendor-build"])
def test_new_enough_or_unknown(version: str) -> None:
    assert check_version(version) is None


def test_the_version_is_that_of_pyspark() -> None:
    assert pyspark_version() == pyspark.__version__


def test_the_extra_asks_for_the_same_version() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"pyspark>={'.'.join(map(str, SPARK_MINIMUM))}" in project["optional-dependencies"]["spark"]


_IMPORT = """
from mtosi_jms.errors import MtosiError
try:
    import mtosi_jms.spark
except MtosiError as error:
    print(error)
"""


@pytest.mark.parametrize("packed", [False, True])
def test_import_refuses_an_older_one(tmp_path: Path, packed: bool) -> None:
    files = {
        "pyspark/__init__.py": "raise SystemExit('imported')",
        "pyspark/version.py": '__version__: str = "3.5.1"\n',
    }
    place = tmp_path / ("pyspark.zip" if packed else "python")
    if packed:
        with zipfile.ZipFile(place, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    else:
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
    path = os.pathsep.join([str(place), *(entry or str(Path.cwd()) for entry in sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        done.stdout
        == "PySpark 3.5.1 is too old: mtosi_jms.spark requires PySpark 4.0 or later, pip install 'pyspark>=4.0'\n"
    )
