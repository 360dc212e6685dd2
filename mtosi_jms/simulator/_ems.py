"""Services that answer for a generated network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator._network import Network
from mtosi_jms.simulator._parts import Resource
from mtosi_jms.stubs.fmw.md import ManagementDomainType
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InvalidInputFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.mri import mer, rir
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.me import ManagedElementType


class ElementSource(Protocol):
    """Where ManagedElementRetrieval has its elements from: a `Network`, or a `Recording`."""

    def elements_in(self, domain: NamingAttributeType | None) -> Iterable[ManagedElementType] | None:
        """The elements of a management domain, of all where none is named; None where there is no such domain."""
        ...

    def is_managed_by(self, system: NamingAttributeType) -> bool:
        """Whether a management system is the one that all this is behind."""
        ...

    def find(self, wanted: NamingAttributeType) -> Resource | None:
        """The object of a name, None if there is none."""
        ...


class ManagedElementEms(ManagedElementRetrieval.Supplier):
    """ManagedElementRetrieval over a generated network, or over one that was recorded.

    Args:
        network: what there is.
    """

    def __init__(self, network: ElementSource) -> None:
        self.network = network

    def get_all_managed_elements(
        self, request: mer.GetAllManagedElementsRequest, context: RequestContext
    ) -> Iterable[ManagedElementType]:
        """All elements of a management domain; of the only one there is if none is named."""
        return self._elements_in(request.md_or_mlsn_ref)

    def get_all_managed_elements_passing_filter(
        self, request: mer.GetAllManagedElementsPassingFilterRequest, context: RequestContext
    ) -> Iterator[ManagedElementType]:
        """The elements whose attributes equal all those that the filter names."""
        wanted = request.filter
        for element in self._elements_in(request.md_ref):
            if wanted is None or _passes(element, wanted):
                yield element

    def get_all_managed_elements_wrt_os(
        self, request: mer.GetAllManagedElementsWrtOsRequest, context: RequestContext
    ) -> Iterable[ManagedElementType]:
        """All elements: they are this OS's."""
        elements = self._elements_in(request.md_ref)
        if request.os_ref is not None and not self.network.is_managed_by(request.os_ref):
            raise EntityNotFoundFault(f"there is no {request.os_ref}")
        return elements

    def get_managed_element(
        self, request: mer.GetManagedElementRequest, context: RequestContext
    ) -> mer.GetManagedElementResponse:
        """One element by its name."""
        if request.me_ref is None:
            raise InvalidInputFault("meRef is needed")
        found = self.network.find(request.me_ref)
        if not isinstance(found, ManagedElementType):
            raise EntityNotFoundFault(f"there is no {request.me_ref}")
        return mer.GetManagedElementResponse(me=found)

    def _elements_in(self, domain: NamingAttributeType | None) -> Iterable[ManagedElementType]:
        elements = self.network.elements_in(domain)
        if elements is None:
            raise EntityNotFoundFault(f"there is no {domain}")
        return elements


def _passes(element: ManagedElementType, wanted: mer.FilterType) -> bool:
    for field in ("location", "manufacturer", "product_name"):
        value = getattr(wanted, field)
        if value is not None and value != getattr(element, field):
            return False
    state = wanted.resource_state
    return state is None or (bool(element.resource_state) and element.resource_state == state)


