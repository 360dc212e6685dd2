"""The messages seen lately, which a console shows. All memory is bounded.

`record` only puts a message into a backlog; readers sort the backlog first. So a tap costs an application almost
nothing, also when nobody looks at the console.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

from mtosi_jms.binding.soap_jms import self_describing
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._alarms import Alarm, Alarms, AlarmState, Worst
from mtosi_jms.console._exchanges import Exchange
from mtosi_jms.console._facts import Facts, Read, narrowed, read_message
from mtosi_jms.errors import SpoolError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.masking import without_login
from mtosi_jms.spool import open_entry
from mtosi_jms.telemetry import Metrics

K = TypeVar("K")
V = TypeVar("V")

Way = Literal["sent", "received", "published", "waiting", "landed"]

WINDOW: Final = 60
"""Seconds that the drawing of a rate shows."""
_RECENT: Final = 5
"""Seconds over which a rate is averaged."""
_IDS: Final = 20_000
"""Number of message ids that are remembered, to recognise messages that are seen again."""
_SOURCES: Final = 50


class Bounds(NamedTuple):
    """Limits on what is kept.

    Attributes:
        messages: most messages.
        octets: most octets of their bodies; those of the oldest leave memory first.
        backlog: most messages that may wait to be sorted; further ones are counted and left out.
        exchanges: most exchanges; complete ones are dropped first.
        events: most notifications, without their bodies.
        alarms: most alarms; cleared ones are dropped first.
        destinations: most destinations; those idle for longest are dropped first.
    """

    messages: int = BOUNDS.console_messages
    octets: int = BOUNDS.console_bytes
    backlog: int = BOUNDS.console_backlog
    exchanges: int = BOUNDS.console_exchanges
    destinations: int = BOUNDS.console_destinations
    events: int = BOUNDS.console_events
    alarms: int = BOUNDS.console_alarms


class Rate:
    """Counts per second, of the last minute."""

    __slots__ = ("_counts", "_second")

    def __init__(self) -> None:
        self._counts = [0] * WINDOW
        self._second = 0

    def add(self, second: int) -> None:
        """Counts one message."""
        self._turn(second)
        if second > self._second - WINDOW:
            self._counts[second % WINDOW] += 1

    def _turn(self, second: int) -> None:
        for each in range(max(self._second + 1, second - WINDOW + 1), second + 1):
            self._counts[each % WINDOW] = 0
        self._second = max(self._second, second)

    def series(self, now: int) -> list[int]:
        """The counts of the last minute, without the current second."""
        self._turn(now)
        return [self._counts[each % WINDOW] for each in range(now - WINDOW + 1, now)]

    def mean(self, now: int) -> float:
        """The recent average per second."""
        return sum(self.series(now)[-_RECENT:]) / _RECENT


@dataclass(slots=True, eq=False)
class Place:
    """The data about a destination.

    Attributes:
        name: name with its kind, as `queue:EMS.OS`.
        total, size: number of messages seen there, and their octets.
        redelivered: number of those that had been delivered before.
        last_ms: when the last one was seen, milliseconds since 1970 UTC.
        depth: messages that wait there; None if unknown.
        depth_ms: when `depth` was read, milliseconds since 1970 UTC.
        consumers: number of consumers; None if unknown.
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


@dataclass(slots=True, eq=False)
class Source:
    """Where messages are seen. `trouble`: what is wrong there now, or empty: nothing, since `since_ms`. `total`: how
    many were seen, the last one at `last_ms`; milliseconds since 1970 UTC, 0: none."""

    name: str
    trouble: str = ""
    since_ms: int = 0
    total: int = 0
    last_ms: int = 0
    rate: Rate = field(default_factory=Rate)


class Health(NamedTuple):
    """How the console, since `began_ms` (milliseconds since 1970 UTC), and what it watches are: each source with its
    messages a second, the metrics of applications by the name of their tap, and how many things are kept in memory and
    may be. `alarms_left_out`: alarms that left memory. `alarms_unread`: messages too large to be read for alarms."""

    began_ms: int
    sources: list[tuple[Source, float]]
    roles: dict[str, Metrics]
    sizes: dict[str, tuple[int, int]]
    alarms_left_out: int
    alarms_unread: int


