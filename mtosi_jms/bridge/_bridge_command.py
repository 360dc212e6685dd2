"""Forwards events of a CORBA Notification Service to JMS, or messages of JMS to a channel.

One side is a channel: corbaloc:..., corbaname:... or the path of a file with an object reference, of the channel or of
its factory. The other side is queue:NAME, topic:NAME or a name in --names. With --mapping mtnm it may also be a TOML
file that has a topic for each category. Prints one line that begins with `ready`. After SIGTERM or SIGINT it forwards
what it has received, then ends.

With --login the channel belongs to an element manager of MTNM. --from is then the manager's factory of sessions
(EmsSessionFactory_I) or, with --ems, the naming service that knows the factory. The bridge keeps the session alive. If
the session is lost, the bridge begins a new one.

Events that cannot become a message, and messages that cannot become an event, are reported and left out; the others are
forwarded. A lost connection is reported and opened again. With --mapping mtnm, subscribers also get EventLossOccured
and EventLossCleared.
"""

from __future__ import annotations

import argparse
import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.bridge import (
    LOSS_OCCURRED,
    Bridge,
    BridgeFactory,
    BridgeOptions,
    BridgeRules,
    BridgeStatus,
    EventLoss,
    ExternalEndpoint,
    ExternalEndpointRole,
    FlowStyle,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge._keeper import LossMapper, Mapper
from mtosi_jms.bridge.endpoints import Channel
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.broker import default_channel_folder
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, local, positive, seconds, selector, whole
from mtosi_jms.cli.providers import add_provider, open_connection, password_of
from mtosi_jms.cli.running import Stop, add_monitor, monitored, until_signalled
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.spool import Outbox, watch_outbox
from mtosi_jms.transport import Connection

if TYPE_CHECKING:
    from mtosi_jms.notifications import Event, Publisher

_SCHEMES: Final = ("corbaloc:", "corbaname:")
_LOOK: Final = 1.0
_EVERY: Final = 60.0
_SENDER: Final = "mtosi-jms"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", required=True, metavar="SOURCE", help="the source: a channel or a destination"
    )
    parser.add_argument(
        "--to", dest="sink", required=True, metavar="SINK", help="the target: a destination or a channel"
    )
    add_provider(parser)
    parser.add_argument("--channel", type=whole(0), metavar="ID", help="one of the factory's channels (its only one)")
    parser.add_argument(
        "--login",
        metavar="USER",
        help="log in to an element manager and use its channel; --password-file is then for this user, and the "
        "password for JMS comes from the URL or the environment",
    )
    parser.add_argument(
        "--ems", metavar="NAME", help="with --login: name of its EmsSessionFactory_I in the naming service --from"
    )
    parser.add_argument(
        "--mapping",
        choices=("omg", "mtnm"),
        default="omg",
        help="omg: the mapping of formal/04-10-09; mtnm: MTNM events become MTOSI notifications (%(default)s)",
    )
    parser.add_argument("--sender", default=_SENDER, metavar="URI", help=f"senderURI of notifications ({_SENDER})")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="mtnm: leave out invalid events; without it they become VendorNotifications",
    )
    parser.add_argument("--release", choices=("2.0", "4.0"), default="2.0", help="mtnm: release of MTOSI (%(default)s)")
    parser.add_argument("--charset", metavar="NAME", help="mtnm: character set of texts, such as gbk")
    parser.add_argument(
        "--selector",
        type=selector,
        metavar="S",
        help='condition on fields or properties, such as "layerRate > 20"; the source evaluates it',
    )
    parser.add_argument(
        "--constraint", default="", metavar="C", help="condition in Extended TCL; the channel evaluates it"
    )
    parser.add_argument(
        "--pull", action="store_true", help="fetch events from the source; without it, the source calls us"
    )
    parser.add_argument(
        "--batch", type=positive, default=50, metavar="N", help="maximum number of events in a call (%(default)s)"
    )
    parser.add_argument(
        "--durable",
        metavar="ID",
        help="name of a durable subscription to a topic, and client id; or of a connection to a channel that pushes, "
        "which the next run with this name resumes",
    )
    parser.add_argument(
        "--outbox", type=local, metavar="DIR", help="folder to store messages in until the provider has them"
    )
    parser.add_argument(
        "--listen-host",
        metavar="HOST",
        default="127.0.0.1",
        help="address of this host that the channel calls (%(default)s)",
    )
    parser.add_argument(
        "--advertise", metavar="HOST", default="", help="host to give to the channel, if not --listen-host"
    )
    parser.add_argument("--duration", type=seconds, metavar="S", help="end after S seconds")
    add_monitor(parser)
    add_json(parser, "one JSON document at the end")


