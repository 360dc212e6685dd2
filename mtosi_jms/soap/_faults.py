"""Converts SOAP faults to typed errors and back.

The WSDLs declare no header part for faults: the MTOSI header is in the fault's detail, inside the exception kind
(`detail/getXException/entityNotFound/header`). A fault of an unknown kind, or with another structure, is still a typed
fault with the raw detail (C17).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import EncodeError, MtosiFault, SoapJmsFault
from mtosi_jms.header import BY_TAG, dialect_named
from mtosi_jms.namespaces import MSG, SOAP12, TRANSPORT_JMS_W3C, XML, clark, split_clark
from mtosi_jms.soap._dialects import converted, dialect_of, header_class, header_classes, mend
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import (
    RAW,
    Issues,
    Nil,
    RawXml,
    Writer,
    XmlObject,
    decode_root,
    escape_text,
    find_element,
    forbidden_character,
    is_text,
    module_of,
    names_of,
    to_element,
)

_CODE: Final = "EXCPT_"
_UNLIKE: Final = {
    "EXCPT_COMM_FAILURE": "commLoss",
    "EXCPT_TP_INVALID_ENDPOINT": "tpInvalidEndPoint",
    "EXCPT_USERLABEL_IN_USE": "userlabelInUse",
}
"""Codes of MTOSI 1.x whose kind in 2.0 has another name."""
_CODE_OF: Final = {kind: code for code, kind in _UNLIKE.items()}


def kind_of_code(code: str) -> str:
    """Return the exception kind of 2.0 that a code of MTOSI 1.x stands for (`EXCPT_ENTITY_NOT_FOUND`: entityNotFound);
    the code itself if it is a vendor's."""
    if not code.upper().startswith(_CODE):
        return code
    code = code.upper()
    first, *rest = code.removeprefix(_CODE).lower().split("_")
    return _UNLIKE.get(code, first + "".join(map(str.capitalize, rest)))


def code_of_kind(kind: str) -> str:
    """Return the code of MTOSI 1.x for an exception kind; see `kind_of_code`."""
    if kind in _CODE_OF or not kind.isalnum():
        return _CODE_OF.get(kind, kind)
    return _CODE + "".join(f"_{letter}" if letter.isupper() else letter for letter in kind).upper()


def coded_class(base: type[MtosiFault], kind: str) -> type[MtosiFault]:
    """Return the fault class for a code of MTOSI 1.x: the class of the exception, and that of the kind in 2.0 if our
    stubs have it.
    """
    module = module_of(MSG, Header.__xml__.module.root)
    name = getattr(module, "__faults__", {}).get(kind)
    if name is None:
        return base
    like: Any = getattr(module, name)
    held: Any = base
    made: type[MtosiFault] = like if base is MtosiFault else _joined(held, like)
    return made


@lru_cache(256)
def _joined(base: Any, like: Any) -> Any:
    name = like.__name__
    body = {"__module__": __name__, "__doc__": base.__doc__, "__detail__": base.__detail__, "__reduce__": _reduce}
    return type(name, (base, like), body)


def _reduce(fault: MtosiFault) -> tuple[Any, ...]:
    return _restored, (*type(fault).__bases__, fault.args), vars(fault)


def _restored(base: Any, like: Any, args: tuple[Any, ...]) -> MtosiFault:
    cls = _joined(base, like)
    fault: MtosiFault = cls.__new__(cls, *args)
    fault.args = args
    return fault


def generated_class(owner: Any, kind: str | None) -> type[MtosiFault] | None:
    """Return the fault class of a kind from the generated module of an object or class; None if there is none."""
    table = getattr(owner, "__xml__", None)
    module = module_of(table.module.namespace, table.module.root) if table is not None else None
    name = getattr(module, "__faults__", {}).get(kind)
    return getattr(module, name) if name else None


def fault_kinds(exception: type[XmlObject]) -> dict[str, type[XmlObject]]:
    """Map the XML local name of each exception kind that an operation declares to its class."""
    elements = [field for field in exception.__xml__.fields if field.kind == "element" and field.type is not RAW]
    fields = [field for field in elements if field.simple() is None]
    model = exception.__xml__.model
    names = {field.name for field in fields} if model is None else set(names_of(model))
    return {field.local: field.table().cls for field in fields if field.name in names}


