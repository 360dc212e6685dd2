"""Prints a script that has a shell complete the commands, options and values of mtosi-jms and mtosi-codegen.

bash: add eval "$(mtosi-jms completion bash)" to ~/.bashrc.

zsh: add eval "$(mtosi-jms completion zsh)" to ~/.zshrc.

fish: mtosi-jms completion fish > ~/.config/fish/conf.d/mtosi-jms.fish
"""

from __future__ import annotations

import argparse

from mtosi_jms.cli import terminal
from mtosi_jms.errors import MissingExtraError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise MissingExtraError("argcomplete", "cli") from error
    terminal.write(shellcode(["mtosi-jms", "mtosi-codegen"], shell=args.shell).rstrip("\n"))
    return 0
