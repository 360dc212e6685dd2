"""The structure of the code as its imports say it: rooms, layers, circles, public names; and the map drawn from it.

Usage: python tests/house/structure.py        (`make map`)

Writes docs/architecture.md, the layers in CONTRIBUTING.md, and the list of public names, tests/house/public_names.txt.
The tests beside this file hold the rules, and that what is written here is fresh. The order of the layers is data, in
pyproject.toml.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
NAMES = Path(__file__).with_name("public_names.txt")
LAYERS: tuple[str, ...] = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["house"]["layers"]
)
RANK = {name: rank for rank, name in enumerate(LAYERS)}


class Import(NamedTuple):
    """One imported name.

    Attributes:
        module: that imports.
        target: the module that is imported from.
        name: the name; empty where the module itself is imported.
        line: of the import.
    """

    module: str
    target: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{place(self.module)}:{self.line} imports {self.target}{self.name and '.'}{self.name}"


def sources(package: Path) -> dict[str, Path]:
    """Dotted module name -> file, for every module of a package."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


RUNTIME = sources(ROOT / "mtosi_jms")
GENERATOR = sources(ROOT / "codegen" / "mtosi_codegen")
MODULES = RUNTIME | GENERATOR


def place(module: str) -> str:
    """The file of a module, below the root."""
    return str(MODULES[module].relative_to(ROOT)) if module in MODULES else module


def imports_of(module: str, path: Path) -> Iterator[Import]:
    """Every import of a file, those inside functions and for type checking too."""
    here = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level + 1], *filter(None, [node.module])] if node.level else [node.module]
            target = ".".join(filter(None, base))
            for alias in node.names:
                inner = f"{target}.{alias.name}"
                yield (
                    Import(module, inner, "", node.lineno)
                    if inner in MODULES
                    else Import(module, target, alias.name, node.lineno)
                )


IMPORTS = [found for module, path in MODULES.items() for found in imports_of(module, path)]
# A module of a service is generated for `service`, which leans on the generated types.
SERVICES = {found.module for found in IMPORTS if found.target == "mtosi_jms.service" and ".stubs." in found.module}


def layer(module: str) -> str:
    """The layer of a module of `mtosi_jms`."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "__main__":
        return "cli" if parts[-1] == "__main__" else "mtosi_jms"
    if parts[1] == "stubs":
        return "stubs (services)" if module in SERVICES else "stubs (types)"
    return parts[1]


def between_layers() -> Iterator[tuple[Import, str, str]]:
    """Imports within `mtosi_jms` from one layer of another: the import, the importing layer, the imported one."""
    for found in IMPORTS:
        if found.module in RUNTIME and found.target in RUNTIME:
            here, there = layer(found.module), layer(found.target)
            if here != there:
                yield found, here, there


def circles(modules: Mapping[str, Path]) -> list[list[str]]:
    """The groups of files that import each other, however far around; by Tarjan's algorithm."""
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for found in IMPORTS:
        if found.module in modules and found.target in modules and found.module != found.target:
            graph[found.module].add(found.target)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for following in sorted(graph[node]):
            if following not in index:
                visit(following)
                low[node] = min(low[node], low[following])
            elif following in stack:
                low[node] = min(low[node], index[following])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for node in graph:
        if node not in index:
            visit(node)
    return groups


def is_private(module: str) -> bool:
    """Whether a part of a module's name says that it is private."""
    return any(part.startswith("_") and not part.startswith("__") for part in module.split("."))


def public_modules() -> list[str]:
    """The public modules of `mtosi_jms`, the stubs excepted: those are generated."""
    return [
        module
        for module in RUNTIME
        if not is_private(module) and not module.endswith("__main__") and not module.startswith("mtosi_jms.stubs")
    ]


def exported(module: str) -> frozenset[str] | None:
    """What a module has in `__all__`; None where it has none."""
    for node in ast.parse(MODULES[module].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return frozenset(ast.literal_eval(node.value))
    return None


def trespasses() -> list[Import]:
    """Imports from one layer of another by a name that is not public."""
    known = {module: exported(module) for module in RUNTIME}
    found = [one for one, _, _ in between_layers()]
    found += [one for one in IMPORTS if one.module in GENERATOR and one.target in RUNTIME]
    return [
        one
        for one in found
        if not one.target.startswith("mtosi_jms.stubs")
        and (is_private(one.target) or (one.name and one.name not in (known[one.target] or ())))
        and layer(one.module) != "mtosi_jms"
    ]


def public_names() -> str:
    """All public names with their signatures, one on a line."""
    lines: list[str] = []
    for name in public_modules():
        module = importlib.import_module(name)
        for public in sorted(exported(name) or ()):
            lines += _described(f"{name}.{public}", getattr(module, public))
    return "\n".join(lines) + "\n"


def _described(name: str, value: object) -> Iterator[str]:
    if isinstance(value, ModuleType):
        return
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}" if inspect.isroutine(value) else name
        return
    yield f"{name}{_signature(value)}"
    if not value.__module__.startswith("mtosi_") or ".stubs." in value.__module__:
        return
    for member, inner in sorted(vars(value).items()):
        plain = inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner
        if not member.startswith("_") and inspect.isfunction(plain):
            yield f"{name}.{member}{_signature(plain)}"
        elif not member.startswith("_") and isinstance(inner, property):
            yield f"{name}.{member}"