def exception_for(
    fault: MtosiFault, exception: type[XmlObject], header: Header, *, levels: int = 2
) -> XmlObject | None:
    """Return the operation's exception element for a fault, with the header inside (C17).

    A kind that the operation does not declare is sent as internalError, with the kind in the reason. So is any other
    failure of a handler.

    Args:
        levels: how deep to look for a kind inside a kind: activateException holds basicFailureEvent, which is a choice.

    Returns:
        None if the exception has no field for the reason; the fault is then sent without detail.
    """
    kinds = fault_kinds(exception)
    kind = fault.kind or _declared_kind(fault)
    reason = fault.reason or fault.fault_string
    if any(field.local == "exception" and field.simple() is not None for field in exception.__xml__.fields):
        return _coded(fault, exception, kind, reason, header)
    blamed = f"{kind}: {reason}" if kind else reason
    for name in dict.fromkeys((kind, "internalError", "unableToComply", *kinds)):
        if name not in kinds:
            continue
        inner = _with_reason(fault, kinds[name], reason if name == kind else blamed, header)
        if inner is None and levels > 1:
            inner = exception_for(fault, kinds[name], header, levels=levels - 1)
        field = next(field for field in exception.__xml__.fields if field.local == name)
        made = _made(exception, {field.name: [inner] if field.many else inner}) if inner is not None else None
        if made is not None:
            return made
    return _with_reason(fault, exception, reason, header) if not kinds else None


def _coded(fault: MtosiFault, exception: type[XmlObject], kind: str, reason: str, header: Header) -> XmlObject | None:
    """Return the exception of MTOSI 1.x, whose code says the kind, with the header."""
    given: dict[str, Any] = {"header": _as_header_of(exception, header)}
    if isinstance(fault.detail, exception):
        return dataclasses.replace(fault.detail, **given)
    simple = next(field for field in exception.__xml__.fields if field.local == "exception").simple()
    blamed = f"{kind}: {reason}" if kind not in ("", exception.__xml__.element) else reason
    for text, words in ((code_of_kind(kind), reason), (f"{_CODE}INTERNAL_ERROR", blamed)):
        try:
            value, problem = simple.lenient(text) if simple is not None else (None, None)
        except ValueError:
            continue
        if problem is None:
            return _made(exception, {**given, "exception": value, "reason": words or None})
    return None


def _with_reason(fault: MtosiFault, cls: type[XmlObject], reason: str, header: Header) -> XmlObject | None:
    """Return the fault's detail with the header, or a new object with the reason; None if `cls` does not allow that."""
    names = {field.name for field in cls.__xml__.fields}
    given: dict[str, Any] = {"header": _as_header_of(cls, header)} if "header" in names else {}
    if isinstance(fault.detail, cls):
        return dataclasses.replace(fault.detail, **given)
    return _made(cls, {**given, "reason": reason}) if "reason" in names else None


def _made(cls: type[XmlObject], given: dict[str, Any]) -> XmlObject | None:
    try:
        return cls(**given)
    except TypeError:
        return None


def _as_header_of(cls: type[XmlObject], header: Header) -> Any:
    """Return the header in the class that an exception kind requires, which may be of another generated package."""
    wanted = cls.__xml__.field("header").table().cls
    tag = wanted.__xml__.tag
    made = header if tag is None else converted(header, header_class(dialect_named(str(tag))))
    return made if isinstance(made, wanted) else decode_root(to_element(made), wanted, Issues())


def _declared_kind(fault: MtosiFault) -> str:
    detail = type(fault).__detail__
    return type(fault).__kind__ or (str(detail.__xml__.element or "") if detail is not None else "")


def fault_class(kind: str, exception: type[XmlObject]) -> type[MtosiFault]:
    """Return the generated fault class of a kind that an operation declares; `MtosiFault` if there is none."""
    cls = fault_kinds(exception).get(kind)
    return (
        (generated_class(cls, kind) or generated_class(exception, kind) or MtosiFault)
        if cls is not None
        else MtosiFault
    )


_CODES: Final = {"Server": "Receiver", "Client": "Sender"}
_STANDARD: Final = {
    "1.1": frozenset({"VersionMismatch", "MustUnderstand", "Client", "Server"}),
    "1.2": frozenset({"VersionMismatch", "MustUnderstand", "DataEncodingUnknown", "Sender", "Receiver"}),
}


