"""Every global element of the releases: the least and the most that its class can say is valid, and reads back equal.

The judge is libxml2 with the release's schemas, repaired by exactly what the generator reports: blanks around names,
locations that lead elsewhere.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lxml import etree

from mtosi_codegen import Result, generate
from mtosi_codegen.findings import Findings
from mtosi_codegen.load import load
from mtosi_jms import xmlbind
from mtosi_jms.namespaces import XSD
from mtosi_jms.xmlbind import RAW, EnumType, ListType, UnionType, XmlObject

HAS_NATIVE = importlib.util.find_spec("mtosi_jms.xmlbind._core") is not None
DEPTH = 4
TEXTS = ("text", "7", "true", "2024-01-02T03:04:05Z", "2024-01-02", "01:02:03", "P1D", "2024", "ab", "1", "0")


def _repaired_schema(release: Path, folder: Path) -> etree.XMLSchema:
    """All schemas of a release that count, as one."""
    units = [unit for unit in load([release], Findings()).units if unit.document.kind == "xsd"]
    names = {unit.document: f"s{number}.xsd" for number, unit in enumerate(units)}
    driver = etree.Element(f"{{{XSD}}}schema", nsmap={"x": XSD})
    for unit in units:
        text = etree.tostring(unit.document.root)
        root = etree.fromstring(text)
        for element in root.iter(etree.Element):
            if element.get("name"):
                element.set("name", element.get("name").strip())
        imports = root.iterchildren(f"{{{XSD}}}import")
        for element, link in zip(imports, unit.document.links, strict=True):
            assert link.target is not None
            element.set("schemaLocation", names[link.target])
        (folder / names[unit.document]).write_bytes(etree.tostring(root))
        etree.SubElement(
            driver, f"{{{XSD}}}import", namespace=unit.namespace, schemaLocation=str(folder / names[unit.document])
        )
    return etree.XMLSchema(driver)


class Builder:
    """Builds instances of generated classes: `least` holds what is required, `most` one of everything."""

    def __init__(self, modules: list[ModuleType]) -> None:
        self._derived: dict[type, list[type]] = {}
        classes = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
        for cls in sorted((cls for cls in classes if issubclass(cls, XmlObject)), key=lambda cls: cls.__qualname__):
            table = getattr(cls, "__xml__", None)
            if table is not None and table.type_name and not table.abstract:
                for base in cls.__mro__[1:]:
                    self._derived.setdefault(base, []).append(cls)

    def build(self, cls: type[XmlObject], most: bool, depth: int = DEPTH, pick: int = 0) -> Any:
        """One instance; `pick` says which alternative of choices to take."""
        table = cls.__xml__
        counts = self._counts(table.model, most, pick) if table.model is not None else None
        given: dict[str, Any] = {}
        for field in table.fields:
            count = max(1, field.min) if most else field.min
            if counts is not None and field.kind in ("element", "any"):
                count = counts.get(field.name, 0)
            if field.kind == "mixed":
                continue
            made = [self._value(field, most, depth) for _ in range(count)]
            if made or (field.min and not field.many):
                given[field.name] = made if field.many else made[0] if made else None
        return cls(**given)

    def _counts(self, group: Any, most: bool, pick: int) -> dict[str, int]:
        kind, low, _, items = group
        found: dict[str, int] = {}
        if not most and not low:
            return found
        for item in [items[pick % len(items)]] if kind == "choice" and items else items:
            if isinstance(item, tuple) and len(item) == 4:
                inner = self._counts(item, most, pick)
            else:
                name, least, _ = (item, 1, 1) if isinstance(item, str) else item
                inner = {name: max(1, least) if most else least}
            for name, count in inner.items():
                found[name] = found.get(name, 0) + count
        return found

    def _value(self, field: Any, most: bool, depth: int) -> Any:
        if field.kind == "any":
            space = field.ns if field.ns and not field.ns.startswith("#") else "urn:vendor"
            return xmlbind.RawXml(f'<v:extra xmlns:v="{space.split()[0]}"/>'.encode())
        if field.type is RAW:
            return xmlbind.RawXml(f'<{field.local} xmlns="{field.namespace}"/>'.encode())
        simple = field.simple()
        if simple is not None:
            return self._simple(simple)
        table = field.table()
        if field.head and field.member_tables():
            table = field.member_tables()[0]
        cls = table.cls
        if table.abstract:
            cls = next(derived for base in (cls, *cls.__mro__[1:]) for derived in self._derived.get(base, ()))
        return self.build(cls, most and depth > 0, depth - 1)

    def _simple(self, kind: Any) -> Any:
        if isinstance(kind, EnumType):
            return next(iter(kind.cls))
        if isinstance(kind, UnionType):
            return self._simple(kind.members[-1])
        if isinstance(kind, ListType):
            return [self._simple(kind.item)]
        return next(kind.lenient(text)[0] for text in TEXTS if self._takes(kind, text))

    def _takes(self, kind: Any, text: str) -> bool:
        try:
            return kind.lenient(text)[1] is None
        except ValueError:
            return False


def _alternatives(group: Any) -> int:
    kind, _, _, items = group
    inner = [_alternatives(item) for item in items if isinstance(item, tuple) and len(item) == 4]
    return max([len(items) if kind == "choice" else 1, *inner])


def _elements(modules: list[ModuleType]) -> Iterator[type[XmlObject]]:
    for module in modules:
        for name in getattr(module, "__elements__", {}).values():
            cls = getattr(module, name)
            if not cls.__xml__.abstract:
                yield cls


@pytest.mark.endurance
@pytest.mark.parametrize(
    ("release", "elements"),
    [pytest.param("2.0", 800, marks=pytest.mark.endurance), ("4.0", 950)],
)
def test_instances_are_valid_and_read_back_equal(
    shared: Path, release: str, elements: int, tmp_path: Path, package: Callable[[Result], str], cores: ModuleType
) -> None:
    schema = _repaired_schema(shared / "mtosi" / release, tmp_path)
    result = generate([shared / "mtosi" / release])
    name = package(result)
    paths = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in result.files]
    modules = [importlib.import_module(f"{name}.{path}") for path in paths if path != "__init__"]
    builder = Builder(modules)
    problems: list[str] = []
    count = 0
    for cls in _elements(modules):
        count += 1
        model = cls.__xml__.model
        for pick in range(_alternatives(model) if model is not None else 1):
            for most in (False, True):
                instance = builder.build(cls, most, pick=pick)
                problem = _problem(instance, schema, cores)
                if problem:
                    problems.append(f"{cls.__module__}.{cls.__name__} {'most' if most else 'least'} {pick}: {problem}")
    assert problems == []
    assert count > elements


def _problem(obj: XmlObject, schema: etree.XMLSchema, cores: ModuleType) -> str:
    """What is wrong with an instance, empty if nothing."""
    data = xmlbind.encode(obj)
    if not schema.validate(etree.fromstring(data)):
        # A strict wildcard takes no element that no schema knows: that is the test's fault, not the class's.
        text = str(schema.error_log.filter_from_errors()[0])
        return "" if "demanded by the strict wildcard" in text or "urn:vendor" in text else text
    warnings: list[xmlbind.XmlWarning] = []
    same = xmlbind.decode(data, type(obj), warnings=warnings) == obj
    if not same or warnings:
        return f"reads back different: {warnings[:1]}"
    return str(cores.difference(data, type(obj))) if HAS_NATIVE else ""
