"""Which way objects are read: plain ones by the fast path alone, and either way with the same result."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.namespaces import COI
from mtosi_jms.stubs.nrf import me
from mtosi_jms.xmlbind import NIL, RawXml, XmlWarning, decode, encode, parse_xml
from mtosi_jms.xmlbind._fast import Known

from .conftest import canonical, doc

RDN = "<nam:rdn><nam:type>ME</nam:type><nam:value>1</nam:value></nam:rdn>"


def test_values_are_remembered_up_to_a_bound() -> None:
    known = Known(xmlbind.INT)
    assert [known[str(number)] for number in range(1000)] == list(range(1000))
    assert len(known) == 512
    known = Known(xmlbind.DECIMAL)
    long = "1." + "0" * 70
    assert known[long] == Decimal(1)
    assert (len(known), known["1.5"], len(known)) == (0, Decimal("1.5"), 1)
    lists = Known(xmlbind.list_of(xmlbind.INT))
    assert lists["1 2"] is not lists["1 2"]
    assert Known(xmlbind.TOKEN)[None] == ""
    with pytest.raises(ValueError):
        known["x"]


def test_lists_of_numbers_are_not_shared(package: str) -> None:
    one, two = (xmlbind.decode(doc("<c:leaves><c:numbers>1 2</c:numbers></c:leaves>")) for _ in range(2))
    one.numbers.append(3)
    assert two.numbers == [1, 2]


@pytest.mark.parametrize("odd", ["", "<c:new/>"], ids=["fast", "slow"])
@pytest.mark.parametrize(
    "inner", ["<c:string>a</c:string>tail", "text<c:string>a</c:string>", "<c:string>a<c:flag>true</c:flag></c:string>"]
)
def test_stray_content_is_seen_either_way(inner: str, odd: str, read: Callable[..., Any]) -> None:
    assert "stray-text" in (rules := read(f"<c:leaves>{inner}{odd}</c:leaves>").rules) or "bad-value" in rules


def test_what_is_bound_though_it_breaks_a_rule(read: Callable[..., Any], c: ModuleType) -> None:
    history = read("<c:history><c:event><c:at>1</c:at></c:event></c:history>").value
    assert [(type(event), event.at) for event in history.event] == [(c.Event, 1)]
    drawing = read("<c:drawing><c:part id='1'><c:colour>red</c:colour></c:part></c:drawing>").value
    assert [(part.id, part.colour) for part in drawing.part] == [("1", "red")]
    store = read("<c:store><c:strict xsi:nil='true'/><c:plain xsi:nil='true'/></c:store>").value
    assert (store.strict, store.plain) == (NIL, NIL)
    assert store.unknown_elements() == []
    team = read("<c:team><c:lead>l</c:lead>" + "<c:member>a</c:member>" * 5 + "</c:team>")
    assert len(team.value.member) == 5
    assert team.warnings[0].message == "5 of member, 3 are allowed"
    team = read("<c:team><c:lead>l</c:lead><c:member>a</c:member></c:team>")
    assert team.warnings[0].message == "1 of member, 2 are required"
    foreign = read("<c:foreign><c:last>l</c:last><v:a/></c:foreign>").value
    assert [raw.tag for raw in foreign.any_] == ["{urn:vendor}a"]


def test_spellings_of_attributes_survive(read: Callable[..., Any], c: ModuleType) -> None:
    xml = "<c:tagged number=' 007 ' colour='red' o:mark=' m '><c:text>t</c:text></c:tagged>"
    found = read(xml)
    assert (found.warnings, found.value.number, found.value.mark) == ([], 7, " m ")
    assert canonical(xmlbind.encode(found.value)) == canonical(doc(xml))
    found.value.number = 8
    assert xmlbind.to_element(found.value).get("number") == "8"
    price = read("<c:price currency='EUR'> 01.50 </c:price>")
    assert (price.warnings, price.value.value) == ([], Decimal("1.50"))
    assert etree.fromstring(xmlbind.encode(price.value)).text == " 01.50 "
    price.value.value = Decimal(2)
    assert etree.fromstring(xmlbind.encode(price.value)).text == "2"


def test_texts_that_look_like_names_of_ours(c: ModuleType) -> None:
    leaves = c.Leaves(token="{urn:x}y", uri="{a}b")
    assert [child.text for child in xmlbind.to_element(leaves)] == ["{urn:x}y", "{a}b"]
    assert xmlbind.decode(xmlbind.encode(leaves)) == leaves


# Wildcards on the fast path of reading, and kept XML whose namespace is a relative URI.

ME = "http://www.tmforum.org/mtop/nrf/xsd/me/v1"
ITU = "http://www.tmforum.org/mtop/nrb/itu/v1"


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
