"""Prints a script that completes commands and options for a shell.

bash: add eval "$(mtosi-jms completion bash)" to ~/.bashrc.

zsh: add eval "$(mtosi-jms completion zsh)" to ~/.zshrc.

fish: mtosi-jms completion fish > ~/.config/fish/completions/mtosi-jms.fish
"""

from __future__ import annotations

import argparse
import shlex
from typing import Final

from mtosi_jms.cli import terminal
from mtosi_jms.errors import MissingExtraError

_PROGRAM: Final = "mtosi-jms"
_BASH: Final = """\
_mtosi_jms() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _mtosi_jms {program}
"""
_ZSH: Final = "autoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    from mtosi_jms.cli import COMMANDS

    words = {name: _words(name) for name in COMMANDS}
    if args.shell == "fish":
        lines = [
            f"complete -c {_PROGRAM} -n __fish_use_subcommand -f -a {name} -d {shlex.quote(COMMANDS[name])}"
            for name in COMMANDS
        ]
        for name, those in words.items():
            seen = shlex.quote(f"__fish_seen_subcommand_from {name}")
            options = (f"-l {word[2:]}" if word.startswith("--") else f"-a {word}" for word in those)
            lines += [f"complete -c {_PROGRAM} -n {seen} {option}" for option in options]
        terminal.write("\n".join(lines))
        return 0
    cases = "\n".join(f'            {name}) words="{" ".join(those)}" ;;' for name, those in words.items())
    script = _BASH.format(commands=" ".join(COMMANDS), cases=cases, program=_PROGRAM)
    terminal.write((_ZSH if args.shell == "zsh" else "") + script.rstrip("\n"))
    return 0


def _words(command: str) -> list[str]:
    """The long options of a command, and what it takes in the place of a word; none where it lacks a library."""
    from mtosi_jms.cli import parser_for

    try:
        parser = parser_for(command)
    except MissingExtraError:
        return []
    (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    words: list[str] = []
    for action in commands.choices[command]._actions:
        words += [option for option in action.option_strings if option.startswith("--")]
        if not action.option_strings and action.choices is not None:
            words += [str(choice) for choice in action.choices]
    return words
