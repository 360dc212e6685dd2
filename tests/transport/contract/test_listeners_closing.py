"""Closing where listeners run: from within one it waits for none, from elsewhere for the one that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.jms import Queue, Topic
from mtosi_jms.transport import AckMode, Capability, Connection, Delivery

from ...waiting import PATIENCE, background
from .conftest import Ear, Holding, text


class TestClosing:
    @pytest.mark.parametrize("what", ["consumer", "session", "connection"])
    @pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK])
    def test_from_within_a_listener(
        self, started: Any, connection: Connection, queue: Queue, what: str, mode: AckMode, bodies: Any
    ) -> None:
        """No deadlock; the message in hand is done with, the next one is not taken."""
        closing = started()
        session = closing.session(mode)
        consumer = session.consumer(queue)
        target = {"consumer": consumer, "session": session, "connection": closing}[what]
        ear = Ear(1, lambda _, __: target.close())
        sender = connection.session()
        for number in range(2):
            sender.send(queue, text(number))
        consumer.listen(ear, ear.on_error)
        assert ear.done.wait(PATIENCE)
        target.close()
        session.close()
        (thread,) = ear.threads
        thread.join(PATIENCE)
        assert ear.errors == []
        assert bodies(connection.session().consumer(queue)) == ["1"]

    @pytest.mark.parametrize("what", ["consumer", "session"])
    @pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK])
    def test_a_failure_after_it_brings_the_message_back(
        self, started: Any, connection: Connection, queue: Queue, what: str, mode: AckMode, bodies: Any
    ) -> None:
        session = started().session(mode)
        consumer = session.consumer(queue)

        def close_and_fail(delivery: Delivery, count: int) -> None:
            (session if what == "session" else consumer).close()
            raise RuntimeError("after the end")

        ear = Ear(1, close_and_fail)
        connection.session().send(queue, text(1))
        consumer.listen(ear, ear.on_error)
        assert ear.done.wait(PATIENCE)
        session.close()
        (thread,) = ear.threads
        thread.join(PATIENCE)
        assert [str(error) for error, _ in ear.errors] == ["after the end"]
        assert bodies(connection.session().consumer(queue)) == ["1"]

    @pytest.mark.parametrize("what", ["consumer", "session", "connection", "stop"])
    def test_from_elsewhere_it_waits(
        self, started: Any, connection: Connection, queue: Queue, what: str, bodies: Any
    ) -> None:
        """The listener ends its work with the session's help; what it has in hand is acknowledged."""
        ending = started()
        session = ending.session(AckMode.AUTO)
        consumer = session.consumer(queue)
        holding = Holding(PATIENCE, lambda _: session.send(queue, text("sent by the listener")))
        for word in ("held", "next"):
            connection.session().send(queue, text(word))
        consumer.listen(holding)
        assert holding.entered.wait(PATIENCE)
        targets = {
            "consumer": consumer.close,
            "session": session.close,
            "connection": ending.close,
            "stop": ending.stop,
        }
        ended = background(targets[what])
        assert not ended.done()
        holding.release.set()
        ended.result(PATIENCE)
        assert holding.left.is_set()
        ending.close()
        left = bodies(connection.session().consumer(queue))
        assert sorted(left) == ["next", "sent by the listener"]  # what is put back may be overtaken

    def test_two_listeners_may_close_each_other(self, started: Any, queue: Queue, topic: Topic) -> None:
        ending = started()
        sessions = [ending.session(AckMode.AUTO) for _ in range(2)]
        both = threading.Barrier(2)

        def close_the_other(number: int) -> Callable[[Delivery, int], object]:
            def reaction(delivery: Delivery, count: int) -> None:
                both.wait(PATIENCE)
                sessions[1 - number].close()

            return reaction

        ears = [Ear(1, close_the_other(number)) for number in range(2)]
        for session, destination, ear in zip(sessions, (queue, topic), ears, strict=True):
            session.consumer(destination).listen(ear, ear.on_error)
        sender = started().session()
        for destination in (queue, topic):
            sender.send(destination, text(1))
        assert all(ear.done.wait(PATIENCE) for ear in ears)
        ending.close()
        assert [ear.errors for ear in ears] == [[], []]

    @pytest.mark.parametrize(
        "transacted", [False, pytest.param(True, marks=pytest.mark.capability(Capability.TRANSACTED_RECEIVE))]
    )
    def test_what_a_client_left_open_comes_again(
        self, started: Any, connection: Connection, queue: Queue, transacted: bool, bodies: Any
    ) -> None:
        session = started().session(AckMode.CLIENT, transacted=transacted)
        ear = Ear(1, lambda _, __: session.close())
        connection.session().send(queue, text(1))
        session.consumer(queue).listen(ear, ear.on_error)
        assert ear.done.wait(PATIENCE)
        session.close()
        (thread,) = ear.threads
        thread.join(PATIENCE)
        assert ear.errors == []
        assert bodies(connection.session().consumer(queue)) == ["1"]
