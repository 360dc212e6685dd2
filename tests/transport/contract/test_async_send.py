"""Asynchronous send after JMS 2.0: who is told what, when, in which thread and in which order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError, SendTimeoutError, TransportError
from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.transport import Capability, Connection

from ...waiting import PATIENCE, background
from .conftest import take, text

REFUSED = TransportError("refused")


class Told:
    """A listener that keeps what it is told, and says when it was told so many times."""

    def __init__(self, action: Callable[[], object] = lambda: None) -> None:
        self.calls: list[tuple[str, JmsMessage, Exception | None]] = []
        self.threads: set[threading.Thread] = set()
        self.raised: list[Exception] = []
        self._action = action
        self._changed = threading.Condition()

    def on_completion(self, message: JmsMessage) -> None:
        self._note("completed", message, None)

    def on_exception(self, message: JmsMessage, error: Exception) -> None:
        self._note("failed", message, error)

    def _note(self, what: str, message: JmsMessage, error: Exception | None) -> None:
        try:
            self._action()
        except IllegalStateError as caught:
            self.raised.append(caught)
        with self._changed:
            self.threads.add(threading.current_thread())
            self.calls.append((what, message, error))
            self._changed.notify_all()

    def until(self, count: int, patience: float) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= count, patience), "the listener was not called"


class TestTelling:
    @pytest.mark.obligation("A1", "A2", "A4", "A5", "A6", "A10", "A21")
    def test_success_is_told_when_the_provider_has_the_message(
        self, connection: Connection, queue: Queue, gate: Any
    ) -> None:
        session, told, message = connection.session(), Told(), text(1)
        assert session.send(queue, message, told) is message
        assert gate.await_held(1, PATIENCE)
        assert told.calls == []
        gate.release()
        told.until(1, PATIENCE)
        [(what, sent, error)] = told.calls
        assert (what, error) == ("completed", None)
        assert sent.body is message.body

    @pytest.mark.obligation("A22")
    def test_the_headers_of_the_provider_are_set_then(self, connection: Connection, queue: Queue) -> None:
        session, told = connection.session(), Told()
        session.send(queue, text(1, time_to_live_ms=60_000), told)
        told.until(1, PATIENCE)
        sent = told.calls[0][1]
        assert sent.destination == queue
        assert sent.timestamp_ms
        assert sent.expiration_ms == sent.timestamp_ms + 60_000
        received = take(session.consumer(queue)).message
        assert received.body == sent.body
        assert sent.message_id in {None, received.message_id}

    @pytest.mark.obligation("A3", "A4", "A8", "A28")
    def test_failure_is_told_with_the_message_that_failed(
        self, connection: Connection, queue: Queue, gate: Any
    ) -> None:
        session, told, first, second = connection.session(), Told(), text(1), text(2)
        session.send(queue, first, told)
        session.send(queue, second, told)
        assert gate.await_held(2, PATIENCE)
        gate.fail(REFUSED, 1)
        gate.release(0)
        told.until(2, PATIENCE)
        assert [what for what, _, _ in told.calls] == ["completed", "failed"]
        assert told.calls[1][1] is second
        assert isinstance(told.calls[1][2], TransportError)

    @pytest.mark.parametrize("mode", DeliveryMode)
    @pytest.mark.obligation("A5", "A7", "A9")
    def test_whatever_the_delivery_mode_each_send_is_told_once(
        self, connection: Connection, queue: Queue, mode: DeliveryMode, bodies: Any
    ) -> None:
        session, told = connection.session(), Told()
        for number in range(100):
            session.send(queue, text(number, delivery_mode=mode), told)
        session.completions.await_told()
        assert [what for what, _, _ in told.calls] == ["completed"] * 100
        assert bodies(session.consumer(queue)) == [str(number) for number in range(100)]

    @pytest.mark.obligation("A8", "A9", "AX6")
    def test_an_outcome_that_does_not_come_in_time_is_a_failure(self, started: Any, queue: Queue, gate: Any) -> None:
        """What comes later is of no account, and closing goes on."""
        session, told, message = started(completion_timeout=0.05).session(), Told(), text(1)
        session.send(queue, message, told)
        assert gate.await_held(1, PATIENCE)
        session.close()
        gate.release()
        [(what, failed, error)] = told.calls
        assert (what, failed) == ("failed", message)
        assert isinstance(error, SendTimeoutError)
        assert error.seconds == 0.05
        assert isinstance(error, TimeoutError)

    @pytest.mark.obligation("A9")
    def test_a_send_that_raises_is_told_to_nobody_else(
        self, provider: Any, connection: Connection, queue: Queue
    ) -> None:
        session, told = connection.session(), Told()
        session.close()
        with pytest.raises(IllegalStateError, match="closed"):
            session.send(queue, text(2), told)
        assert told.calls == []

    @pytest.mark.obligation("A9")
    @pytest.mark.capability(Capability.TEMPORARY_CHECKED)
    def test_a_refusal_is_raised_or_told(self, provider: Any, connection: Connection) -> None:
        """Raised where the provider refuses within the call, told where it does so later; never both."""
        other = provider.connect()
        gone = other.session().temporary_queue()
        other.close()
        session, told = connection.session(), Told()
        raised = False
        try:
            session.send(gone, text(1), told)
        except InvalidDestinationError:
            raised = True
        session.close()
        assert len(told.calls) == (0 if raised else 1)
        assert raised or isinstance(told.calls[0][2], InvalidDestinationError)

    @pytest.mark.obligation("A10", "A30", "AX2")
    def test_a_future_in_place_of_a_listener(self, connection: Connection, queue: Queue, gate: Any) -> None:
        session = connection.session()
        futures = [session.send_async(queue, text(number)) for number in range(3)]
        assert gate.await_held(3, PATIENCE)
        assert not any(future.done() for future in futures)
        assert not futures[0].cancel()
        gate.fail(REFUSED, 1)
        gate.release_all()
        assert futures[0].result(PATIENCE).body == text(0).body
        assert isinstance(futures[1].exception(PATIENCE), TransportError)
        assert futures[2].result(PATIENCE).destination == queue


class TestOrder:
    @pytest.mark.obligation("A11", "A12")
    def test_waiting_and_asynchronous_sends_keep_their_order(
        self, connection: Connection, queue: Queue, bodies: Any
    ) -> None:
        session, told = connection.session(), Told()
        for number in range(100):
            if number % 3 == 0:
                session.send(queue, text(number))
            elif number % 3 == 1:
                session.send(queue, text(number), told)
            else:
                session.send_async(queue, text(number))
        session.completions.await_told()
        assert bodies(session.consumer(queue)) == [str(number) for number in range(100)]

    @pytest.mark.obligation("A11", "A12")
    def test_a_thousand_at_once_arrive_in_order(self, connection: Connection, queue: Queue, bodies: Any) -> None:
        """Outcomes come while more is sent: a thousand messages need no thousand round trips."""
        session = connection.session()
        futures = [session.send_async(queue, text(number)) for number in range(1_000)]
        assert all(future.result(PATIENCE).destination == queue for future in futures)
        assert bodies(session.consumer(queue)) == [str(number) for number in range(1_000)]

    @pytest.mark.obligation("A27", "A28", "AX3")
    def test_listeners_are_called_in_the_order_of_the_sends_of_the_session(
        self, connection: Connection, queue: Queue, gate: Any
    ) -> None:
        """Two producers, and confirmations from the last to the first."""
        session = connection.session()
        inside, overlaps = threading.Lock(), []

        def alone() -> None:
            overlaps.append(not inside.acquire(blocking=False))
            inside.release()

        told = Told(alone)
        producers = session.producer(queue), session.producer(queue)
        for number in range(20):
            producers[number % 2].send(text(number), told)
        assert gate.await_held(20, PATIENCE)
        for index in reversed(range(20)):
            if index % 5 == 0:
                gate.fail(REFUSED, index)
            else:
                gate.release(index)
        told.until(20, PATIENCE)
        assert [message.body for _, message, _ in told.calls] == [text(number).body for number in range(20)]
        assert [n for n, (what, _, _) in enumerate(told.calls) if what == "failed"] == [0, 5, 10, 15]
        assert len(told.threads) == 1
        assert not any(overlaps)

    @pytest.mark.obligation("A29")
    def test_no_listener_runs_in_the_sending_thread(self, connection: Connection, queue: Queue) -> None:
        session, told = connection.session(), Told()
        session.send(queue, text(1), told)
        told.until(1, PATIENCE)
        assert threading.current_thread() not in told.threads


class TestWaiting:
    """Closing, committing and rolling back finish what is open."""

    @pytest.mark.parametrize(
        "what",
        [
            pytest.param("producer", marks=pytest.mark.obligation("A15", "A19")),
            pytest.param("session", marks=pytest.mark.obligation("A16", "A19", "A31")),
            pytest.param("connection", marks=pytest.mark.obligation("A17", "A19", "A31")),
            pytest.param("commit", marks=pytest.mark.obligation("A13", "A19", "A31")),
            pytest.param("rollback", marks=pytest.mark.obligation("A14", "A31")),
        ],
    )
    def test_it_waits_until_the_listener_has_returned(
        self, provider: Any, queue: Queue, gate: Any, what: str, started: Any, bodies: Any
    ) -> None:
        entered, leave = threading.Event(), threading.Event()

        def slow() -> None:
            entered.set()
            assert leave.wait(PATIENCE)

        connection = started()
        session = connection.session(transacted=what in ("commit", "rollback"))
        producer, told = session.producer(queue), Told(slow)
        producer.send(text(1), told)
        last = producer.send_async(text(2))
        action = {
            "producer": producer.close,
            "session": session.close,
            "connection": connection.close,
            "commit": session.commit if session.transacted else None,
            "rollback": session.rollback if session.transacted else None,
        }[what]
        assert action is not None
        assert gate.await_held(2, PATIENCE)
        ending = background(action)
        gate.release()
        assert entered.wait(PATIENCE)
        assert not ending.done()
        leave.set()
        told.until(1, PATIENCE)
        assert not ending.done()
        gate.release()
        ending.result(PATIENCE)
        assert last.done()
        assert [call[0] for call in told.calls] == ["completed"]
        expected = [] if what == "rollback" else ["1", "2"]
        assert bodies(started().session().consumer(queue)) == expected

    @pytest.mark.parametrize("what", ["producer", "session", "connection", "commit", "rollback"])
    @pytest.mark.obligation("A37", "AX4")
    def test_a_listener_cannot_wait_for_itself(self, connection: Connection, queue: Queue, what: str) -> None:
        session = connection.session(transacted=what in ("commit", "rollback"))
        producer = session.producer(queue)
        actions = {"producer": producer.close, "session": session.close, "connection": connection.close}
        told = Told(actions.get(what) or getattr(session, what))
        producer.send(text(1), told)
        told.until(1, PATIENCE)
        assert [type(error) for error in told.raised] == [IllegalStateError]
        producer.send(text(2))

    def test_a_closed_producer_refuses_and_leaves_the_session(
        self, connection: Connection, queue: Queue, bodies: Any
    ) -> None:
        session = connection.session()
        with session.producer(queue) as producer:
            producer.send_async(text(1))
        with pytest.raises(IllegalStateError, match="producer is closed"):
            producer.send(text(2))
        session.send(queue, text(3))
        assert bodies(session.consumer(queue)) == ["1", "3"]


class TestThreads:
    @pytest.mark.obligation("A24", "A25", "A26")
    def test_the_sender_goes_on_while_a_listener_runs(self, connection: Connection, queue: Queue) -> None:
        """And a listener may use the session as long as the sender does not."""
        session = connection.session()
        entered, leave = threading.Event(), threading.Event()

        def slow() -> None:
            entered.set()
            assert leave.wait(PATIENCE)
            session.send(queue, text("from the listener"))

        told = Told(slow)
        session.send(queue, text(1), told)
        assert entered.wait(PATIENCE)
        session.send(queue, text(2))
        consumer = session.consumer(queue)
        take(consumer)
        leave.set()
        told.until(1, PATIENCE)
        assert told.raised == []
        assert [take(consumer).message.body for _ in range(2)] == [text(2).body, text("from the listener").body]

    @pytest.mark.obligation("A24", "A26")
    def test_a_listener_that_comes_while_the_session_is_in_use_is_stopped(
        self, connection: Connection, queue: Queue, gate: Any, until_blocked: Any
    ) -> None:
        session = connection.session()
        consumer = session.consumer(Queue(f"{queue.name}.other"))
        told = Told(session.temporary_queue)
        session.send(queue, text(1), told)
        assert gate.await_held(1, PATIENCE)
        receiving = background(consumer.receive)
        until_blocked(session)
        gate.release()
        told.until(1, PATIENCE)
        assert [type(error) for error in told.raised] == [IllegalStateError]
        assert "P4" in str(told.raised[0])
        session.close()
        assert receiving.result(PATIENCE) is None

    @pytest.mark.obligation("AX5")
    def test_a_listener_that_fails_stops_no_other(self, started: Any, queue: Queue) -> None:
        reported: list[tuple[BaseException, JmsMessage]] = []

        class Failing:
            def on_completion(self, message: JmsMessage) -> None:
                raise KeyError("of the application")

            def on_exception(self, message: JmsMessage, error: Exception) -> None:
                raise AssertionError("nothing failed")

        session = started(on_completion_error=lambda error, message: reported.append((error, message))).session()
        message, told = text(1), Told()
        session.send(queue, message, Failing())
        session.send(queue, text(2), told)
        told.until(1, PATIENCE)
        assert [(type(error), one) for error, one in reported] == [(KeyError, message)]


class TestMessages:
    @pytest.mark.parametrize("strict", [False, True])
    @pytest.mark.obligation("A35", "AX1")
    def test_a_message_may_be_read_and_sent_again(self, started: Any, queue: Queue, gate: Any, strict: bool) -> None:
        """Messages are immutable: the provider sets nothing in what the sender has. The rule of 2012 is a switch."""
        session, message = started(strict_2012=strict).session(), text(1)
        before = repr(message)
        first = session.send_async(queue, message)
        assert repr(message) == before
        producer = session.producer(queue, priority=7)
        actions = [
            lambda: session.send(queue, message),
            lambda: session.send_async(queue, message),
            lambda: producer.send(message),
        ]
        for action in actions:
            if strict:
                with pytest.raises(IllegalStateError, match="strict_2012"):
                    action()
            else:
                action()
        assert gate.await_held(1 if strict else 2, PATIENCE)
        gate.release_all()
        assert first.result(PATIENCE).body == message.body
        assert repr(message) == before
        if strict:
            with pytest.raises(IllegalStateError, match="strict_2012"):
                session.send(queue, message)
        else:
            session.send(queue, message)

    @pytest.mark.obligation("AX1")
    def test_strict_2012_knows_what_a_producer_sent(self, started: Any, queue: Queue) -> None:
        """A producer's settings make a copy; it is the application's message that must not go out again."""
        session, message = started(strict_2012=True).session(), text(1)
        session.send(queue, message)
        session.producer(queue, priority=7).send_async(message)
        with pytest.raises(IllegalStateError, match="strict_2012"):
            session.send(queue, message)
        session.send(queue, text(1))
