"""Reads the objects in MTNM's events: whole objects in creations, and attributes in changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from lxml import etree

from mtosi_jms.bridge import _mtnm_tables as tables
from mtosi_jms.bridge._mtnm_values import (
    Field,
    Item,
    Reading,
    Table,
    a_text,
    chosen,
    elements,
    extended,
    fields,
    kind_name,
    listed,
    members,
    native_name,
)
from mtosi_jms.bridge.events import Any, TCKind
from mtosi_jms.errors import EventError
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.coi import CommonObjectInfoType
from mtosi_jms.stubs.fmw.gen import NameAndValueStringListType
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, NamingAttributeType
from mtosi_jms.stubs.fmw.vob import VendorObject
from mtosi_jms.stubs.nrb.lay import LayerRateListType
from mtosi_jms.stubs.nrb.lp import LayeredParametersType, TransmissionParametersList
from mtosi_jms.stubs.nrf.cc import (
    Cc,
    CrossConnectListType,
    CrossConnectType,
    CrossConnectTypeAEndRefList,
    CrossConnectTypeZEndRefList,
)
from mtosi_jms.stubs.nrf.com import EquipmentHolderEnumType, EquipmentHolderTypeType
from mtosi_jms.stubs.nrf.ctp import Ctp
from mtosi_jms.stubs.nrf.eh import Eh, EquipmentHolderTypeAcceptableEquipmentTypeList
from mtosi_jms.stubs.nrf.eq import Eq
from mtosi_jms.stubs.nrf.ftp import Ftp
from mtosi_jms.stubs.nrf.me import Me
from mtosi_jms.stubs.nrf.ptp import Ptp
from mtosi_jms.stubs.nrf.route import RouteType
from mtosi_jms.stubs.nrf.tl import Tl
from mtosi_jms.xmlbind import XmlObject, decode, encode


def _parameters(reading: Reading, item: Item) -> list[LayeredParametersType]:
    """Read parameters by layer: a list of structs, each with a layer rate and pairs of name and text."""
    found = []
    for one in elements(item):
        parts = members(one, 2)
        if parts is None:
            raise EventError(f"is not a list of parameters by layer but a {kind_name(item.type)}")
        layer, pairs = (one.holding(part.type, part.value) for part in parts)
        found.append(
            LayeredParametersType(
                layer_rate=reading.rate(layer),
                parameter_list=NameAndValueStringListType(nvs=reading.pairs(pairs)),
            )
        )
    return found


def _one_name(reading: Reading, item: Item) -> list[NamingAttributeType]:
    found = reading.name(item)
    return [] if found is None else [found]


_COMMON: Final = {
    "name": Field("name", Reading.name),
    "userLabel": Field("user_label", a_text),
    "nativeEMSName": Field("alias_name_list", native_name),
    "owner": Field("owner", a_text),
}
_POINT: Final = {
    **_COMMON,
    "direction": Field("direction", chosen(tables.DIRECTIONALITY)),
    "tpProtectionAssociation": Field("tp_protection_association", chosen(tables.ASSOCIATION)),
    "edgePoint": Field("is_edge_point", Reading.boolean),
    "transmissionParams": Field(
        "transmission_parameters_list", listed(_parameters, TransmissionParametersList, "transmission_parameters")
    ),
    "ingressTransmissionDescriptorName": Field("ingress_tmd_ref", Reading.name),
    "egressTransmissionDescriptorName": Field("egress_tmd_ref", Reading.name),
}
_CONNECTION_POINT: Final = {
    **_POINT,
    "connectionState": Field("connection_state", chosen(tables.CONNECTION_STATE)),
    "tpMappingMode": Field("tp_mapping_mode", chosen(tables.MAPPING_MODE)),
}
OBJECTS: Final[Mapping[str, tuple[type[CommonObjectInfoType], Table]]] = {
    "ME": (
        Me,
        Table(
            {
                **_COMMON,
                "location": Field("location", a_text),
                "version": Field("software_version", a_text),
                "productName": Field("product_name", a_text),
                "communicationState": Field("communication_state", chosen(tables.COMMUNICATION)),
                "emsInSyncState": Field("is_in_sync_state", Reading.boolean),
                "supportedRates": Field(
                    "supported_connection_layer_rate_list", listed(Reading.rates, LayerRateListType, "layer_rate")
                ),
            }
        ),
    ),
    "EQ": (
        Eq,
        Table(
            {
                **_COMMON,
                "alarmReportingIndicator": Field("is_reporting_alarms", Reading.boolean),
                "serviceState": Field("resource_fulfillment_state", chosen(tables.SERVICE_STATE)),
                "expectedEquipmentObjectType": Field("expected_equipment_object_type", a_text),
                "installedEquipmentObjectType": Field("installed_equipment_object_type", a_text),
                "installedPartNumber": Field("installed_part_number", a_text),
                "installedVersion": Field("installed_version", a_text),
                "installedSerialNumber": Field("installed_serial_number", a_text),
            }
        ),
    ),
    "EH": (
        Eh,
        Table(
            {
                **_COMMON,
                "alarmReportingIndicator": Field("is_reporting_alarms", Reading.boolean),
                "holderType": Field(
                    "holder_type", extended(tables.HOLDER, EquipmentHolderTypeType, EquipmentHolderEnumType.MINOR_EXT)
                ),
                "expectedOrInstalledEquipment": Field("expected_or_installed_equipment_ref", Reading.name),
                "acceptableEquipmentTypeList": Field(
                    "acceptable_equipment_type_list",
                    listed(Reading.texts, EquipmentHolderTypeAcceptableEquipmentTypeList, "acceptable_equipment_type"),
                ),
                "holderState": Field("holder_state", chosen(tables.HOLDER_STATE)),
            }
        ),
    ),
    "PTP": (Ptp, Table(_POINT)),
    "CTP": (Ctp, Table(_CONNECTION_POINT)),
    "FTP": (Ftp, Table(_CONNECTION_POINT)),
    "TL": (
        Tl,
        Table(
            {
                **_COMMON,
                "direction": Field("direction", chosen(tables.DIRECTION)),
                "rate": Field("layer_rate", Reading.rate),
                "aEndTP": Field("a_end_tp_ref_list", listed(_one_name, NamingAttributeListType, "name")),
                "zEndTP": Field("z_end_tp_ref_list", listed(_one_name, NamingAttributeListType, "name")),
                "alarmReportingIndicator": Field("is_reporting_alarms", Reading.boolean),
            }
        ),
    ),
}
"""Maps each type of object that MTOSI has a class for to the class and the table of MTNM's attributes."""

