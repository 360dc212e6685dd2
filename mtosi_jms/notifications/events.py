"""Events as publishers and subscribers handle them: objects of any generated package, or XML that no package knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.events import logical_name
from mtosi_jms.namespaces import NOTMSG, clark, split_clark
from mtosi_jms.stubs.fmw.notmsg import Notify
from mtosi_jms.xmlbind import Extras, Kept, RawXml, XmlObject, find_element

Event: TypeAlias = XmlObject | RawXml
"""An instance of the class of an event's element (`Alarm`), or the element itself where no class is known."""

_NOTIFY: Final = clark(NOTMSG, "notify")
_EVENTS: Final = "common_event_information"
_SHIPPED: Final = Notify.__xml__.module.root


def event_name(event: Any) -> str:
    """The logical name of an event: that of a `ResourceObjectCreation` is ObjectCreation (C27).

    Raises:
        ConfigError: it is an instance of a type, `AlarmType`, and not of an event's element.
    """
    if isinstance(event, RawXml):
        return logical_name(split_clark(event.tag)[1])
    if not isinstance(event, XmlObject) or not event.__xml__.element:
        raise ConfigError(f"{type(event).__name__} is a type, not an event: take the class of its element")
    return logical_name(event.__xml__.element)


def notify_of(topic: str, events: Sequence[Event]) -> XmlObject:
    """The body of a message with these events, in the classes of the package that they are of.

    Raises:
        ConfigError: no events, or events of several packages.
    """
    roots = {event.__xml__.module.root for event in events if isinstance(event, XmlObject)}
    if not events or len(roots) > 1:
        raise ConfigError("one message carries one event or more, all of one generated package")
    notify: Any = find_element(_NOTIFY, roots.pop() if roots else _SHIPPED)
    message = notify.__xml__.field("message").table().cls(**{_EVENTS: [e for e in events if isinstance(e, XmlObject)]})
    if kept := _kept(events):
        message.extras = Extras(elements=kept, excused=frozenset({_EVENTS}))
    made: XmlObject = notify(topic=topic, message=message)
    return made


def _kept(events: Sequence[Event]) -> list[Kept]:
    """The events without a class, each behind the known one that it follows."""
    kept, known = [], 0
    for event in events:
        if isinstance(event, RawXml):
            kept.append(Kept(event, (_EVENTS, known - 1) if known else None))
        else:
            known += 1
    return kept


def events_in(body: Any) -> list[Any]:
    """The events of a notification's body; what is no notification is given back alone, as it is."""
    found = events_of_message(getattr(body, "message", None))
    return [body] if found is None else found


def events_of_message(message: Any) -> list[Event] | None:
    """The events of a `NotifyMessage`, those that no class is known for among the others in their places.

    Returns:
        The events, None where it is no such message.
    """
    known = getattr(message, _EVENTS, None)
    if known is None:
        return None
    unknown: dict[int, list[RawXml]] = {}
    for kept in message.extras.elements if message.extras is not None else ():
        place = kept.after[1] if kept.after is not None and kept.after[0] == _EVENTS else -1
        unknown.setdefault(place, []).append(kept.xml)
    found: list[Event] = [*unknown.get(-1, ())]
    for number, event in enumerate(known):
        found += [event, *unknown.get(number, ())]
    return found
