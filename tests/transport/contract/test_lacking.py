"""What happens instead where a transport lacks a capability: each test's docstring is a line of docs/transports.md."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, InvalidDestinationError
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import DeliveryMode, JmsMessage, Long, MessageType
from mtosi_jms.transport import Capability, Connection


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
    connection: Connection, queue: Queue, fields: dict[str, Any], text: Any, bodies: Any
) -> None:
    """Control characters, U+0000 and text that is not UTF-8: `ConfigError` before anything is sent. As a BytesMessage a
    body may hold any bytes."""
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
    connection: Connection, queue: Queue, properties: dict[str, Any], text: Any, bodies: Any
) -> None:
    """A header beyond 10,000 bytes, or 1,000 of them: `ConfigError` before anything is sent."""
    session = connection.session()
    with pytest.raises(ConfigError):
        session.send(queue, JmsMessage(properties=properties))
    session.send(queue, text(1))
    assert bodies(session.consumer(queue)) == ["1"]


@pytest.mark.without(Capability.BEYOND_BMP)
@pytest.mark.parametrize("fields", [{"properties": {"p": "\U0001f600"}}, {"correlation_id": "\U0001f600"}], ids=str)
def test_characters_beyond_the_bmp_in_headers_are_refused(
    connection: Connection, queue: Queue, fields: dict[str, Any], text: Any, bodies: Any
) -> None:
    """Characters beyond U+FFFF in headers and properties: `ConfigError` before anything is sent, for the provider's own
    client damages them. Bodies may hold them."""
    session = connection.session()
    with pytest.raises(ConfigError):
        session.send(queue, JmsMessage(**fields))
    session.send(queue, text("\U0001f600"))
    assert bodies(session.consumer(queue)) == ["\U0001f600"]


@pytest.mark.without(Capability.BROWSE)
def test_browsing_is_refused(connection: Connection, queue: Queue, text: Any, bodies: Any) -> None:
    """`Session.browse` is a `ConfigError`, and takes nothing away."""
    session = connection.session()
    session.send(queue, text(1))
    with pytest.raises(ConfigError):
        session.browse(queue)
    assert bodies(session.consumer(queue)) == ["1"]


@pytest.mark.without(Capability.BROWSE_WAITING)
def test_browsing_shows_what_is_handed_out(connection: Connection, queue: Queue, text: Any, take: Any) -> None:
    """Where there is `BROWSE`, it shows what was handed out and is not acknowledged as well."""
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
    provider: Any, connection: Connection, queue: Queue, text: Any, bodies: Any
) -> None:
    """A commit that sends to a temporary destination whose connection has closed succeeds, or is an
    `InvalidDestinationError` where the broker happens to know already; the message is lost."""
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
    """The options `max_deliveries` and `dead_letter` are a `ConfigError`: set up at the broker what is done with such
    messages."""
    with pytest.raises(ConfigError):
        provider.connect(**option)


@pytest.mark.without(Capability.DEAD_LETTER)
def test_what_is_recovered_comes_again_without_end(connection: Connection, queue: Queue, text: Any, take: Any) -> None:
    """`recover` and listeners that raise have a message again without end."""
    session = connection.session()
    session.send(queue, text(1))
    consumer = session.consumer(queue)
    for _ in range(20):
        assert take(consumer).message.body == text(1).body
        session.recover()
    take(consumer).acknowledge()


@pytest.mark.without(Capability.DELIVERY_COUNT)
def test_the_count_is_the_sessions_own(connection: Connection, queue: Queue, text: Any, take: Any) -> None:
    """`delivery_count` counts what the session itself delivers again; what comes again from the broker counts as 2."""
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
def test_a_delay_is_refused(connection: Connection, queue: Queue, text: Any, bodies: Any) -> None:
    """A message with a `delivery_delay_ms` is a `ConfigError`, and not sent at once."""
    session = connection.session()
    for send in (session.send, session.send_async):
        with pytest.raises(ConfigError, match="delay"):
            send(queue, text(1, delivery_delay_ms=1))
    assert bodies(session.consumer(queue)) == []


@pytest.mark.without(Capability.DURABLE_RULES)
def test_rules_of_durable_subscriptions_are_not_held(started: Any, text: Any, topic: Topic, bodies: Any) -> None:
    """A client id may connect twice, a changed selector is overlooked, ending an unknown subscription is not
    told."""
    first, second = started(client_id="twice"), started(client_id="twice")
    second.session().unsubscribe("nobody-has-it")
    session = first.session()
    session.consumer(topic, "a = 'x'", durable="rules").close()
    session.consumer(topic, "a = 'y'", durable="rules").close()
    for value in ("x", "y"):
        session.send(topic, text(value, properties={"a": value}))
    consumer = session.consumer(topic, "a = 'y'", durable="rules")
    assert bodies(consumer) == ["x"]
    consumer.close()
    session.unsubscribe("rules")


@pytest.mark.without(Capability.MESSAGE_IDS)
def test_the_receiver_alone_knows_the_message_id(connection: Connection, queue: Queue, text: Any, take: Any) -> None:
    """What `send` returns has no message id; the receiver sees one. Requests are paired with their replies by the
    correlationId of the MTOSI header (C62)."""
    session = connection.session()
    sent = session.send(queue, text(1))
    received = take(session.consumer(queue)).message
    assert sent.message_id is None
    assert received.message_id.startswith("ID:")


@pytest.mark.without(Capability.PRIORITY)
def test_priorities_are_told_and_do_not_overtake(
    connection: Connection, queue: Queue, text: Any, drain: Any, name_of: Any
) -> None:
    """Messages come in the order in which they were sent, each with its priority. A policy of the broker may change
    that."""
    session = connection.session()
    for number, priority in enumerate([4, 0, 9]):
        session.send(queue, text(number, priority=priority))
    taken = drain(session.consumer(queue))
    assert [(name_of(message), message.priority) for message in taken] == [("0", 4), ("1", 0), ("2", 9)]


@pytest.mark.without(Capability.REDELIVERED)
@pytest.mark.parametrize("delivery_mode", list(DeliveryMode))
def test_the_mark_is_seen_by_who_had_it_alone(
    started: Any, queue: Queue, delivery_mode: DeliveryMode, text: Any, take: Any, name_of: Any
) -> None:
    """What a connection left unacknowledged comes again unmarked for others, and marked for itself."""
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
def test_a_name_is_of_one_kind(connection: Connection, topic: Topic, text: Any) -> None:
    """Where a queue has a name, no topic has: sending to it is an `InvalidDestinationError`."""
    session = connection.session()
    session.send(Queue(topic.name), text(1))
    with pytest.raises(InvalidDestinationError):
        session.send(topic, text(2))


@pytest.mark.without(Capability.SHARED_DURABLE)
def test_sharing_is_refused(connection: Connection, topic: Topic) -> None:
    """A consumer with `shared=True` is a `ConfigError`."""
    with pytest.raises(ConfigError, match="shared"):
        connection.session().consumer(topic, durable="shared", shared=True)


@pytest.mark.without(Capability.TEMPORARY_CHECKED)
def test_what_goes_to_a_temporary_destination_that_has_gone(started: Any, text: Any, bodies: Any) -> None:
    """A message to a temporary destination whose connection has closed is accepted; it lies in a queue of that name,
    which nobody reads."""
    owner, other = started(), started()
    temporary = owner.session().temporary_queue()
    owner.close()
    session = other.session()
    session.send(temporary, text(1))
    assert bodies(session.consumer(Queue(temporary.name))) == ["1"]


@pytest.mark.without(Capability.TRANSACTED_RECEIVE)
def test_a_transacted_session_only_sends(connection: Connection, queue: Queue, text: Any, bodies: Any) -> None:
    """A transacted session only sends: a consumer of it is a `ConfigError`."""
    session = connection.session(transacted=True)
    with pytest.raises(ConfigError):
        session.consumer(queue)
    session.send(queue, text(1))
    session.commit()
    assert bodies(connection.session().consumer(queue)) == ["1"]


@pytest.mark.without(Capability.TYPED_CONTENT)
def test_maps_travel_as_typed_text(connection: Connection, queue: Queue, take: Any) -> None:
    """A MapMessage, a StreamMessage and a Message without body travel as a TextMessage, `<map><n dt="i4">7</n></map>`,
    with the property `MTOSIX_messageType`; the SDK reads them back, other clients see the text. Infinite numbers, and
    characters that XML does not have, are a `ConfigError` before anything is sent."""
    session = connection.session()
    session.send(queue, JmsMessage(message_type=MessageType.MAP, content={"n": 7}))
    received = take(session.consumer(queue)).message
    assert (received.message_type, received.content) == (MessageType.MAP, {"n": 7})
    with pytest.raises(ConfigError):
        session.send(queue, JmsMessage(message_type=MessageType.MAP, content={"n": float("inf")}))


@pytest.mark.without(Capability.TYPED_PROPERTIES)
def test_other_properties_become_text(connection: Connection, queue: Queue, take: Any) -> None:
    """Properties that MTOSI knows keep their types (R15); of others numbers and booleans arrive as text. Selectors see
    them as numbers and booleans all the same, but do not calculate with them."""
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
def test_consumers_are_sent_some_ahead(
    connection: Connection, queue: Queue, text: Any, take: Any, nothing: Any, name_of: Any
) -> None:
    """What was sent ahead to a consumer no other gets, until that is closed; with the option `prefetch=1` that is one
    message."""
    holder, other = connection.session(), connection.session()
    for number in range(3):
        holder.send(queue, text(number))
    holding = holder.consumer(queue)
    take(holding).acknowledge()
    consumer = other.consumer(queue)
    assert nothing(consumer)
    holding.close()
    assert [name_of(take(consumer).message) for _ in range(2)] == ["1", "2"]
