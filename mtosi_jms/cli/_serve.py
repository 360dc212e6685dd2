"""`mtosi-jms serve`: a simulated supplier OS on a real provider, until it is told to stop."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._arguments import known_words, positive, seconds
from mtosi_jms.cli._documents import printable, told
from mtosi_jms.cli._providers import add_provider, open_connection
from mtosi_jms.cli._stopping import Stop, until_signalled
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import Destination
from mtosi_jms.service import SupplierBase
from mtosi_jms.transport import Connection

_ELEMENTS: Final = 2000
_EVENTS: Final = 500
_GRACE: Final = 30.0
_LOOK: Final = 1.0
"""Seconds between two looks whether the supplier still runs: its threads end when the provider is gone for good."""

Policy = Callable[[Destination], bool]
POLICIES: Final = ("default", "known", "temporary", "any")
SERVICES: Final = (
    "ManagedElementRetrieval",
    "ResourceInventoryRetrieval",
    "EquipmentInventoryRetrieval",
    "AlarmRetrieval",
)


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "serve",
        help="answer requests as a supplier OS, from a generated or a recorded network",
        description="A simulated supplier OS on a JMS provider. Prints one line that begins with `ready` when it "
        "listens. SIGTERM and SIGINT end it, when the requests in hand are answered.",
    )
    add_provider(parser)
    parser.add_argument("--destination", required=True, metavar="NAME", help="where requests come in")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--elements", type=positive, default=_ELEMENTS, help=f"elements to generate ({_ELEMENTS})")
    source.add_argument(
        "--inventory", type=Path, metavar="DIR", help="answer from a landing, or a folder of inventory documents"
    )
    parser.add_argument(
        "--services",
        type=known_words("service", SERVICES),
        default=SERVICES,
        metavar="A,B",
        help=f"which of {', '.join(SERVICES)} (all)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the generated network (1)")
    parser.add_argument(
        "--reply-policy",
        choices=POLICIES,
        default="default",
        help="where replies may go: known: destinations of --names, and temporary ones; temporary: these alone; any; "
        "default: known where there are names, otherwise any queue of the connection",
    )
    parser.add_argument("--threads", type=positive, default=1, help="requests that are answered at the same time (1)")
    parser.add_argument(
        "--grace",
        type=seconds,
        default=_GRACE,
        metavar="S",
        help=f"seconds that requests in hand have when it is told to stop ({_GRACE:g})",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes; 0 then.

    Raises:
        MtosiError: the provider cannot be reached or failed for good, or there is nothing to answer from.
    """
    with until_signalled() as stop:
        services = services_of(args)
        with open_connection(args) as connection:
            return serve(connection, args, services, stop)


def services_of(args: argparse.Namespace) -> list[SupplierBase]:
    """The services that were asked for, over the network that was asked for.

    Raises:
        ConfigError: the folder of `--inventory` holds nothing that could be answered.
        SpoolError: it cannot be read.
    """
    makers = _generated(args) if args.inventory is None else _recorded(args.inventory)
    return [makers[name]() for name in dict.fromkeys(args.services or SERVICES)]


def _generated(args: argparse.Namespace) -> Mapping[str, Callable[[], SupplierBase]]:
    from mtosi_jms import simulator

    network = simulator.Network(elements=args.elements, seed=args.seed)
    return {
        "ManagedElementRetrieval": lambda: simulator.ManagedElementEms(network),
        "ResourceInventoryRetrieval": lambda: simulator.InventoryEms(network),
        "EquipmentInventoryRetrieval": lambda: simulator.EquipmentEms(network),
        "AlarmRetrieval": lambda: simulator.AlarmEms(simulator.standing_alarms(network.events(_EVENTS)).values()),
    }


def _recorded(folder: Path) -> Mapping[str, Callable[[], SupplierBase]]:
    from mtosi_jms import simulator

    recording = simulator.Recording.read(folder, lambda file, error: console.problem(told(file, error)))
    if not recording.objects and not recording.alarms:
        raise ConfigError(f"{folder}: no inventory object and no alarm is in it")
    console.note(f"{folder}: {len(recording.objects):,} objects, {len(recording.alarms):,} alarms")
    return {
        "ManagedElementRetrieval": lambda: simulator.ManagedElementEms(recording),
        "ResourceInventoryRetrieval": lambda: simulator.RecordedInventoryEms(recording),
        "EquipmentInventoryRetrieval": lambda: simulator.EquipmentEms(recording),
        "AlarmRetrieval": lambda: simulator.AlarmEms(recording.alarms),
    }


def _announce(line: str) -> None:
    console.say(line)
    console.flush()


def serve(
    connection: Connection,
    args: argparse.Namespace,
    services: list[SupplierBase],
    stop: Stop,
    announce: Callable[[str], object] = _announce,
) -> int:
    """Answer requests over a connection until the stop is set; 0 then.

    Args:
        connection: the connection.
        args: what the command line says.
        services: what answers.
        stop: ends it, when the requests in hand are answered.
        announce: given the line that says `ready`, when requests are received.

    Raises:
        ConfigError: a destination that cannot be served from.
        NamingError: the destination cannot be resolved.
        TransportError: the provider failed for good.
    """
    supplier = Supplier(connection, args.destination, services, reply_policy=_policy(connection, args.reply_policy))
    supplier.start(args.threads)
    try:
        if args.reply_policy == "default" and not connection.names.names():
            console.note("no naming context: replies go to any queue that a request names; --reply-policy tightens it")
        offered = ", ".join(service.__service__.name for service in services)
        announce(printable(f"ready: {args.destination} ({supplier.destination}) answers {offered}"))
        while not stop.wait(_LOOK):
            if not supplier.is_running:
                raise TransportError(f"nothing is received from {supplier.destination} any more")
    finally:
        if not supplier.drain(args.grace):
            console.note(f"a request is not answered after {args.grace:g} seconds: the provider has it again")
        supplier.stop(0)
    return 0


def _policy(connection: Connection, name: str) -> Policy | None:
    def known(destination: Destination) -> bool:
        return destination.is_temporary or connection.names.knows(destination)

    policies: dict[str, Policy | None] = {
        "default": None,
        "known": known,
        "temporary": lambda destination: destination.is_temporary,
        "any": lambda destination: True,
    }
    return policies[name]
