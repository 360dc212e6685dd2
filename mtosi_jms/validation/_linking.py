"""From chosen files to one libxml2 schema: links rewritten, a driver over all namespaces, everything in memory.

The namespace decides, not the location: libxml2 skips a second import of a namespace with another schemaLocation
without a word, so that the first of two rivals would win by accident. Here every import keeps its namespace and loses
its location, and the driver imports the chosen file of each namespace. Includes point to exactly the file they mean.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from lxml import etree

from mtosi_jms.namespaces import XML, XSD
from mtosi_jms.validation._choice import Choice
from mtosi_jms.validation._schemafile import SchemaFile, SchemaLink, SchemaNote
from mtosi_jms.xmlbind import make_parser

_DRIVER: Final = "urn:mtosi-jms:driver"
_XML_KEY: Final = "mtosi-schema:/xml"
# libxml2 has no declarations of its own for xml:lang and its kin.
_XML_ATTRIBUTES: Final = f"""<xs:schema xmlns:xs="{XSD}" targetNamespace="{XML}">
<xs:attribute name="lang" type="xs:string"/><xs:attribute name="base" type="xs:anyURI"/>
<xs:attribute name="id" type="xs:ID"/><xs:attribute name="space" type="xs:NCName"/>
<xs:attributeGroup name="specialAttrs"><xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/>
<xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/></xs:attributeGroup></xs:schema>""".encode()


class _Memory(etree.Resolver):  # type: ignore[misc]  # lxml has no types
    """Answers libxml2's requests from memory; an address that is not ours gets an empty document, never a file."""

    def __init__(self, documents: Mapping[str, bytes]) -> None:
        self._documents = documents

    def resolve(self, system_url: str, public_id: str, context: object) -> object:
        return self.resolve_string(self._documents.get(system_url, b""), context, base_url=system_url)


def compile_schema(chosen: Choice, usable: Mapping[Path, SchemaFile]) -> etree.XMLSchema:
    """One schema over all chosen files and what they include. Raises lxml.etree.XMLSchemaParseError: libxml2 refuses
    it; `refusals` returns the reasons with their files."""
    driver, documents = linked_documents(chosen, usable)
    parser = make_parser()
    parser.resolvers.add(_Memory(documents))
    return etree.XMLSchema(etree.fromstring(driver, parser))


def linked_documents(chosen: Choice, usable: Mapping[Path, SchemaFile]) -> tuple[bytes, dict[str, bytes]]:
    """A schema that imports every namespace, and what its imports and includes lead to, by location."""
    documents = {file.key: etree.tostring(linked(file, usable, chosen)) for file in usable.values()}
    documents[_XML_KEY] = _XML_ATTRIBUTES
    imports = [] if XML in chosen else [_import(XML, _XML_KEY)]
    for number, namespace in enumerate(sorted(chosen)):
        key = chosen[namespace][0].key
        if len(chosen[namespace]) > 1:
            key = f"mtosi-schema:/parts/{number}"
            documents[key] = _together(namespace, chosen[namespace])
        imports.append(_import(namespace, key))
    driver = f'<xs:schema xmlns:xs="{XSD}" targetNamespace="{_DRIVER}">{"".join(imports)}</xs:schema>'
    return driver.encode(), documents


def _import(namespace: str, key: str) -> str:
    attribute = f" namespace={quoteattr(namespace)}" if namespace else ""
    return f"<xs:import{attribute} schemaLocation={quoteattr(key)}/>"


def _together(namespace: str, files: list[SchemaFile]) -> bytes:
    includes = "".join(f"<xs:include schemaLocation={quoteattr(file.key)}/>" for file in files)
    target = f" targetNamespace={quoteattr(namespace)}" if namespace else ""
    return f'<xs:schema xmlns:xs="{XSD}"{target}>{includes}</xs:schema>'.encode()


def linked(file: SchemaFile, usable: Mapping[Path, SchemaFile], chosen: Choice) -> etree._Element:
    """A copy of a schema whose links are as libxml2 needs them.

    Links that lead nowhere become empty annotations, so that the elements of the copy stay one to one with the file's.
    """
    root = copy.deepcopy(file.root)
    for link in file.links:
        element = root[link.index]
        target = usable.get(link.target) if link.target is not None else None
        if link.kind != "import":
            if target is None:
                _disable(element)
            else:
                element.set("schemaLocation", target.key)
            continue
        namespace = _imported_namespace(file, link, target, chosen)
        if namespace == file.namespace:
            _disable(element)
            continue
        element.attrib.pop("schemaLocation", None)
        if namespace:
            element.set("namespace", namespace)
    return root


def _disable(element: etree._Element) -> None:
    tail = element.tail
    element.clear()
    element.tag = f"{{{XSD}}}annotation"
    element.tail = tail


def _imported_namespace(file: SchemaFile, link: SchemaLink, target: SchemaFile | None, chosen: Choice) -> str:
    """The namespace that an import means, where its attribute and the file it names differ.

    The attribute stands unless nothing serves it, or the schema binds a prefix only to what the file has.
    """
    if target is None or target.namespace == link.namespace:
        return link.namespace
    bound = set(file.root.nsmap.values())
    if link.namespace not in chosen or (target.namespace in bound and link.namespace not in bound):
        return target.namespace
    return link.namespace


def link_notes(file: SchemaFile, files: Mapping[Path, SchemaFile], chosen: Choice) -> Iterator[SchemaNote]:
    """What was wrong with the imports and includes of a schema, and what was taken instead."""
    for link in file.links:
        target = files.get(link.target) if link.target is not None else None
        rule, message = "schema-location", None
        if link.location is not None and target is None:
            message = f"schemaLocation={link.location!r} names no schema file; {_instead(link, chosen)}"
        elif target is not None and not link.exact:
            message = (
                f"schemaLocation={link.location!r} is written differently from the file {target.path}; read as that"
            )
        elif link.kind == "import" and target is not None and target.namespace != link.namespace:
            rule = "import-namespace"
            used = _imported_namespace(file, link, target, chosen)
            message = f"imports {link.namespace!r}, but {target.path} is of {target.namespace!r}; read as {used!r}"
        if message is not None:
            yield SchemaNote(rule, str(file.path), link.line, message)


def _instead(link: SchemaLink, chosen: Choice) -> str:
    if link.kind != "import":
        return "ignored"
    if link.namespace in chosen:
        return f"namespace {link.namespace} is taken from {chosen[link.namespace][0].path}"
    return f"and no schema of the folder has namespace {link.namespace!r}"


def refusals(
    error: etree.XMLSchemaParseError, usable: Mapping[Path, SchemaFile], chosen: Choice
) -> dict[Path, tuple[int | None, str]]:
    """The files that libxml2 refused, each with its line in the file on disk and the first reason."""
    by_key = {file.key: file for file in usable.values()}
    found: dict[Path, tuple[int | None, str]] = {}
    for entry in error.error_log:
        file = by_key.get(entry.filename)
        if file is None or entry.level < etree.ErrorLevels.ERROR or file.path in found:
            continue
        found[file.path] = (_original_line(file, linked(file, usable, chosen), entry.line), entry.message.strip())
    return found


def _original_line(file: SchemaFile, copied: etree._Element, line: int) -> int | None:
    """The line on disk of the element that stands on `line` of the copy that libxml2 read."""
    read = etree.fromstring(etree.tostring(copied), make_parser())
    for seen, original in zip(read.iter(), copied.iter(), strict=False):
        if seen.sourceline is not None and seen.sourceline >= line:
            line_on_disk: int | None = original.sourceline
            return line_on_disk
    return None
