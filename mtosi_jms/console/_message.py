"""Formats one message for people: JMS headers, properties, MTOSI header, body. Credentials are masked."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._facts import read_message
from mtosi_jms.console._pages import Render
from mtosi_jms.console._traffic import Seen
from mtosi_jms.errors import MissingExtraError, XmlError
from mtosi_jms.header import BY_TAG
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.display import headers_of, mask_credentials, shown_properties
from mtosi_jms.jms.message import jms_type_name
from mtosi_jms.namespaces import SOAP11, SOAP12, XSI, clark, local_name, split_clark
from mtosi_jms.xmlbind import parse_xml

try:
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingExtraError("starlette", "console") from error

FORMS: Final = {"tree": "Tree", "table": "Table", "xml": "XML", "json": "JSON"}
"""How a message can be shown."""
NODES: Final = BOUNDS.console_tree
"""Most elements of a body that are shown as a tree."""
TEXT: Final = BOUNDS.console_text
"""Most characters of an envelope that are shown."""
_VALUE: Final = 2_000
_NOTHING: Final = {"fields": (), "tree": (), "rows": (), "left_out": 0, "text": "", "cut": 0}
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


def seen_of(message: JmsMessage, where: str, at_ms: int) -> Seen:
    """A message that is read for one page."""
    return Seen(0, at_ms, "waiting", where, where, read_message(message).facts, message, len(message.body))


def message_answer(page: Render, request: Request, seen: Seen, **context: Any) -> Response:
    """The page of a message, or with `download` its document as a file. Credentials are masked in both."""
    form = request.query_params.get("as", "tree")
    form = form if form in FORMS else "tree"
    if (wanted := request.query_params.get("download", "")) in ("xml", "json"):
        found = shown(seen, wanted, whole=True)
        if found["text"]:
            name = re.sub(r"[^\w.-]", "_", seen.facts.correlation_id or str(seen.message.message_id or seen.number))[
                :80
            ]
            headers = {"Content-Disposition": f'attachment; filename="{name}.{wanted}"'}
            return Response(found["text"], 200, headers, f"application/{wanted}")
    return page(request, "message", seen=seen, shown=shown(seen, form), form=form, forms=FORMS, **context)


def shown(seen: Seen, form: str = "tree", *, whole: bool = False) -> dict[str, Any]:
    """What the page shows of a message in one of `FORMS`: headers and properties; of a body that is XML, the fields of
    its MTOSI header, its tree, its leaves by their path (the first `NODES`) and the indented text, cut unless `whole`;
    else why there is none."""
    message = seen.message
    headers = [("destination", seen.destination)] if seen.destination else []
    found = headers_of(message)
    headers += [(label, str(found[name])) for name, label in _JMS.items() if found[name] not in (None, "", False)]
    masked = shown_properties(message.properties)
    properties = [(name, jms_type_name(value), _cut(masked[name])) for name, value in message.properties.items()]
    root, problem = _document(seen, message)
    if root is None:
        return {**_NOTHING, "headers": headers, "properties": sorted(properties), "problem": problem}
    mask_credentials(root)
    header = next(root.iter(*BY_TAG), None)
    body = next((child for child in root if child.tag in _BODIES), None)
    builder = _Builder()
    tree = [builder.node(child) for child in body if isinstance(child.tag, str)] if body is not None else []
    rows = list(islice(_leaves(root if body is None else body, ""), NODES)) if form == "table" else []
    if form == "json":
        headers_json = {"headers": headers_of(message), "properties": masked}
        text = json.dumps({**headers_json, "envelope": {local_name(root): _plain(root)}}, indent=2, ensure_ascii=False)
    else:
        etree.indent(root)
        text = str(etree.tostring(root, encoding="unicode"))
    return {
        "headers": headers,
        "properties": sorted(properties),
        "fields": [] if header is None else list(_fields(header)),
        "tree": tree,
        "left_out": builder.left_out,
        "rows": rows,
        "text": text if whole else text[:TEXT],
        "cut": max(len(text) - TEXT, 0),
        "problem": "",
    }


def _children(element: etree._Element) -> list[etree._Element]:
    return [child for child in element if isinstance(child.tag, str)]


def _plain(element: etree._Element) -> Any:
    """An element as JSON: its text, or an object with attributes as `@name`, and a list where a name comes again."""
    found: dict[str, Any] = {f"@{split_clark(str(name))[1]}": value for name, value in element.items()}
    text = (element.text or "").strip()
    for child in _children(element):
        name, value = local_name(child), _plain(child)
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    if not found:
        return text
    return {**found, "#text": text} if text else found


def _leaves(element: etree._Element, path: str) -> Iterator[tuple[str, str]]:
    """The leaves and attributes below an element; a name that comes again has its number."""
    children = _children(element)
    again = Counter(map(local_name, children))
    numbers: Counter[str] = Counter()
    for child in children:
        name = local_name(child)
        numbers[name] += 1
        here = f"{path}/{name}" + (f"[{numbers[name]}]" if again[name] > 1 else "")
        for attribute, value in child.items():
            yield f"{here}/@{split_clark(str(attribute))[1]}", _cut(value)
        if len(child):
            yield from _leaves(child, here)
        else:
            yield here, _cut((child.text or "").strip())


def _document(seen: Seen, message: JmsMessage) -> tuple[etree._Element | None, str]:
    if not seen.has_body:
        return None, f"The body, {seen.size:,} bytes, is too large to be kept."
    if not message.body:
        return None, "The message has no body, or the provider does not show it to a browser."
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