class Seen(NamedTuple):
    """A message that is kept.

    Attributes:
        at_ms: when it was seen, milliseconds since 1970 UTC.
        way: how it was observed.
        source: who observed it.
        facts: its decoded facts.
        size: octets of its body.
        path: the file of a landing that has it; None: there is none.
        text: in small letters, what a filter of text looks into.
    """

    number: int
    at_ms: int
    way: Way
    source: str
    destination: str
    facts: Facts
    message: JmsMessage
    size: int
    path: Path | None = None
    text: str = ""

    @property
    def has_body(self) -> bool:
        """Whether the body is kept."""
        return len(self.message.body) == self.size


class _BacklogEntry(NamedTuple):
    message: JmsMessage
    destination: str
    way: Way
    source: str
    at_ms: int
    is_whole: bool
    from_first: bool
    path: Path | None


class Overview(NamedTuple):
    """The numbers at the top of the console.

    Attributes:
        series: messages in each second of the last minute.
        seen: messages since the start.
        left_out: how many of those came too fast to be sorted.
        dropped: how many exchanges left memory before they were complete, so that their batches are not counted.
        open, troubled, complete: number of kept exchanges in each state.
        missing: missing batches of the kept exchanges.
        missing_elsewhere: those of exchanges that no landing has.
        duplicates: repeated replies.
        notifications: notifications since the start.
        troubles: the latest trouble of each source, by source.
    """

    rate: float
    series: list[int]
    seen: int
    left_out: int
    dropped: int
    open: int
    troubled: int
    complete: int
    missing: int
    missing_elsewhere: int
    duplicates: int
    notifications: int
    troubles: dict[str, str]


