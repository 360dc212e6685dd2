"""What brokers lack over STOMP and is made up for here: names of temporary destinations, durable subscriptions that
change, and what waits in a queue."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re
import threading
import uuid
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, Final

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import MtosiError, TransportError
from mtosi_jms.jms import Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.transport._session_core import ConsumerSpec, T
from mtosi_jms.transport.stomp._dialect import CONVERTING, STAND_IN, Dialect, artemis_selector
from mtosi_jms.transport.stomp._frames import Frame, Received
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._options import Address, StompOptions
from mtosi_jms.transport.stomp._subscriptions import Answer, Collector

_PREFIXES: Final[dict[type[Destination], str]] = {TemporaryQueue: "/temp-queue/", TemporaryTopic: "/temp-topic/"}
_PAST: Final = "1"
"""An expiration in the past: a message with it creates the destination and then disappears."""


class Temporaries:
    """The temporary destinations of one connection. `collector` receives messages that it sends to itself.

    ActiveMQ makes one when a connection first uses `/temp-queue/NAME`, and names it by its own id for the connection
    and a number, which STOMP does not show; others send to it by that name. Ours stays valid after a reconnect;
    messages to the old queue are lost."""

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


log = logging.getLogger(__package__)

_RECORDS: Final = "mtosi-jms.durable."
"""Prefix of the names of the queues that hold the records."""
_SPACES: Final = re.compile(r"'(?:[^']|'')*'|\s+")
_END: Final = "mtosi-end"
"""Header of the message behind which no older record comes."""


def has_changed(address: Address, options: StompOptions, spec: ConsumerSpec) -> bool:
    """Whether a durable subscription had another topic or selector before. Artemis would keep these: so the connection
    records them, in a queue of its own at the broker. Logs a change, or that the broker refuses the record."""
    text = f"{spec.destination.name}\n{spec.text or ''}"
    try:
        before = _exchanged(address, options, spec.durable or "", text)
    except MtosiError as error:
        log.warning(
            "durable subscription %r: whether its selector has changed cannot be told, and the broker keeps the old "
            "one: %s: %s",
            spec.durable,
            type(error).__name__,
            error,
        )
        return False
    if before is None or _spaced(before) == _spaced(text):
        return False
    log.warning(
        "durable subscription %r: topic and selector were %r and are %r: a new subscription replaces it, and what it "
        "kept is lost",
        spec.durable,
        before.replace("\n", " "),
        text.replace("\n", " "),
    )
    return True


def forget(address: Address, options: StompOptions, durable: str) -> None:
    """Removes the record of a subscription that was ended."""
    try:
        _exchanged(address, options, durable, None)
    except MtosiError as error:
        log.debug("the record of the durable subscription %r stays: %s", durable, type(error).__name__)


def _spaced(record: str) -> str:
    """Return a record with white space in its one form, but in literals."""
    return _SPACES.sub(lambda found: found[0] if found[0].startswith("'") else " ", record)


def _exchanged(address: Address, options: StompOptions, durable: str, text: str | None) -> str | None:
    """Puts a record in place of the one that is there, and returns that or None.

    On a connection of its own, because the broker ends one where it refuses anything. Raises MtosiError."""
    answers = Collector(threading.Lock(), options.send_timeout)

    def take(_: Link, frames: Sequence[Received]) -> None:
        for _command, headers, body in frames:
            answers.takes(headers.get("subscription", ""), headers, body)

    queue, end = f"{_RECORDS}{options.client_id}.{durable}", uuid.uuid4().hex
    link = Link(address, dataclasses.replace(options, client_id=""), take, lambda _: answers.end(), lambda _: None)
    link.open()
    try:
        link.send([_message(queue, {_END: end}, b"")], confirmed=True)
        headers = {"subscription-type": "ANYCAST"}
        found: list[Answer] = []
        with closing(answers.collect(link, queue, headers)) as records:
            for record in records:
                if record[0].get(_END) == end:
                    break
                found.append(record)
        if text is not None:
            link.send([_message(queue, {"persistent": "true"}, text.encode())], confirmed=True)
    except MtosiError as error:
        raise link.take_refused() or error from None
    finally:
        link.close(options.goodbye())
    texts = [body.decode() for headers, body in found if _END not in headers]
    return texts[-1] if texts else None


def _message(queue: str, headers: dict[str, str], body: bytes) -> Frame:
    return "SEND", {"destination": queue, "destination-type": "ANYCAST", **headers}, body


_ADDRESS: Final = "activemq.management"
_PAGE: Final = 5_000
"""Messages that are listed at a time."""
_DEFAULT: Final = 200
"""The broker's own management-browse-page-size."""
_LATEST: Final = 2**62
"""A time in milliseconds after that of every message."""
_RENAMED: Final = {"JMSReplyTo": "reply-to", "JMSCorrelationID": "correlation-id", "JMSType": "type"}
_ITS_OWN: Final = frozenset(
    ("address", "destination", "destination-type", "durable", "expiration", "messageID", "type", "userID")
)
_NONE: Final = "null"
"""What it counts messages under that lack the property."""
_NO_RESOURCE: Final = "AMQ229067"
"""The code in its answer where there is no such queue."""


