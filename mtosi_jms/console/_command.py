"""Shows exchanges, destinations, notifications and dead letters in the browser, as they happen.

The console takes no message away from its receiver. It subscribes to the topics and browses the queues of --watch, and
reads the landings, outboxes and inboxes that you name. docs/console.md says what can be seen that way. It listens on
loopback; any other address needs --tokens. Redriving and withdrawing messages needs --allow-actions. Prints one line
that begins with `ready`, and ends at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import address, is_loopback, local, seconds
from mtosi_jms.cli.monitoring import add_monitor, monitored
from mtosi_jms.cli.providers import add_provider, mask_url, open_connection, password_of
from mtosi_jms.cli.queues import operate
from mtosi_jms.cli.stopping import Stop, until_signalled
from mtosi_jms.errors import ConfigError
from mtosi_jms.gateway.serving import tokens_in, wait_for
from mtosi_jms.masking import without_login

if TYPE_CHECKING:
    from mtosi_jms.console import BrokerWatch, Console, Traffic
    from mtosi_jms.transport import Connection

_PORT: Final = 8085
_INTERVAL: Final = 1.0
_WAIT: Final = 2.0
"""Seconds in which a dead letter must be handed out that is still there."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_provider(parser, required=False)
    group = parser.add_argument_group("what to watch")
    group.add_argument(
        "--watch",
        action="append",
        default=[],
        metavar="NAME",
        help="a topic to subscribe to, or a queue to browse; may be repeated",
    )
    group.add_argument(
        "--landing",
        action="append",
        type=local,
        default=[],
        metavar="DIR",
        help="a landing: its messages, ledger and topology; may be repeated",
    )
    group.add_argument(
        "--spool",
        action="append",
        type=local,
        default=[],
        metavar="DIR",
        help="folder of an outbox or inbox, for its dead letters; may be repeated",
    )
    group.add_argument(
        "--dead-letters", action="append", default=[], metavar="NAME", help="a queue of dead letters; may be repeated"
    )
    group.add_argument("--topology", type=local, metavar="DIR", help="folder that mtosi-jms topology wrote")
    group.add_argument(
        "--interval",
        type=seconds,
        default=_INTERVAL,
        metavar="S",
        help="minimum seconds between two looks at queues and landings (%(default)g)",
    )
    serving = parser.add_argument_group("HTTP server")
    serving.add_argument(
        "--listen",
        type=address,
        default=("127.0.0.1", _PORT),
        metavar="HOST:PORT",
        help=f"address to serve (127.0.0.1:{_PORT}); any but loopback needs --tokens",
    )
    serving.add_argument(
        "--tokens", type=local, metavar="FILE", help="lines TOKEN or NAME TOKEN; each visitor must give a token"
    )
    serving.add_argument("--tls-certificate", metavar="FILE", help="serve HTTPS with this certificate (PEM)")
    serving.add_argument("--tls-key", metavar="FILE", help="private key of the certificate (PEM)")
    add_monitor(parser)
    serving.add_argument("--allow-actions", action="store_true", help="redrive and withdraw messages from the pages")


def run(args: argparse.Namespace) -> int:
    named = [*args.watch, *args.dead_letters]
    if not any((named, args.landing, args.spool, args.topology)):
        raise argparse.ArgumentError(None, "nothing to watch: give --watch, --landing, --spool or --dead-letters")
    if args.url is not None:
        mask_url(args.url)
    if named and args.url is None:
        raise argparse.ArgumentError(None, "--watch and --dead-letters need --url")
    if not is_loopback(args.listen[0]) and args.tokens is None:
        raise argparse.ArgumentError(None, f"--listen {args.listen[0]}: others can reach that; it needs --tokens")
    with until_signalled(args) as stop:
        return serve(args, stop)


def serve(args: argparse.Namespace, stop: Stop) -> int:
    """Serve the pages until the stop is set; 0. Raises ConfigError: a file, a folder or a name at fault, or the
    transport cannot browse; TransportError: the provider cannot be reached, it cannot listen there, or the server has
    ended."""
    from mtosi_jms.console import BrokerWatch, LandingWatch, Traffic
    from mtosi_jms.gateway import HttpServer

    traffic = Traffic()
    with ExitStack() as stack:
        names = list(dict.fromkeys((*args.watch, *args.dead_letters)))
        watch = None
        if str(args.password_file) == "-":  # it can be read once only, and connections are made again
            args.password_file, args.password = None, password_of(args.password_file)
        if names:
            watch = stack.enter_context(BrokerWatch(partial(_connect, args), names, traffic, interval=args.interval))
            if topics := [name for name in args.dead_letters if name not in watch.queues]:
                raise ConfigError(f"{topics[0]}: a topic keeps no messages; give a queue")
        for folder in args.landing:
            stack.enter_context(LandingWatch(folder, traffic, interval=args.interval))
        for folder in args.spool:
            if not folder.is_dir():
                raise ConfigError(f"{folder}: no such folder")
        app = _console(args, traffic, watch)
        host, port = args.listen
        server = HttpServer(app, host, port, certificate=args.tls_certificate, key=args.tls_key)
        if not is_loopback(host) and args.tls_certificate is None:
            terminal.note("the token and all pages pass unencrypted: --tls-certificate prevents that")
        monitoring = stack.enter_context(monitored(args))
        with server:
            monitoring.add(lambda: "; ".join(traffic.overview().troubles.values()) or None)
            terminal.ready(
                f"ready: {server.url} watches {', '.join([*names, *map(str, (*args.landing, *args.spool))])}"
            )
            wait_for(server, stop)
    return 0


def _console(args: argparse.Namespace, traffic: Traffic, watch: BrokerWatch | None) -> Console:
    from mtosi_jms.console import Console, DeadLetters

    dead = [
        DeadLetters(
            name=name,
            waiting=partial(watch.waiting, name),
            redrive=partial(_redrive, args) if args.allow_actions else None,
            changed=watch.look,
        )
        for name in args.dead_letters
        if watch is not None
    ]
    return Console(
        traffic,
        title=without_login(args.url or ""),
        landings=args.landing,
        spools=args.spool,
        dead_letters=dead,
        topology=args.topology,
        allow_actions=args.allow_actions,
        tokens=tokens_in(args.tokens),
        host_names=frozenset(args.host_name),
    )


def _connect(args: argparse.Namespace) -> Connection:
    secret = getattr(args, "password", None)
    return open_connection(args, **({} if secret is None else {"password": secret}))


def _redrive(args: argparse.Namespace, queue: str, message_id: str, to: str) -> None:
    """Move one message as `mtosi-jms queue move` does, with a record of it. Raises ConfigError: no such queue to move
    to, or the message is not there any more; TransportError: the provider failed."""
    quoted = message_id.replace("'", "''")
    moving = argparse.Namespace(
        action="move",
        name=queue,
        to=to,
        selector=f"JMSMessageID = '{quoted}'",
        limit=1,
        dry_run=False,
        record=None,
        wait=_WAIT,
        json=False,
    )
    beside = argparse.Namespace(**{**vars(args), "client_id": None})  # the one that watches has it
    with Stop() as stop, _connect(beside) as connection:
        with connection.session() as session:
            if not session.browse(queue, moving.selector):
                raise ConfigError(f"{message_id}: it is not at {queue} any more")
        operate(connection, moving, stop)
