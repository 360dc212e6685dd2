"""Repairs schemas: drops blanks around names, declares undefined references, keeps each definition once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from lxml import etree

from mtosi_codegen.mend.folder import Component, Folder, Schema
from mtosi_codegen.mend.xml import remove
from mtosi_codegen.xsd.model import QName
from mtosi_codegen.xsd.read import local_of
from mtosi_jms.namespaces import XML, XSD

_NOWHERE: Final = "urn:mtosi-codegen:undefined"
_COUNT: Final = re.compile(r"\s*\+?[0-9]{1,9}\s*|\s*unbounded\s*")
_KINDS: Final[Mapping[str, str]] = {
    "element": "element", "complexType": "type", "simpleType": "type", "group": "group",
    "attributeGroup": "attributeGroup", "attribute": "attribute",
}  # fmt: skip
_REFERENCES: Final[Mapping[str, str]] = {
    "type": "type", "base": "type", "itemType": "type", "memberTypes": "type", "substitutionGroup": "element",
    "refer": "",
}  # fmt: skip


def mend_schemas(folder: Folder) -> None:
    """Repair all schemas of a folder, except their imports and includes."""
    owners: dict[Component, etree._Element] = {}
    for unit in folder.sources.units:
        for child in unit.element:
            if (kind := _KINDS.get(local_of(child))) is not None:
                owners.setdefault((kind, _name(child, unit.namespace)), child)
    for schema in folder.schemas:
        _Mender(folder, schema, owners).run()


def _name(definition: etree._Element, namespace: str) -> QName:
    return QName(namespace, (definition.get("name") or "").strip())


class _Mender:
    def __init__(self, folder: Folder, schema: Schema, owners: Mapping[Component, etree._Element]) -> None:
        self._folder = folder
        self._schema = schema
        self._owners = owners

    def run(self) -> None:
        """Repair one schema."""
        for child in self._rivals():
            remove(self._schema.xml.of(child))
        for element in list(self._schema.xml.root.iter("*")):
            if local := local_of(element):
                self._mend(element, local)

    def _rivals(self) -> Iterator[etree._Element]:
        """The definitions to drop: those without a name, and those whose name was defined before."""
        for child in self._schema.element:
            if (kind := _KINDS.get(local_of(child))) is not None:
                names = [_name(child, namespace) for namespace in self._schema.namespaces]
                if not names[0].local or not any(self._owners[kind, name] is child for name in names):
                    yield child

    def _mend(self, element: etree._Element, local: str) -> None:
        for attribute in ("name", "targetNamespace"):
            if (text := element.get(attribute)) is not None and text != text.strip():
                element.set(attribute, text.strip())
        for attribute in ("minOccurs", "maxOccurs"):
            if not _COUNT.fullmatch(element.get(attribute) or "1"):
                del element.attrib[attribute]
        for attribute, kind in (*_REFERENCES.items(), ("ref", local)):
            if element.get(attribute) is not None:
                names = self._schema.xml.qnames(element, attribute)
                if kind:
                    names = [self._defined(element, kind, name) for name in names]
                self._schema.xml.set_qnames(element, attribute, names)

    def _defined(self, element: etree._Element, kind: str, name: QName) -> QName:
        """The name itself, which is declared if undefined, or a name that is declared in its place."""
        spaces = [name.namespace] if name.namespace else ["", *self._schema.namespaces]
        if name.namespace in {XSD, XML} or any((kind, QName(space, name.local)) in self._owners for space in spaces):
            return name
        if not name.namespace and kind not in {"element", "attribute"}:
            name = QName(_NOWHERE, name.local)
        self._folder.undefined(_use(element) if kind == "type" else kind, name)
        return name


def _use(element: etree._Element) -> str:
    """The kind of type that a reference needs, as in `Folder.undefined`."""
    parent = element.getparent()
    if local_of(element) in {"attribute", "list", "union"} or parent is None:
        return "simple"
    if local_of(element) == "element":
        return "type"
    return "base" if local_of(parent) == "complexContent" else "simple"
