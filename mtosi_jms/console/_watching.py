"""What a console sees: topics, queues and landings from a process of its own, without consuming messages; or, by a tap,
an application's own messages.

A topic gives every subscriber a copy. A queue is browsed, so messages that a consumer takes between two looks are not
seen. A landing has all messages that its requestor or subscriber received."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from mtosi_jms.closing import Closeable
from mtosi_jms.console._letters import LetterBox
from mtosi_jms.console._traffic import Traffic
from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiError, SpoolError, TransportError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.spool import open_entry, scan
from mtosi_jms.telemetry import Metrics, Processing, Publication
from mtosi_jms.transport import AckMode, Connection, Delivery, Session

log = logging.getLogger(__name__)

INTERVAL: Final = 1.0
_SHARE: Final = 10
"""The pause after a look, in multiples of its duration: looks take at most about a tenth of the time."""
_AGAIN: Final = 5.0
"""Seconds until a connection to a lost provider is tried again."""
_HEED: Final = 0.5
"""Longest seconds between two checks whether the provider is there."""
_HEEDED: Final = 1_000
"""Messages between two checks whether to end."""
_LOST: Final = "is lost; what is shown may be old. The connection is made again"


class BrokerWatch(Closeable):
    """Subscribes to topics and browses queues, in a thread of its own; reconnects if the provider is lost.

    Args:
        names: destinations to watch: `queue:X`, `topic:X` or names of the naming context.
        dead_letters: queues of dead letters by name. Their messages are no traffic; they go into their box.
        interval: least seconds between two looks at a queue.

    Attributes:
        queues: the queues that are browsed, by name as given.

    Raises:
        ConfigError: there is no such name, or a topic is to have dead letters.
        TransportError: the provider cannot be reached.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        names: Sequence[str],
        traffic: Traffic,
        *,
        dead_letters: Mapping[str, LetterBox] | None = None,
        interval: float = INTERVAL,
    ) -> None:
        self._connect = connect
        self._names = names
        self._traffic = traffic
        self._boxes = dead_letters or {}
        self._interval = interval
        self._end = threading.Event()
        self._wake = threading.Event()
        self._ids: dict[str, set[str]] = {}
        self._connection: Connection | None = connect()
        try:
            self.queues = self._check(self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._thread = threading.Thread(target=self._run, name="mtosi-console-watch", daemon=True)
        self._thread.start()

    def _check(self, connection: Connection) -> dict[str, Destination]:
        self._source = connection.metadata.provider
        if topics := [name for name in self._boxes if connection.names.lookup(name).is_topic]:
            raise ConfigError(f"{topics[0]}: a topic keeps no messages; give a queue")
        found = {name: connection.names.lookup(name) for name in self._names}
        return {name: place for name, place in found.items() if not place.is_topic}

    def look(self) -> None:
        """Requests a look at the queues soon."""
        self._wake.set()

    def close(self) -> None:
        self._end.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        connection = self._connection
        while not self._end.is_set():
            try:
                if connection is None:
                    connection = self._connect()
                with connection:
                    self._watch(connection)
            except Exception as error:  # noqa: BLE001 - the watch must not end in silence
                self._traffic.set_trouble(self._source, f"{_told(error)}; it is tried again")
                self._traffic.interrupted()
                self._end.wait(_AGAIN)
            finally:
                connection = None

    def _watch(self, connection: Connection) -> None:
        """Watches until the end, or until the provider is lost. Raises MtosiError: the provider is lost."""
        lost: list[BaseException] = []

        def failed(error: BaseException, delivery: Delivery | None) -> None:
            if delivery is None:
                lost.append(error)
                self._wake.set()

        with connection.session() as browsing, connection.session(AckMode.DUPS_OK) as listening:
            for name in self._names:
                place = connection.names.lookup(name)
                if place.is_topic:
                    consumer = listening.consumer(place)
                    consumer.on_interrupted = self._interrupted
                    consumer.listen(self._taker(place), failed)
            connection.start()
            due = 0.0
            while not self._end.is_set():
                self._traffic.set_trouble(self._source, "" if connection.is_up else _LOST)
                if time.monotonic() >= due:  # while the provider is lost, this waits for it, or raises
                    took = self._browse(browsing, connection)
                    due = time.monotonic() + max(self._interval, _SHARE * took)
                if self._wake.wait(min(max(due - time.monotonic(), 0.0), _HEED)):
                    self._wake.clear()
                    due = 0.0
                if lost:
                    raise lost[0] if isinstance(lost[0], MtosiError) else IllegalStateError(str(lost[0]))

    def _interrupted(self, reason: str) -> None:
        self._traffic.interrupted()
        self._wake.set()

    def _taker(self, place: Destination) -> Callable[[Delivery], None]:
        def take(delivery: Delivery) -> None:
            self._traffic.record(delivery.message, destination=place, way="published", source="topic")

        return take

    def _browse(self, session: Session, connection: Connection) -> float:
        """Browses all queues once; returns the seconds that this took."""
        began = time.monotonic()
        for name, queue in self.queues.items():
            total = self._record(name, session.headers(queue), queue, partial(session.count, queue))
            self._traffic.set_depth(queue, total, connection.consumers(queue))
        for name, box in self._boxes.items():
            queue = connection.names.lookup(name)
            with closing(session.headers(queue)) as found:
                total = box.read(found, self._end.is_set, count=partial(session.count, queue))
            self._traffic.set_depth(queue, total, connection.consumers(queue))
        return time.monotonic() - began

    def _record(
        self, name: str, found: Generator[JmsMessage, None, None], queue: Destination, count: Callable[[], int]
    ) -> int:
        """Records what was not there at the last look; returns how many messages wait."""
        before, now = self._ids.get(name, set()), set()
        trouble = ""
        try:
            with closing(found):
                for number, message in enumerate(found):
                    key = str(message.message_id)
                    now.add(key)
                    if key not in before:
                        self._traffic.record(
                            message,
                            destination=queue,
                            way="waiting",
                            source="browsed queue",
                            is_whole=False,
                            can_wait=True,
                        )
                    if number % _HEEDED == 0 and self._end.is_set():
                        break
            total = len(now)
        except TransportError as error:  # the provider is lost, then counting fails too; or it does not list more
            total, trouble = count(), str(error)
        self._traffic.set_trouble(name, trouble)
        self._ids[name] = now
        return total


class LandingWatch(Closeable):
    """Records the messages that a landing holds and those that arrive, in a thread of its own. `folder`: a spool, or
    any folder of envelopes (`*.xml`). `interval`: least seconds between two looks. Raises SpoolError: the folder cannot
    be read."""

    def __init__(self, folder: Path, traffic: Traffic, *, interval: float = INTERVAL) -> None:
        self._folder = folder
        self._traffic = traffic
        self._interval = interval
        self._known: set[str] = set()
        self._end = threading.Event()
        scan(folder)
        self._thread = threading.Thread(target=self._run, name="mtosi-console-landing", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        source = f"landing {self._folder.name}"
        while not self._end.is_set():
            began = time.monotonic()
            try:
                self._look(source)
                self._traffic.set_trouble(source, "")
            except Exception as error:  # noqa: BLE001 - as above
                self._traffic.set_trouble(source, _told(error))
            self._end.wait(max(self._interval, _SHARE * (time.monotonic() - began)))

    def _look(self, source: str) -> None:
        envelopes = scan(self._folder).envelopes
        new = [path for path in envelopes if path.name not in self._known]
        for path in new:
            if self._end.is_set():
                return
            self._known.add(path.name)
            entry = open_entry(path)
            try:
                message = entry.message()
            except SpoolError:  # it was removed meanwhile
                continue
            self._traffic.record(
                message, way="landed", source=source, at_ms=entry.received_ms, from_first=True, path=path
            )
        self._known.intersection_update({path.name for path in envelopes})


def _told(error: Exception) -> str:
    """What the page says of an error: a fault of our own is named there, and whole in the log."""
    if isinstance(error, MtosiError):
        return str(error)
    log.error("the console could not look: %s: %s", type(error).__name__, error, exc_info=error)
    return f"the console could not look: {type(error).__name__}: {error}"


class Tap(Metrics):
    """Records what requestors, suppliers, publishers, subscribers and consumers of a connection send and receive.

        traffic = Traffic()
        connection = mtosi.connect(url, telemetry=Tap(traffic))

    Args:
        source: name of the observer, in a word or two.
    """

    def __init__(self, traffic: Traffic, source: str = "application") -> None:
        super().__init__()
        self._traffic = traffic
        self._source = source
        traffic.set_metrics(source, self)

    def publish(
        self,
        message: JmsMessage,
        destination: Destination,
        operation: str = "",
        correlation_id: str = "",
        *,
        call: bool = False,
    ) -> Publication:
        """See `Telemetry.publish`: the message is recorded when it has been sent."""
        counted = super().publish(message, destination, operation, correlation_id, call=call)
        return _Publication(counted, destination, self._traffic, self._source, call=call)

    def receive(
        self,
        message: JmsMessage,
        destination: Destination,
        since_ns: int,
        request: Publication | None = None,
        error: BaseException | None = None,
    ) -> None:
        """See `Telemetry.receive`: the message is recorded."""
        super().receive(message, destination, since_ns, request, error)
        self._traffic.record(message, destination=destination, way="received", source=self._source)

    def process(self, message: JmsMessage, destination: Destination, *, timed: bool = False) -> Processing:
        """See `Telemetry.process`: the message is recorded."""
        self._traffic.record(message, destination=destination, way="received", source=self._source)
        return super().process(message, destination, timed=timed)


class _Publication(Publication):
    __slots__ = ("_call", "_counted", "_destination", "_message_id", "_source", "_traffic")

    def __init__(
        self, counted: Publication, destination: Destination, traffic: Traffic, source: str, *, call: bool
    ) -> None:
        super().__init__(counted.message)
        self._counted = counted
        self._call = call
        self._message_id: str | None = None
        self._destination = destination
        self._traffic: Traffic | None = traffic
        self._source = source

    def sent(self, message_id: str | None = None) -> None:
        self._counted.sent(message_id)
        self._message_id = message_id
        if self._call:
            self._record()

    def end(self, error_type: str = "") -> None:
        self._counted.end(error_type)
        if not error_type:
            self._record()
        self._traffic = None

    def _record(self) -> None:
        traffic, self._traffic = self._traffic, None
        if traffic is None:
            return
        message, message_id = self.message, self._message_id
        if message.message_id is None:
            message = message.stamped(self._destination, message_id=message_id, timestamp_ms=int(time.time() * 1000))
        traffic.record(message, destination=self._destination, way="sent", source=self._source)
