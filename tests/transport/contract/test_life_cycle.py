"""Connections and sessions from beginning to end: what they tell, and which thread may use them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, NamingError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import AckMode, Connection, Session
from mtosi_jms.transport._descriptor import check_jms_version

from ...waiting import PATIENCE, background
from .conftest import take, text

UntilBlocked = Callable[[Session], None]


class TestLifeCycle:
    def test_with_closes(self, provider: Any, queue: Queue) -> None:
        with provider.connect() as made, made.session() as session, session.consumer(queue) as consumer:
            assert consumer.destination == queue
        with pytest.raises(IllegalStateError):
            made.session()

    @pytest.mark.obligation("P4")
    def test_a_session_is_for_one_thread(
        self, connection: Connection, queue: Queue, until_blocked: UntilBlocked
    ) -> None:
        """P4: a second thread is told, and the first is not disturbed."""
        session = connection.session()
        consumer = session.consumer(queue)
        future = background(consumer.receive)
        until_blocked(session)
        actions: list[Callable[[], object]] = [
            *(lambda: session.send(queue, text(1)), lambda: consumer.receive(0), lambda: consumer.listen(print)),
            *(lambda: session.consumer(queue), lambda: session.browse(queue), lambda: session.unsubscribe("x")),
            *(session.temporary_queue, session.temporary_topic, session.recover, session.commit, session.rollback),
        ]
        for action in actions:
            with pytest.raises(IllegalStateError, match="P4"):
                action()
        connection.session().send(queue, text(2))
        delivery = future.result(PATIENCE)
        delivery.acknowledge()
        assert delivery.message.body == b"<n>2</n>"

    @pytest.mark.obligation("P4")
    def test_threads_share_a_connection(self, connection: Connection, queue: Queue, drain: Any) -> None:
        ready = threading.Barrier(16)

        def work() -> bool:
            ready.wait(PATIENCE)
            with connection.session() as session:
                temporary = session.temporary_queue()
                consumer = session.consumer(temporary)
                for number in range(50):
                    session.send(temporary, text(number))
                return [m.body for m in drain(consumer)] == [text(n).body for n in range(50)]

        assert [future.result(PATIENCE) for future in [background(work) for _ in range(16)]] == [True] * 16

    @pytest.mark.obligation("P4")
    def test_misuse_by_many_threads_is_told_and_harms_nothing(
        self, connection: Connection, queue: Queue, drain: Any
    ) -> None:
        """Eight threads in one session: each call either does its work or is refused, and nothing else happens."""
        session = connection.session()
        ready = threading.Barrier(8)

        def send(number: int) -> tuple[int, int]:
            ready.wait(PATIENCE)
            sent = refused = 0
            for _ in range(200):
                try:
                    session.send(queue, text(number))
                    sent += 1
                except IllegalStateError:
                    refused += 1
            return sent, refused

        results = [one.result(PATIENCE) for one in [background(lambda n=n: send(n)) for n in range(8)]]
        assert sum(sent + refused for sent, refused in results) == 8 * 200
        assert len(drain(session.consumer(queue))) == sum(sent for sent, _ in results) > 0


def test_many_threads_close_the_same(connection: Connection, queue: Queue) -> None:
    """Whoever returns finds it closed, whichever thread did it."""
    consumers = [connection.session().consumer(queue) for _ in range(4)]
    parts = [connection, *consumers, connection, connection]
    start = threading.Barrier(16)

    def close(part: Any) -> None:
        start.wait(PATIENCE)
        part.close()
        if part is connection:
            with pytest.raises(IllegalStateError):
                connection.session()

    sixteen = (parts * 3)[:16]
    closing = [background(partial(close, part)) for part in sixteen]
    for one in closing:
        one.result(PATIENCE)


@pytest.mark.obligation("R1")
def test_it_tells_what_is_at_the_other_end(connection: Connection) -> None:
    assert connection.metadata.provider
    assert check_jms_version(connection.metadata.jms_version)


def test_each_has_an_id_and_no_client_id_unless_given(provider: Any) -> None:
    one, two = provider.connect(), provider.connect()
    assert one.id != two.id
    assert (one.client_id, two.client_id) == ("", "")
    assert provider.connect(client_id="mine").client_id == "mine"


def test_its_text_tells_its_state(provider: Any, queue: Queue) -> None:
    connection = provider.connect()
    assert "stopped, 0 sessions" in repr(connection)
    connection.start()
    with connection.session(AckMode.DUPS_OK) as session:
        session.consumer(queue)
        assert "started, 1 sessions" in repr(connection)
        assert "DUPS_OK, 1 consumers, 0 messages not acknowledged" in repr(session)
    assert "closed" in repr(session)
    assert "transacted" in repr(connection.session(transacted=True))
    connection.close()
    assert "closed" in repr(connection)


def test_async_with_closes_it(provider: Any) -> None:
    async def use() -> Connection:
        async with provider.connect() as opened:
            opened.start()
            return opened

    with pytest.raises(IllegalStateError):
        asyncio.run(use()).start()


class TestNames:
    """Where a session takes a destination, a name or its text will do."""

    def test_destinations_by_their_text(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        consumer = session.consumer(str(queue))
        session.send(str(queue), text(1))
        session.producer(str(queue)).send(text(2))
        session.send_async(str(queue), text(3)).result()
        assert [take(consumer).message.body for _ in range(3)] == [text(number).body for number in (1, 2, 3)]
        assert consumer.destination == queue

    @pytest.mark.parametrize("call", ["send", "send_soon", "send_async", "producer", "consumer", "browse"])
    def test_a_name_that_is_not_known(self, connection: Connection, call: str) -> None:
        arguments = [JmsMessage()] if call.startswith("send") else []
        with pytest.raises(NamingError, match="write queue:EMS or topic:EMS"):
            getattr(connection.session(), call)("EMS", *arguments)
