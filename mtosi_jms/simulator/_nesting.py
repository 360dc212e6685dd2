"""ResourceInventoryRetrieval over what was recorded: named objects put into the nested layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator._recording import Recording
from mtosi_jms.stubs.fmw.md import ManagementDomainType
from mtosi_jms.stubs.fmw.msg import InvalidInputFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.mri import rir
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.ftp import FloatingTerminationPointType
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.stubs.nrf.os import OperationsSystemType
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType
from mtosi_jms.stubs.nrf.tl import TopologicalLinkType
from mtosi_jms.stubs.nrf.tmd import TransmissionDescriptorType


class RecordedInventoryEms(ResourceInventoryRetrieval.Supplier):
    """ResourceInventoryRetrieval over a recording, in the nested layout: holders stand side by side in their element.

    Of a filter it honours the base instances, which may be domains or managed elements. Objects in an element that was
    not recorded itself are left out, as are kinds of objects that the layout has no place for.

    Args:
        recording: what there is.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def get_inventory(
        self, request: rir.GetInventoryRequest, context: RequestContext
    ) -> Iterator[rir.GetInventoryResponse]:
        """The recorded objects below their domains; a size counts managed elements here."""
        bases = [str(base) for base in request.filter.base_instance] if request.filter is not None else []
        elements = [found for found in self.recording.elements() if _is_wanted(str(found.name), bases)]
        for base in bases:
            if not any(_is_wanted(str(found.name), [base]) for found in elements):
                raise InvalidInputFault(f"there is no {base}")
        size = context.batch_size or max(len(elements), 1)
        for first in range(0, max(len(elements), 1), size):
            data = self._data(elements[first : first + size])
            if first == 0 and not bases:
                self._add_what_is_shared(data)
            yield rir.GetInventoryResponse(inventory_data=data)

    def _data(self, elements: Iterable[ManagedElementType]) -> invdata.InventoryDataType:
        data = invdata.InventoryDataType(md_list=invdata.InventoryDataTypeMdList())
        for element in elements:
            domain = self._domain(data, element)
            domain.me_list = domain.me_list or invdata.ManagementDomainInventoryTypeMeList()
            domain.me_list.me_inv.append(self._element(element))
        return data

    def _domain(self, data: invdata.InventoryDataType, found: Any) -> invdata.ManagementDomainInventoryType:
        """The domain that an object's name begins with."""
        domains = data.md_list.md if data.md_list is not None else []
        called = found.name.rdn[0].value
        for domain in domains:
            if domain.md_nm == called:
                return domain
        name = NamingAttributeType(rdn=found.name.rdn[:1])
        attributes = self.recording.objects.get(str(name))
        if not isinstance(attributes, ManagementDomainType):
            attributes = ManagementDomainType(name=name)
        domains.append(invdata.ManagementDomainInventoryType(md_nm=called, md_attrs=attributes))
        return domains[-1]

    def _add_what_is_shared(self, data: invdata.InventoryDataType) -> None:
        """Add links, transmission descriptors and management systems."""
        for found in self.recording.objects.values():
            if isinstance(found, TopologicalLinkType):
                domain = self._domain(data, found)
                domain.tl_list = domain.tl_list or invdata.ManagementDomainInventoryTypeTlList()
                domain.tl_list.tl_inv.append(invdata.TopologicalLinkInventoryType(tl_nm=_short(found), tl_attrs=found))
            elif isinstance(found, TransmissionDescriptorType):
                data.tmd_list = data.tmd_list or invdata.InventoryDataTypeTmdList()
                data.tmd_list.tmd.append(
                    invdata.TransmissionDescriptorInventoryType(tmd_nm=_short(found), tmd_attrs=found)
                )
            elif isinstance(found, OperationsSystemType):
                data.os_list = data.os_list or invdata.InventoryDataTypeOsList()
                data.os_list.os.append(invdata.OperationsSystemInventoryType(os_nm=_short(found), os_attrs=found))

    def _element(self, element: ManagedElementType) -> invdata.ManagedElementInventoryType:
        inside = self.recording.inside(element.name) if isinstance(element.name, NamingAttributeType) else []
        holders = _holders(inside)
        channels = _channels(inside)
        ports = [
            invdata.PhysicalTerminationPointInventoryType(
                ptp_nm=_short(port),
                ptp_attrs=port,
                ctp_list=invdata.PhysicalTerminationPointInventoryTypeCtpList(ctp_inv=channels.get(str(port.name), [])),
            )
            for port in inside
            if isinstance(port, PhysicalTerminationPointType)
        ]
        floating = [
            invdata.FloatingTerminationPointInventoryType(
                ftp_nm=_short(point),
                ftp_attrs=point,
                ctp_list=invdata.FloatingTerminationPointInventoryTypeCtpList(
                    ctp_inv=channels.get(str(point.name), [])
                ),
            )
            for point in inside
            if isinstance(point, FloatingTerminationPointType)
        ]
        return invdata.ManagedElementInventoryType(
            me_nm=_short(element),
            me_attrs=element,
            eh_list=invdata.ManagedElementInventoryTypeEhList(eh_inv=holders) if holders else None,
            ptp_list=invdata.ManagedElementInventoryTypePtpList(ptp_inv=ports) if ports else None,
            ftp_list=invdata.ManagedElementInventoryTypeFtpList(ftp_inv=floating) if floating else None,
        )


def _is_wanted(name: str, bases: list[str]) -> bool:
    return not bases or any(name == base or name.startswith(f"{base}/") for base in bases)


def _holders(inside: Iterable[Any]) -> list[invdata.EquipmentHolderInventoryType]:
    """The holders, each with its card; a card whose holder was not recorded has no place."""
    found = {
        str(one.name): invdata.EquipmentHolderInventoryType(eh_nm=_short(one), eh_attrs=one)
        for one in inside
        if isinstance(one, EquipmentHolderType)
    }
    for card in inside:
        holder = found.get(_around(card)) if isinstance(card, EquipmentType) else None
        if holder is not None:
            holder.eq_inv = invdata.EquipmentInventoryType(eq_nm=_short(card), eq_attrs=card)
    return list(found.values())


def _channels(inside: Iterable[Any]) -> dict[str, list[invdata.ConnectionTerminationPointInventoryType]]:
    """The connection termination points by the full names of the points that they are below."""
    found: dict[str, list[invdata.ConnectionTerminationPointInventoryType]] = {}
    for one in inside:
        if isinstance(one, ConnectionTerminationPointType):
            channel = invdata.ConnectionTerminationPointInventoryType(ctp_nm=_short(one), ctp_attrs=one)
            found.setdefault(_around(one), []).append(channel)
    return found


def _around(found: Any) -> str:
    return str(NamingAttributeType(rdn=found.name.rdn[:-1]))


def _short(found: Any) -> str:
    return str(found.name.rdn[-1].value)
