"""A snapshot of the network that notifications keep current: objects by full name, and the active alarms.

docs/notifications.md has the effect of each event. No event raises an error: the result says what cannot be applied.
Events may be repeated, and arrive out of order: what is older than the known state, or than the deletion of an object
above, is not applied. Times are compared if the events have them: the source's, or else that of the operations system.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from lxml import etree

from mtosi_jms.binding.events import moment_of
from mtosi_jms.binding.release1 import value_of, word
from mtosi_jms.errors import MtosiError
from mtosi_jms.inventory import is_object, type_class
from mtosi_jms.namespaces import split_clark
from mtosi_jms.notifications._events import Event, name_of
from mtosi_jms.xmlbind import Extras, RawXml, XmlObject, decode, to_element

_NOTHING_KEPT: Final = frozenset(
    {"Heartbeat", "EventLossOccurred", "EventLossCleared", "FileTransferStatus", "BackupStatus"}
)
_OBJECT: Final = "objectName"
_QUALIFIER: Final = "probableCauseQualifier"
_NEVER: Final = frozenset({"name", "extras"})
"""Fields that no event changes: a name stays while the object lives, extras are merged separately."""


class AlarmKey(NamedTuple):
    """The identity of an alarm: the same object, layer and probable cause make the same alarm.

    Texts are empty if the alarm does not have them. `mtosi_jms.spark.jobs` and the simulator use the same identity.

    Attributes:
        object_name: the object in trouble, `MD=EMS1/ME=NE-7`.
        layer_rate: the layer; a layer of the vendor follows after a colon.
        probable_cause: the cause; a cause of the vendor follows after a colon.
        qualifier: distinguishes alarms with the same cause on the same object: the attribute of the probable cause, or
            the alarm's element probableCauseQualifier, as `AlarmIdType` has it.
        ru: whether the cause lies in a replaceable unit.
        contra: whether it lies in the opposite direction.
    """

    object_name: str
    layer_rate: str
    probable_cause: str
    qualifier: str = ""
    ru: bool = False
    contra: bool = False


def alarm_key(alarm: XmlObject) -> AlarmKey | None:
    """Return the identity of an alarm event, an alarm of `getActiveAlarms`, or an `AlarmIdType`, of any package; None
    if its object or its cause is missing."""
    name, cause = value_of(alarm, _OBJECT), value_of(alarm, "probableCause")
    what = _extended(getattr(cause, "probable_cause", getattr(cause, "type", None)), getattr(cause, "extension", None))
    what = what or _text(getattr(alarm, "native_probable_cause", None))
    if not name or not what:
        return None
    layer = getattr(alarm, "layer_rate", None)
    return AlarmKey(
        str(name),
        _extended(getattr(layer, "value", layer), getattr(layer, "extension", None)),
        what,
        _text(getattr(cause, "qualifier", None)).strip() or _own_qualifier(alarm),
        getattr(cause, "ru", None) is True,
        getattr(cause, "contra", None) is True,
    )


def _own_qualifier(alarm: XmlObject) -> str:
    """Return the qualifier that is an element of the alarm, where no schema of an alarm event has it."""
    found = getattr(alarm, "probable_cause_qualifier", None)
    if not found and isinstance(alarm, XmlObject):
        raw = next((one for one in alarm.unknown_elements() if split_clark(one.tag)[1] == _QUALIFIER), None)
        found = None if raw is None else "".join(map(str, raw.element().itertext()))
    return _text(found).strip()


class Effect(enum.Enum):
    """What an event did to the snapshot."""

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
    """One thing that has changed.

    Attributes:
        name: full name of the object, or the name under which one was discovered.
        fields: Python names of the attributes with new values, if an object has changed.
        alarm: the identity of the alarm, for effects on alarms.
    """

    effect: Effect
    name: str
    before: XmlObject | None = None
    after: XmlObject | None = None
    fields: tuple[str, ...] = ()
    alarm: AlarmKey | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of applying one event: what has changed, and why what is in `detail` was not applied."""

    event: Event
    changes: tuple[Change, ...] = ()
    refused: Refusal | None = None
    detail: str = ""


