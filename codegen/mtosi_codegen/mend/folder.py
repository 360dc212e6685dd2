"""The files of a repaired copy: the file for each namespace, and the targets of imports and includes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import quoteattr

from lxml import etree

from mtosi_codegen.load import Document, Sources
from mtosi_codegen.load.documents import Link
from mtosi_codegen.load.locate import schemas_of
from mtosi_codegen.mend.xml import MendedXml, remove
from mtosi_codegen.xsd.model import QName
from mtosi_jms.namespaces import WSDL, XML, XSD

_ALL: Final = "urn:mtosi-codegen:all"
# Declarations of xml:lang and the like, which libxml2 does not know.
_XML_ATTRIBUTES: Final = """\
<xsd:attribute name="lang" type="xsd:string"/><xsd:attribute name="space" type="xsd:NCName"/>
<xsd:attribute name="base" type="xsd:anyURI"/><xsd:attribute name="id" type="xsd:ID"/>
<xsd:attributeGroup name="specialAttrs"><xsd:attribute ref="xml:base"/><xsd:attribute ref="xml:lang"/>
<xsd:attribute ref="xml:space"/><xsd:attribute ref="xml:id"/></xsd:attributeGroup>
"""
_UNDEFINED: Final[Mapping[str, str]] = {
    "element": "<xsd:element name={} type='xsd:anyType'/>",
    "attribute": "<xsd:attribute name={} type='xsd:string'/>",
    "group": "<xsd:group name={}><xsd:sequence/></xsd:group>",
    "attributeGroup": "<xsd:attributeGroup name={}/>",
    "simple": "<xsd:simpleType name={}><xsd:restriction base='xsd:string'/></xsd:simpleType>",
    "base": "<xsd:complexType name={}/>",
    "type": "<xsd:complexType name={} mixed='true'><xsd:sequence><xsd:any minOccurs='0' maxOccurs='unbounded'"
    " processContents='lax'/></xsd:sequence><xsd:anyAttribute processContents='lax'/></xsd:complexType>",
}
# An undefined type may have several uses; the first shape in this order that is used serves most of them.
_SHAPES: Final = tuple(_UNDEFINED)

Component = tuple[str, QName]


@dataclass(slots=True, eq=False)
class Schema:
    """One schema and its copy; a schema without namespace may be included in several namespaces.

    Attributes:
        file: name of the file for the copy.
    """

    document: Document
    element: etree._Element
    xml: MendedXml
    file: str
    namespaces: list[str] = field(default_factory=list)
    includes: list[Schema] = field(default_factory=list)


class Folder:
    """The copies of all sources that are used.

    Attributes:
        wsdl_files: the names of their files.
        heads: for each namespace, the file with all its definitions; filled by `files`.
        driver: name of the schema that imports them all.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._names: set[str] = set()
        self._texts: dict[str, bytes] = {}
        self._undefined: dict[Component, str] = {}
        self.driver = self._name("all.xsd")
        self.heads: dict[str, str] = {}
        documents = [document for document in sources.documents if document.kind == "wsdl"]
        self.wsdls = {document: MendedXml(document.root, document) for document in documents}
        self.wsdl_files = {document: self._name(document.name) for document in documents}
        self._schemas: dict[etree._Element, Schema] = {}
        for unit in sources.units:
            if unit.element not in self._schemas:
                file = self._name(f"{unit.document.name.removesuffix('.xsd')}.xsd")
                xml = MendedXml(unit.element, unit.document)
                self._schemas[unit.element] = Schema(unit.document, unit.element, xml, file)
            self._schemas[unit.element].namespaces.append(unit.namespace)
        self.schemas = tuple(self._schemas.values())
        for schema in self.schemas:
            for link in self._links(schema):
                parts = schemas_of(link.target) if link.kind != "import" and link.target is not None else []
                others = [self._schemas[part] for part in parts if part in self._schemas]
                schema.includes += [other for other in others if set(other.namespaces) & set(schema.namespaces)]

    def _name(self, wanted: str) -> str:
        """A file name that is not in use."""
        stem, dot, suffix = re.sub(r"[^\w.-]", "_", wanted.rpartition("/")[2], flags=re.ASCII).rpartition(".")
        name, number = f"{stem}{dot}{suffix}", 1
        while name.casefold() in self._names:
            number += 1
            name = f"{stem}-{number}{dot}{suffix}"
        self._names.add(name.casefold())
        return name

    def undefined(self, kind: str, name: QName) -> None:
        """Declare a name that is used and never defined.

        Args:
            kind: `element`, `attribute`, `group`, `attributeGroup`, `simple` for a simple type, `base` for a base type
                of complex content, `type` for any other type.
        """
        key = ("type" if kind in {"simple", "base"} else kind, name)
        self._undefined[key] = min(kind, self._undefined.get(key, kind), key=_SHAPES.index)

    def files(self) -> dict[str, bytes]:
        """The bytes of all files by name. Call it after all other repairs."""
        self._set_heads()
        for schema in self.schemas:
            self._link_schema(schema)
            self._texts[schema.file] = schema.xml.data()
        for document, xml in self.wsdls.items():
            self._link_wsdl(document, xml)
            self._texts[self.wsdl_files[document]] = xml.data()
        imports = "".join(_import(namespace, file) for namespace, file in sorted(self.heads.items()))
        self._texts[self.driver] = _schema_text(_ALL, imports)
        return self._texts

    def _links(self, schema: Schema) -> list[Link]:
        return [link for link in schema.document.links if link.schema is schema.element]

    # One file for each namespace

    def _set_heads(self) -> None:
        spaces: dict[str, list[Schema]] = {}
        for schema in self.schemas:
            for namespace in schema.namespaces:
                spaces.setdefault(namespace, []).append(schema)
        files = {namespace: _heads(schemas) for namespace, schemas in spaces.items()}
        texts: dict[str, list[str]] = {}
        for (_, name), shape in sorted(self._undefined.items()):
            texts.setdefault(name.namespace, []).append(_UNDEFINED[shape].format(quoteattr(name.local)))
        if any(XML in schema.xml.used for schema in self.schemas) and XML not in files:
            texts.setdefault(XML, []).insert(0, _XML_ATTRIBUTES)
        for namespace, declarations in texts.items():
            file = self._name("xml.xsd" if namespace == XML else "undefined.xsd")
            self._texts[file] = _schema_text(namespace, "".join(declarations))
            files.setdefault(namespace, []).append(file)
        for namespace, found in sorted(files.items()):
            self.heads[namespace] = found[0]
            if len(found) > 1:
                self.heads[namespace] = self._name(f"all-{re.sub(r'[^a-zA-Z0-9]+', '-', namespace).strip('-')}.xsd")
                includes = "".join(f"<xsd:include schemaLocation={quoteattr(file)}/>" for file in found)
                self._texts[self.heads[namespace]] = _schema_text(namespace, includes)

    # Links

    def _link_schema(self, schema: Schema) -> None:
        """Point imports and includes to the copies, and add missing imports."""
        imported: set[str] = set()
        for link in self._links(schema):
            element = schema.xml.of(link.element)
            if link.kind == "import":
                namespace = _imported(link)
                if namespace in self.heads and namespace not in imported and namespace not in schema.namespaces:
                    imported.add(namespace)
                    self._set_import(element, namespace)
                else:
                    remove(element)
                continue
            found = next((other for other in schema.includes if other.document is link.target), None)
            if found is not None:
                element.set("schemaLocation", found.file)
            else:
                remove(element)
        missing = schema.xml.used - imported - set(schema.namespaces) & set(self.heads)
        for namespace in sorted(missing & set(self.heads), reverse=True):
            element = etree.Element(f"{{{XSD}}}import")
            self._set_import(element, namespace)
            schema.xml.root.insert(0, element)

    def _set_import(self, element: etree._Element, namespace: str) -> None:
        element.attrib.pop("namespace", None)
        if namespace:
            element.set("namespace", namespace)
        element.set("schemaLocation", self.heads[namespace])

    def _link_wsdl(self, document: Document, xml: MendedXml) -> None:
        """Point imports to the copies, and replace inline schemas by imports of their files."""
        imported: set[str] = set()
        for link in document.links:
            if link.schema is not None:
                if link.kind == "import":
                    imported.add(_imported(link))
                continue
            element = xml.of(link.element)
            if link.target is not None and link.target.kind == "wsdl" and link.target in self.wsdl_files:
                element.set("namespace", link.target.namespace)
                element.set("location", self.wsdl_files[link.target])
            else:
                imported |= {link.target.namespace} if link.target is not None else set()
                remove(element)
        for element in schemas_of(document):
            imported.add((element.get("targetNamespace") or "").strip())
            remove(xml.of(element))
        imports = [(namespace, self.heads[namespace]) for namespace in sorted((imported | xml.used) & set(self.heads))]
        if imports:
            types = next(xml.root.iterchildren(f"{{{WSDL}}}types"), None)
            if types is None:
                types = etree.Element(f"{{{WSDL}}}types")
                position = len(list(xml.root.iterchildren(f"{{{WSDL}}}import", f"{{{WSDL}}}documentation")))
                xml.root.insert(position, types)
            schema = "".join(_import(namespace, file) for namespace, file in imports)
            types.append(etree.fromstring(_schema_text(_ALL, schema)))


def _imported(link: Link) -> str:
    """The namespace that an import means."""
    if link.target is not None and link.target.kind == "xsd":
        return link.target.namespace
    return (link.element.get("namespace") or "").strip()


def _heads(schemas: Iterable[Schema]) -> list[str]:
    """The files that together, with their includes, hold all definitions of a namespace."""
    schemas = list(schemas)
    included = [other for schema in schemas for other in schema.includes if other is not schema]
    heads: list[str] = []
    covered: set[Schema] = set()
    for schema in (*(one for one in schemas if one not in included), *schemas):
        if schema not in covered:
            heads.append(schema.file)
            queue = [schema]
            while queue:
                one = queue.pop()
                queue += [other for other in one.includes if other not in covered]
                covered.add(one)
    return heads


def _import(namespace: str, file: str) -> str:
    attribute = f" namespace={quoteattr(namespace)}" if namespace else ""
    return f"<xsd:import{attribute} schemaLocation={quoteattr(file)}/>"


def _schema_text(namespace: str, content: str) -> bytes:
    target = f" targetNamespace={quoteattr(namespace)}" if namespace else ""
    return f'<xsd:schema xmlns:xsd="{XSD}"{target}>{content}</xsd:schema>\n'.encode()
