"""Temporary destinations over STOMP.

ActiveMQ makes one when a connection first uses `/temp-queue/NAME`, and names it by its own id for the connection and a
number, which STOMP does not show; others send to it by that name. Ours stays valid after a reconnect; messages to the
old queue are lost."""

from __future__ import annotations

import threading
import uuid
from contextlib import closing
from typing import Final

from mtosi_jms.errors import TransportError
from mtosi_jms.jms import Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.transport._session_core import T
from mtosi_jms.transport.stomp._dialect import STAND_IN, Dialect
from mtosi_jms.transport.stomp._frames import Frame
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._subscriptions import Collector

_PREFIXES: Final[dict[type[Destination], str]] = {TemporaryQueue: "/temp-queue/", TemporaryTopic: "/temp-topic/"}
_PAST: Final = "1"
"""An expiration in the past: a message with it creates the destination and then disappears."""


class Temporaries:
    """The temporary destinations of one connection. `collector` receives messages that it sends to itself."""

    def __init__(self, owner: str, client_id: str, dialect: Dialect, collector: Collector) -> None:
        self._owner = owner
        self._client_id = client_id
        self._dialect = dialect
        self._collector = collector
        self._making = threading.Lock()
        self._addresses: dict[Destination, str] = {}
        self._by_address: dict[str, Destination] = {}
        self._link: Link | None = None
        self._name = ""
        self._made = 0

    def __contains__(self, destination: Destination) -> bool:
        return destination in self._addresses

    def address(self, destination: Destination) -> str | None:
        return self._addresses.get(destination)

    def destination(self, address: str) -> Destination | None:
        """The one of ours that has the header; None for any other."""
        return self._by_address.get(address)

    def make(self, kind: type[T], link: Link) -> T:
        alias = uuid.uuid4().hex
        if not self._dialect.temporary:
            made = kind(STAND_IN + alias, self._owner)
            self._note(made, made.name)
            return made
        with self._making:
            self._know(link)
            address = _PREFIXES[kind] + alias
            made = kind(f"{self._name}:{self._made + 1}", self._owner)
            proof = self._dialect.address(made)
            link.send([_touch(address), _touch(proof)], confirmed=True)
            self._made += 1
        self._note(made, address)
        return made

    def restore(self, link: Link) -> None:
        """Makes the destinations again on a new link, where the broker gives them other names."""
        if self._dialect.temporary and self._addresses:
            with self._making:
                link.send([_touch(address) for address in self._addresses.values()], confirmed=True)
                self._link, self._name, self._made = link, "", len(self._addresses)

    def _note(self, destination: Destination, address: str) -> None:
        self._addresses[destination] = address
        self._by_address[address] = destination

    def _know(self, link: Link) -> None:
        if self._link is not link:
            self._link, self._name, self._made = link, "", 0
        if self._name:
            return
        self._name = self._dialect.connection_id(link.headers, self._client_id) or self._request_name(link)

    def _request_name(self, link: Link) -> str:
        """Returns the connection's name, from the id of a message that it sends to itself: ids begin with that name."""
        address = _PREFIXES[TemporaryQueue] + uuid.uuid4().hex
        link.send([("SEND", {"destination": address}, b"?")], confirmed=True)
        self._made += 1
        with closing(self._collector.collect(link, address, {})) as answers:
            headers, _ = next(answers)
        name = headers.get("message-id", "").rsplit(":", 3)[0]
        if not name.startswith("ID:"):
            raise TransportError(f"{link.address}: a message id that does not tell the connection's name")
        return name


def _touch(address: str) -> Frame:
    return "SEND", {"destination": address, "expires": _PAST}, b""
