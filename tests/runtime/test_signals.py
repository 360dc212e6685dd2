"""SIGTERM and SIGINT end what runs in the main thread, in order and without a traceback."""

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

from mtosi_jms.exchange.signals import aside, on_signals

BOTH = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture
def consumer(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).with_name("draining_process.py")
    command = [sys.executable, "-W", "error", str(script), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("consumer", ["willing"], indirect=True)
def test_on_sigterm_running_handlers_finish_and_the_rest_is_handed_back(consumer: Any) -> None:
    assert consumer.stdout.readline() == "begun\n"
    os.kill(consumer.pid, signal.SIGTERM)
    os.kill(consumer.pid, signal.SIGTERM)
    assert consumer.stdout.readline() == "ended 1 1 2\n"
    assert consumer.wait() == 0


@pytest.mark.parametrize("consumer", ["stubborn"], indirect=True)
def test_messages_of_slow_handlers_are_handed_back_too(consumer: Any) -> None:
    assert consumer.stdout.readline() == "begun\n"
    os.kill(consumer.pid, signal.SIGTERM)
    assert consumer.stdout.readline() == "ended 0 0 1 2\n"
    assert consumer.wait() == 0


HANDS = {"idle": 0, "willing": 1}
ROLES = ("supplier", "aio", "runtime")


@pytest.fixture
def role(request: pytest.FixtureRequest, hands: str) -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).with_name("ending_process.py")
    command = [sys.executable, "-W", "error", str(script), request.param, hands]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("hands", "number"),
    [
        *zip(HANDS, BOTH, strict=True),
        *(pytest.param(*of, marks=pytest.mark.endurance) for of in zip(HANDS, reversed(BOTH), strict=True)),
    ],
)
@pytest.mark.parametrize("role", ROLES, indirect=True)
def test_a_role_ends_in_order(role: subprocess.Popen[str], hands: str, number: int) -> None:
    """Who is idle ends, and a request in hand is answered."""
    role.send_signal(number)
    out, err = role.communicate(timeout=60)
    assert (out, role.returncode) == (f"told\n{HANDS[hands]} 0\n", 0), err
    assert "Traceback" not in err


@pytest.mark.parametrize(("hands", "first"), [("stubborn", number) for number in BOTH])
@pytest.mark.parametrize(
    "role", ["supplier", "aio", pytest.param("runtime", marks=pytest.mark.endurance)], indirect=True
)
def test_a_second_sigint_does_not_wait_for_handlers(role: subprocess.Popen[str], first: int) -> None:
    """A request in hand is delivered again, and there is no traceback."""
    role.send_signal(first)
    assert role.stdout is not None
    assert role.stdout.readline() == "told\n"
    role.send_signal(signal.SIGINT)
    out, err = role.communicate(timeout=60)
    assert (out, role.returncode) == ("0 1\n", 0), err
    assert "Traceback" not in err


def handlers() -> list[Any]:
    return [signal.getsignal(number) for number in BOTH]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_all_who_listen_are_told_and_the_former_handlers_are_put_back(order: tuple[int, int]) -> None:
    """Whoever leaves first: coroutines need not leave in the order in which they came."""
    before, told = handlers(), ([], [])
    blocks = [on_signals(each.append) for each in told]
    for block in blocks:
        block.__enter__()
    assert before[0] not in handlers()
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
    assert told == ([False, False, True], [False, False, True])
    blocks[order[0]].__exit__(None, None, None)
    os.kill(os.getpid(), signal.SIGINT)
    assert len(told[order[1]]) == 4
    blocks[order[1]].__exit__(None, None, None)
    assert handlers() == before


def test_an_action_is_done_by_another_thread() -> None:
    did: list[tuple[bool, threading.Thread]] = []
    with aside(lambda again: did.append((again, threading.current_thread()))) as act, on_signals(act):
        os.kill(os.getpid(), signal.SIGINT)
    [(again, thread)] = did
    assert not again
    assert thread is not threading.current_thread()
    assert not thread.is_alive()


def test_in_another_thread_nothing_is_set() -> None:
    before, seen = handlers(), []

    def run() -> None:
        with on_signals(lambda again: None):
            seen.append(handlers())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
