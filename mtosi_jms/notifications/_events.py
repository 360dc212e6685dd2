"""Events as publishers and subscribers handle them: objects of any generated package, or XML of no known class.

In MTOSI 2.x the class of an event is that of its element, and a message has any number of events. In 1.x it is the
class of its type (`AlarmT`): a message (`EventT`) has a field for each kind of event, and holds one of them.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from mtosi_jms import xmlbind
from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import event_values, events_of, logical_name, moment_of
from mtosi_jms.binding.mapping import from_jms, judge_body
from mtosi_jms.binding.profile import BodyCheck
from mtosi_jms.binding.release1 import EVENT_INFO, FIELDS, value_of
from mtosi_jms.errors import ConfigError, EnvelopeError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.namespaces import NOTMSG, TMF854, clark, split_clark
from mtosi_jms.soap import Envelope, require_understood
from mtosi_jms.stubs.fmw.notmsg import Notify
from mtosi_jms.telemetry import of_message
from mtosi_jms.xmlbind import ClassTable, Extras, Field, Kept, RawXml, XmlObject, XmlWarning, decode, find_element

Event: TypeAlias = XmlObject | RawXml
"""An instance of the class of an event (`Alarm`, in MTOSI 1.x `AlarmT`), or its element where no class is known."""

_NOTIFY: Final = clark(NOTMSG, "notify")
_NOTIFY_1X: Final = clark(TMF854, "notify")
_EVENTS: Final = "common_event_information"
_SHIPPED: Final = Notify.__xml__.module.root
_TIMES: Final = frozenset({"sourceTime", "osTime", "startTime", "endTime"})
_OBJECT: Final = "objectName"


class Received(NamedTuple):
    """An event with its delivery: the envelope that it came in, and the message."""

    event: Event
    envelope: Envelope
    message: JmsMessage


def is_release1(event: object) -> bool:
    """Whether an event is one of MTOSI 1.x."""
    if isinstance(event, RawXml):
        return split_clark(event.tag)[0] == TMF854
    return isinstance(event, XmlObject) and event.__xml__.module.namespace == TMF854


def _notify_1x(root: str | None) -> tuple[type[XmlObject], ClassTable] | None:
    notify = find_element(_NOTIFY_1X, root)
    return None if notify is None else (notify, notify.__xml__.field("message").table())


def _kinds(table: ClassTable) -> list[Field]:
    return [field for field in table.fields if field.kind == "element"]


@lru_cache(1024)
def _element_of(table: ClassTable) -> str:
    if table.element is not None or table.module.namespace != TMF854:
        return table.element or ""
    found = _notify_1x(table.module.root)
    kinds = [] if found is None else _kinds(found[1])
    return next((field.local for field in kinds if table.is_a(field.table())), "")


def name_of(event: object) -> str:
    if isinstance(event, RawXml):
        return logical_name(split_clark(event.tag)[1])
    return logical_name(_element_of(event.__xml__)) if isinstance(event, XmlObject) else ""


def object_name_of(event: Event) -> str:
    if isinstance(event, XmlObject):
        return str(value_of(event, _OBJECT) or "")
    return str(event_values([event.element()], [_OBJECT], BindingProfile()).get(f"MTOSI_{_OBJECT}", ""))


def event_name(event: Event) -> str:
    """Return the logical name of an event: that of a `ResourceObjectCreation` is ObjectCreation (C27). Raises
    ConfigError: not an event, or an instance of a type such as `AlarmType` instead of an event's element."""
    if name := name_of(event):
        return name
    if isinstance(event, XmlObject):
        raise ConfigError(f"{type(event).__name__} is a type, not an event: take the class of its element")
    raise ConfigError(f"give an event, such as an Alarm, not {type(event).__name__}")


def notify_of(topic: str, events: Sequence[Event]) -> XmlObject:
    """Return the body of a message with these events. Raises ConfigError: there is none, no loaded package has its
    class, they are of several packages, or in MTOSI 1.x more than one."""
    roots = {event.__xml__.module.root for event in events if isinstance(event, XmlObject)}
    if not events or len(roots) > 1:
        raise ConfigError("the events of a message must be of one generated package, and at least one")
    root = roots.pop() if roots else _SHIPPED
    if any(map(is_release1, events)):
        return _notify_of_1x(topic, events, root)
    notify: Any = find_element(_NOTIFY, root)
    message = notify.__xml__.field("message").table().cls(**{_EVENTS: [e for e in events if isinstance(e, XmlObject)]})
    if kept := _kept(events):
        message.extras = Extras(elements=kept, excused=frozenset({_EVENTS}))
    made: XmlObject = notify(topic=topic, message=message)
    return made


def _notify_of_1x(topic: str, events: Sequence[Event], root: str) -> XmlObject:
    if len(events) > 1:
        raise ConfigError("a message of MTOSI 1.x has one event: publish each by itself")
    event = events[0]
    notify, table, field = _place_1x(root, name_of(event))
    if isinstance(event, RawXml):
        event = decode(event.xml, field.table().cls)
    made: XmlObject = notify(topic=topic, message=table.cls(**{field.name: event}))  # type: ignore[call-arg]
    return made


def _place_1x(root: str, name: str) -> tuple[type[XmlObject], ClassTable, Field]:
    """Return where MTOSI 1.x has an event: the class of `notify`, the table of what it holds, and the field. Raises
    ConfigError: no loaded package describes the event."""
    found = _notify_1x(root)
    for field in [] if found is None else _kinds(found[1]):
        if found is not None and logical_name(field.local) == name:
            return *found, field
    raise ConfigError(f"no generated package that is loaded has the event {name} of MTOSI 1.x")


