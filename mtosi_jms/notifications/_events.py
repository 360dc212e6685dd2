"""Events as publishers and subscribers handle them: objects of any generated package, or XML of no known class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from mtosi_jms.binding.events import logical_name
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.namespaces import NOTMSG, clark, split_clark
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.fmw.notmsg import Notify
from mtosi_jms.xmlbind import Extras, Kept, RawXml, XmlObject, find_element

Event: TypeAlias = XmlObject | RawXml
"""An instance of the class of an event's element (`Alarm`), or the element itself where no class is known."""

_NOTIFY: Final = clark(NOTMSG, "notify")
_EVENTS: Final = "common_event_information"
_SHIPPED: Final = Notify.__xml__.module.root


class Received(NamedTuple):
    """An event with its delivery.

    Attributes:
        event: the event; for a message that is not a notification, its body.
        envelope: the envelope that it came in.
        message: the JMS message that it came in; the events of one message share it.
    """

    event: Event
    envelope: Envelope
    message: JmsMessage


def name_of(event: object) -> str:
    """Return the logical name of an event; empty for what is not an event."""
    if isinstance(event, RawXml):
        return logical_name(split_clark(event.tag)[1])
    return logical_name(event.__xml__.element or "") if isinstance(event, XmlObject) else ""


def event_name(event: Event) -> str:
    """Return the logical name of an event: that of a `ResourceObjectCreation` is ObjectCreation (C27).

    Raises:
        ConfigError: not an event, or an instance of a type such as `AlarmType` instead of an event's element.
    """
    if name := name_of(event):
        return name
    if isinstance(event, XmlObject):
        raise ConfigError(f"{type(event).__name__} is a type, not an event: take the class of its element")
    raise ConfigError(f"give an event, such as an Alarm, not {type(event).__name__}")


def notify_of(topic: str, events: Sequence[Event]) -> XmlObject:
    """Return the body of a message with these events, in the classes of their generated package.

    Raises:
        ConfigError: no events, or events of several packages.
    """
    roots = {event.__xml__.module.root for event in events if isinstance(event, XmlObject)}
    if not events or len(roots) > 1:
        raise ConfigError("the events of a message must be of one generated package, and at least one")
    notify: Any = find_element(_NOTIFY, roots.pop() if roots else _SHIPPED)
    message = notify.__xml__.field("message").table().cls(**{_EVENTS: [e for e in events if isinstance(e, XmlObject)]})
    if kept := _kept(events):
        message.extras = Extras(elements=kept, excused=frozenset({_EVENTS}))
    made: XmlObject = notify(topic=topic, message=message)
    return made


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
    found = events_of_message(getattr(body, "message", None))
    return [body] if found is None else found


def events_of_message(message: object) -> list[Event] | None:
    """Return the events of a `NotifyMessage` in order, also those without a class; None for anything else."""
    known = getattr(message, _EVENTS, None)
    if known is None:
        return None
    unknown: dict[int, list[RawXml]] = {}
    extras = getattr(message, "extras", None)
    for kept in extras.elements if extras is not None else ():
        place = kept.after[1] if kept.after is not None and kept.after[0] == _EVENTS else -1
        unknown.setdefault(place, []).append(kept.xml)
    found: list[Event] = [*unknown.get(-1, ())]
    for number, event in enumerate(known):
        found += [event, *unknown.get(number, ())]
    return found
