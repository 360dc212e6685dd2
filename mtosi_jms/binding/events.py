"""The events of a notification: their logical names and the attributes of Table 4.

Attributes are read from the event's XML by local name. So this works for events of any generated package and release,
and for events that no package knows. An attribute that an event lacks gives no property (C32). Words and names of MTOSI
1.x become those of 2.x, so that one selector is enough for both.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.profile import ATTRIBUTE_FORMS, EVENTS, FILTER_ATTRIBUTES, PROPERTIES, AttributeForm
from mtosi_jms.binding.release1 import SEVERITIES, fields_of, word
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import Long, PropertyValue
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import (
    RawXml,
    XmlObject,
    attribute_parts,
    escape_name_part,
    parse_date_time,
    parse_loose_date_time,
    to_element,
)

__all__ = [
    "EVENT_NAMES",
    "SEVERITIES",
    "event_values",
    "events_of",
    "logical_name",
    "moment_of",
    "shared_name",
]

_NAMES: Final = {element.lower(): kind.name for kind in EVENTS for element in kind.elements}
_GENERIC: Final = tuple(kind.name for kind in EVENTS if not kind.elements)
EVENT_NAMES: Final = frozenset(kind.name for kind in EVENTS)
"""The logical names of all events in MTOSI (C27)."""


def logical_name(element_name: str) -> str:
    """Return the logical name of an event by its element name: `resourceObjectCreation` is ObjectCreation (C27).

    MTOSI 1.x writes a capital first: its `Alarm` is an `alarm`.
    """
    folded = element_name.lower()
    if folded in _NAMES:
        return _NAMES[folded]
    for generic in _GENERIC:
        if folded.endswith(generic.lower()):
            return generic
    return element_name[:1].upper() + element_name[1:]


def events_of(body: Any) -> list[etree._Element]:
    """Return the events of a notify message, as XML; empty for any other body."""
    if body is None:
        return []
    element = body if isinstance(body, etree._Element) else None
    if isinstance(body, RawXml | XmlObject):
        element = body.element() if isinstance(body, RawXml) else to_element(body)
    if element is None or split_clark(str(element.tag))[1] != "notify":
        return []
    holder = next((child for child in element if split_clark(str(child.tag))[1] == "message"), None)
    return [] if holder is None else [child for child in holder if isinstance(child.tag, str)]


def shared_name(events: Sequence[etree._Element]) -> str:
    """Return the logical name that all of these events share; empty if they differ."""
    names = {logical_name(split_clark(str(event.tag))[1]) for event in events}
    return names.pop() if len(names) == 1 else ""


def event_values(
    events: Sequence[etree._Element], attributes: Iterable[str], profile: BindingProfile
) -> dict[str, PropertyValue]:
    """Return the properties of Table 4 for a notification.

    If a message has several events, an attribute becomes a property only if it has the same value in all of them (C30).

    Args:
        attributes: names of Table 4, without `MTOSI_`.
        profile: forms of times, severities and event names (C26, C27, C33).

    Raises:
        ConfigError: a name that Table 4 does not have (R20a).
    """
    wanted = list(attributes)
    if unknown := sorted(set(wanted) - FILTER_ATTRIBUTES):
        raise ConfigError(f"Table 4 has no {', '.join(unknown)}; it has {', '.join(sorted(FILTER_ATTRIBUTES))}")
    found: dict[str, PropertyValue] = {}
    read = [(logical_name(split_clark(str(event.tag))[1]), fields_of(event)) for event in events if wanted]
    for name in wanted:
        values = [_attribute(event, fields, name, profile) for event, fields in read]
        if values and values[0] is not None and all(value == values[0] for value in values):
            found[PROPERTIES[name]] = values[0]
    return found


def _attribute(
    logical: str, fields: Mapping[str, etree._Element], name: str, profile: BindingProfile
) -> PropertyValue | None:
    if name == "EventType":
        return profile.event_name(logical)
    child = fields.get(name)
    if name == "probableCauseQualifier":
        cause = fields.get("probableCause")
        qualifier = ("" if cause is None else cause.get("qualifier") or "").strip()
        return qualifier or (None if child is None else _text(child, profile))
    if child is None:
        return None
    value = _FORMS[ATTRIBUTE_FORMS[name]](child, profile)
    return word(name, value) if isinstance(value, str) else value


def _child(element: etree._Element, *locals_: str) -> etree._Element | None:
    return next((child for child in element if split_clark(str(child.tag))[1] in locals_), None)


def _text(element: etree._Element, _: BindingProfile) -> str | None:
    """Return the text of an element, or of its first descendant that has text; None if there is no text."""
    return next((str(text).strip() for text in element.itertext() if str(text).strip()), None)


def _cause(element: etree._Element, profile: BindingProfile) -> str | None:
    """Return only the cause of a probableCause: its other elements (`ru`, `contra`) are not part of the name."""
    inner = _child(element, "probableCause", "type")
    if inner is not None:
        return _text(inner, profile)
    return (element.text or "").strip() or None


def _boolean(element: etree._Element, profile: BindingProfile) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(_text(element, profile) or "")


def _time(element: etree._Element, profile: BindingProfile) -> PropertyValue | None:
    text = _text(element, profile)
    if text is None or profile.time_form == "string":
        return text
    moment = moment_of(text)
    return None if moment is None else Long(moment.timestamp() * 1000)


def moment_of(value: object) -> dt.datetime | None:
    """Return the time of a field, which is text in MTOSI 1.x; UTC if it has no zone. None if it is no time."""
    moment = value if isinstance(value, dt.datetime) else None
    if isinstance(value, str):
        for parse in (parse_date_time, parse_loose_date_time):
            with suppress(ValueError, OverflowError):
                moment = parse(value)
                break
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _severity(element: etree._Element, profile: BindingProfile) -> PropertyValue | None:
    text = word("perceivedSeverity", _text(element, profile) or "")
    if profile.severity_form == "code" and text in SEVERITIES:
        return str(SEVERITIES.index(text))
    return text or None


def _name(element: etree._Element, profile: BindingProfile) -> str | None:
    """Return a name as `MD=EMS1/ME=NE-7` (C31). In MTOSI 1.x it has an element for each type."""
    parts = attribute_parts((split_clark(str(part.tag))[1], part.text or "") for part in element)
    for rdn in element:
        kind, value = _child(rdn, "type"), _child(rdn, "value")
        if kind is not None and kind.text and value is not None:
            parts.append((kind.text, value.text or ""))
    return "/".join(f"{escape_name_part(kind)}={escape_name_part(value)}" for kind, value in parts) or None


def _aliases(element: etree._Element, profile: BindingProfile) -> str | None:
    """Return aliases as `name=value`, sorted and joined by `;` (C31)."""
    pairs = []
    for alias in element:
        name, value = _child(alias, "aliasName"), _child(alias, "aliasValue")
        if name is not None:
            text = f"{_alias_part(name.text)}={_alias_part(value.text if value is not None else '')}"
            pairs.append(text)
    return ";".join(sorted(pairs)) or None


def _alias_part(text: str | None) -> str:
    return (text or "").replace("%", "%25").replace(";", "%3B").replace("=", "%3D")


_FORMS: Final[dict[AttributeForm, Callable[[etree._Element, BindingProfile], PropertyValue | None]]] = {
    "text": _text,
    "name": _name,
    "aliases": _aliases,
    "cause": _cause,
    "severity": _severity,
    "time": _time,
    "boolean": _boolean,
}
