"""Event channels of CORBA's Notification Service.

`up`, `down` and `status` manage JacORB's notification service, for development. It listens on loopback, has one
channel, and comes from Maven Central, once, into the user's cache. It stores nothing: if you stop it, its events are
lost. `status` exits with 1 if it is not running.

`publish` sends events, one JSON object a line. `subscribe` fetches events and prints them in the same form, and `ready`
on standard error when it is connected. Both use that channel, or another one that --at names.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.bridge.corba import Orb
from mtosi_jms.bridge.endpoints import FlowStyle, Grouping
from mtosi_jms.bridge.event_json import event_from_json, event_to_json
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.broker import DevelopmentChannel, default_channel_folder, find_channel, start_channel, stop_channel
from mtosi_jms.broker.background import down_or_status
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, local, positive, seconds, whole
from mtosi_jms.cli.running import until_signalled
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, EventError

_AT_ONCE: Final = 100
_LOOK: Final = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in (("up", "start the service"), ("down", "stop it"), ("status", "show it")):
        action = actions.add_parser(name, help=what)
        _add_folder(action)
        if name == "up":
            action.add_argument("--port", type=whole(1, 65_535), metavar="N", help="port on loopback (a free one)")
        add_json(action)
    publish = actions.add_parser("publish", help="send events")
    publish.add_argument("files", nargs="*", metavar="FILE", help="events, one JSON object a line (standard input)")
    subscribe = actions.add_parser("subscribe", help="print events")
    subscribe.add_argument(
        "--constraint", metavar="C", default="", help="condition for the channel, in Extended TCL: \"$x == 'y'\""
    )
    subscribe.add_argument("--count", type=positive, metavar="N", help="end after N events")
    subscribe.add_argument("--timeout", type=seconds, metavar="S", help="end after S seconds without an event")
    for action in (publish, subscribe):
        action.add_argument(
            "--at", metavar="ADDRESS", help="corbaloc:..., corbaname:... or a file with a reference (what up started)"
        )
        action.add_argument("--channel", type=whole(0), metavar="ID", help="one of the factory's channels")
        _add_folder(action)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", type=local, default=default_channel_folder(), help="folder of the service (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 1 where `status` finds no service, or fewer events came than --count."""
    match args.action:
        case "up":
            _show(start_channel(args.dir, args.port), as_json=args.json)
            return 0
        case "publish":
            return _publish(args)
        case "subscribe":
            return _subscribe(args)
        case _:
            return down_or_status(args, "notification service", stop_channel, find_channel, _show)


def _show(channel: DevelopmentChannel, *, as_json: bool) -> None:
    if as_json:
        terminal.print_json(channel.to_json())
        return
    terminal.say(f"JacORB's notification service runs in {channel.folder}, process {channel.pid}", "good")
    terminal.say(f"corbaloc  {channel.corbaloc}")
    terminal.say(f"IOR file  {channel.ior_file}")


def _address(args: argparse.Namespace) -> str:
    if args.at is not None:
        return str(args.at)
    found = find_channel(args.dir)
    if found is None or not found.is_running():
        raise ConfigError(
            "no notification service runs here: give --at ADDRESS, or start one with mtosi-jms channel up"
        )
    return found.corbaloc


def _publish(args: argparse.Namespace) -> int:
    events = list(_events(args.files))  # all are read before the first is sent
    with Orb() as orb:
        sink = orb.channel(_address(args), args.channel).event_sink(FlowStyle.PUSH, Grouping.SEQUENCE_EVENT)
        sink.connect()
        for at in range(0, len(events), _AT_ONCE):
            sink.push(events[at : at + _AT_ONCE])
    terminal.say(f"{len(events)} events sent", "good")
    return 0


def _events(files: Sequence[str]) -> Iterator[StructuredEvent]:
    for file in files or ["-"]:
        name = "standard input" if file == "-" else file
        for number, line in enumerate(_text(file, name).splitlines(), 1):
            if not line.strip():
                continue
            where = f"{name}, line {number}"
            try:
                yield event_from_json(json.loads(line))
            except EventError as error:
                raise error.inside(where) from None
            except (ValueError, RecursionError) as error:
                raise EventError(f"no JSON: {error}", where) from None


def _text(file: str, name: str) -> str:
    most = BOUNDS.message_bytes
    data = sys.stdin.buffer.read(most + 1) if file == "-" else read_file(file, most)
    if len(data) > most:
        raise EventError(f"larger than {most:,} bytes", name)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise EventError(f"no UTF-8: {error}", name) from None


def _subscribe(args: argparse.Namespace) -> int:
    seen, waited = 0, 0.0
    with until_signalled() as stop, Orb() as orb:
        channel = orb.channel(_address(args), args.channel)
        source = channel.event_source(FlowStyle.PULL, Grouping.SEQUENCE_EVENT, constraint=args.constraint)
        source.connect()
        terminal.ready(f"ready: {channel.name}")
        while not stop.is_set() and seen != args.count and (args.timeout is None or waited < args.timeout):
            most = _AT_ONCE if args.count is None else min(_AT_ONCE, args.count - seen)
            look = _LOOK if args.timeout is None else min(_LOOK, args.timeout - waited)
            events = source.pull(most, timeout=look)
            for event in events:
                terminal.print_json(event_to_json(event))
            seen, waited = seen + len(events), 0.0 if events else waited + look
    if args.count is not None and seen < args.count and not stop.is_set():
        terminal.problem(f"{seen} of {args.count} events arrived")
        return 1
    return 0
