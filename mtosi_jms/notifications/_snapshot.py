"""A picture of the network that notifications keep current: objects by full name, and the alarms that stand.

    snapshot = Snapshot(batch_of_objects)
    for event in subscriber:
        applied = apply_notification(snapshot, event)

| event | what becomes of the picture |
|---|---|
| ObjectCreation | the object is there; one of that name is replaced |
| ObjectDeletion | the object is gone, with all below its name and the alarms on them: no other event will tell |
| AttributeValueChange, StateChange | the attributes told have new values, the others stay (`attributes.told_values`) |
| ObjectDiscovery | the name found stands among the discovered ones, until an object with it is created |
| AlarmInformation | the alarm stands, or stands no more where the severity is CLEARED |

Nothing raises: what cannot be applied is said in the result. Events may come again, and in another order than they
happened in: what is older than what is known is not applied. Times are compared where there are some, the one at the
source before that at the operations system; events without time are taken in the order in which they come.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from mtosi_jms.errors import MtosiError
from mtosi_jms.jms.events import logical_name
from mtosi_jms.notifications._alarms import AlarmKey, alarm_key
from mtosi_jms.notifications._attributes import created_object, replaced, told_values
from mtosi_jms.notifications._tree import NameTree
from mtosi_jms.xmlbind import XmlObject

REMEMBERED: Final = 100_000
"""So many deleted objects and cleared alarms are remembered, lest an old event bring one back; the oldest go first."""

_NOTHING_KEPT: Final = frozenset(
    {"Heartbeat", "EventLossOccurred", "EventLossCleared", "FileTransferStatus", "BackupStatus"}
)


class Effect(enum.Enum):
    """What an event did to the picture."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    DISCOVERED = "discovered"
    ALARM_RAISED = "alarm raised"
    ALARM_CHANGED = "alarm changed"
    ALARM_CLEARED = "alarm cleared"


class Refusal(enum.Enum):
    """Why an event, or a part of it, was not applied."""

    UNKNOWN_EVENT = "no picture is kept of such events"
    UNKNOWN_OBJECT = "there is no such object"
    UNKNOWN_ATTRIBUTE = "the object has no such attributes"
    OUTDATED = "something newer is known"
    INCOMPLETE = "the event does not say what it is about"
    UNREADABLE = "the event holds what cannot be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is otherwise than before.

    Attributes:
        effect: what happened.
        name: full name of the object, or the name under which one was discovered.
        before: the object or alarm as it was; None where it was not there.
        after: as it is now; None where it is gone.
        fields: Python names of the attributes that are new, of a changed object.
        alarm: the identity of the alarm, for effects on alarms.
    """

    effect: Effect
    name: str
    before: Any = None
    after: Any = None
    fields: tuple[str, ...] = ()
    alarm: AlarmKey | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one event.

    Attributes:
        event: the event.
        changes: what is otherwise now; empty, too, where the event told what was known already.
        refused: why it, or a part of it, was not applied; None where all was.
        detail: what that part is.
    """

    event: Any
    changes: tuple[Change, ...] = ()
    refused: Refusal | None = None
    detail: str = ""