def run(args: argparse.Namespace) -> int:
    from mtosi_jms.bridge.corba import Orb, OrbOptions
    from mtosi_jms.bridge.mtnm_session import MtnmSession

    from_channel, to_channel = _is_channel(args.source), _is_channel(args.sink)
    if from_channel is to_channel:
        raise argparse.ArgumentError(None, "one of --from and --to is a channel, and the other a destination of JMS")
    if args.mapping == "mtnm" and to_channel:
        raise argparse.ArgumentError(None, "--mapping mtnm goes from a channel to JMS")
    password = _ems_password(args, from_channel=from_channel)
    if args.durable is not None and to_channel and args.client_id is None:
        args.client_id = args.durable
    address = args.source if from_channel else args.sink
    with until_signalled(args) as stop, ExitStack() as stack:
        monitoring = stack.enter_context(monitored(args))
        telemetry = monitoring.telemetry
        keep = _keep(args) if from_channel else None
        orb = stack.enter_context(Orb(OrbOptions(listen=args.listen_host, advertise=args.advertise, keep=keep)))
        counts = _Counts()

        def find() -> Channel:
            return orb.channel(address, args.channel)

        if password:
            session = MtnmSession(orb, address, args.login, password, name=args.ems or "", on_loss=counts.report)
            stack.enter_context(session)
            find = session.event_channel
        channel = find()
        names = stack.enter_context(open_connection(_without_id(args), telemetry=telemetry))
        destination, topics = _destination(args, names)
        options = replace(_options(args, names, topics, counts, stack), find_channel=find)
        connect = {"": lambda: open_connection(args, telemetry=telemetry)}
        factory = stack.enter_context(BridgeFactory({channel.channel_id: channel}, connect, options))
        there, here = _ends(args, channel.channel_id, destination, from_channel=from_channel)
        bridge, _ = factory.create_bridge(there, here)
        counts.bridge = bridge
        bridge.start_bridge()
        monitoring.add(lambda: None if bridge.get_status() is BridgeStatus.ACTIVE else "a side is not connected")
        terminal.ready(f"ready: {args.source} to {args.sink} ({channel.name})")
        _forward(bridge, stop, args)
        orb.leave()
        bridge.destroy()
    return _summary(bridge, counts, args)


class _Counts:
    """What a bridge could not forward."""

    def __init__(self) -> None:
        self.parked = self.losses = 0
        self.bridge: Bridge | None = None

    def park(self, what: StructuredEvent | JmsMessage, error: MtosiError) -> None:
        self.parked += 1
        kind = f"event {what.type_name}" if isinstance(what, StructuredEvent) else f"message {what.message_id}"
        terminal.problem(f"{kind}: {error}")

    def fail(self, reason: str) -> None:
        terminal.problem(f"{reason}: nothing is delivered until the bridge is started again")

    def lose(self, what: str, reason: str) -> None:
        self.losses += what == LOSS_OCCURRED
        terminal.problem(f"{what}: {reason}")

    def report(self, loss: EventLoss) -> None:
        """A loss that the session knows of."""
        if self.bridge is None:
            self.lose(loss.what, loss.reason)
        else:
            self.bridge.tell_loss(loss)


def _ems_password(args: argparse.Namespace, *, from_channel: bool) -> str:
    """The password of --login; empty where there is no login. It is not for the JMS side."""
    if args.login is None:
        if args.ems is not None:
            raise argparse.ArgumentError(None, "--ems goes with --login")
        return ""
    if not from_channel or args.channel is not None:
        raise argparse.ArgumentError(None, "--login goes with --from, and without --channel")
    if args.password_file is None:
        raise argparse.ArgumentError(None, "--login goes with --password-file")
    found = password_of(args.password_file)
    args.password_file = None
    return found


def _keep(args: argparse.Namespace) -> Path | None:
    """The file by which a connection to a channel outlives this process."""
    if args.durable is None:
        return None
    if not _NAME.fullmatch(args.durable):
        raise argparse.ArgumentError(None, "--durable: a name of letters, digits, '.', '_' and '-'")
    if args.pull:
        raise argparse.ArgumentError(None, "--durable and --pull: a channel keeps for those alone that it pushes to")
    return default_channel_folder().parent / "bridge" / f"{args.durable}.json"


def _without_id(args: argparse.Namespace) -> argparse.Namespace:
    """The same, for a connection that is not the subscriber's."""
    return argparse.Namespace(**{**vars(args), "client_id": None})


def _is_channel(text: str) -> bool:
    return text.lower().startswith(_SCHEMES) or (not text.endswith(".toml") and Path(text).is_file())


