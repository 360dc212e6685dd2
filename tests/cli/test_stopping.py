"""Commands that run until they are told to stop, as processes; and passwords in the list of processes."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.cli.providers import mask_in_title
from mtosi_jms.cli.stopping import Stop, closing_at

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


def ended(code: str, number: int = signal.SIGINT) -> tuple[int, str]:
    """Runs a command whose `run` is this code, as a process, signalled once it prints `in it`: code and errors."""
    program = f"""
import argparse, sys, threading, time
import mtosi_jms.cli.queues as command
from mtosi_jms.cli import main
from mtosi_jms.cli.stopping import until_signalled
def stuck():
    print("in it", flush=True)
    while True:
        try: threading.Event().wait(60)
        except KeyboardInterrupt: pass
def run(args):
    {code}
command.run = run
sys.argv = ["mtosi-jms", "queue", "count", "queue:Q", "--url", "memory:"]
sys.exit(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in it\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=60)  # of itself it would not end
        return process.returncode, err


@pytest.mark.obligation("OPS1")
@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("with until_signalled(): stuck()", signal.SIGINT),
        ("with until_signalled(is_prompt=True) as stop: stop.is_set(); stuck()", signal.SIGINT),
        ("with until_signalled(is_prompt=True) as stop: stop.is_set(); stuck()", signal.SIGTERM),
        ("with until_signalled(): print('in it', flush=True); time.sleep(60)", signal.SIGTERM),
    ],
    ids=["a stop that nobody looks at", "a command that is to end soon", "the same", "a call that ends"],
)
def test_a_signal_ends_a_command_within_a_second_wherever_it_is(code: str, number: int) -> None:
    assert ended(code, number) == (128 + number, "error: interrupted\n")


@pytest.mark.obligation("OPS1")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param("stuck()", id="nothing gets it out"),
        pytest.param("print('in it', flush=True); time.sleep(60)", id="asleep"),
        pytest.param(
            "\n    try:\n        print('in it', flush=True); time.sleep(60)"
            "\n    except KeyboardInterrupt: raise RuntimeError('of a library') from None",
            id="another error of it",
        ),
    ],
)
def test_ctrl_c_ends_a_command_without_a_stop(code: str) -> None:
    assert ended(code) == (130, "error: interrupted\n")


def test_a_command_that_looks_at_its_stop_has_the_time_that_it_needs() -> None:
    code = "\n    with until_signalled() as stop:\n        stop.is_set()\n        print('in it', flush=True)"
    assert ended(f"{code}\n        stop.wait(); time.sleep(1.5); return 0") == (0, "")
