"""A network made from a seed: the same objects for the same numbers on every machine, built only when asked for.

One management domain holds the elements; each element has racks and shelves, cards in them, ports, and connection
termination points below the ports; topological links join ports. No object is kept, so a network of any size costs
nothing until it is walked.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.simulator import _events
from mtosi_jms.simulator import _parts as parts
from mtosi_jms.simulator._frames import Frame
from mtosi_jms.simulator._parts import Resource, below, layer, rates
from mtosi_jms.simulator._technologies import Technology, technology_named
from mtosi_jms.simulator._topology import SHAPES, Circle, End, Shape, Span, circle
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.gen import AliasNameListType, AliasNameListTypeAlias, AnyListType
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, NamingAttributeType
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType, SourceEnumType, SourceType
from mtosi_jms.stubs.nrb.lay import LayerRateListType
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A generated network.

    Attributes:
        elements: how many managed elements.
        seed: other numbers give other attribute values, and other chords of a mesh.
        domain: name of the management domain.
        ports: physical termination points in each element, shared out over its cards.
        channels: connection termination points below each port.
        technology: SDH, OTN, ETHERNET or MICROWAVE; MIXED: elements of all sorts, each with one flat shelf.
        topology: how elements are linked: none, ring or mesh; None: not at all where MIXED, else in a ring.
        racks: of each element.
        shelves: in each rack.
        slots: in each shelf.
        sub_slots: in each slot.
        ftps: floating termination points in each element.

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
            raise ConfigError("a network has a domain name, and numbers of elements, ports and channels from 0")
        if self.topology is not None and self.topology not in SHAPES:
            raise ConfigError(f"there is no topology {self.topology!r}; there are {', '.join(SHAPES)}")
        frame = self.frame
        if self.made_of.is_mixed and frame != Frame():
            raise ConfigError("elements of the technology MIXED have one flat shelf; take another technology for slots")
        room = self.made_of.capacity
        if room is not None and self.channels > room:
            raise ConfigError(f"a port of the technology {self.technology} has room for {room} channels")

    @property
    def made_of(self) -> Technology:
        """What its elements are made of."""
        return technology_named(self.technology)

    @property
    def frame(self) -> Frame:
        """What its elements are built of."""
        return Frame(self.racks, self.shelves, self.slots, self.sub_slots)

    @property
    def circle(self) -> Circle:
        """Which of its elements are linked."""
        shape = self.topology or ("none" if self.made_of.is_mixed else "ring")
        return circle(shape, self.elements, self.ports, self.seed)

    def domain_name(self) -> NamingAttributeType:
        """The name of the management domain."""
        return below(None, "MD", self.domain)

    def element_name(self, index: int) -> NamingAttributeType:
        """The name of an element, counted from 0."""
        return below(self.domain_name(), "ME", f"NE-{index + 1}")

    def index_of(self, wanted: NamingAttributeType) -> int | None:
        """Which element has a name; None if none has."""
        parts = [(part.type, part.value or "") for part in wanted.rdn]
        if len(parts) != 2:
            return None
        return self._number_of(parts, "ME", "NE-", self.elements)

    def _number_of(self, steps: list[tuple[str, str]], kind: str, prefix: str, count: int) -> int | None:
        """Which of so many objects of a kind in the domain has a name, by its first two steps."""
        if steps[0] != ("MD", self.domain) or steps[1][0] != kind:
            return None
        digits = steps[1][1].removeprefix(prefix)
        number = int(digits) - 1 if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else -1
        return number if 0 <= number < count and steps[1][1] == f"{prefix}{number + 1}" else None

    def managed_elements(self) -> Iterator[ManagedElementType]:
        """All elements, in the order of their numbers."""
        return (self.managed_element(index) for index in range(self.elements))

    def managed_element(self, index: int) -> ManagedElementType:
        """One element, counted from 0; there are further ones beyond those of the network, for events to create."""
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
            supported_connection_layer_rate_list=LayerRateListType(layer_rate=[*rates(self.made_of, chance)]),
            communication_state=(
                CommunicationStateType.CS_AVAILABLE if chance.random() < 0.99 else CommunicationStateType.CS_UNAVAILABLE
            ),
        )

    def elements_in(self, domain: NamingAttributeType | None) -> Iterator[ManagedElementType] | None:
        """See `ElementSource`; there is one domain."""
        return self.managed_elements() if domain is None or str(domain) == str(self.domain_name()) else None

    def is_managed_by(self, system: NamingAttributeType) -> bool:
        """See `ElementSource`."""
        return str(system) == str(self.system_name())

    def equipment_of(self, element: NamingAttributeType) -> Iterator[EquipmentHolderType | EquipmentType] | None:
        """See `EquipmentSource`."""
        index = self.index_of(element)
        return None if index is None else chain(self.holders(index), self.equipment(index))

    def holders(self, index: int) -> Iterator[EquipmentHolderType]:
        """The racks, shelves, slots and sub-slots of an element, each before those in it."""
        base = self.element_name(index)
        return parts.flat_holders(base) if self.made_of.is_mixed else parts.holders(base, self.frame, self.made_of)

    def equipment(self, index: int) -> Iterator[EquipmentType]:
        """The cards of an element, each named below its holder, in the order of the holders."""
        base = self.element_name(index)
        chance = random.Random(f"{self.seed}/{index}/eq")
        if self.made_of.is_mixed:
            return parts.flat_cards(base, index, chance)
        return parts.cards(base, index, self.frame, self.made_of, chance)

    def port(self, index: int, number: int) -> PhysicalTerminationPointType:
        """One port of an element, counted from 0. At the edge of the network are those that no link takes."""
        called = self.port_name(index, number)
        if self.made_of.is_mixed:
            return parts.flat_port(called, edge=number == 0)
        edge = not self.circle.has_link(End(index, number))
        descriptors = (self.descriptor_name(), self.descriptor_name())
        return parts.port(called, self.made_of, edge=edge, descriptors=descriptors)

    def port_name(self, index: int, number: int) -> NamingAttributeType:
        """The name of a port of an element, both counted from 0."""
        return below(self.element_name(index), "PTP", self._port_path(number))

    def _port_path(self, number: int) -> str:
        return parts.flat_port_path(number) if self.made_of.is_mixed else self.frame.port(number, self.ports)

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
            user_label=_between(span),
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
        """The name of the management system that the network is behind: that of the domain."""
        return below(None, "OS", self.domain)

    def operations_system(self) -> OperationsSystemType:
        """The management system that the network is behind."""
        return OperationsSystemType(
            name=self.system_name(),
            software_version="5.2",
            product_name="Simulator",
            resource_fulfillment_state=ResourceFulfillmentStateEnumType.IN_SERVICE,
            is_subordinate_os=False,
        )

    def descriptors(self) -> Iterator[TransmissionDescriptorType]:
        """The transmission descriptors that the ports refer to; none of the technology MIXED."""
        if not self.made_of.is_mixed:
            yield parts.descriptor(self.descriptor_name(), self.made_of)

    def descriptor_name(self) -> NamingAttributeType:
        """The name of the transmission descriptor of the ports."""
        return below(self.domain_name(), "TMD", f"{self.technology} port")

    def objects_of(self, index: int) -> Iterator[Resource]:
        """An element and all that it contains, each object before what it contains."""
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
        """The object of a name, None if there is none."""
        steps = [(part.type, part.value or "") for part in wanted.rdn]
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

    def _find_in(self, index: int, steps: list[tuple[str, str]]) -> Resource | None:
        """The object of an element by the last steps of its name."""
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
                return next((one for one in others if parts.steps_of(one) == wanted), None)
        return None

    def _port_at(self, path: str) -> int | None:
        return next((number for number in range(self.ports) if self._port_path(number) == path), None)

    def events(
        self, count: int, *, seed: int = 1, start: dt.datetime = _events.START
    ) -> Iterator[CommonEventInformationType]:
        """Notifications that the network might send, one after the other; see `mtosi_jms.simulator._events`.

        Args:
            count: how many.
            seed: other numbers give other events.
            start: time of the first one, with a time zone.
        """
        return _events.stream(self, count, seed=seed, start=start)

    def changes(self, events: Iterable[CommonEventInformationType]) -> dict[str, Resource | None]:
        """What events of this network changed: full name to the object as it is then, None for one that is gone."""
        return _events.changes(self, events)

    def after(self, events: Iterable[CommonEventInformationType]) -> dict[str, Resource]:
        """The whole network as it is after events of it: full name to object. This walks the network and holds it."""
        changed = _events.changes(self, events)
        before = {str(found.name): found for found in self.objects()}
        return {text: found for text, found in {**before, **changed}.items() if found is not None}


def _between(span: Span) -> str:
    return f"NE-{span.a.element + 1} to NE-{span.z.element + 1}"


def _site_code(chance: random.Random) -> AnyListType:
    text = f'<v:siteCode xmlns:v="urn:example:vendor">S-{chance.randrange(1000):03d}</v:siteCode>'
    return AnyListType(any_=[RawXml(text.encode("utf-8"))])
