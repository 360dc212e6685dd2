"""A network generated from a seed. The same numbers give the same objects on every machine, made on demand.

One management domain holds the elements; each element has racks and shelves, cards in them, ports, and connection
termination points below the ports; topological links join ports. No object is stored, so a network of any size costs
nothing until somebody iterates over it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.simulator import _parts as parts
from mtosi_jms.simulator._events import about, alarm_key, created, creation, element_class, new_values
from mtosi_jms.simulator._parts import (
    FLAT,
    SHAPES,
    TECHNOLOGIES,
    Circle,
    End,
    Frame,
    Resource,
    Shape,
    Steps,
    Technology,
    below,
    circle,
    layer,
    steps_of,
)
from mtosi_jms.stubs.fmw.avc import AttributeValueChangeTypeAttributeList
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.ei import EventInformationType
from mtosi_jms.stubs.fmw.gen import AliasNameListType, AliasNameListTypeAlias, AnyListType
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, NamingAttributeType
from mtosi_jms.stubs.fmw.sc import StateChangeTypeAttributeList
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityType, ServiceAffectingType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType, SourceEnumType, SourceType
from mtosi_jms.stubs.nrb.lay import LayerRateListType
from mtosi_jms.stubs.nrb.rscavc import ResourceAttributeValueChange
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrb.rscodel import ResourceObjectDeletion
from mtosi_jms.stubs.nrb.rscsc import ResourceStateChange
from mtosi_jms.stubs.nrf.com import ConnectionDirectionType, ResourceFulfillmentStateEnumType
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.ftp import FloatingTerminationPointType
from mtosi_jms.stubs.nrf.me import CommunicationStateType, ManagedElementType
from mtosi_jms.stubs.nrf.os import OperationsSystemType
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType
from mtosi_jms.stubs.nrf.tl import TopologicalLinkType
from mtosi_jms.stubs.nrf.tmd import TransmissionDescriptorType
from mtosi_jms.xmlbind import RawXml

START: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""The time of the first event unless the caller gives one."""
_SITES: Final = ("Århus", "Bergen", "Córdoba", "Delft", "Évora", "Fürth", "Gdańsk", "Haarlem", "Ioannina", "Jūrmala")
_STATES: Final = (
    ResourceStateEnumType.WORKING,
    ResourceStateEnumType.WORKING,
    ResourceStateEnumType.WORKING,
    ResourceStateEnumType.WORKING_ACTIVATED,
    ResourceStateEnumType.INSTALLING,
    ResourceStateEnumType.PLANNING,
)
_DIGITS: Final = 12
_VALUES: Final = ("user_label", "software_version")
"""Attributes that change: both of an element, only the first of other objects."""
_SEVERITIES: Final = (PerceivedSeverityType.CRITICAL, PerceivedSeverityType.MAJOR, PerceivedSeverityType.MINOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A generated network.

    Attributes:
        seed: seed of attribute values and of the chords of a mesh.
        ports: physical termination points in each element, distributed over its cards.
        channels: connection termination points below each port.
        technology: SDH, OTN, ETHERNET or MICROWAVE; MIXED: elements of all kinds, each with one flat shelf.
        topology: how elements are linked: none, ring or mesh; None: none for MIXED, else a ring.
        ftps:  floating termination points in each element.

    Raises:
        ConfigError: a negative number, no name, no such technology or topology; more channels than a port of the
            technology has room for; racks, shelves, slots or sub-slots of elements with a flat shelf.
    """

    elements: int = 2000
    seed: int = 1
    domain: str = "EMS1"
    ports: int = 4
    channels: int = 2
    technology: str = "MIXED"
    topology: Shape | None = None
    racks: int = 1
    shelves: int = 1
    slots: int = 2
    sub_slots: int = 0
    ftps: int = 0

    def __post_init__(self) -> None:
        if min(self.elements, self.ports, self.channels, self.ftps) < 0 or not self.domain:
            raise ConfigError("a network needs a domain name, and no negative number of elements, ports or channels")
        if min(self.racks, self.shelves, self.slots) < 1 or self.sub_slots < 0:
            raise ConfigError("an element needs at least 1 rack, shelf and slot, and no negative number of sub-slots")
        if self.topology is not None and self.topology not in SHAPES:
            raise ConfigError(f"there is no topology {self.topology!r}; there are {', '.join(SHAPES)}")
        if self.technology not in TECHNOLOGIES:
            raise ConfigError(f"there is no technology {self.technology!r}; there are {', '.join(TECHNOLOGIES)}")
        if Frame(self.racks, self.shelves, self.slots, self.sub_slots) != Frame() and self.made_of.is_mixed:
            raise ConfigError("elements of the technology MIXED have one flat shelf; take another technology for slots")
        room = self.made_of.capacity
        if room is not None and self.channels > room:
            raise ConfigError(f"a port of the technology {self.technology} has room for {room} channels")

    @property
    def made_of(self) -> Technology:
        return TECHNOLOGIES[self.technology]

    @property
    def frame(self) -> Frame:
        return FLAT if self.made_of.is_mixed else Frame(self.racks, self.shelves, self.slots, self.sub_slots)

    @property
    def circle(self) -> Circle:
        shape = self.topology or ("none" if self.made_of.is_mixed else "ring")
        return circle(shape, self.elements, self.ports, self.seed)

    def domain_name(self) -> NamingAttributeType:
        return below(None, "MD", self.domain)

    def element_name(self, index: int) -> NamingAttributeType:
        return below(self.domain_name(), "ME", f"NE-{index + 1}")

    def index_of(self, wanted: NamingAttributeType) -> int | None:
        """The index of the element with a name; None if there is none."""
        steps = steps_of(wanted)
        return self._number_of(steps, "ME", "NE-", self.elements) if len(steps) == 2 else None

    def _number_of(self, steps: Steps, kind: str, prefix: str, count: int) -> int | None:
        """The number of an object of a kind in the domain, from the first two steps of its name; below `count`."""
        if steps[0] != ("MD", self.domain) or steps[1][0] != kind:
            return None
        digits = steps[1][1].removeprefix(prefix)
        number = int(digits) - 1 if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else -1
        return number if 0 <= number < count and steps[1][1] == f"{prefix}{number + 1}" else None

    def managed_elements(self) -> Iterator[ManagedElementType]:
        """All elements, in the order of their numbers."""
        return (self.managed_element(index) for index in range(self.elements))

    def managed_element(self, index: int) -> ManagedElementType:
        """One element, counted from 0. Indexes beyond the network give elements that events create."""
        chance = random.Random(f"{self.seed}/{index}")
        vendor, product, versions = chance.choice(self.made_of.products)
        site = chance.choice(_SITES)
        return ManagedElementType(
            name=self.element_name(index),
            user_label=f"{site} {index + 1:05d}",
            discovered_name=f"ne{index + 1}.{self.domain.lower()}",
            naming_os=self.domain,
            owner="Network operations",
            alias_name_list=AliasNameListType(
                alias=[AliasNameListTypeAlias(alias_name="CLLI", alias_value=f"{site[:4].upper()}{index:06d}")]
            ),
            vendor_extensions=_site_code(chance) if index % 10 == 0 else None,
            source=SourceType(value=SourceEnumType.NETWORK_ME),
            network_access_domain=f"NAD-{chance.randrange(8)}",
            resource_state=ResourceStateType(value=chance.choice(_STATES)),
            location=f"{site}, room {chance.randrange(1, 40)}",
            manufacturer=vendor,
            manufacture_date=dt.date(2019, 1, 1) + dt.timedelta(days=chance.randrange(2000)),
            product_name=product,
            software_version=chance.choice(versions),
            is_in_sync_state=chance.random() < 0.97,
            supported_connection_layer_rate_list=LayerRateListType(layer_rate=[*parts.rates(self.made_of, chance)]),
            communication_state=(
                CommunicationStateType.CS_AVAILABLE if chance.random() < 0.99 else CommunicationStateType.CS_UNAVAILABLE
            ),
        )

    def elements_in(self, domain: NamingAttributeType | None) -> Iterator[ManagedElementType] | None:
        """See `Source`; there is only one domain."""
        return self.managed_elements() if domain is None or str(domain) == str(self.domain_name()) else None

    def is_managed_by(self, system: NamingAttributeType) -> bool:
        return str(system) == str(self.system_name())

    def equipment_of(self, element: NamingAttributeType) -> Iterator[EquipmentHolderType | EquipmentType] | None:
        index = self.index_of(element)
        return None if index is None else chain(self.holders(index), self.equipment(index))

    def holders(self, index: int) -> Iterator[EquipmentHolderType]:
        """The racks, shelves, slots and sub-slots of an element, each before those in it."""
        return parts.holders(self.element_name(index), self.frame, self.made_of)

    def equipment(self, index: int) -> Iterator[EquipmentType]:
        """The cards of an element, each named below its holder, in the order of the holders."""
        chance = random.Random(f"{self.seed}/{index}/eq")
        return parts.cards(self.element_name(index), index, self.frame, self.made_of, chance)

    def port(self, index: int, number: int) -> PhysicalTerminationPointType:
        """One port of an element, counted from 0. Ports without a link are at the edge of the network."""
        edge = number == 0 if self.made_of.is_mixed else not self.circle.has_link(End(index, number))
        descriptors = (self.descriptor_name(), self.descriptor_name())
        return parts.port(self.port_name(index, number), self.made_of, edge=edge, descriptors=descriptors)

    def port_name(self, index: int, number: int) -> NamingAttributeType:
        """The name of a port of an element, both counted from 0."""
        return below(self.element_name(index), "PTP", self.frame.port(number, self.ports))

    def channel(self, index: int, port: int, number: int) -> ConnectionTerminationPointType:
        """One connection termination point of a port, counted from 0."""
        return parts.channel(self.port_name(index, port), self.made_of, number)

    def ftp(self, index: int, number: int) -> FloatingTerminationPointType:
        """One floating termination point of an element, counted from 0."""
        return parts.floating(self.element_name(index), self.made_of, number)

    def links(self) -> Iterator[TopologicalLinkType]:
        """All topological links, in the order of the elements at their A ends."""
        return (self.link(number) for number in range(self.circle.links))

    def links_of(self, index: int) -> Iterator[TopologicalLinkType]:
        """The topological links whose A end is at an element, counted from 0."""
        return (self.link(span.number) for span in self.circle.starting_at(index))

    def link(self, number: int) -> TopologicalLinkType:
        """One topological link, counted from 0."""
        span = self.circle.span(number)
        return TopologicalLinkType(
            name=self.link_name(number),
            user_label=f"NE-{span.a.element + 1} to NE-{span.z.element + 1}",
            naming_os=self.domain,
            direction=ConnectionDirectionType.CD_BI,
            layer_rate=layer(self.made_of.link_rate),
            a_end_tp_ref_list=NamingAttributeListType(name=[self.port_name(span.a.element, span.a.port)]),
            z_end_tp_ref_list=NamingAttributeListType(name=[self.port_name(span.z.element, span.z.port)]),
            is_reporting_alarms=True,
        )

    def link_name(self, number: int) -> NamingAttributeType:
        """The name of a topological link, counted from 0."""
        return below(self.domain_name(), "TL", f"TL-{number + 1}")

    def system_name(self) -> NamingAttributeType:
        """The name of the management system of the network, which is the domain's name."""
        return below(None, "OS", self.domain)

    def operations_system(self) -> OperationsSystemType:
        return OperationsSystemType(
            name=self.system_name(),
            software_version="5.2",
            product_name="Simulator",
            resource_fulfillment_state=ResourceFulfillmentStateEnumType.IN_SERVICE,
            is_subordinate_os=False,
        )

    def descriptors(self) -> Iterator[TransmissionDescriptorType]:
        """The transmission descriptors to which the ports refer; none for MIXED."""
        if not self.made_of.is_mixed:
            yield parts.descriptor(self.descriptor_name(), self.made_of)

    def descriptor_name(self) -> NamingAttributeType:
        return below(self.domain_name(), "TMD", f"{self.technology} port")

    def objects_of(self, index: int) -> Iterator[Resource]:
        """An element and all objects in it, each before the objects that it contains."""
        yield self.managed_element(index)
        yield from self.holders(index)
        yield from self.equipment(index)
        for port in range(self.ports):
            yield self.port(index, port)
            yield from (self.channel(index, port, number) for number in range(self.channels))
        yield from (self.ftp(index, number) for number in range(self.ftps))

    def objects(self) -> Iterator[Resource]:
        """All objects: elements with what they contain, links, transmission descriptors."""
        for index in range(self.elements):
            yield from self.objects_of(index)
        yield from self.links()
        yield from self.descriptors()

    def find(self, wanted: NamingAttributeType) -> Resource | None:
        """The object of a name; None if there is none."""
        steps = steps_of(wanted)
        if len(steps) < 2:
            return None
        index = self._number_of(steps, "ME", "NE-", self.elements)
        if index is not None:
            return self._find_in(index, steps[2:])
        if len(steps) > 2:
            return None
        number = self._number_of(steps, "TL", "TL-", self.circle.links)
        if number is not None:
            return self.link(number)
        return next((found for found in self.descriptors() if found.name == wanted), None)

    def _find_in(self, index: int, steps: Steps) -> Resource | None:
        match steps:
            case []:
                return self.managed_element(index)
            case [("PTP", path)] if (port := self._port_at(path)) is not None:
                return self.port(index, port)
            case [("PTP", path), ("CTP", inner)] if (port := self._port_at(path)) is not None:
                channel = self.made_of.channel
                found = next((number for number in range(self.channels) if channel(number)[0] == inner), None)
                return None if found is None else self.channel(index, port, found)
            case [("EH", _)] | [("EH", _), ("EQ", _)] | [("FTP", _)]:
                others = (
                    *self.holders(index),
                    *self.equipment(index),
                    *(self.ftp(index, number) for number in range(self.ftps)),
                )
                wanted = [("MD", self.domain), ("ME", f"NE-{index + 1}"), *steps]
                return next((one for one in others if steps_of(one.name) == wanted), None)
        return None

    def _port_at(self, path: str) -> int | None:
        return next((number for number in range(self.ports) if self.frame.port(number, self.ports) == path), None)

    def events(self, count: int, *, seed: int = 1, start: dt.datetime = START) -> Iterator[EventInformationType]:
        """Notifications that the network might send, in order.

        Elements are created and deleted, links disappear and return, attributes and states change, alarms are raised
        and cleared under the same identity, and heartbeats come. The same network, seed and count give the same stream,
        and a longer stream begins with the shorter one. The stream is consistent: every event is about an existing
        object, a new value differs from the old one, and an element is deleted only after its alarms and links.

        Args:
            start: time of the first event, with a time zone.

        Raises:
            ConfigError: the count is negative, or the start has no time zone.
        """
        if count < 0 or start.tzinfo is None:
            raise ConfigError("events need a count of at least 0, and a start with a time zone")
        return _EventHistory(self, random.Random(f"{self.seed}/events/{seed}")).events(count, start)

    def changes(self, events: Iterable[CommonEventInformationType]) -> dict[str, Resource | None]:
        """The objects that events of this network changed, by full name: their state after the events, None if deleted.

        Objects are instances of the same classes as those of the network, `ManagedElementType` and so on. With an
        object all objects in it are deleted.

        Raises:
            ConfigError: an event is about an object that does not exist.
        """
        found: dict[str, Resource | None] = {}
        for event in events:
            called: NamingAttributeType | None = getattr(event, "object_name", None)
            if isinstance(event, ResourceObjectCreation) and event.object is not None:
                found[str(called)] = created(event)
            elif isinstance(event, ResourceObjectDeletion) and called is not None:
                self._existing(found, called)
                inside = [other for other in found if other.startswith(f"{called}/")]
                index = self.index_of(called)
                if index is not None:
                    inside += [str(part.name) for part in self.objects_of(index)]
                found.update(dict.fromkeys([str(called), *inside]))
            elif isinstance(event, ResourceAttributeValueChange | ResourceStateChange) and called is not None:
                (changed,) = event.attribute_list.any_ if event.attribute_list is not None else (None,)
                found[str(called)] = dataclasses.replace(self._existing(found, called), **new_values(changed))
        return found

    def _existing(self, found: dict[str, Resource | None], called: NamingAttributeType) -> Resource:
        existing = found[str(called)] if str(called) in found else self.find(called)
        if existing is None:
            raise ConfigError(f"an event about {called}, which is not there")
        return existing

    def after(self, events: Iterable[CommonEventInformationType]) -> dict[str, Resource]:
        """The whole network after some of its events: objects by full name. All objects are held in memory."""
        before: dict[str, Resource | None] = {str(found.name): found for found in self.objects()}
        return {text: found for text, found in {**before, **self.changes(events)}.items() if found is not None}


def _site_code(chance: random.Random) -> AnyListType:
    text = f'<v:siteCode xmlns:v="urn:example:vendor">S-{chance.randrange(1000):03d}</v:siteCode>'
    return AnyListType(any_=[RawXml(text.encode("utf-8"))])


class _EventHistory:
    """The history of the events so far; it stores mostly numbers of objects.

    Attributes:
        created: existing elements that did not exist at the start.
        gone: elements of the start that no longer exist.
        cut: links that do not exist now.
        alarms: active alarms, by identity.
        values: the last value of each changed attribute.
        pending: events that must come next, as consequences of the last one.
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
        # The share of each kind of event, in percent.
        self.kinds: dict[Callable[[], EventInformationType | None], int] = {
            self._raise_alarm: 28,
            self._clear_alarm: 22,
            self._change_value: 18,
            self._change_state: 12,
            self._change_link: 6,
            self._create_element: 5,
            self._delete_element: 3,
            self._beat: 6,
        }

    def events(self, count: int, start: dt.datetime) -> Iterator[EventInformationType]:
        """Makes numbered events; the first one has the start time."""
        now = start
        for number in range(1, count + 1):
            event = self._next()
            event.notification_id = f"{self.network.domain}-{number}"
            event.source_time = event.os_time = now
            yield event
            now += dt.timedelta(seconds=self.chance.randrange(1, 30))

    def _next(self) -> EventInformationType:
        while not self.pending:
            (kind,) = self.chance.choices([*self.kinds], [*self.kinds.values()])
            if (event := kind()) is not None:
                return event
        return self.pending.popleft()

    def _element(self) -> int | None:
        if self.created and self.chance.random() < 0.1:
            return self.chance.choice(self.created)
        for _ in range(20):  # most elements exist, so a draw or two is enough
            index = self.chance.randrange(self.network.elements) if self.network.elements else -1
            if index >= 0 and index not in self.gone:
                return index
        return self.chance.choice(self.created) if self.created else None

    def _resource(self) -> Resource | None:
        """A random existing object; a created element contains no objects."""
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
            **about(found),
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
            **about(found), attribute_list=AttributeValueChangeTypeAttributeList(any_=[changed])
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
        return ResourceStateChange(**about(found), attribute_list=StateChangeTypeAttributeList(any_=[changed]))

    def _changed(self, found: Resource, field: str, value: Any) -> Resource | None:
        """An element with only the new value, as in events; None if the value did not change."""
        key = (str(found.name), field)
        if self.values.get(key, getattr(found, field)) == value:
            return None
        self.values[key] = value
        return element_class(found)(**{field: value})

    def _change_link(self) -> EventInformationType | None:
        """Removes a link, or restores a link whose ends exist."""
        circle = self.network.circle
        able = [number for number in self.cut if not self._ends(number) & self.gone]
        if able and self.chance.random() < 0.6:
            number = self.chance.choice(able)
            del self.cut[number]
            return creation(self.network.link(number))
        number = self.chance.randrange(circle.links) if circle.links else -1
        return None if number < 0 or number in self.cut else self._cut_link(number)

    def _ends(self, number: int) -> set[int]:
        span = self.network.circle.span(number)
        return {span.a.element, span.z.element}

    def _cut_link(self, number: int) -> EventInformationType:
        self.cut[number] = None
        return ResourceObjectDeletion(**about(self.network.link(number)))

    def _create_element(self) -> EventInformationType:
        index, self.next_element = self.next_element, self.next_element + 1
        self.created.append(index)
        return creation(self.network.managed_element(index))

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
        self.pending.append(ResourceObjectDeletion(**about(found)))
        return self.pending.popleft()

    def _beat(self) -> EventInformationType:
        return Heartbeat(object_type="OS", object_name=self.network.system_name())
