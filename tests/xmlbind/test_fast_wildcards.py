"""Wildcards on the fast path of reading, and kept XML whose namespace is a relative URI."""

from __future__ import annotations

import pytest

from mtosi_jms.namespaces import COI
from mtosi_jms.stubs.fmw.coi import CommonObjectInfoType
from mtosi_jms.stubs.fmw.gen import AnyListType
from mtosi_jms.stubs.nrf import ctp, eh, eq, ftp, me, ptp, tl
from mtosi_jms.xmlbind import RawXml, XmlWarning, decode, encode, parse_xml
from mtosi_jms.xmlbind._fast import is_plain
from mtosi_jms.xmlbind.columns import plan_of

ME = "http://www.tmforum.org/mtop/nrf/xsd/me/v1"
ITU = "http://www.tmforum.org/mtop/nrb/itu/v1"


@pytest.mark.parametrize(
    "cls",
    [
        me.ManagedElementType,
        eh.EquipmentHolderType,
        eq.EquipmentType,
        ptp.PhysicalTerminationPointType,
        ctp.ConnectionTerminationPointType,
        ftp.FloatingTerminationPointType,
        tl.TopologicalLinkType,
    ],
)
def test_inventory_objects_take_the_fast_path(cls: type[CommonObjectInfoType]) -> None:
    plan = plan_of(cls.__xml__)
    assert plan.wildcards
    assert is_plain(plan)


def test_open_content_alone_does_not() -> None:
    assert not is_plain(plan_of(AnyListType.__xml__))


def test_what_the_wildcard_takes_is_read_all_the_same() -> None:
    def element(inside: str) -> bytes:
        names = f'xmlns="{ME}" xmlns:coi="{COI}" xmlns:itu="{ITU}"'
        return f"<me {names}><coi:userLabel>A</coi:userLabel>{inside}<location>Delft</location></me>".encode()

    warnings: list[XmlWarning] = []
    used = decode(element("<itu:state>up</itu:state>"), me.Me, warnings=warnings)
    unused = decode(element(""), me.Me, warnings=warnings)
    assert warnings == []
    assert [item.tag for item in used.any_ if isinstance(item, RawXml)] == [f"{{{ITU}}}state"]
    assert (unused.any_, unused.user_label, unused.location) == ([], used.user_label, used.location)
    assert decode(encode(used), me.Me) == used


def test_what_it_does_not_take_is_kept_and_reported() -> None:
    warnings: list[XmlWarning] = []
    found = decode(
        f'<me xmlns="{ME}"><x xmlns="urn:x"/><location>Delft</location></me>'.encode(), me.Me, warnings=warnings
    )
    assert [warning.rule for warning in warnings] == ["unknown-element"]
    assert (found.any_, found.location) == ([], "Delft")
    assert [item.tag for item in found.unknown_elements()] == ["{urn:x}x"]


def test_more_than_it_takes_is_kept_and_reported() -> None:
    twice = f'<me xmlns="{ME}"><s xmlns="{ITU}"/><s xmlns="{ITU}"/></me>'.encode()
    warnings: list[XmlWarning] = []
    found = decode(twice, me.Me, warnings=warnings)
    assert [warning.rule for warning in warnings] == ["repeated"]
    assert (len(found.any_), len(found.unknown_elements())) == (1, 1)


XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
DOCUMENT = f'<a xmlns="urn:a" xmlns:v="vendor.v1" {XSI}><b xsi:type="v:T">x</b> tail<c><v:d/></c><e k="1"/></a>'


@pytest.mark.parametrize(
    ("position", "xml"),
    [
        (0, f'<b xmlns="urn:a" xmlns:v="vendor.v1" {XSI} xsi:type="v:T">x</b>'),
        (1, '<c xmlns="urn:a"><v:d xmlns:v="vendor.v1"></v:d></c>'),
        (2, '<e xmlns="urn:a" k="1"></e>'),
    ],
)
def test_the_element_is_kept_with_what_it_needs(position: int, xml: str) -> None:
    kept = RawXml.from_element(parse_xml(DOCUMENT)[position])
    assert kept.xml.decode() == xml
    assert RawXml(kept.xml) == kept
