"""Facts about a message, read from its MTOSI header; for a notification also its event.

The header in the envelope takes precedence over the properties, which fill what the header lacks. Facts that cannot be
read stay empty: the console shows invalid messages too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import SEVERITIES, event_values, events_of
from mtosi_jms.binding.profile import EVENT_CATEGORIES
from mtosi_jms.binding.release1 import word
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import MtosiError
from mtosi_jms.header import BY_TAG
from mtosi_jms.jms import JmsMessage
from mtosi_jms.namespaces import split_clark
from mtosi_jms.patterns import Place, Standing, read_place, standing_of
from mtosi_jms.xmlbind import RawXml, parse_xml

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
"""Most octets of a notification that is read as a whole if its properties do not describe the event."""
_EVENT: Final = ("EventType", "perceivedSeverity", "objectType", "objectName")
_LONGEST: Final = 500
_PROFILE: Final = BindingProfile()


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
        object_name: name of that object, as `MD=EMS1/ME=NE-7`; empty if no property has it.
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

    @property
    def is_last(self) -> bool:
        """Whether it is the last batch of a reply."""
        return self.standing is Standing.LAST


def facts_of(message: JmsMessage) -> Facts:
    """Read the facts about a message."""
    header = header_fields(message.body)
    properties = message.properties

    def text_of(field: str) -> str:
        value = header.get(field) or properties.get(f"MTOSI_{field}")
        return "" if value is None else str(value).strip()[:_LONGEST]

    kind = _KINDS.get(text_of("msgType"), "other")
    name = text_of("activityName") or text_of("msgName").removesuffix("Request").removesuffix("Response")
    place = read_place(header, {name: properties.get(f"MTOSI_{name}") for name in Place.FIELDS})
    # A correlationId is compared unchanged, with its blanks.
    correlation = header.get("correlationId") or str(properties.get("MTOSI_correlationId") or "")
    standing = standing_of(place.number, place.end)
    common = (kind, name, correlation[:_LONGEST], place.number, standing, text_of("senderURI"))
    return Facts(*common, *_event(message)) if kind == "notification" else Facts(*common)


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


def _event(message: JmsMessage) -> tuple[str, str, str, str, str]:
    """Event, category, severity, type and name of the object of a notification."""
    properties = message.properties
    values: dict[str, object] = {name: properties[f"MTOSI_{name}"] for name in _EVENT if f"MTOSI_{name}" in properties}
    if "EventType" not in values:
        values = _from_body(message.body)
    event = str(values.get("EventType", ""))[:_LONGEST]
    severity = word("perceivedSeverity", str(values.get("perceivedSeverity", "")))
    if severity.isdigit() and int(severity) < len(SEVERITIES):
        severity = SEVERITIES[int(severity)]
    category = EVENT_CATEGORIES.get(event)
    return (
        event,
        OTHER if category is None else category.value,
        severity if severity in SEVERITIES else UNKNOWN_SEVERITY,
        str(values.get("objectType", ""))[:_LONGEST],
        str(values.get("objectName", ""))[:_LONGEST],
    )


def object_name_in(body: bytes) -> str:
    """The name of a notification's object, from its body; empty if it has none, or several."""
    return str(_from_body(body).get("objectName", ""))[:_LONGEST]


def _from_body(body: bytes) -> dict[str, object]:
    if len(body) > _LARGEST:
        return {}
    try:
        root = parse_xml(body, odd_prefixes=[])
        notify = next((one for one in root.iter() if str(one.tag).endswith("}notify")), None)
        events = [] if notify is None else events_of(RawXml.from_element(notify))
        found = event_values(events, _EVENT, _PROFILE)
    except MtosiError:
        return {}
    return {name.removeprefix("MTOSI_"): value for name, value in found.items()}