class Snapshot(Mapping[str, XmlObject]):
    """Objects by full name, `MD=EMS1/ME=NE-7`; for one thread at a time. Objects in it are replaced, never altered.

    Args:
        objects: what is known at first; those without a name are left out.
        alarms: those that stand at first, such as `getActiveAlarms` tells them.
        taken: when; older events are in the picture already, and are not applied.

    Attributes:
        alarms: the alarms that stand, by identity, in the order in which they were raised.
        discovered: discovery events by the name found.
    """

    def __init__(
        self, objects: Iterable[XmlObject] = (), alarms: Iterable[Any] = (), *, taken: dt.datetime | None = None
    ) -> None:
        self._objects: dict[str, XmlObject] = {}
        self._alarms: dict[AlarmKey, Any] = {}
        self._alarms_at: dict[str, dict[AlarmKey, None]] = {}
        self._discovered: dict[str, Any] = {}
        self._tree = NameTree(lambda name: name in self._objects or name in self._alarms_at)
        self._taken = None if taken is None else _aware(taken)
        self._ended: dict[str | AlarmKey, dt.datetime] = {}
        self._begun: dict[str | AlarmKey, dt.datetime] = {}
        self._told: dict[str, dict[str, dt.datetime]] = {}
        for found in objects:
            if name := _text(getattr(found, "name", None)):
                self._put(name, found)
        for alarm in alarms:
            if (key := alarm_key(alarm)) is not None and not _is_cleared(alarm):
                self._put_alarm(key, alarm)

    def __getitem__(self, name: str) -> XmlObject:
        return self._objects[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def alarms(self) -> Mapping[AlarmKey, Any]:
        """See the class."""
        return MappingProxyType(self._alarms)

    @property
    def discovered(self) -> Mapping[str, Any]:
        """See the class."""
        return MappingProxyType(self._discovered)

    def apply(self, event: Any) -> Applied:
        """See `apply_notification`."""
        kind = _kind_of(event)
        if kind in _NOTHING_KEPT:
            return Applied(event)
        apply = _APPLY.get(kind)
        if apply is None:
            return Applied(event, refused=Refusal.UNKNOWN_EVENT, detail=kind or type(event).__name__)
        when = _time_of(event)
        if when is not None and self._taken is not None and when < self._taken:
            return Applied(event, refused=Refusal.OUTDATED, detail="older than the picture")
        try:
            return apply(self, event, when)
        except MtosiError as error:
            return Applied(event, refused=Refusal.UNREADABLE, detail=str(error))

    # One method an event. Whatever can fail comes before the first change.

    def _create(self, event: Any, when: dt.datetime | None) -> Applied:
        made = created_object(event)
        name = _text(event.object_name) or _text(getattr(made, "name", None))
        if made is None or not name:
            return Applied(event, refused=Refusal.INCOMPLETE, detail="an object and its name are wanted")
        if _older(when, self._ended.get(name)) or _older(when, self._begun.get(name)):
            return Applied(event, refused=Refusal.OUTDATED, detail=name)
        before = self._objects.get(name)
        if before is not None and when is not None and self._begun.get(name) == when:
            return Applied(event)  # the same creation again; what changed since stays
        newer = {field for field, time in self._told.get(name, {}).items() if _older(when, time)}
        after = replaced(made, {field: getattr(before, field) for field in newer if hasattr(made, field)})
        self._put(name, after)
        self._discovered.pop(str(getattr(after, "discovered_name", None)), None)
        _remember(self._begun, name, when)
        if before is None:
            return Applied(event, (Change(effect=Effect.CREATED, name=name, after=after),))
        fields = _differing(before, after)
        change = Change(effect=Effect.CHANGED, name=name, before=before, after=after, fields=fields)
        return Applied(event, (change,) if before != after else ())

    def _delete(self, event: Any, when: dt.datetime | None) -> Applied:
        name = _text(event.object_name)
        if not name:
            return Applied(event, refused=Refusal.INCOMPLETE, detail="no object is named")
        if _older(when, self._begun.get(name)):
            return Applied(event, refused=Refusal.OUTDATED, detail=name)
        changes: list[Change] = []
        for inside in list(self._tree.within(name)):
            changes += [self._end_alarm(key, None, when) for key in list(self._alarms_at.get(inside, ()))]
            if inside in self._objects:
                changes.append(self._remove(inside, when))
        again = not changes and name in self._ended
        _remember(self._ended, name, when)
        if changes or again:
            return Applied(event, tuple(changes))
        return Applied(event, refused=Refusal.UNKNOWN_OBJECT, detail=name)

    def _change(self, event: Any, when: dt.datetime | None) -> Applied:
        name = _text(event.object_name)
        before = self._objects.get(name)
        if before is None:
            if not name:
                return Applied(event, refused=Refusal.INCOMPLETE, detail="no object is named")
            outdated = when is not None and name in self._ended and when <= self._ended[name]
            return Applied(event, refused=Refusal.OUTDATED if outdated else Refusal.UNKNOWN_OBJECT, detail=name)
        values, strange = told_values(before, event)
        times = self._told.setdefault(name, {})
        since = self._begun.get(name)
        late = {field for field in values if _older(when, times.get(field)) or _older(when, since)}
        if when is not None:
            times.update(dict.fromkeys(values.keys() - late, when))
        differing = {field: value for field, value in values.items() if getattr(before, field) != value}
        fresh = {field: value for field, value in differing.items() if field not in late}
        old = sorted(late & differing.keys())
        refused = Refusal.OUTDATED if old else Refusal.UNKNOWN_ATTRIBUTE if strange else None
        detail = f"{name}: {', '.join([*old, *strange])}" if refused else ""
        if not fresh:
            return Applied(event, refused=refused, detail=detail)
        after = replaced(before, fresh)
        self._put(name, after)
        change = Change(effect=Effect.CHANGED, name=name, before=before, after=after, fields=tuple(fresh))
        return Applied(event, (change,), refused, detail)

    def _discover(self, event: Any, when: dt.datetime | None) -> Applied:
        name = _text(getattr(event, "discovered_name", None))
        if not name:
            return Applied(event, refused=Refusal.INCOMPLETE, detail="nothing is named")
        before = self._discovered.get(name)
        if before is not None and _older(when, _time_of(before)):
            return Applied(event, refused=Refusal.OUTDATED, detail=name)
        self._discovered[name] = event
        change = Change(effect=Effect.DISCOVERED, name=name, before=before, after=event)
        return Applied(event, (change,) if before != event else ())

    def _tell_alarm(self, event: Any, when: dt.datetime | None) -> Applied:
        key = alarm_key(event)
        if key is None:
            return Applied(event, refused=Refusal.INCOMPLETE, detail="an alarm's object and cause are wanted")
        if _older(when, self._ended.get(key)) or _older(when, self._begun.get(key)):
            return Applied(event, refused=Refusal.OUTDATED, detail=key.object_name)
        before = self._alarms.get(key)
        if _is_cleared(event):
            if before is None:
                _remember(self._ended, key, when)
                return Applied(event)
            return Applied(event, (self._end_alarm(key, event, when),))
        self._put_alarm(key, event)
        _remember(self._begun, key, when)
        effect = Effect.ALARM_RAISED if before is None else Effect.ALARM_CHANGED
        change = Change(effect=effect, name=key.object_name, before=before, after=event, alarm=key)
        return Applied(event, (change,) if before != event else ())

    def _put(self, name: str, found: XmlObject) -> None:
        self._objects[name] = found
        self._tree.add(name)

    def _put_alarm(self, key: AlarmKey, alarm: Any) -> None:
        self._alarms[key] = alarm
        self._alarms_at.setdefault(key.object_name, {})[key] = None
        self._tree.add(key.object_name)

    def _remove(self, name: str, when: dt.datetime | None) -> Change:
        before = self._objects.pop(name)
        self._told.pop(name, None)
        self._begun.pop(name, None)
        _remember(self._ended, name, when)
        self._tree.forget(name)
        return Change(effect=Effect.DELETED, name=name, before=before)

    def _end_alarm(self, key: AlarmKey, after: Any, when: dt.datetime | None) -> Change:
        before = self._alarms.pop(key)
        there = self._alarms_at[key.object_name]
        del there[key]
        if not there:
            del self._alarms_at[key.object_name]
        self._begun.pop(key, None)
        _remember(self._ended, key, when)
        self._tree.forget(key.object_name)
        return Change(effect=Effect.ALARM_CLEARED, name=key.object_name, before=before, after=after, alarm=key)


def apply_notification(snapshot: Snapshot, event: Any) -> Applied:
    """Keep a snapshot current with one event; see the table of the module.

    Args:
        snapshot: what is known.
        event: what a `Subscriber` hands out: an event of any generated package, or anything else.

    Returns:
        What is otherwise now, and what was not applied and why. Nothing is raised.
    """
    return snapshot.apply(event)


_APPLY: Final[dict[str, Callable[[Snapshot, Any, dt.datetime | None], Applied]]] = {
    "ObjectCreation": Snapshot._create,
    "ObjectDeletion": Snapshot._delete,
    "AttributeValueChange": Snapshot._change,
    "StateChange": Snapshot._change,
    "ObjectDiscovery": Snapshot._discover,
    "AlarmInformation": Snapshot._tell_alarm,
}


def _kind_of(event: Any) -> str:
    """The logical name of an event that a class is known for; an alarm of an answer is as good as one of an event."""
    if not isinstance(event, XmlObject):
        return ""
    if event.__xml__.element:
        return logical_name(event.__xml__.element)
    return "AlarmInformation" if hasattr(event, "perceived_severity") and hasattr(event, "probable_cause") else ""


def _text(name: Any) -> str:
    return str(name) if name else ""


def _is_cleared(alarm: Any) -> bool:
    return str(alarm.perceived_severity) == "CLEARED"


def _time_of(event: Any) -> dt.datetime | None:
    """When an event happened, by its source, else by the operations system."""
    for name in ("source_time", "os_time"):
        found = getattr(event, name, None)
        if isinstance(found, dt.datetime):
            return _aware(found)
    return None


def _aware(time: dt.datetime) -> dt.datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=dt.UTC)


def _older(when: dt.datetime | None, known: dt.datetime | None) -> bool:
    return when is not None and known is not None and when < known


def _remember(times: dict[Any, dt.datetime], what: str | AlarmKey, when: dt.datetime | None) -> None:
    """Note when something began or ended, without the oldest notes if there are too many."""
    known = times.pop(what, None)
    time = known if when is None else when
    if time is not None:
        times[what] = time
    if len(times) > REMEMBERED:
        del times[next(iter(times))]


def _differing(before: Any, after: Any) -> tuple[str, ...]:
    names = [name for name in after.__dataclass_fields__ if name != "extras"]
    return tuple(name for name in names if getattr(before, name, None) != getattr(after, name))
