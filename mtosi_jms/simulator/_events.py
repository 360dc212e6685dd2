"""What a network tells about itself: a stream of notifications, and what the network looks like after them.

    network = Network(elements=20, technology="SDH")
    told = list(network.events(100))
    inventory = network.after(told)                        # full name to object
    alarms = standing_alarms(told)                         # identity to alarm

The stream has creations and deletions of elements, links that go and come again, new attribute values, new states,
alarms that are raised and cleared under the same identity, and heartbeats. It is the same for the same network, seed
and count, and a longer one begins with the shorter one. What it tells is true: nothing is told of an object that is
not there, a new value is another one than before, and an element goes only after its alarms and its links.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.simulator._parts import Resource, layer
from mtosi_jms.stubs.fmw.avc import AttributeValueChangeTypeAttributeList
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.ei import EventInformationType
from mtosi_jms.stubs.fmw.gen import AnyListType
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.fmw.sc import StateChangeTypeAttributeList
from mtosi_jms.stubs.nra.alm import Alarm, AlarmType
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityType, ServiceAffectingType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrb.rscsc import ResourceStateChange
from mtosi_jms.stubs.nrf.com import ResourceFulfillmentStateEnumType
from mtosi_jms.stubs.nrf.eq import Eq, EquipmentType
from mtosi_jms.stubs.nrf.me import CommunicationStateType, ManagedElementType, Me
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType, Ptp
from mtosi_jms.stubs.nrf.tl import Tl, TopologicalLinkType
from mtosi_jms.xmlbind import Nil

if TYPE_CHECKING:
    from mtosi_jms.simulator._network import Network

START: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""The time of the first event where none is given."""

_ELEMENTS: Final[dict[type[Resource], tuple[str, type[Resource]]]] = {
    ManagedElementType: ("ME", Me),
    EquipmentType: ("EQ", Eq),
    PhysicalTerminationPointType: ("PTP", Ptp),
    TopologicalLinkType: ("TL", Tl),
}
"""Class of an object to its type's name and the class of its element, which events carry."""
_VALUES: Final = ("user_label", "software_version")
"""Attributes that change: of an element both, of other objects the first."""
_SEVERITIES: Final = (PerceivedSeverityType.CRITICAL, PerceivedSeverityType.MAJOR, PerceivedSeverityType.MINOR)
_KINDS: Final = {"raise": 28, "clear": 22, "value": 18, "state": 12, "link": 6, "create": 5, "delete": 3, "beat": 6}
"""How often each kind is told, in parts of 100."""


def stream(network: Network, count: int, *, seed: int, start: dt.datetime) -> Iterator[EventInformationType]:
    """See `Network.events`.

    Raises:
        ConfigError: a negative count, or a start without time zone.
    """
    if count < 0 or start.tzinfo is None:
        raise ConfigError("events take a count from 0, and a start with a time zone")
    return _stream(network, count, seed, start)


def _stream(network: Network, count: int, seed: int, start: dt.datetime) -> Iterator[EventInformationType]:
    story = _Story(network, random.Random(f"{network.seed}/events/{seed}"))
    now = start
    for number in range(1, count + 1):
        event = story.next()
        event.notification_id = f"{network.domain}-{number}"
        event.source_time = event.os_time = now
        yield event
        now += dt.timedelta(seconds=story.chance.randrange(1, 30))


