"""The command itself: which commands there are, exit codes, one line for each problem, never a traceback, whatever
streams the caller closed."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main
from mtosi_jms.errors import EncodeError, MissingExtraError, SpoolError, TransportError

Raise = Callable[[BaseException], None]


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Raise:
    """Makes `mtosi-jms validate` raise what it is given."""

    def install(error: BaseException) -> None:
        def run(args: argparse.Namespace) -> int:
            raise error

        monkeypatch.setattr("mtosi_jms.cli._validate.run", run)

    return install


@pytest.mark.parametrize("argv", [["--help"], ["validate", "--help"], ["--version"]])
def test_help_and_version_are_no_failure(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert "mtosi-jms" in capsys.readouterr().out


def test_the_arguments_of_the_process_are_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], background: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["mtosi-jms", "--version"])
    assert background(main).result(60) == 0  # of the main thread it would change what signals do
    assert capsys.readouterr().out.startswith("mtosi-jms ")


def test_only_the_command_that_is_asked_for_is_imported() -> None:
    script = "import sys; from mtosi_jms.cli import main; main(['validate', '--help']); print(sorted(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "'mtosi_jms.cli._validate'" in answer.stdout
    assert "mtosi_jms.cli._doctor" not in answer.stdout
    assert "'rich" not in answer.stdout
    assert "'pyspark" not in answer.stdout


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (EncodeError("cannot", "body.me"), "error: body.me: cannot"),
        (SpoolError("/landing", "no room"), "error: /landing: no room"),
        (TransportError("gone\nreally"), "error: gone\nerror: really"),
        (FileNotFoundError(2, "No such file or directory", "x.xml"), "error: x.xml: No such file or directory"),
        (OSError("plain"), "error: plain"),
        (KeyError("k"), "error: internal error, please report it: KeyError: 'k'"),
        (RecursionError("deep"), "error: internal error, please report it: RecursionError: deep"),
    ],
)
def test_an_error_is_told_in_lines_of_its_own(
    raising: Raise, capsys: pytest.CaptureFixture[str], error: Exception, text: str
) -> None:
    raising(error)
    assert main(["validate", "x"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{text}\n")


def test_the_traceback_can_be_asked_for(raising: Raise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTOSI_JMS_DEBUG", "1")
    raising(KeyError("k"))
    with pytest.raises(KeyError):
        main(["validate", "x"])


def test_an_interruption_is_told_without_fuss(raising: Raise, capsys: pytest.CaptureFixture[str]) -> None:
    raising(KeyboardInterrupt())
    assert main(["validate", "x"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_a_reader_that_went_away_is_no_problem_to_tell(raising: Raise, monkeypatch: pytest.MonkeyPatch) -> None:
    error = io.StringIO()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", error)
    raising(BrokenPipeError(32, "Broken pipe"))
    assert main(["validate", "x"]) == 141
    assert error.getvalue() == ""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX pipes")
def test_a_closed_pipe_leaves_no_words_behind(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.xml") for number in range(2_000)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mtosi_jms", "validate", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as out, process.stderr as err:
        assert out.readline()
        out.close()
        assert err.read() == b""
    assert process.wait(60) == 141


def test_a_command_whose_library_is_missing_does_not_break_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(parser: argparse.ArgumentParser) -> None:
        raise MissingExtraError("pyspark", "spark")

    monkeypatch.setattr("mtosi_jms.jobs._ingest.add_arguments", refuse)
    assert main(["ingest", "landing"]) == 1
    assert capsys.readouterr().err == "error: pyspark is not installed: pip install 'mtosi-jms[spark]'\n"
    assert main(["--help"]) == 0
    assert main(["validate", "--help"]) == 0


def test_the_package_runs_as_a_module() -> None:
    answer = subprocess.run([sys.executable, "-m", "mtosi_jms", "--version"], capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("mtosi-jms ")


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
