"""The JMS side of the binding: messages, destinations, naming and the switches. No socket, thread or clock."""

from __future__ import annotations

from mtosi_jms.jms.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.jms.message import DeliveryMode, JmsMessage, Long, MessageType, Properties, PropertyValue
from mtosi_jms.jms.naming import NamingContext
from mtosi_jms.jms.profile import BindingProfile

__all__ = [
    "BindingProfile",
    "DeliveryMode",
    "Destination",
    "JmsMessage",
    "Long",
    "MessageType",
    "NamingContext",
    "Properties",
    "PropertyValue",
    "Queue",
    "TemporaryQueue",
    "TemporaryTopic",
    "Topic",
]
