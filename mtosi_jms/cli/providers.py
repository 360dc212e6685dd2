"""The arguments that lead to a JMS provider, and the connection that they open.

A password is taken from a file, from the environment or from the URL. It never stands in what a command prints, and a
URL that holds one is masked in the list of processes as soon as the command has read it, where the system allows.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

import mtosi_jms as mtosi
from mtosi_jms.cli.titles import mask_in_title
from mtosi_jms.errors import ConfigError
from mtosi_jms.transport import Connection

USER: Final = "MTOSI_USER"
PASSWORD: Final = "MTOSI_PASSWORD"  # noqa: S105 - the name of a variable
_LOGIN: Final = re.compile(r"//[^/?#@\s,()]*@")
_PASSWORD: Final = re.compile(r"//[^/?#@:\s,()]*:([^/?#@\s,()]+)@")


def add_provider(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which provider, and who we are to it."""
    group = parser.add_argument_group("provider")
    group.add_argument(
        "--url",
        required=True,
        help="JMS provider, such as stomp://host:61613; jndi:NAME: a connection factory of --names",
    )
    group.add_argument("--names", metavar="FILE", help="naming context: jndi.properties or TOML")
    group.add_argument("--user", help=f"login, in place of the URL's; else from {USER}")
    group.add_argument(
        "--password-file",
        type=Path,
        metavar="FILE",
        help=f"file whose first line is the password; else from {PASSWORD}",
    )
    group.add_argument("--client-id", metavar="ID", help="client id of the connection")


def open_connection(args: argparse.Namespace, **options: Any) -> Connection:
    """The connection that the options ask for, stopped as it is.

    Args:
        args: with what `add_provider` adds.
        options: of the connection besides.

    Raises:
        ConfigError: URL, names, password file or an option at fault.
        NamingError: no such connection factory.
        TransportError: the provider cannot be reached, or refuses the login.
    """
    if found := _PASSWORD.findall(args.url):
        mask_in_title(found)
    if args.client_id is not None:
        options["client_id"] = args.client_id
    return mtosi.connect(args.url, names=args.names, **options, **_login(args))


def _login(args: argparse.Namespace) -> dict[str, str]:
    """User and password where the URL does not say them, or is overruled."""
    login: dict[str, str] = {}
    asked = args.user is not None or args.password_file is not None
    scheme = args.url.partition(":")[0].lower()
    if not asked and (scheme in ("memory", "jndi") or _LOGIN.search(args.url)):
        return login
    user = args.user if args.user is not None else os.environ.get(USER)
    if user is not None:
        login["user"] = user
    password = _first_line(args.password_file) if args.password_file is not None else os.environ.get(PASSWORD)
    if password is not None:
        login["password"] = password
    return login


def _first_line(file: Path) -> str:
    try:
        text = sys.stdin.readline() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{file}: the password cannot be read: {reason}") from None
    lines = text.splitlines()
    if not lines or not lines[0]:
        raise ConfigError(f"{file}: the password is wanted in the first line, which is empty")
    return lines[0]