class Snapshot(Mapping[str, XmlObject]):
    """Objects by full name, `MD=EMS1/ME=NE-7`; for one thread at a time. Objects in it are replaced, never altered.

    Args:
        objects: the objects known at first; those without a name are left out.
        alarms: the alarms active at first, as in an answer to `getActiveAlarms`.
        taken: when the objects were read; older events are already reflected in them, and are not applied.
        remembered: how many deleted objects and cleared alarms are remembered, so that an old event does not bring one
            back; the oldest are forgotten first.
    """

    def __init__(
        self,
        objects: Iterable[XmlObject] = (),
        alarms: Iterable[XmlObject] = (),
        *,
        taken: dt.datetime | None = None,
        remembered: int = 100_000,
    ) -> None:
        self._objects: dict[str, XmlObject] = {}
        self._alarms: dict[AlarmKey, XmlObject] = {}
        self._alarms_at: dict[str, dict[AlarmKey, None]] = {}
        self._discovered: dict[str, XmlObject] = {}
        self._tree = NameTree(lambda name: name in self._objects or name in self._alarms_at)
        self._taken = None if taken is None else _aware(taken)
        self._remembered = remembered
        self._ended: dict[str | AlarmKey, dt.datetime] = {}
        self._begun: dict[str | AlarmKey, dt.datetime] = {}
        self._value_times: dict[str, dict[str, dt.datetime]] = {}
        for found in objects:
            self.keep(found)
        for alarm in alarms:
            if (key := alarm_key(alarm)) is not None and not _is_cleared(alarm):
                self._put_alarm(key, alarm)

    def __getitem__(self, name: str) -> XmlObject:
        return self._objects[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def keep(self, found: XmlObject) -> None:
        """Keep an object as it was read; one of its name is replaced. An object without a name is left out."""
        if name := _text(getattr(found, "name", None)):
            self._put(name, found)

    @property
    def alarms(self) -> Mapping[AlarmKey, XmlObject]:
        """The active alarms by identity, in the order in which they were raised."""
        return MappingProxyType(self._alarms)

    @property
    def discovered(self) -> Mapping[str, XmlObject]:
        """Discovery events by the discovered name."""
        return MappingProxyType(self._discovered)

    def _apply(self, event: Event) -> Applied:
        kind = _kind_of(event)
        if kind in _NOTHING_KEPT:
            return Applied(event)
        apply = _APPLY.get(kind)
        if apply is None:
            return Applied(event, refused=Refusal.UNKNOWN_EVENT, detail=kind or type(event).__name__)
        when = _time_of(event)
        if _older(when, self._taken):
            return Applied(event, refused=Refusal.OUTDATED, detail="older than the picture")
        try:
            return apply(self, event, when)
        except MtosiError as error:
            return Applied(event, refused=Refusal.UNREADABLE, detail=str(error))

    # One method for each event. Whatever can fail comes before the first change.

    def _create(self, event: Any, when: dt.datetime | None) -> Applied:
        made = _created_object(event)
        name = _text(value_of(event, _OBJECT)) or _text(getattr(made, "name", None))
        if made is None or not name:
            detail = f"the object is missing: {name}" if name else "the object or its name is missing"
            return Applied(event, refused=Refusal.INCOMPLETE, detail=detail)
        if _older(when, self._gone(name)) or _older(when, self._begun.get(name)):
            return Applied(event, refused=Refusal.OUTDATED, detail=name)
        before = self._objects.get(name)
        if before is not None and when is not None and self._begun.get(name) == when:
            return Applied(event)  # the same creation again; later changes stay
        newer = {field for field, time in self._value_times.get(name, {}).items() if _older(when, time)}
        after = _replaced(made, {field: getattr(before, field) for field in newer if hasattr(made, field)})
        self._put(name, after)
        self._discovered.pop(str(getattr(after, "discovered_name", None)), None)
        self._remember(self._begun, name, when)
        if before is None:
            return Applied(event, (Change(effect=Effect.CREATED, name=name, after=after),))
        fields = _differing(before, after)
        change = Change(effect=Effect.CHANGED, name=name, before=before, after=after, fields=fields)
        return Applied(event, (change,) if before != after else ())

    def _delete(self, event: Any, when: dt.datetime | None) -> Applied:
        name = _text(value_of(event, _OBJECT))
        if not name:
            return Applied(event, refused=Refusal.INCOMPLETE, detail="no object is named")
        changes: list[Change] = []
        for inside in list(self._tree.within(name)):
            alarms = [key for key in self._alarms_at.get(inside, ()) if not _older(when, self._begun.get(key))]
            changes += [self._end_alarm(key, None) for key in alarms]
            if inside in self._objects and not _older(when, self._begun.get(inside)):
                changes.append(self._remove(inside))
        again = self._gone(name) is not None
        self._remember(self._ended, name, when)
        if name in self._objects:
            return Applied(event, tuple(changes), Refusal.OUTDATED, name)
        if changes or again:
            return Applied(event, tuple(changes))
        return Applied(event, refused=Refusal.UNKNOWN_OBJECT, detail=name)

    def _change(self, event: Any, when: dt.datetime | None) -> Applied:
        name = _text(value_of(event, _OBJECT))
        before = self._objects.get(name)
        if before is None:
            if not name:
                return Applied(event, refused=Refusal.INCOMPLETE, detail="no object is named")
            gone = self._gone(name)
            outdated = when is not None and gone is not None and when <= gone
            return Applied(event, refused=Refusal.OUTDATED if outdated else Refusal.UNKNOWN_OBJECT, detail=name)
        values, strange = _changed_values(before, event)
        times = self._value_times.setdefault(name, {})
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
        after = _replaced(before, fresh)
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

    def _update_alarm(self, event: Any, when: dt.datetime | None) -> Applied:
        key = alarm_key(event)
        if key is None:
            return Applied(event, refused=Refusal.INCOMPLETE, detail="the alarm's object or cause is missing")
        known = (self._gone(key.object_name), self._ended.get(key), self._begun.get(key))
        if any(_older(when, one) for one in known):
            return Applied(event, refused=Refusal.OUTDATED, detail=key.object_name)
        before = self._alarms.get(key)
        if _is_cleared(event):
            if before is None:
                self._remember(self._ended, key, when)
                return Applied(event)
            self._remember(self._ended, key, when)
            return Applied(event, (self._end_alarm(key, event),))
        self._put_alarm(key, event)
        self._remember(self._begun, key, when)
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

    def _gone(self, name: str) -> dt.datetime | None:
        """Return when the object, or one above it, was deleted last; None if that is not known."""
        times = []
        while name:
            if (time := self._ended.get(name)) is not None:
                times.append(time)
            name = name.rpartition("/")[0]
        return max(times, default=None)

    def _remove(self, name: str) -> Change:
        before = self._objects.pop(name)
        self._value_times.pop(name, None)
        self._begun.pop(name, None)
        self._tree.forget(name)
        return Change(effect=Effect.DELETED, name=name, before=before)

    def _end_alarm(self, key: AlarmKey, after: Any) -> Change:
        before = self._alarms.pop(key)
        there = self._alarms_at[key.object_name]
        del there[key]
        if not there:
            del self._alarms_at[key.object_name]
        self._begun.pop(key, None)
        self._tree.forget(key.object_name)
        return Change(effect=Effect.ALARM_CLEARED, name=key.object_name, before=before, after=after, alarm=key)

    def _remember(
        self, times: dict[str | AlarmKey, dt.datetime], what: str | AlarmKey, when: dt.datetime | None
    ) -> None:
        """Note when something began or ended; the oldest notes are dropped if there are too many."""
        known = times.pop(what, None)
        if when is not None or known is not None:
            times[what] = max(one for one in (known, when) if one is not None)
        if len(times) > self._remembered:
            del times[next(iter(times))]


def apply_notification(snapshot: Snapshot, event: Event) -> Applied:
    """Keep a snapshot current with what a `Subscriber` hands out; see docs/notifications.md. Returns what has changed,
    and what was not applied and why. Nothing is raised."""
    return snapshot._apply(event)


_APPLY: Final[dict[str, Callable[[Snapshot, Any, dt.datetime | None], Applied]]] = {
    "ObjectCreation": Snapshot._create,
    "ObjectDeletion": Snapshot._delete,
    "AttributeValueChange": Snapshot._change,
    "StateChange": Snapshot._change,
    "ObjectDiscovery": Snapshot._discover,
    "AlarmInformation": Snapshot._update_alarm,
}


def _kind_of(event: Event) -> str:
    if not isinstance(event, XmlObject):
        return ""
    is_alarm = hasattr(event, "perceived_severity") and hasattr(event, "probable_cause")
    return name_of(event) or ("AlarmInformation" if is_alarm else "")


def _text(name: object) -> str:
    return str(name) if name else ""


def _extended(value: object, extension: object) -> str:
    text = _text(value)
    return f"{text}:{extension}" if text and extension else text


def _is_cleared(alarm: Any) -> bool:
    return word("perceivedSeverity", str(alarm.perceived_severity)) == "CLEARED"


def _time_of(event: Event) -> dt.datetime | None:
    times = (moment_of(value_of(event, field)) for field in ("sourceTime", "osTime"))
    return next((time for time in times if time is not None), None)


def _aware(time: dt.datetime) -> dt.datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=dt.UTC)


