"""The deployment sheet: what another party has to know of an OS's destinations (O12b).

Which destinations there are, of which kind and for what; which attributes of events become properties for selectors to
use, with the type and the form of their values (C26, C27, C31, C33); and how long messages live (O7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.jms import BindingProfile, NamingContext
from mtosi_jms.jms.profile import EVENT_CATEGORIES

if TYPE_CHECKING:
    from mtosi_jms.deployment._model import Deployment

_FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "objectName": ("String", "TYPE=value joined by /, as in MD=EMS1/ME=NE-7; / = % escaped (C31)"),
    "aliasNameList": ("String", "name=value joined by ;, sorted; ; = % escaped (C31)"),
    "isEdgePointRelated": ("Boolean", "TRUE or FALSE (C26)"),
    "rootCauseAlarmIndication": ("Boolean", "TRUE or FALSE (C26)"),
}


def sheet_of(deployment: Deployment, names: NamingContext) -> dict[str, Any]:
    """The sheet of a verified deployment, as JSON has it.

    Args:
        deployment: one without a fatal problem.
        names: the naming context that its destinations are looked up in.

    Raises:
        NamingError: a destination cannot be resolved.
    """
    profile = deployment.profile
    return {
        "name": deployment.name,
        "destinations": list(_destinations(deployment, names)),
        "messages": {
            "delivery_mode": profile.delivery_mode.name,
            "priority": profile.priority,
            "time_to_live_ms": {kind: profile.time_to_live_ms(kind) for kind in ("REQUEST", "RESPONSE", "ERROR")},
        },
        "notifications": _notifications(deployment) if deployment.topics else None,
    }


def _destinations(deployment: Deployment, names: NamingContext) -> Iterator[dict[str, Any]]:
    """One entry for each use of a destination, with all services that use it so."""
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def add(role: str, address: Any, what: str, key: str = "services") -> None:
        destination = names.lookup(address)
        entry = found.setdefault(
            (role, str(destination)),
            {
                "name": names.uri_of(address),
                "kind": destination.kind,
                "physical": destination.name,
                "role": role,
                "services": [],
                "categories": [],
            },
        )
        if what not in entry[key]:
            entry[key].append(what)

    for service, address in deployment.suppliers.items():
        add("serves", address, service)
    for service, asking in deployment.requestors.items():
        add("asks", asking.destination, service)
        if not asking.temporary_reply:
            add("replies", asking.reply_to or deployment.name, service)
        if asking.failure_reply_to:
            add("failures", asking.failure_reply_to, service)
    for category, address in deployment.topics.items():
        add("publishes", address, category.value, "categories")
    yield from found.values()
    if temporary := [service for service, asking in deployment.requestors.items() if asking.temporary_reply]:
        yield {
            "name": None,
            "kind": "temporary-queue",
            "physical": None,
            "role": "replies",
            "services": temporary,
            "categories": [],
        }


def _notifications(deployment: Deployment) -> dict[str, Any]:
    profile = deployment.profile
    events = {event: profile.topic_category(event) for event in EVENT_CATEGORIES}
    return {
        "properties": [_property(name, profile) for name in sorted(profile.filter_properties)],
        "events": [
            {
                "event": profile.event_name(event),
                "category": category.value,
                "time_to_live_ms": profile.time_to_live_ms("NOTIFICATION", event),
            }
            for event, category in events.items()
            if category in deployment.topics and category is not None
        ],
        "time_to_live_ms": profile.time_to_live_ms("NOTIFICATION"),
    }


def _property(name: str, profile: BindingProfile) -> dict[str, str]:
    kind, form = _FORMS.get(name, ("String", "as the event has it"))
    if name == "EventType":
        form = "the event's name, as the events below (C27)"
    elif name in ("osTime", "sourceTime") and profile.time_form == "millis":
        kind, form = "Long", "milliseconds since 1970, can be compared (C33)"
    elif name in ("osTime", "sourceTime"):
        form = "xsd:dateTime as the event has it, for = and <> alone (C33)"
    elif name == "perceivedSeverity":
        by_code = profile.severity_form == "code"
        form = "number of MTOSI 1.x, from '0' INDETERMINATE to '5' CLEARED (C26)" if by_code else "its name (C26)"
    return {"property": f"MTOSI_{name}", "type": kind, "form": form}


def text_of(sheet: Mapping[str, Any]) -> str:
    """A sheet in lines, for people."""
    return "\n".join(_lines(sheet))


def _lines(sheet: Mapping[str, Any]) -> Iterator[str]:
    yield f"deployment of {sheet['name']}"
    for entry in sheet["destinations"]:
        what = ", ".join((*entry["services"], *entry["categories"]))
        where = f"{entry['name']} ({entry['kind']} {entry['physical']})" if entry["name"] else "a temporary queue"
        yield f"{entry['role']} {what} at {where}"
    messages = sheet["messages"]
    lives = ", ".join(f"{kind} {_life(life)}" for kind, life in messages["time_to_live_ms"].items())
    yield f"messages are {messages['delivery_mode']}, priority {messages['priority']}; they live: {lives}"
    notifications = sheet["notifications"]
    if notifications is None:
        return
    if not notifications["properties"]:
        yield "no attribute of an event becomes a property"
    for entry in notifications["properties"]:
        yield f"{entry['property']} {entry['type']}: {entry['form']}"
    for entry in notifications["events"]:
        yield f"{entry['event']} on {entry['category']} lives {_life(entry['time_to_live_ms'])}"
    yield f"other events live {_life(notifications['time_to_live_ms'])}"


def _life(milliseconds: int) -> str:
    """Milliseconds in the largest unit that counts them whole."""
    if milliseconds == 0:
        return "for ever"
    for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"
