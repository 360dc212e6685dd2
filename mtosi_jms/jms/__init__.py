"""JMS without MTOSI: messages, destinations, naming, typed text and selectors. No socket, thread or clock."""

from __future__ import annotations

from mtosi_jms.jms._destinations import KINDS, Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.jms._naming import NamesSource, NamingContext
from mtosi_jms.jms._uri import JmsUri, is_jms_uri, shown
from mtosi_jms.jms.message import (
    DUPLICATE_ID,
    RUN_ID,
    BodyValue,
    Byte,
    Char,
    Content,
    DeliveryMode,
    Float,
    FrozenMap,
    JmsMessage,
    Long,
    MessageType,
    Properties,
    PropertyValue,
    Short,
)

__all__ = [
    "DUPLICATE_ID",
    "KINDS",
    "RUN_ID",
    "BodyValue",
    "Byte",
    "Char",
    "Content",
    "DeliveryMode",
    "Destination",
    "Float",
    "FrozenMap",
    "JmsMessage",
    "JmsUri",
    "Long",
    "MessageType",
    "NamesSource",
    "NamingContext",
    "Properties",
    "PropertyValue",
    "Queue",
    "Short",
    "TemporaryQueue",
    "TemporaryTopic",
    "Topic",
    "is_jms_uri",
    "shown",
]
