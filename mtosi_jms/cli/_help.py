"""Shows the commands, or the help of one; --man writes the same as pages for man."""

from __future__ import annotations

import argparse

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import commands_of, completed_by, local, write_manual
from mtosi_jms.registry import registered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    completed_by(parser.add_argument("about", nargs="?", metavar="COMMAND"), lambda: registered("commands"))
    parser.add_argument("--man", type=local, metavar="DIR", help="write the help of all commands as pages for man")


def run(args: argparse.Namespace) -> int:
    from mtosi_jms.cli import COMMANDS, check_command, parser_for

    if args.about is not None:
        check_command(args.about)
        terminal.write(commands_of(parser_for(args.about))[args.about].format_help().rstrip("\n"))
    elif args.man is None:
        terminal.write(parser_for(None).format_help().rstrip("\n"))
    else:
        one = [(commands_of(parser_for(name))[name], does) for name, does in COMMANDS.items()]
        main = parser_for(None)
        written = write_manual(args.man, [(main, (main.description or "").partition(":")[0]), *one])
        terminal.say(f"{args.man}: {len(written)} pages; man -l {written[0]}")
    return 0
