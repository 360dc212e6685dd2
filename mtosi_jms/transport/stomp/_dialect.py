"""The dialects of STOMP: how brokers name destinations, their own headers, and the JMS features that they support. The
`server` header of the CONNECTED frame identifies the broker."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from mtosi_jms.errors import TransportError
from mtosi_jms.jms import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.jms.message import MessageType
from mtosi_jms.jms.selector import Selector
from mtosi_jms.transport._descriptor import Capability
from mtosi_jms.transport._session_core import ConsumerSpec

_SERVER: Final = re.compile(r"([^/\s]+)(?:/([^\s]*))?")
_NAMED: Final = 100
"""Characters that are shown of what a broker calls itself and of its version."""
_FAST_TEXT: Final = 32_768
"""Size in bytes from which a text is sent with its length. ActiveMQ then does not search for its end, but shows two of
our headers as properties."""


STAND_IN: Final = "mtosi-jms.temporary."
"""Prefix of the names of destinations that stand in for temporary ones."""
_STAND_IN_NAME: Final = re.compile(re.escape(STAND_IN) + "[0-9a-f]{32}")
_OF_CLIENTS: Final = re.compile("ID:[^,?*>#]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Names that Artemis' clients give their temporary destinations: those of ActiveMQ's and of its own."""


class Dialect(ABC):
    """The base of all dialects.

    `references`: text beyond the Basic Multilingual Plane goes out as character references. `temporary`: the broker has
    temporary destinations; else they are queues that it deletes. `keeps_selector`: a durable subscription keeps its
    topic and selector whatever a later SUBSCRIBE says. `fails_commit`: a COMMIT fails, and the connection goes on,
    where something before it was refused."""

    provider: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    max_headers: ClassVar[int | None] = None
    max_header: ClassVar[int | None] = None
    references: ClassVar[bool] = False
    temporary: ClassVar[bool] = False
    fails_commit: ClassVar[bool] = False
    keeps_selector: ClassVar[bool] = False

    def __init__(self, version: str) -> None:
        self.version = version

    @abstractmethod
    def address(self, destination: Destination) -> str:
        """A destination's name in a header."""

    @abstractmethod
    def reply_address(self, destination: Destination) -> str:
        """The same for `reply-to`."""

    @abstractmethod
    def destination(self, text: str, headers: Mapping[str, str]) -> Destination | None:
        """What a header with a destination's name means; None where it means nothing."""

    @abstractmethod
    def sending(self, destination: Destination) -> dict[str, str]:
        """Headers that a SEND to the destination needs besides."""

    @abstractmethod
    def kind_of_body(self, message_type: MessageType, size: int) -> dict[str, str]:
        """Headers that distinguish text from bytes."""

    @abstractmethod
    def message_type(self, headers: Mapping[str, str]) -> MessageType: ...

    @abstractmethod
    def subscribing(self, spec: ConsumerSpec, window: int, owner: str = "") -> dict[str, str]:
        """Headers of a SUBSCRIBE besides destination, id and ack; `window` messages come before an ACK."""

    def marking(self, owner: str) -> dict[str, str]:
        """Headers by which a connection's own messages are known to its consumers with `no_local`."""
        return {}

    @abstractmethod
    def unsubscribing(self, durable: str) -> dict[str, str]:
        """Headers of the UNSUBSCRIBE that ends a durable subscription."""

    @abstractmethod
    def message_id(self, headers: Mapping[str, str]) -> str | None:
        """JMSMessageID of a received message; it stays the same at a redelivery."""

    @abstractmethod
    def origin(self, headers: Mapping[str, str]) -> Destination | None:
        """Where a message in the broker's dead-letter queue was sent to."""

    def connection_id(self, headers: Mapping[str, str], client_id: str) -> str | None:
        """The broker's name for the connection, if the CONNECTED frame has it."""
        return None