def _older(when: dt.datetime | None, known: dt.datetime | None) -> bool:
    return when is not None and known is not None and when < known


def _differing(before: XmlObject, after: XmlObject) -> tuple[str, ...]:
    names = [name for name in after.__dataclass_fields__ if name != "extras"]
    return tuple(name for name in names if getattr(before, name, None) != getattr(after, name))


def _created_object(event: Event) -> XmlObject | None:
    """Return the object in a creation event, in the class of its type (`ManagedElementType`) and not of its element
    (`Me`)."""
    for found in _inside(getattr(event, "object", None)):
        if isinstance(found, XmlObject) and is_object(found.__xml__):
            return _as(type_class(found.__xml__).cls, found)
    return None


def _changed_values(before: XmlObject, event: Event) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes in a change event, an object or themselves, with their values, and the names that the
    object does not have. A nil value means that the attribute is now empty; it stays nil."""
    values: dict[str, Any] = {}
    strange: list[str] = []
    for entry in _inside(getattr(event, "attribute_list", None)):
        holder = entry if isinstance(entry, XmlObject) and is_object(entry.__xml__) else _alone(type(before), entry)
        fields = {field.name for field in dataclasses.fields(before)}
        for name, value in _set_values(holder):
            if name in fields:
                values[name] = value
            else:
                strange.append(name)
        strange += [raw.tag for raw in holder.unknown_elements()]
    return values, strange


def _replaced(before: XmlObject, values: Mapping[str, Any]) -> XmlObject:
    """Return the object with new values, without the spelling of the values that they replace."""
    after: XmlObject = dataclasses.replace(before, **values)
    if after.extras is not None:
        leaves = {place: leaf for place, leaf in after.extras.leaves.items() if place[0] not in values}
        after.extras = dataclasses.replace(after.extras, leaves=leaves)
    return after


def _inside(holder: Any) -> Iterator[XmlObject | RawXml]:
    if isinstance(holder, XmlObject):
        yield from getattr(holder, "any_", ())
        yield from holder.unknown_elements()


def _set_values(holder: XmlObject) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(holder):
        value = getattr(holder, field.name)
        if field.name not in _NEVER and value is not None and value != []:
            yield field.name, value


def _alone(cls: type[XmlObject], entry: XmlObject | RawXml) -> XmlObject:
    """Return an object of a class that has just one attribute, which arrived without an object around it."""
    holder = etree.Element("attributes")
    holder.append(entry.element() if isinstance(entry, RawXml) else to_element(entry))
    made: XmlObject = decode(etree.tostring(holder), cls)
    return made


def _as(cls: type[XmlObject], found: XmlObject) -> XmlObject:
    values = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    extras = values.pop("extras", None)
    made = cls(**values)
    made.extras = dataclasses.replace(extras, element="") if isinstance(extras, Extras) else None
    return made


class NameTree:
    """The names in use (`used`, asked before one is removed), and those above them, to find what is below a name."""

    def __init__(self, used: Callable[[str], bool]) -> None:
        self._used = used
        self._below: dict[str, dict[str, None]] = {}

    def add(self, name: str) -> None:
        while name:
            above = name.rpartition("/")[0]
            known = name in self._below.setdefault(above, {})
            self._below[above][name] = None
            if known:
                return
            name = above

    def forget(self, name: str) -> None:
        """Remove a name and the names above it, unless they are in use or have names below them."""
        while name and not self._below.get(name) and not self._used(name):
            self._below.pop(name, None)
            above = name.rpartition("/")[0]
            self._below.get(above, {}).pop(name, None)
            name = above

    def within(self, name: str) -> Iterator[str]:
        """Yield the name and all names below it, outermost first."""
        waiting = [name]
        while waiting:
            found = waiting.pop()
            yield found
            waiting.extend(reversed(self._below.get(found, {})))