def read_fault(
    element: etree._Element, issues: Issues, package: str | None = None, vendors: str = ""
) -> tuple[MtosiFault, Any]:
    """Return the typed fault of a soap:Fault element of SOAP 1.1 or 1.2, and the operation's exception in its detail.

    Args:
        vendors: Clark name of a vendor's header element.

    Returns:
        The fault, of the generated class of its kind if one is known; and the exception element as an object: `RawXml`
        if its class is unknown, None if there is no detail.
    """
    code, words, detail = _soap_parts(element)
    w3c_code = _w3c_code(element)
    outer = _exception_in(detail, package)
    body = decode_root(outer, None, issues, package) if outer is not None else None
    if isinstance(body, Nil) and outer is not None:
        body = RawXml.from_element(outer)
    kind, bound = _kind(body, package)
    header = getattr(bound, "header", None)
    if not isinstance(header, Header):
        header = _header_in(detail, issues, vendors)
    reason = getattr(bound, "reason", None)
    cls = SoapJmsFault if w3c_code else _class_of(kind, bound, body)
    coded = _coded_in(outer)
    if coded is not None and (code_text := _text(_loose_child(coded, "exception"))):
        kind, reason = kind_of_code(code_text), _text(_loose_child(coded, "reason"))
        bound, cls = body if coded is outer else bound, coded_class(cls, kind)
    fault = cls(
        reason if isinstance(reason, str) and reason else words or _text(detail),
        kind=kind,
        detail=bound,
        header=header,
        fault_code=w3c_code or code,
        fault_string=words,
        raw=RawXml.from_element(element).xml,
    )
    return fault, body


def _soap_parts(element: etree._Element) -> tuple[str, str, etree._Element | None]:
    """Return the fault code without its prefix, the fault string and the detail."""
    if split_clark(str(element.tag))[0] == SOAP12:
        code = element.find(f"{clark(SOAP12, 'Code')}/{clark(SOAP12, 'Value')}")
        words = element.find(f"{clark(SOAP12, 'Reason')}/{clark(SOAP12, 'Text')}")
        detail = element.find(clark(SOAP12, "Detail"))
    else:
        code, words, detail = (_loose_child(element, name) for name in ("faultcode", "faultstring", "detail"))
    return _text(code).rpartition(":")[2], _text(words), detail


def _w3c_code(element: etree._Element) -> str:
    """Return a fault code of W3C's SOAP over JMS: the faultcode in SOAP 1.1, the subcode in SOAP 1.2; else empty."""
    steps = [clark(SOAP12, step) for step in ("Code", "Subcode", "Value")]
    code = element.find("/".join(steps)) if _version(element) == "1.2" else _loose_child(element, "faultcode")
    prefix, _, local = _text(code).rpartition(":")
    return local if code is not None and code.nsmap.get(prefix or None) == TRANSPORT_JMS_W3C else ""


def _text(element: etree._Element | None) -> str:
    """Return the text of an element without children, without leading and trailing white space."""
    return (element.text or "").strip() if element is not None and not len(element) else ""


def _loose_child(element: etree._Element, name: str) -> Any:
    """Return a child by its local name: some systems put the parts of a fault into the SOAP namespace."""
    return next((child for child in element if split_clark(str(child.tag))[1] == name), None)


def _exception_in(detail: etree._Element | None, package: str | None) -> etree._Element | None:
    """Return the operation's exception element: the first child with a known class, otherwise the first child."""
    children = list(detail) if detail is not None else []
    known = (child for child in children if find_element(str(child.tag), package) is not None)
    return next(known, children[0] if children else None)


def _header_in(detail: etree._Element | None, issues: Issues, vendors: str) -> Header | None:
    classes = header_classes(vendors)
    found = next(detail.iter(*classes), None) if detail is not None else None
    if found is None:
        return None
    cls = classes[str(found.tag)]
    if cls is not Header:
        found = copy.deepcopy(found)
        mend(found, dialect_of(cls), issues)
    header = decode_root(found, cls, issues)
    return header if isinstance(header, Header) else None


def _coded_in(exception: etree._Element | None) -> etree._Element | None:
    """Return the exception of MTOSI 1.x, which has one kind with a code: the exception itself, or the one in the
    wrapper that some systems put around it; None for any other."""
    inside = [] if exception is None else [exception, *(exception if len(exception) == 1 else ())]
    return next((one for one in inside if split_clark(str(one.tag))[1] == "ProcessingFailureException"), None)


def _kind(body: Any, package: str | None) -> tuple[str, Any]:
    """Return the exception kind in an operation's exception: its local name, and its object or raw XML."""
    if isinstance(body, XmlObject):
        if generated_class(body, body.__xml__.element) is not None:
            return str(body.__xml__.element), body  # the body is the exception kind itself
        for field, value in _alternatives(body):
            return field.local, value
        for kept in body.unknown_elements():
            if kept.tag not in BY_TAG:
                return split_clark(kept.tag)[1], kept
        return str(body.__xml__.element), body
    if isinstance(body, RawXml):
        return _kind_in_unknown(body, package)
    return "", None


