"""What is acknowledged is gone, what is not comes again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.transport import AckMode, Capability, Connection, Session

from ...waiting import PATIENCE, background
from .conftest import take, text

UntilBlocked = Callable[[Session], None]


class TestAcknowledging:
    @pytest.mark.obligation("P19", "F1")
    @pytest.mark.parametrize(("mode", "times"), [(AckMode.AUTO, 0), (AckMode.AUTO, 1), (AckMode.CLIENT, 2)])
    def test_what_is_acknowledged_is_gone(
        self, connection: Connection, queue: Queue, nothing: Any, mode: AckMode, times: int
    ) -> None:
        """P19: by the session itself, or by the caller, who may do it again."""
        with connection.session(mode) as session:
            session.send(queue, text(1))
            delivery = take(session.consumer(queue))
            for _ in range(times):
                delivery.acknowledge()
        delivery.acknowledge()
        assert nothing(connection.session().consumer(queue))

    @pytest.mark.capability(Capability.REDELIVERED)
    @pytest.mark.obligation("T1.10")
    @pytest.mark.parametrize("delivery_mode", list(DeliveryMode))
    @pytest.mark.parametrize("what", ["session", "connection"])
    def test_what_comes_again_is_marked_for_anybody(
        self, started: Any, queue: Queue, what: str, delivery_mode: DeliveryMode
    ) -> None:
        first = started()
        session = first.session()
        session.send(queue, text(1, delivery_mode=delivery_mode))
        assert not take(session.consumer(queue)).message.redelivered
        (session if what == "session" else first).close()
        again = take(started().session().consumer(queue)).message
        assert again.redelivered
        assert again.delivery_count == 2

    @pytest.mark.obligation("P19")
    def test_each_message_is_acknowledged_by_itself(self, connection: Connection, queue: Queue, drain: Any) -> None:
        """CLIENT here is individual: the second alone, and the first and third come again, in order."""
        with connection.session() as session:
            for number in range(3):
                session.send(queue, text(number))
            consumer = session.consumer(queue)
            _, second, _ = take(consumer), take(consumer), take(consumer)
            second.acknowledge()
        assert [m.body for m in drain(connection.session().consumer(queue))] == [text(0).body, text(2).body]

    @pytest.mark.capability(Capability.DELIVERY_COUNT)
    @pytest.mark.obligation("T1.10", "001-I16")
    def test_recover_delivers_again_in_order(self, connection: Connection, queue: Queue, drain: Any) -> None:
        session = connection.session()
        for number in range(4):
            session.send(queue, text(number))
        consumer = session.consumer(queue)
        stale = [take(consumer) for _ in range(3)]
        session.recover()
        with pytest.raises(IllegalStateError, match="again"):
            stale[0].acknowledge()
        again = drain(consumer)
        assert [m.body for m in again] == [text(n).body for n in range(4)]
        assert [m.delivery_count for m in again] == [2, 2, 2, 1]

    def test_closing_a_consumer_keeps_what_it_handed_out(
        self, connection: Connection, queue: Queue, nothing: Any
    ) -> None:
        with connection.session() as session:
            session.send(queue, text(1))
            with session.consumer(queue) as consumer:
                delivery = take(consumer)
            assert nothing(session.consumer(queue))
            delivery.acknowledge()
        assert nothing(connection.session().consumer(queue))

    def test_an_expired_message_does_not_come_again(
        self, provider: Any, connection: Connection, queue: Queue, nothing: Any
    ) -> None:
        session = connection.session()
        session.send(queue, text(1, time_to_live_ms=2_000))
        consumer = session.consumer(queue)
        take(consumer)
        provider.pass_time(2.5)
        session.recover()
        assert nothing(consumer)

    def test_what_comes_again_wakes_a_blocked_receiver(
        self, connection: Connection, queue: Queue, until_blocked: UntilBlocked
    ) -> None:
        holder, waiter = connection.session(), connection.session()
        holder.send(queue, text(1))
        take(holder.consumer(queue))
        consumer = waiter.consumer(queue)
        future = background(consumer.receive)
        until_blocked(waiter)
        holder.close()
        assert future.result(PATIENCE).message.redelivered
