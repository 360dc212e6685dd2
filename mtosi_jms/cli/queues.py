"""Shows, counts, copies, moves or removes the messages of a queue.

Browsing consumes nothing. Move and purge work in batches. They first record the messages in a landing and sync it to
disk. Move then sends the messages. Last, both remove them. On a transport with TRANSACTED_RECEIVE, one commit sends and
removes, so after a kill each message is in one place. On others (Artemis over STOMP), a kill between sending and
removing leaves a batch in both places. No message is lost either way. The record may contain messages of the last batch
that were not removed.

Copy browses. If the transport cannot browse, copy receives the messages and acknowledges none of them. When it ends,
even by a kill, they are back in the queue, in their order.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import itertools
import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from mtosi_jms.cli import terminal
from mtosi_jms.cli._replay import as_new
from mtosi_jms.cli.arguments import add_json, local, positive, seconds, selector
from mtosi_jms.cli.providers import add_provider, open_connection
from mtosi_jms.cli.stopping import INTERRUPTED, Stop, until_signalled
from mtosi_jms.cli.terminal import counted
from mtosi_jms.errors import ConfigError, UnknownOutcomeError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.jms.display import headers_of, moment, shown_properties
from mtosi_jms.spool import DurableLanding
from mtosi_jms.transport import Capability, Connection, Consumer, Delivery, Session

__all__ = ["add_arguments", "as_moved", "default_record", "operate", "run"]

_DONE: Final = {"copy": "copied", "move": "moved", "purge": "purged"}
_ACTIONS: Final = ("browse", "count", *_DONE)
_SENDS: Final = ("copy", "move")
_BATCH: Final = 100
"""Most messages that one transaction moves."""
_BATCH_BYTES: Final = 8 * 2**20
"""Bytes after which a transaction ends before that."""
_ROWS: Final = 500
"""Most rows of a table of messages; more follow in another one, so that memory does not grow with the queue."""
_LOOK: Final = 0.2
"""Seconds between checks whether to stop."""
_WAIT: Final = 3.0
_HEADINGS: Final = ("sent", "message", "type", "correlationId", "batch", "prio", "bytes", "again", "id")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `queue`."""
    parser.add_argument("action", choices=_ACTIONS)
    parser.add_argument("name", metavar="NAME", help="the queue: queue:X, or a name in --names")
    add_provider(parser)
    parser.add_argument("--to", metavar="NAME", help="the queue to copy or move to")
    parser.add_argument("--selector", type=selector, metavar="S", help="only messages that match")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N messages")
    parser.add_argument("--dry-run", action="store_true", help="show what would be copied, moved or purged")
    parser.add_argument(
        "--record",
        type=local,
        metavar="DIR",
        help="landing that records messages before they are removed (a new one below the user's state folder); copy "
        "records only with this option",
    )
    parser.add_argument(
        "--wait",
        type=seconds,
        default=_WAIT,
        metavar="S",
        help="seconds without a message after which the queue counts as empty (%(default)g)",
    )
    add_json(parser, "one JSON line for each message; count: one document")


def run(args: argparse.Namespace) -> int:
    """Do the action; 130 where a signal stopped it before the end."""
    if (args.to is not None) is not (args.action in _SENDS):
        raise argparse.ArgumentError(None, f"{args.action} {'needs' if args.action in _SENDS else 'takes no'} --to")
    with until_signalled(args) as stop, open_connection(args) as connection:
        return operate(connection, args, stop)


