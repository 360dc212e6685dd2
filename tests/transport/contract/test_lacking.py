"""What happens instead where a transport lacks a capability: each test's docstring is a line of docs/transports.md."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, InvalidDestinationError
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import DeliveryMode, JmsMessage, Long, MessageType
from mtosi_jms.transport import Capability, Connection

from .conftest import name_of, take, text


@pytest.mark.without(Capability.ANY_TEXT)
@pytest.mark.parametrize(
    "fields",
    [
        {"body": b"a\0b"},
        {"body": b"\x0b"},
        {"body": b"<a>\xff</a>"},
        {"properties": {"p": "a\0b"}},
        {"properties": {"p": "\x1b[0m"}},
        {"properties": {"p": "\ud800"}},
        {"correlation_id": "\x7f\x00"},
        {"jms_type": "\x01"},
    ],
    ids=str,
)
def test_text_that_cannot_travel_is_refused(
    connection: Connection, queue: Queue, fields: dict[str, Any], bodies: Any
) -> None:
    """Control characters, U+0000 and text that is not UTF-8 raise a `ConfigError` before anything is sent. The body of
    a BytesMessage may contain any bytes."""
    session = connection.session()
    with pytest.raises(ConfigError):
        session.send(queue, JmsMessage(**fields))
    if "body" in fields:
        session.send(queue, JmsMessage(body=fields["body"], message_type=MessageType.BYTES))
        assert session.consumer(queue).receive(30).message.body == fields["body"]  # type: ignore[union-attr]
    else:
        session.send(queue, text(1))
        assert bodies(session.consumer(queue)) == ["1"]


@pytest.mark.without(Capability.LARGE_HEADERS)
@pytest.mark.parametrize(
    "properties", [{"p": "x" * 10_001}, {"p": "é" * 5_001}, {f"p{number}": 1 for number in range(1_000)}], ids=len
)
def test_headers_that_are_too_large_are_refused(
    connection: Connection, queue: Queue, properties: dict[str, Any], bodies: Any
) -> None:
    """A header of more than 10,000 bytes, or 1,000 headers, raise a `ConfigError` before anything is sent."""
    session = connection.session()
    with pytest.raises(ConfigError):
        session.send(queue, JmsMessage(properties=properties))
    session.send(queue, text(1))
    assert bodies(session.consumer(queue)) == ["1"]


@pytest.mark.without(Capability.BEYOND_BMP)
@pytest.mark.parametrize("fields", [{"properties": {"p": "\U0001f600"}}, {"correlation_id": "\U0001f600"}], ids=str)
def test_characters_beyond_the_bmp_in_headers_are_refused(
    connection: Connection, queue: Queue, fields: dict[str, Any], bodies: Any
) -> None:
    """Characters beyond U+FFFF in headers and properties raise a `ConfigError` before anything is sent, because the
    provider's own client damages them. Bodies may contain them."""
    session = connection.session()
    with pytest.raises(ConfigError):
        session.send(queue, JmsMessage(**fields))
    session.send(queue, text("\U0001f600"))
    assert bodies(session.consumer(queue)) == ["\U0001f600"]


@pytest.mark.without(Capability.BROWSE)
def test_browsing_is_refused(connection: Connection, queue: Queue, bodies: Any) -> None:
    """`Session.browse` raises a `ConfigError`, and consumes no message."""
    session = connection.session()
    session.send(queue, text(1))
    with pytest.raises(ConfigError):
        session.browse(queue)
    assert bodies(session.consumer(queue)) == ["1"]


@pytest.mark.without(Capability.BROWSE_WAITING)
def test_browsing_shows_what_is_handed_out(connection: Connection, queue: Queue) -> None:
    """If the transport has `BROWSE`, browsing also shows messages that were delivered and are not acknowledged."""
    session = connection.session()
    session.send(queue, text(1))
    delivery = take(session.consumer(queue))
    if Capability.BROWSE in connection.capabilities:
        assert [message.body for message in session.browse(queue)] == [text(1).body]
    else:
        with pytest.raises(ConfigError):
            session.browse(queue)
    delivery.acknowledge()


@pytest.mark.without(Capability.COMMIT_CHECKED)
def test_a_commit_does_not_check_temporary_destinations(
    provider: Any, connection: Connection, queue: Queue, bodies: Any
) -> None:
    """A commit that sends to a temporary destination whose connection is closed loses the message. It succeeds, or
    raises an `InvalidDestinationError` if the broker already knows that the destination is gone."""
    other = provider.connect()
    session = connection.session(transacted=True)
    with suppress(InvalidDestinationError):
        session.send(other.session().temporary_queue(), text(1))
        other.close()
        session.commit()
    session.send(queue, text(2))
    session.commit()
    assert bodies(connection.session().consumer(queue)) == ["2"]


