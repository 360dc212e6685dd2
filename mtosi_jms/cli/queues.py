"""Shows, counts, copies, moves, redrives or removes the messages of a queue.

Browsing consumes nothing. Redrive sends each message to where it came from. Move, redrive and purge first record the
messages in a landing. If they are killed, no message is lost; `docs/commands.md` says what may be there twice.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, local, positive, seconds, selector
from mtosi_jms.cli.providers import add_provider, open_connection
from mtosi_jms.cli.running import INTERRUPTED, Stop, until_signalled
from mtosi_jms.cli.terminal import counted
from mtosi_jms.errors import UnknownOutcomeError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.jms.display import headers_of, moment, shown_properties
from mtosi_jms.runtime.queues import REASONS, QueueWork, for_reason, origin_of, reason_of
from mtosi_jms.transport import Capability, Connection, Session

__all__ = ["add_arguments", "operate", "run"]

_DONE: Final = {"copy": "copied", "move": "moved", "redrive": "redriven", "purge": "purged"}
_ACTIONS: Final = ("browse", "count", *_DONE)
_SENDS: Final = ("copy", "move")
_ROWS: Final = 500
"""Most rows of a table of messages; more follow in another one, so that memory does not grow with the queue."""
_MORE: Final = 1000
"""Most messages that are counted after those of --limit, where the provider does not tell the number."""
_WAIT: Final = 3.0
_HEADINGS: Final = (
    "sent",
    "message",
    "type",
    "correlationId",
    "batch",
    "reason",
    "from",
    "prio",
    "bytes",
    "again",
    "id",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `queue`."""
    parser.add_argument("action", choices=_ACTIONS)
    parser.add_argument("name", metavar="NAME", help="the queue: queue:X, or a name in --names")
    add_provider(parser)
    parser.add_argument("--to", metavar="NAME", help="the queue to copy or move to")
    parser.add_argument("--selector", type=selector, metavar="S", help="only messages that match")
    parser.add_argument("--reason", metavar="R", help="only dead letters of this reason, as count --by reason shows it")
    parser.add_argument(
        "--by", metavar="NAME", help="count: for each reason, or for each value of a property such as MTOSI_msgName"
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N messages")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
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
    if args.by is not None and (args.action != "count" or args.limit is not None):
        raise argparse.ArgumentError(None, "--by is for count, without --limit")
    if args.reason is not None:
        args.selector = " AND ".join([for_reason(args.reason), *([f"({args.selector})"] if args.selector else [])])
    with until_signalled(args) as stop, open_connection(args) as connection:
        return operate(connection, args, stop)


def operate(connection: Connection, args: argparse.Namespace, stop: Stop, batch: int | None = None) -> int:
    """Do the action over a connection, so many messages at a time; 130 where the stop was set.

    Raises:
        ConfigError: a topic, one queue as source and target, or the transport cannot browse.
        SpoolError: a message cannot be recorded: it stays where it is.
        TransportError: the provider failed; a line says how many messages are done.
    """
    queue = connection.names.lookup(args.name)
    target = None if args.to is None else connection.names.lookup(args.to)
    if args.action in _DONE:
        work = QueueWork(
            connection,
            args.action,
            queue,
            target=target,
            selector=args.selector,
            limit=args.limit,
            record=args.record,
            wait=args.wait,
            batch=batch,
        )
        if not args.dry_run:
            return _work(work, args, stop, queue, target)
    with connection.session() as session:
        return _look(session, args, queue, target)


def _look(session: Session, args: argparse.Namespace, queue: Destination, target: Destination | None) -> int:
    """Show what is in the queue, and what would be done with it."""
    if args.action == "count":
        return _count(session, args, queue)
    total, shown = None, 0
    if Capability.BROWSE not in session.connection.capabilities:  # who browses would read the messages twice
        total = session.count(queue, args.selector)
    steps = min(total or sys.maxsize, args.limit or sys.maxsize)
    with (
        terminal.progress("messages", None if steps == sys.maxsize else steps) as advance,
        closing(session.headers(queue, args.selector)) as found,
    ):
        wanted = itertools.islice(found, args.limit)
        above: Mapping[int, int] = {}
        while some := list(itertools.islice(wanted, _ROWS)):
            shown += len(some)
            advance(len(some))
            if args.json:
                for message in some:
                    terminal.print_json(_to_json(message))
            else:
                above = terminal.table("", _HEADINGS, map(_row, some), above)
        more = sum(1 for _ in itertools.islice(found, _MORE)) if total is None else max(total - shown, 0)
    rest = f"{shown:,} of {'more than ' if total is None and more == _MORE else ''}"
    number = f"{rest if more else ''}{counted(shown + more)}"
    to = "" if target is None else f" to {target}"
    if args.action in _DONE:
        terminal.note(f"{number} would be {_DONE[args.action]} from {queue}{to}; nothing was")
    else:
        terminal.note(f"{number} at {queue}")
    return 0


def _count(session: Session, args: argparse.Namespace, queue: Destination) -> int:
    told: dict[str, Any] = {"queue": str(queue), "selector": args.selector}
    if args.by is None:
        with terminal.progress("counting"):
            told["count"] = min(session.count(queue, args.selector), args.limit or sys.maxsize)
        if args.json:
            terminal.print_json(told)
        else:
            terminal.say(str(told["count"]))
        return 0
    with terminal.progress("counting"):
        found = session.count_by(queue, REASONS if args.by == "reason" else (args.by,), args.selector)
    rows = [
        (count, None if value is None else shown_properties({args.by: value})[args.by])
        for value, count in sorted(found.items(), key=lambda one: (-one[1], one[0] is None, one[0] or ""))
    ]
    told["count"] = sum(found.values())
    if args.json:
        counts = [{"value": value, "count": count} for count, value in rows]
        terminal.print_json({**told, "by": args.by, "counts": counts})
        return 0
    shown = [(f"{count:,}", "not told" if value is None else value) for count, value in rows]
    terminal.table("", ("messages", args.by), shown)
    terminal.note(f"{counted(told['count'])} at {queue}")
    return 0


def _work(work: QueueWork, args: argparse.Namespace, stop: Stop, queue: Destination, target: Destination | None) -> int:
    """Do it, and print the number of messages, even after a failure."""
    to = "" if target is None else f" to {target}"

    def summary(rest: str = "") -> str:
        where = "" if work.folder is None else f"; the record is {work.folder}"
        return f"{counted(work.done)} {_DONE[args.action]} from {queue}{to}{rest}{where}"

    try:
        with terminal.progress("messages") as advance:
            for message, there, record in work.run(stop.is_set):
                advance(1, total=work.expected)
                if args.json:
                    facts = {} if args.action != "redrive" else {"to": str(there)}
                    terminal.print_json({**_to_json(message), **facts, "record": record})
        stopped = stop.is_set()
    except UnknownOutcomeError:
        terminal.problem(summary(f"; {work.pending:,} more may or may not have been"))
        raise
    except BaseException:
        also = f"; {work.doubled:,} of them may still be where they were as well" if work.doubled else ""
        terminal.problem(summary(f"{also}; the other messages are unchanged"))
        raise
    if stopped:
        terminal.problem(summary("; then it was stopped, and the other messages are unchanged"))
        return INTERRUPTED
    (terminal.note if args.json else terminal.say)(summary())
    if work.stayed:
        terminal.problem(
            f"{counted(work.stayed)} stayed at {queue}: without an original destination; queue move {queue} --to NAME"
        )
    if work.left:
        terminal.problem(
            f"{counted(work.left)} that match are still at {queue}, though none came for {args.wait:g} seconds: "
            "another consumer holds them, or they are behind more than the broker reads from disk (Artemis: "
            "max-read-page-bytes)"
        )
    return 1 if work.stayed or work.left else 0


def _row(message: JmsMessage) -> tuple[object, ...]:
    value_of = message.properties.get
    names = ("MTOSI_msgName", "MTOSI_msgType", "MTOSI_correlationId", "MTOSI_batchSequenceNumber")
    cells = [None if (value := value_of(name)) is None else str(value) for name in names]
    again = "yes" if message.redelivered else None
    size = f"{len(message.body):,}" if message.body else None
    why = (reason_of(message), origin_of(message))
    return moment(message.timestamp_ms), *cells, *why, message.priority, size, again, message.message_id


def _to_json(message: JmsMessage) -> dict[str, Any]:
    properties = shown_properties(message.properties)
    return {**headers_of(message), "properties": properties, "bytes": len(message.body) or None}
