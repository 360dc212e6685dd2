"""The arguments that lead to a JMS provider, and the connection that they open.

A password is taken from a file, from the environment or from the URL. It never stands in what a command prints, and a
URL that holds one is masked in the list of processes as soon as the command has read it, where the system allows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import mtosi_jms as mtosi
from mtosi_jms.cli._titles import mask_in_title
from mtosi_jms.jms import NamingContext
from mtosi_jms.masking import passwords_in
from mtosi_jms.transport import Connection, login, provider_url


def add_provider(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which provider, and who we are to it."""
    group = parser.add_argument_group("provider")
    url = login.url_from_environment()
    group.add_argument(
        "--url",
        default=url,
        required=url is None,
        help="JMS provider, such as stomp://host:61613; jndi:NAME: a connection factory of --names; else from "
        f"{login.URL}",
    )
    group.add_argument("--names", metavar="FILE", help="naming context: jndi.properties or TOML")
    group.add_argument("--user", help=f"login, in place of the URL's; else from {login.USER}")
    group.add_argument(
        "--password-file",
        type=Path,
        metavar="FILE",
        help=f"file whose first line is the password; else from {login.PASSWORD}, or from the file that "
        f"{login.PASSWORD_FILE} names",
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
    mask_url(args.url)
    said = {"client_id": args.client_id, "user": args.user, **_password(args.password_file)}
    options.update((name, value) for name, value in said.items() if value is not None)
    return mtosi.connect(args.url, names=args.names, **options)


def time_limits(args: argparse.Namespace, seconds: float) -> dict[str, float]:
    """The options of a connection that is made, and sends, in so many seconds; none where it has none.

    Raises:
        ConfigError, NamingError: as `open_connection`.
    """
    url, scheme = provider_url(args.url, NamingContext.of(args.names))
    if not scheme.startswith("stomp"):
        return {}
    from mtosi_jms.transport.stomp import parse_url  # its library may be absent

    addresses, options = parse_url(url, {})
    return {
        "connect_timeout": min(options.connect_timeout, seconds / len(addresses)),
        "send_timeout": min(options.send_timeout, seconds),
    }


def mask_url(url: str) -> None:
    """Overwrite the passwords of a URL in the list of processes."""
    if found := passwords_in(url):
        mask_in_title(found)


def _password(file: Path | None) -> dict[str, Any]:
    """The option that says the password; standard input is read here, at once."""
    if file is not None and str(file) == "-":
        return {"password": login.first_line(sys.stdin.readline(), "-")}
    return {"password_file": file}