class Traffic:
    """The messages, exchanges, destinations and notifications seen lately. Any thread may use it."""

    def __init__(self, bounds: Bounds | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.bounds = bounds or Bounds()
        self._clock = clock
        self._began_ms = int(clock() * 1000)
        self._backlog: deque[_BacklogEntry] = deque()
        self._backlog_octets = 0
        self._left_out = 0
        self._sorted_out = 0
        self._lock = threading.Lock()
        self._numbers = 0
        self._seen: OrderedDict[int, Seen] = OrderedDict()
        self._octets = 0
        self._bodies: deque[int] = deque()
        self._kinds: Counter[str] = Counter()
        self._operations: Counter[str] = Counter()
        self._correlated: defaultdict[str, set[int]] = defaultdict(set)
        self._total = 0
        self._rate = Rate()
        self._ids: OrderedDict[str, int] = OrderedDict()
        self._unmatched: dict[bool, OrderedDict[int, int]] = {True: OrderedDict(), False: OrderedDict()}
        self._exchanges: OrderedDict[str, Exchange] = OrderedDict()
        self._exchange_numbers = 0
        self._gone: OrderedDict[str, int] = OrderedDict()
        self._dropped = 0
        self._requests: OrderedDict[str, str] = OrderedDict()
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._notified: Counter[tuple[str, str]] = Counter()
        self._event_rows: OrderedDict[int, Seen] = OrderedDict()
        self._alarms = Alarms(self.bounds.alarms)
        self._sources: OrderedDict[str, Source] = OrderedDict()
        self._metrics: dict[str, Metrics] = {}

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
        can_wait: bool = False,
        path: Path | None = None,
    ) -> None:
        """Records a message that was seen; returns at once.

        A message with a message id that was seen already is not counted again.

        Args:
            message: the message with its body; it is not changed.
            destination: where it was seen; by default the message's own destination.
            way: how it was observed.
            source: name of the observer, in a word or two.
            at_ms: when it was seen, milliseconds since 1970 UTC; by default now.
            is_whole: whether the source sees every message there. If not, absent batches do not count as missing.
            from_first: whether the source has all messages from the first one, as a landing has.
            can_wait: whether the source can wait, as one that has `from_first` can: if the backlog is full, this sorts
                it first, and leaves nothing out.
            path: the file of a landing that has the message; what leaves memory is read from it again.
        """
        if len(self._backlog) >= self.bounds.backlog or self._backlog_octets > self.bounds.octets:
            if not (from_first or can_wait):
                self._left_out += 1
                return
            self.digest()
        self._backlog_octets += len(message.body)
        where = str(destination or message.destination or "")
        now = int(self._clock() * 1000) if at_ms is None else at_ms
        self._backlog.append(_BacklogEntry(message, where, way, source, now, is_whole, from_first, path))

    @property
    def now_ms(self) -> int:
        """The present, milliseconds since 1970 UTC."""
        return int(self._clock() * 1000)

    def set_depth(self, destination: Destination | str, depth: int | None, consumers: int | None = None) -> None:
        """Sets how many messages wait at a destination now, and for how many consumers; None for unknown."""
        with self._lock:
            place = self._place(str(destination))
            place.depth, place.consumers = depth, consumers
            place.depth_ms = int(self._clock() * 1000)

    def set_trouble(self, source: str, text: str) -> None:
        """Sets the trouble of a source; an empty text clears it. Passwords in URLs are masked."""
        with self._lock:
            known = self._source(source)
            text = without_login(text)
            if bool(text) != bool(known.trouble):
                known.since_ms = int(self._clock() * 1000)
            known.trouble = text

    def _source(self, name: str) -> Source:
        if name not in self._sources:
            _keep(self._sources, name, Source(name, since_ms=int(self._clock() * 1000)), _SOURCES)
        return self._sources[name]

    def set_metrics(self, source: str, metrics: Metrics) -> None:
        """Sets the metrics of an application's roles, which the page of health shows."""
        self._metrics[source] = metrics

    def interrupted(self) -> None:
        """Notes that messages may have passed unseen: absent batches of open exchanges no longer count as missing."""
        self.digest()
        with self._lock:
            self._mark_partial()

    def digest(self) -> None:
        """Sorts the backlog."""
        with self._lock:
            for _ in range(len(self._backlog)):
                entry = self._backlog.popleft()
                self._backlog_octets -= len(entry.message.body)
                self._take(entry)
            if not self._backlog:
                self._backlog_octets = 0
            if self._left_out > self._sorted_out:
                self._sorted_out = self._left_out
                self._mark_partial()

    def _mark_partial(self) -> None:
        for exchange in self._exchanges.values():
            if exchange.end is None or exchange.judged.missing:
                exchange.doubt()

    def _take(self, entry: _BacklogEntry) -> None:
        message = entry.message
        if self._is_known(entry):
            place = self._places.get(entry.destination)
            if place is not None and message.redelivered:
                place.redelivered += 1
            return
        message = self_describing(message)
        self._numbers += 1
        self._total += 1
        second = entry.at_ms // 1000
        self._rate.add(second)
        read = read_message(message)
        facts = read.facts
        self._note_alarms(read, entry.at_ms)
        size = len(message.body)
        if size > self.bounds.octets // 8:
            message = _without_body(message)
        where = entry.destination
        text = _text_of(message, facts, where)
        found = Seen(self._numbers, entry.at_ms, entry.way, entry.source, where, facts, message, size, entry.path, text)
        if message.message_id is not None:
            _keep(self._ids, message.message_id, found.number, _IDS)
        self._remember(found)
        if entry.destination:
            place = self._place(entry.destination)
            place.total += 1
            place.size += size
            place.redelivered += message.redelivered
            place.last_ms = max(place.last_ms, entry.at_ms)
            place.sources.add(entry.source)
            place.rate.add(second)
        source = self._source(entry.source)
        source.total += 1
        source.last_ms = max(source.last_ms, entry.at_ms)
        source.rate.add(second)
        if facts.kind == "notification":
            self._notified[facts.category, facts.severity] += 1
            _keep(self._event_rows, found.number, found._replace(message=_NO_MESSAGE), self.bounds.events)
        elif facts.kind != "other":
            self._follow(entry, found)

    def _note_alarms(self, read: Read, at_ms: int) -> None:
        self._alarms.unread += not read.is_whole
        for values in read.alarms:
            self._alarms.report(values, at_ms)
        for values in read.deleted:
            self._alarms.deleted(read.facts.object_name, values, at_ms)

    def _is_known(self, entry: _BacklogEntry) -> bool:
        """Whether a message has been seen already.

        An application that sends and receives sees some messages twice, and not every sender learns the message id.
        Then bodies are compared: a message sent without an id is the same as a received one with an equal body.
        """
        message = entry.message
        if message.message_id is not None and message.message_id in self._ids:
            return True
        if entry.way not in ("sent", "received"):
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
        self._bodies.append(found.number)
        self._count(found, 1)
        while self._octets > self.bounds.octets:
            number = self._bodies.popleft()
            one = self._seen.get(number)
            if one is not None:
                self._octets -= len(one.message.body)
                self._seen[number] = one._replace(message=_without_body(one.message))
        while len(self._seen) > self.bounds.messages:
            _, gone = self._seen.popitem(last=False)
            self._octets -= len(gone.message.body)
            self._count(gone, -1)
        while self._bodies and self._bodies[0] < next(iter(self._seen)):
            self._bodies.popleft()

    def _count(self, one: Seen, by: int) -> None:
        for counts, value in ((self._kinds, one.facts.kind), (self._operations, one.facts.operation)):
            counts[value] += by
            if not counts[value]:
                del counts[value]
        for key in {one.facts.correlation_id, one.message.correlation_id or ""} - {""}:
            self._correlated[key] ^= {one.number}
            if not self._correlated[key]:
                del self._correlated[key]

    def _place(self, name: str) -> Place:
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = Place(name)
            if len(self._places) > self.bounds.destinations:
                idle = min(self._places.values(), key=lambda one: (one is place, one.last_ms))
                del self._places[idle.name]
        return place

    def _follow(self, entry: _BacklogEntry, found: Seen) -> None:
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
            exchange = Exchange(key, self._exchange_numbers, entry.at_ms, entry.at_ms, destination=entry.destination)
            exchange.is_partial = key in self._gone or len(self._gone) >= _IDS
            self._exchanges[key] = exchange
        exchange.is_whole = exchange.is_whole and entry.is_whole
        exchange.sources.add(entry.source)
        exchange.add(facts, at_ms=entry.at_ms, size=found.size, from_first=entry.from_first)
        self._exchanges.move_to_end(key)
        if len(self._exchanges) > self.bounds.exchanges:
            done = (one.key for one in islice(self._exchanges.values(), _MOST_SEARCHED) if one.is_done)
            gone = self._exchanges.pop(next(done, None) or next(iter(self._exchanges)))
            self._dropped += not gone.is_done
            _keep(self._gone, gone.key, 0, _IDS)

    def overview(self) -> Overview:
        self.digest()
        with self._lock:
            now = int(self._clock())
            states = Counter(one.standing for one in self._exchanges.values())
            missing = [(one.judged.missing, one.is_landed) for one in self._exchanges.values()]
            return Overview(
                rate=self._rate.mean(now),
                series=self._rate.series(now),
                seen=self._total + self._left_out,
                left_out=self._left_out,
                dropped=self._dropped,
                open=states["open"],
                troubled=states["troubled"],
                complete=states["complete"],
                missing=sum(number for number, _ in missing),
                missing_elsewhere=sum(number for number, is_landed in missing if not is_landed),
                duplicates=sum(one.duplicates for one in self._exchanges.values()),
                notifications=sum(self._notified.values()),
                troubles={one.name: one.trouble for one in self._sources.values() if one.trouble},
            )

    def exchanges(self, show: str = "all", most: int = 100) -> list[Exchange]:
        """Exchanges, latest first. `show`: `all`, `open`, `troubled` (missing batches, duplicates or a fault) or
        `complete`."""
        self.digest()
        with self._lock:
            wanted = [one for one in self._exchanges.values() if show in ("all", one.standing)]
            return [one.copied() for one in sorted(wanted, key=lambda one: -one.number)[:most]]

    def exchange(self, key: str) -> Exchange | None:
        """One exchange by its correlationId; None if it is unknown or was dropped."""
        self.digest()
        with self._lock:
            found = self._exchanges.get(key)
            return None if found is None else found.copied()

    def messages(
        self,
        text: str = "",
        most: int | None = None,
        *,
        kind: str = "",
        operation: str = "",
        correlation_id: str = "",
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> list[Seen]:
        """The kept messages, latest first; what is empty or None admits all.

        Args:
            text: a part of a correlationId, message id, operation, sender, destination, or of the event, object or
                cause of a notification, in any case of letters.
            most: only the first so many.
            correlation_id: that of the MTOSI header or of JMS, as it is.
            since_ms, until_ms: when it was seen, milliseconds since 1970 UTC, inclusive.
        """
        self.digest()
        with self._lock:
            some = sorted(self._correlated.get(correlation_id, ()))
            kept = [self._seen[number] for number in some] if correlation_id else list(self._seen.values())
        kept.reverse()
        text = text.lower()
        found = narrowed(
            kept,
            (kind, lambda one: one.facts.kind == kind),
            (operation, lambda one: one.facts.operation == operation),
            (since_ms is not None, lambda one: one.at_ms >= (since_ms or 0)),
            (until_ms is not None, lambda one: one.at_ms <= (until_ms or 0)),
            (text, lambda one: text in one.text),
        )
        return list(found[:most])

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many of the kept messages have each kind, and each operation, the most frequent first."""
        with self._lock:
            return dict(self._kinds.most_common()), dict(self._operations.most_common())

    def message(self, number: int) -> Seen | None:
        """A kept message; its body is read from the landing if it has left memory."""
        self.digest()
        with self._lock:
            found = self._seen.get(number)
        if found is None or found.has_body or found.path is None:
            return found
        try:
            return found._replace(message=self_describing(open_entry(found.path).message()))
        except SpoolError:  # it was removed meanwhile
            return found

    def places(self) -> list[tuple[Place, float, list[int]]]:
        """Destinations by name, temporary ones last, each with its rate and the counts of the last minute."""
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

    def notifications(
        self,
        category: str = "",
        severity: str = "",
        *,
        event: str = "",
        about: str = "",
        text: str = "",
        most: int = 100,
    ) -> tuple[list[Seen], int]:
        """The latest notifications, without their messages, and how many of those that are kept the filters admit.

        Args:
            category, severity, event: filters; an empty text admits all.
            about: a part of the object's name.
            text: as for `messages`.
        """
        self.digest()
        about, text = about.casefold(), text.lower()
        with self._lock:
            kept = list(self._event_rows.values())
        kept.reverse()
        found = narrowed(
            kept,
            (category, lambda one: one.facts.category == category),
            (severity, lambda one: one.facts.severity == severity),
            (event, lambda one: one.facts.event == event),
            (about, lambda one: about in one.facts.object_name.casefold()),
            (text, lambda one: text in one.text),
        )
        return list(found[:most]), len(found)

    def event_names(self) -> list[str]:
        """The names of the events of the kept notifications."""
        with self._lock:
            return sorted({one.facts.event for one in self._event_rows.values()} - {""})

    def alarms(
        self, about: str = "", *, severity: str = "", state: AlarmState = "all", since_ms: int | None = None
    ) -> list[Alarm]:
        """Alarms, the one with the latest report first; see `Alarms.find`."""
        self.digest()
        with self._lock:
            return self._alarms.find(about, severity=severity, state=state, since_ms=since_ms)

    def alarmed(self) -> dict[str, Worst]:
        """The active alarms by the name of their element; those of other objects under an empty name."""
        self.digest()
        with self._lock:
            return self._alarms.worst()

    def health(self) -> Health:
        self.digest()
        with self._lock:
            now = int(self._clock())
            return Health(
                began_ms=self._began_ms,
                sources=[(replace(one), one.rate.mean(now)) for one in self._sources.values()],
                roles=dict(self._metrics),
                alarms_left_out=self._alarms.left_out,
                alarms_unread=self._alarms.unread,
                sizes={
                    "messages": (len(self._seen), self.bounds.messages),
                    "bytes of their bodies": (self._octets, self.bounds.octets),
                    "messages to be sorted": (len(self._backlog), self.bounds.backlog),
                    "exchanges": (len(self._exchanges), self.bounds.exchanges),
                    "destinations": (len(self._places), self.bounds.destinations),
                    "notifications": (len(self._event_rows), self.bounds.events),
                    "alarms": (len(self._alarms), self.bounds.alarms),
                },
            )


def _without_body(message: JmsMessage) -> JmsMessage:
    return replace(message, body=b"")


_NO_MESSAGE: Final = JmsMessage()
_MOST_SEARCHED: Final = 200
"""Number of exchanges that are searched for one that can be dropped without loss."""


def _text_of(message: JmsMessage, facts: Facts, where: str) -> str:
    texts = (facts.correlation_id, message.correlation_id, message.message_id, facts.operation, where)
    more = (facts.event, facts.object_name, facts.cause, facts.sender)
    return "\n".join(filter(None, (*texts, *more))).lower()


def _keep(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    kept[key] = value
    if len(kept) > most:
        kept.popitem(last=False)
