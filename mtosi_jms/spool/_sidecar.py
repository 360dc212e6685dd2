"""Headers, properties and content of a message as JSON: in the databases of outbox and inbox, and in sidecar files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from mtosi_jms.errors import SpoolError
from mtosi_jms.jms import KINDS, Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import (
    BodyValue,
    Byte,
    Char,
    Content,
    DeliveryMode,
    Float,
    JmsMessage,
    Long,
    MessageType,
    PropertyValue,
    Short,
    jms_type_name,
)

FORMAT: Final = 2
T = TypeVar("T")


class Sidecar(NamedTuple):
    """The content of a sidecar file."""

    facts: JmsMessage
    received_ms: int
    sha256: str
    size: int


def encode_facts(message: JmsMessage) -> bytes:
    """Headers, properties, content and message type as ASCII JSON. The body is left out."""
    return json.dumps(_to_json(message), separators=(",", ":")).encode("ascii")


def decode_facts(facts: bytes, body: bytes) -> JmsMessage:
    """Build a message from what `encode_facts` made and a body. Raises ValueError, TypeError, LookupError,
    OverflowError, RecursionError: `facts` is something else."""
    return replace(_from_json(json.loads(facts)), body=body)


def encode_sidecar(sidecar: Sidecar) -> bytes:
    document = {
        "format": FORMAT,
        "received_ms": sidecar.received_ms,
        "sha256": sidecar.sha256,
        "size": sidecar.size,
        **_to_json(sidecar.facts),
    }
    document["checksum"] = _checksum(document)
    return json.dumps(document, indent=1).encode("ascii") + b"\n"


def decode_sidecar(data: bytes, path: Path) -> Sidecar:
    """Parse a sidecar file. Raises SpoolError: it is damaged, or its format is unknown."""
    try:
        document = json.loads(data)
        version = _get(document, "format", int)
        if version != FORMAT:
            raise SpoolError(str(path), f"sidecar format {version} is unknown: another version of mtosi-jms wrote it")
        if _get(document, "checksum", str) != _checksum(document):
            raise ValueError("its checksum does not match")
        return Sidecar(
            _from_json(document),
            _get(document, "received_ms", int),
            _get(document, "sha256", str),
            _get(document, "size", int),
        )
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as exc:
        raise SpoolError(str(path), f"damaged sidecar: {exc}") from exc


def _checksum(document: dict[str, Any]) -> str:
    """SHA-256 of every member except `checksum`, in hexadecimal. Sidecars on disk depend on this exact JSON form."""
    content = {name: value for name, value in document.items() if name != "checksum"}
    return sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def _to_json(message: JmsMessage) -> dict[str, Any]:
    headers = {
        "JMSDestination": _destination_to_json(message.destination),
        "JMSReplyTo": _destination_to_json(message.reply_to),
        "JMSDeliveryMode": message.delivery_mode.name,
        "JMSPriority": message.priority,
        "JMSTimeToLive": message.time_to_live_ms,  # no header of JMS: what the sender requested
        "JMSDeliveryDelay": message.delivery_delay_ms or None,  # the same
        "JMSMessageID": message.message_id,
        "JMSTimestamp": message.timestamp_ms,
        "JMSExpiration": message.expiration_ms,
        "JMSDeliveryTime": message.delivery_time_ms or None,
        "JMSCorrelationID": message.correlation_id,
        "JMSType": message.jms_type,
        "JMSRedelivered": message.redelivered,
        "JMSXDeliveryCount": message.delivery_count,
    }
    return {
        "message_type": message.message_type.value,
        "headers": {name: value for name, value in headers.items() if value is not None},
        "properties": {name: _property_to_json(value) for name, value in message.properties.items()},
        **_content_to_json(message.content),
    }


def _from_json(document: Any) -> JmsMessage:
    headers = _get(document, "headers", dict)
    properties = _get(document, "properties", dict)
    return JmsMessage(
        message_type=MessageType(_get(document, "message_type", str)),
        content=_content_from_json(document.get("content")),
        properties={name: _property_from_json(value) for name, value in properties.items()},
        destination=_destination_from_json(headers.get("JMSDestination")),
        reply_to=_destination_from_json(headers.get("JMSReplyTo")),
        delivery_mode=DeliveryMode[_get(headers, "JMSDeliveryMode", str)],
        priority=_get(headers, "JMSPriority", int),
        time_to_live_ms=_get(headers, "JMSTimeToLive", int),
        delivery_delay_ms=_get_or_none(headers, "JMSDeliveryDelay", int) or 0,
        message_id=_get_or_none(headers, "JMSMessageID", str),
        timestamp_ms=_get_or_none(headers, "JMSTimestamp", int),
        expiration_ms=_get(headers, "JMSExpiration", int),
        delivery_time_ms=_get_or_none(headers, "JMSDeliveryTime", int) or 0,
        correlation_id=_get_or_none(headers, "JMSCorrelationID", str),
        jms_type=_get_or_none(headers, "JMSType", str),
        redelivered=_get(headers, "JMSRedelivered", bool),
        delivery_count=_get(headers, "JMSXDeliveryCount", int),
    )


def _get(table: Any, name: str, kind: type[T]) -> T:
    """A member of exactly this type: isinstance would take true for an int."""
    value = table[name]
    if type(value) is not kind:
        raise TypeError(f"{name} must be {kind.__name__}")
    return value


def _get_or_none(table: dict[str, Any], name: str, kind: type[T]) -> T | None:
    return _get(table, name, kind) if name in table else None


def _property_to_json(value: PropertyValue) -> dict[str, PropertyValue]:
    kind = jms_type_name(value)
    return {"type": kind, "value": repr(float(value)) if isinstance(value, float) else value}  # JSON has no infinities


def _property_from_json(item: Any) -> PropertyValue:
    kind = _get(item, "type", str)
    if kind == "String":
        return _get(item, "value", str)
    if kind == "Boolean":
        return _get(item, "value", bool)
    if kind in _FLOATS:
        return _FLOATS[kind](_get(item, "value", str))
    if kind in _INTEGERS:
        return _INTEGERS[kind](_get(item, "value", int))
    raise ValueError(f"property type {kind!r} is not known")


_FLOATS: Final[dict[str, type[float]]] = {"Float": Float, "Double": float}
_INTEGERS: Final[dict[str, type[int]]] = {"Byte": Byte, "Short": Short, "Integer": int, "Long": Long}


def _content_to_json(content: Content) -> dict[str, Any]:
    """Nothing for messages that have a body."""
    if isinstance(content, Mapping):
        return {"content": {name: _value_to_json(value) for name, value in content.items()}}
    return {"content": [_value_to_json(value) for value in content]} if content else {}


def _content_from_json(found: Any) -> Content:
    if isinstance(found, dict):
        return {name: _value_from_json(value) for name, value in found.items()}
    return [_value_from_json(value) for value in found or ()]


def _value_to_json(value: BodyValue) -> Any:
    if value is None:
        return None
    if isinstance(value, bytes):
        return {"type": "Bytes", "value": value.hex()}
    return {"type": "Char", "value": str(value)} if isinstance(value, Char) else _property_to_json(value)


def _value_from_json(item: Any) -> BodyValue:
    if item is None:
        return None
    kind = _get(item, "type", str)
    if kind == "Bytes":
        return bytes.fromhex(_get(item, "value", str))
    return Char(_get(item, "value", str)) if kind == "Char" else _property_from_json(item)


def _destination_to_json(destination: Destination | None) -> dict[str, str] | None:
    if destination is None:
        return None
    shown = {"kind": destination.kind, "name": destination.name}
    if isinstance(destination, (TemporaryQueue, TemporaryTopic)) and destination.owner:
        shown["owner"] = destination.owner
    return shown


def _destination_from_json(item: Any) -> Destination | None:
    if item is None:
        return None
    kind, name = KINDS[_get(item, "kind", str)], _get(item, "name", str)
    if issubclass(kind, (TemporaryQueue, TemporaryTopic)):
        return kind(name, _get_or_none(item, "owner", str) or "")
    return kind(name)