class InventoryEms(ResourceInventoryRetrieval.Supplier):
    """ResourceInventoryRetrieval over a generated network, in the nested layout.

    Of a filter it honours the base instances, which may be the domain or managed elements; kinds of objects and
    granularity it does not look at: what is given is given in full.

    Args:
        network: what there is.
    """

    def __init__(self, network: Network) -> None:
        self.network = network

    def get_inventory(
        self, request: rir.GetInventoryRequest, context: RequestContext
    ) -> Iterator[rir.GetInventoryResponse]:
        """The network below its management domain; a size counts managed elements here."""
        wanted = self._wanted(request)
        size = context.batch_size or max(len(wanted), 1)
        for first in range(0, max(len(wanted), 1), size):
            data = self.data(wanted[first : first + size])
            if isinstance(wanted, range) and first == 0:  # asked for as a whole
                self._add_what_is_shared(data)
            yield rir.GetInventoryResponse(inventory_data=data)

    def _wanted(self, request: rir.GetInventoryRequest) -> Sequence[int]:
        """Numbers of the elements asked for."""
        bases = request.filter.base_instance if request.filter is not None else []
        if not bases or str(self.network.domain_name()) in map(str, bases):
            return range(self.network.elements)
        found: dict[int, None] = {}
        for base in bases:
            index = self.network.index_of(base)
            if index is None:
                raise InvalidInputFault(f"there is no {base}")
            found[index] = None
        return list(found)

    def data(self, wanted: Sequence[int]) -> invdata.InventoryDataType:
        """The domain with some elements and the links that start at them.

        Args:
            wanted: numbers of the elements, from 0.
        """
        elements = [self._element(index) for index in wanted]
        links = [
            invdata.TopologicalLinkInventoryType(tl_nm=_last_value(link.name), tl_attrs=link)
            for index in wanted
            for link in self.network.links_of(index)
        ]
        md = invdata.ManagementDomainInventoryType(
            md_nm=self.network.domain,
            md_attrs=ManagementDomainType(name=self.network.domain_name()),
            me_list=invdata.ManagementDomainInventoryTypeMeList(me_inv=elements) if elements else None,
            tl_list=invdata.ManagementDomainInventoryTypeTlList(tl_inv=links) if links else None,
        )
        return invdata.InventoryDataType(md_list=invdata.InventoryDataTypeMdList(md=[md]))

    def _add_what_is_shared(self, data: invdata.InventoryDataType) -> None:
        """Add the management system and the transmission descriptors; a mixed network has none of its own to show."""
        descriptors = [
            invdata.TransmissionDescriptorInventoryType(tmd_nm=_last_value(found.name), tmd_attrs=found)
            for found in self.network.descriptors()
        ]
        if descriptors:
            system = self.network.operations_system()
            os = invdata.OperationsSystemInventoryType(os_nm=_last_value(system.name), os_attrs=system)
            data.tmd_list = invdata.InventoryDataTypeTmdList(tmd=descriptors)
            data.os_list = invdata.InventoryDataTypeOsList(os=[os])

    def _element(self, index: int) -> invdata.ManagedElementInventoryType:
        element = self.network.managed_element(index)
        ports = [self._port(index, number) for number in range(self.network.ports)]
        floating = [self._floating(index, number) for number in range(self.network.ftps)]
        return invdata.ManagedElementInventoryType(
            me_nm=_last_value(element.name),
            me_attrs=element,
            eh_list=invdata.ManagedElementInventoryTypeEhList(eh_inv=self._holders(index)),
            ptp_list=invdata.ManagedElementInventoryTypePtpList(ptp_inv=ports) if ports else None,
            ftp_list=invdata.ManagedElementInventoryTypeFtpList(ftp_inv=floating) if floating else None,
        )

    def _holders(self, index: int) -> list[invdata.EquipmentHolderInventoryType]:
        """The outermost holders with those in them; of a flat shelf all stand side by side."""
        cards = list(self.network.equipment(index))
        holders = [
            invdata.EquipmentHolderInventoryType(eh_nm=_last_value(holder.name), eh_attrs=holder)
            for holder in self.network.holders(index)
        ]
        if self.network.made_of.is_mixed:
            for holder, card in zip(holders, cards, strict=False):
                holder.eq_inv = _card(card)
            return holders
        by_path = {holder.eh_nm or "": holder for holder in holders}
        for card in cards:
            by_path[_holder_of(card)].eq_inv = _card(card)
        outermost = []
        for path, holder in by_path.items():
            around = by_path.get(path.rpartition("/")[0])
            if around is None:
                outermost.append(holder)
            else:
                around.eh_list = around.eh_list or invdata.EquipmentHolderInventoryTypeEhList()
                around.eh_list.eh_inv.append(holder)
        return outermost

    def _floating(self, index: int, number: int) -> invdata.FloatingTerminationPointInventoryType:
        found = self.network.ftp(index, number)
        return invdata.FloatingTerminationPointInventoryType(ftp_nm=_last_value(found.name), ftp_attrs=found)

    def _port(self, index: int, number: int) -> invdata.PhysicalTerminationPointInventoryType:
        port = self.network.port(index, number)
        channels = [self.network.channel(index, number, channel) for channel in range(self.network.channels)]
        return invdata.PhysicalTerminationPointInventoryType(
            ptp_nm=_last_value(port.name),
            ptp_attrs=port,
            ctp_list=invdata.PhysicalTerminationPointInventoryTypeCtpList(
                ctp_inv=[
                    invdata.ConnectionTerminationPointInventoryType(ctp_nm=_last_value(channel.name), ctp_attrs=channel)
                    for channel in channels
                ]
            ),
        )


def _last_value(found: object) -> str | None:
    return found.rdn[-1].value if isinstance(found, NamingAttributeType) else None


def _holder_of(card: EquipmentType) -> str:
    """The path of the holder that a card is in."""
    return card.name.rdn[-2].value if isinstance(card.name, NamingAttributeType) else ""


def _card(card: EquipmentType) -> invdata.EquipmentInventoryType:
    return invdata.EquipmentInventoryType(eq_nm=_last_value(card.name), eq_attrs=card)
