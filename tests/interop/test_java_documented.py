"""The tables of docs/java.md, compared with what the Java clients see, and with what we see of them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.binding.mapping import from_jms
from mtosi_jms.errors import MalformedXmlError
from mtosi_jms.jms import JmsMessage, MessageType, Queue, Topic
from mtosi_jms.jms.message import Long
from mtosi_jms.transport import Connection, Session

from .conftest import CLIENTS, Side
from .peer import PATIENCE, Peer

pytestmark = pytest.mark.broker
PAGE = Path(__file__).resolve().parents[2] / "docs" / "java.md"
COLUMN = {client: number for number, client in enumerate(CLIENTS, start=1)}
OURS: dict[str, Any] = {
    '`"größe"`': "größe",
    "`200`": 200,
    "`True`": True,
    "`Long(5000000000)`": Long(5_000_000_000),
    "`1.5`": 1.5,
}
PROBE = JmsMessage(
    body=b"<probe/>",
    properties={
        "MTOSI_EventType": "ObjectCreation",
        "MTOSI_objectName": "MD=EMS1/ME=NE-7",
        "MTOSI_batchSequenceNumber": 7,
        "MTOSI_rootCauseAlarmIndication": True,
    },
    priority=7,
    correlation_id="ours",
    jms_type="kind",
)
PREFIX = "convert_string_expressions:"


def table(name: str) -> list[list[str]]:
    """The rows of a table, without its head; cells as they stand there."""
    text = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in text.splitlines()[2:]]


def documented(name: str, side: Side) -> dict[str, str]:
    """First cell to the cell of this client."""
    return {row[0]: row[COLUMN[side.client]] for row in table(name)}


def received(session: Session, queue: Queue) -> JmsMessage:
    with session.consumer(queue) as consumer:
        delivery = consumer.receive(PATIENCE)
        assert delivery is not None
        delivery.acknowledge()
        return delivery.message


@pytest.mark.obligation("C62")
def test_properties_that_we_set(side: Side, peer: Peer, connection: Connection, queue: Queue) -> None:
    properties = {f"p{number}": value for number, value in enumerate(OURS.values())}
    connection.session().send(queue, JmsMessage(body=b"<a/>", properties=properties))
    peer.ask("consume", "c", f"queue:{queue.name}", "")
    seen = peer.receive("c")
    peer.ask("close", "c")
    assert seen is not None
    assert documented("ours", side) == {text: seen[name] for text, name in zip(OURS, properties, strict=True)}


@pytest.mark.obligation("C62")
def test_properties_that_java_sets(side: Side, peer: Peer, connection: Connection, queue: Queue) -> None:
    session, seen = connection.session(), {}
    for words in documented("theirs", side):
        peer.send(f"queue:{queue.name}", "<a/>", words.strip("`"))
        name = re.split("[ =]", words.strip("`"))[1]
        seen[words] = f"`{received(session, queue).properties[name]!r}`"
    assert documented("theirs", side) == seen


def test_selectors_of_a_java_consumer(side: Side, peer: Peer, connection: Connection, topic: Topic) -> None:
    """Each has a subscription that gets a last message besides, so that what does not match need not be waited for."""
    rows = table("selectors")
    selectors = [cell.strip("`") for row in rows for cell in (row[0], row[-1]) if cell]
    for number, selector in enumerate(selectors):
        prefix, bare = (PREFIX, selector.removeprefix(PREFIX)) if selector.startswith(PREFIX) else ("", selector)
        peer.ask("consume", f"s{number}", f"topic:{topic.name}", f"{prefix}({bare}) OR last = 'yes'")
    session = connection.session()
    session.send(topic, PROBE)
    session.send(topic, JmsMessage(body=b"<last/>", properties={"last": "yes"}))
    matched = {}
    for number, selector in enumerate(selectors):
        seen = peer.receive(f"s{number}")
        assert seen is not None
        matched[selector] = {"<probe/>": "yes", "<last/>": "no"}[seen["body"]]
        peer.ask("close", f"s{number}")
    assert documented("selectors", side) == {row[0]: matched[row[0].strip("`")] for row in rows}
    for row in rows:
        if side.transport == "stomp":
            assert matched[(row[-1] or row[0]).strip("`")] == "yes"


def test_ids_and_addresses(side: Side, peer: Peer, connection: Connection, queue: Queue) -> None:
    session = connection.session()
    peer.ask("consume", "c", f"queue:{queue.name}", "")
    peer.ask("consume", "t", "temporary", "")
    sent = session.send(queue, replace(PROBE, reply_to=session.temporary_queue()))
    theirs = peer.receive("c")
    peer.ask("close", "c")
    identifier = peer.send(f"queue:{queue.name}", "<a/>", "header correlation=theirs", reply_to="t")
    ours = received(session, queue)
    peer.ask("close", "t")
    assert theirs is not None
    assert identifier.startswith("ID:")

    def same(one: object, other: object) -> str:
        return "the same" if one == other else "another"

    unknown = "one that we do not know" if theirs["id"] else "none"
    known = same(theirs["id"], sent.message_id) if sent.message_id else unknown
    assert documented("ids", side) == {
        "JMSMessageID of ours, in Java": known,
        "JMSMessageID of Java's, here": same(ours.message_id, identifier),
        "JMSCorrelationID of ours, in Java": same(theirs["correlation"], "ours"),
        "JMSCorrelationID of Java's, here": same(ours.correlation_id, "theirs"),
        "JMSReplyTo, a temporary queue of ours, in Java": theirs["reply"],
        "JMSReplyTo, a temporary queue of Java's, here": "temporary" if ours.reply_to.is_temporary else "queue",
    }


@pytest.mark.obligation("O1", "SEC20")
def test_bodies(side: Side, peer: Peer, connection: Connection, queue: Queue) -> None:
    session, seen = connection.session(), {}
    peer.ask("consume", "c", f"queue:{queue.name}", "")
    for kind in (MessageType.TEXT, MessageType.BYTES):
        session.send(queue, JmsMessage(body=b"<a/>", message_type=kind))
        theirs = peer.receive("c")
        assert theirs is not None
        assert theirs["body"] == "<a/>"
        seen[f"our {kind.name}, in Java"] = theirs["kind"]
    peer.ask("close", "c")
    for kind, name in (("text", "TextMessage"), ("bytes", "BytesMessage")):
        peer.send(f"queue:{queue.name}", "<a/>", kind=kind)
        ours = received(session, queue)
        assert ours.body == b"<a/>"
        seen[f"Java's {name}, here"] = ours.message_type.name
    for kind, name in (("object", "ObjectMessage"), ("map", "MapMessage"), ("none", "Message")):
        peer.send(f"queue:{queue.name}", "<a/>", kind=kind)
        ours = received(session, queue)
        assert ours.body == b""
        told = ours.message_type not in (MessageType.TEXT, MessageType.BYTES)
        held = "with its values" if ours.content else "empty"
        seen[f"Java's {name}, here"] = f"{ours.message_type.name}, {held}" if told else held
        with pytest.raises(MalformedXmlError):
            from_jms(ours)
    assert documented("bodies", side) == seen
