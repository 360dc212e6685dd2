"""Sends the messages of landings, or of any folders of envelopes (*.xml, *.xml.gz, *.xml.zst), again.

Each landing is sent in the order of its file names, which is the order of arrival. Headers and typed properties come
from the side car. So a PERSISTENT message keeps its MTOSIX_messageId, by which a receiver recognizes a resend. For an
envelope without a side car, the binding makes them from its header. Message id, timestamp and expiration are new. A
temporary reply queue no longer exists, so the message has no JMSReplyTo.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mtosi_jms.binding import BindingProfile
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, local, rate, selector
from mtosi_jms.cli.documents import error_text, landed_files, load, mapping_of, require_header, shown_value
from mtosi_jms.cli.providers import add_provider, open_connection
from mtosi_jms.cli.running import INTERRUPTED, Stop, add_monitor, monitored, reached, until_signalled
from mtosi_jms.cli.terminal import counted
from mtosi_jms.errors import MtosiError, NamingError, SpoolError, TransportError
from mtosi_jms.jms import DUPLICATE_ID, JmsMessage, NamingContext
from mtosi_jms.jms.selector import parse
from mtosi_jms.runtime.queues import as_new
from mtosi_jms.soap import header_text
from mtosi_jms.spool import open_entry
from mtosi_jms.transport import Connection, publish

_ENVELOPE: Final = ".xml"
_SHOWN_PROPERTIES: Final = ("MTOSI_msgType", "MTOSI_msgName", "MTOSI_correlationId", "MTOSI_batchSequenceNumber")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "landings", nargs="+", type=local, metavar="LANDING", help="a landing, a folder of envelopes, or one envelope"
    )
    add_provider(parser)
    parser.add_argument("--to", required=True, metavar="NAME", help="the destination to send to")
    parser.add_argument("--rate", type=rate, metavar="N", help="at most N messages a second (no limit)")
    parser.add_argument("--selector", type=selector, default="", metavar="S", help="send only messages that match")
    add_monitor(parser)
    add_json(parser, "one JSON line for each message")


def run(args: argparse.Namespace) -> int:
    """Send the messages again; 1 where some could not be sent, 130 where a signal stopped it before the end."""
    files = [file for landing in args.landings for file in landed_files(landing)]
    with (
        until_signalled(args, is_prompt=True) as stop,
        monitored(args) as monitoring,
        open_connection(args, telemetry=monitoring.telemetry) as connection,
    ):
        monitoring.add(reached(connection))
        return replay(connection, args, files, stop)


def replay(connection: Connection, args: argparse.Namespace, files: list[Path], stop: Stop) -> int:
    """Send landed messages over a connection; 1 where some could not be sent, 130 if stopped before the end."""
    target, wanted = connection.names.lookup(args.to), parse(args.selector)
    sent = left_out = 0
    bad: list[Path] = []
    with connection.session() as session:
        begin = time.monotonic()
        for path, message in _messages(files, connection.names, bad):
            if not wanted.accepts(message):
                left_out += 1
                continue
            if args.rate is not None:
                stop.wait(max(0.0, begin + sent / args.rate - time.monotonic()))
            if stop.is_set():
                terminal.problem(f"stopped: sent {counted(sent)} to {target}; the next is {path}")
                return INTERRUPTED
            try:
                _show(path, publish(session, target, as_new(message)), as_json=args.json)
            except (TransportError, KeyboardInterrupt):
                terminal.problem(f"sent {counted(sent)} to {target}; {path} may or may not have been sent")
                raise
            sent += 1
    others = f"; the selector left out {left_out:,}" if left_out else ""
    others += f"; {len(bad):,} at fault" if bad else ""
    terminal.note(f"{counted(sent)} sent to {target}{others}")
    return 1 if bad else 0


def _messages(files: list[Path], names: NamingContext, bad: list[Path]) -> Iterator[tuple[Path, JmsMessage]]:
    """The landed messages one after the other; a file at fault is reported, and goes to `bad`."""
    for path in files:
        try:
            yield path, _message(path, names)
        except (MtosiError, OSError) as error:
            terminal.problem(error_text(str(path), error))
            bad.append(path)


def _message(path: Path, names: NamingContext) -> JmsMessage:
    if path.suffix != _ENVELOPE or not path.with_suffix(".json").exists():
        return _from_envelope(path, names)
    entry = open_entry(path, strict=True)
    if damage := entry.damage():
        raise SpoolError(str(path), damage)
    return entry.message()


def _from_envelope(path: Path, names: NamingContext) -> JmsMessage:
    document = load(str(path))
    header = require_header(document)
    profile = BindingProfile()
    mapping = mapping_of(document, profile, tuple(sorted(profile.filter_properties)))
    reply_to = None
    if mapping.reply_to_uri is not None and header_text(header, "msgType") == "REQUEST":
        try:
            reply_to = names.lookup(mapping.reply_to_uri)
        except NamingError as error:
            terminal.note(f"{path}: no JMSReplyTo: {error}")
    return JmsMessage(
        body=document.data,
        properties=mapping.properties,
        reply_to=reply_to,
        delivery_mode=profile.delivery_mode,
        priority=mapping.priority,
        time_to_live_ms=mapping.time_to_live_ms,
    )


def _show(path: Path, sent: JmsMessage, *, as_json: bool) -> None:
    if as_json:
        facts = {name.removeprefix("MTOSI_"): sent.properties.get(name) for name in _SHOWN_PROPERTIES}
        resend = sent.properties.get(DUPLICATE_ID)
        facts |= {"delivery_mode": sent.delivery_mode.name, DUPLICATE_ID: resend, "message_id": sent.message_id}
        terminal.print_json({"file": str(path), "destination": str(sent.destination), **facts})
        return
    facts = {name: sent.properties[name] for name in _SHOWN_PROPERTIES if name in sent.properties}
    terminal.say(f"sent: {path.name}: {' '.join(map(shown_value, facts.values())) or 'a message without properties'}")
