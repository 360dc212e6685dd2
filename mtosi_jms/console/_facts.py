"""What a message says of itself, read as far as its MTOSI header; of a notification also what has happened.

The header in the envelope counts; where there is none, or it does not say, the properties do. What cannot be read is
left empty: the console shows messages that others have to judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from lxml import etree

from mtosi_jms.errors import MtosiError
from mtosi_jms.jms import BindingProfile, JmsMessage
from mtosi_jms.jms.events import SEVERITIES, event_values, events_of
from mtosi_jms.jms.profile import EVENT_CATEGORIES
from mtosi_jms.namespaces import HDR, clark, split_clark
from mtosi_jms.xmlbind import RawXml, parse_xml

Kind = Literal["request", "response", "fault", "notification", "other"]

OTHER: Final = "Other"
"""The category of events that MTOSI gives none."""
UNKNOWN_SEVERITY: Final = "none"
"""The severity of events that have none, or one that MTOSI does not know."""

_KINDS: Final[Mapping[str, Kind]] = {
    "REQUEST": "request",
    "RESPONSE": "response",
    "ERROR": "fault",
    "NOTIFICATION": "notification",
}
_HEADER: Final = clark(HDR, "header")
_CHUNK: Final = 8192
_FARTHEST: Final = 16 * _CHUNK
"""Octets after which a header that was not found is not looked for any more."""
_LARGEST: Final = 1 << 20
"""Octets of a notification that is read whole, where its properties do not say what has happened."""
_EVENT: Final = ("EventType", "perceivedSeverity", "objectType", "objectName")
_LONGEST: Final = 500
_PROFILE: Final = BindingProfile()


class Facts(NamedTuple):
    """What is known of a message.

    Attributes:
        kind: what it is.
        operation: activityName, or the message's name without `Request` or `Response`.
        correlation_id: correlationId of the MTOSI header; empty where there is none.
        batch: batchSequenceNumber, None where there is none.
        is_last: batchSequenceEndOfReply.
        sender: senderURI.
        event: logical name of the event; this and the following of notifications only.
        category: of the event: Inventory, Fault, Protection or Other.
        severity: perceivedSeverity by its name, or `none`.
        object_type: of what it is about.
        object_name: its name as `MD=EMS1/ME=NE-7`; empty where no property has it.
    """

    kind: Kind
    operation: str
    correlation_id: str
    batch: int | None
    is_last: bool
    sender: str
    event: str = ""
    category: str = ""
    severity: str = ""
    object_type: str = ""
    object_name: str = ""


def facts_of(message: JmsMessage) -> Facts:
    """What a message says of itself."""
    header = header_fields(message.body)
    properties = message.properties

    def said(field: str) -> str:
        value = header.get(field) or properties.get(f"MTOSI_{field}")
        return "" if value is None else str(value).strip()[:_LONGEST]

    kind = _KINDS.get(said("msgType"), "other")
    name = said("activityName") or said("msgName").removesuffix("Request").removesuffix("Response")
    number = said("batchSequenceNumber")
    batch = int(number) if number.isascii() and number.isdigit() and len(number) < 12 else None
    last = said("batchSequenceEndOfReply").lower() in ("true", "1")
    # A correlationId is compared as it came, blanks included.
    correlation = header.get("correlationId") or str(properties.get("MTOSI_correlationId") or "")
    common = (kind, name, correlation[:_LONGEST], batch, last, said("senderURI"))
    return Facts(*common, *_event(message)) if kind == "notification" else Facts(*common)


def header_fields(body: bytes) -> dict[str, str]:
    """The texts of the simple fields of an envelope's MTOSI header; empty where there is none near its beginning."""
    parser = etree.XMLPullParser(events=("end",), tag=_HEADER, resolve_entities=False, no_network=True, load_dtd=False)
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
    said: dict[str, object] = {name: properties[f"MTOSI_{name}"] for name in _EVENT if f"MTOSI_{name}" in properties}
    if "EventType" not in said:
        said = _from_body(message.body)
    event = str(said.get("EventType", ""))[:_LONGEST]
    severity = str(said.get("perceivedSeverity", ""))
    if severity.isdigit() and int(severity) < len(SEVERITIES):
        severity = SEVERITIES[int(severity)]
    category = EVENT_CATEGORIES.get(event)
    return (
        event,
        OTHER if category is None else category.value,
        severity if severity in SEVERITIES else UNKNOWN_SEVERITY,
        str(said.get("objectType", ""))[:_LONGEST],
        str(said.get("objectName", ""))[:_LONGEST],
    )


def object_name_in(body: bytes) -> str:
    """The name of what a notification is about, from its body; empty where it has none, or several."""
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
