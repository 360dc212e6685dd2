"""Services that answer for a generated network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator.network import Network
from mtosi_jms.stubs.fmw.md import ManagementDomainType
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InvalidInputFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.mri import mer, rir
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import escape_name_part


class ManagedElementEms(ManagedElementRetrieval.Supplier):
    """ManagedElementRetrieval over a generated network.

    Args:
        network: what there is.
    """

    def __init__(self, network: Network) -> None:
        self.network = network

    def get_all_managed_elements(
        self, request: mer.GetAllManagedElementsRequest, context: RequestContext
    ) -> Iterable[ManagedElementType]:
        """All elements of a management domain; of the only one there is if none is named."""
        self._look_in(request.md_or_mlsn_ref)
        return self.network.managed_elements()

    def get_all_managed_elements_passing_filter(
        self, request: mer.GetAllManagedElementsPassingFilterRequest, context: RequestContext
    ) -> Iterator[ManagedElementType]:
        """The elements whose attributes equal all those that the filter names."""
        self._look_in(request.md_ref)
        wanted = request.filter
        for element in self.network.managed_elements():
            if wanted is None or _passes(element, wanted):
                yield element

    def get_all_managed_elements_wrt_os(
        self, request: mer.GetAllManagedElementsWrtOsRequest, context: RequestContext
    ) -> Iterable[ManagedElementType]:
        """All elements: they are this OS's, which has one name, that of the domain."""
        self._look_in(request.md_ref)
        wanted = request.os_ref
        if wanted is not None and str(wanted) != f"OS={escape_name_part(self.network.domain)}":
            raise EntityNotFoundFault(f"there is no {wanted}")
        return self.network.managed_elements()

    def get_managed_element(
        self, request: mer.GetManagedElementRequest, context: RequestContext
    ) -> mer.GetManagedElementResponse:
        """One element by its name."""
        if request.me_ref is None:
            raise InvalidInputFault("meRef is needed")
        index = self.network.index_of(request.me_ref)
        if index is None:
            raise EntityNotFoundFault(f"there is no {request.me_ref}")
        return mer.GetManagedElementResponse(me=self.network.managed_element(index))

    def _look_in(self, domain: NamingAttributeType | None) -> None:
        """Raise the fault of a domain that is not there."""
        if domain is not None and str(domain) != str(self.network.domain_name()):
            raise EntityNotFoundFault(f"there is no {domain}")


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
            elements = [self._element(index) for index in wanted[first : first + size]]
            yield rir.GetInventoryResponse(inventory_data=self._data(elements))

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

    def _data(self, elements: list[invdata.ManagedElementInventoryType]) -> invdata.InventoryDataType:
        domain = self.network.domain
        below = invdata.ManagementDomainInventoryTypeMeList(me_inv=elements) if elements else None
        md = invdata.ManagementDomainInventoryType(
            md_nm=domain, md_attrs=ManagementDomainType(name=self.network.domain_name()), me_list=below
        )
        return invdata.InventoryDataType(md_list=invdata.InventoryDataTypeMdList(md=[md]))

    def _element(self, index: int) -> invdata.ManagedElementInventoryType:
        element = self.network.managed_element(index)
        return invdata.ManagedElementInventoryType(
            me_nm=_last_value(element.name),
            me_attrs=element,
            eh_list=invdata.ManagedElementInventoryTypeEhList(eh_inv=self._holders(index)),
            ptp_list=invdata.ManagedElementInventoryTypePtpList(
                ptp_inv=[self._port(index, number) for number in range(self.network.ports)]
            )
            if self.network.ports
            else None,
        )

    def _holders(self, index: int) -> list[invdata.EquipmentHolderInventoryType]:
        cards = list(self.network.equipment(index))
        holders = [
            invdata.EquipmentHolderInventoryType(eh_nm=_last_value(holder.name), eh_attrs=holder)
            for holder in self.network.holders(index)
        ]
        for holder, card in zip(holders, cards, strict=False):
            holder.eq_inv = invdata.EquipmentInventoryType(eq_nm=_last_value(card.name), eq_attrs=card)
        return holders

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
