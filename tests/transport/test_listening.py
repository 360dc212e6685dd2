"""What transports share: one thread in a session at a time, and the pump of listeners over any source of messages."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import pytest

from mtosi_jms.errors import TransportError
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._listening import ListenerPump, SessionUse

from ..waiting import PATIENCE, background

CONSUMER: Any = "a consumer"


class TestSessionUse:
    def test_a_signal_as_it_is_entered_leaves_it_free(self) -> None:
        signals = [KeyboardInterrupt()]

        def dedicated() -> bool:
            if signals:
                raise signals.pop()
            return False

        use = SessionUse(dedicated)
        use.listeners[CONSUMER] = (print, None)
        with pytest.raises(KeyboardInterrupt), use:
            pytest.fail("it was entered")

        def enter() -> bool:
            with use:
                return True

        assert background(enter).result(PATIENCE)


class Given:
    """A delivery of a source."""

    def __init__(self, name: str) -> None:
        self.message = JmsMessage(message_id=name)


class FakeSource:
    """A source that has what a test puts in, or fails."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ready: deque[Any] = deque()
        self.settled: list[tuple[str | None, bool]] = []
        self.settling: BaseException | None = None
        self.pump = ListenerPump(self, SessionUse(lambda: False), self.lock, "fake")

    def put(self, *what: Any) -> None:
        with self.lock:
            self.ready.extend(what)
            self.pump.signal()

    def poll(self) -> Any:
        assert self.lock.locked()
        if not self.ready:
            return None
        found = self.ready.popleft()
        if isinstance(found, BaseException):
            raise found
        return found

    def settle(self, delivery: Any, *, failed: bool) -> None:
        self.settled.append((delivery.message.message_id, failed))
        if self.settling is not None:
            raise self.settling


@pytest.fixture
def source() -> Any:
    made = FakeSource()
    yield made
    with made.lock:
        made.pump.end()
        made.pump.await_idle()


def listen(source: FakeSource, consumer: Any, on_message: Any, on_error: Any = None) -> None:
    with source.lock:
        source.pump.add(consumer, on_message, on_error)


class TestPump:
    @pytest.mark.obligation("P6")
    def test_a_provider_that_fails_is_told_to_every_listener_once(self, source: Any) -> None:
        told: list[Any] = []
        both = threading.Semaphore(0)

        def hook(name: str) -> Any:
            def on_error(error: BaseException, delivery: Any) -> None:
                told.append((name, str(error), delivery))
                both.release()

            return on_error

        shared = hook("shared")
        for consumer, on_error in (("a", shared), ("b", shared), ("c", hook("own"))):
            listen(source, consumer, pytest.fail, on_error)
        source.put(TransportError("the wire is cut"))
        assert both.acquire(timeout=PATIENCE)
        assert both.acquire(timeout=PATIENCE)
        assert told == [("shared", "the wire is cut", None), ("own", "the wire is cut", None)]
        assert not source.pump.listeners

    def test_without_a_hook_the_log_has_it(self, source: Any, caplog: Any) -> None:
        ended = threading.Event()
        listen(source, "a", pytest.fail)
        listen(source, "b", pytest.fail, lambda error, delivery: ended.set())
        source.put(TransportError("the wire is cut"))
        assert ended.wait(PATIENCE)
        assert [record.getMessage() for record in caplog.records] == ["no more messages for listeners: TransportError"]

    def test_an_acknowledgement_that_fails_is_told(self, source: Any) -> None:
        told, done = [], threading.Event()
        source.settling = TransportError("no acknowledgement")

        def on_error(error: BaseException, delivery: Any) -> None:
            told.append((str(error), delivery.message.message_id))
            done.set()

        listen(source, "consumer", lambda delivery: None, on_error)
        source.put(("consumer", Given("a")))
        assert done.wait(PATIENCE)
        assert told == [("no acknowledgement", "a")]

    def test_even_an_exit_is_told(self, source: Any) -> None:
        """SystemExit in a thread ends that thread in silence, where nobody catches it."""
        told, done = [], threading.Event()

        def on_message(delivery: Any) -> None:
            if delivery.message.message_id == "a":
                raise SystemExit(3)
            done.set()

        listen(source, "consumer", on_message, lambda error, delivery: told.append(type(error)))
        source.put(("consumer", Given("a")), ("consumer", Given("b")))
        assert done.wait(PATIENCE)
        assert told == [SystemExit]

    def test_waiting_for_one_consumers_listener_is_not_waiting_for_anothers(self, source: Any) -> None:
        entered, release = threading.Event(), threading.Event()

        def on_message(delivery: Any) -> None:
            entered.set()
            assert release.wait(PATIENCE)

        listen(source, "busy", on_message)
        listen(source, "idle", print)
        source.put(("busy", Given("a")))
        assert entered.wait(PATIENCE)
        with source.lock:
            source.pump.await_idle("idle")
        release.set()
        with source.lock:
            source.pump.await_idle("busy")
        assert source.settled == [("a", False)]

    def test_several_may_wait_for_one_listener(self, source: Any) -> None:
        entered, release = threading.Event(), threading.Event()

        def on_message(delivery: Any) -> None:
            entered.set()
            assert release.wait(PATIENCE)

        def await_idle() -> None:
            with source.lock:
                waiting.release()
                source.pump.await_idle()

        waiting = threading.Semaphore(0)
        listen(source, "busy", on_message)
        source.put(("busy", Given("a")))
        assert entered.wait(PATIENCE)
        closers = [background(await_idle) for _ in range(3)]
        assert all(waiting.acquire(timeout=PATIENCE) for _ in closers)
        with source.lock:
            release.set()
        for one in closers:
            one.result(PATIENCE)
