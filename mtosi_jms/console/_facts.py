"""Facts about a message, read from its MTOSI header; for a notification also its event.

The header in the envelope takes precedence over the properties, which fill what the header lacks. Facts that cannot be
read stay empty: the console shows invalid messages too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import SEVERITIES, event_values, events_of
from mtosi_jms.binding.profile import EVENT_CATEGORIES, FILTER_ATTRIBUTES, PROPERTIES
from mtosi_jms.binding.release1 import word
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import MtosiError
from mtosi_jms.header import BY_TAG, FIELDS
from mtosi_jms.jms import JmsMessage
from mtosi_jms.namespaces import split_clark
from mtosi_jms.patterns import Place, Standing, read_place, standing_of
from mtosi_jms.xmlbind import parse_xml

Values = Mapping[str, object]
Kind = Literal["request", "response", "fault", "notification", "other"]

OTHER: Final = "Other"
"""The category of events to which MTOSI gives none."""
UNKNOWN_SEVERITY: Final = "none"
"""The severity of events with none, or with one that MTOSI does not define."""

_KINDS: Final[Mapping[str, Kind]] = {
    "REQUEST": "request",
    "RESPONSE": "response",
    "ERROR": "fault",
    "NOTIFICATION": "notification",
}
_CHUNK: Final = 8192
_FARTHEST: Final = 16 * _CHUNK
"""Octets after which the search for a header ends."""
_LARGEST: Final = BOUNDS.console_event_bytes
"""Most octets of a message that is read as a whole for its events."""
_HEADER: Final = {field.name: field.property for field in FIELDS if field.property}
_NOT_MAPPED: Final = "MTOSI_correlationId"
"""No property of Table 2 (R3d), but some senders have it."""
_LONGEST: Final = 500
_PROFILE: Final = BindingProfile(time_form="millis")
_ALARM: Final = "AlarmInformation"
_TYPE, _SEVERITY = PROPERTIES["EventType"], PROPERTIES["perceivedSeverity"]


T = TypeVar("T")


def narrowed(found: Sequence[T], *tests: tuple[object, Callable[[T], bool]]) -> Sequence[T]:
    """Those that pass each test of a filter; one whose first part is false was not asked for."""
    for given, test in tests:
        if given:
            found = list(filter(test, found))
    return found


class Facts(NamedTuple):
    """The facts about a message.

    Attributes:
        operation: activityName, or the message's name without `Request` or `Response`.
        correlation_id: correlationId of the MTOSI header; empty if there is none.
        batch: batchSequenceNumber; None if there is none.
        standing: what a reply is by its own words.
        event: logical name of the event. This and the following fields are set only for notifications.
        category: category of the event: Inventory, Fault, Protection or Other.
        severity: perceivedSeverity by its name, or `none`.
        object_type: type of the object of the event.
        object_name: name of that object, as `MD=EMS1/ME=NE-7`; empty if it has none, or several events have several.
        cause: probable cause of an alarm.
    """

    kind: Kind
    operation: str
    correlation_id: str
    batch: int | None
    standing: Standing
    sender: str
    event: str = ""
    category: str = ""
    severity: str = ""
    object_type: str = ""
    object_name: str = ""
    cause: str = ""

    @property
    def is_last(self) -> bool:
        """Whether it is the last batch of a reply."""
        return self.standing is Standing.LAST


class Read(NamedTuple):
    """What the console reads in a message: the values of each report of an alarm and of each deletion of an object, by
    their properties (Table 4), times in milliseconds. `is_whole`: whether it was small enough to be read for events."""

    facts: Facts
    alarms: tuple[Values, ...] = ()
    deleted: tuple[Values, ...] = ()
    is_whole: bool = True


def read_message(message: JmsMessage) -> Read:
    """Read the facts about a message, and the events in it."""
    header = header_fields(message.body)
    properties = message.properties

    def text_of(field: str) -> str:
        value = header.get(field) or properties.get(_HEADER[field])
        return "" if value is None else str(value).strip()[:_LONGEST]

    kind = _KINDS.get(text_of("msgType"), "other")
    name = text_of("activityName") or text_of("msgName").removesuffix("Request").removesuffix("Response")
    place = read_place(header, {name: properties.get(_HEADER[name]) for name in Place.FIELDS})
    # A correlationId is compared unchanged, with its blanks.
    correlation = header.get("correlationId") or str(properties.get(_NOT_MAPPED) or "")
    standing = standing_of(place.number, place.end)
    common = (kind, name, correlation[:_LONGEST], place.number, standing, text_of("senderURI"))
    is_whole = len(message.body) <= _LARGEST
    if kind == "notification":
        events = _events(message.body, _in_notify) if is_whole else []
        alarms = tuple(event for event in events if event.get(_TYPE) == _ALARM and _SEVERITY in event)
        deleted = tuple(event for event in events if event.get(_TYPE) == "ObjectDeletion")
        return Read(Facts(*common, *_event(properties, events)), alarms, deleted, is_whole)
    if kind == "response" and name.startswith("getActiveAlarms"):
        return Read(Facts(*common), tuple(_events(message.body, _in_reply) if is_whole else ()), (), is_whole)
    return Read(Facts(*common))


def header_fields(body: bytes) -> dict[str, str]:
    """The texts of the simple fields of an envelope's MTOSI header; empty if there is none near its beginning."""
    parser = etree.XMLPullParser(
        events=("end",), tag=tuple(BY_TAG), resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        for start in range(0, min(len(body), _FARTHEST), _CHUNK):
            parser.feed(body[start : start + _CHUNK])
            for _, element in parser.read_events():
                return {split_clark(str(child.tag))[1]: child.text for child in element if child.text}
    except etree.XMLSyntaxError:
        pass
    return {}


def _event(properties: Mapping[str, object], events: Sequence[Values]) -> tuple[str, ...]:
    """Event, category, severity, type and name of the object, and cause: those that all events share. What the events
    lack is taken from the properties."""
    shared = {name: value for name, value in (events[0] if events else {}).items() if _is_shared(name, value, events)}

    def text(attribute: str) -> str:
        name = PROPERTIES[attribute]
        value = shared.get(name) if any(name in event for event in events) else properties.get(name)
        return "" if value is None else str(value)[:_LONGEST]

    event = text("EventType")
    severity = word("perceivedSeverity", text("perceivedSeverity"))
    if severity.isdigit() and int(severity) < len(SEVERITIES):
        severity = SEVERITIES[int(severity)]
    category = EVENT_CATEGORIES.get(event)
    return (
        event,
        OTHER if category is None else category.value,
        severity if severity in SEVERITIES else UNKNOWN_SEVERITY,
        text("objectType"),
        text("objectName"),
        text("probableCause") or text("nativeProbableCause"),
    )


def _is_shared(name: str, value: object, events: Sequence[Values]) -> bool:
    return all(event.get(name) == value for event in events)


def _events(body: bytes, find: Callable[[etree._Element], list[etree._Element]]) -> list[Values]:
    """The values of each event in a message; empty if it cannot be read."""
    try:
        found = find(parse_xml(body, odd_prefixes=[]))
        return [event_values([event], FILTER_ATTRIBUTES, _PROFILE) for event in found]
    except MtosiError:
        return []


def _in_notify(root: etree._Element) -> list[etree._Element]:
    return events_of(next(root.iter("{*}notify"), None))


def _in_reply(root: etree._Element) -> list[etree._Element]:
    """The alarms in a reply, whatever class they have."""
    return [parent for one in root.iter("{*}perceivedSeverity") if (parent := one.getparent()) is not None]
