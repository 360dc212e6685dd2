"""`mtosi-codegen templates`: writes copies of the templates of generated packages, for you to change."""

from __future__ import annotations

import argparse
from typing import Any

from mtosi_codegen.render.templates import built_in
from mtosi_codegen.report import counted
from mtosi_codegen.write import write_files
from mtosi_jms.cli.arguments import local
from mtosi_jms.cli.terminal import say
from mtosi_jms.errors import SchemaError


def add_parser(commands: Any) -> None:
    """Add the parser of this command."""
    about = "write copies of the templates, for you to change and pass to generate and check with --templates"
    command: argparse.ArgumentParser = commands.add_parser(
        "templates", help=about, description=f"{about[0].upper()}{about[1:]}. Existing files that differ are an error."
    )
    command.set_defaults(run=_run)
    command.add_argument("out", type=local, metavar="DIR", help="folder to write them to")


def _run(args: argparse.Namespace) -> int:
    files = {path.name: path.read_bytes() for path in built_in()}
    for name, data in files.items():
        target = args.out / name
        if target.exists() and target.read_bytes() != data:
            raise SchemaError("exists, and differs from ours; move it, or choose another folder", file=str(target))
    write_files(args.out, files, {})
    say(f"{args.out}: {counted(len(files), 'template')}")
    return 0
