"""Sends an instance through the stubs: it must decode without a warning and encode to the same, valid document."""

from __future__ import annotations

from lxml import etree

from mtosi_codegen.proof.oracle import Oracle
from mtosi_codegen.proof.tables import Difference
from mtosi_jms.errors import MtosiError
from mtosi_jms.namespaces import XSI, split_clark
from mtosi_jms.xmlbind import XmlObject, XmlWarning, decode, encode

_TYPE = f"{{{XSI}}}type"


def round_trip(document: etree._Element, cls: type[XmlObject], oracle: Oracle, path: str) -> Difference | None:
    """Decode and encode a valid document; return the first difference, None if there is none.

    Args:
        document: valid by libxml2 and xmlschema.
        path: name of the document in reports.
    """
    warnings: list[XmlWarning] = []
    try:
        value = decode(etree.tostring(document), cls, warnings=warnings)
        if warnings:
            return Difference(f"{path} {warnings[0].path}", "valid", f"decodes with a warning: {warnings[0].message}")
        written = etree.fromstring(encode(value))
    except MtosiError as error:
        return Difference(path, "valid", f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - whatever damaged stubs raise is a difference
        return Difference(path, "valid", f"{type(error).__name__}: {error}")
    place = differing(document, written)
    if place is not None:
        return Difference(f"{path} {place[0]}", place[1], place[2])
    problem = oracle.refused(written)
    return Difference(path, "valid", f"encodes to what is not: {problem}") if problem else None


def differing(one: etree._Element, other: etree._Element) -> tuple[str, str, str] | None:
    """The first difference of two documents, besides prefixes: its path and both contents; None if there is none."""
    pairs = [(one, other, f"/{split_clark(str(one.tag))[1]}")]
    while pairs:
        left, right, path = pairs.pop()
        if left.tag != right.tag:
            return path, str(left.tag), str(right.tag)
        if _attributes(left) != _attributes(right):
            return path, f"attributes {_attributes(left)}", f"attributes {_attributes(right)}"
        if (left.text or "") != (right.text or "") or (left.tail or "") != (right.tail or ""):
            return path, f"text {left.text!r}", f"text {right.text!r}"
        children, others = list(left), list(right)
        if len(children) != len(others):
            return path, _names(children), _names(others)
        pairs += [(a, b, f"{path}/{split_clark(str(a.tag))[1]}") for a, b in zip(children, others, strict=True)]
    return None


def _attributes(element: etree._Element) -> dict[str, str]:
    found = {str(name): str(value) for name, value in element.attrib.items()}
    if _TYPE in found:
        prefix, _, local = found[_TYPE].rpartition(":")
        found[_TYPE] = f"{{{element.nsmap.get(prefix or None) or ''}}}{local}"
    return found


def _names(elements: list[etree._Element]) -> str:
    return "children " + " ".join(split_clark(str(element.tag))[1] for element in elements)
