"""One XSD file as read: its namespace, what it declares, what it refers to, and the repairs it needs.

Repairs are made in memory and each is noted; the file is never touched. Released schemas carry blanks around names
(`name="meRef "`), which libxml2 takes as part of the name, so that no element ever matches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import read_file
from mtosi_jms.errors import SchemaError, XmlError
from mtosi_jms.namespaces import XSD
from mtosi_jms.validation._locate import resolve_location
from mtosi_jms.xmlbind import parse_xml

_NAMES: Final = ("name", "ref", "type", "base", "itemType", "refer", "substitutionGroup")
_LINKS: Final = {f"{{{XSD}}}{kind}": kind for kind in ("import", "include", "redefine")}
_ELEMENT: Final = f"{{{XSD}}}element"
# Simple and complex types share one symbol space.
_SYMBOLS: Final = {
    f"{{{XSD}}}{tag}": kind
    for tag, kind in (
        ("element", "element"),
        ("attribute", "attribute"),
        ("complexType", "type"),
        ("simpleType", "type"),
        ("group", "group"),
        ("attributeGroup", "attributeGroup"),
        ("notation", "notation"),
    )
}


@dataclass(frozen=True, slots=True)
class SchemaNote:
    """One thing about a schema that was repaired, or that keeps it from being used.

    Attributes:
        rule: `blank-name`, `schema-location`, `import-namespace`, `rival`, `unreadable` or `left-out`.
    """

    rule: str
    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


@dataclass(slots=True)
class SchemaLink:
    """One xsd:import, xsd:include or xsd:redefine.

    Attributes:
        location: the schemaLocation attribute unchanged, None where absent.
        target: the file that the location means, or None.
        exact: whether the location names that file exactly.
    """

    kind: str
    index: int
    line: int | None
    namespace: str
    location: str | None
    target: Path | None
    exact: bool


@dataclass(slots=True)
class SchemaFile:
    """One schema, repaired in memory; its symbols are kind and name of its global components."""

    path: Path
    namespace: str
    root: etree._Element
    links: list[SchemaLink]
    symbols: frozenset[tuple[str, str]]
    elements: frozenset[str]
    notes: list[SchemaNote] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The address under which libxml2 is given this schema; never one that it could open by itself."""
        return f"mtosi-schema:/{self.path.as_posix().encode().hex()}.xsd"


def read_schema(path: Path) -> SchemaFile:
    """Read one XSD file and repair the blanks around its names. Raises SchemaError: it cannot be read, is not
    well-formed, has a DTD with entities, or is not a schema; with the line."""
    try:
        root = parse_xml(read_file(path, BOUNDS.source_bytes), schema=True)
    except OSError as error:
        raise SchemaError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except XmlError as error:
        raise SchemaError(error.message, file=str(path), line=error.line) from error
    if root.tag != f"{{{XSD}}}schema":
        raise SchemaError(f"the root is {root.tag}, not xsd:schema", file=str(path), line=root.sourceline)
    notes = [note for element in root.iter(f"{{{XSD}}}*") for note in _repair_names(element, path)]
    namespace = _stripped(root, "targetNamespace")
    links = [_link(index, child, path) for index, child in enumerate(root) if child.tag in _LINKS]
    symbols = frozenset((_SYMBOLS[str(child.tag)], str(child.get("name"))) for child in root if child.tag in _SYMBOLS)
    elements = frozenset(name for kind, name in symbols if kind == "element")
    return SchemaFile(path, namespace, root, links, symbols, elements, notes)


def _repair_names(element: etree._Element, path: Path) -> list[SchemaNote]:
    notes: list[SchemaNote] = []
    for attribute in _NAMES:
        value = element.get(attribute)
        if value is None or value == (plain := value.strip()):
            continue
        element.set(attribute, plain)
        message = f"{attribute}={value!r} has blanks around it; read as {plain!r}"
        notes.append(SchemaNote("blank-name", str(path), element.sourceline, message))
    return notes


def _stripped(element: etree._Element, attribute: str) -> str:
    value: str | None = element.get(attribute)
    if value is None:
        return ""
    plain = value.strip()
    element.set(attribute, plain)
    return plain


def _link(index: int, element: etree._Element, path: Path) -> SchemaLink:
    location = element.get("schemaLocation")
    target, exact = (None, False) if location is None else resolve_location(path.parent, location)
    namespace = _stripped(element, "namespace")
    return SchemaLink(_LINKS[str(element.tag)], index, element.sourceline, namespace, location, target, exact)
