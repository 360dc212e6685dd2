"""Starts, stops or shows a real Apache ActiveMQ broker, Artemis or Classic, for development.

The broker listens on free ports of loopback, with a generated password. `up` prints URLs to paste. The jars come
from Maven Central or its mirror, once, into the user's cache. Messages survive a restart. `status` exits with 1 if the
broker is not running.
"""

from __future__ import annotations

import argparse

from mtosi_jms.broker import KINDS, DevelopmentBroker, default_folder, find_broker, start_broker, stop_broker
from mtosi_jms.broker.background import down_or_status
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, local


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("up", "down", "status"))
    parser.add_argument(
        "--kind", choices=tuple(KINDS), help="broker that up starts (the one in the folder, else artemis)"
    )
    parser.add_argument("--dir", type=local, default=default_folder(), help="folder of the broker (%(default)s)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if args.action == "up":
        _show(start_broker(args.dir, args.kind), as_json=args.json)
        return 0
    return down_or_status(args, "broker", stop_broker, find_broker, _show)


def _show(broker: DevelopmentBroker, *, as_json: bool) -> None:
    facts = broker.to_json()
    if as_json:
        terminal.print_json(facts)
        return
    terminal.say(f"{facts['broker']} runs in {facts['dir']}, process {facts['pid']}", "good")
    width = max(len(protocol) for protocol in facts["urls"])
    others = facts["for_other_programs"]
    for protocol in sorted(facts["urls"], key=others.__contains__):
        if protocol in others[:1]:
            terminal.say("addresses for other programs:", "dim")
        terminal.say(f"{protocol.ljust(width)}  {facts['urls'][protocol]}")
