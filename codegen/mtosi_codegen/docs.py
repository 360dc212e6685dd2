"""`mtosi-codegen docs`: makes pages about the services, operations and types of a set, as text by path.

There is one page for each service and each namespace, an index, and the findings. The templates are in
`templates/docs/`; the module `write` writes the pages. Links are relative, so the pages work from disk. Anchors are the
names of classes and methods, which are the same in every run.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from mtosi_codegen.model import (
    Builtin,
    ClassDef,
    EnumClass,
    EnumValue,
    FacetValue,
    FaultDef,
    Field,
    ListValue,
    Model,
    ModelGroup,
    ObjectValue,
    Operation,
    Service,
    UnionValue,
    Value,
)
from mtosi_codegen.pipeline import Result
from mtosi_codegen.render.templates import Templates
from mtosi_codegen.report import findings_of, status_of
from mtosi_codegen.text import snake

Examples = Callable[[Service, Operation], Mapping[str, str]]
"""Gives the example envelopes that an operation has, by `request`, `response` and `fault`."""

Entry = ClassDef | EnumClass | FaultDef
MARK: Final = "<!-- Pages by mtosi-codegen. Do not edit. -->"
"""The first line of every page."""

_LONGEST: Final = 60
"""Most letters of a file name, so that it is valid on disk in every script."""


class Part(NamedTuple):
    """A piece of a line; `entry` is what the piece names and links to."""

    text: str
    entry: Entry | None = None


class Use(NamedTuple):
    """Where a class is used: a field of a class, or a message of an operation."""

    text: str
    href: str


def pages(result: Result, examples: Examples | None = None) -> dict[str, str]:
    """The pages by path below their folder, with `/`. Every run gives the same bytes.

    Args:
        examples: gives example messages; None for pages without examples.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    return dict(sorted(_Pages(result, examples).files()))


class _Pages:
    def __init__(self, result: Result, examples: Examples | None) -> None:
        self._result = result
        self._examples = examples or (lambda service, operation: {})
        model = result.model
        modules = sorted(model.modules, key=lambda module: (module.namespace, module.path))
        self._modules = dict(zip(modules, _files("types", [module.path for module in modules]), strict=True))
        services = sorted(result.services, key=lambda service: (service.name, service.wsdl, service.binding))
        names = [snake(service.name) if not service.module else service.module for service in services]
        self._services = dict(zip(services, _files("services", names), strict=True))
        self._derived: dict[ClassDef, list[ClassDef]] = defaultdict(list)
        self._substitutes: dict[ClassDef, list[ClassDef]] = defaultdict(list)
        self._uses: dict[Entry, list[Use]] = defaultdict(list)
        self._cross_reference(model)

    def files(self) -> Iterator[tuple[str, str]]:
        """Every page by its path."""
        templates = Templates("docs")
        functions = {
            "href": self._href,
            "service_href": self._services.__getitem__,
            "module_href": self._modules.__getitem__,
            "parts": parts,
            "facets": facets,
            "occurs": occurs,
            "content": content,
            "label": label,
            "status": lambda service: status_of(service, findings_of(service, self._result)),
        }
        every = {"result": self._result, "modules": self._modules, "services": self._services}
        for name in ("style.css", "search.js"):
            yield name, templates.render(name)
        for name in ("index.html", "findings.html"):
            yield name, templates.render(f"{name}.jinja", root="", **functions, **every)
        for service, path in self._services.items():
            examples = {operation.name: self._examples(service, operation) for operation in service.operations}
            findings = findings_of(service, self._result)
            values = {"service": service, "findings": findings, "examples": examples, "root": "../"}
            yield path, templates.render("service.html.jinja", **values, **functions)
        for module, path in self._modules.items():
            values = {
                "module": module,
                "root": "../",
                "derived": self._derived,
                "substitutes": self._substitutes,
                "uses": self._uses,
            }
            yield path, templates.render("types.html.jinja", **values, **functions)
        yield "search-index.js", f"const INDEX = {json.dumps(list(self._entries()), indent=0)};\n"

    def _href(self, entry: Entry) -> str:
        """The page and anchor of a class; empty if it has none."""
        page = self._modules.get(entry.module)
        return f"{page}#{entry.name}" if page else ""

    def _entries(self) -> Iterator[tuple[str, str, str]]:
        """Name, kind and address of each entry of the search."""
        for service, path in self._services.items():
            yield service.name, "service", path
            for operation in service.operations:
                yield operation.name, f"operation of {service.name}", f"{path}#{operation.python_name}"
        for module in self._modules:
            entries: list[Entry] = [*module.enums, *module.classes, *module.faults]
            for entry in entries:
                yield label(entry), f"{_kind(entry)} of {module.path}", self._href(entry)

    def _cross_reference(self, model: Model) -> None:
        for service, path in self._services.items():
            for operation in service.operations:
                for role in ("request", "response", "fault"):
                    cls = getattr(operation, f"{role}_class")
                    if cls is not None:
                        use = Use(f"{service.name}.{operation.name}, {role}", f"{path}#{operation.python_name}")
                        self._uses[cls].append(use)
        for module in self._modules:
            for fault in module.faults:
                self._uses[fault.detail].append(Use(fault.name, self._href(fault)))
            for cls in module.classes:
                if cls.base is not None:
                    self._derived[cls.base].append(cls)
                if cls.substitutes is not None:
                    self._substitutes[cls.substitutes].append(cls)
                for field in cls.fields:
                    use = Use(f"{label(cls)}.{field.xml.local or field.name}", f"{self._href(cls)}.{field.name}")
                    for entry in dict.fromkeys(part.entry for part in parts(field) if part.entry is not None):
                        self._uses[entry].append(use)


