"""What Artemis' management tells of a queue: its STOMP has no browser.

It lists messages without bodies, and looks at as many of a queue as the broker's management-browse-page-size says. A
long list is asked for in ranges of the time of sending. The user needs the permission
`manage` for the management's address."""

from __future__ import annotations

import json
import math
import uuid
from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, Final

from mtosi_jms.closing import Closeable
from mtosi_jms.errors import MtosiError, TransportError
from mtosi_jms.transport._session_core import ConsumerSpec
from mtosi_jms.transport.stomp._dialect import CONVERTING, STAND_IN, artemis_selector
from mtosi_jms.transport.stomp._frames import Frame
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._subscriptions import Answer, Collector

_ADDRESS: Final = "activemq.management"
_PAGE: Final = 5_000
"""Messages that are listed at a time."""
_DEFAULT: Final = 200
"""The broker's own management-browse-page-size."""
_END: Final = 2**62
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
    """Asks about one queue over one link."""

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
            yield self._list(0, _END)
            raise self._beyond(total)
        first = int(self._ask("getFirstMessageTimestamp") or 0)
        ranges = [(0, _END, self._count(self._filter()))]
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
    return [*([f"AMQTimestamp >= {begin}"] if begin else []), *([f"AMQTimestamp < {end}"] if end != _END else [])]


def _headers(told: dict[str, Any]) -> dict[str, str]:
    """A message of the list as the headers of a frame."""
    number, durable, expires = (told.get(name) for name in ("messageID", "durable", "expiration"))
    headers = {_RENAMED.get(name, name): _text(value) for name, value in told.items() if name not in _ITS_OWN}
    headers |= {"message-id": f",{number}", "persistent": _text(bool(durable))}
    return {**headers, "expires": str(expires)} if expires else headers


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
