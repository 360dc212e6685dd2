"""Formats one message for people: JMS headers, properties, MTOSI header, body. Credentials are masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._traffic import Seen
from mtosi_jms.errors import XmlError
from mtosi_jms.header import BY_TAG
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.display import headers_of, mask_credentials, shown_properties
from mtosi_jms.jms.message import jms_type_name
from mtosi_jms.namespaces import SOAP11, SOAP12, XSI, clark, split_clark
from mtosi_jms.xmlbind import parse_xml

NODES: Final = BOUNDS.console_tree
"""Most elements of a body that are shown as a tree."""
TEXT: Final = BOUNDS.console_text
"""Most characters of an envelope that are shown."""
_VALUE: Final = 2_000
_BODIES: Final = (clark(SOAP11, "Body"), clark(SOAP12, "Body"))
_JMS: Final = {
    "message_id": "JMSMessageID",
    "correlation_id": "JMSCorrelationID",
    "reply_to": "JMSReplyTo",
    "timestamp": "JMSTimestamp",
    "expires": "JMSExpiration",
    "priority": "JMSPriority",
    "delivery_mode": "JMSDeliveryMode",
    "jms_type": "JMSType",
    "redelivered": "JMSRedelivered",
    "message_type": "type",
}


class Node(NamedTuple):
    """An element of a body. `text`: its text, cut if it is long. `left_out`: number of elements below it that are not
    shown."""

    name: str
    attributes: str
    text: str
    children: list[Node]
    left_out: int


class Shown(NamedTuple):
    """A message as it is shown.

    Attributes:
        fields: names and texts of the fields of its MTOSI header.
        left_out: number of elements of the body that are not shown.
        envelope: the document, indented; empty if there is none.
        cut: number of its characters that are not shown.
        problem: why there is no document to show; empty if there is one.
    """

    headers: list[tuple[str, str]]
    properties: list[tuple[str, str, str]]
    fields: list[tuple[str, str]]
    tree: list[Node]
    left_out: int
    envelope: str
    cut: int
    problem: str


def shown(seen: Seen) -> Shown:
    """Formats a message for the page."""
    message = seen.message
    headers = [("destination", seen.destination)] if seen.destination else []
    found = headers_of(message)
    headers += [(label, str(found[name])) for name, label in _JMS.items() if found[name] not in (None, "", False)]
    masked = shown_properties(message.properties)
    properties = [(name, jms_type_name(value), _cut(masked[name])) for name, value in message.properties.items()]
    root, problem = _document(seen, message)
    if root is None:
        return Shown(headers, sorted(properties), [], [], 0, "", 0, problem)
    mask_credentials(root)
    header = next(root.iter(*BY_TAG), None)
    body = next((child for child in root if child.tag in _BODIES), None)
    builder = _Builder()
    tree = [builder.node(child) for child in body if isinstance(child.tag, str)] if body is not None else []
    etree.indent(root)
    text = str(etree.tostring(root, encoding="unicode"))
    return Shown(
        headers=headers,
        properties=sorted(properties),
        fields=list(_fields(header)) if header is not None else [],
        tree=tree,
        left_out=builder.left_out,
        envelope=text[:TEXT],
        cut=max(len(text) - TEXT, 0),
        problem="",
    )


def _document(seen: Seen, message: JmsMessage) -> tuple[etree._Element | None, str]:
    if not seen.has_body:
        return None, f"The body, {seen.size:,} bytes, is too large to be kept."
    if not message.body:
        return None, "The message has no body."
    try:
        return parse_xml(message.body, odd_prefixes=[]), ""
    except XmlError as error:
        return None, f"The body, {seen.size:,} bytes, is not XML and may hold credentials, so it is not shown: {error}"


def _fields(header: etree._Element) -> Iterator[tuple[str, str]]:
    for child in header:
        if isinstance(child.tag, str):
            yield split_clark(str(child.tag))[1], _cut(" ".join("".join(map(str, child.itertext())).split()))


class _Builder:
    """Makes nodes until there are enough."""

    def __init__(self) -> None:
        self.left_out = 0
        self._made = 0

    def node(self, element: etree._Element) -> Node:
        """An element with its content, up to the limit."""
        self._made += 1
        children: list[Node] = []
        left_out = 0
        for child in element:
            if not isinstance(child.tag, str):
                continue
            if self._made >= NODES:
                left_out += sum(1 for each in child.iter() if isinstance(each.tag, str))
            else:
                children.append(self.node(child))
        self.left_out += left_out
        return Node(
            split_clark(str(element.tag))[1],
            " ".join(f'{split_clark(str(name))[1]}="{value}"' for name, value in element.items() if XSI not in name),
            _cut((element.text or "").strip()),
            children,
            left_out,
        )


def _cut(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}… ({len(text):,} characters)"