def operate(connection: Connection, args: argparse.Namespace, stop: Stop, batch: int = _BATCH) -> int:
    """Browse, count, copy, move or purge over a connection, so many messages at a time; 130 where the stop was set.

    Raises:
        ConfigError: a topic, one queue as source and target, or the transport cannot browse.
        SpoolError: a message cannot be recorded: it stays where it is.
        TransportError: the provider failed; a line says how many messages are done.
    """
    queue = _queue(connection, args.name)
    target = None if args.to is None else _queue(connection, args.to)
    if target == queue:
        raise ConfigError(f"{queue}: --to must be another queue")
    if args.action not in _DONE or args.dry_run:
        return _look(connection, args, queue, target)
    with ExitStack() as stack:
        sending = stack.enter_context(connection.session(transacted=True))
        work = _Work(sending, args, queue, target, batch)
        connection.start()
        steps: Iterator[_Step]
        if args.action == "copy" and Capability.BROWSE in connection.capabilities:
            steps = (_Step(message) for message in _browsed(connection, args, queue))
        elif args.action != "copy" and Capability.TRANSACTED_RECEIVE in connection.capabilities:
            steps = _received_steps(sending, connection, args, queue, stop)
        else:
            steps = _received_steps(stack.enter_context(connection.session()), connection, args, queue, stop)
        return 0 if work.do(steps, stop) else INTERRUPTED


def _queue(connection: Connection, name: str) -> Destination:
    found = connection.names.lookup(name)
    if found.is_topic:
        raise ConfigError(f"{found}: a topic keeps no messages; give a queue")
    return found


def _browsed(connection: Connection, args: argparse.Namespace, queue: Destination) -> Generator[JmsMessage, None, None]:
    if Capability.BROWSE not in connection.capabilities:
        raise ConfigError(
            f"{connection.metadata.provider} has no browser over this transport: browse, count and --dry-run are not "
            "available; copy, move and purge are. Over its Java client, a URL that begins with jvm:, all are"
        )
    with (
        connection.session() as session,
        closing(session.browser(queue, args.selector)) as found,
        terminal.progress("messages") as advance,
    ):
        for message in itertools.islice(found, args.limit):
            yield message
            advance(1)


def _look(connection: Connection, args: argparse.Namespace, queue: Destination, target: Destination | None) -> int:
    """Show what is in the queue, and what would be done with it."""
    count = 0
    with closing(_browsed(connection, args, queue)) as found:
        if args.action == "count":
            count = sum(1 for _ in found)
        while args.action != "count" and (some := list(itertools.islice(found, _ROWS))):
            count += len(some)
            if not args.json:
                terminal.table("", _HEADINGS, map(_row, some))
            for message in some if args.json else ():
                terminal.print_json(_to_json(message))
    if args.action == "count":
        if args.json:
            terminal.print_json({"queue": str(queue), "selector": args.selector, "count": count})
        else:
            terminal.say(str(count))
    elif args.action in _DONE:
        terminal.note(f"{_summary(count, queue, target, f'would be {_DONE[args.action]}')}; nothing was")
    else:
        terminal.note(_summary(count, queue, None, ""))
    return 0


class _Step(NamedTuple):
    """One message, its delivery (None where it was browsed), and the file that records it."""

    message: JmsMessage
    delivery: Delivery | None = None
    record: str | None = None


def _received_steps(
    session: Session, connection: Connection, args: argparse.Namespace, queue: Destination, stop: Stop
) -> Iterator[_Step]:
    """The unacknowledged messages of a queue, until none has come for a while."""
    most = args.limit
    if most is None and Capability.BROWSE in connection.capabilities:
        with closing(_browsed(connection, args, queue)) as waiting:
            most = sum(1 for _ in waiting)  # a message that comes back meanwhile is not taken again
    with session.consumer(queue, args.selector) as consumer:
        taken = 0
        while (most is None or taken < most) and (delivery := _next(consumer, args.wait, stop)) is not None:
            taken += 1
            yield _Step(delivery.message, delivery)


def _next(consumer: Consumer, wait: float, stop: Stop) -> Delivery | None:
    end = time.monotonic() + wait
    while not stop.is_set():
        left = max(0.0, end - time.monotonic())
        if (delivery := consumer.receive(min(left, _LOOK))) is not None:
            return delivery
        if not left:
            break
    return None


