"""What a provider is and can do: its level of the JMS API, and what a way to it may lack."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from mtosi_jms.errors import ConfigError

_VERSION: Final = re.compile(r"(\d+)\.(\d+)((\.\d+)*[a-z]?)")
_LEAST: Final = (1, 1)


class Capability(enum.Enum):
    """What JMS has and a transport may lack, as its wire does. What is not here, every transport has.

    ANY_TEXT: any characters in texts and headers, U+0000 and other control characters as well; elsewhere they are
        refused before anything is sent, as XML refuses them.
    BEYOND_BMP: characters beyond U+FFFF in headers and properties; elsewhere they are refused before anything is sent.
    BROWSE: `Session.browse`.
    BROWSE_WAITING: `browse` leaves out what was handed out and is not acknowledged.
    COMMIT_CHECKED: a transaction that sends to a temporary destination which has gone is told at `commit`; elsewhere
        the message is lost.
    DEAD_LETTER: the connection itself takes `max_deliveries` and `dead_letter`; others have it set up at the broker.
    DELIVERY_COUNT: `JmsMessage.delivery_count` counts over sessions and connections; elsewhere `redelivered` alone
        tells.
    DELIVERY_DELAY: the provider keeps a message back for `delivery_delay_ms` (JMS 2.0).
    DURABLE: durable subscriptions.
    DURABLE_RULES: the provider itself holds their rules: a client id has one connection at a time, another topic or
        selector makes a new subscription, and an unknown name is told.
    LARGE_HEADERS: headers and properties of more than 10,000 bytes, and 1,000 of them and more.
    MESSAGE_IDS: the message that `send` returns has its message id and timestamp as the receiver will see them.
    NO_LOCAL: `no_local` on topics.
    PRIORITY: a message of higher priority overtakes those that wait; JMS asks only for a best effort.
    REDELIVERED: what comes again is marked `redelivered`, whoever receives it; elsewhere only the connection that had
        it before sees the mark.
    SAME_NAMES: a queue and a topic may have the same name.
    SELECTORS: consumers with a selector.
    SHARED_DURABLE: consumers of several sessions and connections share a durable subscription (JMS 2.0).
    TEMPORARY_CHECKED: sending to a temporary destination that has gone is told; elsewhere the message is lost.
    TRANSACTED_RECEIVE: what a transacted session receives is part of its transaction, and not its sends alone.
    TYPED_CONTENT: a MapMessage, a StreamMessage and a Message without body arrive as such, each value with its type;
        elsewhere they travel as typed text (`mtosi_jms.jms.typed`), which the SDK reads back.
    TYPED_PROPERTIES: every property arrives with the JMS type that it was sent with; elsewhere those that MTOSI knows
        do (R15).
    UNBUFFERED: a message waits at the provider until a consumer asks for it; elsewhere consumers are sent some ahead,
        which no other consumer gets meanwhile, and no later message of higher priority overtakes.
    """

    ANY_TEXT = "any text"
    BEYOND_BMP = "characters beyond U+FFFF in headers"
    BROWSE = "browse"
    BROWSE_WAITING = "browsing of waiting messages only"
    COMMIT_CHECKED = "temporary destinations checked at commit"
    DEAD_LETTER = "dead letters"
    DELIVERY_COUNT = "delivery count"
    DELIVERY_DELAY = "delivery delay"
    DURABLE = "durable subscriptions"
    DURABLE_RULES = "rules of durable subscriptions"
    LARGE_HEADERS = "large headers"
    MESSAGE_IDS = "message ids at sending"
    NO_LOCAL = "no local"
    PRIORITY = "order by priority"
    REDELIVERED = "mark of redelivery"
    SAME_NAMES = "a queue and a topic of one name"
    SELECTORS = "selectors"
    SHARED_DURABLE = "shared durable subscriptions"
    TEMPORARY_CHECKED = "temporary destinations checked at sending"
    TRANSACTED_RECEIVE = "transacted receiving"
    TYPED_CONTENT = "maps and streams"
    TYPED_PROPERTIES = "typed properties"
    UNBUFFERED = "unbuffered delivery"


ALL_CAPABILITIES: Final = frozenset(Capability)


def check_jms_version(version: object) -> str:
    """The version as it came, if it is a level of the JMS API that MTOSI may go over.

    Raises:
        ConfigError: it is below 1.1 (R1), or no version.
    """
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None or not isinstance(version, str):
        raise ConfigError(f"JMS version {version!r}: it must be two numbers, such as 1.1, 2.0 or 3.1")
    if (int(found[1]), int(found[2])) < _LEAST:
        raise ConfigError(f"JMS version {version}: MTOSI requires JMS 1.1 or later (R1)")
    return version


@dataclass(frozen=True, slots=True)
class ConnectionMetadata:
    """What is at the other end (R1).

    Attributes:
        provider: the provider's name.
        provider_version: its version, empty where the wire does not tell it.
        jms_version: the level of the JMS API that it serves.

    Raises:
        ConfigError: the level is below 1.1.
    """

    provider: str
    provider_version: str
    jms_version: str

    def __post_init__(self) -> None:
        check_jms_version(self.jms_version)
