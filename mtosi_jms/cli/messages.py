"""JMS messages as commands show them: credentials masked, moments in UTC."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import XmlError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.masking import MASK, is_secret, without_login
from mtosi_jms.messages import DUPLICATE_ID
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import parse_xml

_NAME, _VALUE: Final = "propName", "propValue"


def headers_of(message: JmsMessage) -> dict[str, Any]:
    """What JMS says of a message, by the names that `--json` prints."""
    return {
        "message_id": message.message_id,
        "timestamp": moment(message.timestamp_ms),
        "expires": moment(message.expiration_ms or None),
        "priority": message.priority,
        "delivery_mode": message.delivery_mode.name,
        "message_type": message.message_type.value,
        "reply_to": None if message.reply_to is None else str(message.reply_to),
        "correlation_id": message.correlation_id,
        "jms_type": message.jms_type,
        "redelivered": message.redelivered,
        DUPLICATE_ID: message.properties.get(DUPLICATE_ID),
    }


def shown_properties(properties: Mapping[str, Any], *, secrets: bool = False) -> dict[str, Any]:
    """The properties of a message, those that may hold credentials masked."""
    return {name: value if secrets else _shown(name, value) for name, value in properties.items()}


def _shown(name: str, value: Any) -> Any:
    if is_secret(name):
        return MASK
    if isinstance(value, float) and not math.isfinite(value):  # which JSON has not
        return str(value)
    return without_login(value) if isinstance(value, str) else value


def moment(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 as date and time in UTC; None for none."""
    if milliseconds is None:
        return None
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # a peer says what it likes
        return str(milliseconds)


def shown_body(body: bytes) -> str | None:
    """A document as text, what may hold credentials masked; None where it is no XML, so that nobody knows what may."""
    try:
        root = parse_xml(body, odd_prefixes=[])
    except XmlError:
        return None
    for element in list(root.iter()):
        _mask(element)
    return str(etree.tostring(root, encoding="unicode"))


def _mask(element: etree._Element) -> None:
    if not isinstance(element.tag, str):  # a comment, or a processing instruction
        element.text = without_login(element.text or "")
        return
    named = next((child.text for child in element if _local(child) == _NAME), None)
    if is_secret(_local(element)) or (_local(element) == _VALUE and is_secret(_property_of(element))):
        _empty(element)
    elif element.text:
        element.text = without_login(element.text)
