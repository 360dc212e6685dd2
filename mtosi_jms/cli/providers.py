"""The arguments that lead to a JMS provider, and the connection that they open.

A password comes from a file, from the environment or from the URL. No command prints it. `ps` reads a process's command
line from the process's own memory: there a command overwrites the password of a URL as soon as it has read it. That is
possible on Linux only; a file or the environment keeps a password out from the beginning.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from mtosi_jms.cli.arguments import local
from mtosi_jms.cli.log import add_log
from mtosi_jms.jms import NamingContext
from mtosi_jms.masking import passwords_in
from mtosi_jms.registry import registered_module
from mtosi_jms.transport import Connection, connect, provider_url, settings

__all__ = [
    "add_login",
    "add_provider",
    "find_provider",
    "mask_in_title",
    "mask_url",
    "open_connection",
    "password_of",
    "time_limits",
]

_COMMAND_LINE: Final = Path("/proc/self/cmdline")
_STATE: Final = Path("/proc/self/stat")
_ARGUMENTS: Final = slice(45, 47)
"""Fields arg_start and arg_end of /proc/PID/stat, counted from 0 behind the command's name, which may hold blanks."""


def add_provider(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the options that say which provider, whether one is `required`, who we are to it, and what is logged."""
    add_login(parser)
    add_log(parser)
    parser.set_defaults(provider_options={}, provider_required=required)


def add_login(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which provider, and who we are to it."""
    group = parser.add_argument_group("provider")
    group.add_argument(
        "--url",
        help="JMS provider: stomp://host:61613, jvm:... for a Java client such as IBM MQ's, or jndi:NAME for a "
        "connection factory in --names; default from "
        f"{settings.URL}, else from {settings.FILE}",
    )
    group.add_argument(
        "--environment",
        "-E",
        metavar="NAME",
        help=f"environment of {settings.FILE}; default from {settings.ENVIRONMENT}, else the one that the file names",
    )
    group.add_argument("--names", metavar="FILE", help="naming context: jndi.properties or TOML")
    group.add_argument("--user", help=f"user to log in as, in place of the URL's; default from {settings.USER}")
    group.add_argument(
        "--password-file",
        type=local,
        metavar="FILE",
        help=f"file whose first line is the password; default from {settings.PASSWORD}, or from the file that "
        f"{settings.PASSWORD_FILE} names",
    )
    group.add_argument("--client-id", metavar="ID", help="client id of the connection")


def find_provider(args: argparse.Namespace) -> None:
    """Complete what `add_provider` adds by variables and the configuration file; other arguments stay as they are.

    Raises:
        ConfigError: the file is at fault.
        ArgumentError: a command that needs a provider has none.
    """
    given = {name: getattr(args, name) for name in ("user", "password_file", "client_id")}
    found = settings.provider(args.url, environment=args.environment, names=args.names, given=given)
    args.url, args.names, args.provider_options = found.url, found.names, found.options
    if args.url is None and args.provider_required:
        ways = f"give --url, set {settings.URL}, or name one in {settings.FILE}"
        raise argparse.ArgumentError(None, f"no JMS provider: {ways}")


def open_connection(args: argparse.Namespace, **options: Any) -> Connection:
    """The connection that the options ask for, not started yet.

    Raises:
        ConfigError: URL, names, password file or an option at fault.
        NamingError: no such connection factory.
        TransportError: the provider cannot be reached, or refuses the login.
    """
    mask_url(args.url)
    return connect(args.url, names=args.names, **{**args.provider_options, **options, **login_options(args)})


def login_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of a connection that `add_login` was given. Raises ConfigError: standard input has no password."""
    given = {"client_id": args.client_id, "user": args.user, **_password(args.password_file)}
    return {name: value for name, value in given.items() if value is not None}


def time_limits(args: argparse.Namespace, seconds: float) -> dict[str, float]:
    """The options that bound the time to connect and to send; none where the provider has none. Raises ConfigError,
    NamingError: as `open_connection`."""
    url, scheme = provider_url(args.url, NamingContext.of(args.names))
    limits = getattr(registered_module("transports", scheme), "time_limits", None)
    return {} if limits is None else dict(limits(url, seconds))


def mask_url(url: str) -> None:
    """Overwrite the passwords of a URL in the list of processes."""
    if found := passwords_in(url):
        mask_in_title(found)


def _password(file: Path | None) -> dict[str, Any]:
    """The option with the password; standard input is read here, at once."""
    if file is not None and str(file) == "-":
        return {"password": settings.first_line(sys.stdin.readline(), "-")}
    return {"password_file": file}


def password_of(file: Path) -> str:
    """The password of another login than the provider's: the first line of a file, or of standard input for `-`. Raises
    ConfigError: the file cannot be read, or its first line is empty."""
    given = _password(file)
    return str(given["password"]) if "password" in given else settings.password_in(file)


def mask_in_title(secrets: Iterable[str]) -> bool:
    """Overwrite secrets in the command line that other users can see by stars; whether none stands there any more."""
    wanted = [secret.encode("utf-8", "surrogateescape") for secret in secrets if secret]
    try:
        state = _STATE.read_text(encoding="ascii", errors="replace").rpartition(")")[2]
        begin, end = map(int, state.split()[_ARGUMENTS])
        shown = _COMMAND_LINE.read_bytes()
    except (OSError, ValueError):
        return False
    if not begin or end - begin != len(shown) or ctypes.string_at(begin, len(shown)) != shown:
        return False  # not where it was looked for: nothing may be written there
    for secret in wanted:
        at = shown.find(secret)
        while at >= 0:
            ctypes.memset(begin + at, ord("*"), len(secret))
            at = shown.find(secret, at + len(secret))
    return not any(secret in _COMMAND_LINE.read_bytes() for secret in wanted)