class Management(Closeable):
    """Asks Artemis' management about one queue: its STOMP has no browser.

    It lists messages without bodies, and looks at as many as the broker's management-browse-page-size says. A long list
    is asked for in ranges of the time of sending. The user needs the permission `manage` for the management's address.
    """

    def __init__(self, collector: Collector, link: Link, spec: ConsumerSpec) -> None:
        self._collector = collector
        self._link = link
        self._queue = spec.destination
        self._selector = "" if spec.selector is None else artemis_selector(spec.selector)
        self._reply = STAND_IN + uuid.uuid4().hex
        self._asked = 0
        self._answers: Generator[Answer, Sequence[Frame] | None, None] | None = None

    def count(self) -> int:
        """Raises TransportError: there are more messages than the broker's management looks at for a selector."""
        total = self._count("")
        if not self._selector or not total:
            return total
        if total > self._looked_at():
            raise self._beyond(total)
        return self._count(self._filter())

    def count_by(self, names: Sequence[str]) -> dict[str | None, int]:
        """Raises TransportError: there are more messages than the broker's management looks at."""
        if (total := self._count("")) > self._looked_at():
            raise self._beyond(total)
        found: Counter[str | None] = Counter()
        for at, name in enumerate(names if total else ()):
            among = [f"{earlier} IS NULL" for earlier in names[:at]]
            told: dict[str, int] = json.loads(self._ask("countMessages", self._filter(among), name) or "{}")
            found[None] = told.pop(_NONE, 0)
            found.update(told)
            if not found[None]:
                break
        return +found

    def pages(self) -> Generator[list[dict[str, str]], None, None]:
        """Yields the headers of the messages as a MESSAGE frame has them. Raises TransportError: there are more than
        the broker's management looks at; the first ones came."""
        total = self._count("")
        if not total:
            return
        if total > self._looked_at():
            yield self._list(0, _LATEST)
            raise self._beyond(total)
        first = int(self._ask("getFirstMessageTimestamp") or 0)
        ranges = [(0, _LATEST, self._count(self._filter()))]
        while ranges:
            begin, end, count = ranges.pop()
            if count > _PAGE and end - begin > 1:
                middle = _middle(begin, end, first)
                later = self._count(self._filter(_sent(middle, end)))
                ranges += [(middle, end, later), (begin, middle, max(count - later, 0))]
            elif count:
                yield self._list(begin, end)

    def _list(self, begin: int, end: int) -> list[dict[str, str]]:
        found = self._ask("listMessagesAsJSON", self._filter(_sent(begin, end)))
        return [_headers(one) for one in json.loads(found or "[]")]

    def _count(self, text: str) -> int:
        return int(self._ask("countMessages", text) or 0)

    def _looked_at(self) -> int:
        """How many messages of a queue the broker's management looks at."""
        settings = self._ask("getAddressSettingsAsJSON", self._queue.name.partition("::")[0], resource="broker")
        return int(json.loads(settings or "{}").get("managementBrowsePageSize", _DEFAULT))

    def _beyond(self, total: int) -> TransportError:
        return TransportError(
            f"{self._queue}: the broker's management looks only at the first {self._looked_at():,} of {total:,} "
            "messages: raise its management-browse-page-size, or use its Java client, a URL that begins with jvm:"
        )

    def close(self) -> None:
        if self._answers is not None:
            self._answers.close()

    def _filter(self, among: Sequence[str] = ()) -> str:
        parts = [*([f"({self._selector})"] if self._selector else []), *among]
        return f"{CONVERTING}{' AND '.join(parts)}" if parts else ""

    def _ask(self, operation: str, *parameters: str, resource: str = "") -> Any:
        """The result of an operation; None where the queue does not exist."""
        self._asked += 1
        headers = {
            "destination": _ADDRESS,
            "reply-to": self._reply,
            "correlation-id": str(self._asked),
            "_AMQ_ResourceName": resource or f"queue.{self._queue.name.rpartition('::')[2]}",
            "_AMQ_OperationName": operation,
        }
        frames: list[Frame] = [("SEND", headers, json.dumps(parameters).encode())]
        try:
            if self._answers is None:
                route = {"subscription-type": "ANYCAST"}
                self._answers = self._collector.collect(self._link, self._reply, route, first=frames)
                told, body = next(self._answers)
            else:
                told, body = self._answers.send(frames)
            while told.get("correlation-id") != headers["correlation-id"]:  # it sometimes delivers an answer twice
                told, body = next(self._answers)
        except MtosiError as error:
            raise TransportError(
                f"{self._queue}: without a browser in its STOMP, the broker's management is asked, and did not answer: "
                f"has the user the permission manage for {_ADDRESS}? ({error})"
            ) from error
        if told.get("_AMQ_OperationSucceeded") == "true":
            return json.loads(body)[0]
        text = body.decode(errors="replace")
        if _NO_RESOURCE in text:
            return None
        raise TransportError(f"{self._queue}: the broker's management refused {operation}: {text[:300]}")


def _middle(begin: int, end: int, first: int) -> int:
    """A time between two others. By the geometric mean of their distances from the time of the first message: most
    times are near to that, and each question makes the broker look at the whole queue."""
    if begin < first < end:
        return first
    near, far = sorted((abs(begin - first), abs(end - first)))
    distance = min(max(math.isqrt((near + 1) * far), near + 1), far - 1)
    return first + distance if begin >= first else first - distance


def _sent(begin: int, end: int) -> list[str]:
    """The parts of a filter for messages sent in a range of time."""
    return [*([f"AMQTimestamp >= {begin}"] if begin else []), *([f"AMQTimestamp < {end}"] if end != _LATEST else [])]


def _headers(told: dict[str, Any]) -> dict[str, str]:
    """A message of the list as the headers of a frame."""
    number, durable, expires = (told.get(name) for name in ("messageID", "durable", "expiration"))
    headers = {_RENAMED.get(name, name): _text(value) for name, value in told.items() if name not in _ITS_OWN}
    headers |= {"message-id": f",{number}", "persistent": _text(bool(durable))}
    return {**headers, "expires": str(expires)} if expires else headers


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
