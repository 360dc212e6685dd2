"""The classes of ours that run in Java, from their sources; run as a script it writes the class files anew."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import mtosi_jms.bridge
import mtosi_jms.transport.jvm

HOME = Path(mtosi_jms.transport.jvm.__file__).parent / "java"
CORBA = Path(mtosi_jms.bridge.__file__).parent / "java"
"""What CORBA calls; it needs JacORB."""
APIS = ("javax", "jakarta")


def compile_java(sources: Sequence[Path], jars: Sequence[Path], out: Path) -> None:
    """Compile source files into a folder, to the same bytes each time."""
    options = ["--release", "17", "-g:none", "-proc:none", "-encoding", "UTF-8"]
    quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
    subprocess.run(["javac", *quick, *options, "-cp", ":".join(map(str, jars)), "-d", out, *sources], check=True)


def compiled(jars: Mapping[str, Sequence[Path]], folder: Path) -> dict[str, bytes]:
    """The class file for each of the two packages of the JMS API, by its path below `HOME`. `jars`: of each API.
    `folder`: for what is compiled."""
    text = (HOME / "Crossing.java").read_text(encoding="utf-8")
    found = {}
    for api in APIS:
        out = folder / api
        out.mkdir()
        source = out / "Crossing.java"
        source.write_text(text.replace("javax", api), encoding="utf-8")
        compile_java([source], jars[api], out)
        found |= {one.relative_to(out).as_posix(): one.read_bytes() for one in out.rglob("*.class")}
    return found


if __name__ == "__main__":
    from mtosi_jms.jars import fetch_client

    kept = Path.home() / ".cache" / "mtosi-jms" / "jars"
    jakarta = kept / "jakarta.jms_jakarta.jms-api_3.1.0"
    jars = {"javax": fetch_client("artemis").paths, "jakarta": sorted(jakarta.glob("*.jar"))}
    with tempfile.TemporaryDirectory() as name:
        for where, data in compiled(jars, Path(name)).items():
            (HOME / where).parent.mkdir(parents=True, exist_ok=True)
            (HOME / where).write_bytes(data)
    compile_java(sorted(CORBA.glob("*.java")), fetch_client("jacorb").paths, CORBA)
