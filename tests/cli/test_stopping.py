"""Commands that run until they are told to stop, as processes; and passwords in the list of processes."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mtosi_jms.cli._log import log_in_lines
from mtosi_jms.cli._providers import mask_in_title
from mtosi_jms.cli._stopping import Stop, closing_at

SERVE = [sys.executable, "-m", "mtosi_jms", "serve", "--destination", "queue:EMS", "--elements", "1", "--url"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_serve_in_good_order(number: int) -> None:
    with subprocess.Popen([*SERVE, "memory:"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: queue:EMS")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
        assert err.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the command line of a process is looked up in /proc")
def test_a_password_is_overwritten_in_the_list_of_processes() -> None:
    with subprocess.Popen(
        [*SERVE, "memory://user:s3cret@x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        shown = Path(f"/proc/{process.pid}/cmdline").read_text()
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert "memory://user:******@x" in shown
    assert "s3cret" not in shown + err


def test_what_does_not_stand_in_the_title_needs_no_mask() -> None:
    before = Path("/proc/self/cmdline").read_bytes() if sys.platform == "linux" else b""
    assert mask_in_title(["no such text in the command line"]) == (sys.platform == "linux")
    assert (Path("/proc/self/cmdline").read_bytes() if before else b"") == before


def test_a_stop_wakes_and_stays_set() -> None:
    with Stop() as stop:
        assert not stop.wait(0)
        for _ in range(100_000):  # more than a pipe holds
            stop.set()
        assert stop.wait(0)
        assert stop.is_set()


def test_something_is_closed_when_the_stop_is_set_and_only_then() -> None:
    closed: list[bool] = []
    with Stop() as stop:
        with closing_at(stop, lambda: closed.append(True)):
            pass
        assert closed == []
        stop.set()
        with closing_at(stop, lambda: closed.append(True)):
            while not closed:
                pass
        assert closed == [True]


def test_the_log_is_told_in_lines_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("mtosi_jms.exchange._supplier")
    with log_in_lines():
        try:
            raise ValueError("inner")
        except ValueError:
            log.exception("it %s\nbadly \x1b[2J", "failed")
        log.info("nothing that anybody wants to know")
    assert capsys.readouterr().err == "note: it failed\\nbadly \\x1b[2J\n"
