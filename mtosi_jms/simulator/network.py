"""A network made from a seed: the same objects for the same numbers on every machine, built only when asked for.

One management domain holds the elements; each element has a rack with shelves, equipment in them, ports and connection
termination points below the ports. No object is kept, so a network of any size costs nothing until it is walked.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.stubs.fmw.gen import AliasNameListType, AliasNameListTypeAlias, AnyListType
from mtosi_jms.stubs.fmw.nam import NamingAttributeType, name
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType, SourceEnumType, SourceType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateListType, LayerRateType
from mtosi_jms.stubs.nrf.com import (
    DirectionalityType,
    EquipmentHolderEnumType,
    EquipmentHolderTypeType,
    HolderStateType,
    ResourceFulfillmentStateEnumType,
)
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.me import CommunicationStateType, ManagedElementType
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType
from mtosi_jms.xmlbind import Nil, RawXml, escape_name_part

_PRODUCTS: Final = (
    ("Northwind Optical", "NWO-8800", ("9.1.2", "9.2.0", "9.2.4")),
    ("Northwind Optical", "NWO-4400", ("6.0.1", "6.0.9")),
    ("Lumen & Sons", "Packet <X> 500", ("21.4", "22.1", "22.2")),
    ("Transvega", "TV-10K", ("R14", "R15 SP2")),
    ("Kilotel", "K-Edge", ("3.3.3",)),
)
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
_RATES: Final = ("LR_Line_OC48_STS48_and_MS_STM16", "LR_Line_OC192_STS192_and_MS_STM64", "LR_Ethernet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A generated network.

    Attributes:
        elements: how many managed elements.
        seed: other numbers give other attribute values.
        domain: name of the management domain.
        ports: physical termination points in each element.
        channels: connection termination points below each port.

    Raises:
        ConfigError: a negative number, or no name.
    """

    elements: int = 2000
    seed: int = 1
    domain: str = "EMS1"
    ports: int = 4
    channels: int = 2

    def __post_init__(self) -> None:
        if min(self.elements, self.ports, self.channels) < 0 or not self.domain:
            raise ConfigError("a network has a domain name, and numbers of elements, ports and channels from 0")

    def domain_name(self) -> NamingAttributeType:
        """The name of the management domain."""
        found: NamingAttributeType = name(f"MD={escape_name_part(self.domain)}")
        return found

    def element_name(self, index: int) -> NamingAttributeType:
        """The name of an element, counted from 0."""
        found: NamingAttributeType = name(f"MD={escape_name_part(self.domain)}/ME=NE-{index + 1}")
        return found

    def index_of(self, wanted: NamingAttributeType) -> int | None:
        """Which element has a name; None if none has."""
        parts = [(part.type, part.value or "") for part in wanted.rdn]
        if len(parts) != 2 or parts[0] != ("MD", self.domain) or parts[1][0] != "ME":
            return None
        digits = parts[1][1].removeprefix("NE-")
        index = int(digits) - 1 if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else -1
        return index if 0 <= index < self.elements and parts[1][1] == f"NE-{index + 1}" else None

    def managed_elements(self) -> Iterator[ManagedElementType]:
        """All elements, in the order of their numbers."""
        return (self.managed_element(index) for index in range(self.elements))

    def managed_element(self, index: int) -> ManagedElementType:
        """One element, counted from 0."""
        chance = random.Random(f"{self.seed}/{index}")
        vendor, product, versions = chance.choice(_PRODUCTS)
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
            supported_connection_layer_rate_list=LayerRateListType(layer_rate=_rates(chance)),
            communication_state=(
                CommunicationStateType.CS_AVAILABLE if chance.random() < 0.99 else CommunicationStateType.CS_UNAVAILABLE
            ),
        )

    def holders(self, index: int) -> Iterator[EquipmentHolderType]:
        """The rack of an element and its shelf, each named below the element."""
        base = str(self.element_name(index))
        for kind, path in (
            (EquipmentHolderEnumType.rack, "/rack=1"),
            (EquipmentHolderEnumType.shelf, "/rack=1/shelf=1"),
        ):
            yield EquipmentHolderType(
                name=_below(base, "EH", path),
                is_reporting_alarms=True,
                holder_type=EquipmentHolderTypeType(value=kind),
                holder_state=HolderStateType.INSTALLED_AND_EXPECTED,
            )

    def equipment(self, index: int) -> Iterator[EquipmentType]:
        """The cards of an element's shelf."""
        chance = random.Random(f"{self.seed}/{index}/eq")
        base = str(_below(str(self.element_name(index)), "EH", "/rack=1/shelf=1"))
        for slot in range(1, 3):
            yield EquipmentType(
                name=name(f"{base}/EQ={slot}"),
                is_reporting_alarms=True,
                installed_equipment_object_type=f"Card-{slot}",
                installed_part_number=f"PN-{chance.randrange(10_000):04d}",
                installed_serial_number=f"SN{index:06d}{slot}",
                resource_fulfillment_state=ResourceFulfillmentStateEnumType.IN_SERVICE,
                installed_version=f"{chance.randrange(1, 9)}.0",
            )

    def port(self, index: int, number: int) -> PhysicalTerminationPointType:
        """One port of an element, counted from 0."""
        return PhysicalTerminationPointType(
            name=_below(str(self.element_name(index)), "PTP", f"/rack=1/shelf=1/port={number + 1}"),
            direction=DirectionalityType.D_BIDIRECTIONAL,
            is_edge_point=number == 0,
        )

    def channel(self, index: int, port: int, number: int) -> ConnectionTerminationPointType:
        """One connection termination point of a port, counted from 0."""
        base = str(self.port(index, port).name)
        return ConnectionTerminationPointType(
            name=_below(base, "CTP", f"/sts3c_au4={number + 1}"), direction=DirectionalityType.D_BIDIRECTIONAL
        )


def _below(base: str, kind: str, value: str) -> NamingAttributeType:
    found: NamingAttributeType = name(f"{base}/{kind}={escape_name_part(value)}")
    return found


def _rates(chance: random.Random) -> list[LayerRateType | Nil]:
    rates = chance.sample(_RATES, chance.randrange(1, 3))
    return [LayerRateType(value=LayerRateEnumType(rate)) for rate in sorted(rates)]


def _site_code(chance: random.Random) -> AnyListType:
    text = f'<v:siteCode xmlns:v="urn:example:vendor">S-{chance.randrange(1000):03d}</v:siteCode>'
    return AnyListType(any_=[RawXml(text.encode("utf-8"))])
