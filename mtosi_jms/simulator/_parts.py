"""What a network is made of: technologies, holders, cards, ports and channels, and the links between elements.

Names follow the conventions of TMF 814, which MTOSI adopted. A port is named by its location,
`/rack=1/shelf=1/slot=2/port=1`, a channel by its position in the multiplex, `/sts3c_au4-j=1/vt2_tu12-k=1-l=3-m=2` or
`/frequency=192.15/odu2=1`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from mtosi_jms.stubs.fmw.gen import NameAndStringValueType, NameAndValueStringListType
from mtosi_jms.stubs.fmw.nam import NamingAttributeType, RelativeDistinguishNameType
from mtosi_jms.stubs.nrb.cri import CommonResourceInfoType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateType
from mtosi_jms.stubs.nrb.lp import LayeredParametersListType, LayeredParametersType
from mtosi_jms.stubs.nrf.com import (
    DirectionalityType,
    EquipmentHolderEnumType,
    EquipmentHolderTypeType,
    HolderStateType,
    ResourceFulfillmentStateEnumType,
    TransmissionDescriptorStateType,
)
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType, EquipmentHolderTypeAcceptableEquipmentTypeList
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.ftp import FloatingTerminationPointType
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType
from mtosi_jms.stubs.nrf.tmd import TransmissionDescriptorType

Product = tuple[str, str, tuple[str, ...]]
"""Manufacturer, name, and the software versions in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """A technology of networks.

    Attributes:
        name: SDH, OTN, ETHERNET, MICROWAVE; MIXED for elements of all kinds with one flat shelf.
        rates: layer rates that elements can connect.
        port_rates: layer rates of a port, the innermost last; empty if ports do not state them.
        link_rate: layer rate of a topological link.
        cards: types of cards that carry ports.
        channel: name and layer rate of a port's channel by its number, from 0; the rate is empty if channels have none.
        capacity: most channels of a port; None: any number.
        causes: probable causes of port alarms.
    """

    name: str
    products: tuple[Product, ...]
    rates: tuple[str, ...]
    port_rates: tuple[str, ...] = ()
    link_rate: str
    cards: tuple[str, ...] = ()
    channel: Callable[[int], tuple[str, str]]
    capacity: int | None = None
    causes: tuple[str, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether its elements have a flat shelf, without slots, and ports that do not state their layers."""
        return not self.port_rates


_LAMBDA: Final = ("Transvega", "TV-Lambda 96", ("R7.1", "R7.2", "R8.0"))
_PACKET: Final = ("Lumen & Sons", "Packet <X> 500", ("21.4", "22.1", "22.2"))
_NWO_8800: Final = ("Northwind Optical", "NWO-8800", ("9.1.2", "9.2.0", "9.2.4"))
_NWO_4400: Final = ("Northwind Optical", "NWO-4400", ("6.0.1", "6.0.9"))
_TV_10K: Final = ("Transvega", "TV-10K", ("R14", "R15 SP2"))
_EDGE: Final = ("Kilotel", "K-Edge", ("3.3.3",))

_TRIBUTARIES: Final = 63
"""VC-12s in a VC-4: 3 x 7 x 3."""
_GRID: Final = 80
"""Optical channels of the C band, which are 50 GHz apart."""
_LOWEST: Final = 192.10
"""The lowest optical channel, in THz."""


def _numbered(number: int) -> tuple[str, str]:
    return f"/sts3c_au4={number + 1}", ""


def _synchronous(number: int) -> tuple[str, str]:
    """A VC-4, then the VC-12s in it, then the next VC-4."""
    j, place = divmod(number, _TRIBUTARIES + 1)
    if place == 0:
        return f"/sts3c_au4-j={j + 1}", "LR_STS3c_and_AU4_VC4"
    k, rest = divmod(place - 1, 21)
    tributary, m = divmod(rest, 3)
    return f"/sts3c_au4-j={j + 1}/vt2_tu12-k={k + 1}-l={tributary + 1}-m={m + 1}", "LR_VT2_and_TU12_VC12"


def _optical(number: int) -> tuple[str, str]:
    """An optical channel, then the ODU2 in it, then the next channel."""
    place, inner = divmod(number, 2)
    channel = f"/frequency={_LOWEST + place * 0.05:.2f}"
    return (f"{channel}/odu2=1", "LR_OCH_Data_Unit_2") if inner else (channel, "LR_Optical_Channel")


def _ethernet(number: int) -> tuple[str, str]:
    return f"/ethernet={number + 1}", "LR_Ethernet"


MIXED: Final = Technology(
    name="MIXED",
    products=(_NWO_8800, _NWO_4400, _PACKET, _TV_10K, _EDGE),
    rates=("LR_Line_OC48_STS48_and_MS_STM16", "LR_Line_OC192_STS192_and_MS_STM64", "LR_Ethernet"),
    link_rate="LR_PHYSICAL_OPTICAL",
    channel=_numbered,
    causes=("LOS", "LOF", "BER_SD"),
)
SDH: Final = Technology(
    name="SDH",
    products=(_NWO_8800, _NWO_4400, _TV_10K),
    rates=("LR_STS3c_and_AU4_VC4", "LR_VT2_and_TU12_VC12"),
    port_rates=(
        "LR_PHYSICAL_OPTICAL",
        "LR_DSR_OC48_and_STM16",
        "LR_Section_OC48_STS48_and_RS_STM16",
        "LR_Line_OC48_STS48_and_MS_STM16",
    ),
    link_rate="LR_DSR_OC48_and_STM16",
    cards=("STM16-2", "STM16-2E"),
    channel=_synchronous,
    capacity=16 * (_TRIBUTARIES + 1),
    causes=("LOS", "LOF", "MS-AIS", "BER_SD", "TIM"),
)
OTN: Final = Technology(
    name="OTN",
    products=(_LAMBDA,),
    rates=("LR_OCH_Data_Unit_2", "LR_Optical_Channel"),
    port_rates=(
        "LR_PHYSICAL_OPTICAL",
        "LR_OPTICAL_SECTION",
        "LR_Optical_Transmission_Section",
        "LR_Optical_Multiplex_Section",
    ),
    link_rate="LR_Optical_Transmission_Section",
    cards=("OMD80", "OMD80-R"),
    channel=_optical,
    capacity=2 * _GRID,
    causes=("LOS", "OSC_LOS", "OSC_SD", "SSF"),
)
ETHERNET: Final = Technology(
    name="ETHERNET",
    products=(_PACKET, _EDGE),
    rates=("LR_Ethernet",),
    port_rates=("LR_PHYSICAL_OPTICAL", "LR_DSR_10Gigabit_Ethernet"),
    link_rate="LR_DSR_10Gigabit_Ethernet",
    cards=("XGE-8", "XGE-8S"),
    channel=_ethernet,
    capacity=4094,
    causes=("LOS", "RX_FAIL", "TX_FAIL"),
)
MICROWAVE: Final = Technology(
    name="MICROWAVE",
    products=(("Highpoint Radio", "HR-18", ("4.2", "4.3")), ("Highpoint Radio", "HR-23e", ("5.0.1",))),
    rates=("LR_STS3c_and_AU4_VC4", "LR_VT2_and_TU12_VC12"),
    port_rates=(
        "LR_PHYSICAL_MEDIALESS",
        "LR_DSR_OC3_STM1",
        "LR_Section_OC3_STS3_and_RS_STM1",
        "LR_Line_OC3_STS3_and_MS_STM1",
    ),
    link_rate="LR_PHYSICAL_MEDIALESS",
    cards=("RADIO-1+0", "RADIO-1+1"),
    channel=_synchronous,
    capacity=_TRIBUTARIES + 1,
    causes=("DEMODULATION_FAIL", "RX_FAIL", "TX_DEGRADE", "XPIC_FAIL"),
)

TECHNOLOGIES: Final[Mapping[str, Technology]] = {found.name: found for found in (MIXED, SDH, OTN, ETHERNET, MICROWAVE)}


Shape: TypeAlias = Literal["none", "ring", "mesh"]
"""How the elements are linked: not at all; in one ring; in a ring with chords."""

SHAPES: Final = ("none", "ring", "mesh")
_CHORDS: Final = 2
"""Most strides besides the ring: an element of a mesh has up to six links."""


class End(NamedTuple):
    """An end of a link: number of the element and of its port, both from 0."""

    element: int
    port: int


class Span(NamedTuple):
    """A link by its ends; its number is its index, from 0, among all links that the network ever had."""

    number: int
    a: End
    z: End


@dataclass(frozen=True, slots=True)
class Circle:
    """All links of a network. `strides`: strides of its links, that of the ring first."""

    elements: int
    strides: tuple[int, ...]

    @property
    def links(self) -> int:
        """The number of links. Two elements have one link, not one in each direction."""
        return 1 if self.elements == 2 and self.strides else self.elements * len(self.strides)

    def span(self, number: int) -> Span:
        """A link by its number."""
        element, k = divmod(number, len(self.strides))
        other = (element + self.strides[k]) % self.elements
        return Span(number, End(element, 2 * k), End(other, 2 * k + 1))

    def starting_at(self, element: int) -> Iterator[Span]:
        """The links whose A end is at an element."""
        count = len(self.strides)
        return (self.span(number) for number in range(element * count, min((element + 1) * count, self.links)))

    def touching(self, element: int) -> Iterator[Span]:
        """The links that have an end at an element, each once."""
        yield from self.starting_at(element)
        for k, stride in enumerate(self.strides):
            number = (element - stride) % self.elements * len(self.strides) + k
            if number < self.links:
                yield self.span(number)

    def has_link(self, end: End) -> bool:
        """Whether a link starts or ends at a port."""
        return any(end in (span.a, span.z) for span in self.touching(end.element))


def circle(shape: str, elements: int, ports: int, seed: int) -> Circle:
    """The links of a network. `shape`: none, ring or mesh. `ports`: number of ports of each element; a stride takes two
    of them."""
    if shape == "none" or elements < 2 or ports < 2:
        return Circle(elements, ())
    # A chord across half the circle would give each link twice; one to the neighbour would repeat the ring.
    possible = range(2, (elements + 1) // 2)
    wanted = min(_CHORDS, ports // 2 - 1, len(possible)) if shape == "mesh" else 0
    chords = random.Random(f"{seed}/links").sample(possible, wanted)
    return Circle(elements, (1, *sorted(chords)))


Resource: TypeAlias = CommonResourceInfoType
"""An object of a network: an instance of `ManagedElementType`, `EquipmentType`, ..."""

Steps: TypeAlias = list[tuple[str, str]]
"""A name as a list of steps: type and value."""

_CARRIER: Final = "CARRIER"
_FLAT_CARDS: Final = 2


@dataclass(frozen=True, slots=True)
class Frame:
    """The racks, shelves, slots and sub-slots of an element. `slots`: slots in each shelf; 0: a flat shelf, which holds
    cards and ports itself. `sub_slots`: sub-slots in each slot; 0: the slot itself holds the card."""

    racks: int = 1
    shelves: int = 1
    slots: int = 2
    sub_slots: int = 0

    def places(self) -> Iterator[tuple[EquipmentHolderEnumType, str]]:
        """Kind and path of each holder, such as `/rack=1/shelf=1/slot=2`, each before the holders in it."""
        for rack in range(1, self.racks + 1):
            yield EquipmentHolderEnumType.rack, f"/rack={rack}"
            for shelf in range(1, self.shelves + 1):
                yield EquipmentHolderEnumType.shelf, f"/rack={rack}/shelf={shelf}"
                for slot in range(1, self.slots + 1):
                    path = f"/rack={rack}/shelf={shelf}/slot={slot}"
                    yield EquipmentHolderEnumType.slot, path
                    for sub_slot in range(1, self.sub_slots + 1):
                        yield EquipmentHolderEnumType.sub_slot, f"{path}/sub_slot={sub_slot}"

    def card_kinds(self, kind: EquipmentHolderEnumType, technology: Technology) -> tuple[str, ...]:
        """The types of cards that fit a kind of holder. A slot with sub-slots takes a carrier card."""
        if kind in (EquipmentHolderEnumType.rack, EquipmentHolderEnumType.shelf):
            return ()
        return (_CARRIER,) if self.sub_slots and kind is EquipmentHolderEnumType.slot else technology.cards

    def port(self, number: int, ports: int) -> str:
        """The path of a port. `number`: number of the port, from 0. `ports`: number of ports of the element,
        distributed evenly over the cards, in their order."""
        if not self.slots:
            return f"/rack=1/shelf=1/port={number + 1}"
        cards = self.racks * self.shelves * self.slots * max(self.sub_slots, 1)
        place, within = divmod(number, max(-(-ports // cards), 1))
        rest, sub_slot = divmod(place, max(self.sub_slots, 1))
        rest, slot = divmod(rest, self.slots)
        rack, shelf = divmod(rest, self.shelves)
        path = f"/rack={rack + 1}/shelf={shelf + 1}/slot={slot + 1}"
        return f"{path}/sub_slot={sub_slot + 1}/port={within + 1}" if self.sub_slots else f"{path}/port={within + 1}"


FLAT: Final = Frame(slots=0)
"""One rack with one flat shelf."""


def below(base: NamingAttributeType | None, kind: str, value: str) -> NamingAttributeType:
    """The name of an object directly below `base`; without a base, of an outermost object."""
    steps = [(step.type, step.value) for step in base.rdn] if base is not None else []
    return NamingAttributeType(rdn=[RelativeDistinguishNameType(type=t, value=v) for t, v in (*steps, (kind, value))])


def steps_of(name: object) -> Steps:
    """The steps of a name; empty for anything that is not a name."""
    return [(step.type, step.value or "") for step in name.rdn] if isinstance(name, NamingAttributeType) else []


def layer(rate: str) -> LayerRateType:
    return LayerRateType(value=LayerRateEnumType(rate))


def rates(technology: Technology, chance: random.Random) -> list[LayerRateType]:
    """The layer rates that an element can connect: those of its technology, or for MIXED some of them."""
    found = technology.rates
    if technology.is_mixed:
        found = tuple(sorted(chance.sample(found, chance.randrange(1, 3))))
    return [layer(rate) for rate in found]


def holders(base: NamingAttributeType, frame: Frame, technology: Technology) -> Iterator[EquipmentHolderType]:
    """The holders of an element, each before the holders in it."""
    for kind, path in frame.places():
        found = EquipmentHolderType(
            name=below(base, "EH", path),
            is_reporting_alarms=True,
            holder_type=EquipmentHolderTypeType(value=kind),
            holder_state=HolderStateType.INSTALLED_AND_EXPECTED,
        )
        if fitting := frame.card_kinds(kind, technology):
            found.acceptable_equipment_type_list = EquipmentHolderTypeAcceptableEquipmentTypeList(
                acceptable_equipment_type=list(fitting)
            )
            found.expected_or_installed_equipment_ref = below(below(base, "EH", path), "EQ", "1")
        yield found


def cards(
    base: NamingAttributeType, index: int, frame: Frame, technology: Technology, chance: random.Random
) -> Iterator[EquipmentType]:
    """The cards of an element: one in each slot and in each sub-slot; a flat shelf holds its cards directly."""
    if not frame.slots:
        shelf = below(base, "EH", "/rack=1/shelf=1")
        for slot in range(1, _FLAT_CARDS + 1):
            yield _card(below(shelf, "EQ", str(slot)), f"Card-{slot}", f"SN{index:06d}{slot}", chance)
        return
    occupied = ((path, kinds) for kind, path in frame.places() if (kinds := frame.card_kinds(kind, technology)))
    for number, (path, kinds) in enumerate(occupied, 1):
        chosen = _CARRIER if kinds == (_CARRIER,) else chance.choice(kinds)
        found = _card(below(below(base, "EH", path), "EQ", "1"), chosen, f"SN{index:06d}{number:03d}", chance)
        found.expected_equipment_object_type = chosen
        yield found


def _card(called: NamingAttributeType, kind: str, serial: str, chance: random.Random) -> EquipmentType:
    return EquipmentType(
        name=called,
        is_reporting_alarms=True,
        installed_equipment_object_type=kind,
        installed_part_number=f"PN-{chance.randrange(10_000):04d}",
        installed_serial_number=serial,
        resource_fulfillment_state=ResourceFulfillmentStateEnumType.IN_SERVICE,
        installed_version=f"{chance.randrange(1, 9)}.0",
    )


def port(
    called: NamingAttributeType,
    technology: Technology,
    *,
    edge: bool,
    descriptors: tuple[NamingAttributeType, NamingAttributeType],
) -> PhysicalTerminationPointType:
    """A port with its layers; a port of a mixed network does not state them. `edge`: whether it is at the edge of the
    network. `descriptors`: names of the transmission descriptors for incoming and outgoing traffic."""
    found = PhysicalTerminationPointType(name=called, direction=DirectionalityType.D_BIDIRECTIONAL, is_edge_point=edge)
    if not technology.is_mixed:
        found.ingress_tmd_state = found.egress_tmd_state = TransmissionDescriptorStateType.APPLIED
        found.ingress_tmd_ref, found.egress_tmd_ref = descriptors
        found.transmission_parameters_list = _layers(*technology.port_rates)
    return found


def channel(base: NamingAttributeType, technology: Technology, number: int) -> ConnectionTerminationPointType:
    path, rate = technology.channel(number)
    return ConnectionTerminationPointType(
        name=below(base, "CTP", path),
        direction=DirectionalityType.D_BIDIRECTIONAL,
        transmission_parameters_list=_layers(rate) if rate else None,
    )


def floating(base: NamingAttributeType, technology: Technology, number: int) -> FloatingTerminationPointType:
    return FloatingTerminationPointType(
        name=below(base, "FTP", f"/ftp={number + 1}"),
        direction=DirectionalityType.D_BIDIRECTIONAL,
        is_edge_point=False,
        transmission_parameters_list=_layers(technology.rates[0]),
    )


def descriptor(called: NamingAttributeType, technology: Technology) -> TransmissionDescriptorType:
    """The transmission descriptor to which the ports of a technology refer."""
    settings = LayeredParametersType(
        layer_rate=layer(technology.port_rates[-1]),
        parameter_list=NameAndValueStringListType(
            nvs=[NameAndStringValueType(name="ServiceState", value="IN_SERVICE")]
        ),
    )
    return TransmissionDescriptorType(
        name=called,
        transmission_parameters_list=LayeredParametersListType(transmission_parameters=[settings]),
        service_category=technology.name,
    )


def _layers(*found: str) -> LayeredParametersListType:
    return LayeredParametersListType(
        transmission_parameters=[LayeredParametersType(layer_rate=layer(rate)) for rate in found]
    )
