"""An event channel inside the process, with the semantics of a topic or of a queue."""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from mtosi_jms.bridge.cdr import encode_events
from mtosi_jms.bridge.endpoints import (
    EventConsumer,
    EventSupplier,
    FlowStyle,
    Grouping,
    OnAcknowledged,
    OnDisconnected,
    QoS,
)
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.qos import Duplicates, check_types, number_after, number_of, numbered
from mtosi_jms.errors import BridgeError, EventError, IllegalStateError, SelectorError, TransportError, UnsupportedQoS
from mtosi_jms.jms.selector import parse

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*')|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<field>\$\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*|\([^)]*\))*)
    |(?P<word>[A-Za-z_]+)|(?P<sign>==|!=|<=|>=|[<>~()+\-*/]))""",
    re.VERBOSE,
)
_SIGNS: Final = {"==": "=", "!=": "<>"}
_WORDS: Final = {"and": "AND", "or": "OR", "not": "NOT", "TRUE": "TRUE", "FALSE": "FALSE"}
_HEADER: Final = {
    "$domain_name": "domain_name",
    "$.header.fixed_header.event_type.domain_name": "domain_name",
    "$type_name": "type_name",
    "$.header.fixed_header.event_type.type_name": "type_name",
    "$event_name": "event_name",
    "$.header.fixed_header.event_name": "event_name",
}
_NAMED: Final = re.compile(r"\$(?:\.filterable_data\((?P<listed>[^)]*)\)|(?P<plain>[A-Za-z_][A-Za-z0-9_]*))")


def constraint_of(text: str) -> Callable[[StructuredEvent], bool]:
    """What tells whether an event passes a constraint of the Extended Trader Constraint Language, which becomes a
    selector. Raises EventError: the text is not a constraint, or has an operator without a counterpart there."""
    fields: list[str] = []
    try:
        selector = parse(_translated(text, fields))
    except SelectorError as error:
        raise EventError(f"the channel refuses the constraint {text!r}: {error}") from None
    return lambda event: selector.matches({f"f{at}": _value(event, name) for at, name in enumerate(fields)}) is True


def _translated(text: str, fields: list[str]) -> str:
    out: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise EventError(f"the channel refuses the constraint {text!r}: character {at + 1}")
        at = match.end()
        out.append(_token(match, text, fields))
    found = " ".join(out)
    found = re.sub(r"\bEXIST (f\d+)", r"(\1 IS NOT NULL)", found)
    return re.sub(r"'([^'%_]*)' ~ (f\d+)", r"(\2 LIKE '%\1%')", found)


def _token(match: re.Match[str], text: str, fields: list[str]) -> str:
    if match["field"]:
        if match["field"] not in fields:
            fields.append(match["field"])
        return f"f{fields.index(match['field'])}"
    if match["text"]:
        return "'" + re.sub(r"\\(.)", r"\1", match["text"][1:-1]).replace("'", "''") + "'"
    if match["word"]:
        if match["word"] == "exist":
            return "EXIST"
        if match["word"] not in _WORDS:
            raise EventError(f"the channel refuses the constraint {text!r}: {match['word']} is not known")
        return _WORDS[match["word"]]
    return match["number"] or _SIGNS.get(match["sign"], match["sign"])


def _value(event: StructuredEvent, field: str) -> object:
    if field in _HEADER:
        return getattr(event, _HEADER[field])
    named = _NAMED.fullmatch(field)
    if named is None:
        return None
    name = named["listed"] or named["plain"]
    found = (event.header(name) if named["plain"] else None) or event.get(name)
    value = None if found is None else found.value
    return value if isinstance(value, str | bool | int | float) else None


log = logging.getLogger(__package__)

_AGAIN: Final = 0.005
"""Seconds until what was not taken is pushed again, and until a supplier that had nothing is asked again."""


class MemoryChannel:
    """An event channel for tests: what `mtosi_jms.bridge.endpoints.Channel` says, and JacORB's channel is, in memory.

    Args:
        name: of the channel; topics are event types on one channel `pubsub`, a queue is a channel of its own, named
            after it (003-6).
        queue: semantics of a queue: events wait for whoever takes them, and each goes to one source (003-7, 003-8).
            Else of a topic: each source that is connected gets each event, and none of those before.
        acknowledges: whether it has the interfaces of CosNotifyCommAck: events that it gives have a SequenceNumber and
            are kept until they are acknowledged (000-A8 to A13).
        max_events: that are kept for one source, or in the queue; then the oldest go, as JacORB has it.
        qos: what it has.
        refuses: names of quality of service that it refuses.
        forgets: names that it accepts and does not keep, which is found when they are read back.
    """

    def __init__(
        self,
        name: str = "pubsub",
        *,
        queue: bool = False,
        channel_id: int = 0,
        acknowledges: bool = False,
        max_events: int = 10_000,
        qos: QoS | None = None,
        refuses: Collection[str] = (),
        forgets: Collection[str] = (),
    ) -> None:
        self.name = name
        self.channel_id = channel_id
        self.qos: QoS = dict(qos or {})
        self._is_queue = queue
        self._acknowledges = acknowledges
        self._max_events = max_events
        self._refuses = refuses
        self._forgets = forgets
        self._changed = threading.Condition()
        self._master: deque[StructuredEvent] = deque()
        self._sources: list[MemorySource] = []
        self._sinks: list[MemorySink] = []
        self._down = ""
        self._closed = False

    def event_source(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
        constraint: str = "",
    ) -> MemorySource:
        """A new proxy supplier, as `mtosi_jms.bridge.endpoints.Channel.event_source` says. Raises TransportError: the
        channel is broken, see `break_down`."""
        passes = constraint_of(constraint) if constraint else None
        with self._changed:
            self._check()
            source = MemorySource(self, style, grouping, self._kept(qos), passes)
            self._sources.append(source)
        return source

    def event_sink(
        self,
        style: FlowStyle = FlowStyle.PUSH,
        grouping: Grouping = Grouping.STRUCTURED_EVENT,
        *,
        qos: QoS | None = None,
    ) -> MemorySink:
        """A new proxy consumer, as `mtosi_jms.bridge.endpoints.Channel.event_sink` says. Raises TransportError: the
        channel is broken, see `break_down`."""
        with self._changed:
            self._check()
            sink = MemorySink(self, style, grouping, self._kept(qos))
            self._sinks.append(sink)
        return sink

    def _kept(self, qos: QoS | None) -> QoS:
        given = dict(qos or {})
        check_types(given)
        if wrong := [name for name in given if name in self._refuses]:
            raise UnsupportedQoS("the channel does not support it", wrong)
        if wrong := [name for name in given if name in self._forgets]:
            raise UnsupportedQoS("the channel accepts it and does not keep it", wrong)
        return {**self.qos, **given}

    def waiting(self) -> int:
        """How many events are kept: in the queue, or for the sources of a topic in sum; those not acknowledged too."""
        with self._changed:
            return len(self._master) + sum(one.waiting() for one in self._sources)

    def resend(self) -> None:
        """Gives again what was given and not acknowledged, under the numbers that it had (000-A12)."""
        with self._changed:
            for source in self._sources:
                source.take_back(same_numbers=True)
            self._changed.notify_all()

    def break_down(self, reason: str = "the channel is down") -> None:
        """Loses all connections, and answers nobody until `recover`. What a queue holds stays."""
        with self._changed:
            self._down = reason
            ends: list[_End] = [*self._sources, *self._sinks]
        for end in ends:
            end.lose(reason)

    def recover(self) -> None:
        """Answers again; connections that were lost stay lost."""
        with self._changed:
            self._down = ""

    def is_alive(self) -> bool:
        return not self._down and not self._closed

    def close(self) -> None:
        self._closed = True
        for end in [*self._sources, *self._sinks]:
            end.disconnect()

    # What sources and sinks call, with the lock held.

    def _check(self) -> None:
        if self._closed:
            raise IllegalStateError(f"{self.name}: closed")
        if self._down:
            raise TransportError(f"{self.name}: {self._down}")

    def _put(self, events: Sequence[StructuredEvent]) -> None:
        if self._is_queue:
            self._master.extend(events)
            _trim(self._master, self._max_events)
        else:
            for source in self._sources:
                source.offer(events, self._max_events)
        self._changed.notify_all()


class _End:
    """What sources and sinks have in common. `style`, `grouping`, `qos`: see `mtosi_jms.bridge.endpoints`."""

    def __init__(self, channel: MemoryChannel, style: FlowStyle, grouping: Grouping, qos: QoS) -> None:
        self.style = style
        self.grouping = grouping
        self.qos = qos
        self._channel = channel
        self._changed = channel._changed
        self._connected = False
        self._suspended = False
        self._over = False
        self._on_disconnected: OnDisconnected | None = None
        self._thread: threading.Thread | None = None

    def _begin(self, handed: object, needed: FlowStyle, on_disconnected: OnDisconnected | None) -> None:
        if (handed is not None) != (self.style is needed):
            raise IllegalStateError(f"what is called is needed where the style is {needed.value}, and there only")
        with self._changed:
            self._check()
            if self._connected:
                raise IllegalStateError(f"{self._channel.name}: connected already")
            self._connected = True
            self._on_disconnected = on_disconnected

    def _run(self, target: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=target, name=f"channel-{self._channel.name}", daemon=True)
        self._thread.start()

    def _check(self) -> None:
        if self._over:
            raise IllegalStateError(f"{self._channel.name}: disconnected")
        self._channel._check()

    def _check_connected(self) -> None:
        self._check()
        if not self._connected:
            raise IllegalStateError(f"{self._channel.name}: not connected")

    def lose(self, reason: str) -> None:
        """The channel ends the connection."""
        with self._changed:
            if self._over:
                return
            was_connected = self._connected
            self._leave()
        if was_connected and self._on_disconnected is not None:
            self._on_disconnected(reason)

    def _leave(self) -> None:
        """Ends; the lock is held."""
        self._over = True
        self._changed.notify_all()

    def suspend(self) -> None:
        self._switch(suspended=True)

    def resume(self) -> None:
        self._switch(suspended=False)

    def _switch(self, *, suspended: bool) -> None:
        with self._changed:
            self._check_connected()
            self._suspended = suspended
            self._changed.notify_all()

    def is_connected(self) -> bool:
        """Whether the connection exists; a suspended one does."""
        return self._connected and not self._over and self._channel.is_alive()

    def disconnect(self) -> None:
        """Ends the connection, from any thread, more than once; returns when nothing of it is running any more."""
        with self._changed:
            if not self._over:
                self._leave()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


class MemorySource(_End):
    """A proxy supplier of a `MemoryChannel`; see `mtosi_jms.bridge.endpoints.EventSource`."""

    def __init__(
        self,
        channel: MemoryChannel,
        style: FlowStyle,
        grouping: Grouping,
        qos: QoS,
        passes: Callable[[StructuredEvent], bool] | None,
    ) -> None:
        super().__init__(channel, style, grouping, qos)
        self._passes = passes
        self._own: deque[StructuredEvent] = deque()
        self._number = 0
        self._given: dict[int, list[StructuredEvent]] = {}
        self._again: deque[int] = deque()

    @property
    def acknowledges(self) -> bool:
        """Whether the channel has the interfaces of CosNotifyCommAck."""
        return self._channel._acknowledges

    def connect(
        self,
        consumer: EventConsumer | None = None,
        on_disconnected: OnDisconnected | None = None,
        *,
        keep_refused: bool = False,
    ) -> None:
        """Connects; see `mtosi_jms.bridge.endpoints.EventSource.connect`."""
        self._begin(consumer, FlowStyle.PUSH, on_disconnected)
        if consumer is not None:
            self._run(lambda: self._push_to(consumer))

    def _push_to(self, consumer: EventConsumer) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or (not self._suspended and self._has_events()))
                if self._over:
                    return
                number, events = self._take(self._batch())
            try:
                consumer(self._shown(number, events))
            except Exception as error:  # noqa: BLE001 - it comes again
                log.info("%s: not taken: %s: %s", self._channel.name, type(error).__name__, error)
                with self._changed:
                    self._give_back(number, events)
                    self._changed.wait_for(lambda: self._over, _AGAIN)

    def _batch(self) -> int:
        if self.grouping is Grouping.STRUCTURED_EVENT:
            return 1
        size = self.qos.get("MaximumBatchSize")
        return size.value if size is not None and isinstance(size.value, int) and size.value > 0 else 100

    def pull(self, maximum: int = 1, *, wait: bool = True, timeout: float | None = None) -> Sequence[StructuredEvent]:
        """The next events; see `mtosi_jms.bridge.endpoints.EventSource.pull`."""
        if self.style is not FlowStyle.PULL:
            raise IllegalStateError(f"{self._channel.name}: the channel pushes here")
        with self._changed:
            self._check_connected()
            if wait:
                self._changed.wait_for(lambda: self._over or (not self._suspended and self._has_events()), timeout)
            if self._over or self._suspended or not self._has_events():
                return []
            number, events = self._take(1 if self.grouping is Grouping.STRUCTURED_EVENT else maximum)
        return self._shown(number, events)

    def acknowledge(self, numbers: Sequence[int]) -> None:
        """The channel forgets what it gave under these numbers; those that it does not know are let be (000-A10)."""
        if not self.acknowledges:
            raise BridgeError(f"{self._channel.name}: the channel does not have the interfaces of acknowledgement")
        with self._changed:
            self._check_connected()
            for number in numbers:
                self._given.pop(number, None)

    def _shown(self, number: int, events: list[StructuredEvent]) -> list[StructuredEvent]:
        """The events; with acknowledgement the first has the number (000-A8)."""
        return list(numbered(events, number)) if self.acknowledges and events else events

    # With the lock held.

    def offer(self, events: Sequence[StructuredEvent], most: int) -> None:
        """Events that came to the channel of a topic."""
        if self._connected and not self._over:
            self._own.extend(one for one in events if self._passes is None or self._passes(one))
            _trim(self._own, most)

    def waiting(self) -> int:
        """How many events are kept for it."""
        return len(self._own) + sum(map(len, self._given.values()))

    def take_back(self, *, same_numbers: bool) -> None:
        """What was given and not acknowledged is given again, or goes back to the queue."""
        if same_numbers:
            self._again = deque(self._given)
            return
        events = [one for number in self._given for one in self._given[number]]
        self._given.clear()
        if self._channel._is_queue:
            self._channel._master.extendleft(reversed(events))

    def _leave(self) -> None:
        super()._leave()
        self.take_back(same_numbers=False)
        self._own.clear()
        if self in self._channel._sources:
            self._channel._sources.remove(self)

    def _has_events(self) -> bool:
        if self._again:
            return True
        return next(self._positions(), None) is not None

    def _waiting_events(self) -> deque[StructuredEvent]:
        return self._channel._master if self._channel._is_queue else self._own

    def _positions(self) -> Iterator[int]:
        """Where the events are that it may have."""
        for at, one in enumerate(self._waiting_events()):
            if self._passes is None or self._passes(one):
                yield at

    def _take(self, maximum: int) -> tuple[int, list[StructuredEvent]]:
        while self._again:
            number = self._again.popleft()
            if number in self._given:
                return number, self._given[number]
        kept = self._waiting_events()
        events: list[StructuredEvent] = []
        while len(events) < maximum and (at := next(self._positions(), None)) is not None:
            events.append(kept[at])
            del kept[at]
        number, self._number = self._number, number_after(self._number)
        if self.acknowledges:
            self._given[number] = events
        return number, events

    def _give_back(self, number: int, events: Sequence[StructuredEvent]) -> None:
        if self._over:
            if self._channel._is_queue and not self.acknowledges:
                self._channel._master.extendleft(reversed(events))
                self._changed.notify_all()
            return
        if self.acknowledges:
            if number in self._given:
                self._again.appendleft(number)
        else:
            self._waiting_events().extendleft(reversed(events))


class MemorySink(_End):
    """A proxy consumer of a `MemoryChannel`; see `mtosi_jms.bridge.endpoints.EventSink`."""

    def __init__(self, channel: MemoryChannel, style: FlowStyle, grouping: Grouping, qos: QoS) -> None:
        super().__init__(channel, style, grouping, qos)
        self._on_acknowledged: OnAcknowledged | None = None
        self._duplicates = Duplicates()

    def connect(
        self,
        supplier: EventSupplier | None = None,
        on_disconnected: OnDisconnected | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        """Connects; see `mtosi_jms.bridge.endpoints.EventSink.connect`."""
        self._begin(supplier, FlowStyle.PULL, on_disconnected)
        self._on_acknowledged = on_acknowledged
        if supplier is not None:
            self._run(lambda: self._pull_from(supplier))

    def _pull_from(self, supplier: EventSupplier) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or not self._suspended)
                if self._over:
                    return
            try:
                events = supplier(1 if self.grouping is Grouping.STRUCTURED_EVENT else 100, False)
            except Exception as error:  # noqa: BLE001 - it is asked again
                log.info("%s: nothing was given: %s: %s", self._channel.name, type(error).__name__, error)
                events = ()
            self._store(events)
            if not events:
                with self._changed:
                    self._changed.wait_for(lambda: self._over, _AGAIN)

    def push(self, events: Sequence[StructuredEvent]) -> None:
        """Returns when the channel has the events; for the style PUSH. What no wire can carry is an EventError."""
        if self.style is not FlowStyle.PUSH:
            raise IllegalStateError(f"{self._channel.name}: the channel pulls here")
        with self._changed:
            self._check_connected()
            if self._suspended:
                raise IllegalStateError(f"{self._channel.name}: suspended")
        encode_events(events)
        for group in [[one] for one in events] if self.grouping is Grouping.STRUCTURED_EVENT else [list(events)]:
            self._store(group)

    def _store(self, events: Sequence[StructuredEvent]) -> None:
        if not events:
            return
        number = number_of(events) if self._channel._acknowledges else None
        with self._changed:
            if self._duplicates.is_new(number):  # the same again is acknowledged again, and kept once
                self._channel._put(events)
            self._duplicates.store(number)
        if number is not None and self._on_acknowledged is not None:
            self._on_acknowledged([number])

    def _leave(self) -> None:
        super()._leave()
        if self in self._channel._sinks:
            self._channel._sinks.remove(self)


def _trim(events: deque[StructuredEvent], most: int) -> None:
    while len(events) > most:
        events.popleft()
