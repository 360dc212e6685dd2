"""Java programs of the test suite: jars from Maven, compiled and run by the JDK that is there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import fetch_unpinned


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mtosi-jms"


class JavaTools:
    """The JDK and Maven of this machine; what is missing skips the test that asks for it."""

    def __init__(self) -> None:
        for tool in ("javac", "java"):
            if shutil.which(tool) is None:
                pytest.skip(f"no {tool}: install a JDK of Java 17 or later")

    def jars(self, *artifacts: str, alone: bool = False) -> list[Path]:
        """The jars of some artifacts and of all that they need, in the user's cache; skips where they cannot be had.

        Args:
            artifacts: `group:name:version`.
            alone: whether what they need is left out.
        """
        kept = _cache() / "jars" / "+".join(artifacts).replace(":", "_")
        try:
            return fetch_unpinned(artifacts, kept, ", ".join(artifacts), alone=alone)
        except ConfigError as reason:
            pytest.skip(str(reason))

    def compiled(self, source: Path, jars: Sequence[Path]) -> list[str]:
        """Compile one source file, and those beside it that it needs; once for all runs, in the user's cache.

        Returns:
            The command that runs its class.
        """
        path = os.pathsep.join(map(str, jars))
        texts = [one.read_bytes() for one in sorted(source.parent.glob("*.java"))]
        what = repr((os.path.realpath(shutil.which("javac") or ""), source.name, path, texts))
        out = _cache() / "classes" / f"{source.stem}-{hashlib.sha256(what.encode()).hexdigest()}"
        if not out.is_dir():
            out.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=out.parent) as made:
                self.javac("-cp", path, "-sourcepath", source.parent, "-d", Path(made) / "out", source)
                with contextlib.suppress(OSError):  # another worker was faster
                    (Path(made) / "out").rename(out)
        # The program is short: the second compiler would start when it is over.
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{path}{os.pathsep}{out}", source.stem]

    def javac(self, *arguments: str | Path) -> None:
        """Run the compiler, which is over before its own Java is worth the second compiler."""
        quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-encoding", "UTF-8", "-proc:none")
        done = subprocess.run(["javac", *quick, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
