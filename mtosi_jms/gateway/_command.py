"""Passes SOAP requests of HTTP clients on to a supplier on JMS, or requests on JMS to an HTTP peer.

With --to, clients post envelopes to --listen and get the answers. They fetch several responses through iterators. With
--forward, the gateway posts to a URL what arrives at --destination: requests from a queue, whose responses go back, or
notifications from a topic. Prints one line that begins with `ready`. After SIGTERM or SIGINT it answers the requests in
progress, then ends.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_validation, address, local, positive, seconds, validation_of
from mtosi_jms.cli.providers import add_provider, open_connection, password_of
from mtosi_jms.cli.running import Monitoring, Stop, add_monitor, answer, answers, monitored, reached, until_signalled
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.gateway.serving import add_http, check_listen, options_of, serve_endpoint, wsdls_of
from mtosi_jms.transport import Connection

if TYPE_CHECKING:
    from mtosi_jms.gateway import HttpPeer

_SENDER: Final = "mtosi-jms-gateway"
_MEMORY: Final = 32
_GRACE: Final = 30.0
_LOOK: Final = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_provider(parser)
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--to", metavar="NAME", help="destination of the supplier that answers HTTP clients")
    ways.add_argument("--forward", metavar="URL", help="URL of the HTTP peer that gets what arrives at --destination")
    parser.add_argument(
        "--listen",
        type=address,
        default=("127.0.0.1", 8080),
        metavar="HOST:PORT",
        help="with --to: address to serve (127.0.0.1:8080)",
    )
    parser.add_argument(
        "--destination", metavar="NAME", help="with --forward: a queue of requests, or a topic of notifications"
    )
    parser.add_argument("--sender", default=_SENDER, metavar="URI", help=f"our logical name, senderURI ({_SENDER})")
    parser.add_argument(
        "--category-topic",
        action="append",
        default=[],
        metavar="CATEGORY=NAME",
        help="topic for posted notifications of a category, such as Fault=topic:Alarms; may be repeated",
    )
    parser.add_argument(
        "--parking", metavar="NAME", help="dead-letter queue for notifications that the HTTP peer refuses"
    )
    parser.add_argument(
        "--durable",
        metavar="ID",
        help="name of a durable subscription: the provider keeps notifications while the gateway is down; also the "
        "client id, unless --client-id sets another",
    )
    parser.add_argument(
        "--timeout", type=seconds, default=120.0, metavar="S", help="seconds to wait for an answer (%(default)g)"
    )
    parser.add_argument("--spill", type=local, metavar="DIR", help="folder for responses that nobody has fetched yet")
    parser.add_argument(
        "--memory",
        type=positive,
        default=_MEMORY,
        metavar="MB",
        help="memory for such responses; more go to files (%(default)s)",
    )
    parser.add_argument("--threads", type=positive, default=16, help="requests to post at the same time (%(default)s)")
    parser.add_argument("--peer-user", metavar="USER", help="login at the HTTP peer")
    parser.add_argument(
        "--peer-password-file", type=local, metavar="FILE", help="its password; without --peer-user, a token"
    )
    parser.add_argument("--peer-ca", metavar="FILE", help="certificates that may sign the HTTP peer's")
    parser.add_argument("--peer-certificate", metavar="FILE", help="our certificate, if the HTTP peer asks for one")
    parser.add_argument("--peer-key", metavar="FILE", help="private key of our certificate")
    add_validation(parser, "requests, replies and notifications")
    add_monitor(parser)
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    if (args.forward is None) is not (args.destination is None):
        raise argparse.ArgumentError(None, "--forward and --destination go together")
    if args.durable is not None and args.client_id is None:
        args.client_id = args.durable
    check_listen("--listen", args.listen[0], args)
    with (
        until_signalled(args) as stop,
        monitored(args) as monitoring,
        open_connection(args, telemetry=monitoring.telemetry) as connection,
    ):
        monitoring.add(reached(connection))
        if args.to is not None:
            return _serve(connection, args, stop, monitoring)
        return _forward(connection, args, stop, monitoring)


def _serve(connection: Connection, args: argparse.Namespace, stop: Stop, monitoring: Monitoring) -> int:
    """HTTP to JMS."""
    from mtosi_jms.gateway import ByRequestor, Endpoint, Store
    from mtosi_jms.notifications import Publisher

    if args.spill is not None and not args.spill.is_dir():
        raise ConfigError(f"{args.spill}: no such folder")
    validate = validation_of(args)
    store = Store(args.memory * 2**20, args.spill)
    topics = dict(_topic(text) for text in args.category_topic)
    with ExitStack() as stack:
        requestor = Requestor(connection, sender_uri=args.sender, temporary_reply=True, validate=validate)
        stack.enter_context(requestor)
        publisher = stack.enter_context(Publisher(connection, topics, sender_uri=args.sender)) if topics else None
        source = ByRequestor(requestor, args.to, store, args.timeout, publisher=publisher)
        endpoint = Endpoint(
            source,
            options_of(args, answer_timeout=args.timeout),
            wsdl=wsdls_of(args),
            is_ready=lambda: connection.is_up,
            validate=validate,
            telemetry=monitoring.telemetry,
        )
        return serve_endpoint(endpoint, args.listen, args, stop, f"to {args.to}")


def _topic(text: str) -> tuple[str, str]:
    category, equals, name = text.partition("=")
    if not equals or not category or not name:
        raise argparse.ArgumentError(None, f"--category-topic {text}: CATEGORY=NAME is needed")
    return category, name


def _forward(connection: Connection, args: argparse.Namespace, stop: Stop, monitoring: Monitoring) -> int:
    """JMS to HTTP."""
    from mtosi_jms.gateway import Forwarder, HttpPeer

    secret = password_of(args.peer_password_file) if args.peer_password_file else None
    user = args.peer_user
    peer = HttpPeer(
        args.forward,
        timeout=args.timeout,
        login=(user, secret or "") if user else None,
        token=None if user else secret,
        ca=args.peer_ca,
        certificate=args.peer_certificate,
        key=args.peer_key,
    )
    with peer:
        if connection.names.lookup(args.destination).is_topic:
            return _post(connection, args, peer, stop, monitoring)
        validate = validation_of(args)
        forwarder = Forwarder(peer, sender_uri=args.sender, validate=validate)
        supplier = Supplier(connection, args.destination, forwarder, validate=validate)
        ready = f"ready: {args.destination} ({supplier.destination}) to {peer.url}"

        def on_ready() -> None:
            monitoring.add(answers(supplier))
            terminal.ready(ready)

        return answer(supplier, args.threads, _GRACE, stop, on_ready)


def _post(connection: Connection, args: argparse.Namespace, peer: HttpPeer, stop: Stop, monitoring: Monitoring) -> int:
    """Notifications of a topic to HTTP."""
    from mtosi_jms.gateway import Poster
    from mtosi_jms.runtime import ConsumerRuntime, State

    with ConsumerRuntime(
        connection,
        args.destination,
        Poster(peer, validate=validation_of(args)),
        durable=args.durable,
        key=lambda message: args.destination,  # all keep their order
        parking=args.parking,
    ) as runtime:
        monitoring.add(lambda: None if runtime.health.state is State.RUNNING else f"it is {runtime.health.state.value}")
        terminal.ready(f"ready: {args.destination} to {peer.url}")
        while not stop.wait(_LOOK):
            if runtime.health.state is not State.RUNNING:
                raise TransportError(f"the consumer of {args.destination} has stopped: the provider is gone")
    return 0
