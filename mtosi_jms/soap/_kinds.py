"""Exception kinds of operations, their fault classes, and the exception in which a fault is sent."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, Final

from mtosi_jms.errors import MtosiFault
from mtosi_jms.header import dialect_named
from mtosi_jms.namespaces import MSG
from mtosi_jms.soap._dialects import converted, header_class
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import RAW, Issues, XmlObject, decode_root, module_of, names_of, to_element

_CODE: Final = "EXCPT_"
_UNLIKE: Final = {
    "EXCPT_COMM_FAILURE": "commLoss",
    "EXCPT_TP_INVALID_ENDPOINT": "tpInvalidEndPoint",
    "EXCPT_USERLABEL_IN_USE": "userlabelInUse",
}
"""Codes of MTOSI 1.x whose kind in 2.0 has another name."""
_CODES: Final = {kind: code for code, kind in _UNLIKE.items()}


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
    if kind in _CODES or not kind.isalnum():
        return _CODES.get(kind, kind)
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