def _files(folder: str, names: list[str]) -> list[str]:
    """A file name for each name. Names that differ only in case or signs get a hash, for disks that ignore case."""
    stems = [name.replace("/", "_")[:_LONGEST] for name in names]
    folded = [stem.casefold() for stem in stems]
    found = []
    taken: set[str] = set()
    for name, stem, key in zip(names, stems, folded, strict=True):
        tail = f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}" if folded.count(key) > 1 or stem != name else ""
        while f"{stem}{tail}".casefold() in taken:  # the same name twice: the order of services is fixed
            tail += "-"
        taken.add(f"{stem}{tail}".casefold())
        found.append(f"{folder}/{stem}{tail}.html")
    return found


def label(entry: Entry) -> str:
    """The XML name of a class: its type or element, or for an anonymous type the path to it."""
    if isinstance(entry, FaultDef):
        return entry.name
    if isinstance(entry, EnumClass):
        return entry.type_name or "/".join(entry.path)
    return "/".join(entry.path) if entry.kind == "anonymous" else entry.xml.local


def _kind(entry: Entry) -> str:
    if isinstance(entry, ClassDef):
        return {"element": "element", "type": "type", "anonymous": "content"}[entry.kind]
    return "enumeration" if isinstance(entry, EnumClass) else "exception"


def parts(field: Field) -> list[Part]:
    """The type of a field in words, with the classes that it names."""
    if field.kind == "any":
        return [Part("any element" if field.namespaces == "##any" else f"any element of {field.namespaces}")]
    if field.kind == "mixed":
        return [Part("text and elements")]
    found = list(_value_parts(field.type))
    members = [Part(label(member), member) for member in field.members]
    return [*found, Part(" or "), *_joined([[member] for member in members], ", ")] if members else found


def _value_parts(value: Value) -> Iterator[Part]:
    if isinstance(value, Builtin):
        yield Part(value.name)
    elif isinstance(value, EnumValue):
        yield Part(label(value.enum), value.enum)
    elif isinstance(value, ObjectValue):
        yield Part(label(value.cls), value.cls)
    elif isinstance(value, ListValue):
        yield Part("list of ")
        yield from _value_parts(value.item)
    elif isinstance(value, UnionValue):
        yield from _joined([list(_value_parts(member)) for member in value.members], " | ")
    elif isinstance(value, FacetValue):
        yield from _value_parts(value.base)
    else:
        yield Part("any XML")


def _joined(groups: Iterable[list[Part]], mark: str) -> Iterator[Part]:
    for number, group in enumerate(groups):
        if number:
            yield Part(mark)
        yield from group


def facets(value: Value) -> list[str]:
    """The facets of a simple type, one per line; patterns in Python's syntax."""
    if isinstance(value, ListValue):
        return facets(value.item)
    if not isinstance(value, FacetValue):
        return []
    names = {"patterns": "pattern", "values": "one of"}
    return [f"{names.get(name, name.replace('_', ' '))}: {', '.join(texts)}" for name, texts in value.facets]


def occurs(field: Field) -> str:
    """How often a field occurs: `1`, `0..1`, `1..*`."""
    most = "*" if field.maximum is None else str(field.maximum)
    return most if str(field.minimum) == most else f"{field.minimum}..{most}"


def content(group: ModelGroup) -> str:
    """A content model on one line, in the syntax of DTDs: `a, (b | c)*`."""
    mark = {"seq": ", ", "choice": " | ", "all": " & "}[group.kind]
    items = []
    for item in group.items:
        text = content(item) if isinstance(item, ModelGroup) else item.field.xml.local or item.field.name
        items.append(text + _repeats(item.minimum, item.maximum) * (not isinstance(item, ModelGroup)))
    return f"({mark.join(items)}){_repeats(group.minimum, group.maximum)}"


def _repeats(minimum: int, maximum: int | None) -> str:
    signs = {(1, 1): "", (0, 1): "?", (0, None): "*", (1, None): "+"}
    most = "" if maximum is None else maximum
    return signs.get((minimum, maximum), f"{{{minimum},{most}}}")
