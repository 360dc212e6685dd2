"""The import rule: a layer imports only layers to its left, and an optional library only in its own module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

# From left to right; units of one cell may know each other, but not in a circle: the commands use the public surface
# (`__init__`), which the parts that it is made of must not.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "ids", "masking", "namespaces", "signals"),
    ("xmlbind",),
    ("bulk",),
    ("service", "awaited", "usages"),
    ("stubs",),
    ("inventory",),
    ("soap",),
    ("jms",),
    ("patterns",),
    ("transport",),
    (
        "requestor",
        "outcomes",
        "shapes",
        "replies",
        "incoming",
        "tickets",
        "messages",
        "supplier",
        "answers",
        "filing",
        "notifications",
        "deployment",
        "delivery",
        "aio",
    ),
    ("runtime",),
    ("broker", "spool", "simulator", "spark", "cli", "testing", "validation", "report", "__init__", "__main__"),
)
RANK = {unit: rank for rank, cell in enumerate(LAYERS) for unit in cell}

ONLY = {"transport": {"transport", "jms", "errors", "masking"}}

# No socket, thread, clock or source of identifiers: time and ids are arguments.
PURE = ("soap", "jms", "patterns")
WORLD = frozenset(
    {
        "_thread",
        "asyncio",
        "concurrent",
        "http",
        "multiprocessing",
        "queue",
        "random",
        "sched",
        "secrets",
        "select",
        "selectors",
        "signal",
        "smtplib",
        "socket",
        "socketserver",
        "ssl",
        "subprocess",
        "threading",
        "time",
        "uuid",
    }
)
CLOCKS = frozenset({"now", "utcnow", "today"})

# Import name of an optional library -> the modules (with all below them) that may import it.
OPTIONAL = {
    "elementpath": ("mtosi_codegen",),
    "jinja2": ("mtosi_codegen",),
    "xmlschema": ("mtosi_codegen",),
    "zeep": ("mtosi_codegen",),
    "rich": ("mtosi_jms.cli", "mtosi_codegen.cli"),
    "stomp": ("mtosi_jms.transport.stomp",),
    "py4j": ("mtosi_jms.spark",),
    "pyspark": ("mtosi_jms.spark",),
    "pyarrow": ("mtosi_jms.spark",),
    "pandas": ("mtosi_jms.spark",),
    "delta": ("mtosi_jms.spark._delta",),
    "pytest": ("mtosi_jms.testing",),
    "tenacity": ("mtosi_jms.runtime",),
}
REQUIRED = frozenset({"lxml"})


class Import(NamedTuple):
    """One imported name: where, and the dotted module that it names."""

    module: str
    target: str
    line: int


def sources(package: Path) -> dict[str, Path]:
    """Dotted module name -> file, for every module of the package."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


RUNTIME = sources(ROOT / "mtosi_jms")
GENERATOR = sources(ROOT / "codegen" / "mtosi_codegen")
MODULES = RUNTIME | GENERATOR


def absolute(module: str, path: Path, node: ast.ImportFrom) -> str:
    """The dotted name that a `from ... import` starts at."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    here = parts if path.name == "__init__.py" else parts[:-1]
    base = here[: len(here) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def imports(module: str, path: Path) -> Iterator[Import]:
    """Every import of a file, those inside functions and for type checking too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, path, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(module, inner if inner in MODULES else base, node.lineno)


ALL_IMPORTS = [found for module, path in MODULES.items() for found in imports(module, path)]


def unit(module: str) -> str:
    """The unit of the layer table that a module of `mtosi_jms` belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def inside() -> Iterator[tuple[Import, str, str]]:
    """Imports within `mtosi_jms`: the import, the importing unit, the imported unit."""
    for found in ALL_IMPORTS:
        if found.module in RUNTIME and found.target.partition(".")[0] == "mtosi_jms":
            yield found, unit(found.module), unit(found.target)


def places(found: list[Import]) -> str:
    return "\n".join(f"{MODULES[i.module].relative_to(ROOT)}:{i.line} imports {i.target}" for i in found)


def test_every_module_has_a_layer() -> None:
    assert RUNTIME
    unknown = sorted({unit(module) for module in RUNTIME} - set(RANK))
    assert not unknown, f"no layer for {unknown}: add it to LAYERS where it belongs"


def test_layers_import_only_to_the_left() -> None:
    wrong = [i for i, here, there in inside() if RANK[there] > RANK[here]]
    assert not wrong, places(wrong)


def test_units_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in RANK}
    for _, here, there in inside():
        if here != there:
            graph[here].add(there)
    while leaves := {name for name, targets in graph.items() if not targets}:
        graph = {name: targets - leaves for name, targets in graph.items() if name not in leaves}
    assert not graph, f"a circle among {sorted(graph)}"


@pytest.mark.parametrize("layer", ONLY)
def test_narrow_layers_know_only_what_they_need(layer: str) -> None:
    wrong = [i for i, here, there in inside() if here == layer and there not in ONLY[layer]]
    assert not wrong, places(wrong)


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_know_no_world(layer: str) -> None:
    mine = [i for i in ALL_IMPORTS if i.module in RUNTIME and unit(i.module) == layer]
    wrong = [i for i in mine if i.target.partition(".")[0] in WORLD]
    assert not wrong, places(wrong)


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_read_no_clock(layer: str) -> None:
    wrong = []
    for module, path in RUNTIME.items():
        if unit(module) != layer:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        wrong += [f"{module}:{f.lineno}" for f in calls if isinstance(f, ast.Attribute) and f.attr in CLOCKS]
    assert not wrong


def test_runtime_never_imports_the_generator() -> None:
    wrong = [i for i in ALL_IMPORTS if i.module in RUNTIME and i.target.partition(".")[0] == "mtosi_codegen"]
    assert not wrong, places(wrong)


def test_third_party_libraries_stay_in_their_own_modules() -> None:
    ours = {"mtosi_jms", "mtosi_codegen"}
    wrong = []
    for found in ALL_IMPORTS:
        library = found.target.partition(".")[0]
        if library in ours | REQUIRED | sys.stdlib_module_names:
            continue
        homes = OPTIONAL.get(library, ())
        if not any(found.module == home or found.module.startswith(f"{home}.") for home in homes):
            wrong.append(found)
    assert not wrong, places(wrong)
