"""The external endpoints of `CosBridgeAdmin`, and which pairs of them form a bridge (table 2-1)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.errors import InvalidExternalEndPoints
from mtosi_jms.jms import Destination, Queue, Topic

__all__ = [
    "CONSISTENCY",
    "BridgeStatus",
    "ExternalEndpoint",
    "ExternalEndpointErrorCode",
    "ExternalEndpointRole",
    "JMSDestination",
    "JMSDestinationType",
    "MessageType",
    "check_endpoints",
]


class ExternalEndpointRole(enum.Enum):
    """Whether events or messages come from an endpoint, or go to it."""

    SOURCE = "SOURCE"
    SINK = "SINK"


class JMSDestinationType(enum.Enum):
    """The two kinds of destinations."""

    QUEUE = "QUEUE"
    TOPIC = "TOPIC"


class MessageType(enum.Enum):
    """What an endpoint carries."""

    JMS_MESSAGE = "JMS_MESSAGE"
    STRUCTURED_EVENT = "STRUCTURED_EVENT"
    SEQUENCE_EVENT = "SEQUENCE_EVENT"


class ExternalEndpointErrorCode(enum.Enum):
    """What is wrong with an endpoint."""

    INVALID_CHANNELID = "INVALID_CHANNELID"
    INVALID_JMSDESTINATION = "INVALID_JMSDESTINATION"
    MISMATCH_ENDPOINTROLE_NOTIFSTYLE = "MISMATCH_ENDPOINTROLE_NOTIFSTYLE"


class BridgeStatus(enum.Enum):
    """Whether a bridge forwards: both of its sides are connected, and neither is stopped (000-B15, 000-X9)."""

    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"


@dataclass(frozen=True, slots=True)
class JMSDestination:
    """A destination of JMS. `destination_name`: its name at the provider, or in the naming context. `factory_name`:
    name of the connection factory, which the bridge factory must know."""

    destination_type: JMSDestinationType
    destination_name: str
    factory_name: str = ""

    @property
    def destination(self) -> Destination:
        made = Queue if self.destination_type is JMSDestinationType.QUEUE else Topic
        return made(self.destination_name)


@dataclass(frozen=True, slots=True)
class ExternalEndpoint:
    """One side of a bridge.

    Attributes:
        connector: a JMSDestination, or the id of a channel.
        style: who calls whom: a source of the style PUSH calls the bridge.
        type: JMS_MESSAGE goes with a JMSDestination, the others with a channel (000-B8).
    """

    role: ExternalEndpointRole
    connector: JMSDestination | int
    style: FlowStyle
    type: MessageType

    @property
    def grouping(self) -> Grouping:
        """How a channel's events travel."""
        return Grouping.SEQUENCE_EVENT if self.type is MessageType.SEQUENCE_EVENT else Grouping.STRUCTURED_EVENT


_PUSH, _PULL = FlowStyle.PUSH, FlowStyle.PULL
CONSISTENCY: Final[Mapping[tuple[str, FlowStyle, FlowStyle], bool]] = {
    ("channel to JMS", _PUSH, _PUSH): True,
    ("channel to JMS", _PULL, _PUSH): True,
    ("channel to JMS", _PUSH, _PULL): False,
    ("channel to JMS", _PULL, _PULL): False,
    ("JMS to channel", _PUSH, _PUSH): True,
    ("JMS to channel", _PUSH, _PULL): False,
    ("JMS to channel", _PULL, _PUSH): True,
    ("JMS to channel", _PULL, _PULL): True,
}
"""Table 2-1: whether a bridge supports a direction with these styles of source and sink (000-B5, 000-B6).

JMS has no sink that pulls. A JMS source that pushes to a sink that pulls would need a buffer, in which messages could
be lost. The specification leaves this to the bridge; this bridge does not support it.
"""


def check_endpoints(source: ExternalEndpoint, sink: ExternalEndpoint) -> str:
    """Checks that two endpoints can form a bridge (000-B9). Returns the direction: `channel to JMS` or `JMS to
    channel`. Raises InvalidExternalEndPoints: they cannot; it lists all problems of both."""
    found: list[tuple[str, str, str]] = []
    for role, one in ((ExternalEndpointRole.SOURCE, source), (ExternalEndpointRole.SINK, sink)):
        is_jms = one.type is MessageType.JMS_MESSAGE
        if one.role is not role:
            found.append((role.value, _MISMATCH, f"its role is {one.role.value}"))
        names_one = isinstance(one.connector, JMSDestination) and bool(one.connector.destination_name)
        if is_jms and not names_one:
            found.append((role.value, _NO_DESTINATION, "a JMS_MESSAGE goes with a JMSDestination that has a name"))
        if not is_jms and (isinstance(one.connector, bool) or not isinstance(one.connector, int)):
            found.append((role.value, _NO_CHANNEL, f"a {one.type.value} goes with the id of a channel"))
    directions = {True: "JMS to channel", False: "channel to JMS"}
    is_jms, other = (one.type is MessageType.JMS_MESSAGE for one in (source, sink))
    if is_jms is other:
        code = _NO_CHANNEL if is_jms else _NO_DESTINATION
        found.append(("SINK", code, "one side is a channel, and the other a destination of JMS"))
    elif not CONSISTENCY[directions[is_jms], source.style, sink.style]:
        found.append(("SINK", _MISMATCH, f"{directions[is_jms]}, {source.style.value} to {sink.style.value}"))
    if found:
        raise InvalidExternalEndPoints([one[:2] for one in found], [one[2] for one in found])
    return directions[is_jms]


_MISMATCH: Final = ExternalEndpointErrorCode.MISMATCH_ENDPOINTROLE_NOTIFSTYLE.value
_NO_CHANNEL: Final = ExternalEndpointErrorCode.INVALID_CHANNELID.value
_NO_DESTINATION: Final = ExternalEndpointErrorCode.INVALID_JMSDESTINATION.value
