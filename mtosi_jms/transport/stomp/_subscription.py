"""A subscription as the broker has it, and what came by it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport.stomp._frames import Frame
from mtosi_jms.transport.stomp._link import Link

if TYPE_CHECKING:
    from mtosi_jms.transport.stomp._consumer import StompConsumer

_MILLISECONDS: Final = 1000


class Subscription:
    """One SUBSCRIBE, made again on each new link under the same id.

    Args:
        number: its id, never used again by the connection.
        address: header of the destination.
        headers: those of the broker's own.
        consumer: whose messages they are.

    Attributes:
        number, consumer: the same.
        link: the link that has it; None before and after.
        made: whether the broker has confirmed it there.
        returns: whether the broker keeps what is not acknowledged, and delivers it again.
    """

    def __init__(self, number: str, address: str, headers: Mapping[str, str], consumer: StompConsumer) -> None:
        self.number = number
        self.consumer = consumer
        self.link: Link | None = None
        self.made = False
        self.returns = not consumer.destination.is_topic or consumer.durable is not None
        self._headers = {**headers, "id": number, "destination": address, "ack": "client-individual"}

    def anew(self, number: str) -> Subscription:
        """Another one like it, under an id of its own, that is yet to be made."""
        headers = dict(self._headers)
        return Subscription(number, headers.pop("destination"), headers, self.consumer)

    def frame(self) -> Frame:
        """The frame that makes it."""
        return "SUBSCRIBE", self._headers, b""

    def end(self) -> Frame:
        """The frame that ends it."""
        return "UNSUBSCRIBE", {"id": self.number}, b""


class Entry:
    """A message that came and is not acknowledged.

    Attributes:
        subscription: by which it came.
        link: on which.
        ack: what its ACK has to name.
        message: as it is handed out the next time.
        settled: whether it was acknowledged.
        told: whether the broker has its acknowledgement, in a transaction that is not committed.
    """

    __slots__ = ("ack", "link", "message", "settled", "subscription", "told")

    def __init__(self, subscription: Subscription, link: Link, ack: str, message: JmsMessage) -> None:
        self.subscription = subscription
        self.link = link
        self.ack = ack
        self.message = message
        self.settled = False
        self.told = False

    @property
    def is_stale(self) -> bool:
        """Whether its link is gone, so that the broker cannot be told."""
        return self.link is not self.subscription.link

    @property
    def comes_again(self) -> bool:
        """Whether the broker delivers it once more by itself."""
        return self.is_stale and self.subscription.returns

    def is_expired(self) -> bool:
        """Whether its time to live has passed while it was here."""
        return 0 < self.message.expiration_ms <= time.time() * _MILLISECONDS

    def acknowledgement(self) -> Frame:
        """The frame that acknowledges it."""
        return "ACK", {"id": self.ack}, b""
