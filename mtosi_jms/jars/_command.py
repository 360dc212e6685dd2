"""Fetches the Java client of a JMS provider, for connections with a jvm: URL.

The jars come from Maven Central or its mirror once, into the user's cache. Each jar is checked against a pinned
SHA-256. The licences of the jars are printed: you accept them by using the jars. connect(..., classpath="KIND") finds
what was fetched.

Hashes are pinned for one version of each client. Another version needs --unpinned and the mvn command: its jars are not
checked, and their hashes are printed for you to keep.
"""

from __future__ import annotations

import argparse
import os

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json
from mtosi_jms.jars import CLIENTS, Fetched, fetch_client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(f"{kind} {client.version}" for kind, client in CLIENTS.items())
    parser.add_argument("action", choices=("fetch",))
    parser.add_argument("kind", choices=tuple(CLIENTS), help=f"the client; pinned versions: {known}")
    parser.add_argument("--version", metavar="V", help="version of the client (the pinned one)")
    parser.add_argument("--unpinned", action="store_true", help="accept a version without pinned hashes")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    fetched = fetch_client(args.kind, args.version, unpinned=args.unpinned)
    if args.json:
        terminal.print_json(fetched.to_json())
    else:
        _show(fetched)
    return 0


def _show(fetched: Fetched) -> None:
    client = CLIENTS[fetched.kind]
    terminal.say(f"{client.title}, client {fetched.version}: {len(fetched.jars)} jars", "good")
    terminal.say(f"licences: {'; '.join(client.licences)}")
    if not fetched.is_pinned:
        terminal.say("nothing of this version is pinned; its SHA-256:", "warn")
        for jar, digest in fetched.jars.items():
            terminal.say(f"{digest}  {jar.name}")
    name = "jvm:ibm-mq" if fetched.kind == "ibm-mq" else "jvm:NAME"
    terminal.say(f'connect("{name}", classpath="{fetched.classpath}") uses them; Java takes this class path:')
    terminal.say(os.pathsep.join(map(str, fetched.paths)))
