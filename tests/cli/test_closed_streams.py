"""Commands whose caller closed standard output, error or input, and errors that cannot speak."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from mtosi_jms.cli import main


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_error(closed: str, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_bytes(b"<a/>")
    command = f'exec "$0" -m mtosi_jms validate --json "$1" {closed}'
    done = subprocess.run(["sh", "-c", command, sys.executable, str(file)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


def test_an_error_without_words_is_still_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError("the one to ask is gone")

    def fail(args: argparse.Namespace) -> int:
        raise SilentError

    monkeypatch.setattr("mtosi_jms.cli._doctor.run", fail)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: internal error, please report it: SilentError: without a message"
    ]


def test_more_processors_than_a_machine_has_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "landing", "--cores", "999999999999"]) == 2
    assert "at most 1024" in capsys.readouterr().err


def test_an_object_type_that_no_stub_has_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "landing", "--object", "BOGUS"]) == 2
    assert "BOGUS" in capsys.readouterr().err
