"""Listeners: messages handed over one at a time and in order, by one thread of the session; failures are told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.jms import Destination, Queue, Topic
from mtosi_jms.transport import AckMode, Capability, Connection, Delivery

from ...waiting import PATIENCE
from .conftest import Ear, Holding, name_of, take, text


def fails(times: int) -> Callable[[Delivery, int], object]:
    def reaction(delivery: Delivery, count: int) -> None:
        if count <= times:
            raise RuntimeError(f"failure {count}")

    return reaction


class TestListening:
    @pytest.mark.obligation("O5", "P6")
    @pytest.mark.parametrize("kind", ["queue", "topic"])
    @pytest.mark.parametrize("mode", list(AckMode))
    def test_the_same_messages_as_by_receive(
        self, connection: Connection, kind: str, mode: AckMode, request: pytest.FixtureRequest
    ) -> None:
        destination: Destination = request.getfixturevalue(kind)
        ear = Ear(20, lambda delivery, _: delivery.acknowledge())
        session = connection.session(mode)
        session.consumer(destination).listen(ear)
        sender = connection.session()
        for number in range(20):
            sender.send(destination, text(number))
        assert ear.done.wait(PATIENCE)
        assert [name_of(delivery.message) for delivery in ear.heard] == [str(number) for number in range(20)]
        assert len(ear.threads) == 1
        assert threading.current_thread() not in ear.threads
        session.close()
        if kind == "queue":
            assert connection.session().consumer(destination).receive(0) is None

    @pytest.mark.obligation("P6", "P4")
    def test_one_thread_serves_all_of_a_session(self, provider: Any, queue: Queue, topic: Topic) -> None:
        """One message at a time, whatever the consumer; another session has a thread of its own."""
        made = provider.connect()
        running, most, lock = [0], [0], threading.Lock()

        def alone(delivery: Delivery, count: int) -> None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            with lock:
                running[0] -= 1

        one, two, other = Ear(40, alone), Ear(40, alone), Ear(40)
        session = made.session(AckMode.AUTO)
        session.consumer(queue).listen(one)
        session.consumer(topic).listen(two)
        made.session(AckMode.AUTO).consumer(topic).listen(other)
        made.start()
        sender = made.session()
        for number in range(40):
            sender.send(queue, text(number))
            sender.send(topic, text(number))
        assert all(ear.done.wait(PATIENCE) for ear in (one, two, other))
        assert one.threads == two.threads
        assert one.threads != other.threads
        assert most == [1]

    @pytest.mark.obligation("P7")
    @pytest.mark.capability(Capability.UNBUFFERED)
    def test_two_sessions_share_a_queue(self, connection: Connection, queue: Queue) -> None:
        """A busy listener does not keep from another what waits for both."""
        holding = Holding(PATIENCE)
        heard = Ear(9)
        busy = connection.session(AckMode.AUTO)
        busy.consumer(queue).listen(holding)
        sender = connection.session()
        sender.send(queue, text("held"))
        assert holding.entered.wait(PATIENCE)
        connection.session(AckMode.AUTO).consumer(queue).listen(heard)
        for number in range(9):
            sender.send(queue, text(number))
        assert heard.done.wait(PATIENCE)
        holding.release.set()
        assert [name_of(delivery.message) for delivery in heard.heard] == [str(number) for number in range(9)]

    @pytest.mark.obligation("P17")
    def test_nothing_before_start_and_nothing_after_stop(self, provider: Any, queue: Queue) -> None:
        made = provider.connect()
        sender, ear = provider.connect().session(), Ear()
        made.session(AckMode.AUTO).consumer(queue).listen(ear)
        sender.send(queue, text(1))
        assert not ear.heard
        made.start()
        assert ear.done.wait(PATIENCE)
        made.stop()
        sender.send(queue, text(2))
        assert len(ear.heard) == 1
        ear.done.clear()
        made.start()
        assert ear.done.wait(PATIENCE)

    @pytest.mark.obligation("P8")
    @pytest.mark.capability(Capability.DURABLE, Capability.SELECTORS)
    def test_with_a_selector_on_a_durable_subscription(
        self, started: Any, connection: Connection, topic: Topic
    ) -> None:
        noc = started(client_id="listens")
        session = noc.session(AckMode.AUTO)
        session.consumer(topic, "n > 1", durable="heard").close()
        for number in range(4):
            connection.session().send(topic, text(number, properties={"n": number}))
        ear = Ear(2)
        session.consumer(topic, "n > 1", durable="heard").listen(ear)
        assert ear.done.wait(PATIENCE)
        session.close()
        noc.session().unsubscribe("heard")
        assert [name_of(delivery.message) for delivery in ear.heard] == ["2", "3"]


class TestFailing:
    @pytest.mark.obligation("P6", "T1.10")
    @pytest.mark.parametrize("mode", list(AckMode))
    def test_what_it_raises_on_comes_again(self, connection: Connection, queue: Queue, mode: AckMode) -> None:
        sender, ear = connection.session(), Ear(4, fails(2))
        for word in ("poison", "next"):
            sender.send(queue, text(word))
        connection.session(mode).consumer(queue).listen(ear, ear.on_error)
        assert ear.done.wait(PATIENCE)
        heard = [(name_of(delivery.message), delivery.message.redelivered) for delivery in ear.heard]
        assert heard == [("poison", False), ("poison", True), ("poison", True), ("next", False)]
        assert [(str(error), delivery) for error, delivery in ear.errors] == [
            ("failure 1", ear.heard[0]),
            ("failure 2", ear.heard[1]),
        ]
        assert len(ear.threads) == 1

    def test_what_was_acknowledged_does_not(self, connection: Connection, queue: Queue) -> None:
        def acknowledge_and_fail(delivery: Delivery, count: int) -> None:
            delivery.acknowledge()
            if count == 1:
                raise RuntimeError("late")

        sender, ear = connection.session(), Ear(2, acknowledge_and_fail)
        for word in ("first", "second"):
            sender.send(queue, text(word))
        connection.session(AckMode.CLIENT).consumer(queue).listen(ear, ear.on_error)
        assert ear.done.wait(PATIENCE)
        assert [name_of(delivery.message) for delivery in ear.heard] == ["first", "second"]
        assert len(ear.errors) == 1

    @pytest.mark.obligation("P6")
    @pytest.mark.parametrize("hook", [False, True], ids=["without a hook", "with a failing hook"])
    def test_the_log_tells_what_nobody_else_does(
        self, connection: Connection, queue: Queue, caplog: Any, hook: bool
    ) -> None:
        def failing_hook(error: BaseException, delivery: Delivery | None) -> None:
            raise ValueError("the hook itself")

        ear = Ear(2, fails(1))
        connection.session().send(queue, text(1))
        with caplog.at_level(logging.ERROR):
            connection.session(AckMode.AUTO).consumer(queue).listen(ear, failing_hook if hook else None)
            assert ear.done.wait(PATIENCE)
        (record,) = caplog.records
        assert "RuntimeError" in record.getMessage()
        assert (ear.heard[0].message.message_id or "message") in record.getMessage()

    @pytest.mark.obligation("P18")
    @pytest.mark.capability(Capability.TRANSACTED_RECEIVE)
    def test_a_transaction_is_the_listeners_own(self, connection: Connection, queue: Queue, nothing: Any) -> None:
        """What it raises rolls nothing back by itself; the hook may."""
        session = connection.session(transacted=True)

        def commit_the_second(delivery: Delivery, count: int) -> None:
            if count == 1:
                raise RuntimeError("first")
            if count == 3:
                session.commit()

        ear = Ear(3, commit_the_second)
        sender = connection.session()
        for number in range(2):
            sender.send(queue, text(number))

        def roll_back(error: BaseException, delivery: Delivery | None) -> None:
            session.rollback()

        session.consumer(queue).listen(ear, roll_back)
        assert ear.done.wait(PATIENCE)
        assert [name_of(delivery.message) for delivery in ear.heard] == ["0", "0", "1"]
        session.close()
        assert nothing(connection.session().consumer(queue))


class TestRules:
    @pytest.mark.obligation("P4", "O5")
    def test_a_session_with_a_listener_is_its_threads(self, connection: Connection, queue: Queue, topic: Topic) -> None:
        session = connection.session()
        consumer = session.consumer(queue)
        other = session.consumer(topic)
        consumer.listen(Ear())
        for action in (lambda: other.listen(Ear()), lambda: other.receive(0), lambda: consumer.receive(0)):
            with pytest.raises(IllegalStateError, match="P4"):
                action()
        consumer.close()
        session.send(queue, text(1))
        assert other.receive(0) is None

    @pytest.mark.obligation("P4")
    def test_what_a_listener_was_given_is_its_threads_too(
        self, connection: Connection, queue: Queue, bodies: Any
    ) -> None:
        """Kept and acknowledged elsewhere: refused while the connection runs, and good when it is stopped."""
        ear = Ear()
        session = connection.session(AckMode.CLIENT)
        session.consumer(queue).listen(ear)
        connection.session().send(queue, text(1))
        assert ear.done.wait(PATIENCE)
        with pytest.raises(IllegalStateError, match="P4"):
            ear.heard[0].acknowledge()
        connection.stop()
        ear.heard[0].acknowledge()
        session.close()
        connection.start()
        assert bodies(connection.session().consumer(queue)) == []

    def test_a_stopped_one_may_be_set_up(self, provider: Any, queue: Queue, topic: Topic) -> None:
        session = provider.connect().session()
        consumer = session.consumer(queue)
        consumer.listen(Ear())
        with pytest.raises(IllegalStateError, match="listener"):
            consumer.listen(Ear())
        session.consumer(topic).listen(Ear())
        for one in (consumer, session.consumer(queue)):
            with pytest.raises(IllegalStateError, match="listener"):
                one.receive(0)

    def test_a_listener_uses_its_session(self, connection: Connection, queue: Queue, topic: Topic) -> None:
        session = connection.session(AckMode.AUTO)

        def answer(delivery: Delivery, count: int) -> None:
            session.send(delivery.message.reply_to, text("answer"))  # type: ignore[arg-type]

        session.consumer(queue).listen(Ear(1, answer))
        asking = connection.session()
        replies = asking.temporary_queue()
        asking.send(queue, text("ask", reply_to=replies))
        assert name_of(take(asking.consumer(replies)).message) == "answer"
