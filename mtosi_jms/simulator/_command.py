"""Answers requests as a simulated supplier OS on a JMS provider.

Prints one line that begins with `ready` when it listens. After SIGTERM or SIGINT it answers the requests in progress,
then ends.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import (
    add_release,
    add_validation,
    address,
    known_words,
    local,
    positive,
    seconds,
    validation_of,
    words,
)
from mtosi_jms.cli.documents import error_text
from mtosi_jms.cli.providers import add_provider, open_connection
from mtosi_jms.cli.running import Monitoring, Stop, add_monitor, answer, answers, monitored, reached, until_signalled
from mtosi_jms.errors import ConfigError
from mtosi_jms.exchange import Dispatcher, Supplier
from mtosi_jms.gateway.serving import add_http, check_listen, options_of, serve_endpoint, wsdls_of
from mtosi_jms.jms import Destination
from mtosi_jms.service import SupplierBase
from mtosi_jms.telemetry import Telemetry
from mtosi_jms.transport import Connection

if TYPE_CHECKING:
    from mtosi_jms.simulator import Recording

_SENDER: Final = "mtosi-jms"
_ELEMENTS: Final = 2000
_EVENTS: Final = 500
_GRACE: Final = 30.0

Policy = Callable[[Destination], bool]
POLICIES: Final = ("default", "known", "temporary", "any")
SERVICES: Final = (
    "ManagedElementRetrieval",
    "ResourceInventoryRetrieval",
    "EquipmentInventoryRetrieval",
    "AlarmRetrieval",
)
SERVICES_1X: Final = {
    "ManagedElementMgr": "ManagedElementRetrieval",
    "InventoryRetrieval": "ResourceInventoryRetrieval",
    "EquipmentInventoryMgr": "EquipmentInventoryRetrieval",
    "AlarmRetrieval": "AlarmRetrieval",
}
"""The services of MTOSI 1.1, and those of 2.0 with the same objects."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_provider(parser, required=False)
    parser.add_argument("--destination", metavar="NAME", help="destination to receive requests from")
    parser.add_argument(
        "--http", type=address, metavar="HOST:PORT", help="answer over HTTP at this address, in place of JMS"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--elements", type=positive, default=_ELEMENTS, help=f"elements to generate ({_ELEMENTS})")
    source.add_argument(
        "--inventory", type=local, metavar="DIR", help="answer from a landing, or a folder of inventory documents"
    )
    parser.add_argument(
        "--services",
        type=words,
        default=(),
        metavar="A,B",
        help=f"services to offer, of {', '.join(SERVICES)}; in release 1.1 of {', '.join(SERVICES_1X)} (all)",
    )
    add_release(parser)
    parser.add_argument("--seed", type=int, default=1, help="seed of the generated network (1)")
    parser.add_argument(
        "--reply-policy",
        choices=POLICIES,
        default="default",
        help="where replies may go. known: destinations of --names and temporary ones; temporary: only temporary ones; "
        "any: anywhere; default: known with --names, otherwise any queue of the connection",
    )
    add_validation(parser, "requests")
    parser.add_argument("--threads", type=positive, default=1, help="requests to answer at the same time (1)")
    parser.add_argument(
        "--grace",
        type=seconds,
        default=_GRACE,
        metavar="S",
        help="seconds to answer the requests in progress after SIGTERM or SIGINT (%(default)g)",
    )
    add_monitor(parser)
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    if args.http is None and (args.url is None or args.destination is None):
        raise argparse.ArgumentError(None, "give --url and --destination, or --http")
    if args.http is not None:
        check_listen("--http", args.http[0], args)
    with until_signalled(args) as stop, monitored(args) as monitoring:
        services = services_of(args)
        if args.http is not None:
            monitoring.add(lambda: None)
            return _serve_http(args, services, stop, monitoring.telemetry)
        with open_connection(args, telemetry=monitoring.telemetry) as connection:
            return serve(connection, args, services, stop, monitoring=monitoring)


def services_of(args: argparse.Namespace) -> list[SupplierBase]:
    """The requested services over the requested network; a ConfigError where `--inventory` holds no object."""
    from mtosi_jms import simulator

    offered = dict(zip(SERVICES, SERVICES, strict=True)) if args.release == "2.0" else SERVICES_1X
    try:
        names = known_words("service", offered)(",".join(args.services)) or offered
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentError(None, f"--services: release {args.release} has {error}") from error
    source = simulator.Network(elements=args.elements, seed=args.seed)
    recording = None if args.inventory is None else _recording(args.inventory)
    makers: dict[str, Callable[[], SupplierBase]] = {
        "ManagedElementRetrieval": lambda: simulator.ManagedElementEms(recording or source),
        "ResourceInventoryRetrieval": lambda: (
            simulator.RecordedInventoryEms(recording) if recording else simulator.InventoryEms(source)
        ),
        "EquipmentInventoryRetrieval": lambda: simulator.EquipmentEms(recording or source),
        "AlarmRetrieval": lambda: simulator.AlarmEms(
            recording.alarms if recording else simulator.standing_alarms(source.events(_EVENTS)).values()
        ),
    }
    made = [makers[offered[name]]() for name in dict.fromkeys(names)]
    return made if args.release == "2.0" else [simulator.in_release1(cast("Any", one)) for one in made]


def _recording(folder: Path) -> Recording:
    from mtosi_jms.simulator import Recording

    found = Recording.read(folder, lambda file, error: terminal.problem(error_text(file, error)))
    if not found.objects and not found.alarms:
        raise ConfigError(f"{folder}: holds no inventory object and no alarm")
    terminal.note(f"{folder}: {len(found.objects):,} objects, {len(found.alarms):,} alarms")
    return found


def _serve_http(args: argparse.Namespace, services: list[SupplierBase], stop: Stop, telemetry: Telemetry | None) -> int:
    from mtosi_jms.gateway import ByDispatcher, Endpoint

    source = ByDispatcher(Dispatcher(services, sender_uri=_SENDER))
    names = [service.__service__.name for service in services]
    folder = "wsdl" if args.release == "2.0" else "mtosi-1.1/wsdl"
    wsdl = wsdls_of(args, [f"{folder}/{name}" for name in names])
    endpoint = Endpoint(source, options_of(args), wsdl=wsdl, validate=validation_of(args), telemetry=telemetry)
    return serve_endpoint(endpoint, args.http, args, stop, f"answers {', '.join(names)}")


def _announce(line: str) -> None:
    terminal.ready(line, stream=sys.stdout)


def serve(
    connection: Connection,
    args: argparse.Namespace,
    services: list[SupplierBase],
    stop: Stop,
    announce: Callable[[str], object] = _announce,
    monitoring: Monitoring | None = None,
) -> int:
    """Answer requests over a connection until the stop is set, then those in hand; 0. `announce`: gets the line that
    begins with `ready`, once requests are received. `monitoring`: is told when it is ready."""
    supplier = Supplier(
        connection,
        args.destination,
        services,
        reply_policy=_policy(connection, args.reply_policy),
        validate=validation_of(args),
    )

    def on_ready() -> None:
        if monitoring is not None:
            monitoring.add(reached(connection), answers(supplier))
        if args.reply_policy == "default" and not connection.names.names():
            terminal.note("no naming context: replies go to any queue that a request names; see --reply-policy")
        offered = ", ".join(service.__service__.name for service in services)
        announce(f"ready: {args.destination} ({supplier.destination}) answers {offered}")

    return answer(supplier, args.threads, args.grace, stop, on_ready)


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
