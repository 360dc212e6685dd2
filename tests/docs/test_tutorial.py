"""The tutorial's programs and commands, run as printed, on a real broker; its Spark job belongs to `make endurance`."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mtosi_jms.broker import BrokerProcess

pytestmark = pytest.mark.broker

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
PROGRAMS = {
    name: text for text, name in re.findall(r"^```python\n(# (\w+)\.py\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
}
COMMANDS = re.findall(r"^\$ mtosi-jms (.*)$", PAGE, re.MULTILINE)
PATIENCE = 180


class Reader:
    """Who follows the tutorial, in a folder of his own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "MTOSI_JMS_URL": url, "PYTHONIOENCODING": "utf-8"}

    def _start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def program(self, name: str) -> str:
        path = self.folder / f"{name}.py"
        path.write_text(PROGRAMS[name], encoding="utf-8")
        return str(path)

    def run(self, *words: str) -> str:
        process = self._start(*words)
        printed, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        return printed

    @contextmanager
    def running(self, *words: str) -> Iterator[None]:
        """A program that goes on until Ctrl-C."""
        process = self._start(*words)
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE)
            assert "Traceback" not in said
        finally:
            process.kill()
            process.communicate()


def command(start: str) -> list[str]:
    """The page's command that begins so, as words."""
    (line,) = {line for line in COMMANDS if line.startswith(start)}
    return ["-m", "mtosi_jms", *shlex.split(line)]


@pytest.fixture
def reader(artemis: BrokerProcess, tmp_path: Path) -> Reader:
    return Reader(tmp_path, artemis.endpoints.url("stomp"))


def test_requestor_and_supplier(reader: Reader) -> None:
    with reader.running(*command("serve")):
        lines = reader.run(reader.program("first_requestor")).splitlines()
        assert lines[0].startswith("MD=EMS1/ME=NE-7 ")
        assert lines[1:] == ["1000 managed elements", "fault: entityNotFound"]
    with reader.running(reader.program("first_supplier")):
        asked = reader.run(*command("request getAllManagedElements --to queue:EMS.OS --batch-size 3"))
        assert [line.split(":")[2].split()[0] for line in asked.splitlines()] == ["3", "3", "1"]


def test_subscriber(reader: Reader) -> None:
    assert reader.run(reader.program("first_subscriber")) == "MD=EMS1/ME=NE-2 CRITICAL\n"


@pytest.mark.endurance
def test_spark_job(reader: Reader) -> None:
    with reader.running(*command("serve")):
        reader.run(*command("request getAllManagedElements --to queue:EMS.OS --batch-size 200"))
        printed = reader.run(reader.program("first_spark_job"))
        assert re.search(r"\|\s+5\|\s+5\|\s+\[\]\|\s+true\|", printed), printed
        assert "1000 rows so far" in reader.run(reader.program("first_stream"))
        reader.run(*command("request getAllManagedElements --to queue:EMS.OS --batch-size 200"))
        assert "2000 rows so far" in reader.run(reader.program("first_stream"))
