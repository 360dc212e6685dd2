"""What a provider is and can do: its level of the JMS API, and the capabilities that a transport may lack."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from mtosi_jms.errors import ConfigError

ORIGINAL_DESTINATION: Final = "JMS_MTOSIX_originalDestination"
"""Property of a message in the provider's dead-letter queue: where it was sent to, with its kind: `queue:EMS.OS`."""
_VERSION: Final = re.compile(r"(\d+)\.(\d+)((\.\d+)*[a-z]?)")
_LEAST: Final = (1, 1)


class Capability(enum.Enum):
    """The JMS features that a transport may lack because its protocol does. Every transport has all others.

    ANY_TEXT: any characters in texts and headers, also U+0000 and other control characters. Other transports refuse
        these before anything is sent, as XML does.
    BEYOND_BMP: characters beyond U+FFFF in headers and properties. Other transports refuse them before anything is
        sent.
    BROWSE: `Session.browse`.
    BROWSE_WAITING: `browse` leaves out messages that were delivered and are not acknowledged.
    COMMIT_CHECKED: `commit` fails if the transaction sent to a temporary destination that is gone. With other
        transports the message is lost.
    DEAD_LETTER: the connection takes `max_deliveries` and `dead_letter`. Otherwise they are set up at the broker.
    DELIVERY_COUNT: `JmsMessage.delivery_count` counts over sessions and connections. Otherwise only `redelivered` is
        reliable.
    DELIVERY_DELAY: the provider holds a message back for `delivery_delay_ms` (JMS 2.0).
    DURABLE: durable subscriptions.
    DURABLE_RULES: the provider enforces the rules of durable subscriptions: a client id has one connection at a time,
        another topic or selector makes a new subscription, and an unknown name is an error.
    LARGE_HEADERS: headers and properties of more than 10,000 bytes, and more than 1,000 of them.
    MESSAGE_IDS: the message that `send` returns has its message id and timestamp as the receiver will see them.
    NO_LOCAL: `no_local` on topics.
    PRIORITY: a message of higher priority overtakes waiting ones; JMS requires only a best effort.
    REDELIVERED: a redelivered message is marked `redelivered` for any receiver. With other transports only the
        connection that received it before sees the mark.
    SAME_NAMES: a queue and a topic may have the same name.
    SELECTORS: consumers with a selector.
    SHARED_DURABLE: consumers of several sessions and connections share a durable subscription (JMS 2.0).
    TEMPORARY_CHECKED: sending to a temporary destination that is gone raises an error. With other transports the
        message is lost.
    TRANSACTED_RECEIVE: the messages that a transacted session receives are part of its transaction, not only its sends.
    TYPED_CONTENT: a MapMessage, a StreamMessage and a Message without body arrive as such, each value with its type.
        Other transports send them as typed text (`mtosi_jms.jms.typed`), which the SDK reads back.
    TYPED_PROPERTIES: every property arrives with the JMS type that it was sent with. With other transports only those
        that MTOSI knows do (R15).
    UNBUFFERED: a message waits at the provider until a consumer asks for it. Other transports prefetch messages, which
        no other consumer gets meanwhile, and which no later message of higher priority overtakes.
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
    """Return a version if it is a level of the JMS API that MTOSI can use. Raises ConfigError: it is below 1.1 (R1), or
    none."""
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None or not isinstance(version, str):
        raise ConfigError(f"JMS version {version!r}: it must be two numbers, such as 1.1, 2.0 or 3.1")
    if (int(found[1]), int(found[2])) < _LEAST:
        raise ConfigError(f"JMS version {version}: MTOSI requires JMS 1.1 or later (R1)")
    return version


@dataclass(frozen=True, slots=True)
class ConnectionMetadata:
    """Describes the provider (R1); an empty version is not told. Raises ConfigError: the level is below 1.1."""

    provider: str
    provider_version: str
    jms_version: str

    def __post_init__(self) -> None:
        check_jms_version(self.jms_version)


_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Control characters that neither XML nor a header may contain; tab, LF and CR are allowed."""


def check_body(body: bytes, *, controls: bool = False) -> None:
    """Raises ConfigError if a TextMessage cannot carry the body: it is not UTF-8, or has control characters."""
    if not controls and (found := _CONTROLS.search(body)):
        raise ConfigError(f"the body has the control character {found[0][0]:#04x} at byte {found.start()}")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"the body is not UTF-8 at byte {error.start}; send it as a BytesMessage") from None
