"""Java programs of the test suite: jars from Maven or from Debian, compiled and run by the JDK that is there.

Jars are kept in a folder of the user's (`MTOSI_TEST_JARS`, else `mtosi-jms/jars` in the user's cache), so that Maven
runs once a machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

DEBIAN = Path("/usr/share/java")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
PATIENCE = 180  # seconds for Maven, which fetches its own plug-in too when it runs for the first time

PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


class JavaTools:
    """The JDK and Maven of this machine; what is missing skips the test that asks for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jars: dict[tuple[str, ...], list[Path]] = {}
        self._compiled: dict[tuple[Path, str], Path] = {}
        for tool in ("javac", "java"):
            if shutil.which(tool) is None:
                pytest.skip(f"no {tool}: install a JDK of Java 17 or later")

    def jars(self, *artifacts: str, debian: Sequence[str] = (), alone: bool = False) -> list[Path]:
        """The jars of some artifacts and of all that they need.

        Args:
            artifacts: `group:name:version`.
            debian: names of jars of Debian's that do as well, without folder.
            alone: whether what they need is left out.
        """
        if artifacts not in self._jars:
            installed = [DEBIAN / name for name in debian]
            kept = _cache() / "+".join(artifacts).replace(":", "_")
            if not kept.is_dir():
                if installed and all(jar.is_file() for jar in installed):
                    self._jars[artifacts] = installed
                    return installed
                _fetch(artifacts, kept, alone=alone)
            self._jars[artifacts] = sorted(kept.glob("*.jar"))
        return self._jars[artifacts]

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


def _cache() -> Path:
    given = os.environ.get("MTOSI_TEST_JARS")
    return (
        Path(given)
        if given
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mtosi-jms" / "jars"
    )


def _fetch(artifacts: Sequence[str], kept: Path, *, alone: bool) -> None:
    """Let Maven fetch the jars into a folder that is there only when it is complete."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"no {', '.join(artifacts)}: install Maven, or Debian's package of it")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as name:
        work = Path(name)
        listed = "".join(DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
        (work / "pom.xml").write_text(PROJECT.format(listed), encoding="utf-8")
        command = [maven, "-q", "-B", COPY, "-DincludeScope=runtime", f"-DoutputDirectory={work / 'jars'}"]
        command += ["-DexcludeTransitive=true"] if alone else []
        try:
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.skip(f"Maven did not fetch {', '.join(artifacts)} in {PATIENCE} seconds")
        if done.returncode:
            reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no reason given")
            pytest.skip(f"Maven cannot fetch {', '.join(artifacts)}: {reason}")
        try:
            (work / "jars").rename(kept)
        except OSError:
            assert kept.is_dir()  # another process of the suite was faster
