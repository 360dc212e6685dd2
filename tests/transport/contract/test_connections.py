"""What a connection tells about itself and its provider."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, NamingError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import AckMode, Capability, Connection
from mtosi_jms.transport._descriptor import check_jms_version


@pytest.mark.obligation("R1")
def test_it_tells_what_is_at_the_other_end(connection: Connection) -> None:
    assert connection.metadata.provider
    assert check_jms_version(connection.metadata.jms_version)


def test_it_tells_what_it_can_do(connection: Connection) -> None:
    assert isinstance(connection.capabilities, frozenset)
    assert connection.capabilities <= set(Capability)


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

    def test_destinations_by_their_text(self, connection: Connection, queue: Queue, text: Any, take: Any) -> None:
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
