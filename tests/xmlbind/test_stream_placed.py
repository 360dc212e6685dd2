"""What stands around an object of a stream: read as far as it had come, bounded, each oddity told with its place."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import ModuleType

import pytest

from mtosi_jms import xmlbind
from mtosi_jms.errors import DecodeError
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType as Ctp
from mtosi_jms.stubs.nrf.me import ManagedElementType as Me
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType as Ptp
from mtosi_jms.stubs.nrf.tl import TopologicalLinkType as Tl
from mtosi_jms.xmlbind import _walker as walker

from .conftest import doc

MdInv = invdata.ManagementDomainInventoryType
MeInv = invdata.ManagedElementInventoryType
PtpInv = invdata.PhysicalTerminationPointInventoryType
CtpInv = invdata.ConnectionTerminationPointInventoryType
RDN = "<nam:rdn><nam:type>{}</nam:type><nam:value>{}</nam:value></nam:rdn>"


def _ctp(number: int) -> str:
    return (
        f"\n<inv:ctpInv><inv:ctpNm>c{number}</inv:ctpNm><inv:ctpAttrs><coi:userLabel>l{number}</coi:userLabel>"
        "</inv:ctpAttrs></inv:ctpInv>"
    )


def _ptp(name: str, *ctps: int) -> str:
    return (
        f"\n<inv:ptpInv><inv:ptpNm>{name}</inv:ptpNm><inv:ptpAttrs><coi:userLabel>port {name}</coi:userLabel>"
        f"</inv:ptpAttrs><inv:ctpList>{''.join(map(_ctp, ctps))}</inv:ctpList></inv:ptpInv>"
    )


def _me(name: str, *ptps: str) -> str:
    return (
        f"\n<inv:meInv><inv:meNm>{name}</inv:meNm><inv:meAttrs><me:location>at {name}</me:location></inv:meAttrs>"
        f"<inv:ehList><inv:ehInv><inv:ehNm>h</inv:ehNm></inv:ehInv></inv:ehList>"
        f"<inv:ptpList>{''.join(ptps)}</inv:ptpList></inv:meInv>"
    )


def _data(*mes: str, after: str = "") -> str:
    return (
        "<rir:getInventoryResponse><rir:inventoryData><inv:mdList><inv:md><inv:mdNm>EMS1</inv:mdNm>"
        f"<inv:mdAttrs><coi:name>{RDN.format('MD', 'EMS1')}</coi:name></inv:mdAttrs>"
        f"<inv:meList>{''.join(mes)}</inv:meList>{after}</inv:md></inv:mdList></rir:inventoryData>"
        "</rir:getInventoryResponse>"
    )


NETWORK = _data(_me("a", _ptp("p", 1, 2), _ptp("q", 3)), _me("b", _ptp("r", 4)))


def test_a_ctp_knows_its_ptp_me_and_md(tmp_path: Path) -> None:
    file = tmp_path / "inventory"
    file.write_bytes(gzip.compress(doc(NETWORK)))
    found = list(xmlbind.iter_placed(file, Ctp, strict=True))
    rows = []
    for item in found:
        md, me, ptp = item.around(MdInv), item.around(MeInv), item.around(PtpInv)
        assert md is not None
        assert me is not None
        assert ptp is not None
        rows.append((md.md_nm, me.me_nm, ptp.ptp_nm, item.value.user_label))
        assert isinstance(md.md_attrs, xmlbind.XmlObject)
        assert str(md.md_attrs.name) == "MD=EMS1"
        assert item.around(Me) is me.me_attrs
        assert item.around(Ptp) is ptp.ptp_attrs
        assert (me.eh_list, me.ptp_list, ptp.ctp_list) == (None, None, None)
    assert rows == [
        ("EMS1", "a", "p", "l1"),
        ("EMS1", "a", "p", "l2"),
        ("EMS1", "a", "q", "l3"),
        ("EMS1", "b", "r", "l4"),
    ]
    assert found[0].above[-3] is found[1].above[-3]
    assert found[0].around(PtpInv) is found[1].around(PtpInv)


def test_the_elements_around_are_named() -> None:
    item = list(xmlbind.iter_placed(doc(NETWORK), CtpInv))[2]
    inv, rir = "{http://www.tmforum.org/mtop/nrf/xsd/invdata/v1}", "{http://www.tmforum.org/mtop/mri/xsd/rir/v1}"
    steps = [f"{rir}getInventoryResponse", f"{rir}inventoryData"]
    steps += [inv + local for local in ("mdList", "md", "meList", "meInv", "ptpList", "ptpInv", "ctpList")]
    assert [place.tag for place in item.above] == steps
    assert item.tag == f"{inv}ctpInv"
    base = "/getInventoryResponse/inventoryData/mdList/md/meList/meInv"
    assert item.path == f"{base}/ptpList/ptpInv[2]/ctpList/ctpInv"
    assert (item.above[-2].path, item.above[-2].line, item.line) == (f"{base}/ptpList/ptpInv[2]", 6, 7)
    assert [place.left_out for place in item.above] == [
        ("inventory_data",),
        ("md_list",),
        ("md",),
        ("me_list",),
        ("me_inv",),
        ("eh_list", "ptp_list"),
        ("ptp_inv",),
        ("ctp_list",),
        ("ctp_inv",),
    ]
    assert [type(place.value) for place in item.above][-2:] == [
        PtpInv,
        invdata.PhysicalTerminationPointInventoryTypeCtpList,
    ]


def test_no_more_is_said_than_had_been_read() -> None:
    xml = NETWORK.replace("<inv:meNm>b</inv:meNm>", "").replace("</inv:ptpList></inv:meInv>", "</inv:ptpList>"
        "<inv:qualityIndicator><inv:isSuspect>true</inv:isSuspect></inv:qualityIndicator></inv:meInv>")  # fmt: skip
    found = list(xmlbind.iter_placed(doc(xml), Ctp))
    elements = [item.around(MeInv) for item in found]
    assert [element.me_nm for element in elements if element] == ["a", "a", "a", None]
    assert all(element is not None and element.quality_indicator is None for element in elements)


def test_later_objects_know_more_and_earlier_ones_stay_as_they_were() -> None:
    links = "<inv:qualityIndicator/><inv:tlList><inv:tlInv><inv:tlAttrs/></inv:tlInv></inv:tlList>"
    first, *_, last = xmlbind.iter_placed(doc(_data(_me("a", _ptp("p", 1)), after=links)), (Ctp, Tl))
    before, after = first.around(MdInv), last.around(MdInv)
    assert before is not None
    assert after is not None
    assert (before.quality_indicator, after.quality_indicator) == (None, invdata.DataQualityIndicatorType())
    assert first.above[3].left_out == ("me_list",)
    assert last.above[3].left_out == ("me_list", "tl_list")
    assert last.around(Me) is None


def test_objects_that_are_parts_of_what_is_around_them() -> None:
    found = list(xmlbind.iter_placed(doc(NETWORK), (Me, Ptp, Ctp)))
    assert [type(item.value) for item in found] == [Me, Ptp, Ctp, Ctp, Ptp, Ctp, Me, Ptp, Ctp]
    assert found[2].around(Ptp) is found[1].value
    assert found[2].around(Me) is found[0].value
    assert found[8].around(Me) is found[6].value
    assert found[0].around(Me) is None
    names = list(xmlbind.iter_placed(doc(NETWORK), NamingAttributeType))
    assert [str(item.value) for item in names] == ["MD=EMS1"]
    assert [place.path.rpartition("/")[2] for place in names[0].above][-2:] == ["md", "mdAttrs"]


def test_a_whole_object_around_another() -> None:
    found = list(xmlbind.iter_placed(doc(NETWORK), (PtpInv, Ctp)))
    assert [type(item.value) for item in found] == [Ctp, Ctp, PtpInv, Ctp, PtpInv, Ctp, PtpInv]
    known = found[0].around(PtpInv)
    assert known is not None
    assert (known.ptp_nm, known.ctp_list) == ("p", None)
    whole = found[2].value
    assert isinstance(whole, PtpInv)
    assert (whole.ptp_nm, whole.ptp_attrs) == (known.ptp_nm, known.ptp_attrs)
    assert whole.ctp_list is not None
    assert [inner.ctp_attrs for inner in whole.ctp_list.ctp_inv] == [found[0].value, found[1].value]
    assert found[2].around(MeInv) == found[0].around(MeInv)


def test_holders_in_holders() -> None:
    holder = "<inv:ehInv><inv:ehNm>{}</inv:ehNm><inv:ehAttrs/>{}</inv:ehInv>"
    nested = holder.format(1, f"<inv:ehList>{holder.format(2, '<inv:eqInv><inv:eqAttrs/></inv:eqInv>')}</inv:ehList>")
    xml = _data(_me("a")).replace("<inv:ehInv><inv:ehNm>h</inv:ehNm></inv:ehInv>", nested)
    classes = (invdata.EquipmentInventoryType, invdata.EquipmentHolderInventoryType)
    found = list(xmlbind.iter_placed(doc(xml), classes))
    assert [type(item.value) for item in found] == list(classes)
    holders = [place.value for place in found[0].above if isinstance(place.value, classes[1])]
    assert [value.eh_nm for value in holders] == ["1", "2"]


def test_the_type_that_an_element_around_says_it_has(c: ModuleType) -> None:
    xml = doc(
        "<c:drawing><c:part xsi:type='c:RingType' id='7'><c:colour>red</c:colour><c:hole>3</c:hole><v:x><c:tree/></v:x>"
        "</c:part></c:drawing>"
    )
    warnings: list[xmlbind.XmlWarning] = []
    (found,) = xmlbind.iter_placed(xml, c.Tree, warnings=warnings)
    ring = found.around(c.CircleType)
    assert type(ring) is c.RingType
    assert (ring.id, ring.colour, ring.hole, ring.radius) == ("7", "red", 3, None)
    assert [place.value for place in found.above][-1] is None
    assert [(warning.rule, warning.path) for warning in warnings] == [("unknown-element", "/drawing/part/x")]


def test_what_is_odd_around_an_object_is_told_once_with_its_place() -> None:
    odd = NETWORK.replace("<inv:meInv>", "<inv:meInv colour='red'>", 1)
    odd = odd.replace("<me:location>at b</me:location>", "<me:manufactureDate>\nnever</me:manufactureDate>")
    odd = odd.replace("<inv:ptpNm>p", "<inv:new/>\n<inv:new/><inv:ptpNm>p</inv:ptpNm><inv:ptpNm>p")
    odd = odd.replace("<inv:ehNm>", "<inv:unseen/><inv:ehNm>")  # around nothing that is asked for
    warnings: list[xmlbind.XmlWarning] = []
    found = list(xmlbind.iter_placed(doc(odd), Ctp, warnings=warnings))
    base = "/getInventoryResponse/inventoryData/mdList/md/meList"
    assert [(warning.rule, warning.path.removeprefix(base), warning.line) for warning in warnings] == [
        ("unknown-attribute", "/meInv", 2),
        ("unknown-element", "/meInv/ptpList/ptpInv/new", 3),
        ("repeated", "/meInv/ptpList/ptpInv/ptpNm[2]", 4),
        ("bad-value", "/meInv[2]/meAttrs/manufactureDate", 9),
    ]
    first = found[0].around(MeInv)
    assert first is not None
    assert first.extras is not None
    assert first.extras.attributes == {"colour": "red"}
    last = found[-1].around(Me)
    assert last is not None
    assert [raw.tag.rpartition("}")[2] for raw in last.unknown_elements()] == ["manufactureDate"]
    with pytest.raises(DecodeError) as caught:
        list(xmlbind.iter_placed(doc(odd), Ctp, strict=True))
    assert (caught.value.path, caught.value.line) == (f"{base}/meInv", 2)
    assert len(list(xmlbind.iter_decode(doc(odd), Ctp, strict=True))) == 4  # that asks for nothing of it


def test_objects_that_hide_in_the_parts_of_what_is_around(c: ModuleType) -> None:
    hidden = "<coi:vendorExtensions><c:tree><c:name>n</c:name><c:new/></c:tree></coi:vendorExtensions>"
    xml = doc(NETWORK.replace("<coi:userLabel>port p</coi:userLabel>", hidden))
    warnings: list[xmlbind.XmlWarning] = []
    found = list(xmlbind.iter_placed(xml, (c.Tree, Ctp), warnings=warnings))
    assert [type(item.value) for item in found] == [c.Tree] + [Ctp] * 4
    assert [warning.rule for warning in warnings] == ["unknown-element"]
    port = found[1].around(Ptp)
    assert port is not None
    assert getattr(port.vendor_extensions, "any_", None) == [found[0].value]
    assert isinstance(around := found[0].around(PtpInv), PtpInv)
    assert (around.ptp_nm, around.ptp_attrs) == ("p", None)


def test_a_part_that_is_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "LARGEST_PART", 50)
    aliases = "<gen:alias><gen:aliasName>n</gen:aliasName></gen:alias>" * 30
    large = f"<coi:aliasNameList>{aliases}</coi:aliasNameList>"
    xml = doc(NETWORK.replace("<coi:userLabel>port p</coi:userLabel>", large))
    found = list(xmlbind.iter_placed(xml, Ctp, strict=True))
    assert [item.value.user_label for item in found] == ["l1", "l2", "l3", "l4"]
    ports = [item.around(PtpInv) for item in found]
    assert [port.ptp_nm for port in ports if port] == ["p", "p", "q", "r"]
    assert [port.ptp_attrs is None for port in ports if port] == [True, True, False, False]
    assert [item.above[-3].left_out for item in found][1:3] == [("ptp_attrs", "ctp_list"), ("ctp_list",)]
    assert [type(place.value) for place in found[0].above] == [type(place.value) for place in found[-1].above]


def test_envelopes_and_roots(c: ModuleType) -> None:
    (alone,) = xmlbind.iter_placed(doc("<c:tree/>"), c.Tree)
    assert (alone.above, alone.path, alone.line) == ((), "/tree", 1)
    body = "<soap:Envelope xmlns:soap='http://schemas.xmlsoap.org/soap/envelope/'><soap:Body><c:tree/></soap:Body></soap:Envelope>"
    (found,) = xmlbind.iter_placed(doc(body), c.Tree, strict=True)
    assert [(place.path, place.value) for place in found.above] == [("/Envelope", None), ("/Envelope/Body", None)]
    assert found.around(c.Tree) is None
    assert list(xmlbind.iter_placed(doc(body), Me)) == []
