"""The types of the SOAP encoding, which no schema needs to define. Its simple types are those of XML Schema; a type
that restricts its Array becomes one list of items.
"""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.qnames import QNameReader
from mtosi_codegen.xsd.model import (
    ONCE,
    Attribute,
    AttributeGroupUse,
    ComplexType,
    Compositor,
    ElementUse,
    Occurs,
    Place,
    QName,
)
from mtosi_jms.namespaces import WSDL, XSD

ENCODINGS: Final = frozenset({"http://schemas.xmlsoap.org/soap/encoding/", "http://www.w3.org/2003/05/soap-encoding"})
"""The namespaces of the SOAP encoding, 1.1 and 1.2."""
_ITEM: Final = "item"
_ONE_DIMENSION: Final = re.compile(r"([^\[\]]+)\[\s*+(?:\d+\s*)?\]")


def is_array(name: QName | None) -> bool:
    """Whether a name is that of the array type."""
    return name is not None and name.namespace in ENCODINGS and name.local == "Array"


def in_schema(name: QName) -> QName:
    """The type of XML Schema that corresponds to a simple type of the encoding."""
    return QName(XSD, {"base64": "base64Binary"}.get(name.local, name.local))


def fill_array(found: ComplexType, body: etree._Element, names: QNameReader, findings: Findings) -> None:
    """Fill a type that derives from soapenc:Array with its items, as its content or its arrayType defines them.

    Args:
        found: the type as it was read; it is changed.
        body: its restriction or extension.
        names: reads the qualified names of its file.
    """
    found.derivation, found.base = "", None
    found.attributes = tuple(
        attribute
        for attribute in found.attributes
        if not isinstance(attribute, (Attribute, AttributeGroupUse)) or attribute.name.namespace not in ENCODINGS
    )
    if found.content is None or (isinstance(found.content, Compositor) and not found.content.items):
        item = ElementUse(
            QName("", _ITEM), found.place, Occurs(0, None), _item_type(found.place, body, names, findings)
        )
        found.content = Compositor("sequence", ONCE, (item,))


def _item_type(place: Place, body: etree._Element, names: QNameReader, findings: Findings) -> QName | None:
    """The type in wsdl:arrayType; None, for any type, if there is none or the array has several dimensions."""
    for attribute in body.iterchildren("*"):
        text = (attribute.get(f"{{{WSDL}}}arrayType") or "").strip()
        match = _ONE_DIMENSION.fullmatch(text)
        if match is not None:
            return names.resolve(match[1], attribute)
        if text:
            findings.add("xsd-unsupported", *place, f"an array {text!r} of several dimensions", "its items stay XML")
    return None