_KNOWN: Final = tuple(cls for cls, _ in OBJECTS.values())
_STATES: Final = "ituArcStateAndStatusList"

_OTHER: Final[tuple[type[CommonObjectInfoType], Table]] = (VendorObject, Table(_COMMON))


def object_of(reading: Reading, kind: str | None, items: Iterable[Item]) -> CommonObjectInfoType:
    """Return an object of a type with these attributes; its vendor extensions hold those that MTOSI does not have.
    `kind`: MTOSI's type; one without a class is a vendor object."""
    cls, table = OBJECTS.get(kind or "", _OTHER)
    inner = Reading(reading.charset, reading.findings)
    made: CommonObjectInfoType = cls(**fields(inner, items, table))
    made.vendor_extensions = inner.extensions()
    return made


def complete_for_4_0(event: CommonEventInformationType) -> None:
    """Add to the objects in an event what MTOSI 4.0 requires and 2.0 does not have: a list of states, here empty."""
    for holder in (getattr(event, name, None) for name in ("object", "attribute_list")):
        if holder is not None:
            holder.any_ = [_complete(one) if isinstance(one, _KNOWN) else one for one in holder.any_]


def _complete(one: XmlObject) -> XmlObject:
    root = etree.fromstring(encode(one))
    etree.SubElement(root, etree.QName(etree.QName(root).namespace, _STATES))
    return decode(etree.tostring(root), type(one))


def created(reading: Reading, kind: str | None, body: Item) -> CommonObjectInfoType | None:
    """Read the remainder of an event's body as the new object; None for an empty body. Keep anything else."""
    if body.type.plain.kind in (TCKind.null, TCKind.void):
        return None
    try:
        found = reading.bare(body)
        parts = members(found)
        if parts is None:
            raise EventError(f"is not an object but a {kind_name(found.type)}")
    except EventError as exc:
        reading.keep(body, exc.message)
        return None
    return object_of(reading, kind, parts)


def attributes(reading: Reading, kind: str | None, item: Item) -> CommonObjectInfoType | None:
    """Return an object with the attributes of a list of names and values; None for an empty list. Raises EventError: it
    is not such a list."""
    parts: list[Item] = []
    for one in elements(item):
        pair = members(one, 2)
        if pair is None or not isinstance(pair[0].value, str):
            raise EventError(f"is not a list of names and values but a {kind_name(item.type)}")
        held = pair[1].value if isinstance(pair[1].value, Any) else pair[1]
        parts.append(Item(item.path, pair[0].value, held.type, held.value))
    return object_of(reading, kind, parts) if parts else None


def route(reading: Reading, item: Item) -> RouteType:
    """Read a route: a list of cross connections. Raises EventError: it is not such a list."""
    found: list[CrossConnectType] = []
    for one in elements(item):
        parts = members(one)
        if parts is None:
            raise EventError(f"is not a list of cross connections but a {kind_name(item.type)}")
        inner = Reading(reading.charset, reading.findings)
        made = Cc(**fields(inner, parts, CROSS_CONNECTION))
        made.vendor_extensions = inner.extensions()
        found.append(made)
    return RouteType(cc_list=CrossConnectListType(cc=found))


CROSS_CONNECTION: Final = Table(
    {
        "active": Field("is_active", Reading.boolean),
        "direction": Field("direction", chosen(tables.DIRECTION)),
        "ccType": Field("cc_type", chosen(tables.SHAPE)),
        "aEndNameList": Field("a_end_ref_list", listed(Reading.names, CrossConnectTypeAEndRefList, "a_end_name")),
        "zEndNameList": Field("z_end_ref_list", listed(Reading.names, CrossConnectTypeZEndRefList, "z_end_name")),
    }
)
"""The members of MTNM's cross connections."""
