"""EquipmentInventoryRetrieval: holders and the cards in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator._parts import Resource, steps_of
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InvalidInputFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.mri import eir
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.eq_inv import EquipmentOrEquipmentHolderType

Steps = list[tuple[str, str]]


class EquipmentSource(Protocol):
    """Where the equipment is from: a `Network`, or a `Recording`."""

    def equipment_of(self, element: NamingAttributeType) -> Iterable[EquipmentHolderType | EquipmentType] | None:
        """The holders and cards of an element; None where there is no such element."""
        ...

    def find(self, wanted: NamingAttributeType) -> Resource | None:
        """The object of a name, None if there is none."""
        ...


class EquipmentEms(EquipmentInventoryRetrieval.Supplier):
    """EquipmentInventoryRetrieval: what is in an element or a holder. Which card carries what it does not know.

    Args:
        network: what there is.
    """

    def __init__(self, network: EquipmentSource) -> None:
        self.network = network

    def get_all_equipment(
        self, request: eir.GetAllEquipmentRequest, context: RequestContext
    ) -> Iterator[EquipmentOrEquipmentHolderType]:
        """All holders and cards in an element or in a holder, at any depth."""
        outer = _needed(request.me_or_eh_ref, "meOrEhRef")
        return (_either(found) for found in self._below(outer) if is_inside(steps_of(found), _steps(outer)))

    def get_contained_equipment(
        self, request: eir.GetContainedEquipmentRequest, context: RequestContext
    ) -> Iterator[EquipmentOrEquipmentHolderType]:
        """The holders and the card directly in a holder."""
        outer = _needed(request.eh_ref, "ehRef")
        return (_either(found) for found in self._below(outer) if _directly_inside(steps_of(found), _steps(outer)))

    def get_equipment(self, request: eir.GetEquipmentRequest, context: RequestContext) -> eir.GetEquipmentResponse:
        """One holder or card by its name."""
        wanted = _needed(request.equipment_or_eh_ref, "equipmentOrEhRef")
        found = self.network.find(wanted)
        if not isinstance(found, EquipmentHolderType | EquipmentType):
            raise EntityNotFoundFault(f"there is no {wanted}")
        return eir.GetEquipmentResponse(equipment_or_eh_list=_either(found))

    def _below(self, outer: NamingAttributeType) -> Iterable[EquipmentHolderType | EquipmentType]:
        """What is in the element that an element or a holder belongs to."""
        if len(outer.rdn) > 2 and not isinstance(self.network.find(outer), EquipmentHolderType):
            raise EntityNotFoundFault(f"there is no {outer}")
        found = self.network.equipment_of(NamingAttributeType(rdn=outer.rdn[:2]))
        if found is None:
            raise EntityNotFoundFault(f"there is no {outer}")
        return found


def is_inside(inner: Steps, outer: Steps) -> bool:
    """Whether the name of an object says that it is in another one.

    A holder's name says so by its path: `EH=/rack=1/shelf=1` is in `EH=/rack=1`.
    """
    if len(inner) > len(outer) and inner[: len(outer)] == outer:
        return True
    last = len(outer) - 1
    if last < 0 or len(inner) < len(outer) or inner[:last] != outer[:last]:
        return False
    return inner[last][0] == outer[last][0] == "EH" and inner[last][1].startswith(f"{outer[last][1]}/")


def _directly_inside(inner: Steps, outer: Steps) -> bool:
    if len(inner) == len(outer):
        return is_inside(inner, outer) and inner[-1][1].rpartition("/")[0] == outer[-1][1]
    return len(inner) == len(outer) + 1 and inner[:-1] == outer


def _steps(name: NamingAttributeType) -> Steps:
    return [(step.type, step.value) for step in name.rdn]


def _needed(name: NamingAttributeType | None, field: str) -> NamingAttributeType:
    if name is None:
        raise InvalidInputFault(f"{field} is needed")
    return name


def _either(found: EquipmentHolderType | EquipmentType) -> EquipmentOrEquipmentHolderType:
    if isinstance(found, EquipmentHolderType):
        return EquipmentOrEquipmentHolderType(eh=found)
    return EquipmentOrEquipmentHolderType(eq=found)
