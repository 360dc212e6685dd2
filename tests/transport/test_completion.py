"""The part of asynchronous sending that no transport has of its own: order, one outcome each, waiting, failing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import SendRules, connect
from mtosi_jms.transport._completion import Completions, FutureListener

from ..waiting import PATIENCE, background
from .conftest import numbered

LOST = TransportError("the connection is lost")


class Noted:
    def __init__(self) -> None:
        self.calls: list[bytes] = []

    def on_completion(self, message: JmsMessage) -> None:
        self.calls.append(message.body)

    def on_exception(self, message: JmsMessage, error: Exception) -> None:
        self.calls.append(message.body + b" failed")


def end(completions: Completions) -> None:
    """What a session does as it is closed."""
    completions.check_thread()
    completions.begin_close()
    completions.await_told()


@pytest.fixture
def completions(request: pytest.FixtureRequest) -> Iterator[Completions]:
    made = Completions(SendRules(), request.node.name)
    yield made
    made.begin_close()


@pytest.mark.obligation("A9", "A28", "AX3")
@given(order=st.permutations(range(8)), failing=st.sets(st.integers(0, 7)), twice=st.sets(st.integers(0, 7)))
def test_in_whatever_order_outcomes_come_the_calls_come_in_that_of_the_sends(
    order: list[int], failing: set[int], twice: set[int]
) -> None:
    completions, noted = Completions(SendRules(), "test"), Noted()
    sends = [completions.begin(numbered(number), noted) for number in range(8)]
    for number in order:
        settle = (lambda one: one.fail(LOST)) if number in failing else (lambda one: one.complete(one.message))
        assert settle(sends[number])
        if number in twice:
            assert not sends[number].complete(sends[number].message)
            assert not sends[number].fail(LOST)
    end(completions)
    assert noted.calls == [b"%d failed" % number if number in failing else b"%d" % number for number in range(8)]


@pytest.mark.obligation("A9", "CON4")
@pytest.mark.parametrize("settled", [False, True], ids=["open", "settled"])
def test_a_send_that_raises_calls_no_listener(completions: Completions, settled: bool) -> None:
    """Its outcome may be known already, and what was sent before it is not told yet."""
    noted = Noted()
    first, second = completions.begin(numbered(1), noted), completions.begin(numbered(2), noted)
    if settled:
        second.fail(LOST)
    assert completions.withdraw(second)
    first.complete(first.message)
    end(completions)
    assert noted.calls == [b"1"]


@pytest.mark.obligation("A9", "CON4")
def test_a_send_whose_listener_was_called_does_not_raise(completions: Completions) -> None:
    noted = Noted()
    pending = completions.begin(numbered(1), noted)
    pending.fail(LOST)
    completions.await_told()
    assert not completions.withdraw(pending)
    assert noted.calls == [b"1 failed"]


@pytest.mark.obligation("A8", "AX7")
def test_a_lost_connection_fails_what_is_open(completions: Completions) -> None:
    listeners = [FutureListener() for _ in range(3)]
    sends = [completions.begin(numbered(number), listener) for number, listener in enumerate(listeners)]
    sends[1].complete(sends[1].message)
    for one in sends:
        one.fail(LOST)
    assert [listener.future.exception(PATIENCE) for listener in listeners] == [LOST, None, LOST]
    assert not sends[0].complete(sends[0].message), "it is not told twice"


def test_a_future_keeps_the_order_behind_what_is_open(completions: Completions) -> None:
    first, second = FutureListener(), FutureListener()
    open_send = completions.begin(numbered(1), first)
    message = numbered(2)
    completions.completed(message, message, second)
    assert not second.future.done()
    open_send.complete(open_send.message)
    assert second.future.result(PATIENCE) is message
    assert first.future.done()


def test_waiting_for_a_producer_does_not_wait_for_what_came_later(completions: Completions) -> None:
    mine = completions.begin(numbered(1), FutureListener())
    last = completions.last
    later = completions.begin(numbered(2), FutureListener())
    waiting = background(lambda: completions.await_told(last))
    mine.complete(mine.message)
    waiting.result(PATIENCE)
    assert not later.settled


@pytest.mark.obligation("A37")
def test_what_a_future_calls_when_it_is_done_is_a_listener_too(completions: Completions) -> None:
    listener, seen = FutureListener(), Future[BaseException]()

    def close(_: Future[JmsMessage]) -> None:
        try:
            end(completions)
        except IllegalStateError as error:
            seen.set_result(error)

    pending = completions.begin(numbered(1), listener)
    listener.future.add_done_callback(close)
    pending.complete(pending.message)
    assert "A37" in str(seen.result(PATIENCE))


@pytest.mark.obligation("AX5")
@pytest.mark.parametrize("hook_fails", [False, True])
def test_what_a_listener_raises_is_in_the_log(hook_fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Noted):
        def on_completion(self, message: JmsMessage) -> None:
            raise ValueError("of the listener")

    def hook(error: BaseException, message: JmsMessage) -> None:
        raise RuntimeError("of the hook")

    completions = Completions(SendRules(on_error=hook if hook_fails else None), "test")
    noted, message = Noted(), JmsMessage(body=b"<secret/>")
    completions.completed(message, message, Failing())
    completions.completed(message, message, noted)
    end(completions)
    assert noted.calls == [b"<secret/>"]
    [record] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "ValueError" in record.getMessage()
    assert ("on_completion_error failed" in record.getMessage()) == hook_fails
    assert "secret" not in caplog.text


def test_the_thread_ends_with_the_session(completions: Completions, request: pytest.FixtureRequest) -> None:
    message = numbered(1)
    completions.completed(message, message, Noted())
    [thread] = [one for one in threading.enumerate() if one.name == f"completions-{request.node.name}"]
    end(completions)
    thread.join()
    with pytest.raises(IllegalStateError, match="closed"):
        completions.begin(message, Noted())


def test_the_options_reach_the_sessions() -> None:
    options: dict[str, Any] = {"completion_timeout": None, "strict_2012": True, "on_completion_error": print}
    with connect("memory:send-rules", **options) as connection:
        assert connection.session().completions.rules == SendRules(None, strict_2012=True, on_error=print)
