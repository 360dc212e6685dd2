"""The structure of the code as its imports say it: layers, circles, public names.

Usage: python tests/house/structure.py        (`make map`)

Writes the layers in docs/architecture.md, the bounds in docs/security.md, the extras in README.md, the
requirements in conda/recipe.yaml, and the list of public names, tests/house/public_names.txt. The tests beside this
file hold the rules, and that what is written here is fresh. The order of the layers is data, in pyproject.toml.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from packaging.requirements import Requirement

import mtosi_jms.bounds

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
SECURITY = ROOT / "docs" / "security.md"
NAMES = Path(__file__).with_name("public_names.txt")
README = ROOT / "README.md"
RECIPE = ROOT / "conda" / "recipe.yaml"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, HOUSE = PYPROJECT["project"], PYPROJECT["tool"]["house"]
LAYERS: tuple[str, ...] = tuple(HOUSE["layers"])
SATELLITES: dict[str, list[str]] = HOUSE["satellites"]
RANK = {name: rank for rank, name in enumerate(LAYERS)}


class Import(NamedTuple):
    """One imported name, with the module that imports it and the line; no name where it is the module itself."""

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
SERVICES = {found.module for found in IMPORTS if found.target == "mtosi_jms.service" and ".stubs" in found.module}


def layer(module: str) -> str:
    """The layer of a module of `mtosi_jms`."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "__main__":
        return "cli" if parts[-1] == "__main__" else "mtosi_jms"
    if parts[1] in ("stubs", "stubs11"):
        return "stubs (services)" if module in SERVICES else "stubs (types)"
    if module.startswith("mtosi_jms.transport.jvm"):
        return "transport/jvm"
    if module == "mtosi_jms.jms.binding":  # a published name of the binding
        return "binding"
    return parts[1]


def between_layers() -> Iterator[tuple[Import, str, str]]:
    """Imports within `mtosi_jms` from one layer of another: the import, the importing layer, the imported one."""
    for found in IMPORTS:
        if found.module in RUNTIME and found.target in RUNTIME:
            here, there = layer(found.module), layer(found.target)
            if here != there:
                yield found, here, there


def circle(modules: Mapping[str, Path]) -> list[str]:
    """Files that import each other in a circle; empty where there is none."""
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for found in IMPORTS:
        if found.module in modules and found.target in modules and found.module != found.target:
            graph[found.module].add(found.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


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
        and one.module.split(".")[1:2] != one.target.split(".")[1:2]
    ]


def surface() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Each public name, its signature, and those of the methods and properties of a class of ours."""
    for name in public_modules():
        for public in sorted(exported(name) or ()):
            value = getattr(importlib.import_module(name), public)
            if not isinstance(value, ModuleType):
                callable_ = inspect.isclass(value) or inspect.isroutine(value)
                yield f"{name}.{public}", _signature(value) if callable_ else "", dict(_members(value))


def _members(value: object) -> Iterator[tuple[str, str]]:
    ours = inspect.isclass(value) and value.__module__.startswith("mtosi_") and ".stubs" not in value.__module__
    for member, inner in sorted(vars(value).items()) if ours else ():
        plain = inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner
        if not member.startswith("_") and (inspect.isfunction(plain) or isinstance(inner, property)):
            yield member, _signature(plain) if inspect.isfunction(plain) else ""


def public_names() -> str:
    """All public names: with a signature where they are met first, of a class with the names of its members, too.

    Those without either, and those that another module has as well, stand together, one line a module.
    """
    lines: list[str] = []
    bare: dict[str, list[str]] = defaultdict(list)
    known: set[int] = set()
    for name, signature, members in surface():
        module, _, public = name.rpartition(".")
        value = getattr(importlib.import_module(module), public)
        if (callable(value) and id(value) in known) or not (signature or members):
            bare[module].append(public)
        else:
            known.add(id(value))
            lines.append(f"{name}{signature}{': ' if members else ''}{', '.join(members)}\n")
    return "".join(lines + [f"{module} has {', '.join(names)}, too\n" for module, names in bare.items()])


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


def page() -> str:
    """docs/architecture.md with the layers as they are."""
    order = textwrap.fill(" < ".join(LAYERS), 110, initial_indent="    ", subsequent_indent="      ")
    return _with(PAGE, "layers", [order])


def security() -> str:
    """docs/security.md with the bounds that an option changes, as they are."""
    lines = ["| where | bound | default | option |", "|---|---|---|---|"]
    for bound in mtosi_jms.bounds.table():
        if bound.options:
            options = ", ".join(f"`{option}`" for option in bound.options)
            lines.append(f"| {bound.door} | {bound.counts} | {bound.shown} | {options} |")
    return _with(SECURITY, "bounds", lines)


def _with(file: Path, name: str, lines: list[str]) -> str:
    """A page with these lines between the marks of that name."""
    marked = re.compile(rf"(<!-- {name} -->\n\n).*?(\n\n<!-- end of {name} -->)", re.DOTALL)
    return marked.sub(lambda found: "\n".join(lines).join(found.groups()), file.read_text(encoding="utf-8"))


def readme() -> str:
    """README.md with the extras as they are declared."""
    rows = "".join(f"| `{name}` | {HOUSE['extras'][name]} |\n" for name in PROJECT["optional-dependencies"])
    table = re.compile(r"(?<=\n\| extra \| adds \|\n\|---\|---\|\n)(\|.*\n)+")
    return table.sub(lambda _: rows, README.read_text(encoding="utf-8"))


def recipe() -> str:
    """conda/recipe.yaml with the version and the requirements as they are declared."""
    extras = _for_conda(line for lines in PROJECT["optional-dependencies"].values() for line in lines)
    run = [f"python {PROJECT['requires-python']}", *_for_conda(PROJECT["dependencies"])]
    text = re.sub(r'(?m)(?<=^  version: )".*"$', f'"{PROJECT["version"]}"', RECIPE.read_text(encoding="utf-8"))
    for key, lines in ("run", run), ("run_constraints", extras):
        block = "".join(f"    - {line}\n" for line in lines)
        text = re.sub(rf"(?m)(?<=^  {key}:\n)(    - .*\n)+", block, text)
    return text


def _for_conda(lines: Iterable[str]) -> list[str]:
    """Requirements in conda's words: without extras and markers."""
    found = map(Requirement, lines)
    return sorted({f"{one.name} {one.specifier}" for one in found if one.name != PROJECT["name"]})


WRITTEN = {README: readme, RECIPE: recipe, PAGE: page, SECURITY: security, NAMES: public_names}

if __name__ == "__main__":
    for file, made in WRITTEN.items():
        file.write_text(made(), encoding="utf-8")
