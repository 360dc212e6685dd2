"""What a message is on its way: as it was sent, with the headers of the provider."""

from __future__ import annotations

from typing import Any

import pytest
from lxml import etree

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.jms import Destination, Queue, Topic
from mtosi_jms.jms.message import DeliveryMode, JmsMessage, MessageType
from mtosi_jms.transport import Capability, Connection

from .conftest import take, text

TEXTS = [
    pytest.param("größe ☃ 中文", id="of the BMP"),
    pytest.param("\ud7ff\ue000\ufffd\u2028\u0085\u007f", id="the edges of the BMP"),
    pytest.param("a\U0001f600b\U0010fffd\U00010000", id="beyond the BMP"),
]
"""What XML may hold."""
LARGE_HEADERS = pytest.mark.capability(Capability.LARGE_HEADERS)


class TestSending:
    def test_what_is_sent_soon_keeps_its_place(self, connection: Connection, queue: Queue) -> None:
        session, receiving = connection.session(), connection.session()
        for number in range(9):
            message = JmsMessage(body=b"%d" % number)
            sent = session.send_soon(queue, message) if number % 3 else None
            if sent is None:
                sent = session.send(queue, message)
            assert (sent.body, sent.destination) == (message.body, queue)
            assert sent.timestamp_ms
        consumer = receiving.consumer(queue)
        assert [take(consumer).message.body for _ in range(9)] == [b"%d" % number for number in range(9)]

    def test_what_is_sent_soon_arrives_by_itself(self, connection: Connection, queue: Queue) -> None:
        consumer = connection.session().consumer(queue)
        message = JmsMessage(body=b"soon")
        session = connection.session()
        if session.send_soon(queue, message) is None:
            session.send(queue, message)
        assert take(consumer).message.body == b"soon"

    def test_a_transaction_is_not_anticipated(self, connection: Connection, queue: Queue) -> None:
        with connection.session(transacted=True) as session:
            assert session.send_soon(queue, JmsMessage(body=b"<x/>")) is None
            assert connection.session().consumer(queue).receive(0) is None

    def test_nothing_is_sent_soon_by_a_closed_session(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        session.close()
        with pytest.raises(IllegalStateError):
            session.send_soon(queue, JmsMessage(body=b"<x/>"))

    @pytest.mark.obligation("T1.3", "T1.7", "T1.9", "P14")
    def test_a_message_arrives_as_it_was_sent(self, connection: Connection, queue: Queue) -> None:
        """P37, R15: body, types of the properties that MTOSI has, correlation id, JMSType and delivery mode."""
        properties = {
            "MTOSI_msgType": "REQUEST",
            "MTOSI_requestedBatchSize": 200,
            "MTOSI_batchSequenceEndOfReply": True,
        }
        message = JmsMessage(
            body="<größe>\U0001f600</größe>".encode(),
            properties=properties,
            correlation_id="ID:of-the-request",
            jms_type="kind",
            delivery_mode=DeliveryMode.PERSISTENT,
            priority=7,
        )
        session = connection.session()
        session.send(queue, message)
        received = take(session.consumer(queue)).message
        assert received.body == message.body
        assert dict(received.properties) == properties
        assert {name: type(v) for name, v in received.properties.items()} == {k: type(v) for k, v in properties.items()}
        assert (received.correlation_id, received.jms_type) == ("ID:of-the-request", "kind")
        assert (received.delivery_mode, received.priority) == (DeliveryMode.PERSISTENT, 7)
        assert (received.message_type, received.destination) == (MessageType.TEXT, queue)
        assert (received.redelivered, received.delivery_count) == (False, 1)

    @pytest.mark.parametrize(
        ("size", "message_type"),
        [
            *((size, kind) for size in (0, 1, 1024, 1_000_000) for kind in (MessageType.TEXT, MessageType.BYTES)),
            (20_000_000, MessageType.TEXT),
            pytest.param(20_000_000, MessageType.BYTES, marks=pytest.mark.endurance),
        ],
    )
    def test_bodies_of_any_size(
        self, connection: Connection, queue: Queue, size: int, message_type: MessageType
    ) -> None:
        session = connection.session()
        session.send(queue, JmsMessage(body=b"x" * size, message_type=message_type))
        delivery = take(session.consumer(queue))
        assert delivery.message.message_type is message_type
        assert delivery.message.body == b"x" * size
        delivery.acknowledge()

    @pytest.mark.obligation("P14")
    @pytest.mark.parametrize("characters", TEXTS)
    def test_unicode_arrives_as_it_was_sent(self, connection: Connection, queue: Queue, characters: str) -> None:
        """In the body, in an attribute there, in a property and in headers."""
        in_headers = characters if max(characters) <= "\uffff" else "test_headers_beyond_the_bmp"
        message = JmsMessage(
            body=f"<a b='{characters}'>{characters}<![CDATA[{characters}]]></a>".encode(),
            properties={"MTOSI_objectName": in_headers},
            correlation_id=in_headers,
            jms_type=in_headers,
        )
        session = connection.session()
        session.send(queue, message)
        received = take(session.consumer(queue)).message
        assert etree.fromstring(received.body).text == etree.fromstring(message.body).text
        assert etree.fromstring(received.body).get("b") == characters
        assert dict(received.properties) == {"MTOSI_objectName": in_headers}
        assert (received.correlation_id, received.jms_type) == (in_headers, in_headers)

    @pytest.mark.capability(Capability.BEYOND_BMP)
    def test_headers_beyond_the_bmp(self, connection: Connection, queue: Queue) -> None:
        session = connection.session()
        session.send(queue, JmsMessage(properties={"MTOSI_objectName": "\U0001f600"}, correlation_id="\U00010000"))
        received = take(session.consumer(queue)).message
        assert (dict(received.properties), received.correlation_id) == (
            {"MTOSI_objectName": "\U0001f600"},
            "\U00010000",
        )

    @pytest.mark.capability(Capability.ANY_TEXT)
    def test_any_text_at_all(self, connection: Connection, queue: Queue) -> None:
        message = JmsMessage(body=b"a\0\x1b\x0b", properties={"p": "a\0\x1b"}, correlation_id="a\0")
        session = connection.session()
        session.send(queue, message)
        received = take(session.consumer(queue)).message
        assert (received.body, received.properties["p"], received.correlation_id) == (message.body, "a\0\x1b", "a\0")

    @pytest.mark.parametrize("text", ["\t", "\n", "\r", ":", "\\", "a:\\n\\c b", " blanks ", ""], ids=repr)
    def test_what_headers_must_escape(self, connection: Connection, queue: Queue, text: str) -> None:
        session = connection.session()
        session.send(queue, JmsMessage(properties={"p": text}))
        assert take(session.consumer(queue)).message.properties["p"] == text

    @pytest.mark.parametrize(
        ("count", "size"),
        [(1, 9_000), (900, 9), *(pytest.param(*one, marks=LARGE_HEADERS) for one in ((1, 60_000), (1_500, 9)))],
    )
    def test_headers_of_some_size(self, connection: Connection, queue: Queue, count: int, size: int) -> None:
        properties = {f"p{number}": "x" * size for number in range(count)}
        session = connection.session()
        session.send(queue, JmsMessage(properties=properties, delivery_mode=DeliveryMode.PERSISTENT))
        assert dict(take(session.consumer(queue)).message.properties) == properties

    @pytest.mark.obligation("P14")
    def test_bytes_stay_bytes(self, connection: Connection, queue: Queue) -> None:
        """O1: tolerated, and told apart from text."""
        session = connection.session()
        session.send(queue, JmsMessage(body=bytes(range(256)), message_type=MessageType.BYTES))
        received = take(session.consumer(queue)).message
        assert (received.message_type, received.body) == (MessageType.BYTES, bytes(range(256)))

    @pytest.mark.capability(Capability.MESSAGE_IDS)
    @pytest.mark.obligation("C45", "T1.1", "T1.2", "T1.4", "T1.5", "P13")
    def test_the_provider_sets_its_headers(self, connection: Connection, queue: Queue) -> None:
        """C45, T1.1, T1.2, T1.4, T1.5: what the sender had put there does not count."""
        theirs = text(
            1,
            message_id="mine",
            destination=Queue("elsewhere"),
            timestamp_ms=1,
            expiration_ms=2,
            redelivered=True,
            delivery_count=9,
            time_to_live_ms=60_000,
        )
        session = connection.session()
        sent = session.send(queue, theirs)
        received = take(session.consumer(queue)).message
        assert sent.message_id is not None
        assert sent.timestamp_ms is not None
        assert sent.message_id.startswith("ID:")
        assert sent.destination == queue
        assert sent.expiration_ms - sent.timestamp_ms == 60_000
        assert (sent.redelivered, sent.delivery_count) == (False, 1)
        assert received.message_id == sent.message_id
        assert received.timestamp_ms == sent.timestamp_ms
        assert received.expiration_ms == sent.expiration_ms
        assert theirs.message_id == "mine"

    @pytest.mark.capability(Capability.MESSAGE_IDS)
    @pytest.mark.obligation("T1.1")
    def test_message_ids_are_unique(self, provider: Any, queue: Queue) -> None:
        """T1.1: over connections and sessions."""
        sessions = [provider.connect().session() for _ in range(4)]
        ids = {sessions[n % 4].send(queue, text(n)).message_id for n in range(1000)}
        assert len(ids) == 1000

    @pytest.mark.obligation("C44", "P17")
    def test_sending_works_before_start(self, provider: Any, queue: Queue, nothing: Any) -> None:
        """C44: delivery alone waits."""
        made = provider.connect()
        session = made.session()
        session.send(queue, text(1))
        consumer = session.consumer(queue)
        assert nothing(consumer)
        made.start()
        assert take(consumer).message.body == b"<n>1</n>"

    @pytest.mark.parametrize("reply_to", [Queue("answers"), Topic("answers")], ids=str)
    @pytest.mark.obligation("T1.8", "C56")
    def test_reply_to_is_a_destination(self, connection: Connection, queue: Queue, reply_to: Destination) -> None:
        """R15b: the kind survives."""
        session = connection.session()
        session.send(queue, text(1, reply_to=reply_to))
        assert take(session.consumer(queue)).message.reply_to == reply_to
