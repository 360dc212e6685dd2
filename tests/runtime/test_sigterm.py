"""SIGTERM drains a runtime that runs in the main thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.runtime.signals import on_sigterm


@pytest.fixture
def consumer(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).with_name("draining_process.py")
    command = [sys.executable, "-W", "error", str(script), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("consumer", ["willing"], indirect=True)
def test_what_runs_is_finished_and_the_rest_handed_back(consumer: Any) -> None:
    assert consumer.stdout.readline() == "begun\n"
    os.kill(consumer.pid, signal.SIGTERM)
    os.kill(consumer.pid, signal.SIGTERM)
    assert consumer.stdout.readline() == "ended 1 1 2\n"
    assert consumer.wait() == 0


@pytest.mark.parametrize("consumer", ["stubborn"], indirect=True)
def test_what_takes_too_long_is_handed_back_too(consumer: Any) -> None:
    assert consumer.stdout.readline() == "begun\n"
    os.kill(consumer.pid, signal.SIGTERM)
    assert consumer.stdout.readline() == "ended 0 0 1 2\n"
    assert consumer.wait() == 0


def test_the_former_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    told = threading.Event()
    with on_sigterm(told.set):
        assert signal.getsignal(signal.SIGTERM) is not before
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(60)
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread_nothing_is_set() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def run() -> None:
        with on_sigterm(lambda: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