class _Work:
    """Copies, moves or purges messages, batch by batch.

    Args:
        session: transacted; what is sent goes through it.
        target: where they go; None: nowhere.
    """

    def __init__(
        self, session: Session, args: argparse.Namespace, queue: Destination, target: Destination | None, most: int
    ) -> None:
        self._session = session
        self._args = args
        self._queue = queue
        self._target = target
        self._most = most
        self._folder: Path | None = args.record
        if args.record is None and args.action != "copy":
            self._folder = default_record(args.action, queue)
        self._landing: DurableLanding | None = None
        self._batch: list[_Step] = []
        self._sent: list[Delivery] = []
        self._done = 0

    def do(self, steps: Iterator[_Step], stop: Stop) -> bool:
        """Process all messages, and print their number, even after a failure; False if it was stopped."""
        try:
            size = 0
            for step in steps:
                self._take(step)
                size += len(step.message.body)
                if len(self._batch) >= self._most or size >= _BATCH_BYTES:
                    self._commit()
                    size = 0
                if stop.is_set():
                    break
            self._commit()
            stopped = stop.is_set()
        except UnknownOutcomeError:
            self._report(terminal.problem, f"; {len(self._batch):,} more may or may not have been")
            raise
        except BaseException:
            also = f"; {len(self._sent):,} of them may still be where they were as well" if self._sent else ""
            self._report(terminal.problem, f"{also}; the other messages are unchanged")
            raise
        if stopped:
            self._report(terminal.problem, "; then it was stopped, and the other messages are unchanged")
        else:
            self._report(terminal.note if self._args.json else terminal.say, "")
        return not stopped

    def _take(self, step: _Step) -> None:
        record = None
        if self._folder is not None:
            if self._landing is None:
                self._landing = DurableLanding(self._folder)
                if self._args.record is None:
                    self._folder.chmod(0o700)
            record = str(self._landing.land(step.message).path)
        if self._target is not None:
            self._session.send(self._target, as_moved(step.message))
        self._batch.append(step._replace(record=record))

    def _commit(self) -> None:
        if not self._batch:
            return
        self._session.commit()
        self._done += len(self._batch)
        done, self._batch = self._batch, []
        self._sent = [step.delivery for step in done if step.delivery is not None and self._args.action != "copy"]
        while self._sent:  # in a transacted session the commit has acknowledged them
            self._sent[0].acknowledge()
            del self._sent[0]
        if self._args.json:
            for message, _, record in done:
                terminal.print_json({**_to_json(message), "record": record})

    def _report(self, print_line: Callable[[str], None], rest: str) -> None:
        summary = _summary(self._done, self._queue, self._target, _DONE[self._args.action])
        where = f"; the record is {self._folder}" if self._landing is not None else ""
        print_line(f"{summary}{rest}{where}")


def default_record(action: str, queue: Destination) -> Path:
    """Where messages are recorded by default: a new folder below the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    name = re.sub(r"[^\w.-]", "_", queue.name)[:80]
    moment = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S.%f")
    state = Path(base) if base else Path.home() / ".local" / "state"
    return state / "mtosi-jms" / "queue" / f"{moment}-{action}-{name}"


def as_moved(message: JmsMessage) -> JmsMessage:
    """A received message for the same provider: with its reply queue, and what is left of its time to live."""
    life = 0
    if message.expiration_ms:
        life = max(message.expiration_ms - int(time.time() * 1000), 1)
    return dataclasses.replace(as_new(message), reply_to=message.reply_to, time_to_live_ms=life)


def _summary(count: int, queue: Destination, target: Destination | None, done: str) -> str:
    to = "" if target is None else f" to {target}"
    return f"{counted(count)} {done} from {queue}{to}" if done else f"{counted(count)} at {queue}"


def _row(message: JmsMessage) -> tuple[object, ...]:
    value_of = message.properties.get
    names = ("MTOSI_msgName", "MTOSI_msgType", "MTOSI_correlationId", "MTOSI_batchSequenceNumber")
    cells = [None if (value := value_of(name)) is None else str(value) for name in names]
    again = "yes" if message.redelivered else None
    return moment(message.timestamp_ms), *cells, message.priority, f"{len(message.body):,}", again, message.message_id


def _to_json(message: JmsMessage) -> dict[str, Any]:
    properties = shown_properties(message.properties)
    return {**headers_of(message), "properties": properties, "bytes": len(message.body)}
