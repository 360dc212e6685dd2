"""Types of arguments, and arguments, that several commands take."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import difflib
import ipaddress
import math
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote, urlsplit

from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import ConfigError

if TYPE_CHECKING:
    from mtosi_jms.binding.profile import Validate

__all__ = [
    "add_json",
    "add_release",
    "add_stubs",
    "add_validation",
    "address",
    "as_usage",
    "count",
    "is_loopback",
    "known_words",
    "local",
    "nearest",
    "positive",
    "processors",
    "rate",
    "seconds",
    "selector",
    "time",
    "validation_of",
    "whole",
    "words",
]


_MOST: Final = 65535


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an argument that is a whole number between two, both possible."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"must be a whole number, at least {least}")
        if most is not None and number > most:
            raise argparse.ArgumentTypeError(f"must be at most {most}")
        return number

    return parse


positive = whole(1)
count = whole(0)
processors = whole(1, most=1024)


def seconds(text: str) -> float:
    """The type of an argument that is a number of seconds, at least 0."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError("must be a number of seconds, at least 0")
    return number


def rate(text: str) -> float:
    """The type of an argument that says how many a second: a number above 0."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError("must be a number above 0")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def time(text: str) -> dt.datetime:
    """The type of an argument that is a time as in ISO 8601; without a zone it is in UTC."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a time such as 2026-01-31T00:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def local(text: str) -> Path:
    """The type of an argument that is a file or folder of this machine: a path, or a `file:` URL."""
    scheme = scheme_of(text)
    if scheme not in ("", "file"):
        raise argparse.ArgumentTypeError(f"{text}: must be on a file system of this machine; {scheme}: is none")
    return Path(unquote(urlsplit(text).path) if scheme else text)


def words(text: str) -> tuple[str, ...]:
    """The type of an argument that is one or more words joined by commas."""
    found = _words(text)
    if not found:
        raise argparse.ArgumentTypeError("must be a name, or several joined by commas")
    return found


def known_words(what: str, known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """The type of an argument that is known words joined by commas, or none. A word may have a + before it."""

    def parse(text: str) -> tuple[str, ...]:
        names = _words(text)
        for name in names:
            if name.removeprefix("+") not in known:
                raise argparse.ArgumentTypeError(f"no {what} {name!r}; {nearest(name, known)}")
        return names

    return parse


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def nearest(name: str, known: Collection[str]) -> str:
    """The hint of an error about an unknown name: the one that resembles it, else all."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known)) or 'none'}"


def selector(text: str) -> str:
    """The type of an argument that is a message selector."""
    from mtosi_jms.errors import SelectorError
    from mtosi_jms.jms.selector import parse

    try:
        parse(text)
    except SelectorError as error:
        raise argparse.ArgumentError(None, f"selector: {error}") from error
    return text


@contextlib.contextmanager
def as_usage() -> Iterator[None]:
    """Makes configuration errors of the block wrong usage: exit code 2."""
    try:
        yield
    except ConfigError as error:
        raise argparse.ArgumentError(None, str(error)) from error


def add_json(parser: argparse.ArgumentParser, what: str = "one JSON document") -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help=f"print {what}")


def add_validation(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--validate` and `--schemas`."""
    parser.add_argument(
        "--validate",
        choices=("ignore", "warn", "fail"),
        default="ignore",
        help=f"check bodies of {what} against the schemas. warn: report breaches; fail: refuse them (%(default)s)",
    )
    parser.add_argument("--schemas", metavar="DIR", help="schemas to use in place of the shipped ones")


def validation_of(args: argparse.Namespace) -> Validate:
    """What `--validate` and `--schemas` say. Raises SchemaError: schemas that cannot be used."""
    if args.validate == "ignore" or args.schemas is None:
        return cast("Validate", args.validate)
    from mtosi_jms.validation import BodyValidation, SchemaSet

    return BodyValidation(args.validate, SchemaSet.load(args.schemas))


def add_release(parser: argparse.ArgumentParser) -> None:
    """Add `--release`: of the shipped profiles, the one to use."""
    parser.add_argument("--release", choices=("2.0", "1.1"), default="2.0", help="release of MTOSI (%(default)s)")


def add_stubs(parser: argparse.ArgumentParser) -> None:
    """Add `--stubs`: packages with other stubs than those of the SDK."""
    parser.add_argument(
        "--stubs",
        type=words,
        default=(),
        metavar="PACKAGE",
        help="generated packages, with commas between; they take precedence over the shipped stubs",
    )


def address(text: str) -> tuple[str, int]:
    """The type of an argument that is HOST:PORT, [HOST]:PORT or PORT; loopback where it has no host."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= _MOST):
        raise argparse.ArgumentTypeError("must be HOST:PORT or PORT, such as 127.0.0.1:8080")
    return host.strip("[]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Whether only programs of this computer reach what listens at this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
