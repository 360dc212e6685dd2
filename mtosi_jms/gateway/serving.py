"""The options of commands that serve SOAP over HTTP."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import is_loopback, local, positive, seconds
from mtosi_jms.cli.running import Stop
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.transport.settings import warn_if_others_may_read

if TYPE_CHECKING:
    from mtosi_jms.gateway import Endpoint, HttpOptions, HttpServer, WsdlFiles

__all__ = ["add_http", "check_listen", "options_of", "serve_endpoint", "tokens_in", "wait_for", "wsdls_of"]

_LOOK: Final = 1.0
_SHORTEST_TOKEN: Final = 16
_SHORTEST_PASSWORD: Final = 8


def check_listen(option: str, host: str, args: argparse.Namespace) -> None:
    """Refuse an address that others can reach, unless they need a login, or the user wants it without one. Raises
    ArgumentError: neither holds."""
    if not (is_loopback(host) or args.logins or args.tokens or args.without_login):
        text = f"{option} {host}: others can reach that; it needs --logins or --tokens, or --without-login"
        raise argparse.ArgumentError(None, text)


def add_http(parser: argparse.ArgumentParser) -> None:
    """Adds the options of an HTTP server."""
    group = parser.add_argument_group("HTTP server")
    for option, default, unit, what in (
        ("--iterators", BOUNDS.http_iterators, "N", "maximum number of open iterators"),
        ("--max-size", BOUNDS.http_bytes >> 20, "MB", "largest request, unpacked"),
        ("--max-elements", BOUNDS.http_elements, "N", "most elements of a request"),
        ("--max-in-flight", BOUNDS.http_in_flight >> 20, "MB", "most of all requests at a time"),
        ("--max-connections", BOUNDS.http_connections, "N", "most connections, and requests"),
    ):
        group.add_argument(option, type=positive, default=default, metavar=unit, help=f"{what} (%(default)s)")
    group.add_argument(
        "--iterator-timeout",
        type=seconds,
        default=BOUNDS.http_iterator_idle,
        metavar="S",
        help="close idle ones after S (%(default)g)",
    )
    group.add_argument("--public-url", default="", metavar="URL", help="URL by which clients reach us, for iterators")
    group.add_argument("--tls-certificate", metavar="FILE", help="serve HTTPS with this certificate (PEM)")
    group.add_argument("--tls-key", metavar="FILE", help="private key of the certificate (PEM)")
    group.add_argument("--logins", type=local, metavar="FILE", help="lines USER:PASSWORD or USER:HASH (bcrypt)")
    group.add_argument("--tokens", type=local, metavar="FILE", help="lines TOKEN or NAME TOKEN (bearer)")
    group.add_argument("--without-login", action="store_true", help="let everybody in who reaches an address of others")
    group.add_argument(
        "--wsdl", action="append", type=local, default=[], metavar="FILE", help="what ?wsdl returns; may be repeated"
    )
    group.add_argument(
        "--allow", action="append", default=[], metavar="ADDRESS", help="client that may connect (all); may be repeated"
    )


def options_of(args: argparse.Namespace, **more: Any) -> HttpOptions:
    """What the options allow. Raises ConfigError: a file that cannot be read, or a line of it that is not a login."""
    from mtosi_jms.gateway import HttpOptions

    logins = dict(_login(f"{args.logins} line {number}", line) for number, line in _lines(args.logins))
    return HttpOptions(
        largest=args.max_size * 2**20,
        elements=args.max_elements,
        in_flight=args.max_in_flight * 2**20,
        connections=args.max_connections,
        host_names=frozenset(args.host_name),
        iterators=args.iterators,
        iterator_timeout=args.iterator_timeout,
        public_url=args.public_url,
        logins=logins,
        tokens=tokens_in(args.tokens),
        clients=frozenset(args.allow),
        **more,
    )


def tokens_in(file: Path | None) -> dict[str, str]:
    """The tokens of a file by the names of who has them: lines `TOKEN` or `NAME TOKEN`; none where there is no file.
    Raises ConfigError: the file cannot be read, is empty, or a token is too short."""
    found = {}
    for number, line in _lines(file):
        name, _, token = line.rpartition(" ")
        if len(token) < _SHORTEST_TOKEN:
            raise ConfigError(f"{file} line {number}: a token needs {_SHORTEST_TOKEN} characters or more")
        found[name.strip() or f"token {number}"] = token
    return found


def wsdls_of(args: argparse.Namespace, own: Sequence[str] = ()) -> WsdlFiles | None:
    """What `?wsdl` gives: the files of the options, else some of the project's own, such as `wsdl/AlarmRetrieval`.
    Raises ConfigError: a file that cannot be read; XmlError: one that is not XML."""
    from mtosi_jms.gateway import WsdlFiles
    from mtosi_jms.validation import default_folder

    files = args.wsdl or [default_folder().parent / f"{name}.wsdl" for name in own]
    return WsdlFiles(files) if files else None


def _lines(file: Path | None) -> list[tuple[int, str]]:
    if file is None:
        return []
    try:
        text = read_file(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    found = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not found:
        raise ConfigError(f"{file}: it is empty, so nobody could come in")
    warn_if_others_may_read(file)
    return found


def _login(place: str, line: str) -> tuple[str, str]:
    user, colon, password = line.partition(":")
    if not user or not colon or not password:
        raise ConfigError(f"{place}: USER:PASSWORD is needed")
    if len(password) < _SHORTEST_PASSWORD:
        raise ConfigError(f"{place}: a password needs {_SHORTEST_PASSWORD} characters or more")
    return user, password


def serve_endpoint(
    endpoint: Endpoint, listen: tuple[str, int], args: argparse.Namespace, stop: Stop, suffix: str
) -> int:
    """Serves until the stop is set; 0. `suffix`: what the line that begins with `ready` says behind the URL. Raises
    TransportError: it cannot listen there, or the server has ended."""
    from mtosi_jms.gateway import HttpServer

    with HttpServer(endpoint, *listen, certificate=args.tls_certificate, key=args.tls_key) as server:
        terminal.ready(f"ready: {server.url} {suffix}")
        wait_for(server, stop)
    return 0


def wait_for(server: HttpServer, stop: Stop) -> None:
    """Wait until the stop is set. Raises TransportError: the server has ended before."""
    while not stop.wait(_LOOK):
        if not server.is_running:
            raise TransportError(f"{server.url}: the server has stopped")