@pytest.mark.without(Capability.DEAD_LETTER)
@pytest.mark.parametrize("option", [{"max_deliveries": 3}, {"dead_letter": "queue:dead"}], ids=str)
def test_dead_letters_are_the_brokers(provider: Any, option: dict[str, Any]) -> None:
    """The options `max_deliveries` and `dead_letter` raise a `ConfigError`: configure dead letters at the broker."""
    with pytest.raises(ConfigError):
        provider.connect(**option)


@pytest.mark.without(Capability.DEAD_LETTER)
def test_what_is_recovered_comes_again_without_end(connection: Connection, queue: Queue) -> None:
    """After `recover`, or if a listener raises, a message is redelivered any number of times."""
    session = connection.session()
    session.send(queue, text(1))
    consumer = session.consumer(queue)
    for _ in range(20):
        assert take(consumer).message.body == text(1).body
        session.recover()
    take(consumer).acknowledge()


@pytest.mark.without(Capability.DELIVERY_COUNT)
def test_the_count_is_the_sessions_own(connection: Connection, queue: Queue) -> None:
    """`delivery_count` counts the redeliveries by the session itself; for a redelivery by the broker it is 2."""
    session = connection.session()
    session.send(queue, text(1))
    consumer = session.consumer(queue)
    told = []
    for _ in range(4):
        message = take(consumer).message
        told.append((message.redelivered, message.delivery_count))
        session.recover()
    assert told == [(False, 1), (True, 2), (True, 3), (True, 4)]
    session.close()
    again = take(connection.session().consumer(queue)).message
    assert (again.redelivered, again.delivery_count) == (True, 2)


@pytest.mark.without(Capability.DELIVERY_DELAY)
def test_a_delay_is_refused(connection: Connection, queue: Queue, bodies: Any) -> None:
    """A message with a `delivery_delay_ms` raises a `ConfigError`, and is not sent."""
    session = connection.session()
    for send in (session.send, session.send_async):
        with pytest.raises(ConfigError, match="delay"):
            send(queue, text(1, delivery_delay_ms=1))
    assert bodies(session.consumer(queue)) == []


@pytest.mark.without(Capability.DURABLE_RULES)
def test_rules_of_durable_subscriptions_are_not_held(started: Any, topic: Topic, bodies: Any) -> None:
    """Two connections may have the same client id, and unsubscribing from an unknown subscription raises no error."""
    first, second = started(client_id="twice"), started(client_id="twice")
    second.session().unsubscribe("nobody-has-it")
    session = first.session()
    session.consumer(topic, "a = 'x'", durable="rules").close()
    session.consumer(topic, "a = 'y'", durable="rules").close()
    for value in ("x", "y"):
        session.send(topic, text(value, properties={"a": value}))
    consumer = session.consumer(topic, "a = 'y'", durable="rules")
    assert bodies(consumer) == ["y"]
    consumer.close()
    session.unsubscribe("rules")


@pytest.mark.without(Capability.MESSAGE_IDS)
def test_the_receiver_alone_knows_the_message_id(connection: Connection, queue: Queue) -> None:
    """The message that `send` returns has no message id; the receiver sees one. Replies find their requests by the
    correlationId of the MTOSI header (C62)."""
    session = connection.session()
    sent = session.send(queue, text(1))
    received = take(session.consumer(queue)).message
    assert sent.message_id is None
    assert received.message_id.startswith("ID:")


@pytest.mark.without(Capability.PRIORITY)
def test_priorities_are_told_and_do_not_overtake(connection: Connection, queue: Queue, drain: Any) -> None:
    """Messages arrive in the order in which they were sent, each with its priority. A policy of the broker may change
    that."""
    session = connection.session()
    for number, priority in enumerate([4, 0, 9]):
        session.send(queue, text(number, priority=priority))
    taken = drain(session.consumer(queue))
    assert [(name_of(message), message.priority) for message in taken] == [("0", 4), ("1", 0), ("2", 9)]