def _destination(args: argparse.Namespace, names: Connection) -> tuple[Destination, Mapping[str, str]]:
    """The destination of the JMS side; and topics by category, where there is a file with them."""
    text = args.source if _is_channel(args.sink) else args.sink
    if not text.endswith(".toml"):
        return names.names.lookup(text), {}
    try:
        found: dict[str, Any] = tomllib.loads(read_file(text).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{text}: {error}") from None
    topics = found.get("topics", found)
    if args.mapping != "mtnm" or not topics or not all(isinstance(one, str) for one in topics.values()):
        raise ConfigError(f"{text}: a topic by category, for --mapping mtnm, such as Fault = 'topic:alarms'")
    return names.names.lookup(next(iter(topics.values()))), topics


def _ends(
    args: argparse.Namespace, channel_id: int, destination: Destination, *, from_channel: bool
) -> tuple[ExternalEndpoint, ExternalEndpoint]:
    grouping = MessageType.SEQUENCE_EVENT if args.batch > 1 else MessageType.STRUCTURED_EVENT
    kind = JMSDestinationType.TOPIC if destination.is_topic else JMSDestinationType.QUEUE
    jms = JMSDestination(kind, destination.name)
    style = FlowStyle.PULL if args.pull or not from_channel else FlowStyle.PUSH  # JMS gives several when it is asked
    source, sink = ExternalEndpointRole.SOURCE, ExternalEndpointRole.SINK
    if from_channel:
        return (
            ExternalEndpoint(source, channel_id, style, grouping),
            ExternalEndpoint(sink, jms, FlowStyle.PUSH, MessageType.JMS_MESSAGE),
        )
    return (
        ExternalEndpoint(source, jms, style, MessageType.JMS_MESSAGE),
        ExternalEndpoint(sink, channel_id, FlowStyle.PUSH, grouping),
    )


def _options(
    args: argparse.Namespace, names: Connection, topics: Mapping[str, str], counts: _Counts, stack: ExitStack
) -> BridgeOptions:
    from mtosi_jms.bridge.filters import to_etcl
    from mtosi_jms.jms.selector import parse

    constraint = args.constraint
    if args.selector and _is_channel(args.source):
        if constraint:
            raise argparse.ArgumentError(None, "--selector and --constraint say the same")
        constraint = to_etcl(parse(args.selector))
    outbox = None if args.outbox is None else stack.enter_context(Outbox(args.outbox))
    watch_outbox(names.telemetry, outbox)
    mapper, loss_mapper = _mappers(args, names, topics, stack) if args.mapping == "mtnm" else (None, None)
    return BridgeOptions(
        rules=BridgeRules(profile="mtosi" if args.mapping == "mtnm" else "omg"),
        constraint=constraint,
        selector=args.selector or "",
        durable=args.durable,
        batch=args.batch,
        outbox=outbox,
        mapper=mapper,
        loss_mapper=loss_mapper,
        on_parked=counts.park,
        on_failed=counts.fail,
        on_loss=counts.lose,
    )


def _mappers(
    args: argparse.Namespace, names: Connection, topics: Mapping[str, str], stack: ExitStack
) -> tuple[Mapper, LossMapper]:
    """Make notifications of events of MTNM, for one destination or for that of their category; and of losses."""
    from mtosi_jms.bridge.mtnm import MtnmRules, loss_notification_of, notification_of
    from mtosi_jms.notifications import Publisher, event_name

    rules = MtnmRules(charset=args.charset, strict=args.strict, release=args.release)
    single = None if topics else names.names.lookup(args.sink)
    publisher: Publisher = stack.enter_context(Publisher(names, topics or {"Fault": args.sink}, sender_uri=args.sender))
    every = list(dict.fromkeys(publisher.topics.values())) if single is None else [single]

    def messages(made: Event, there: Sequence[Destination]) -> Sequence[JmsMessage]:
        return [replace(publisher.message_of(one, [made]), destination=one) for one in there]

    def mapper(event: StructuredEvent) -> Sequence[JmsMessage]:
        mapped = notification_of(event, rules)
        for finding in mapped.findings:
            terminal.note(f"{event.type_name}: {finding}")
        made = mapped.notification
        category = publisher.profile.topic_category(event_name(made)) or mapped.category
        if single is not None or category is None:
            return messages(made, every)
        return messages(made, [publisher.topic_of(made, category)])

    return mapper, lambda loss: messages(loss_notification_of(loss), every)


def _forward(bridge: Bridge, stop: Stop, args: argparse.Namespace) -> None:
    """Wait for the end; report the rate each minute in which there was something."""
    begin = reported = time.monotonic()
    end = None if args.duration is None else begin + args.duration
    before = 0
    while not stop.wait(_LOOK if end is None else min(_LOOK, max(0.0, end - time.monotonic()))):
        now = time.monotonic()
        if now - reported >= _EVERY and bridge.forwarded != before:
            terminal.note(
                f"{(bridge.forwarded - before) / (now - reported):,.1f} a second; {bridge.get_status().value}"
            )
            before, reported = bridge.forwarded, now
        if end is not None and now >= end:
            return


def _summary(bridge: Bridge, counts: _Counts, args: argparse.Namespace) -> int:
    if args.json:
        terminal.print_json({"forwarded": bridge.forwarded, "left_out": counts.parked, "losses": counts.losses})
    else:
        terminal.say(f"{bridge.forwarded:,} forwarded, {counts.parked:,} left out, {counts.losses:,} losses told")
    return 1 if counts.parked else 0