def own_event(cls: type[XmlObject], object_name: XmlObject | None, **values: Any) -> XmlObject:
    """Return an event about the sender itself, in the release of its name; `values` that are None are left out. Raises
    ConfigError: the package has no such event."""
    given = {name: value for name, value in values.items() if value is not None}
    if object_name is None or not is_release1(object_name):
        return cls(**given, object_name=object_name)  # type: ignore[call-arg]
    *_, kind = _place_1x(object_name.__xml__.module.root, logical_name(cls.__xml__.element or ""))
    texts = {cls.__xml__.field(one).local: value for one, value in given.items()}
    texts |= {_OBJECT: object_name, "notificationId": random_id(), "objectType": "OT_OS"}
    fields = {FIELDS.get(field.local, field.local): field for field in _kinds(kind.table())}
    made = {fields[local].name: _as_1x(fields[local], value) for local, value in texts.items() if local in fields}
    event: XmlObject = kind.table().cls(**made)
    return event


def _as_1x(field: Field, value: Any) -> Any:
    is_text = isinstance(value, dt.datetime) and getattr(field.type, "arrow", "") != "timestamp"
    return xmlbind.ITU_TIME.format(value) if is_text else value


def _kept(events: Sequence[Event]) -> list[Kept]:
    """Return the events without a class, each with the position of the known event that it follows."""
    kept, known = [], 0
    for event in events:
        if isinstance(event, RawXml):
            kept.append(Kept(event, (_EVENTS, known - 1) if known else None))
        else:
            known += 1
    return kept


def events_in(body: Event) -> list[Event]:
    """Return the events in the body of a notification; any other body is returned as the only event."""
    if isinstance(body, RawXml) and body.tag == _NOTIFY_1X:  # without stubs of MTOSI 1.x
        return [RawXml.from_element(event) for event in events_of(body)] or [body]
    found = events_of_message(getattr(body, "message", None))
    return [body] if found is None else found


def events_of_message(message: object) -> list[Event] | None:
    """Return the events of a `NotifyMessage`, or of an `EventT` of MTOSI 1.x, in order; None for anything else."""
    known = _placed(message)
    if known is None:
        return None
    unknown: dict[tuple[str, int] | None, list[RawXml]] = {}
    extras = getattr(message, "extras", None)
    for kept in extras.elements if extras is not None else ():
        place = kept.after if kept.after in known else None
        unknown.setdefault(place, []).append(kept.xml)
    found: list[Event] = [*unknown.get(None, ())]
    for place, event in known.items():
        found += [event, *unknown.get(place, ())]
    return found


def _placed(message: object) -> dict[tuple[str, int], XmlObject] | None:
    known = getattr(message, _EVENTS, None)
    if known is not None:
        return {(_EVENTS, number): event for number, event in enumerate(known)}
    if not isinstance(message, XmlObject) or not is_release1(message):
        return None
    found = _notify_1x(message.__xml__.module.root)
    if found is None or not message.__xml__.is_a(found[1]):
        return None
    names = [*(message.extras.order if message.extras is not None else ()), *(one.name for one in _kinds(found[1]))]
    values = {name: getattr(message, name) for name in dict.fromkeys(names)}
    return {(name, 0): value for name, value in values.items() if value is not None}


def sole_event(event: Event) -> Event:
    """Return the event in a message that holds one and was given in its place."""
    found = events_of_message(event)
    return found[0] if found is not None and len(found) == 1 else event


def read_notification(
    message: JmsMessage,
    *,
    strict: bool = False,
    package: str | None = None,
    header: str = "",
    understands: Collection[str] = (),
    check: BodyCheck | None = None,
) -> tuple[Envelope, list[Event]]:
    """Return the envelope of a notification, with warnings of what departs from the rules, and its events.

    Args:
        strict, package, header: as for `from_jms`.
        understands: names of the header blocks that the application understands.
        check: checks the body (001-S12).

    Raises:
        XmlError: it cannot be read, has a header block that must be understood and is not, or has an empty body.
    """
    envelope = from_jms(message, strict=strict, package=package, header=header)
    require_understood(envelope, understands)
    judge_body(check, message, envelope)
    if envelope.body is None:
        raise EnvelopeError("the SOAP body is empty")
    events = events_in(envelope.body)
    for event in events:
        envelope.warnings.extend(_unreadable_times(event))
    return envelope, events


def log_warnings(log: logging.Logger, message: JmsMessage, envelope: Envelope) -> None:
    if envelope.warnings:
        text = "a notification with %d warnings, message %s, the first: %s"
        count, first = len(envelope.warnings), envelope.warnings[0]
        log.warning(text, count, message.message_id, first, extra=of_message(message))


def _unreadable_times(event: Event) -> Iterator[XmlWarning]:
    """Yield a warning for each time of an event of MTOSI 1.x that cannot be read: its schema takes any text."""
    if not isinstance(event, XmlObject) or not is_release1(event):
        return
    holders = [(_element_of(event.__xml__), event), (EVENT_INFO, value_of(event, EVENT_INFO))]
    path = "/Envelope/Body/notify/message"
    for element, holder in holders:
        path = f"{path}/{element}"
        for field in _kinds(holder.__xml__) if isinstance(holder, XmlObject) else ():
            text = getattr(holder, field.name) if FIELDS.get(field.local, field.local) in _TIMES else None
            if isinstance(text, str) and text.strip() and moment_of(text) is None:
                yield XmlWarning("C33", f"{text[:40]!r} is not a time: taken as none", f"{path}/{field.local}")