class ActiveMQ(Dialect):
    provider = "ActiveMQ"
    capabilities = frozenset(
        {
            Capability.BEYOND_BMP,
            Capability.BROWSE,
            Capability.COMMIT_CHECKED,
            Capability.DURABLE,
            Capability.DURABLE_RULES,
            Capability.NO_LOCAL,
            Capability.REDELIVERED,
            Capability.SAME_NAMES,
            Capability.SELECTORS,
            Capability.TEMPORARY_CHECKED,
            Capability.TRANSACTED_RECEIVE,
        }
    )
    max_headers = 1_000
    max_header = 10_000
    references = True
    temporary = True
    fails_commit = True

    _prefixes: Final[dict[type[Destination], str]] = {
        Queue: "/queue/",
        Topic: "/topic/",
        TemporaryQueue: "/remote-temp-queue/",
        TemporaryTopic: "/remote-temp-topic/",
    }

    def address(self, destination: Destination) -> str:
        return self._prefixes[type(destination)] + destination.name

    reply_address = address

    def destination(self, text: str, headers: Mapping[str, str]) -> Destination | None:
        for kind, prefix in self._prefixes.items():
            if text.startswith(prefix):
                return _made(kind, text.removeprefix(prefix))
        return None

    def sending(self, destination: Destination) -> dict[str, str]:
        return {}

    def kind_of_body(self, message_type: MessageType, size: int) -> dict[str, str]:
        """With only a length, Java gets a BytesMessage."""
        if message_type is MessageType.BYTES:
            return {"content-length": str(size)}
        return {"content-length": str(size), "amq-msg-type": "text"} if size >= _FAST_TEXT else {}

    def message_type(self, headers: Mapping[str, str]) -> MessageType:
        binary = "content-length" in headers and headers.get("amq-msg-type") != "text"
        return MessageType.BYTES if binary else MessageType.TEXT

    def subscribing(self, spec: ConsumerSpec, window: int, owner: str = "") -> dict[str, str]:
        """The broker itself adds what lets selectors compare numbers in text; twice is an error that stays in its
        cache."""
        headers = {"activemq.prefetchSize": str(window)}
        if spec.selector is not None:
            headers["selector"] = str(spec.selector)
        if spec.durable is not None:
            headers["activemq.subscriptionName"] = spec.durable
        if spec.no_local:
            headers["activemq.noLocal"] = "true"
        return headers

    def unsubscribing(self, durable: str) -> dict[str, str]:
        """The broker requires an id, but does not use it."""
        return {"id": f"unsubscribe {durable}", "activemq.subscriptionName": durable}

    def message_id(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("message-id")

    def origin(self, headers: Mapping[str, str]) -> Destination | None:
        text = headers.get("original-destination")
        return None if text is None else self.destination(text, {})

    def connection_id(self, headers: Mapping[str, str], client_id: str) -> str | None:
        """It is in `session`, unless the client id is there."""
        session = headers.get("session", "")
        return session if session.startswith("ID:") and session != client_id else None


class Artemis(Dialect):
    """ActiveMQ Artemis. Its NACK acknowledges, its ACK takes part in no transaction, and an ERROR ends the connection.
    In place of a temporary destination stands a queue of our own, deleted when it has no more consumers."""

    provider = "ActiveMQ Artemis"
    keeps_selector = True
    capabilities = frozenset(
        {
            Capability.BEYOND_BMP,
            Capability.DURABLE,
            Capability.LARGE_HEADERS,
            Capability.NO_LOCAL,
            Capability.PRIORITY,
            Capability.SAME_NAMES,
            Capability.SELECTORS,
        }
    )
    _prefixes: Final[dict[type[Destination], str]] = {
        Queue: "queue://",
        Topic: "topic://",
        TemporaryQueue: "temp-queue://",
        TemporaryTopic: "temp-topic://",
    }
    _stand_ins: Final[dict[type[Destination], type[Destination]]] = {TemporaryQueue: Queue, TemporaryTopic: Topic}
    _bytes_a_message: Final = 10_000
    """Bytes per message in a window, which counts bytes, two for each character of a text."""

    def address(self, destination: Destination) -> str:
        return destination.name

    def reply_address(self, destination: Destination) -> str:
        """The form from which its JMS client reads the kind. A stand-in must not look temporary: it would count as
        deleted."""
        kind = type(destination)
        if destination.name.startswith(STAND_IN):
            kind = self._stand_ins.get(kind, kind)
        return self._prefixes[kind] + destination.name

    def destination(self, text: str, headers: Mapping[str, str]) -> Destination | None:
        for kind, prefix in self._prefixes.items():
            if text.startswith(prefix):
                name = text.removeprefix(prefix)
                if _STAND_IN_NAME.fullmatch(name):
                    kind = next((one for one, other in self._stand_ins.items() if other is kind), kind)
                elif not _OF_CLIENTS.fullmatch(name):
                    # The broker does not check this word: a peer may call somebody else's queue temporary.
                    kind = self._stand_ins.get(kind, kind)
                return _made(kind, name)
        return _made(Topic if headers.get("destination-type") == "MULTICAST" else Queue, text)

    def sending(self, destination: Destination) -> dict[str, str]:
        return {"destination-type": _routing(destination)}

    def kind_of_body(self, message_type: MessageType, size: int) -> dict[str, str]:
        """Every message is delivered with a length, so bytes need a mark."""
        return {"content-length": str(size), "amq-msg-type": "bytes"} if message_type is MessageType.BYTES else {}

    def message_type(self, headers: Mapping[str, str]) -> MessageType:
        return MessageType.BYTES if headers.get("amq-msg-type") == "bytes" else MessageType.TEXT

    def subscribing(self, spec: ConsumerSpec, window: int, owner: str = "") -> dict[str, str]:
        """The broker's own `no-local` takes no selector with a prefix."""
        headers = {
            "subscription-type": _routing(spec.destination),
            # Bytes; as long as any are left, one more message is sent, so that 1 is one message at a time.
            "consumer-window-size": str((window - 1) * self._bytes_a_message + 1),
        }
        parts = [] if spec.selector is None else [artemis_selector(spec.selector)]
        if spec.no_local:
            parts.append(f"{_OWN} IS NULL OR {_OWN} <> '{owner}'")
        if parts:
            text = parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts)
            headers["selector"] = f"{CONVERTING}{text}"
        if spec.durable is not None:
            headers["durable-subscription-name"] = spec.durable
        return headers

    def marking(self, owner: str) -> dict[str, str]:
        return {_OWN: owner}

    def unsubscribing(self, durable: str) -> dict[str, str]:
        return {"durable-subscription-name": durable}

    def message_id(self, headers: Mapping[str, str]) -> str | None:
        """The JMS client's id if ActiveMQ's client sent it or the acceptor has `stompEnableMessageId`; else made of the
        number in the store, without the consumer's number before it."""
        known = headers.get("__HDR_MESSAGE_ID") or headers.get("amqMessageId")
        number = headers.get("message-id", "").rpartition(",")[2]
        return known or (f"ID:artemis-{number}" if number else None)

    def origin(self, headers: Mapping[str, str]) -> Destination | None:
        text = headers.get("_AMQ_ORIG_ADDRESS")
        return None if text is None else _made(Topic if headers.get("_AMQ_ORIG_ROUTING_TYPE") == "0" else Queue, text)


