"""What becomes of every sample: read, mapped, written anew and compared.

Usage: roundtrip_process.py SAMPLES [FOLDER PACKAGE], where the generated PACKAGE is in FOLDER. Prints a JSON object:
file to facts. A process of its own, because a second package that knows the same elements comes before the stubs.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from lxml import etree

from mtosi_jms import soap, xmlbind
from mtosi_jms.binding.mapping import map_header
from mtosi_jms.errors import EnvelopeError, MtosiError
from mtosi_jms.namespaces import XSI


def canonical(root: etree._Element) -> str:
    """Prefixes and blanks around text do not count; attributes do, and xsi:type by what its prefix means."""
    text = etree.tostring(root, encoding="unicode")
    return ET.canonicalize(text, strip_text=True, rewrite_prefixes=True, qname_aware_attrs={f"{{{XSI}}}type"})


def at(root: etree._Element, path: str) -> etree._Element | None:
    """The element that a warning's path names: local names, with a position where there are equal siblings."""
    element: etree._Element | None = root
    for step in path.strip("/").split("/")[1:]:
        name, _, position = step.rstrip("]").partition("[")
        same = [child for child in element if etree.QName(child).localname == name] if element is not None else []
        element = next(iter(same[int(position or 1) - 1 :]), None)
    return element


def sorted_where_told(data: bytes, told: list[xmlbind.XmlWarning]) -> str:
    """The canonical form with the siblings of each element that a warning calls misplaced in a fixed order."""
    root = xmlbind.parse_xml(data)
    misplaced = [warning for warning in told if warning.rule == "order"]
    for parent in {_parent(root, warning) for warning in misplaced}:
        parent[:] = sorted(parent, key=lambda child: str(child.tag))  # those of one name stay as they are
    return canonical(root)


def _parent(root: etree._Element, warning: xmlbind.XmlWarning) -> etree._Element:
    """The element whose children a warning calls misplaced: all of them, or the one that it names."""
    element = at(root, warning.path)
    parent = element if warning.message.startswith("the elements") or element is None else element.getparent()
    assert parent is not None, warning
    return parent


def leaves(root: etree._Element) -> list[str]:
    """All text of elements without children, by name; blanks count where there is more than blanks."""
    texts = ((element.tag, element.text or "") for element in root.iter() if not len(element))
    return sorted(f"{tag}={text if text.strip() else ''}" for tag, text in texts)


def compare(before: bytes, after: bytes, told: list[xmlbind.XmlWarning]) -> dict[str, Any]:
    first, second = xmlbind.parse_xml(before), xmlbind.parse_xml(after)
    return {
        "equal": canonical(first) == canonical(second),
        "equal_but_order": sorted_where_told(before, told) == sorted_where_told(after, told),
        "leaves_equal": leaves(first) == leaves(second),
        "rules": sorted({warning.rule for warning in told}),
        "stated": all(warning.message and warning.path and warning.line for warning in told),
    }


def as_envelope(data: bytes, package: str | None) -> dict[str, Any]:
    envelope = soap.parse(data, package=package)
    untouched = envelope.to_bytes() == data
    mapped: dict[str, str] = {}
    if envelope.header is not None:
        mapping = map_header(envelope.header, body=envelope.body)
        mapped = {name: type(value).__name__ for name, value in mapping.properties.items()}
        mapped["warnings"] = ",".join(sorted({warning.rule for warning in mapping.warnings}))
    written = envelope.encode()
    again = soap.parse(written, package=package)
    return {
        "kind": "envelope",
        "untouched": untouched,
        "mapped": mapped,
        "body": type(envelope.body).__module__,
        "fault": type(envelope.fault).__name__ if envelope.fault is not None else "",
        "rules_again": sorted({warning.rule for warning in again.warnings}),
        "stable": again.encode() == written,
        **compare(data, written, envelope.warnings),
    }


def as_document(data: bytes) -> dict[str, Any]:
    told: list[xmlbind.XmlWarning] = []
    value = xmlbind.decode(data, warnings=told)
    written = xmlbind.encode(value)
    told_again: list[xmlbind.XmlWarning] = []
    again = xmlbind.encode(xmlbind.decode(written, warnings=told_again))
    return {
        "kind": "document",
        "body": type(value).__module__,
        "rules_again": sorted({warning.rule for warning in told_again}),
        "stable": again == written,
        **compare(data, written, told),
    }


def facts(path: Path, package: str | None) -> dict[str, Any]:
    data = path.read_bytes()
    try:
        try:
            return as_envelope(data, package)
        except EnvelopeError:
            return as_document(data)
    except MtosiError as error:
        return {"kind": type(error).__name__, "message": str(error)}


def main() -> None:
    samples, package = Path(sys.argv[1]), None
    if len(sys.argv) > 2:
        sys.path.insert(0, sys.argv[2])
        package = sys.argv[3]
        importlib.import_module(package)
    found = {str(path.relative_to(samples)): facts(path, package) for path in sorted(samples.rglob("*.xml"))}
    print(json.dumps(found))


main()
