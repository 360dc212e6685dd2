"""The messages that somebody has seen lately: what a console shows. All of it is bounded.

`record` only puts a message down; whoever reads has what was put down sorted first. So a tap costs an application next
to nothing, and a console that is looked at by nobody costs no more.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeVar

from mtosi_jms.console._exchanges import Exchange, ExchangeView
from mtosi_jms.console._facts import Facts, facts_of, object_name_in
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.masking import without_login

K = TypeVar("K")
V = TypeVar("V")

Way = Literal["sent", "received", "published", "waiting", "landed"]

WINDOW: Final = 60
"""Seconds that a rate's drawing shows."""
_RECENT: Final = 5
"""Seconds of which a rate is the mean."""
_IDS: Final = 20_000
"""Message ids that are remembered, to know a message when it is seen again."""
_EVENTS: Final = 500
_TROUBLES: Final = 50


class Bounds(NamedTuple):
    """How much is kept.

    Attributes:
        messages: messages, at most.
        octets: of their bodies, at most.
        backlog: messages that may wait to be sorted; what comes beyond is counted and left out.
        exchanges: exchanges; those that are complete go first.
        destinations: destinations; the ones without traffic go first.
    """

    messages: int = 2_000
    octets: int = 64 * 2**20
    backlog: int = 20_000
    exchanges: int = 1_000
    destinations: int = 300


class Rate:
    """Counts by the second, of the last minute."""

    __slots__ = ("_counts", "_second")

    def __init__(self) -> None:
        self._counts = [0] * WINDOW
        self._second = 0

    def add(self, second: int) -> None:
        """Counts one."""
        self._turn(second)
        if second > self._second - WINDOW:
            self._counts[second % WINDOW] += 1

    def _turn(self, second: int) -> None:
        for each in range(max(self._second + 1, second - WINDOW + 1), second + 1):
            self._counts[each % WINDOW] = 0
        self._second = max(self._second, second)

    def series(self, now: int) -> list[int]:
        """The counts of the last minute, the present second left out."""
        self._turn(now)
        return [self._counts[each % WINDOW] for each in range(now - WINDOW + 1, now)]

    def mean(self, now: int) -> float:
        """How many a second there were lately."""
        return sum(self.series(now)[-_RECENT:]) / _RECENT


@dataclass(slots=True, eq=False)
class Place:
    """What is known of a destination.

    Attributes:
        name: with its kind, as `queue:EMS.OS`.
        total, size: messages that were seen there, and their octets.
        redelivered: of them those that were handed out before.
        last_ms: when the last one was seen, milliseconds since 1970 UTC.
        depth: messages that wait there; None where that is not known.
        depth_ms: when that was so.
        consumers: how many receive from there; None where that is not known.
        sources: where its messages were seen.
    """

    name: str
    total: int = 0
    size: int = 0
    redelivered: int = 0
    last_ms: int = 0
    depth: int | None = None
    depth_ms: int = 0
    consumers: int | None = None
    sources: set[str] = field(default_factory=set)
    rate: Rate = field(default_factory=Rate)


class Seen(NamedTuple):
    """A message that is kept.

    Attributes:
        number: tells it from others, in the order in which they were seen.
        at_ms: when, milliseconds since 1970 UTC.
        way: how it came to be seen.
        source: by whom.
        destination: where it was seen, as `queue:EMS.OS`; empty where that is not known.
        facts: what it says.
        message: itself; with no body where that is too large to be kept.
        size: octets of its body.
    """

    number: int
    at_ms: int
    way: Way
    source: str
    destination: str
    facts: Facts
    message: JmsMessage
    size: int

    @property
    def has_body(self) -> bool:
        """Whether the body is kept."""
        return len(self.message.body) == self.size


class _Put(NamedTuple):
    message: JmsMessage
    destination: str
    way: Way
    source: str
    at_ms: int
    is_whole: bool
    from_first: bool