class _Story:
    """What has happened so far: little beside the network itself, which is made anew from its numbers.

    Attributes:
        chance: decides all that is open.
        created: elements that were not there at the start, and are there.
        gone: elements that were there at the start, and are not.
        cut: links that are not there.
        alarms: those that last, by their identity.
        values: what was last told of an object's attribute.
        pending: events that must come next, since the last one was their beginning.
    """

    def __init__(self, network: Network, chance: random.Random) -> None:
        self.network = network
        self.chance = chance
        self.created: list[int] = []
        self.gone: set[int] = set()
        self.cut: dict[int, None] = {}
        self.alarms: dict[str, Alarm] = {}
        self.values: dict[tuple[str, str], Any] = {}
        self.pending: deque[EventInformationType] = deque()
        self.next_element = network.elements
        self.kinds: dict[str, Callable[[], EventInformationType | None]] = {
            "raise": self._raise_alarm,
            "clear": self._clear_alarm,
            "value": self._change_value,
            "state": self._change_state,
            "link": self._change_link,
            "create": self._create_element,
            "delete": self._delete_element,
            "beat": self._beat,
        }

    def next(self) -> EventInformationType:
        """The next event."""
        while not self.pending:
            (kind,) = self.chance.choices([*_KINDS], [*_KINDS.values()])
            event = self.kinds[kind]()
            if event is not None:
                return event
        return self.pending.popleft()

    def _element(self) -> int | None:
        """One of the elements that are there."""
        if self.created and self.chance.random() < 0.1:
            return self.chance.choice(self.created)
        for _ in range(20):  # most elements are there, so a draw or two is enough
            index = self.chance.randrange(self.network.elements) if self.network.elements else -1
            if index >= 0 and index not in self.gone:
                return index
        return self.chance.choice(self.created) if self.created else None

    def _resource(self) -> Resource | None:
        """One of the objects that are there; of an element that was created there is the element alone."""
        index = self._element()
        if index is None:
            return None
        kind = self.chance.randrange(3) if index < self.network.elements else 0
        if kind == 1:
            return self.chance.choice(list(self.network.equipment(index)))
        if kind == 2 and self.network.ports:
            return self.network.port(index, self.chance.randrange(self.network.ports))
        return self.network.managed_element(index)

    def _raise_alarm(self) -> EventInformationType | None:
        found = self._resource()
        if found is None:
            return None
        edge, rate = None, "LR_Not_Applicable"
        if isinstance(found, PhysicalTerminationPointType):
            edge, rate = bool(found.is_edge_point), self.network.made_of.link_rate
            cause = self.chance.choice(self.network.made_of.causes)
        else:
            cause = "EQPT" if isinstance(found, EquipmentType) else self.chance.choice(("ENV", "TIMING_SYNCH"))
        alarm = Alarm(
            **_of(found),
            is_edge_point_related=edge,
            is_clearable=True,
            layer_rate=layer(rate),
            probable_cause=ProbableCauseType(probable_cause=ProbableCauseEnumType(cause)),
            perceived_severity=self.chance.choice(_SEVERITIES),
            service_affecting=ServiceAffectingType.UNKNOWN,
            acknowledge_indication=AcknowledgeIndicationType.UNACKNOWLEDGED,
        )
        key = alarm_key(alarm)
        if key in self.alarms:
            return None
        self.alarms[key] = alarm
        return alarm

    def _clear_alarm(self) -> EventInformationType | None:
        return self._cleared(self.chance.choice([*self.alarms])) if self.alarms else None

    def _cleared(self, key: str) -> Alarm:
        return dataclasses.replace(self.alarms.pop(key), perceived_severity=PerceivedSeverityType.CLEARED)

    def _change_value(self) -> EventInformationType | None:
        found = self._resource()
        if found is None:
            return None
        field = self.chance.choice(_VALUES if isinstance(found, ManagedElementType) else _VALUES[:1])
        number = self.chance.randrange(1000)
        value = f"{number // 100}.{number % 100}.1" if field == "software_version" else f"label {number}"
        changed = self._changed(found, field, value)
        if changed is None:
            return None
        return ResourceAttributeValueChange(
            **_of(found), attribute_list=AttributeValueChangeTypeAttributeList(any_=[changed])
        )

    def _change_state(self) -> EventInformationType | None:
        found = self._resource()
        if isinstance(found, ManagedElementType) and self.chance.random() < 0.5:
            changed = self._changed(found, "communication_state", self.chance.choice([*CommunicationStateType]))
        elif isinstance(found, EquipmentType):
            choice = self.chance.choice([*ResourceFulfillmentStateEnumType])
            changed = self._changed(found, "resource_fulfillment_state", choice)
        elif found is not None:
            choice = self.chance.choice((ResourceStateEnumType.WORKING, ResourceStateEnumType.NON_WORKING))
            changed = self._changed(found, "resource_state", ResourceStateType(value=choice))
        else:
            return None
        if changed is None:
            return None
        return ResourceStateChange(**_of(found), attribute_list=StateChangeTypeAttributeList(any_=[changed]))

    def _changed(self, found: Resource, field: str, value: Any) -> Resource | None:
        """An element with the new value alone, as events carry it; None if it is the value that was there."""
        key = (str(found.name), field)
        if self.values.get(key, getattr(found, field)) == value:
            return None
        self.values[key] = value
        return _element_class(found)(**{field: value})

    def _change_link(self) -> EventInformationType | None:
        """A link goes, or one comes again whose ends are there."""
        circle = self.network.circle
        able = [number for number in self.cut if not self._ends(number) & self.gone]
        if able and self.chance.random() < 0.6:
            number = self.chance.choice(able)
            del self.cut[number]
            return _creation(self.network.link(number))
        number = self.chance.randrange(circle.links) if circle.links else -1
        return None if number < 0 or number in self.cut else self._cut_link(number)

    def _ends(self, number: int) -> set[int]:
        span = self.network.circle.span(number)
        return {span.a.element, span.z.element}

    def _cut_link(self, number: int) -> EventInformationType:
        self.cut[number] = None
        return ResourceObjectDeletion(**_of(self.network.link(number)))

    def _create_element(self) -> EventInformationType:
        index, self.next_element = self.next_element, self.next_element + 1
        self.created.append(index)
        return _creation(self.network.managed_element(index))

    def _delete_element(self) -> EventInformationType | None:
        index = self._element()
        if index is None:
            return None
        found = self.network.managed_element(index)
        inside = f"{found.name}/"
        for key, alarm in [*self.alarms.items()]:
            if f"{alarm.object_name}/".startswith(inside):
                self.pending.append(self._cleared(key))
        if index < self.network.elements:
            self.gone.add(index)
            spans = self.network.circle.touching(index)
            self.pending += [self._cut_link(span.number) for span in spans if span.number not in self.cut]
        else:
            self.created.remove(index)
        self.pending.append(ResourceObjectDeletion(**_of(found)))
        return self.pending.popleft()

    def _beat(self) -> EventInformationType:
        return Heartbeat(object_type="OS", object_name=self.network.system_name())


