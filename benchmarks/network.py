"""The data: managed elements of about 1.1 kB each, the same on every machine, and functions that read all their leaves.

The benchmarks have a network of their own, so that figures stay comparable when the simulator changes. It has no vendor
extensions, because each library treats open content in its own way, and the benchmarks should not compare that.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from mtosi_jms.stubs.fmw.gen import AliasNameListType, AliasNameListTypeAlias
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType, SourceEnumType, SourceType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateListType, LayerRateType
from mtosi_jms.stubs.nrf.me import CommunicationStateType, ManagedElementListType, ManagedElementType

BATCH = 500

_PRODUCTS = (
    ("Northwind Optical", "NWO-8800", "9.2.4"),
    ("Lumen & Sons", "Packet <X> 500", "22.1"),
    ("Transvega", "TV-10K", "R15 SP2"),
    ("Kilotel", "K-Edge", "3.3.3"),
)
_SITES = ("Århus", "Bergen", "Córdoba", "Delft", "Évora", "Fürth", "Gdańsk", "Haarlem")
_STATES = (ResourceStateEnumType.WORKING, ResourceStateEnumType.INSTALLING, ResourceStateEnumType.PLANNING)
_RATES = tuple(LayerRateEnumType)[1:9]


def managed_element(number: int) -> ManagedElementType:
    """Return a managed element; each number gives another one."""
    chance = random.Random(number)
    vendor, product, version = chance.choice(_PRODUCTS)
    site = chance.choice(_SITES)
    alias = AliasNameListTypeAlias(alias_name="CLLI", alias_value=f"{site[:4].upper()}{number:08d}")
    return ManagedElementType(
        name=name(f"MD=EMS1/ME=NE-{number}"),
        user_label=f"{site} {number:06d}",
        discovered_name=f"ne{number}.ems1",
        naming_os="EMS1",
        owner="Network operations",
        alias_name_list=AliasNameListType(alias=[alias]),
        source=SourceType(value=SourceEnumType.NETWORK_ME),
        network_access_domain=f"NAD-{chance.randrange(64)}",
        resource_state=ResourceStateType(value=chance.choice(_STATES)),
        location=f"{site}, room {chance.randrange(1, 400)}, row {chance.randrange(1, 40)}",
        manufacturer=vendor,
        manufacture_date=dt.date(2012, 1, 1) + dt.timedelta(days=chance.randrange(5000)),
        product_name=product,
        software_version=version,
        is_in_sync_state=chance.random() < 0.9,
        supported_connection_layer_rate_list=LayerRateListType(
            layer_rate=[LayerRateType(value=rate) for rate in chance.sample(_RATES, 2)]
        ),
        communication_state=chance.choice(tuple(CommunicationStateType)),
    )


def managed_elements(start: int, count: int) -> Iterator[ManagedElementType]:
    """Managed elements by number."""
    return (managed_element(number) for number in range(start, start + count))


def batch(start: int, count: int = BATCH) -> GetAllManagedElementsResponse:
    """Return a response with managed elements."""
    return GetAllManagedElementsResponse(me_list=ManagedElementListType(me=list(managed_elements(start, count))))


Leaves = Callable[[Any], tuple[Any, ...]]

_SCALARS = (
    ("userLabel",),
    ("discoveredName",),
    ("namingOs",),
    ("owner",),
    ("source", ""),
    ("networkAccessDomain",),
    ("resourceState", ""),
    ("location",),
    ("manufacturer",),
    ("manufactureDate",),
    ("productName",),
    ("softwareVersion",),
    ("isInSyncState",),
    ("communicationState",),
)


def leaves_reader(spell: Callable[[str], str], text: str) -> Leaves:
    """Return a function that reads every leaf of a managed element, for the classes of a library.

    Args:
        spell: gives the Python attribute for an XML name.
        text: the Python attribute with the text of an element that also has XML attributes.
    """
    scalars = attrgetter(*(".".join(spell(step) if step else text for step in path) for path in _SCALARS))
    rdns = attrgetter(f"name.{spell('rdn')}")
    rdn = attrgetter(spell("type"), spell("value"))
    aliases = attrgetter(f"{spell('aliasNameList')}.{spell('alias')}")
    alias = attrgetter(spell("aliasName"), spell("aliasValue"))
    rates = attrgetter(f"{spell('supportedConnectionLayerRateList')}.{spell('layerRate')}")
    rate = attrgetter(text)

    def read(me: Any) -> tuple[Any, ...]:
        return (*scalars(me), *map(rdn, rdns(me)), *map(alias, aliases(me)), *map(rate, rates(me)))

    return read


def snake(name: str) -> str:
    """Return the attribute of our classes for an XML name."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


read_leaves = leaves_reader(snake, "value")
"""Reads every leaf of one of our managed elements."""


def as_text(leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return leaves as text, because libraries have different classes for dates and enumerations."""
    return tuple(
        # `type` instead of `isinstance`: the dates of xsdata are named tuples.
        as_text(leaf) if type(leaf) is tuple else str(getattr(leaf, "value", leaf))
        for leaf in leaves
    )