def _routing(destination: Destination) -> str:
    return "MULTICAST" if destination.is_topic else "ANYCAST"


def _made(kind: type[Destination], name: str) -> Destination | None:
    return kind(name) if name and name.isprintable() else None


_NAMES: Final = {
    "JMSPriority": "AMQPriority",
    "JMSDeliveryMode": "AMQDurable",
    "JMSTimestamp": "AMQTimestamp",
    "JMSMessageID": "AMQUserID",
}
_MODES: Final = {"'PERSISTENT'": "'DURABLE'", "'NON_PERSISTENT'": "'NON_DURABLE'"}
_WORD: Final = re.compile(r"'(?:[^']|'')*'|[^\W\d][\w$]*")
_OWN: Final = "__AMQ_CID"
"""The property with which the broker itself marks the messages of a connection."""
CONVERTING: Final = "convert_string_expressions:"
"""Prefix of a selector that compares text with numbers."""


def artemis_selector(selector: Selector) -> str:
    """Returns a selector with Artemis' own names for the headers, and names that are not ASCII in quotes."""
    replaced = _NAMES | (_MODES if "JMSDeliveryMode" in selector.identifiers else {})

    def word(found: re.Match[str]) -> str:
        text = found[0]
        return replaced.get(text, text) if text.isascii() or text.startswith("'") else f'"{text}"'

    return _WORD.sub(word, str(selector))


_DIALECTS: Final[dict[str, Callable[[str], Dialect]]] = {"ActiveMQ": ActiveMQ, "ActiveMQ-Artemis": Artemis}


def dialect_of(server: str, address: object) -> Dialect:
    """Returns the dialect for the `server` header of a broker. Raises TransportError: the broker is not supported."""
    found = _SERVER.match(server)
    made = _DIALECTS.get(found[1]) if found else None
    if made is None:
        known = ", ".join(_DIALECTS)
        raise TransportError(f"{address}: a STOMP broker that calls itself {server[:_NAMED]!r}; supported are {known}")
    return made((found[2] or "")[:_NAMED] if found else "")