@pytest.mark.without(Capability.REDELIVERED)
@pytest.mark.parametrize("delivery_mode", list(DeliveryMode))
def test_the_mark_is_seen_by_who_had_it_alone(started: Any, queue: Queue, delivery_mode: DeliveryMode) -> None:
    """A message that a connection left unacknowledged is redelivered. The same connection sees the mark, other
    connections do not."""
    first = started()
    sender = first.session()
    for number in range(2):
        sender.send(queue, text(number, delivery_mode=delivery_mode))
    for connection, marked in ((first, True), (started(), False)):
        with first.session() as leaving:
            name = name_of(take(leaving.consumer(queue)).message)
        with connection.session() as session:
            again = take(session.consumer(queue))
            assert name_of(again.message) == name
            assert again.message.redelivered == marked
            again.acknowledge()


@pytest.mark.without(Capability.SAME_NAMES)
def test_a_name_is_of_one_kind(connection: Connection, topic: Topic) -> None:
    """A topic cannot have the name of a queue: sending to it raises an `InvalidDestinationError`."""
    session = connection.session()
    session.send(Queue(topic.name), text(1))
    with pytest.raises(InvalidDestinationError):
        session.send(topic, text(2))


@pytest.mark.without(Capability.SHARED_DURABLE)
def test_sharing_is_refused(connection: Connection, topic: Topic) -> None:
    """A consumer with `shared=True` raises a `ConfigError`."""
    with pytest.raises(ConfigError, match="shared"):
        connection.session().consumer(topic, durable="shared", shared=True)


@pytest.mark.without(Capability.TEMPORARY_CHECKED)
def test_what_goes_to_a_temporary_destination_that_has_gone(started: Any, bodies: Any) -> None:
    """The broker accepts a message to a temporary destination whose connection is closed, and keeps it in a queue of
    that name, which nobody reads."""
    owner, other = started(), started()
    temporary = owner.session().temporary_queue()
    owner.close()
    session = other.session()
    session.send(temporary, text(1))
    assert bodies(session.consumer(Queue(temporary.name))) == ["1"]


@pytest.mark.without(Capability.TRANSACTED_RECEIVE)
def test_a_transacted_session_only_sends(connection: Connection, queue: Queue, bodies: Any) -> None:
    """A transacted session only sends: making a consumer raises a `ConfigError`."""
    session = connection.session(transacted=True)
    with pytest.raises(ConfigError):
        session.consumer(queue)
    session.send(queue, text(1))
    session.commit()
    assert bodies(connection.session().consumer(queue)) == ["1"]


@pytest.mark.without(Capability.TYPED_CONTENT)
def test_maps_travel_as_typed_text(connection: Connection, queue: Queue) -> None:
    """A MapMessage, a StreamMessage and a Message without body travel as a TextMessage, `<map><n dt="i4">7</n></map>`,
    with the property `MTOSIX_messageType`. The SDK reads them back; other clients see the text. Infinite numbers, and
    characters that XML does not have, raise a `ConfigError` before anything is sent."""
    session = connection.session()
    session.send(queue, JmsMessage(message_type=MessageType.MAP, content={"n": 7}))
    received = take(session.consumer(queue)).message
    assert (received.message_type, received.content) == (MessageType.MAP, {"n": 7})
    with pytest.raises(ConfigError):
        session.send(queue, JmsMessage(message_type=MessageType.MAP, content={"n": float("inf")}))


@pytest.mark.without(Capability.TYPED_PROPERTIES)
def test_other_properties_become_text(connection: Connection, queue: Queue) -> None:
    """Properties that MTOSI defines keep their types (R15). Numbers and booleans in other properties arrive as text.
    Selectors still see them as numbers and booleans, but cannot calculate with them."""
    session = connection.session()
    properties = {"n": 7, "flag": True, "ratio": 0.1, "long": Long(2**40), "MTOSI_requestedBatchSize": 200}
    session.send(queue, JmsMessage(properties=properties))
    assert dict(take(session.consumer(queue)).message.properties) == {
        "n": "7",
        "flag": "true",
        "ratio": "0.1",
        "long": str(2**40),
        "MTOSI_requestedBatchSize": 200,
    }


@pytest.mark.without(Capability.UNBUFFERED)
def test_consumers_are_sent_some_ahead(connection: Connection, queue: Queue, nothing: Any) -> None:
    """The broker sends messages ahead to a consumer. No other consumer gets them until that one is closed. With the
    option `prefetch=1` it is one message."""
    holder, other = connection.session(), connection.session()
    for number in range(3):
        holder.send(queue, text(number))
    holding = holder.consumer(queue)
    take(holding).acknowledge()
    consumer = other.consumer(queue)
    assert nothing(consumer)
    holding.close()
    assert [name_of(take(consumer).message) for _ in range(2)] == ["1", "2"]
