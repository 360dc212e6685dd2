"""Services that answer for a network: ManagedElementRetrieval, EquipmentInventoryRetrieval and AlarmRetrieval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator._parts import Resource, Steps, steps_of
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InvalidInputFault, UnableToComplyFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.mri import eir, mer
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import AlarmType
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.eq_inv import EquipmentOrEquipmentHolderType
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.stubs.rtm import ar
from mtosi_jms.stubs.rtm.alarm_retrieval import AlarmRetrieval


class Source(Protocol):
    """The data for the services: a `Network`, or a `Recording`."""

    def elements_in(self, domain: NamingAttributeType | None) -> Iterable[ManagedElementType] | None:
        """The elements of a domain, or of all domains if `domain` is None; None if there is no such domain."""
        ...

    def is_managed_by(self, system: NamingAttributeType) -> bool:
        """Whether a management system manages the network."""
        ...

    def equipment_of(self, element: NamingAttributeType) -> Iterable[EquipmentHolderType | EquipmentType] | None:
        """The holders and cards of an element; None if there is no such element."""
        ...

    def find(self, wanted: NamingAttributeType) -> Resource | None:
        """The object of a name; None if there is none."""
        ...


class ManagedElementEms(ManagedElementRetrieval.Supplier):
    """ManagedElementRetrieval over a generated or a recorded network."""

    def __init__(self, network: Source) -> None:
        self.network = network

    def get_all_managed_elements(
        self, request: mer.GetAllManagedElementsRequest, context: RequestContext
    ) -> Iterable[ManagedElementType]:
        """All elements of a management domain; of all domains if none is named."""
        return self._elements_in(request.md_or_mlsn_ref)

    def get_all_managed_elements_passing_filter(
        self, request: mer.GetAllManagedElementsPassingFilterRequest, context: RequestContext
    ) -> Iterator[ManagedElementType]:
        wanted = request.filter
        for element in self._elements_in(request.md_ref):
            if wanted is None or _element_passes(element, wanted):
                yield element

    def get_all_managed_elements_wrt_os(
        self, request: mer.GetAllManagedElementsWrtOsRequest, context: RequestContext
    ) -> Iterable[ManagedElementType]:
        """The elements that an OS manages; it must be this OS."""
        elements = self._elements_in(request.md_ref)
        if request.os_ref is not None and not self.network.is_managed_by(request.os_ref):
            raise EntityNotFoundFault(f"there is no {request.os_ref}")
        return elements

    def get_managed_element(
        self, request: mer.GetManagedElementRequest, context: RequestContext
    ) -> mer.GetManagedElementResponse:
        """One element by its name."""
        wanted = _needed(request.me_ref, "meRef")
        found = self.network.find(wanted)
        if not isinstance(found, ManagedElementType):
            raise EntityNotFoundFault(f"there is no {wanted}")
        return mer.GetManagedElementResponse(me=found)

    def _elements_in(self, domain: NamingAttributeType | None) -> Iterable[ManagedElementType]:
        elements = self.network.elements_in(domain)
        if elements is None:
            raise EntityNotFoundFault(f"there is no {domain}")
        return elements


class EquipmentEms(EquipmentInventoryRetrieval.Supplier):
    """EquipmentInventoryRetrieval: the content of an element or a holder. It does not know what a card supports."""

    def __init__(self, network: Source) -> None:
        self.network = network

    def get_all_equipment(
        self, request: eir.GetAllEquipmentRequest, context: RequestContext
    ) -> Iterator[EquipmentOrEquipmentHolderType]:
        outer = _needed(request.me_or_eh_ref, "meOrEhRef")
        below, base = self._below(outer), steps_of(outer)
        return (_either(found) for found in below if _is_inside(steps_of(found.name), base))

    def get_contained_equipment(
        self, request: eir.GetContainedEquipmentRequest, context: RequestContext
    ) -> Iterator[EquipmentOrEquipmentHolderType]:
        outer = _needed(request.eh_ref, "ehRef")
        below, base = self._below(outer), steps_of(outer)
        return (_either(found) for found in below if _is_directly_inside(steps_of(found.name), base))

    def get_equipment(self, request: eir.GetEquipmentRequest, context: RequestContext) -> eir.GetEquipmentResponse:
        wanted = _needed(request.equipment_or_eh_ref, "equipmentOrEhRef")
        found = self.network.find(wanted)
        if not isinstance(found, EquipmentHolderType | EquipmentType):
            raise EntityNotFoundFault(f"there is no {wanted}")
        return eir.GetEquipmentResponse(equipment_or_eh_list=_either(found))

    def _below(self, outer: NamingAttributeType) -> Iterable[EquipmentHolderType | EquipmentType]:
        """The equipment of the element to which an element or a holder belongs."""
        found = self.network.equipment_of(NamingAttributeType(rdn=outer.rdn[:2]))
        is_holder = len(outer.rdn) > 2
        if found is None or (is_holder and not isinstance(self.network.find(outer), EquipmentHolderType)):
            raise EntityNotFoundFault(f"there is no {outer}")
        return found


class AlarmEms(AlarmRetrieval.Supplier):
    """AlarmRetrieval over a fixed set of alarms. All alarms are of the network, none is of the system itself. `alarms`:
    the alarms; `standing_alarms(network.events(n)).values()` are those of a generated network."""

    def __init__(self, alarms: Iterable[AlarmType]) -> None:
        self.alarms = tuple(alarms)

    def get_active_alarms(self, request: ar.GetActiveAlarmsRequest, context: RequestContext) -> Iterator[AlarmType]:
        return self._passing(request.filter)

    def get_active_alarms_count(
        self, request: ar.GetActiveAlarmsCountRequest, context: RequestContext
    ) -> ar.GetActiveAlarmsCountResponse:
        return ar.GetActiveAlarmsCountResponse(active_alarm_count=sum(1 for _ in self._passing(request.filter)))

    def _passing(self, wanted: ar.ActiveAlarmFilterType | None) -> Iterator[AlarmType]:
        if wanted is None:
            return iter(self.alarms)
        if wanted.query_expression is not None:
            raise UnableToComplyFault("this simulator does not support query expressions")
        if wanted.source == ar.AlarmSourceType.INTERNAL:
            return iter(())
        return (alarm for alarm in self.alarms if _alarm_passes(alarm, wanted))


def _element_passes(element: ManagedElementType, wanted: mer.FilterType) -> bool:
    for field in ("location", "manufacturer", "product_name"):
        value = getattr(wanted, field)
        if value is not None and value != getattr(element, field):
            return False
    state = wanted.resource_state
    return state is None or (bool(element.resource_state) and element.resource_state == state)


def _alarm_passes(alarm: AlarmType, wanted: ar.ActiveAlarmFilterType) -> bool:
    severities = wanted.perceived_severity_list
    if severities is not None and alarm.perceived_severity not in severities.perceived_severity:
        return False
    causes = wanted.probable_cause_list
    cause = alarm.probable_cause.probable_cause if alarm.probable_cause is not None else None
    if causes is not None and cause not in [one.probable_cause for one in causes.prc]:
        return False
    if wanted.acknowledge_indication not in (None, alarm.acknowledge_indication):
        return False
    if wanted.scope is None:
        return True
    inner = steps_of(alarm.object_name)
    return any(inner == outer or _is_inside(inner, outer) for outer in map(steps_of, wanted.scope.name))


def _is_inside(inner: Steps, outer: Steps) -> bool:
    """Whether an object is inside another one, by its name.

    For a holder the path counts: `EH=/rack=1/shelf=1` is inside `EH=/rack=1`.
    """
    if len(inner) > len(outer) and inner[: len(outer)] == outer:
        return True
    last = len(outer) - 1
    if last < 0 or len(inner) < len(outer) or inner[:last] != outer[:last]:
        return False
    return inner[last][0] == outer[last][0] == "EH" and inner[last][1].startswith(f"{outer[last][1]}/")


def _is_directly_inside(inner: Steps, outer: Steps) -> bool:
    if len(inner) == len(outer):
        return _is_inside(inner, outer) and inner[-1][1].rpartition("/")[0] == outer[-1][1]
    return len(inner) == len(outer) + 1 and inner[:-1] == outer


def _needed(name: NamingAttributeType | None, field: str) -> NamingAttributeType:
    if name is None:
        raise InvalidInputFault(f"{field} is needed")
    return name


def _either(found: EquipmentHolderType | EquipmentType) -> EquipmentOrEquipmentHolderType:
    if isinstance(found, EquipmentHolderType):
        return EquipmentOrEquipmentHolderType(eh=found)
    return EquipmentOrEquipmentHolderType(eq=found)
