"""What brokers refuse, and in which words: ERROR frames as errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mtosi_jms.errors import (
    AuthenticationError,
    ClientIdInUseError,
    IllegalStateError,
    InvalidDestinationError,
    LoginRefusedError,
    MessageRefusedError,
    MtosiError,
    ResourceLimitError,
    SelectorError,
    TransportError,
)
from mtosi_jms.masking import without
from mtosi_jms.transport.stomp.options import Address

_SHOWN: Final = 300
"""Characters of what the broker says that are told."""


# What brokers say in ERROR frames, most specific first.
_WORDS: Final[tuple[tuple[tuple[str, ...], type[MtosiError]], ...]] = (
    (("InvalidClientID", "already connected from"), ClientIdInUseError),
    (("InvalidSelector", "Invalid selector"), SelectorError),
    (("password is invalid", "AMQ229031"), LoginRefusedError),
    (("is not authorized", "Security", "AMQ229032"), AuthenticationError),
    (("DestinationDoesNotExist", "InvalidDestination", "No durable subscription exists"), InvalidDestinationError),
    (("Durable consumer is in use",), IllegalStateError),
    (("maximum data length", "maximum header size", "maximum number of headers"), MessageRefusedError),
    (("ResourceAllocation", "Usage Manager", "is full"), ResourceLimitError),
)


def refusal(address: Address, headers: Mapping[str, str], body: bytes, *, secret: str) -> MtosiError:
    """The error of an ERROR frame.

    Args:
        address: of the broker.
        headers, body: of the frame.
        secret: must not be in the text, whatever the broker says.
    """
    told = body.decode("utf-8", "replace").partition("\n")[0].strip()
    told = told if ": " in told or len(told) > len(headers.get("message", "")) else headers.get("message", told)
    told = told.partition(" CoreMessage[")[0]  # Artemis shows the message, with all that its properties hold
    other = MessageRefusedError if "receipt-id" in headers else TransportError  # it says to which frame it answers
    kind = next((kind for words, kind in _WORDS if any(word in told for word in words)), other)
    text = f"{address}: {without(told, secret)[:_SHOWN]}"
    if issubclass(kind, AuthenticationError):
        text = f"{text}; check user and password, and what this user may do"
    return kind(text)
