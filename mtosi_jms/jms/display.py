"""JMS messages for people to read: credentials masked, times in UTC."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import XmlError
from mtosi_jms.jms.message import DUPLICATE_ID, JmsMessage
from mtosi_jms.masking import MASK, is_secret, without_login
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import parse_xml

__all__ = ["headers_of", "mask_credentials", "moment", "shown_body", "shown_properties"]

_NAME: Final = "propName"
_VALUE: Final = "propValue"


def headers_of(message: JmsMessage) -> dict[str, Any]:
    """Return the JMS headers of a message, by the names that `--json` prints."""
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
    """Return the properties of a message, with credentials masked unless `secrets`."""
    return {name: value if secrets else _shown(name, value) for name, value in properties.items()}


def _shown(name: str, value: Any) -> Any:
    if is_secret(name):
        return MASK
    if isinstance(value, float) and not math.isfinite(value):  # JSON has none of these
        return str(value)
    return without_login(value) if isinstance(value, str) else value


def moment(milliseconds: int | None) -> str | None:
    """Return milliseconds since 1970 as date and time in UTC; None for None."""
    if milliseconds is None:
        return None
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # a peer may send any number
        return str(milliseconds)


def shown_body(body: bytes, *, secrets: bool = False) -> str | None:
    """Return a document as text, with credentials masked unless `secrets`; None if it is not XML."""
    if secrets:
        return body.decode("utf-8", "backslashreplace")
    try:
        root = parse_xml(body, odd_prefixes=[])
    except XmlError:
        return None
    mask_credentials(root)
    return str(etree.tostring(root, encoding="unicode"))


def mask_credentials(root: etree._Element) -> None:
    """Mask credentials in an element, by the names of elements, attributes and properties in lists."""
    for element in list(root.iter()):
        if isinstance(element.tag, str):
            for name, value in element.items():
                element.set(name, MASK if is_secret(split_clark(name)[1]) else without_login(value))
            if is_secret(_name_of(element)):
                _empty(element)
        element.text, element.tail = (text and without_login(text) for text in (element.text, element.tail))


def _name_of(element: etree._Element) -> str:
    """Return the local name of an element; for the value of a property, the name of the property."""
    local = split_clark(str(element.tag))[1]
    around = element.getparent()
    if local != _VALUE or around is None:
        return local
    return " ".join(child.text or "" for child in around if split_clark(str(child.tag))[1] == _NAME)


def _empty(element: etree._Element) -> None:
    if len(element) or (element.text or "").strip():
        del element[:]
        element.text = MASK
    for name in element.attrib:
        element.set(name, MASK)
