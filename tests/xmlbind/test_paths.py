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
from mtosi_jms.stubs.fmw.coi import CommonObjectInfoType
from mtosi_jms.stubs.fmw.gen import AnyListType
from mtosi_jms.stubs.nrf import ctp, eh, eq, ftp, me, ptp, tl
from mtosi_jms.xmlbind import NIL, Issues, RawXml, Scopes, XmlWarning, decode, encode, parse_xml
from mtosi_jms.xmlbind import _reader as decoder
from mtosi_jms.xmlbind._fast import FastPlan, Known, is_plain
from mtosi_jms.xmlbind._reader import Reader
from mtosi_jms.xmlbind.columns import plan_of

from .conftest import canonical, doc

RDN = "<nam:rdn><nam:type>ME</nam:type><nam:value>1</nam:value></nam:rdn>"
PLAIN = [
    (
        "<c:leaves><c:string>s</c:string><c:uri>u</c:uri><c:flag>true</c:flag><c:int>5</c:int><c:many/><c:many>x</c:many>"
        "</c:leaves>"
    ),
    (
        "<c:leaves>\n\t<c:string/>\n\t<c:day>2026-01-01</c:day>\n\t<c:colour>red</c:colour>\n"
        "\t<c:numbers>1 2</c:numbers>\n</c:leaves>"
    ),
    "<c:tree><c:node><c:name>1</c:name><c:node/></c:node><c:node/></c:tree>",
    f"<mer:getManagedElementRequest><mer:meRef>{RDN * 2}</mer:meRef></mer:getManagedElementRequest>",
    (
        f"<me:me><coi:name>{RDN}</coi:name><coi:userLabel>l</coi:userLabel><cri:resourceState>WORKING</cri:resourceState>"
        "<me:isInSyncState>true</me:isInSyncState><me:supportedConnectionLayerRateList><lay:layerRate>LR_Ethernet"
        "</lay:layerRate></me:supportedConnectionLayerRateList></me:me>"
    ),
    "<c:store><c:height xsi:nil='true'/><c:label xsi:nil='true'/><c:plain>p</c:plain></c:store>",
]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The elements that the slow path was asked to read."""
    asked: list[str] = []
    real = Reader.slowly

    def slowly(self: Reader, element: etree._Element, *rest: Any) -> Any:
        asked.append(etree.QName(element).localname)
        return real(self, element, *rest)

    monkeypatch.setattr(Reader, "slowly", slowly)
    return asked


@pytest.mark.parametrize("xml", PLAIN)
def test_plain_documents_take_the_fast_path(xml: str, slow: list[str], package: str) -> None:
    value = xmlbind.decode(doc(xml), strict=True)
    assert slow == []
    assert isinstance(value, xmlbind.XmlObject)
    assert value.extras is None


@pytest.mark.usefixtures("python_core")
def test_what_is_odd_takes_the_slow_path_alone(slow: list[str], package: str) -> None:
    inner = "<c:node><c:name>1</c:name></c:node><c:node><c:new/></c:node><c:node><c:name>3</c:name></c:node>"
    xmlbind.decode(doc(f"<c:tree>{inner}</c:tree>"))
    assert slow == ["tree", "node"]


@pytest.mark.usefixtures("python_core")
def test_objects_with_attributes_do_not_make_their_neighbours_slow(slow: list[str], package: str) -> None:
    xml = "<c:drawing><c:part xsi:type='c:CircleType' id='1'><c:radius>1</c:radius></c:part></c:drawing>"
    xmlbind.decode(doc(xml), strict=True)
    assert slow == ["part"]
    slow.clear()
    xmlbind.decode(doc("<c:store><c:box/><c:box unit='m'/><c:box xsi:nil='true'/></c:store>"), strict=True)
    assert slow == ["box"]


@pytest.mark.usefixtures("python_core")
def test_after_some_failures_the_fast_path_is_tried_now_and_then(
    slow: list[str], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    tried: list[FastPlan] = []
    real = decoder.read_fast

    def read_fast(element: Any, elements: Any, plan: FastPlan, reader: Reader) -> Any:
        tried.append(plan)
        return real(element, elements, plan, reader)

    monkeypatch.setattr(decoder, "read_fast", read_fast)
    value = xmlbind.decode(doc(f"<c:tree>{'<c:node><c:new/></c:node>' * 100}</c:tree>"))
    assert len(value.node) == 100
    assert len(slow) == 101
    assert len(tried) == 1 + 3 + 3  # the root; the first three nodes; every 32nd of the others
    tried.clear()
    good_and_bad = "<c:node><c:new/></c:node><c:node/>" * 50
    assert len(xmlbind.decode(doc(f"<c:tree>{good_and_bad}</c:tree>")).node) == 100
    assert len(tried) == 101


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


def test_a_reader_may_be_asked_for_one_element() -> None:
    element = etree.fromstring(
        '<h:header xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><h:priority>5</h:priority></h:header>'
    )
    assert Reader(Issues()).root(element, None).priority == "5"
    assert Scopes().qname("h:x", element) == "{http://www.tmforum.org/mtop/fmw/xsd/hdr/v1}x"
    assert Scopes().qname("none:x", element) is None
    assert Scopes().qname("x", element) == "x"


# Wildcards on the fast path of reading, and kept XML whose namespace is a relative URI.

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
