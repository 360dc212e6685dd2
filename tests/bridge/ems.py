"""An element manager of MTNM in a process of its own: `Ems.java`, on the stubs of `mtnm.idl`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..java_tools import once
from ..processes import Program

HERE = Path(__file__).parent
COMPILER = ("org.jacorb:jacorb-idl-compiler:3.9", "java_cup:java_cup:0.9e")
ORB = ("ORBClass=org.jacorb.orb.ORB", "ORBSingletonClass=org.jacorb.orb.ORBSingleton")
USER, PASSWORD = "nms", "s3cr3t-of-nms"


def with_orb(command: Sequence[str], *properties: str) -> list[str]:
    """The command of a Java program, with JacORB's ORB on loopback."""
    defined = [f"-Dorg.omg.CORBA.{one}" for one in ORB]
    quiet = ("-DOAIAddr=127.0.0.1", "-Djacorb.log.default.verbosity=0", *(f"-D{one}" for one in properties))
    return [command[0], *defined, *quiet, *command[1:]]


def compiled_ems(java: Any, jacorb: Sequence[Path]) -> list[str]:
    """The command that runs it. `java`: the JDK. `jacorb`: JacORB's jars."""
    sources, path = (HERE / "mtnm.idl", HERE / "Ems.java"), os.pathsep.join(map(str, jacorb))
    compiler = os.pathsep.join([*map(str, java.jars(*COMPILER)), path])

    def make(folder: Path) -> None:
        folder.mkdir()
        parser = ["java", "-XX:TieredStopAtLevel=1", "-cp", compiler, "org.jacorb.idl.parser"]
        subprocess.run([*parser, "-d", str(folder / "stubs"), str(sources[0])], check=True, capture_output=True)
        java.javac("-nowarn", "-cp", path, "-sourcepath", folder / "stubs", "-d", folder, sources[1])

    classes = once("Ems", (compiler, [one.read_bytes() for one in sources]), make)
    return with_orb(["java", "-XX:TieredStopAtLevel=1", "-cp", f"{path}{os.pathsep}{classes}", "Ems"])


class Ems(Program):
    """A running element manager.

    Args:
        command: that runs it.
        ior: file for the reference to its factory of sessions.
        channel: file with the reference of its event channel; None: it has none.
        naming: name of the factory, and the naming service.
        password: of its user.
    """

    def __init__(
        self,
        command: Sequence[str],
        ior: Path,
        channel: Path | None,
        naming: tuple[str, str] | tuple[()] = (),
        password: str = PASSWORD,
    ) -> None:
        super().__init__([*command, password, str(ior), "" if channel is None else str(channel), *naming])
        self.ior = ior
        self.await_line("ready")

    def do(self, line: str) -> None:
        """Has it do something, and returns when it is done."""
        word = f"did {line.split(maxsplit=1)[0]}"
        before = self.count(word)
        self.say(line)
        self.await_line(word, before + 1)
