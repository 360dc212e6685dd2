"""The parsers of the programs: errors that suggest what was meant, help, completion by argcomplete, man pages."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import nearest
from mtosi_jms.errors import MissingExtraError

__all__ = ["SHOWING", "Parser", "commands_of", "complete", "completed_by", "shown_as", "write_manual"]

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
        return found if isinstance(found, Parser) else self

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
