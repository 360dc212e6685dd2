"""Java programs of the test suite: jars from Maven, compiled and run by the JDK that is there."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import fetch_unpinned

from .processes import Program


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mtosi-jms"


CXF_HTTP = (
    "org.apache.cxf:cxf-rt-frontend-jaxws:4.1.4",
    "org.apache.cxf:cxf-rt-transports-http-undertow:4.1.4",
    "com.sun.xml.messaging.saaj:saaj-impl:3.0.4",
    "org.apache.cxf:cxf-tools-wsdlto-frontend-jaxws:4.1.4",
    "org.apache.cxf:cxf-tools-wsdlto-databinding-jaxb:4.1.4",
)
"""Apache CXF over HTTP, with its generator."""
CXF_JMS = (
    "org.apache.cxf:cxf-rt-frontend-jaxws:4.1.4",
    "org.apache.cxf:cxf-rt-transports-jms:4.1.4",
    "com.sun.xml.messaging.saaj:saaj-impl:3.0.4",
    "org.apache.activemq:activemq-client:6.1.6",
    "org.apache.activemq:artemis-jakarta-client:2.44.0",
)
"""Apache CXF over JMS, with the brokers' clients."""
JAVA = ("java", "-XX:TieredStopAtLevel=1")
"""Programs are short: the second compiler would start when they are over."""


def once(name: str, what: object, make: Callable[[Path], None]) -> Path:
    """A folder of classes in the user's cache, made if it is not there.

    Args:
        name: of what is made.
        what: all that it is made of.
        make: fills a folder.
    """
    digest = hashlib.sha256(repr((os.path.realpath(shutil.which("javac") or ""), what)).encode()).hexdigest()
    out = _cache() / "classes" / f"{name}-{digest}"
    if not out.is_dir():
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent) as made:
            make(Path(made) / "out")
            with contextlib.suppress(OSError):  # another worker was faster
                (Path(made) / "out").rename(out)
    return out


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

        def make(out: Path) -> None:
            self.javac("-cp", path, "-sourcepath", source.parent, "-d", out, source)

        out = once(source.stem, (source.name, path, texts), make)
        return [*JAVA, "-cp", f"{path}{os.pathsep}{out}", source.stem]

    def of_wsdl(self, wsdl: str, texts: Sequence[bytes], jars: Sequence[Path], *options: str) -> Path:
        """The classes that Apache CXF makes of a WSDL; once for all runs, in the user's cache.

        Args:
            wsdl: file or URL of what they are made of.
            texts: the same and what it imports, however often it is read.
            jars: Apache CXF and its generator.
            options: of `wsdl2java`.

        Returns:
            The folder of the classes.
        """
        path = os.pathsep.join(map(str, jars))

        def make(out: Path) -> None:
            where = ("-compile", "-d", str(out.with_name("java")), "-classdir", str(out))
            command = [*JAVA, "-cp", path, "org.apache.cxf.tools.wsdlto.WSDLToJava", *options, *where, wsdl]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr

        return once("cxf", (path, options, texts), make)

    def javac(self, *arguments: str | Path) -> None:
        """Run the compiler, which is over before its own Java is worth the second compiler."""
        quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-encoding", "UTF-8", "-proc:none")
        done = subprocess.run(["javac", *quick, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class JavaPeer(Program):
    """A Java program that does what its standard input says: a command a line, words parted by tabulators, text outside
    ASCII as Java writes it. It answers with lines of words and a line with a dot.

    Args:
        command: runs it.
        folder: for texts that are passed, and for what it complains of.
        patience: seconds until an answer that has not come is taken to hang.
        password: its first line; None: there is none, nor an answer to it.
    """

    def __init__(self, command: Sequence[str], folder: Path, patience: float = 60, password: str | None = None) -> None:
        super().__init__(command, log=folder / "stderr", patience=patience)
        self.folder = folder
        self._files = itertools.count(1)
        if password is not None:
            self.ask(password)

    def ask(self, *words: str) -> list[list[str]]:
        """Have one thing done; the lines that it tells of it."""
        self.say("\t".join(map(_escaped, words)))
        told = [[_unescaped(word) for word in line.split("\t")] for line in iter(self.line, ".")]
        assert not [line for line in told if line[0] == "error"], told
        return told

    def file(self, text: str | bytes) -> str:
        """A text where the program finds it."""
        path = self.folder / f"text-{next(self._files)}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 and code != 92 else f"\\u{code:04x}" for code in codes)


def _unescaped(text: str) -> str:
    read = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    return read.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
