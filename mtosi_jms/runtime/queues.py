"""Copies, moves, redrives or removes the messages of a queue.

Move, redrive and purge work in batches. They first record the messages in a landing and sync it to disk. Then the
messages are sent. Last, they are removed. Move and purge on a transport with TRANSACTED_RECEIVE send and remove in one
commit, so after a kill each message is in one place. Otherwise, a kill between sending and removing leaves a batch in
both places. No message is lost either way. The record may contain messages of the last batch that were not removed.

Redrive sends each message to the destination that it came from. One that does not tell it stays.

Copy browses. If the transport cannot browse, copy receives the messages and acknowledges none of them. When it ends,
even by a kill, they are back in the queue, in their order.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from mtosi_jms.errors import ConfigError, NamingError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.runtime._consumer import ATTEMPTS, ORIGINAL_DESTINATION, ORIGINAL_MESSAGE_ID, REASON
from mtosi_jms.spool import Spool
from mtosi_jms.transport import Capability, Connection, Consumer, Delivery, Session

__all__ = [
    "MOVED",
    "REASONS",
    "Action",
    "Done",
    "QueueWork",
    "as_moved",
    "as_new",
    "default_record",
    "for_reason",
    "origin_of",
    "reason_of",
]

MOVED: Final = "MTOSIX_moved"
"""Property of messages that were moved with a mark: the mark."""
Action: TypeAlias = Literal["copy", "move", "redrive", "purge"]

_PROVIDERS_OWN: Final = ("JMSX", "JMS_")
_SENDERS_OWN: Final = ("JMSXGroupID", "JMSXGroupSeq")
_PARKED: Final = frozenset((ATTEMPTS, ORIGINAL_DESTINATION, ORIGINAL_MESSAGE_ID, REASON))
_ORIGINS: Final = (ORIGINAL_DESTINATION, "JMS_MTOSIX_originalDestination", "originalDestination", "_AMQ_ORIG_ADDRESS")
"""Properties that tell a dead letter's origin: the consumer runtime's, our transports', those of Java clients."""
REASONS: Final = (REASON, "JMS_MTOSIX_deadLetterReason", "dlqDeliveryFailureCause")
"""Properties that tell why a message is a dead letter; the first counts. The consumer runtime's, our transports', that
of ActiveMQ."""
_BATCH: Final = 100
"""Most messages that one transaction moves."""
_BATCH_BYTES: Final = 8 * 2**20
"""Bytes after which a transaction ends before that."""
_LOOK: Final = 0.2
"""Seconds between checks whether to stop."""


def origin_of(message: JmsMessage) -> str | None:
    """Where a dead letter came from, such as `queue:EMS.OS`; None: it does not tell."""
    text = next((str(message.properties[name]) for name in _ORIGINS if name in message.properties), None)
    return text if text is None or text.startswith(("queue:", "topic:")) else f"queue:{text}"


def reason_of(message: JmsMessage) -> str | None:
    """Why a message became a dead letter: the type of the last error, or the provider's words; None: not told."""
    return next((str(message.properties[name]) for name in REASONS if name in message.properties), None)


def for_reason(reason: str) -> str:
    """The selector for the dead letters of one reason, as `reason_of` tells it: by the first property that is there."""
    quoted = reason.replace("'", "''")
    ways = ([*(f"{one} IS NULL" for one in REASONS[:at]), f"{name} = '{quoted}'"] for at, name in enumerate(REASONS))
    return "(" + " OR ".join(" AND ".join(way) for way in ways) + ")"


def as_new(message: JmsMessage) -> JmsMessage:
    """A received message as it may be sent: without what a provider alone sets, and a reply queue that is gone."""
    properties = {
        name: value
        for name, value in message.properties.items()
        if name in _SENDERS_OWN or not name.startswith(_PROVIDERS_OWN)
    }
    gone = message.reply_to is not None and message.reply_to.is_temporary
    return dataclasses.replace(message, properties=properties, reply_to=None if gone else message.reply_to)