class Overview(NamedTuple):
    """The numbers at the top of the console.

    Attributes:
        rate: messages a second.
        series: messages in each second of the last minute.
        seen: messages since the beginning.
        left_out: of those the ones that came too fast to be sorted.
        open, troubled, complete: exchanges that are kept, by how they stand.
        missing: batches that are missing.
        duplicates: replies that came again.
        notifications: since the beginning.
        troubles: what is wrong with the sources, the latest of each, by source.
    """

    rate: float
    series: list[int]
    seen: int
    left_out: int
    open: int
    troubled: int
    complete: int
    missing: int
    duplicates: int
    notifications: int
    troubles: dict[str, str]


class Traffic:
    """The messages, exchanges, destinations and notifications that were seen lately. Any thread may use it.

    Args:
        bounds: how much is kept.
        clock: seconds since 1970 UTC.
    """

    def __init__(self, bounds: Bounds | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.bounds = bounds or Bounds()
        self._clock = clock
        self._began_ms = int(clock() * 1000)
        self._put: deque[_Put] = deque()
        self._put_octets = 0
        self._left_out = 0
        self._sorted_out = 0
        self._lock = threading.Lock()
        self._numbers = 0
        self._seen: OrderedDict[int, Seen] = OrderedDict()
        self._octets = 0
        self._total = 0
        self._rate = Rate()
        self._ids: OrderedDict[str, int] = OrderedDict()
        self._unmatched: dict[bool, OrderedDict[int, int]] = {True: OrderedDict(), False: OrderedDict()}
        self._exchanges: OrderedDict[str, Exchange] = OrderedDict()
        self._exchange_numbers = 0
        self._requests: OrderedDict[str, str] = OrderedDict()
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._notified: Counter[tuple[str, str]] = Counter()
        self._event_rows: OrderedDict[int, Seen] = OrderedDict()
        self._troubles: OrderedDict[str, str] = OrderedDict()

    def record(
        self,
        message: JmsMessage,
        *,
        destination: Destination | str = "",
        way: Way = "received",
        source: str = "application",
        at_ms: int | None = None,
        is_whole: bool = True,
        from_first: bool = False,
    ) -> None:
        """A message was seen; returns at once.

        A message that has been seen already, told by its message id, is not counted again.

        Args:
            message: with its body; it is not changed.
            destination: where it was seen; by default where the message says that it goes.
            way: how it came to be seen.
            source: who has seen it, in a word or two.
            at_ms: when, milliseconds since 1970 UTC; by default now.
            is_whole: whether nothing that passes there can be missed. Else batches that are missing are no gap.
            from_first: whether all that ever passed there has been seen, as in a landing.
        """
        if len(self._put) >= self.bounds.backlog or self._put_octets > self.bounds.octets:
            self._left_out += 1
            return
        self._put_octets += len(message.body)
        where = str(destination or message.destination or "")
        now = int(self._clock() * 1000) if at_ms is None else at_ms
        self._put.append(_Put(message, where, way, source, now, is_whole, from_first))

    def set_depth(self, destination: Destination | str, depth: int | None, consumers: int | None = None) -> None:
        """So many messages wait at a destination now, for so many consumers; None: that is not known."""
        with self._lock:
            place = self._place(str(destination))
            place.depth, place.consumers = depth, consumers
            place.depth_ms = int(self._clock() * 1000)

    def set_trouble(self, source: str, text: str) -> None:
        """Something is wrong with a source; an empty text: not any more. Passwords of URLs are masked."""
        with self._lock:
            if not text:
                self._troubles.pop(source, None)
                return
            self._troubles[source] = without_login(text)
            while len(self._troubles) > _TROUBLES:
                self._troubles.popitem(last=False)

    def interrupted(self) -> None:
        """Messages may have passed unseen: of exchanges that are open nobody knows any more what is missing."""
        self.digest()
        with self._lock:
            self._doubt()

    def digest(self) -> None:
        """Sorts what was put down."""
        with self._lock:
            for _ in range(len(self._put)):
                put = self._put.popleft()
                self._put_octets -= len(put.message.body)
                self._take(put)
            if not self._put:
                self._put_octets = 0
            if self._left_out > self._sorted_out:
                self._sorted_out = self._left_out
                self._doubt()

    def _doubt(self) -> None:
        for exchange in self._exchanges.values():
            if exchange.end is None or exchange.missing:
                exchange.is_whole = False

    def _take(self, put: _Put) -> None:
        message = put.message
        if self._is_known(put):
            place = self._places.get(put.destination)
            if place is not None and message.redelivered:
                place.redelivered += 1
            return
        self._numbers += 1
        self._total += 1
        second = put.at_ms // 1000
        self._rate.add(second)
        facts = facts_of(message)
        size = len(message.body)
        if size > self.bounds.octets // 8:
            message = JmsMessage(
                properties=message.properties,
                destination=message.destination,
                reply_to=message.reply_to,
                message_id=message.message_id,
                timestamp_ms=message.timestamp_ms,
                correlation_id=message.correlation_id,
            )
        found = Seen(self._numbers, put.at_ms, put.way, put.source, put.destination, facts, message, size)
        if message.message_id is not None:
            _keep(self._ids, message.message_id, found.number, _IDS)
        self._remember(found)
        if put.destination:
            place = self._place(put.destination)
            place.total += 1
            place.size += size
            place.redelivered += message.redelivered
            place.last_ms = max(place.last_ms, put.at_ms)
            place.sources.add(put.source)
            place.rate.add(second)
        if facts.kind == "notification":
            self._notified[facts.category, facts.severity] += 1
            _keep(self._event_rows, found.number, found._replace(message=_NO_MESSAGE), _EVENTS)
        elif facts.kind != "other":
            self._follow(put, found)

    def _is_known(self, put: _Put) -> bool:
        """Whether a message has been seen already.

        An application that sends and receives has some messages twice, and not everybody who sends learns the message
        id. Then the body tells: each one that was sent without an id is the same as one that was received.
        """
        message = put.message
        if message.message_id is not None and message.message_id in self._ids:
            return True
        if put.way not in ("sent", "received"):
            return False
        has_id, body = message.message_id is not None, hash(message.body)
        others = self._unmatched[not has_id]
        left = others.pop(body, 0)
        if left > 1:
            others[body] = left - 1
        if left:
            if message.message_id is not None:
                _keep(self._ids, message.message_id, 0, _IDS)
            return True
        own = self._unmatched[has_id]
        _keep(own, body, own.get(body, 0) + 1, _IDS)
        return False

    def _remember(self, found: Seen) -> None:
        self._seen[found.number] = found
        self._octets += len(found.message.body)
        while len(self._seen) > self.bounds.messages or self._octets > self.bounds.octets:
            _, gone = self._seen.popitem(last=False)
            self._octets -= len(gone.message.body)

    def _place(self, name: str) -> Place:
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = Place(name)
            if len(self._places) > self.bounds.destinations:
                idle = min(self._places.values(), key=lambda one: (one is place, one.last_ms))
                del self._places[idle.name]
        return place

    def _follow(self, put: _Put, found: Seen) -> None:
        facts, message = found.facts, found.message
        key = facts.correlation_id or (message.correlation_id and self._requests.get(message.correlation_id))
        key = key or (message.message_id if facts.kind == "request" else message.correlation_id) or ""
        if not key:
            return
        if facts.kind == "request" and message.message_id is not None:
            _keep(self._requests, message.message_id, key, _IDS)
        exchange = self._exchanges.get(key)
        if exchange is None:
            self._exchange_numbers += 1
            exchange = Exchange(key, self._exchange_numbers, put.at_ms, put.at_ms, destination=put.destination)
            self._exchanges[key] = exchange
        exchange.is_whole = exchange.is_whole and put.is_whole
        exchange.sources.add(put.source)
        exchange.add(facts, at_ms=put.at_ms, size=found.size, from_first=put.from_first)
        self._exchanges.move_to_end(key)
        if len(self._exchanges) > self.bounds.exchanges:
            done = (one.key for one in islice(self._exchanges.values(), _LOOKED_AT) if one.is_done)
            del self._exchanges[next(done, None) or next(iter(self._exchanges))]

    def overview(self) -> Overview:
        """The numbers at the top."""
        self.digest()
        with self._lock:
            now = int(self._clock())
            states = Counter(_standing(one) for one in self._exchanges.values())
            return Overview(
                rate=self._rate.mean(now),
                series=self._rate.series(now),
                seen=self._total + self._left_out,
                left_out=self._left_out,
                open=states["open"],
                troubled=states["troubled"],
                complete=states["complete"],
                missing=sum(one.missing for one in self._exchanges.values()),
                duplicates=sum(one.duplicates for one in self._exchanges.values()),
                notifications=sum(self._notified.values()),
                troubles=dict(self._troubles),
            )

    def exchanges(self, show: str = "all", most: int = 100) -> list[ExchangeView]:
        """Exchanges, the one that began last first.

        Args:
            show: `all`, `open`, `troubled` (batches missing or duplicates, or a fault) or `complete`.
            most: how many at most.
        """
        self.digest()
        with self._lock:
            wanted = [one for one in self._exchanges.values() if show == "all" or _standing(one) == show]
            return [one.view() for one in sorted(wanted, key=lambda one: -one.number)[:most]]

    def exchange(self, key: str) -> ExchangeView | None:
        """One exchange by its correlationId; None where it is not known, or not any more."""
        self.digest()
        with self._lock:
            found = self._exchanges.get(key)
            return None if found is None else found.view()

    def messages(self, text: str = "", most: int = 100) -> list[Seen]:
        """Messages that are kept, the latest first.

        Args:
            text: a correlationId, a message id, or a part of either, of an operation's or a destination's name.
            most: how many at most.
        """
        self.digest()
        with self._lock:
            found = (one for one in reversed(self._seen.values()) if not text or _matches(one, text))
            return list(islice(found, most))

    def message(self, number: int) -> Seen | None:
        """One message by its number; None where it is not kept any more."""
        self.digest()
        with self._lock:
            return self._seen.get(number)

    def places(self) -> list[tuple[Place, float, list[int]]]:
        """Destinations by name, the temporary ones last, each with its rate and the counts of the last minute."""
        self.digest()
        with self._lock:
            now = int(self._clock())
            rows = [(replace(one), one.rate.mean(now), one.rate.series(now)) for one in self._places.values()]
            return sorted(rows, key=lambda row: (row[0].name.startswith("temporary"), row[0].name))

    def notified(self) -> dict[tuple[str, str], int]:
        """How many notifications there were, by category and severity."""
        self.digest()
        with self._lock:
            return dict(self._notified)

    def notifications(self, category: str = "", severity: str = "", most: int = 100) -> list[Seen]:
        """The latest notifications, without their messages.

        Args:
            category, severity: only these, where not empty.
            most: how many at most.
        """
        self.digest()
        with self._lock:
            found = (
                one
                for one in reversed(self._event_rows.values())
                if category in ("", one.facts.category) and severity in ("", one.facts.severity)
            )
            return [self._named(one) for one in list(islice(found, most))]

    def _named(self, event: Seen) -> Seen:
        """A notification with the name of its object, for which its body is read when somebody asks."""
        kept = self._seen.get(event.number)
        if event.facts.object_name or kept is None:
            return event
        name = object_name_in(kept.message.body) or event.facts.object_type or "unnamed"
        named = event._replace(facts=event.facts._replace(object_name=name))
        self._event_rows[event.number] = named
        return named


_NO_MESSAGE: Final = JmsMessage()
_LOOKED_AT: Final = 200
"""Exchanges among which one is looked for that can be forgotten without harm."""


def _standing(one: Exchange) -> Literal["open", "troubled", "complete"]:
    state = one.state
    if state in ("gap", "incomplete", "fault") or one.duplicates:
        return "troubled"
    return "open" if state == "open" else "complete"


def _matches(one: Seen, text: str) -> bool:
    message = one.message
    said: Iterable[str | None] = (
        one.facts.correlation_id,
        message.correlation_id,
        message.message_id,
        one.facts.operation,
        one.destination,
    )
    return any(text in each for each in said if each)


def _keep(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    kept[key] = value
    if len(kept) > most:
        kept.popitem(last=False)
