"""The rules of a SOAP 1.1 envelope, and which of its elements a schema has to judge.

- Envelope holds at most one Header, then exactly one Body; what follows the Body is in a namespace of its own.
- A Header that is present holds exactly one MTOSI header (P36).
- The Body holds the one MTOSI message, or one Fault.
- A Fault holds faultcode, faultstring, and then optionally faultactor and detail, each at most once, in this order
  and in no namespace.
- None of them holds text.

Judged by the schemas: the children of Header, the children of Body other than Fault, the children of a Fault's detail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from mtosi_jms.header import BY_TAG
from mtosi_jms.namespaces import SOAP11, SOAP12, split_clark

_ENVELOPE: Final = f"{{{SOAP11}}}Envelope"
_ENVELOPE_12: Final = f"{{{SOAP12}}}Envelope"
_HEADER: Final = f"{{{SOAP11}}}Header"
_BODY: Final = f"{{{SOAP11}}}Body"
_FAULT: Final = f"{{{SOAP11}}}Fault"
_BODY_12: Final = f"{{{SOAP12}}}Body"
_FAULT_12: Final = f"{{{SOAP12}}}Fault"
# The element at fault, and what is wrong with it.
Breach = tuple[etree._Element, str]
_FAULT_CHILDREN: Final = ("faultcode", "faultstring", "faultactor", "detail")


def parts(root: etree._Element) -> list[etree._Element]:
    """The elements that the schemas judge, in document order; the root itself where it is not an envelope."""
    if root.tag != _ENVELOPE:
        return [] if root.tag == _ENVELOPE_12 else [root]
    found: list[etree._Element] = []
    for child in root:
        found.extend(child if child.tag == _HEADER else _in_body(child))
    return found


def body_parts(root: etree._Element) -> list[etree._Element]:
    """Those of them in the Body of an envelope, of SOAP 1.2 too."""
    return [part for child in root for part in _in_body(child)]


def _in_body(body: etree._Element) -> Iterator[etree._Element]:
    if body.tag in (_BODY, _BODY_12):
        for entry in body:
            yield from _detail_entries(entry) if entry.tag in (_FAULT, _FAULT_12) else [entry]


def _detail_entries(fault: etree._Element) -> Iterator[etree._Element]:
    # A detail in the wrong namespace is an issue of its own; its children are judged all the same.
    for child in fault:
        if split_clark(str(child.tag))[1] in ("detail", "Detail"):
            yield from child


def envelope_breaches(root: etree._Element) -> Iterator[Breach]:
    """Every breach of the rules above; nothing where the document is not an envelope."""
    if root.tag == _ENVELOPE_12:
        yield root, "a SOAP 1.2 envelope: MTOSI over JMS uses SOAP 1.1; nothing in it was validated"
    if root.tag != _ENVELOPE:
        return
    yield from _envelope_children(root)
    for header in root.iterchildren(_HEADER):
        yield from _text(header)
        count = sum(1 for child in header if child.tag in BY_TAG)
        if count != 1:
            known = " or ".join(sorted({split_clark(tag)[0] for tag in BY_TAG} - {""}))
            yield header, f"holds {count} MTOSI headers (header of {known}); exactly one is needed"
    for body in root.iterchildren(_BODY):
        yield from _body(body)


def _envelope_children(root: etree._Element) -> Iterator[Breach]:
    yield from _text(root)
    bodies = 0
    headers = 0
    for child in root:
        if child.tag == _HEADER:
            headers += 1
            if bodies or headers > 1:
                yield child, "a second Header" if headers > 1 else "the Header has to stand before the Body"
        elif child.tag == _BODY:
            bodies += 1
            if bodies > 1:
                yield child, "a second Body: an envelope has exactly one"
        elif not bodies or split_clark(str(child.tag))[0] in ("", SOAP11):
            yield child, f"{_readable(child)} has no place in a SOAP envelope; only Header and Body have"
    if not bodies:
        yield root, "the envelope has no Body"


def _body(body: etree._Element) -> Iterator[Breach]:
    yield from _text(body)
    if not len(body):
        yield body, "the Body is empty: it has to hold the MTOSI message or a Fault"
    for extra in body[1:]:
        yield extra, "the Body holds more than one element: it has to hold one MTOSI message or one Fault"
    for fault in body.iterchildren(_FAULT):
        yield from _fault(fault)


def _fault(fault: etree._Element) -> Iterator[Breach]:
    yield from _text(fault)
    seen: list[str] = []
    for child in fault:
        namespace, local = split_clark(str(child.tag))
        if local not in _FAULT_CHILDREN:
            yield child, f"{local} has no place in a Fault; it holds {', '.join(_FAULT_CHILDREN)}"
            continue
        if namespace:
            yield child, f"{local} of a SOAP 1.1 Fault has no namespace; this one is in {namespace}"
        if local in seen:
            yield child, f"a second {local}"
        elif any(_FAULT_CHILDREN.index(name) > _FAULT_CHILDREN.index(local) for name in seen):
            yield child, f"{local} stands after {seen[-1]}; the order is {', '.join(_FAULT_CHILDREN)}"
        seen.append(local)
        if local == "faultcode":
            yield from _fault_code(child)
        elif local == "detail":
            yield from _text(child)
    for name in ("faultcode", "faultstring"):
        if name not in seen:
            yield fault, f"the Fault has no {name}"


def _fault_code(code: etree._Element) -> Iterator[Breach]:
    prefix, colon, _ = (code.text or "").strip().rpartition(":")
    if len(code) or not (code.text or "").strip():
        yield code, "faultcode has to hold a name such as soap:Server"
    elif colon and prefix not in code.nsmap:
        yield code, f"the prefix {prefix!r} of the fault code is not declared"


def _text(element: etree._Element) -> Iterator[Breach]:
    texts = (element.text, *(child.tail for child in element))
    stray = next((text for text in texts if text and text.strip()), None)
    if stray is not None:
        yield element, f"{_readable(element)} holds text, {stray.strip()[:40]!r}; only elements belong there"


def _readable(element: etree._Element) -> str:
    return split_clark(str(element.tag))[1]
