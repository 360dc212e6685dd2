"""What an envelope holds, gathered for people: the operation, the header's fields, objects and events by type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from mtosi_jms.cli._documents import Document, mapping_of
from mtosi_jms.inventory import Hit, Routes, find_objects, given_name, is_object, label_of, name_text
from mtosi_jms.jms.events import events_of, logical_name
from mtosi_jms.jms.profile import BindingProfile
from mtosi_jms.jms.table2 import restore
from mtosi_jms.masking import MASK, is_secret, without_login
from mtosi_jms.namespaces import SOAP11, SOAP12, XSI, clark, split_clark
from mtosi_jms.service.registry import Role, Usage, find_operations
from mtosi_jms.soap import header_text
from mtosi_jms.xmlbind import RawXml, XmlWarning

_FAULTS: Final = (clark(SOAP11, "Fault"), clark(SOAP12, "Fault"))
_ROLES: Final[dict[str, Role]] = {
    "REQUEST": "request",
    "RESPONSE": "response",
    "NOTIFICATION": "request",
    "ERROR": "fault",
}
_BATCH: Final = {
    "requested": ("requestedBatchSize", "MTOSI_requestedBatchSize"),
    "number": ("batchSequenceNumber", "MTOSI_batchSequenceNumber"),
    "end_of_reply": ("batchSequenceEndOfReply", "MTOSI_batchSequenceEndOfReply"),
}


@dataclass(slots=True)
class Group:
    """Things of one type.

    Attributes:
        type: ME, PTP, ...; for events their logical name.
        count: how many there are.
        named: how many of them have a name.
        names: the first few names, as `MD=EMS1/ME=NE-7`.
    """

    type: str
    count: int = 0
    named: int = 0
    names: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """The group as plain values."""
        return {"type": self.type, "count": self.count, "names": self.names}


@dataclass(slots=True, kw_only=True)
class Contents:
    """What one envelope holds.

    Attributes:
        body, namespace: the element in the SOAP body; of a fault the operation's exception in its detail.
        uses: the operations that use this element.
        operation: name of the operation, by its element or else by the header.
        pattern, style: communicationPattern and communicationStyle as the header has them, or None.
        batch: what the header says of batches, what is there of: requested, number, end_of_reply.
        header: text of the header's fields by XML name, in the document's order, credentials masked; None where
            there is no header.
        objects, events: inventory objects, and a notification's events, by type.
        fault: code, string, kind and reason; empty for other messages.
        warnings: breaches of schema and rules, and what header and body say differently.
    """

    body: str = ""
    namespace: str = ""
    uses: tuple[Usage, ...] = ()
    operation: str | None = None
    pattern: str | None = None
    style: str | None = None
    batch: dict[str, int | bool | str] = field(default_factory=dict)
    header: dict[str, str] | None = None
    objects: list[Group] = field(default_factory=list)
    events: list[Group] = field(default_factory=list)
    fault: dict[str, str] = field(default_factory=dict)
    warnings: list[XmlWarning] = field(default_factory=list)

    @property
    def is_mtosi(self) -> bool:
        """Whether anything tells that this is an MTOSI envelope."""
        return self.header is not None or bool(self.uses or self.objects or self.fault)


def contents_of(document: Document, *, names: int, secrets: bool) -> Contents:
    """Gather what an envelope holds.

    Args:
        document: the envelope.
        names: how many names to keep of each type.
        secrets: whether credentials in the header are shown.
    """
    envelope = document.envelope
    element = _body_element(document.body)
    contents = Contents(warnings=list(envelope.warnings))
    if element is not None:
        contents.namespace, contents.body = split_clark(str(element.tag))
        contents.uses = find_operations(str(element.tag))
    if contents.uses:
        contents.operation = contents.uses[0].operation.name
    if envelope.fault is not None:
        fault = envelope.fault
        contents.fault = {
            "code": fault.fault_code,
            "string": fault.fault_string,
            "kind": fault.kind,
            "reason": fault.reason,
        }
    if envelope.header is not None:
        _add_header(document, contents, secrets=secrets)
    contents.objects = objects_in(document.body, names)
    if contents.body == "notify" and element is not None:
        contents.events = _groups(map(_event, events_of(RawXml.from_element(element))), names)
    return contents


def objects_in(body: etree._Element, names: int) -> list[Group]:
    """The inventory objects among the descendants of an element, by type.

    Args:
        body: a SOAP Body, or any element around messages.
        names: how many names to keep of each type.
    """
    return _groups(map(_labelled, find_objects(body, Routes(is_object))), names)


def _body_element(body: etree._Element) -> etree._Element | None:
    """The element that says what the message is: the first in the body, in a fault the first in its detail."""
    first = next(iter(body), None)
    if first is None or first.tag not in _FAULTS:
        return first
    detail = next((child for child in first if split_clark(str(child.tag))[1] in ("detail", "Detail")), None)
    return next(iter(detail), None) if detail is not None else None


def _add_header(document: Document, contents: Contents, *, secrets: bool) -> None:
    header: Any = document.envelope.header
    contents.pattern = header_text(header, "communicationPattern")
    contents.style = header_text(header, "communicationStyle")
    for name, (local, prop) in _BATCH.items():
        text = header_text(header, local)
        if text is not None:
            value = restore(prop, text)
            contents.batch[name] = value if isinstance(value, (bool, int)) else text
    contents.header = {}
    for child in document.header if document.header is not None else ():
        contents.header.setdefault(split_clark(str(child.tag))[1], field_text(child, secrets=secrets))
    mapping = mapping_of(document, BindingProfile())
    contents.warnings += map(document.located, mapping.warnings)
    contents.warnings += map(document.located, _differences(header, contents))
    contents.operation = contents.operation or header_text(header, "activityName")


def _differences(header: Any, contents: Contents) -> Iterator[XmlWarning]:
    """What the header says otherwise than the body."""
    if not contents.uses:
        return
    name, role = contents.uses[0].operation.name, contents.uses[0].role
    activity = header_text(header, "activityName")
    if activity is not None and activity != name:
        yield XmlWarning("P36", f"activityName is {activity!r}, the body belongs to {name}", "header/activityName")
    kind = header_text(header, "msgType")
    if kind in _ROLES and _ROLES[kind] != role:
        yield XmlWarning("P36", f"msgType is {kind}, the body is the {role} of {name}", "header/msgType")


def field_text(element: etree._Element, *, secrets: bool = False) -> str:
    """A header field as text: its own, else that of the elements in it as `name=value`; credentials masked.

    Args:
        element: the field.
        secrets: whether credentials are shown.
    """
    name = split_clark(str(element.tag))[1]
    if len(element) == 0:
        text = (element.text or "").strip()
        keys = [(*split_clark(key), value) for key, value in element.items()]
        extra = [
            f"{key}={_masked(f'{name} {key}', value, secrets=secrets)}" for space, key, value in keys if space != XSI
        ]
        return " ".join([_masked(name, text, secrets=secrets), *extra]).strip()
    return MASK if is_secret(name) and not secrets else "; ".join(_pair(child, secrets=secrets) for child in element)


def _pair(element: etree._Element, *, secrets: bool) -> str:
    named = {split_clark(str(child.tag))[1]: (child.text or "").strip() for child in element}
    if "propName" in named:
        return f"{named['propName']}={_masked(named['propName'], named.get('propValue', ''), secrets=secrets)}"
    name = split_clark(str(element.tag))[1]
    if is_secret(name) and not secrets:
        return f"{name}={MASK}"
    text = field_text(element, secrets=secrets)
    return f"{name}=({text})" if len(element) else f"{name}={text}"


def _masked(name: str, text: str, *, secrets: bool) -> str:
    if secrets or not text:
        return text
    return MASK if is_secret(name) else without_login(text)


def _labelled(hit: Hit) -> tuple[str, str]:
    name = hit.name or (given_name(hit.element, hit.table) if hit.element is not None else "")
    return label_of(hit.table), name


def _event(event: etree._Element) -> tuple[str, str]:
    kind, name = split_clark(str(event.tag))[1], ""
    for child in event:
        if split_clark(str(child.tag))[1] == "objectName":
            name = name_text(child)
    return logical_name(kind), name


def _groups(items: Iterable[tuple[str, str]], names: int) -> list[Group]:
    """Items by type, in the order of first appearance."""
    groups: dict[str, Group] = {}
    for kind, name in items:
        group = groups.setdefault(kind, Group(kind))
        group.count += 1
        if name:
            group.named += 1
            if len(group.names) < names:
                group.names.append(name)
    return list(groups.values())