def _of(found: Resource | None) -> dict[str, Any]:
    """The fields of an event that say what it is about."""
    return {"object_type": _ELEMENTS[type(found)][0], "object_name": found.name} if found is not None else {}


def _element_class(found: Resource) -> type[Resource]:
    return _ELEMENTS[type(found)][1]


def _creation(found: Resource) -> ResourceObjectCreation:
    whole = _element_class(found)(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})
    return ResourceObjectCreation(**_of(found), object=AnyListType(any_=[whole]))


def alarm_key(alarm: AlarmType) -> str:
    """The identity of an alarm, as text: object, layer, probable cause and its qualifier."""
    cause = alarm.probable_cause
    told = (cause.probable_cause, cause.extension, cause.qualifier) if cause is not None else ()
    rate = alarm.layer_rate.value if alarm.layer_rate is not None else ""
    return " ".join(str(part) for part in (alarm.object_name, rate, *told) if part)


def standing_alarms(events: Iterable[CommonEventInformationType]) -> dict[str, AlarmType]:
    """The alarms that are not cleared after some events, by their identity, in the order in which they were raised."""
    found: dict[str, AlarmType] = {}
    for event in events:
        if isinstance(event, AlarmType):
            found.pop(alarm_key(event), None)
            if event.perceived_severity is not PerceivedSeverityType.CLEARED:
                found[alarm_key(event)] = event
    return found


def changes(network: Network, events: Iterable[CommonEventInformationType]) -> dict[str, Resource | None]:
    """See `Network.changes`.

    Objects are instances of the classes that the network gives, `ManagedElementType` and so on. An object that is gone
    takes all that it contains with it.

    Raises:
        ConfigError: an event about an object that is not there.
    """
    found: dict[str, Resource | None] = {}
    for event in events:
        called: NamingAttributeType | None = getattr(event, "object_name", None)
        if isinstance(event, ResourceObjectCreation) and event.object is not None:
            (whole,) = event.object.any_
            found[str(called)] = _plain(whole)
        elif isinstance(event, ResourceObjectDeletion) and called is not None:
            _existing(network, found, called)
            _remove(network, found, called)
        elif isinstance(event, ResourceAttributeValueChange | ResourceStateChange) and called is not None:
            (changed,) = event.attribute_list.any_ if event.attribute_list is not None else (None,)
            found[str(called)] = dataclasses.replace(_existing(network, found, called), **_set(changed))
    return found


def _existing(network: Network, found: dict[str, Resource | None], called: NamingAttributeType) -> Resource:
    text = str(called)
    existing = found[text] if text in found else network.find(called)
    if existing is None:
        raise ConfigError(f"an event about {text}, which is not there")
    return existing


def _remove(network: Network, found: dict[str, Resource | None], called: NamingAttributeType) -> None:
    text = str(called)
    inside = [other for other in found if other.startswith(f"{text}/")]
    index = network.index_of(called)
    if index is not None:
        inside += [str(part.name) for part in network.objects_of(index)]
    found.update(dict.fromkeys([text, *inside]))


def _plain(whole: Any) -> Resource:
    """An object of the class of the type, made of one of the class of its element."""
    cls = next(parent for parent in type(whole).__mro__ if parent in _ELEMENTS)
    return cls(**{field.name: getattr(whole, field.name) for field in dataclasses.fields(whole)})


def _set(changed: Any) -> dict[str, Any]:
    """The attributes that an event sets, and those that it takes away."""
    told = {field.name: getattr(changed, field.name) for field in dataclasses.fields(changed) if field.name != "extras"}
    return {name: None if isinstance(value, Nil) else value for name, value in told.items() if value not in (None, [])}
