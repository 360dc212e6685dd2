"""ResourceInventoryRetrieval in the nested layout, over a generated or a recorded network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator._network import Network
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

Holders: TypeAlias = list[invdata.EquipmentHolderInventoryType]
Ports: TypeAlias = list[invdata.PhysicalTerminationPointInventoryType]
Points: TypeAlias = list[invdata.FloatingTerminationPointInventoryType]


class InventoryEms(ResourceInventoryRetrieval.Supplier):
    """ResourceInventoryRetrieval over a generated network, in the nested layout.

    It applies only the base instances of a filter, which may be the domain or managed elements. It ignores object types
    and granularity, and returns complete objects.

    """

    def __init__(self, network: Network) -> None:
        self.network = network

    def get_inventory(
        self, request: rir.GetInventoryRequest, context: RequestContext
    ) -> Iterator[rir.GetInventoryResponse]:
        """The network below its management domain; a batch size counts managed elements."""
        wanted = self._wanted(request)
        for number, indices in enumerate(_batches(wanted, context.batch_size)):
            data = self.data(indices)
            if isinstance(wanted, range) and number == 0:  # the whole network
                _add_shared(data, self._shared())
            yield rir.GetInventoryResponse(inventory_data=data)

    def _wanted(self, request: rir.GetInventoryRequest) -> Sequence[int]:
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
        """The domain with the wanted elements and the links that start at them. `wanted`: numbers of the elements,
        counted from 0."""
        elements = [self._element(index) for index in wanted]
        links = [_link(link) for index in wanted for link in self.network.links_of(index)]
        md = invdata.ManagementDomainInventoryType(
            md_nm=self.network.domain,
            md_attrs=ManagementDomainType(name=self.network.domain_name()),
            me_list=invdata.ManagementDomainInventoryTypeMeList(me_inv=elements) if elements else None,
            tl_list=invdata.ManagementDomainInventoryTypeTlList(tl_inv=links) if links else None,
        )
        return invdata.InventoryDataType(md_list=invdata.InventoryDataTypeMdList(md=[md]))

    def _shared(self) -> list[Any]:
        """The transmission descriptors and the management system; neither for a mixed network."""
        descriptors = list(self.network.descriptors())
        return [*descriptors, self.network.operations_system()] if descriptors else []

    def _element(self, index: int) -> invdata.ManagedElementInventoryType:
        network = self.network
        ports = [
            _port(network.port(index, number), [network.channel(index, number, one) for one in range(network.channels)])
            for number in range(network.ports)
        ]
        points = [
            invdata.FloatingTerminationPointInventoryType(ftp_nm=_short(point), ftp_attrs=point)
            for point in (network.ftp(index, number) for number in range(network.ftps))
        ]
        return _element(network.managed_element(index), self._holders(index), ports, points)

    def _holders(self, index: int) -> Holders:
        """The outermost holders with the holders in them; with a flat shelf all holders are siblings."""
        cards = list(self.network.equipment(index))
        by_path = {_short(holder): _holder(holder) for holder in self.network.holders(index)}
        if self.network.made_of.is_mixed:
            for found, card in zip(by_path.values(), cards, strict=False):
                found.eq_inv = _card(card)
            return list(by_path.values())
        for card in cards:
            by_path[_holder_path(card)].eq_inv = _card(card)
        outermost = []
        for path, found in by_path.items():
            around = by_path.get(path.rpartition("/")[0])
            if around is None:
                outermost.append(found)
            else:
                around.eh_list = around.eh_list or invdata.EquipmentHolderInventoryTypeEhList()
                around.eh_list.eh_inv.append(found)
        return outermost


class RecordedInventoryEms(ResourceInventoryRetrieval.Supplier):
    """ResourceInventoryRetrieval over a recording, in the nested layout: the holders of an element are siblings.

    It applies only the base instances of a filter, which may be domains or managed elements. It leaves out objects in
    an element that was not recorded itself, and types of objects that the layout cannot hold.

    Args:
        recording: source of the objects.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def get_inventory(
        self, request: rir.GetInventoryRequest, context: RequestContext
    ) -> Iterator[rir.GetInventoryResponse]:
        """The recorded objects below their domains; a batch size counts managed elements."""
        bases = [str(base) for base in request.filter.base_instance] if request.filter is not None else []
        elements = [found for found in self.recording.elements() if not bases or _is_below(found, bases)]
        for base in bases:
            if not any(_is_below(found, [base]) for found in elements):
                raise InvalidInputFault(f"there is no {base}")
        for number, batch in enumerate(_batches(elements, context.batch_size)):
            data = invdata.InventoryDataType(md_list=invdata.InventoryDataTypeMdList())
            for element in batch:
                domain = self._domain(data, element)
                domain.me_list = domain.me_list or invdata.ManagementDomainInventoryTypeMeList()
                domain.me_list.me_inv.append(self._element(element))
            if number == 0 and not bases:
                self._add_links(data)
                _add_shared(data, self.recording.objects.values())
            yield rir.GetInventoryResponse(inventory_data=data)

    def _domain(self, data: invdata.InventoryDataType, found: Any) -> invdata.ManagementDomainInventoryType:
        """The domain with which an object's name begins."""
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

    def _add_links(self, data: invdata.InventoryDataType) -> None:
        for found in self.recording.objects.values():
            if isinstance(found, TopologicalLinkType):
                domain = self._domain(data, found)
                domain.tl_list = domain.tl_list or invdata.ManagementDomainInventoryTypeTlList()
                domain.tl_list.tl_inv.append(_link(found))

    def _element(self, element: Any) -> invdata.ManagedElementInventoryType:
        inside = self.recording.inside(element.name)
        holders = {str(one.name): _holder(one) for one in inside if isinstance(one, EquipmentHolderType)}
        channels: dict[str, list[ConnectionTerminationPointType]] = {}
        for one in inside:
            around = str(NamingAttributeType(rdn=one.name.rdn[:-1]))
            if isinstance(one, EquipmentType) and around in holders:  # a card is left out without its holder
                holders[around].eq_inv = _card(one)
            elif isinstance(one, ConnectionTerminationPointType):
                channels.setdefault(around, []).append(one)
        ports = [
            _port(one, channels.get(str(one.name), []))
            for one in inside
            if isinstance(one, PhysicalTerminationPointType)
        ]
        return _element(element, list(holders.values()), ports, _points(inside, channels))


