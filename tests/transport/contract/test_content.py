"""Properties, maps, streams and messages without body: each value arrives with its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mtosi_jms.jms import Byte, Char, Float, JmsMessage, Long, MessageType, Queue, Short
from mtosi_jms.transport import Capability, Connection

from .conftest import take

VALUES: dict[str, Any] = {
    "string": "Zürich <&>",
    "empty": "",
    "boolean": True,
    "byte": Byte(-128),
    "short": Short(-32768),
    "int": 2**31 - 1,
    "long": Long(-(2**63)),
    "float": Float(0.5),
    "double": 0.1,
    "char": Char("Ä"),
    "bytes": b"\x00\xff",
    "null": None,
}
CONTENTS = [(MessageType.MAP, VALUES), (MessageType.STREAM, tuple(VALUES.values())), (MessageType.MESSAGE, ())]


def kinds(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: type(value) for name, value in content.items()}
    return [type(value) for value in content]


@pytest.mark.parametrize(("kind", "content"), CONTENTS, ids=lambda one: getattr(one, "name", ""))
@pytest.mark.obligation("000-JE12", "000-JE16", "000-JE17")
def test_content_arrives_with_its_types(connection: Connection, queue: Queue, kind: MessageType, content: Any) -> None:
    session = connection.session()
    session.send(queue, JmsMessage(message_type=kind, content=content, properties={"MTOSI_msgType": "REQUEST"}))
    received = take(session.consumer(queue)).message
    assert (received.message_type, received.content, received.body) == (
        kind,
        JmsMessage(message_type=kind, content=content).content,
        b"",
    )
    assert kinds(received.content) == kinds(content)
    assert dict(received.properties) == {"MTOSI_msgType": "REQUEST"}


@pytest.mark.capability(Capability.TYPED_PROPERTIES)
@pytest.mark.obligation("P14", "001-I22", "001-J9")
def test_properties_keep_their_types(connection: Connection, queue: Queue) -> None:
    properties = {name: value for name, value in VALUES.items() if name not in ("char", "bytes", "null")}
    session = connection.session()
    session.send(queue, JmsMessage(properties=properties))
    received = take(session.consumer(queue)).message.properties
    assert (dict(received), kinds(received)) == (properties, kinds(properties))


@pytest.mark.parametrize("kind", [MessageType.MAP, MessageType.STREAM])
def test_empty_content(connection: Connection, queue: Queue, kind: MessageType) -> None:
    session = connection.session()
    session.send(queue, JmsMessage(message_type=kind))
    received = take(session.consumer(queue)).message
    assert (received.message_type, len(received.content)) == (kind, 0)


@pytest.mark.parametrize("kind", [MessageType.MAP, MessageType.STREAM])
def test_content_that_comes_again(connection: Connection, queue: Queue, kind: MessageType) -> None:
    session = connection.session()
    content: Any = {"a": 1} if kind is MessageType.MAP else (1,)
    session.send(queue, JmsMessage(message_type=kind, content=content))
    consumer = session.consumer(queue)
    take(consumer)
    session.recover()
    assert take(consumer).message.content == content


@pytest.mark.capability(Capability.TYPED_CONTENT)
def test_numbers_and_characters_beyond_texts(connection: Connection, queue: Queue) -> None:
    session = connection.session()
    content = (float("inf"), Float(2.0**-140), 5e-324, -0.0)
    session.send(queue, JmsMessage(message_type=MessageType.STREAM, content=content))
    received = take(session.consumer(queue)).message
    assert [(type(one), repr(one)) for one in received.content] == [(type(one), repr(one)) for one in content]
