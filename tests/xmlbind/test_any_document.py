"""Made-up documents over the generated classes: whatever stands where, nothing is lost and nothing falls over."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.xmlbind import Issues
from mtosi_jms.xmlbind._reader import Reader

from .conftest import canonical

OURS, OTHER, VENDOR = "urn:test:constructs", "urn:test:other", "urn:vendor"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
ROOTS = ("leaves", "route", "log", "plan", "settings", "holder", "drawing", "history", "store", "tagged", "price",
         "foreign", "listed", "team", "tree", "facets", "paragraph", "caption", "circle", "names")  # fmt: skip
NAMES = (
    "string", "flag", "int", "colour", "numbers", "levels", "many", "qname", "road", "rail", "port", "ship", "note",
    "count", "start", "end", "remark", "from", "to", "width", "height", "title", "content", "last", "part", "circle",
    "event", "started", "stopped", "at", "why", "box", "label", "strict", "plain", "inside", "text", "first", "lead",
    "member", "guest", "name", "node", "radius", "hole", "new", "moment", "span",
)  # fmt: skip
TEXTS = ("", "", "", "1", "true", "red", "low high", "1 2", "x", " ", " 1 ", "2026-01-01T00:00:00Z", "<&>", "é")
TYPES = ("c:CircleType", "c:RingType", "c:StoppedType", "c:CrashedType", "c:Nope", "zz:T", "xsd:string")
quick = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@st.composite
def _documents(draw: st.DrawFn) -> bytes:
    nsmap = {"c": OURS, "o": OTHER, "v": VENDOR, "xsi": XSI, "xsd": "http://www.w3.org/2001/XMLSchema"}
    root = etree.Element(f"{{{OURS}}}{draw(st.sampled_from(ROOTS))}", nsmap=nsmap)

    def fill(element: Any, depth: int) -> None:
        element.text = draw(st.sampled_from(TEXTS))
        if draw(st.integers(0, 7)) == 0:
            element.set(f"{{{XSI}}}nil", draw(st.sampled_from(["true", "1", "false", "maybe"])))
        if draw(st.integers(0, 7)) == 0:
            element.set(f"{{{XSI}}}type", draw(st.sampled_from(TYPES)))
        for name in draw(st.lists(st.sampled_from(["id", "unit", "number", "new", f"{{{OTHER}}}mark"]), max_size=2)):
            element.set(name, draw(st.sampled_from(TEXTS)))
        if depth:
            for _ in range(draw(st.integers(0, 4))):
                space = draw(st.sampled_from([OURS] * 5 + [OTHER, VENDOR, ""]))
                local = "thing" if space == OTHER else draw(st.sampled_from(NAMES))
                child = etree.SubElement(element, f"{{{space}}}{local}" if space else local)
                fill(child, depth - 1)
                child.tail = draw(st.sampled_from(["", "", "", "tail", "\n"]))

    fill(root, 2)
    return etree.tostring(root)


def _content(element: etree._Element) -> Any:
    """All there is in a document, siblings and pieces of text in no order, names in values resolved."""
    attributes = {str(key): str(value) for key, value in element.items()}
    kind = attributes.get(f"{{{XSI}}}type", "").strip()
    prefix, _, local = kind.rpartition(":")
    if prefix in element.nsmap:
        attributes[f"{{{XSI}}}type"] = f"{{{element.nsmap[prefix]}}}{local}"
    texts = [element.text, *(child.tail for child in element)]
    words = "".join(text.strip() for text in texts if text)
    if element.tag == f"{{{OURS}}}qname" and words.rpartition(":")[0] in (None, *element.nsmap):
        words = words.rpartition(":")[2]
    return element.tag, sorted(attributes.items()), sorted(words), sorted(map(_content, element), key=repr)


def _slowly(data: bytes, cls: type[Any]) -> tuple[Any, list[Any]]:
    """What the slow path makes of a document, with no object on the fast path."""
    issues = Issues()

    class Slow(Reader):
        def _plain(self, element: etree._Element, table: Any) -> Any:
            return self.slowly(element, table)

    return Slow(issues).root(xmlbind.parse_xml(data), cls), issues.found


@quick
@given(data=_documents())
def _check(data: bytes, canonical: Callable[[bytes], str]) -> None:
    warnings: list[xmlbind.XmlWarning] = []
    value = xmlbind.decode(data, warnings=warnings)
    cls = xmlbind.find_element(str(etree.fromstring(data).tag))
    assert cls is not None
    slow, found = _slowly(data, cls)
    assert (slow, found) == (value, warnings)
    streamed: list[xmlbind.XmlWarning] = []
    objects = list(xmlbind.iter_decode(data, cls, warnings=streamed))
    assert objects == ([value] if isinstance(value, cls) else []) or not issubclass(type(value), cls)
    _check_several(data, streamed)
    if isinstance(value, xmlbind.Nil):
        return
    written = xmlbind.encode(value)
    if isinstance(value, xmlbind.XmlObject):
        again_from_plain = type(value).from_dict(json.loads(value.to_json()))
        assert again_from_plain == value
        assert again_from_plain.to_xml() == written
    assert _content(etree.fromstring(written)) == _content(etree.fromstring(data))
    if not any(warning.rule == "order" for warning in warnings):
        assert canonical(written) == canonical(data)
    again: list[xmlbind.XmlWarning] = []
    assert canonical(xmlbind.encode(xmlbind.decode(written, warnings=again))) == canonical(written)
    assert {warning.rule for warning in again} <= {warning.rule for warning in warnings}


def _check_several(data: bytes, streamed: list[xmlbind.XmlWarning]) -> None:
    """Several classes at once give what each gives, and where they stand changes nothing."""
    tags = {str(element.tag) for element in etree.fromstring(data).iter()}
    classes = tuple(cls for cls in map(xmlbind.find_element, sorted(tags)) if cls is not None)
    warnings: list[xmlbind.XmlWarning] = []
    together = [repr(value) for value in xmlbind.iter_decode(data, classes, warnings=warnings)]
    assert {repr(value) for cls in classes for value in xmlbind.iter_decode(data, cls)} == set(together)
    assert {(found.rule, found.message, found.line) for found in streamed} <= {
        (found.rule, found.message, found.line) for found in warnings
    }
    assert [repr(found.value) for found in xmlbind.iter_placed(data, classes)] == together
    inner = tuple(cls for cls in classes if cls.__xml__.element in ("circle", "paragraph"))
    if inner:
        placed = list(xmlbind.iter_placed(data, inner))
        assert [repr(found.value) for found in placed] == [repr(value) for value in xmlbind.iter_decode(data, inner)]


def test_any_document(c: ModuleType, o: ModuleType) -> None:
    assert c is not o
    _check(canonical=canonical)
