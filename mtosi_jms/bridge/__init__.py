"""A bridge between JMS and OMG's Notification Service, based on the mapping of formal/04-10-09.

`omg` maps messages and events, without ORB and without Java. A `Bridge` forwards between a JMS destination and a
channel, which `corba` finds behind an ORB. The bridge does not handle loops and duplicates in larger topologies
(000-B22).
"""

from __future__ import annotations

from mtosi_jms.bridge._keeper import LOSS_CLEARED, LOSS_OCCURRED, BridgeOptions, EventLoss
from mtosi_jms.bridge.admin import (
    Bridge,
    BridgeFactory,
    BridgeStatus,
    ExternalEndpoint,
    ExternalEndpointRole,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.endpoints import FlowStyle
from mtosi_jms.bridge.omg import BridgeRules

__all__ = [
    "LOSS_CLEARED",
    "LOSS_OCCURRED",
    "Bridge",
    "BridgeFactory",
    "BridgeOptions",
    "BridgeRules",
    "BridgeStatus",
    "EventLoss",
    "ExternalEndpoint",
    "ExternalEndpointRole",
    "FlowStyle",
    "JMSDestination",
    "JMSDestinationType",
    "MessageType",
]
