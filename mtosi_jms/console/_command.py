"""Shows exchanges, destinations, notifications and dead letters in the browser, as they happen.

The console takes no message away from its receiver. It subscribes to the topics and browses the queues of --watch, and
reads the landings, outboxes and inboxes that you name. docs/console.md says what can be seen that way. It listens on
loopback; any other address needs --tokens. Redriving and withdrawing messages needs --allow-actions. Prints one line
that begins with `ready`, and ends at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import address, is_loopback, local, seconds
from mtosi_jms.cli.providers import add_provider, mask_url, open_connection, password_of
from mtosi_jms.cli.running import Stop, add_monitor, monitored, until_signalled
from mtosi_jms.errors import ConfigError
from mtosi_jms.gateway.serving import tokens_in, wait_for
from mtosi_jms.masking import without_login

if TYPE_CHECKING:
    from mtosi_jms.console import BrokerWatch, Console, LetterBox, Traffic
    from mtosi_jms.transport import Connection

_PORT: Final = 8085
_INTERVAL: Final = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_provider(parser, required=False)
    group = parser.add_argument_group("what to watch")
    for option, kind, metavar, what in (
        ("--watch", str, "NAME", "a topic to subscribe to, or a queue to browse"),
        ("--landing", local, "DIR", "a landing: its messages, ledger and topology"),
        ("--spool", local, "DIR", "folder of an outbox or inbox, for its dead letters"),
        ("--dead-letters", str, "NAME", "a queue of dead letters"),
    ):
        about = f"{what}; may be repeated"
        group.add_argument(option, action="append", type=kind, default=[], metavar=metavar, help=about)
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
    from mtosi_jms.console import BrokerWatch, LandingWatch, LetterBox, Traffic
    from mtosi_jms.gateway import HttpServer

    traffic = Traffic()
    with ExitStack() as stack:
        names = list(dict.fromkeys(args.watch))
        boxes = {name: LetterBox() for name in args.dead_letters}
        watch = None
        if str(args.password_file) == "-":  # it can be read once only, and connections are made again
            args.password_file, args.password = None, password_of(args.password_file)
        if names or boxes:
            connect = partial(_connect, args)
            watch = stack.enter_context(
                BrokerWatch(connect, names, traffic, dead_letters=boxes, interval=args.interval)
            )
        for folder in args.landing:
            stack.enter_context(LandingWatch(folder, traffic, interval=args.interval))
        for folder in args.spool:
            if not folder.is_dir():
                raise ConfigError(f"{folder}: no such folder")
        app = _console(args, traffic, boxes, watch)
        host, port = args.listen
        server = HttpServer(app, host, port, certificate=args.tls_certificate, key=args.tls_key)
        if not is_loopback(host) and args.tls_certificate is None:
            terminal.note("the token and all pages pass unencrypted: --tls-certificate prevents that")
        monitoring = stack.enter_context(monitored(args))
        with server:
            monitoring.add(lambda: "; ".join(traffic.overview().troubles.values()) or None)
            terminal.ready(
                f"ready: {server.url} watches {', '.join([*names, *boxes, *map(str, (*args.landing, *args.spool))])}"
            )
            wait_for(server, stop)
    return 0


def _console(
    args: argparse.Namespace, traffic: Traffic, boxes: Mapping[str, LetterBox], watch: BrokerWatch | None
) -> Console:
    from mtosi_jms.console import Console, DeadLetters

    dead = [
        DeadLetters(name=name, box=box, connect=partial(_beside, args), changed=watch.look)
        for name, box in boxes.items()
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


def _beside(args: argparse.Namespace) -> Connection:
    """A further connection: the one that watches has the client id."""
    return _connect(argparse.Namespace(**{**vars(args), "client_id": None}))
