"""Objects and alarms of MTOSI 1.x as those of 2.x: the same elements under the names of the stubs' classes, in order.

The class of 2.x leads: each child element of 1.x gets the name of the field that has its meaning. What has no
counterpart keeps its name and comes last, where readers report it. Values need no change, but for times and some words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from types import MappingProxyType
from typing import Final

from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.binding.release1 import EVENT_INFO, FIELDS, word
from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory._objects import OBJECT_TYPES, class_for
from mtosi_jms.namespaces import TMF854, XSI, clark, split_clark
from mtosi_jms.xmlbind import ClassTable, DistinguishedNameMixin, attribute_parts, find_element
from mtosi_jms.xmlbind.columns import OBJECT, Slot, plan_of

RENAMED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "InSyncState": ("isInSyncState",),
        "aEnd": ("aEndTpDataList",),
        "aEndNameList": ("aEndRefList",),
        "aEndTP": ("aEndTpRefList",),
        "active": ("isActive",),
        "alarmReportingIndicator": ("isReportingAlarms",),
        "containingMLSNNameList": ("containingMlsnRefList",),
        "descendant": ("isDescendant",),
        "edgePoint": ("isEdgePoint",),
        "egressTransmissionDescriptorName": ("egressTmdRef",),
        "equipmentProtected": ("isEquipmentProtected",),
        "expectedOrInstalledEquipment": ("expectedOrInstalledEquipmentRef",),
        "fixed": ("isFixed",),
        "ingressTransmissionDescriptorName": ("ingressTmdRef",),
        "layer": ("layerRate",),
        "layeredParameters": ("transmissionParameters",),
        "manufacturerDate": ("manufactureDate",),
        "rate": ("layerRate",),
        "routeCClist": ("ccList",),
        "serviceState": ("resourceFulfillmentState",),
        "subordinateOSNameList": ("subordinateOsRefList",),
        "supportedEQNameList": ("supportedEquipmentRefList",),
        "supportedMDNameList": ("managesMdRefList",),
        "supportedPTPNameList": ("supportedPtpRefList",),
        "supportedRates": ("supportedConnectionLayerRateList", "supportedRateList"),
        "supportingEQNameList": ("supportingEquipmentRefList",),
        "supportingEquipList": ("supportingEquipmentRefList",),
        "supportingOSNameList": ("supportingOsRefList",),
        "suspect": ("isSuspect",),
        "tpName": ("tpRef",),
        "transmissionParams": ("transmissionParametersList", "parameterList"),
        "version": ("softwareVersion",),
        "zEnd": ("zEndTpDataList",),
        "zEndNameList": ("zEndRefList",),
        "zEndTP": ("zEndTpRefList",),
    }
)
"""The fields of 2.x by the name in 1.x; fields that differ only by case or not at all are not here."""

OBJECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "me": "ME",
        "eq": "EQ",
        "eh": "EH",
        "ptp": "PTP",
        "ftp": "FTP",
        "ctp": "CTP",
        "tl": "TL",
        "os": "OS",
        "md": "MD",
        "tmd": "TMD",
        "snc": "SNC",
        "mlsn": "MLSN",
        "alarm": "nra.alm:AlarmType",
        "activealarm": "nra.alm:AlarmType",
    }
)
"""Object types by the lower-case names of the elements in lists and events of 1.x."""

_DATA: Final = ("inventoryData", "MTOSI_InventoryData")
_LINKS: Final = ("topLevelTlList/topLevelTopLink", ".//mlsnInv/tlList/tlInv")
"""Where a tree has links that trees of 2.x do not have there."""
_REPLY: Final = clark("http://www.tmforum.org/mtop/mri/xsd/rir/v1", "getInventoryResponse")
_ENDS: Final = ("aEndTP", "zEndTP")
_CAUSE: Final = ("type", "probableCause")
_NE_TIME: Final = clark(TMF854, "neTime")
_NIL: Final = clark(XSI, "nil")


_Found = tuple[etree._Element, ClassTable | None]


def is_release1(tag: str) -> bool:
    """Whether a Clark name is one of MTOSI 1.x."""
    return split_clark(tag)[0] == TMF854


def converted(body: etree._Element) -> Iterator[_Found]:
    """Yield the objects and inventory trees of 1.x below an element as elements of 2.x, with their classes.

    The class is None for an object of which no stub has one. All are in a copy of the document with the lines of the
    original, which stays as it is.
    """
    tree = body.getroottree()
    path = tree.getelementpath(body)
    copy = deepcopy(tree.getroot())
    top = copy if path == "." else copy.find(path)
    targets = {name: _class(kind) for name, kind in OBJECTS.items()}
    reply = find_element(_REPLY)
    if reply is not None:
        targets.update(dict.fromkeys(_DATA, _below(reply.__xml__, "inventoryData")))
    yield from () if top is None else _search(top, targets)


def converted_content(element: etree._Element, table: ClassTable) -> etree._Element:
    """Return a copy of an element with fields of an object of 1.x, with those of its class of 2.x."""
    made = deepcopy(element)
    _convert(made, table)
    return made


def classes() -> set[ClassTable]:
    found = map(_class, (*OBJECT_TYPES, *OBJECTS.values()))
    return {table for table in found if table is not None}


def _class(kind: str) -> ClassTable | None:
    try:
        return class_for(kind)
    except ConfigError:  # the stubs that are loaded have no such class
        return None


def _search(element: etree._Element, targets: Mapping[str, ClassTable | None]) -> Iterator[_Found]:
    for child in element:
        if not is_release1(str(child.tag)):
            continue
        local = split_clark(str(child.tag))[1]
        table = targets.get(local if local in _DATA else local.lower())
        if table is None:
            if looks_like_object(child):
                yield child, None
            yield from _search(child, targets)
            continue
        links = [link for path in _LINKS for link in child.findall(_path(path))]
        for link in links:
            link.getparent().remove(link)
        _convert(child, table)
        yield child, table
        node = _below(table, "mdList", "md", "tlList", "tlInv")
        if node is not None:
            for link in links:
                _convert(link, node)
                yield link, node


def looks_like_object(element: etree._Element) -> bool:
    """Whether an element without a class is an object: a node of the nested layout, or one with a name of its own."""
    if len(element) == 0:  # most
        return False
    tag = str(element.tag)
    if tag.endswith("Inv"):
        return any(str(child.tag).endswith(("Nm", "Attrs")) for child in element)
    if tag.endswith(("Attrs", "List", "s", "}associatedME")):  # the last is a reference
        return False
    return sum(any(map(_is_part, name)) for name in element.iterchildren("{*}name")) == 1


def _is_part(element: etree._Element) -> bool:
    return str(element.tag).endswith(("Nm", "}rdn"))


def _path(steps: str) -> str:
    return "/".join(step if step in ("", ".") else clark(TMF854, step) for step in steps.split("/"))


def _below(table: ClassTable, *steps: str) -> ClassTable | None:
    for step in steps:
        slot = _slot(table, step)
        if slot is None:
            return None
        table = slot.target
    return table


@cache
def _slot(table: ClassTable, local: str) -> Slot | None:
    slots = plan_of(table).slots.values()
    names = _CAUSE if local == _CAUSE[0] else RENAMED.get(local) or (FIELDS.get(local, local),)
    for name in names:
        for slot in slots:
            if slot.field.local.lower() == name.lower():
                return slot
    return None


def _convert(element: etree._Element, table: ClassTable) -> None:
    """Rename what is below an element to the fields of a class, and bring it into their order."""
    if issubclass(table.cls, DistinguishedNameMixin):
        _convert_name(element, table)
        return
    for info in element.findall(clark(TMF854, EVENT_INFO)):
        element.extend(info)
        element.remove(info)
    orders: dict[etree._Element, int] = {}
    for child in list(element):
        if not is_release1(str(child.tag)):
            continue
        no_time = child.tag == _NE_TIME and not (child.text or "").strip()  # its way to say that the NE has none
        if no_time or child.get(_NIL) in ("true", "1"):
            element.remove(child)
            continue
        slot = _slot(table, split_clark(str(child.tag))[1]) or _only_name(table)
        if slot is None:
            continue
        orders[child] = slot.order
        if slot.kind == OBJECT:
            _convert_content(child, slot.target)
        elif child.text:
            child.text = _converted_text(slot, child.text)
        child.tag = slot.field.tag
    if orders:
        last = max(orders.values()) + 1
        element[:] = sorted(element, key=lambda child: orders.get(child, last))


def _converted_text(slot: Slot, text: str) -> str:
    """Return the text of a value in 2.x: a word of its own, or a time in the form of xsd:dateTime."""
    if getattr(slot.field.type, "arrow", "") != "timestamp":
        return word(slot.field.local, text)
    try:
        return xmlbind.DATE_TIME.format(xmlbind.ITU_TIME.exact(text))
    except ValueError:  # the reader warns of what is no time
        return text


def _only_name(table: ClassTable) -> Slot | None:
    slots = list(plan_of(table).slots.values())
    if len(slots) == 1 and slots[0].kind == OBJECT and issubclass(slots[0].target.cls, DistinguishedNameMixin):
        return slots[0]
    return None


def _convert_content(element: etree._Element, table: ClassTable) -> None:
    """Convert what is in an element; the one end of a link becomes a list of one name."""
    names = _only_name(table)
    if names is not None and split_clark(str(element.tag))[1] in _ENDS:
        ends = list(element)
        etree.SubElement(element, clark(TMF854, names.field.local)).extend(ends)
    _convert(element, table)


def _convert_name(element: etree._Element, table: ClassTable) -> None:
    """Write a name of 1.x as a list of types and values. What is no part of the name goes behind it."""
    rdn = next(iter(plan_of(table).slots.values()))
    kind, value = (slot.field.tag for slot in plan_of(rdn.target).slots.values())
    own = len(element) == 0 and str(element.tag).endswith("Nm")
    fields = [element] if own else [child for child in element if isinstance(child.tag, str)]
    parts = attribute_parts((split_clark(str(part.tag))[1], part.text or "") for part in fields)
    parent = element.getparent()
    for part in () if own else fields:
        element.remove(part)
        if parent is not None and not str(part.tag).endswith("Nm"):
            parent.append(part)
    element.text = None
    for name, text in parts:
        step = etree.SubElement(element, rdn.field.tag)
        etree.SubElement(step, kind).text = name
        etree.SubElement(step, value).text = text