def as_moved(message: JmsMessage) -> JmsMessage:
    """A received message for the same provider: with its reply queue, and what is left of its time to live."""
    life = 0
    if message.expiration_ms:
        life = max(message.expiration_ms - int(time.time() * 1000), 1)
    return dataclasses.replace(as_new(message), reply_to=message.reply_to, time_to_live_ms=life)


def default_record(action: str, queue: Destination) -> Path:
    """Where messages are recorded by default: a new folder below the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    name = re.sub(r"[^\w.-]", "_", queue.name)[:80]
    moment = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S.%f")
    state = Path(base) if base else Path.home() / ".local" / "state"
    return state / "mtosi-jms" / "queue" / f"{moment}-{action}-{name}"


class Done(NamedTuple):
    """One message that was copied, moved, redriven or purged.

    Attributes:
        target: where it went; None: nowhere.
        record: the file that records it; None: it is not recorded.
    """

    message: JmsMessage
    target: Destination | None
    record: str | None


class QueueWork:
    """Copies, moves, redrives or removes messages of a queue, batch by batch, in memory that does not grow with it.

    Args:
        target: the queue to copy or move to; None for the other actions.
        selector: only messages that match.
        limit: only the first so many; None: as many as there are at the start, where the transport can browse.
        record: the landing; None: a new one below the user's state folder, and none for copy.
        wait: seconds without a message after which the queue counts as empty.
        batch: most messages that are sent and removed together; None: 100.
        wanted: only messages for which it is true; others that match the selector stay, and may come again as
            redelivered. What is sent and what is removed is then never one commit.
        mark: text of the property `MTOSIX_moved`, by which a selector finds again what was sent. Redriven messages
            then keep what they tell about their failure, so that they can be moved back.

    Attributes:
        done: how many messages are done.
        expected: how many are to be taken, once that is known; else None.
        stayed: how many a redrive left where they are, because they do not tell their origin.
        left: at the end, how many that match are still in the queue though none came for `wait` seconds: another
            consumer holds them, or they are behind more messages than the provider reads from disk.
        folder: the landing; None: nothing is recorded yet.
        pending: after an UnknownOutcomeError, how many more may or may not be done.
        doubled: after another error, how many of the done ones may still be where they were as well.

    Raises:
        ConfigError: a topic, or one queue as source and target.
    """

    def __init__(
        self,
        connection: Connection,
        action: Action,
        queue: Destination,
        *,
        target: Destination | None = None,
        selector: str | None = None,
        limit: int | None = None,
        record: Path | None = None,
        wait: float = 3.0,
        batch: int | None = None,
        wanted: Callable[[JmsMessage], bool] | None = None,
        mark: str | None = None,
    ) -> None:
        if topics := [one for one in (queue, target) if one is not None and one.is_topic]:
            raise ConfigError(f"{topics[0]}: a topic keeps no messages; give a queue")
        if target == queue:
            raise ConfigError(f"{queue}: they are there already; give another queue")
        self.done = self.stayed = self.left = 0
        self.expected: int | None = None
        self.folder: Path | None = None
        self._connection = connection
        self._action = action
        self._queue = queue
        self._target = target
        self._selector = selector
        self._limit = limit
        self._own_record = record is None
        self._record = default_record(action, queue) if record is None and action != "copy" else record
        self._wait = wait
        self._most = batch or _BATCH
        self._wanted = wanted
        self._mark = mark
        self._spool: Spool | None = None
        self._batch: list[tuple[JmsMessage, Destination | None, Delivery | None]] = []
        self._unremoved: list[Delivery] = []
        self._unwanted = 0
        self._ran_dry = False

    @property
    def pending(self) -> int:
        return len(self._batch)

    @property
    def doubled(self) -> int:
        return len(self._unremoved)

    def run(self, is_stopped: Callable[[], bool] = lambda: False) -> Iterator[Done]:
        """Do it, and yield each message that is done. Between two batches it ends where `is_stopped()` is true.

        Raises:
            SpoolError: a message cannot be recorded: it stays where it is.
            TransportError: the provider failed; the attributes tell how far it came.
        """
        with ExitStack() as stack:
            sending = stack.enter_context(self._connection.session(transacted=True))
            self._connection.start()
            size = 0
            taken = stack.enter_context(closing(self._taken(stack, sending, is_stopped)))
            for message, delivery in taken:
                if self._wanted is not None and not self._wanted(message):
                    self._unwanted += 1
                    continue
                target = self._target_of(message)
                if target is None and self._action != "purge":
                    self.stayed += 1
                    continue
                self._send(sending, message, target, delivery)
                size += len(message.body)
                if len(self._batch) >= self._most or size >= _BATCH_BYTES:
                    yield from self._commit(sending)
                    size = 0
                if is_stopped():
                    break
            yield from self._commit(sending)
        if self._ran_dry and not is_stopped():
            with self._connection.session() as session:
                still = session.count(self._queue, self._selector)
            self.left = max(0, still - self.stayed - self._unwanted)

    def _taken(
        self, stack: ExitStack, sending: Session, is_stopped: Callable[[], bool]
    ) -> Generator[tuple[JmsMessage, Delivery | None], None, None]:
        can = self._connection.capabilities
        if self._action == "copy" and Capability.BROWSE in can:
            with self._connection.session() as session, closing(session.browser(self._queue, self._selector)) as found:
                for message in itertools.islice(found, self._limit):
                    yield message, None
            return
        # In a transaction, one that stays would be removed with the others.
        is_each = self._action in ("move", "purge") and self._wanted is None
        whole = is_each and Capability.TRANSACTED_RECEIVE in can
        session = sending if whole else stack.enter_context(self._connection.session())
        most = self._limit
        if most is None and (Capability.BROWSE in can or self._action == "redrive"):
            with self._connection.session() as other:
                most = other.count(self._queue, self._selector)  # a message that comes back is not taken again
        self.expected = most
        with session.consumer(self._queue, self._selector) as consumer:
            taken = 0
            while (most is None or taken < most) and (delivery := _next(consumer, self._wait, is_stopped)) is not None:
                taken += 1
                yield delivery.message, delivery
            self._ran_dry = most is not None and taken < most and self._limit is None

    def _target_of(self, message: JmsMessage) -> Destination | None:
        if self._action != "redrive":
            return self._target
        origin = origin_of(message)
        try:
            found = None if origin is None else self._connection.names.lookup(origin)
        except NamingError:
            return None
        return None if found == self._queue else found

    def _send(
        self, session: Session, message: JmsMessage, target: Destination | None, delivery: Delivery | None
    ) -> None:
        if target is not None:
            moved = as_moved(message)
            if self._mark is not None:
                moved = dataclasses.replace(moved, properties={**moved.properties, MOVED: self._mark})
            elif self._action == "redrive":
                kept = {name: value for name, value in moved.properties.items() if name not in _PARKED}
                moved = dataclasses.replace(moved, properties=kept)
            session.send(target, moved)
        self._batch.append((message, target, delivery))

    def _commit(self, session: Session) -> Iterator[Done]:
        if not self._batch:
            return
        records: list[str | None] = [None] * len(self._batch)
        if self._record is not None:
            if self._spool is None:
                self._spool = Spool(self._record)
                self.folder = self._record
                if self._own_record:
                    self._record.chmod(0o700)
            found = self._spool.write_all((message for message, _, _ in self._batch), int(time.time() * 1000))
            records = [str(one.path) for one in found]
        session.commit()
        self.done += len(self._batch)
        done, self._batch = self._batch, []
        self._unremoved = [delivery for *_, delivery in done if delivery is not None and self._action != "copy"]
        while self._unremoved:  # in a transacted session the commit has acknowledged them
            self._unremoved[0].acknowledge()
            del self._unremoved[0]
        for (message, target, _), record in zip(done, records, strict=True):
            yield Done(message, target, record)


def _next(consumer: Consumer, wait: float, is_stopped: Callable[[], bool]) -> Delivery | None:
    end = time.monotonic() + wait
    while not is_stopped():
        left = max(0.0, end - time.monotonic())
        if (delivery := consumer.receive(min(left, _LOOK))) is not None:
            return delivery
        if not left:
            break
    return None