def _kind_in_unknown(body: RawXml, package: str | None) -> tuple[str, Any]:
    for child in body.element():
        if find_element(str(child.tag), package) is not None and child.tag not in BY_TAG:
            return split_clark(str(child.tag))[1], decode_root(child, None, Issues(), package)
    inner = [child for child in body.element() if child.tag not in BY_TAG]
    if len(inner) == 1:
        return split_clark(str(inner[0].tag))[1], RawXml.from_element(inner[0])
    return split_clark(body.tag)[1], body


def _alternatives(exception: XmlObject) -> Iterator[tuple[Any, XmlObject]]:
    """Yield each object in an exception with its field; a choice that may be repeated holds several objects."""
    for field in exception.__xml__.fields:
        value = getattr(exception, field.name) if field.kind == "element" else None
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, XmlObject) and field.tag not in BY_TAG:
                yield field, item


def _class_of(kind: str, bound: Any, body: Any) -> type[MtosiFault]:
    """Return the fault class of an exception kind: that of its own element, or the one that the exception declares."""
    own = generated_class(bound, bound.__xml__.element) if isinstance(bound, XmlObject) else None
    return own or generated_class(body, kind) or MtosiFault


def has_header(body: Any) -> bool:
    return any(True for _ in _headers_in(body))


def _headers_in(body: Any) -> Iterator[XmlObject]:
    if not isinstance(body, XmlObject):
        return
    inner = [value for _, value in _alternatives(body)]
    inner += [value for outer in inner for _, value in _alternatives(outer)]
    for value in (body, *inner):
        header = getattr(value, "header", None)
        if isinstance(header, XmlObject) and (isinstance(header, Header) or header.__xml__.tag in BY_TAG):
            yield header


def write_fault(writer: Writer, fault: MtosiFault, body: Any, version: str) -> None:
    """Write a fault that was not read from a message.

    Args:
        writer: receives the Fault element; the caller declares the prefix of the SOAP namespace.
        body: the operation's exception for the detail; None for a fault without detail.
    """
    for name in ("fault_code", "fault_string", "reason", "kind"):
        if not is_text(getattr(fault, name)):
            raise EncodeError("text is needed, of characters that XML allows", f"fault.{name}")
    prefix, code = soap_prefix(version), escape_text(_written_code(fault.fault_code, version))
    declared = subcode = ""
    if isinstance(fault, SoapJmsFault):
        code, declared = f"soapjms:{code}", f' xmlns:soapjms="{TRANSPORT_JMS_W3C}"'
    words = escape_text(fault.fault_string or fault.reason or fault.kind)
    if version == "1.2":
        if declared:
            subcode = f"<{prefix}:Subcode><{prefix}:Value>{code}</{prefix}:Value></{prefix}:Subcode>"
            code = f"{prefix}:Sender"
        opening = f"<{prefix}:Code><{prefix}:Value>{code}</{prefix}:Value>{subcode}</{prefix}:Code><{prefix}:Reason>"
        opening += f'<{prefix}:Text xml:lang="en">{words}</{prefix}:Text></{prefix}:Reason>'
    else:
        opening = f"<faultcode>{code}</faultcode><faultstring>{words}</faultstring>"
    detail = f"{prefix}:Detail" if version == "1.2" else "detail"
    writer.parts.append(f"<{prefix}:Fault{declared}>{opening}")
    if body is not None:
        writer.parts.append(f"<{detail}>")
        writer.root(body)
        writer.parts.append(f"</{detail}>")
    writer.parts.append(f"</{prefix}:Fault>")


def soap_prefix(version: str) -> str:
    """Return the prefix for the namespace of the envelope."""
    return "soap12" if version == "1.2" else "soap"


def _written_code(code: str, version: str) -> str:
    """Return a fault code as a qualified name. SOAP's own codes get its prefix and the names of this version."""
    code = code.rpartition(":")[2] or "Server"
    first, dot, rest = code.partition(".")
    others = _CODES if version == "1.2" else {new: old for old, new in _CODES.items()}
    first = others.get(first, first)
    return f"{soap_prefix(version)}:{first}{dot}{rest}" if first in _STANDARD[version] else code