def _batches(wanted: Sequence[Any], size: int | None) -> Iterator[Sequence[Any]]:
    """Batches of a size, at least one batch; a single batch if no size was requested."""
    whole = max(len(wanted), 1)
    for first in range(0, whole, size or whole):
        yield wanted[first : first + (size or whole)]


def _is_below(element: ManagedElementType, bases: list[str]) -> bool:
    return any(f"{element.name}/".startswith(f"{base}/") for base in bases)


def _add_shared(data: invdata.InventoryDataType, objects: Iterable[Any]) -> None:
    """Add transmission descriptors and management systems, which are outside domains."""
    for found in objects:
        if isinstance(found, TransmissionDescriptorType):
            data.tmd_list = data.tmd_list or invdata.InventoryDataTypeTmdList()
            data.tmd_list.tmd.append(invdata.TransmissionDescriptorInventoryType(tmd_nm=_short(found), tmd_attrs=found))
        elif isinstance(found, OperationsSystemType):
            data.os_list = data.os_list or invdata.InventoryDataTypeOsList()
            data.os_list.os.append(invdata.OperationsSystemInventoryType(os_nm=_short(found), os_attrs=found))


def _element(
    element: ManagedElementType, holders: Holders, ports: Ports, points: Points
) -> invdata.ManagedElementInventoryType:
    return invdata.ManagedElementInventoryType(
        me_nm=_short(element),
        me_attrs=element,
        eh_list=invdata.ManagedElementInventoryTypeEhList(eh_inv=holders) if holders else None,
        ptp_list=invdata.ManagedElementInventoryTypePtpList(ptp_inv=ports) if ports else None,
        ftp_list=invdata.ManagedElementInventoryTypeFtpList(ftp_inv=points) if points else None,
    )


def _holder(found: EquipmentHolderType) -> invdata.EquipmentHolderInventoryType:
    return invdata.EquipmentHolderInventoryType(eh_nm=_short(found), eh_attrs=found)


def _card(found: EquipmentType) -> invdata.EquipmentInventoryType:
    return invdata.EquipmentInventoryType(eq_nm=_short(found), eq_attrs=found)


def _holder_path(card: Any) -> str:
    return str(card.name.rdn[-2].value)


def _link(found: TopologicalLinkType) -> invdata.TopologicalLinkInventoryType:
    return invdata.TopologicalLinkInventoryType(tl_nm=_short(found), tl_attrs=found)


def _port(
    found: PhysicalTerminationPointType, channels: Iterable[ConnectionTerminationPointType]
) -> invdata.PhysicalTerminationPointInventoryType:
    below = invdata.PhysicalTerminationPointInventoryTypeCtpList(ctp_inv=_channels(channels))
    return invdata.PhysicalTerminationPointInventoryType(ptp_nm=_short(found), ptp_attrs=found, ctp_list=below)


def _points(inside: Iterable[Any], channels: Mapping[str, Iterable[ConnectionTerminationPointType]]) -> Points:
    return [
        invdata.FloatingTerminationPointInventoryType(
            ftp_nm=_short(one),
            ftp_attrs=one,
            ctp_list=invdata.FloatingTerminationPointInventoryTypeCtpList(
                ctp_inv=_channels(channels.get(str(one.name), []))
            ),
        )
        for one in inside
        if isinstance(one, FloatingTerminationPointType)
    ]


def _channels(found: Iterable[ConnectionTerminationPointType]) -> list[invdata.ConnectionTerminationPointInventoryType]:
    return [invdata.ConnectionTerminationPointInventoryType(ctp_nm=_short(one), ctp_attrs=one) for one in found]


def _short(found: Any) -> str:
    return str(found.name.rdn[-1].value)
