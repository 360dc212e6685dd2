"""Java programs of the test suite: jars from Maven, compiled and run by the JDK that is there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import fetch_unpinned


class JavaTools:
    """The JDK and Maven of this machine; what is missing skips the test that asks for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._compiled: dict[tuple[Path, str], Path] = {}
        for tool in ("javac", "java"):
            if shutil.which(tool) is None:
                pytest.skip(f"no {tool}: install a JDK of Java 17 or later")

    def jars(self, *artifacts: str, alone: bool = False) -> list[Path]:
        """The jars of some artifacts and of all that they need, in the user's cache; skips where they cannot be had.

        Args:
            artifacts: `group:name:version`.
            alone: whether what they need is left out.
        """
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        kept = cache / "mtosi-jms" / "jars" / "+".join(artifacts).replace(":", "_")
        try:
            return fetch_unpinned(artifacts, kept, ", ".join(artifacts), alone=alone)
        except ConfigError as reason:
            pytest.skip(str(reason))

    def compiled(self, source: Path, jars: Sequence[Path]) -> list[str]:
        """Compile one source file, and those beside it that it needs.

        Returns:
            The command that runs its class.
        """
        path = os.pathsep.join(map(str, jars))
        out = self._compiled.get((source, path))
        if out is None:
            out = self._compiled[source, path] = self._folder / f"{source.stem}-{len(self._compiled)}"
            self.javac("-cp", path, "-sourcepath", source.parent, "-d", out, source)
        # The program is short: the second compiler would start when it is over.
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{path}{os.pathsep}{out}", source.stem]

    def javac(self, *arguments: str | Path) -> None:
        """Run the compiler, which is over before its own Java is worth the second compiler."""
        quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-encoding", "UTF-8", "-proc:none")
        done = subprocess.run(["javac", *quick, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
