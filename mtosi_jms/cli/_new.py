"""Makes a project that runs at once: a requestor, a supplier, a subscriber or a Spark job, with its tests.

In the environment dev the program runs on an embedded provider with made-up data; on a real provider it makes up
nothing. The folder must be new or empty.
"""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_release, local
from mtosi_jms.errors import ConfigError, MissingExtraError


class _Kind(NamedTuple):
    module: str
    extras: str
    does: str


KINDS: Final = {
    "requestor": _Kind("requestor", "stomp", "Asks an EMS for its managed elements."),
    "supplier": _Kind("supplier", "stomp", "Answers requests for managed elements."),
    "subscriber": _Kind("subscriber", "stomp", "Prints the alarms that arrive on a topic."),
    "spark-job": _Kind("job", "spark", "Turns landed inventory into a table with Spark."),
}
_SHARED: Final = {"pyproject.toml": "pyproject.toml", "mtosi-jms.toml": "mtosi-jms.toml", "README.md": "README.md"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=tuple(KINDS), help="what to make")
    parser.add_argument("folder", type=local, metavar="DIR", help="folder to write to; the project gets its name")
    add_release(parser)


def run(args: argparse.Namespace) -> int:
    folder: Path = args.folder
    name = re.sub(r"[^A-Za-z0-9]+", "-", folder.absolute().name).strip("-").lower()
    if not name:
        raise ConfigError(f"{folder}: its name has no letter or digit to call the project by")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there and not empty: choose a new folder")
    kind = KINDS[args.kind]
    texts = _render(kind, name, args.release)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    terminal.say(f"made {folder}: {', '.join(sorted(texts))}", "good")
    terminal.say(f"next: cd {shlex.quote(str(folder))}; pip install -e '.[test]'; python {kind.module}.py; pytest")
    return 0


def _render(kind: _Kind, name: str, release: str) -> dict[str, str]:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError("jinja2", "cli") from error
    folder = Path(__file__).with_name("templates") / "new"
    # The files are programs and configuration, not HTML, and what is filled in is checked.
    maker = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # noqa: S701
    )
    files = {
        **_SHARED,
        ".gitignore": "gitignore",
        f"{kind.module}.py": f"{kind.module}.py",
        f"test_{kind.module}.py": f"test_{kind.module}.py",
    }
    values = {**kind._asdict(), "name": name, "older": release == "1.1"}
    return {file: maker.get_template(f"{template}.j2").render(values) for file, template in files.items()}
