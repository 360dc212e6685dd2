"""SOAP faults to typed errors and back.

The WSDLs declare no header part for faults: the MTOSI header stands inside the fault's detail, in the exception kind
(`detail/getXException/entityNotFound/header`). A fault of an unknown kind, or with anything else around it, is still a
typed fault with the raw detail (C17).
"""

from __future__ import annotations

import dataclasses
from typing import Any

from lxml import etree

from mtosi_jms.errors import MtosiFault
from mtosi_jms.namespaces import HDR, SOAP12, clark, split_clark
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import Issues, RawXml, XmlObject, find_element, to_element
from mtosi_jms.xmlbind.decoder import decode_root
from mtosi_jms.xmlbind.refs import resolve_class
from mtosi_jms.xmlbind.registry import module_of

_HEADER_TAG = clark(HDR, "header")


def fault_of(element: etree._Element, issues: Issues, package: str | None = None) -> MtosiFault:
    """The typed fault of a soap:Fault element.

    Args:
        element: the Fault element, SOAP 1.1 or 1.2.
        issues: takes warnings about the detail.
        package: package whose classes come before those of all others.

    Returns:
        An instance of the generated fault class of the exception kind, or of `MtosiFault` where none is known.
    """
    code, words, detail = _soap_parts(element)
    raw = RawXml.from_element(element).xml
    outer = next((child for child in detail if isinstance(child.tag, str)), None) if detail is not None else None
    header = _header_in(detail, issues) if detail is not None else None
    kind, bound = _kind(outer, issues, package) if outer is not None else ("", None)
    reason = getattr(bound, "reason", None) or words
    cls = _class_of(bound)
    return cls(reason, kind=kind, detail=bound, header=header, fault_code=code, fault_string=words, raw=raw)


def _soap_parts(element: etree._Element) -> tuple[str, str, etree._Element | None]:
    namespace = split_clark(str(element.tag))[0]
    if namespace == SOAP12:
        code = element.findtext(f"{clark(SOAP12, 'Code')}/{clark(SOAP12, 'Value')}") or ""
        words = element.findtext(f"{clark(SOAP12, 'Reason')}/{clark(SOAP12, 'Text')}") or ""
        detail = element.find(clark(SOAP12, "Detail"))
    else:
        code, words, detail = (_loose_child(element, name) for name in ("faultcode", "faultstring", "detail"))
        code, words = (part.text or "" if part is not None else "" for part in (code, words))
    return code.strip().rpartition(":")[2], words.strip(), detail


def _loose_child(element: etree._Element, name: str) -> Any:
    """A child by local name: field messages put the fault's parts into the SOAP namespace now and then."""
    return next((child for child in element if split_clark(str(child.tag))[1] == name), None)


def _header_in(detail: etree._Element, issues: Issues) -> Any:
    found = next(detail.iter(_HEADER_TAG), None)
    return decode_root(found, Header, issues) if found is not None else None


def _kind(outer: etree._Element, issues: Issues, package: str | None) -> tuple[str, Any]:
    """The exception kind below the operation's exception element: its local name and its object or raw XML."""
    inner = [child for child in outer if isinstance(child.tag, str)]
    target = inner[0] if len(inner) == 1 and find_element(str(outer.tag), package) else None
    if target is None and inner:
        target = next((child for child in inner if find_element(str(child.tag), package)), inner[0])
    if target is None:
        return split_clark(str(outer.tag))[1], decode_root(outer, None, issues, package)
    return split_clark(str(target.tag))[1], decode_root(target, None, issues, package)


def _class_of(bound: Any) -> type[MtosiFault]:
    if not isinstance(bound, XmlObject):
        return MtosiFault
    table = bound.__xml__
    module = module_of(table.module.namespace, table.module.root)
    name = getattr(module, "__faults__", {}).get(table.element)
    return getattr(module, name) if name else MtosiFault


def fault_kinds(exception: type[XmlObject]) -> dict[str, type[XmlObject]]:
    """The exception kinds that an operation declares: XML local name to class.

    Args:
        exception: class of the operation's exception element (`GetManagedElementException`).
    """
    kinds = {}
    for field in exception.__xml__.fields:
        if field.kind == "element" and field.simple() is None:
            kinds[field.local] = field.table().cls
    allowed = exception.__xml__.model
    if allowed is not None:
        names = set(_flat(allowed))
        kinds = {local: cls for local, cls in kinds.items() if _python_name(exception, local) in names}
    return kinds


def _flat(model: Any) -> list[str]:
    names: list[str] = []
    for item in model[3]:
        if isinstance(item, tuple) and len(item) == 4:
            names += _flat(item)
        else:
            names.append(item if isinstance(item, str) else item[0])
    return names


def _python_name(cls: type[XmlObject], local: str) -> str:
    return next(field.name for field in cls.__xml__.fields if field.local == local)


def exception_for(fault: MtosiFault, exception: type[XmlObject], header: Header) -> XmlObject:
    """The operation's exception element for a fault, with the header inside (C17).

    A kind that the operation does not declare goes out as internalError, the reason naming the kind; so does any
    other failure of a handler.

    Args:
        fault: what a handler raised.
        exception: class of the operation's exception element.
        header: the reply's header, msgType ERROR.
    """
    kinds = fault_kinds(exception)
    kind = fault.kind or _declared_kind(fault)
    reason = fault.reason or fault.fault_string
    if kind not in kinds:
        reason = f"{kind}: {reason}" if kind else reason
        kind = next(name for name in ("internalError", "unableToComply", *kinds) if name in kinds)
    cls = kinds[kind]
    detail = fault.detail
    held = _as_header_of(cls, header)
    if isinstance(detail, cls) and isinstance(detail, XmlObject):
        inner = dataclasses.replace(detail, header=held)  # type: ignore[call-arg]
    else:
        inner = cls(header=held, reason=reason)  # type: ignore[call-arg]
    alternative: dict[str, Any] = {_python_name(exception, kind): inner}
    return exception(**alternative)


def _as_header_of(cls: type[XmlObject], header: Header) -> Any:
    """The header in the class that an exception kind of another generated package takes."""
    wanted = cls.__xml__.field("header").table().cls
    return header if isinstance(header, wanted) else decode_root(to_element(header), wanted, Issues())


def _declared_kind(fault: MtosiFault) -> str:
    detail = type(fault).__detail__
    return str(detail.__xml__.element) if detail is not None else ""


def fault_class(kind: str, exception: type[XmlObject]) -> type[MtosiFault]:
    """The generated fault class of a kind that an operation declares; `MtosiFault` where there is none."""
    cls = fault_kinds(exception).get(kind)
    if cls is None:
        return MtosiFault
    table = cls.__xml__
    module = module_of(table.module.namespace, table.module.root)
    name = getattr(module, "__faults__", {}).get(kind)
    path = f"{module.__name__.removeprefix(table.module.root + '.')}:{name}" if module and name else ""
    found: type[MtosiFault] = resolve_class(path, table.module.root) if path else MtosiFault
    return found
