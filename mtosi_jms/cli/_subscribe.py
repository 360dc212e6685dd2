"""Prints a line for each event that arrives on a topic, and `ready` on standard error when it listens.

Ends after --count events, after --timeout seconds without one, or at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from mtosi_jms.binding.release1 import value_of, word
from mtosi_jms.cli import terminal
from mtosi_jms.cli._objects import plain
from mtosi_jms.cli.arguments import (
    add_json,
    add_stubs,
    add_validation,
    as_usage,
    positive,
    seconds,
    selector,
    validation_of,
)
from mtosi_jms.cli.providers import add_provider, open_connection
from mtosi_jms.cli.running import Stop, add_monitor, closing_at, monitored, reached, until_signalled
from mtosi_jms.errors import ConfigError, IllegalStateError, TransportError
from mtosi_jms.inventory import load_stubs
from mtosi_jms.jms.display import shown_properties
from mtosi_jms.jms.selector import composite
from mtosi_jms.notifications import Event, Received, Subscriber, event_name
from mtosi_jms.soap import header_text
from mtosi_jms.spool import DurableLanding
from mtosi_jms.transport import Connection

_SHOWN: Final = {
    "object_type": "objectType",
    "object_name": "objectName",
    "perceived_severity": "perceivedSeverity",
    "notification_id": "notificationId",
}
_TIME: Final = "sourceTime"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_provider(parser)
    parser.add_argument(
        "--topic", required=True, metavar="NAME", help="the topic to listen to; a queue's messages are consumed"
    )
    parser.add_argument(
        "--selector",
        action="append",
        default=[],
        type=selector,
        metavar="S",
        help="condition on properties, such as \"MTOSI_objectType = 'ME'\"; if repeated, all must hold",
    )
    parser.add_argument(
        "--durable",
        metavar="ID",
        help="name of a durable subscription: the provider keeps events while this command does not run; also the "
        "client id, unless --client-id sets another",
    )
    parser.add_argument("--landing", metavar="DIR", help="store each message there before it is acknowledged")
    parser.add_argument("--count", type=positive, metavar="N", help="end after N events")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="end after S seconds without an event")
    add_stubs(parser)
    add_validation(parser, "notifications")
    add_monitor(parser)
    add_json(parser, "one JSON line for each event")


def run(args: argparse.Namespace) -> int:
    """Show events; 1 where messages could not be read or were no events, or fewer than --count arrived in time."""
    with as_usage():
        load_stubs(args.stubs)
    if args.durable is not None and args.client_id is None:
        args.client_id = args.durable
    with (
        until_signalled(args) as stop,
        monitored(args) as monitoring,
        open_connection(args, telemetry=monitoring.telemetry) as connection,
    ):
        return subscribe(connection, args, stop, lambda: monitoring.add(reached(connection)))


def subscribe(
    connection: Connection, args: argparse.Namespace, stop: Stop, listens: Callable[[], object] = lambda: None
) -> int:
    """Show the events that arrive over a connection, until the stop is set or enough of them arrived."""
    problems: list[str] = []

    def wrong(what: str) -> None:
        problems.append(what)
        terminal.problem(what)

    with ExitStack() as stack:
        landing = stack.enter_context(DurableLanding(args.landing)) if args.landing else None
        subscriber = stack.enter_context(
            Subscriber(
                connection,
                args.topic,
                selector=composite(*args.selector) if args.selector else None,
                durable=args.durable,
                timeout=args.timeout,
                landing=landing,
                on_error=lambda error: wrong(f"a message that cannot be read: {error}"),
                validate=validation_of(args),
            )
        )
        where = connection.names.lookup(args.topic)
        listens()
        terminal.ready(f"ready: {args.topic} ({where})")
        with closing_at(stop, subscriber.close):
            shown = _show_events(subscriber, args, stop, wrong)
    if args.count is not None and shown < args.count and not stop.is_set():
        terminal.problem(f"{shown} of {args.count} events arrived; then none for {args.timeout:g} seconds")
        return 1
    return 1 if problems else 0


def _show_events(subscriber: Subscriber, args: argparse.Namespace, stop: Stop, wrong: Callable[[str], object]) -> int:
    shown = 0
    try:
        for received in subscriber:
            shown += 1
            _show(received, as_json=args.json)
            if _is_call(received):
                wrong(f"no event, but a call's message was taken from {args.topic}: its receiver does not get it")
            if shown == args.count:
                break
    except (TransportError, IllegalStateError):
        if not stop.is_set():  # it was closed in the middle: what was not acknowledged comes again
            raise
    return shown


def _is_call(received: Received) -> bool:
    """Whether a message is a request or a reply; that its header says so is not enough, as some events' headers do."""
    header, event = received.envelope.header, received.event
    if header is None or header_text(header, "msgType") not in ("REQUEST", "RESPONSE"):
        return False
    return all(value_of(event, field) is None for field in (*_SHOWN.values(), _TIME, "osTime"))


def _show(received: Received, *, as_json: bool) -> None:
    if as_json:
        terminal.print_json(_to_json(received))
        return
    event = received.event
    moment = value_of(event, _TIME) or value_of(event, "osTime")
    facts = [plain(moment), _name_of(event), *(_shown(event, field) for field in _SHOWN.values())]
    terminal.say(" ".join(str(fact) for fact in facts if fact is not None))
    terminal.flush()


def _to_json(received: Received) -> dict[str, Any]:
    event, envelope, message = received
    return {
        "event": _name_of(event),
        **{name: _shown(event, field) for name, field in _SHOWN.items()},
        "source_time": plain(value_of(event, _TIME)),
        "message_id": message.message_id,
        "redelivered": message.redelivered,
        "properties": shown_properties(message.properties),
        "sender": header_text(envelope.header, "senderURI") if envelope.header is not None else None,
        "body": plain(event),
    }


def _shown(event: Event, field: str) -> Any:
    value = plain(value_of(event, field))
    return word(field, value) if isinstance(value, str) else value


def _name_of(event: Event) -> str:
    """An event's logical name; of what is not an event the name of its element, or of its class."""
    try:
        return event_name(event)
    except ConfigError:
        return type(event).__name__
