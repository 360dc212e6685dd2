"""Keeps one definition for each name: of two different definitions the first is used.

"First" is the order of the sources: files that a WSDL reaches come before others, then files are in order of name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Final

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import Document, SchemaUnit
from mtosi_codegen.xsd.model import Component, QName, SchemaSet
from mtosi_codegen.xsd.read import SchemaReader, documentation
from mtosi_codegen.xsd.redefine import Replacement, replace

_IGNORED: Final = {"place", "doc", "scope"}


def collect(units: Iterable[SchemaUnit], findings: Findings) -> SchemaSet:
    """All global components of the units, each name once."""
    schema = SchemaSet()
    replacements: dict[Document, list[Replacement]] = {}
    for unit in units:
        schema.prefixes.setdefault(unit.namespace, _prefix(unit))
        schema.docs.setdefault(unit.namespace, documentation(unit.element))
        document = unit.document
        reader = SchemaReader(unit.element, unit.namespace, document.name, findings, document.aliases)
        for component in reader.components():
            _add(schema, component, findings)
        replacements.setdefault(document, []).extend(reader.replacements())
    ordered = [found for document in _innermost_first(replacements) for found in replacements[document]]
    replace(schema, ordered, findings)
    return schema


def _innermost_first(documents: Iterable[Document]) -> list[Document]:
    """The documents, each after those that it includes, redefines or overrides."""
    done: dict[Document, None] = {}
    met: set[Document] = set()

    def visit(document: Document) -> None:
        if document not in met:
            met.add(document)
            for link in document.links:
                if link.kind != "import" and link.target is not None:
                    visit(link.target)
            done[document] = None

    known = list(documents)
    for document in known:
        visit(document)
    return [document for document in done if document in known]


def _prefix(unit: SchemaUnit) -> str:
    """The prefix that a schema gives its own namespace; empty if that is `tns` or there is none."""
    own = sorted(prefix for prefix, uri in unit.element.nsmap.items() if prefix and uri == unit.namespace)
    named = [prefix for prefix in own if prefix.lower() not in {"tns", "this", "target", "ns"}]
    return named[0] if named else ""


def _add(schema: SchemaSet, component: Component, findings: Findings) -> None:
    table = schema.table(component)
    if component.name is None:
        return
    known = table.setdefault(component.name, component)
    if known is not component and not _same(known, component):
        message = f"{component.name} is defined again, and differently, after {known.place.file}:{known.place.line}"
        repair = f"the definition in {known.place.file} counts"
        findings.add("definition-conflict", component.place.file, component.place.line, message, repair)


def _same(known: Component, component: Component) -> bool:
    """Whether two definitions mean the same; False if they are nested too deep to compare."""
    try:
        return bool(fingerprint(known) == fingerprint(component))
    except RecursionError:
        return False


def fingerprint(component: Any) -> Any:
    """A value that is equal for components that mean the same, wherever they stand."""
    if is_dataclass(component) and not isinstance(component, type):
        values = ((field.name, getattr(component, field.name)) for field in fields(component))
        content = tuple((name, fingerprint(value)) for name, value in values if name not in _IGNORED)
        return type(component).__name__, content
    if isinstance(component, QName):
        return component
    if isinstance(component, (tuple, list)):
        return tuple(fingerprint(item) for item in component)
    if isinstance(component, dict):
        return tuple(sorted((key, fingerprint(value)) for key, value in component.items()))
    return component
