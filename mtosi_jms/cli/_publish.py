"""Sends each file as one message.

An envelope with a notify body is sent as it is. A notify body, or a single event, gets a new header. All files are read
before the first message is sent. If any file is at fault, nothing is sent.
"""

from __future__ import annotations

import argparse
import copy
from typing import Final, NamedTuple

from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import EVENT_NAMES, events_of, logical_name
from mtosi_jms.binding.mapping import to_jms
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, PRESETS
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, known_words
from mtosi_jms.cli.documents import add_files, error_text, files_in, shown_value
from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.cli.providers import add_provider, open_connection
from mtosi_jms.errors import EnvelopeError, MtosiError
from mtosi_jms.exchange.messages import stamped
from mtosi_jms.inventory import is_release1
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.jms.display import shown_properties
from mtosi_jms.namespaces import NOTMSG, SOAP11, SOAP12, TMF854, clark, split_clark
from mtosi_jms.notifications import notification_header
from mtosi_jms.soap import Envelope, Header, header_text, parse, stubs_header
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import RawXml, XmlWarning, decode, find_element, parse_xml, read_document

_ENVELOPES: Final = (clark(SOAP11, "Envelope"), clark(SOAP12, "Envelope"))
_NOTIFY: Final = (clark(NOTMSG, "notify"), clark(TMF854, "notify"))
_EVENT_TYPE: Final = "CommonEventInformationType"
_SENDER: Final = "mtosi-jms"
_NONE: Final = "none"


class Notification(NamedTuple):
    """What a file holds: a notify element, or an event alone; with the envelope where that goes out as it is."""

    file: str
    body: etree._Element
    envelope: Envelope | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser, "envelope, notify body or event")
    add_provider(parser)
    parser.add_argument("--topic", required=True, metavar="NAME", help="the topic to send to")
    parser.add_argument(
        "--filter",
        type=known_words("filterable attribute", {*FILTER_ATTRIBUTES, _NONE}),
        metavar="NAME,...",
        help="attributes of Table 4 that become properties for selectors; the word none: no attributes (the profile's)",
    )
    parser.add_argument("--profile", choices=list(PRESETS), default="default", help="the binding profile (%(default)s)")
    parser.add_argument("--sender", default=_SENDER, metavar="URI", help=f"senderURI of new headers ({_SENDER})")
    parser.add_argument("--new-header", action="store_true", help="replace the headers of envelopes too")
    parser.add_argument("--persistent", action="store_true", help="have the provider store the messages")
    add_json(parser, "one JSON line for each message")


def run(args: argparse.Namespace) -> int:
    """Publish the files; 1 where one cannot be, and then none is."""
    found: list[Notification] = []
    code = 0
    for file in files_in(args.files):
        try:
            found.append(read_notification(file, new_header=args.new_header))
        except (MtosiError, OSError) as error:
            terminal.problem(error_text(file, error))
            code = 1
    if code:
        return code
    with log_in_lines(args), open_connection(args) as connection:
        return publish(connection, args, found)


def read_notification(file: str, *, new_header: bool = False) -> Notification:
    """The notification in a file; breaches of the schema become notes."""
    data = read_document(file)
    root = parse_xml(data, source=file)
    if root.tag in _ENVELOPES:
        envelope = parse(data, source=file)
        _report(file, envelope.warnings)
        body = next((child for part in root if str(part.tag).endswith("}Body") for child in part), None)
        if body is None or body.tag not in _NOTIFY:
            raise EnvelopeError("an envelope without a notify body", source=file, line=root.sourceline)
        return Notification(file, body, None if new_header else _checked(envelope, file))
    if root.tag not in _NOTIFY and not _is_event(str(root.tag)):
        raise EnvelopeError(f"{split_clark(str(root.tag))[1]} is neither an event nor a notify", source=file)
    warnings: list[XmlWarning] = []
    decode(root, warnings=warnings, source=file)
    _report(file, warnings)
    return Notification(file, root)


def _checked(envelope: Envelope, file: str) -> Envelope:
    kind = header_text(envelope.header, "msgType") if envelope.header is not None else None
    if kind != "NOTIFICATION":
        reason = "it has no MTOSI header" if envelope.header is None else f"msgType in its header is {kind or 'absent'}"
        raise EnvelopeError(f"not a notification, {reason}; --new-header makes it one", source=file)
    return envelope


def _report(file: str, warnings: list[XmlWarning]) -> None:
    for warning in warnings:
        terminal.note(f"{file}: {warning}")


def _is_event(tag: str) -> bool:
    cls = find_element(tag)
    if cls is None:
        return logical_name(split_clark(tag)[1]) in EVENT_NAMES
    tables = (parent.__dict__.get("__xml__") for parent in cls.__mro__)
    return any(table is not None and table.type_name == _EVENT_TYPE for table in tables)


def publish(connection: Connection, args: argparse.Namespace, found: list[Notification]) -> int:
    """Send notifications over a connection, in their order; 1 where one must not be sent as it is, and then none is.
    Raises TransportError: the provider failed; messages before the one at fault were sent."""
    topic = connection.names.lookup(args.topic)
    profile = BindingProfile.preset(args.profile)
    filters = sorted(profile.filter_properties) if args.filter is None else [x for x in args.filter if x != _NONE]
    messages: list[tuple[Notification, JmsMessage, list[str]]] = []
    for one in found:
        try:
            envelope = one.envelope or _envelope(one, connection.names.uri_of(args.topic), args.sender)
            header = envelope.header or Header()
            message = to_jms(header, envelope, profile, names=connection.names, filters=filters, one_way=True)
        except MtosiError as error:
            terminal.problem(error_text(one.file, error))
            return 1
        events = [logical_name(split_clark(str(event.tag))[1]) for event in events_of(envelope.body)]
        messages.append((one, stamped(message, args.persistent or None, None), events))
    with connection.session() as session:
        for one, message, events in messages:
            _show(args, one.file, topic, session.send(topic, message), events)
    return 0


def _envelope(one: Notification, uri: str, sender: str) -> Envelope:
    """An envelope with a header of our own."""
    body = one.body
    namespace = TMF854 if is_release1(str(body.tag)) else NOTMSG
    if body.tag not in _NOTIFY:
        body = etree.Element(clark(namespace, "notify"))
        etree.SubElement(body, clark(namespace, "topic")).text = uri
        etree.SubElement(body, clark(namespace, "message")).append(copy.deepcopy(one.body))
    header = notification_header(stubs_header("", namespace, ""), sender, uri)
    return Envelope(header=header, body=RawXml.from_element(body))


def _show(args: argparse.Namespace, file: str, topic: Destination, sent: JmsMessage, events: list[str]) -> None:
    properties = shown_properties(sent.properties)
    if args.json:
        facts = {"file": file, "topic": str(topic), "message_id": sent.message_id, "events": events}
        terminal.print_json({**facts, "properties": properties})
        return
    filters = " ".join(
        f"{name}={shown_value(value)}"
        for name, value in properties.items()
        if name.removeprefix("MTOSI_") in FILTER_ATTRIBUTES
    )
    terminal.say(f"sent: {file}: {', '.join(map(shown_value, events)) or 'no event'} to {topic} {filters}".rstrip())
