"""The objects inside an element: holders, cards, ports and channels, in the flat form and in that of a technology."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, TypeAlias

from mtosi_jms.simulator._frames import Frame
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

_CARRIER: Final = "CARRIER"
_FLAT_CARDS: Final = 2


def below(base: NamingAttributeType | None, kind: str, value: str) -> NamingAttributeType:
    """The name of an object directly below another; None: of an outermost one."""
    steps = [(step.type, step.value) for step in base.rdn] if base is not None else []
    return NamingAttributeType(rdn=[RelativeDistinguishNameType(type=t, value=v) for t, v in (*steps, (kind, value))])


def steps_of(found: Resource) -> list[tuple[str, str]]:
    """The name of an object, step by step."""
    return [(step.type, step.value) for step in found.name.rdn] if isinstance(found.name, NamingAttributeType) else []


def layer(rate: str) -> LayerRateType:
    """A layer rate."""
    return LayerRateType(value=LayerRateEnumType(rate))


def rates(technology: Technology, chance: random.Random) -> list[LayerRateType]:
    """The layer rates that an element can connect: those of its technology, or some of them where it is mixed."""
    found = technology.rates
    if technology.is_mixed:
        found = tuple(sorted(chance.sample(found, chance.randrange(1, 3))))
    return [layer(rate) for rate in found]


def flat_holders(base: NamingAttributeType) -> Iterator[EquipmentHolderType]:
    """The rack and the shelf of a mixed network's element."""
    for kind, path in ((EquipmentHolderEnumType.rack, "/rack=1"), (EquipmentHolderEnumType.shelf, "/rack=1/shelf=1")):
        yield _holder(base, kind, path)


def holders(base: NamingAttributeType, frame: Frame, technology: Technology) -> Iterator[EquipmentHolderType]:
    """The holders of an element, each before those in it."""
    for place in frame.holders():
        found = _holder(base, place.kind, place.path)
        if place.card:
            fitting = list(technology.cards) if place.innermost else [_CARRIER]
            found.acceptable_equipment_type_list = EquipmentHolderTypeAcceptableEquipmentTypeList(
                acceptable_equipment_type=fitting
            )
            found.expected_or_installed_equipment_ref = below(below(base, "EH", place.path), "EQ", "1")
        yield found


def _holder(base: NamingAttributeType, kind: EquipmentHolderEnumType, path: str) -> EquipmentHolderType:
    return EquipmentHolderType(
        name=below(base, "EH", path),
        is_reporting_alarms=True,
        holder_type=EquipmentHolderTypeType(value=kind),
        holder_state=HolderStateType.INSTALLED_AND_EXPECTED,
    )


def flat_cards(base: NamingAttributeType, index: int, chance: random.Random) -> Iterator[EquipmentType]:
    """The cards of a mixed network's element, in its shelf."""
    shelf = below(base, "EH", "/rack=1/shelf=1")
    for slot in range(1, _FLAT_CARDS + 1):
        yield _card(below(shelf, "EQ", str(slot)), f"Card-{slot}", f"SN{index:06d}{slot}", chance)


def cards(
    base: NamingAttributeType, index: int, frame: Frame, technology: Technology, chance: random.Random
) -> Iterator[EquipmentType]:
    """The cards of an element: one in each slot, and one in each sub-slot."""
    occupied = (place for place in frame.holders() if place.card)
    for number, place in enumerate(occupied, 1):
        kind = chance.choice(technology.cards) if place.innermost else _CARRIER
        found = _card(below(below(base, "EH", place.path), "EQ", "1"), kind, f"SN{index:06d}{number:03d}", chance)
        found.expected_equipment_object_type = kind
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


def flat_port_path(number: int) -> str:
    """Where a port of a mixed network's element is."""
    return f"/rack=1/shelf=1/port={number + 1}"


def flat_port(called: NamingAttributeType, *, edge: bool) -> PhysicalTerminationPointType:
    """A port of a mixed network's element."""
    return PhysicalTerminationPointType(name=called, direction=DirectionalityType.D_BIDIRECTIONAL, is_edge_point=edge)


def port(
    called: NamingAttributeType, technology: Technology, *, edge: bool, descriptors: tuple[NamingAttributeType, ...]
) -> PhysicalTerminationPointType:
    """A port with its layers.

    Args:
        called: its name.
        technology: of the network.
        edge: whether it is at the edge of the network.
        descriptors: names of the transmission descriptors for incoming and outgoing traffic.
    """
    applied = TransmissionDescriptorStateType.APPLIED
    incoming, outgoing = descriptors
    return PhysicalTerminationPointType(
        name=called,
        direction=DirectionalityType.D_BIDIRECTIONAL,
        is_edge_point=edge,
        egress_tmd_state=applied,
        ingress_tmd_state=applied,
        ingress_tmd_ref=incoming,
        egress_tmd_ref=outgoing,
        transmission_parameters_list=_layers(*technology.port_rates),
    )


def channel(base: NamingAttributeType, technology: Technology, number: int) -> ConnectionTerminationPointType:
    """A channel of a port."""
    path, rate = technology.channel(number)
    return ConnectionTerminationPointType(
        name=below(base, "CTP", path),
        direction=DirectionalityType.D_BIDIRECTIONAL,
        transmission_parameters_list=_layers(rate) if rate else None,
    )


def floating(base: NamingAttributeType, technology: Technology, number: int) -> FloatingTerminationPointType:
    """A floating termination point of an element."""
    return FloatingTerminationPointType(
        name=below(base, "FTP", f"/ftp={number + 1}"),
        direction=DirectionalityType.D_BIDIRECTIONAL,
        is_edge_point=False,
        transmission_parameters_list=_layers(technology.rates[0]),
    )


def descriptor(called: NamingAttributeType, technology: Technology) -> TransmissionDescriptorType:
    """The transmission descriptor that the ports of a technology refer to."""
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
