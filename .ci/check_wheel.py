"""Check a built wheel: what it holds at its top level, its shared data, and what its metadata promises.

Usage: check_wheel.py WHEEL. Exits 1 with one line for each problem.
"""

from __future__ import annotations

import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"mtosi_jms", "mtosi_codegen"}
CROSSING = "mtosi_jms/transport/jvm/java/mtosi_jms/{}/Crossing.class"
MARKERS = (
    "mtosi_jms/py.typed",
    "mtosi_codegen/py.typed",
    CROSSING.format("javax"),
    CROSSING.format("jakarta"),
)
TEMPLATES = (
    "mtosi_jms/cli/templates",
    "mtosi_jms/console/static",
    "mtosi_jms/console/templates",
    "mtosi_jms/report/templates",
    "codegen/mtosi_codegen/templates",
)


def contents(names: list[str], project: dict[str, Any]) -> Iterator[str]:
    """Problems of the file list: stray or missing packages, markers, templates, schemas, bytecode."""
    stem = f"mtosi_jms-{project['version']}"
    top = {name.partition("/")[0] for name in names}
    expected = PACKAGES | {f"{stem}.dist-info", f"{stem}.data"}
    if top != expected:
        yield f"top level is {sorted(top)}, expected {sorted(expected)}"
    yield from (f"{marker} is missing" for marker in MARKERS if marker not in names)
    for folder in TEMPLATES:
        files = (path for path in (ROOT / folder).rglob("*") if path.is_file())
        inside = (path.relative_to(ROOT).as_posix().removeprefix("codegen/") for path in files)
        yield from (f"{name} is missing" for name in inside if name not in names)
    for folder, suffix in (("wsdl", ".wsdl"), ("xsd", ".xsd")):
        prefix = f"{stem}.data/data/share/mtosi-jms/{folder}/"
        if not any(name.startswith(prefix) and name.endswith(suffix) for name in names):
            yield f"no {suffix} file below share/mtosi-jms/{folder}"
    yield from (f"{name} does not belong into a wheel" for name in names if "__pycache__" in name)


def metadata(message: Message, project: dict[str, Any]) -> Iterator[str]:
    """Problems of the METADATA file against pyproject.toml."""
    for field, key in (("Name", "name"), ("Version", "version"), ("Requires-Python", "requires-python")):
        if message[field] != project[key]:
            yield f"{field} is {message[field]!r}, expected {project[key]!r}"
    if message["License-Expression"] != project["license"] or message["License-File"] != "LICENSE":
        yield "the licence or its file is missing"
    if not str(message.get_payload()).strip():
        yield "the long description is empty"
    core = [line for line in message.get_all("Requires-Dist", []) if "extra ==" not in line]
    if [line.partition(">")[0] for line in core] != ["lxml"]:
        yield f"without extras it requires {core}, expected lxml alone"
    extras = set(message.get_all("Provides-Extra", []))
    if extras != set(project["optional-dependencies"]):
        yield f"extras are {sorted(extras)}"


def entry_points(text: str, project: dict[str, Any]) -> Iterator[str]:
    """Problems of the console scripts and the other entry points."""
    for name, target in project["scripts"].items():
        if f"{name} = {target}" not in text:
            yield f"the command {name} is missing"
    for group, entries in project.get("entry-points", {}).items():
        for name, target in entries.items():
            if f"[{group}]" not in text or f"{name} = {target}" not in text:
                yield f"the entry point {name} of {group} is missing"


def problems(wheel: Path) -> list[str]:
    """Everything that is wrong with the wheel, one line each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = f"mtosi_jms-{project['version']}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        message = HeaderParser().parsestr(archive.read(f"{info}/METADATA").decode())
        scripts = archive.read(f"{info}/entry_points.txt").decode()
        return [
            *contents(archive.namelist(), project),
            *metadata(message, project),
            *entry_points(scripts, project),
        ]


def main(argv: list[str]) -> int:
    """Print the problems of the wheel that the command line names; 1 if there are any, 2 on wrong usage."""
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    wheel = Path(argv[0])
    found = problems(wheel)
    for line in found:
        print(f"{wheel.name}: {line}")
    if not found:
        print(f"{wheel.name}: packages, schemas and metadata are as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
