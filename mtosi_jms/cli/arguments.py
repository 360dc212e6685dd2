"""The parsers of the programs, with errors that suggest what was meant, completion by argcomplete and man pages; types
of arguments, and arguments, that several commands take."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import difflib
import ipaddress
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import unquote, urlsplit

from mtosi_jms.cli import terminal
from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from mtosi_jms.binding.profile import Validate

__all__ = [
    "SHOWING",
    "Parser",
    "add_json",
    "add_release",
    "add_stubs",
    "add_validation",
    "address",
    "as_usage",
    "commands_of",
    "complete",
    "completed_by",
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
    "shown_as",
    "time",
    "validation_of",
    "whole",
    "words",
    "write_manual",
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


SHOWING: Final = {"--quiet": "print only results and problems, no notes or progress", "--no-color": "print no colours"}
"""Options that every command takes, before or after its name."""
_COMPLETING: Final = "_ARGCOMPLETE"
_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_T = TypeVar("_T")


class _HelpFormatter(argparse.HelpFormatter):
    """Keeps the paragraphs of a text apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(super(_HelpFormatter, self)._fill_text(one, width, indent) for one in paragraphs)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are two lines, and suggest an option for an unknown one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _HelpFormatter, **options})
        self._given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> Any:
        known = sorted({*self._option_string_actions, *self._command()._option_string_actions})
        for word in self._given:
            option = word.partition("=")[0]
            if option == "--":
                break
            if option.startswith("--") and not any(one.startswith(option) for one in known):
                message = f"there is no option {option}; {nearest(option, known)}"
                break
        if choice := _CHOICE.search(message):
            near = difflib.get_close_matches(choice[1], re.findall(r"[^', ]+", choice[2]), 1)
            if near:
                message = f"{message[: choice.start()]}invalid choice: {choice[1]!r}; did you mean {near[0]}?"
        terminal.problem(message)
        one = self._command()
        terminal.write(f"usage: {one._short_usage()}; {one.prog} --help explains it", stream=sys.stderr)
        self.exit(2)

    def _command(self) -> Parser:
        """The parser of the command that is given; else this one."""
        commands = commands_of(self)
        found = next((commands[word] for word in self._given if word in commands), self)
        return found._command() if isinstance(found, Parser) and found is not self else self

    def _short_usage(self) -> str:
        needed = [action for action in self._actions if action.required and action.option_strings]
        positional = [action for action in self._actions if not action.option_strings]
        words = [f"{action.option_strings[0]} {self._word(action)}" for action in needed]
        return " ".join([self.prog, *map(self._word, positional), *words, "[options]"])

    def _word(self, action: argparse.Action) -> str:
        formatter = self._get_formatter()
        return formatter._format_args(action, formatter._get_default_metavar_for_optional(action)).strip()


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of a program's commands."""
    found = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return {name: command for one in found for name, command in one.choices.items()}


def shown_as(arguments: list[str]) -> list[str]:
    """The arguments without those that say how a command shows things; they are obeyed."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    own = [word for word in arguments[:end] if word in SHOWING]
    terminal.be_quiet("--quiet" in own)
    if "--no-color" in own:
        os.environ["NO_COLOR"] = "1"
    return [word for word in arguments[:end] if word not in SHOWING] + arguments[end:]


def completed_by(action: _T, values: Callable[[], Iterable[str]]) -> _T:
    """Has a shell complete an argument with these values; returns the argument."""

    def completer(**_: object) -> list[str]:
        return list(values())

    setattr(action, "completer", completer)  # noqa: B010 - argcomplete's name, unknown to argparse
    return action


def complete(parser_of: Callable[[str | None], argparse.ArgumentParser]) -> None:
    """Answer the shell and end the process, if it asks for words of a command line; otherwise do nothing.

    Args:
        parser_of: makes the parser for the first word of the line that is no option, if there is one before the cursor.
    """
    if _COMPLETING not in os.environ:
        return
    import argcomplete

    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))]
    words = [word for word in line.split()[1:] if not word.startswith("-")]
    command = words[0] if words and (len(words) > 1 or line.endswith(" ") or "-" in line.split()[-1][:1]) else None
    argcomplete.autocomplete(parser_of(command), always_complete_options="long", print_suppressed=True)


def write_manual(folder: Path, parsers: Iterable[tuple[argparse.ArgumentParser, str]]) -> list[Path]:
    """Write a page for `man` for each parser and its summary, from what its help shows; returns the files. Raises
    MissingExtraError: argparse-manpage is not installed; OSError: a file cannot be written."""
    try:
        from argparse_manpage.manpage import Manpage
    except ImportError as error:
        raise MissingExtraError("argparse-manpage", "cli") from error
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for parser, summary in parsers:
        page = Manpage(parser)
        page.description = summary
        page.date = page.manual = ""
        written.append(folder / f"{parser.prog.replace(' ', '-')}.1")
        written[-1].write_text(f"{page}\n", encoding="utf-8")
    return written
