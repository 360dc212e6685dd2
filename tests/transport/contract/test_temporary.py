"""Temporary destinations: made by a connection, read by it alone, gone with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mtosi_jms.errors import InvalidDestinationError
from mtosi_jms.jms import Queue, TemporaryQueue
from mtosi_jms.transport import Capability, Connection


class TestTemporaryDestinations:
    @pytest.mark.capability(Capability.MESSAGE_IDS)
    @pytest.mark.obligation("R2b", "P5")
    def test_a_reply_comes_back(
        self, provider: Any, connection: Connection, queue: Queue, text: Any, take: Any
    ) -> None:
        """R2b: a requestor's temporary queue, a supplier on another connection that answers JMSReplyTo."""
        requestor = connection.session()
        reply_queue = requestor.temporary_queue()
        requestor.send(queue, text("ask", reply_to=reply_queue))
        other = provider.connect()
        other.start()
        supplier = other.session()
        request = take(supplier.consumer(queue)).message
        assert isinstance(request.reply_to, TemporaryQueue)
        supplier.send(request.reply_to, text("answer", correlation_id=request.message_id))
        reply = take(requestor.consumer(reply_queue)).message
        assert (reply.body, reply.correlation_id) == (text("answer").body, request.message_id)

    @pytest.mark.obligation("R2c")
    def test_only_its_connection_may_consume(self, provider: Any, connection: Connection) -> None:
        """R2c."""
        session = connection.session()
        temporary = session.temporary_queue()
        assert temporary.owner == connection.id
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(temporary)
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(replace(temporary, owner=""))
        assert connection.session().consumer(temporary).destination == temporary

    @pytest.mark.capability(Capability.TEMPORARY_CHECKED)
    def test_it_goes_with_its_connection(self, provider: Any, connection: Connection, text: Any) -> None:
        made = provider.connect()
        session = made.session()
        temporary = session.temporary_queue()
        session.send(temporary, text(1))
        session.close()
        connection.session().send(temporary, text(2))
        made.close()
        with pytest.raises(InvalidDestinationError):
            connection.session().send(temporary, text(3))

    @pytest.mark.obligation("P5")
    def test_each_is_another(self, connection: Connection) -> None:
        """P5: the system names it."""
        session = connection.session()
        assert len({session.temporary_queue().name for _ in range(10)}) == 10

    @pytest.mark.obligation("R2c", "P5")
    def test_a_temporary_topic(self, provider: Any, connection: Connection, text: Any, take: Any) -> None:
        session = connection.session()
        temporary = session.temporary_topic()
        consumers = [session.consumer(temporary), session.consumer(temporary)]
        provider.connect().session().send(temporary, text(1))
        assert [take(consumer).message.body for consumer in consumers] == [b"<n>1</n>"] * 2
        with pytest.raises(InvalidDestinationError, match="R2c"):
            provider.connect().session().consumer(temporary)
