"""The class files in the package are those of the source beside them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .clients import jars_of
from .crossing import APIS, CORBA, HOME, compile_java, compiled

JAKARTA = "jakarta.jms:jakarta.jms-api:3.1.0"


@pytest.fixture(autouse=True, scope="module")
def javac_17(java: Any) -> None:
    said = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True)
    if " 17." not in f"{said.stdout}{said.stderr}":
        pytest.skip("another compiler than javac 17 writes other bytes")


def test_the_class_files_are_those_of_the_source(tmp_path: Path, java: Any) -> None:
    jars = {"javax": [Path(one) for one in jars_of("artemis")], "jakarta": java.jars(JAKARTA)}
    found = compiled(jars, tmp_path)
    assert sorted(found) == sorted(
        f"mtosi_jms/{api}/{name}.class" for api in APIS for name in ("Crossing", "Completion")
    )
    assert found == {one.relative_to(HOME).as_posix(): one.read_bytes() for one in HOME.rglob("*.class")}


def test_the_classes_that_corba_calls_are_those_of_their_sources(tmp_path: Path) -> None:
    compile_java(sorted(CORBA.glob("*.java")), [Path(one) for one in jars_of("jacorb")], tmp_path)
    found = {one.relative_to(tmp_path).as_posix(): one.read_bytes() for one in tmp_path.rglob("*.class")}
    assert sorted(found) == [f"mtosi_jms/corba/{name}.class" for name in ("Guarded", "Offered")]
    assert found == {one.relative_to(CORBA).as_posix(): one.read_bytes() for one in CORBA.rglob("*.class")}
