"""Reports namespaces that a file uses and does not import, although another file of the sources declares them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.load.documents import Document
from mtosi_codegen.load.locate import BUILT_IN, schemas_of
from mtosi_jms.namespaces import WSDL, XSD

_REFERENCES: Final = ("type", "base", "ref", "itemType", "memberTypes", "substitutionGroup")
_PART_REFERENCES: Final = ("element", "type")


def report_unimported(
    documents: Iterable[Document], declared: Mapping[str, Mapping[Document, None]], findings: Findings
) -> None:
    """Report each namespace once for a file, where the file first uses it.

    Args:
        declared: the files that declare something in each namespace, the most important first.
    """
    for document in documents:
        known = {*BUILT_IN, *_imported(document)}
        for namespace, line in _used(document):
            if namespace not in known and document not in (files := declared.get(namespace, {document: None})):
                known.add(namespace)
                message = f"namespace {namespace} is used here, and the file does not import it"
                findings.add("import-missing", document.name, line, message, f"{next(iter(files)).name} is used")


def _imported(document: Document) -> set[str]:
    """The namespaces that a file declares or imports.

    A WSDL has those of all files that it reaches: in the releases of TM Forum the header's is imported by schemas only.
    """
    found: set[str] = set()
    met = {document: None}
    for current in (queue := [document]):
        found |= {(schema.get("targetNamespace") or "").strip() for schema in schemas_of(current)}
        for link in current.links:
            found.add((link.element.get("namespace") or "").strip())
            if link.target is not None:
                found.add(link.target.namespace)
                if document.kind == "wsdl" and link.target not in met:
                    met[link.target] = None
                    queue.append(link.target)
    return found


def _used(document: Document) -> Iterator[tuple[str, int]]:
    """The namespaces of the references in a file, and their lines."""
    for schema in schemas_of(document):
        for element in schema.iter(f"{{{XSD}}}*"):
            yield from _namespaces(element, _REFERENCES)
    for part in document.root.iterfind(f"{{{WSDL}}}message/{{{WSDL}}}part"):
        yield from _namespaces(part, _PART_REFERENCES)


def _namespaces(element: etree._Element, attributes: Iterable[str]) -> Iterator[tuple[str, int]]:
    for attribute in attributes:
        for name in (element.get(attribute) or "").split():
            namespace = element.nsmap.get(name.rpartition(":")[0] or None)
            if namespace is not None:
                yield namespace, element.sourceline or 0