def amended(
    raw: bytes, fault: MtosiFault, body: Any, header: Header | None, package: str | None, vendors: str = ""
) -> bytes | None:
    """Return a fault that was read, with the changes that were made since.

    The exception kind holds the reason. If it has no field for it, the fault string is the reason.

    Returns:
        `raw` itself if nothing was changed; None if it has no detail element for the present body.
    """
    element = RawXml(raw).element()
    before, body_before = read_fault(element, Issues(), package, vendors)
    part = _soap_parts(element)[2]
    if part is None and body is not None:
        return None
    changed = False
    kind = _detail_now(fault, before)
    body = _with_kind(body, kind, fault, before)
    if body != body_before and part is not None:
        changed = True
        _exchange(_exception_in(part, package), body, part)
    elif isinstance(body, RawXml) and part is not None and kind != before.detail:
        changed = _amend_kind(_exception_in(part, package), before.kind, kind)
    place = next(part.iter(*header_classes(vendors)), None) if part is not None else None
    if place is not None and header is not None and header not in (before.header, *_headers_in(body)):
        changed = True
        _exchange(place, header, place.getparent())
    if fault.fault_code.rpartition(":")[2] != before.fault_code:
        changed = True
        _set_text(element, "Code/Value", _written_code(fault.fault_code, _version(element)))
    words = _fault_string_now(fault, before)
    if words != before.fault_string:
        changed = True
        _set_text(element, "Reason/Text", words)
    return RawXml.from_element(element).xml if changed else raw


def _has_reason(detail: Any) -> bool:
    return isinstance(detail, XmlObject) and hasattr(detail, "reason")


def _detail_now(fault: MtosiFault, before: MtosiFault) -> Any:
    """Return the exception kind, with the fault's reason if that was changed. A changed reason of the kind wins."""
    detail = fault.detail
    if not _has_reason(detail) or fault.reason == before.reason:
        return detail
    if detail.reason != getattr(before.detail, "reason", None):
        return detail
    return dataclasses.replace(detail, reason=fault.reason)


def _fault_string_now(fault: MtosiFault, before: MtosiFault) -> str:
    """Return the fault string, or a changed reason if the exception kind has no field for it."""
    if fault.fault_string == before.fault_string and fault.reason != before.reason and not _has_reason(fault.detail):
        return fault.reason
    return fault.fault_string


def _with_kind(body: Any, kind: Any, fault: MtosiFault, before: MtosiFault) -> Any:
    """Return the operation's exception with the fault's present kind, if it still holds the kind that was read."""
    if not isinstance(body, XmlObject) or kind == before.detail:
        return body
    if body is fault.detail or body == before.detail:
        return kind
    for field, value in _alternatives(body):
        if value is fault.detail or value == before.detail:
            held: dict[str, Any] = {field.name: kind}
            return dataclasses.replace(body, **held)
    return body


def _amend_kind(exception: etree._Element | None, kind: str, detail: Any) -> bool:
    """Replace the exception kind in an exception element of an unknown class. Return whether it was replaced. Raises
    EncodeError: the kind cannot become valid XML."""
    if exception is None or not isinstance(detail, XmlObject):
        return False
    place = _loose_child(exception, detail.__xml__.element or kind)
    if place is None:
        return False
    _exchange(place, detail, exception)
    return True


def _version(element: etree._Element) -> str:
    return "1.2" if split_clark(str(element.tag))[0] == SOAP12 else "1.1"


def _exchange(old: etree._Element | None, new: Any, parent: etree._Element | None) -> None:
    if parent is None:
        return
    if isinstance(new, RawXml):
        added = [new.element()]
    else:
        added = [to_element(new)] if new is not None else []
    if old is not None:
        parent[parent.index(old) : parent.index(old) + 1] = added
    else:
        parent.extend(added)


_OLD_NAMES: Final = {"Code/Value": "faultcode", "Reason/Text": "faultstring"}


def _set_text(element: etree._Element, name: str, text: str) -> None:
    """Set the code or the fault string of a fault; add the element if it is missing."""
    if character := forbidden_character(text):
        raise EncodeError(f"character {character} is not allowed in XML", "fault")
    steps = [clark(SOAP12, step) for step in name.split("/")] if _version(element) == "1.2" else [_OLD_NAMES[name]]
    place = element
    for step in steps:
        found = _loose_child(place, split_clark(step)[1])
        if found is None:
            found = etree.Element(step)
            place.insert(0 if name.startswith("Code") or place is not element else 1, found)
        place = found
    if steps[-1] == clark(SOAP12, "Text") and not place.items():
        place.set(clark(XML, "lang"), "en")
    place.text = text