def _signature(value: object) -> str:
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    parameters = [
        one.replace(default=inspect.Parameter.empty if one.default is inspect.Parameter.empty else _Shown(one.default))
        for one in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters))


class _Shown:
    """A default as it is listed: its value where that is the same on every machine."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        plain = self._value is None or isinstance(self._value, bool | int | float | str | tuple)
        return repr(self._value) if plain else "..."


# The page

INTRODUCTION = """\
# Architecture

`make map` writes this page from the imports of the code. Do not edit it: change the code or `tests/house/structure.py`.

## Data flow

    wsdl/ + xsd/ --mtosi-codegen--> stubs
    object --xmlbind--> XML element --soap--> envelope --jms--> JMS message --transport--> provider, and back
    what is received --spool--> landing --spark--> tables

## A batch reply, from the wire to Parquet
"""

WALK = (
    (
        "frames arrive at the socket, and go to their consumer",
        "mtosi_jms.transport.stomp._link",
        "Link._frames",
    ),
    ("one waiting caller receives for all", "mtosi_jms.exchange._receiver", "Receiver._receive"),
    ("the message is landed, then acknowledged, then read", "mtosi_jms.exchange._receiver", "Receiver._handle"),
    ("landing: body and headers on disk, synced", "mtosi_jms.spool._landing", "DurableLanding.land"),
    ("the message becomes an envelope with typed header and body", "mtosi_jms.jms.binding", "from_jms"),
    ("the assembler puts batches in order and finds gaps", "mtosi_jms.patterns._batches", "BatchAssembler.receive"),
    ("the caller gets the response, and its objects", "mtosi_jms.service", "Objects"),
    ("the ingest job begins: Spark cuts the landing into partitions", "mtosi_jms.spark.jobs._ingest", "run_ingest"),
    ("a worker reads the files of one partition, and fills the columns", "mtosi_jms.spark._reader", "ObjectReader"),
    ("Parquet files are written aside, then the tables are swapped", "mtosi_jms.spark.jobs._swap", "Staging.swap"),
)


def line_of(module: str, name: str) -> int:
    """The line of a class, function or method.

    Raises:
        KeyError: there is none.
    """
    body: list[ast.stmt] = ast.parse(MODULES[module].read_text(encoding="utf-8")).body
    line = 1
    for part in filter(None, name.split(".")):
        named = {
            node.name: node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        line, body = named[part].lineno, named[part].body
    return line


def walk() -> Iterator[str]:
    """The walk of a batch reply, each step a link."""
    for number, (what, module, name) in enumerate(WALK, 1):
        label = name or module.removeprefix("mtosi_jms.")
        yield f"{number}. {what}: [`{label}`](../{place(module)}#L{line_of(module, name)})"


def summary(module: str) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(MODULES[module].read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(":.")


def page() -> str:
    """The text of docs/architecture.md."""
    edges: dict[str, set[str]] = defaultdict(set)
    for _, here, there in between_layers():
        edges[here].add(there)
    lines = [INTRODUCTION, *walk(), "", "## Layers", "", layers_text(), "", "## Packages", ""]
    lines += ["| package | purpose | imports |", "|---|---|---|"]
    for name in LAYERS:
        modules = [module for module in RUNTIME if layer(module) == name]
        if not modules or name.startswith("stubs"):
            continue
        room = f"mtosi_jms.{name}" if f"mtosi_jms.{name}" in MODULES else modules[0]
        targets = ", ".join(sorted(edges[name], key=RANK.__getitem__))
        lines.append(f"| [`{name}`](../{place(room)}) | {summary(room)} | {targets} |")
    lines += ["", "## The drawing", "", "```mermaid", "flowchart LR"]
    for name in LAYERS:
        for target in sorted(_nearest(name, edges), key=RANK.__getitem__):
            lines.append(f"    {_node(name)} --> {_node(target)}")
    lines += ["```", "", "Arrows that follow from others are left out.", ""]
    return "\n".join(lines)


def _nearest(name: str, edges: Mapping[str, set[str]]) -> set[str]:
    """The layers that a layer imports, without those that one of them imports already."""

    def below(layer_name: str) -> set[str]:
        return {layer_name}.union(*(below(one) for one in edges.get(layer_name, ())))

    direct = edges.get(name, set())
    return {one for one in direct if not any(one in below(other) for other in direct if other != one)}


def _node(name: str) -> str:
    return f'{re.sub(r"[^a-z_]", "_", name)}["{name}"]'


def layers_text() -> str:
    """The line of layers, as Markdown."""
    lines, line = [], "   "
    for name in LAYERS:
        part = f" {name}" if name == LAYERS[0] else f" < {name}"
        if len(line) + len(part) > 110:
            lines.append(line)
            line = "     "
        line += part
    return "\n".join([*lines, line])


def contributing() -> str:
    """CONTRIBUTING.md with the layers as they are."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    marked = re.compile(r"(<!-- layers -->\n\n).*?(\n\n *<!-- end of layers -->)", re.DOTALL)
    indented = "\n".join("  " + line for line in layers_text().split("\n"))
    return marked.sub(lambda found: f"{found[1]}{indented}{found[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    CONTRIBUTING.write_text(contributing(), encoding="utf-8")
    NAMES.write_text(public_names(), encoding="utf-8")
