"""`spark-archive`: the package as one archive on the search path, with the native core inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main

CORE = "mtosi_jms/xmlbind/_core."
READING = """
import sys
sys.path.insert(0, sys.argv[1])
import mtosi_jms
from mtosi_jms.inventory import class_for
from mtosi_jms.xmlbind import core
assert mtosi_jms.__file__.startswith(sys.argv[1]), mtosi_jms.__file__
print(class_for("ME").cls.__name__, core().name, core().reason)
"""


def name_of(wheel_of: str = mtosi.__version__, platform: str = "linux_x86_64") -> str:
    return f"mtosi_jms-{wheel_of}-cp311-abi3-{platform}.whl"


@pytest.fixture
def without_core(package: Path, tmp_path: Path) -> Path:
    """A wheel for any platform: the same package without its core."""
    wheel = tmp_path / name_of(platform="any")
    with zipfile.ZipFile(package) as old, zipfile.ZipFile(wheel, "w") as new:
        for name in old.namelist():
            if not name.startswith(CORE):
                new.writestr(name, old.read(name))
        new.writestr("mtosi_jms-1.dist-info/METADATA", "")
    return wheel


def read_with(archive: Path) -> str:
    """What a Python without the package says that has it from an archive."""
    command = [sys.executable, "-I", "-c", READING, str(archive)]
    settings = {name: value for name, value in os.environ.items() if name != "MTOSI_JMS_CORE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=archive.parent, env=settings)
    return done.stdout.strip()


def test_python_reads_from_the_archive_with_the_core_inside(package: Path) -> None:
    has_core = any(name.startswith(CORE) for name in zipfile.ZipFile(package).namelist())
    wanted = "native it is installed" if has_core else "python this installation has no native core"
    assert read_with(package) == f"ManagedElementType {wanted}"


def test_a_core_of_another_platform_leaves_the_python_core(without_core: Path, capsys: Any) -> None:
    with zipfile.ZipFile(without_core, "a") as wheel:
        for suffix in ("abi3.so", "pyd"):
            wheel.writestr(f"{CORE}{suffix}", b"a library of another system")
    out = without_core.with_name("out.zip")
    assert main(["spark-archive", "--wheel", str(without_core), "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["out"], found["platform"]) == (str(out), "any")
    assert read_with(out).startswith("ManagedElementType python the native core does not load: ")


def test_an_archive_has_the_stubs_that_are_named_and_is_the_same_for_the_same_files(
    without_core: Path, capsys: Any
) -> None:
    outs = [without_core.with_name(f"{number}.zip") for number in (1, 2)]
    for out in outs:
        words = ["spark-archive", "--wheel", str(without_core), "--stubs", "mtosi_jms.stubs11", "--out", str(out)]
        assert main(words) == 0
    assert "no native core" in capsys.readouterr().err
    assert outs[0].read_bytes() == outs[1].read_bytes()
    names = zipfile.ZipFile(outs[0]).namelist()
    assert {"mtosi_jms/__init__.py", "mtosi_jms/jobs/registration.toml", "mtosi_jms/stubs11/__init__.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or not name.startswith("mtosi_jms/")]


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("package.zip", "", 1, "is not named as a wheel of mtosi-jms"),
        (name_of("9.9"), "", 1, "is of version 9.9"),
        (name_of(), "no archive", 1, "damaged archive"),
        (name_of(), None, 1, "No such file"),
        (name_of(), {"other/__init__.py": ""}, 1, "is no wheel of mtosi-jms"),
    ],
)
def test_what_is_no_wheel_leaves_the_archive_as_it_was(
    name: str, content: Any, code: int, said: str, tmp_path: Path, capsys: Any
) -> None:
    wheel, out = tmp_path / name, tmp_path / "out.zip"
    out.write_text("earlier")
    if isinstance(content, str):
        wheel.write_text(content)
    elif content is not None:
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(*next(iter(content.items())))
    assert main(["spark-archive", "--wheel", str(wheel), "--out", str(out)]) == code
    assert said in capsys.readouterr().err
    assert out.read_text() == "earlier"
    assert len(list(tmp_path.iterdir())) == 1 + wheel.exists()


def test_what_cannot_be_written_is_told(without_core: Path, capsys: Any) -> None:
    words = ["spark-archive", "--wheel", str(without_core), "--out"]
    assert main([*words, str(without_core.parent)]) == 1
    assert main([*words, str(without_core / "below.zip")]) == 1
    assert "Traceback" not in capsys.readouterr().err
