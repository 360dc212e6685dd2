"""The objects inside an element: holders, cards, ports and channels, and the frame that gives their positions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from mtosi_jms.simulator._technologies import Technology
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
