"""Streaming: the same objects as reading at once, from anything that can be read, in memory that does not grow."""

from __future__ import annotations

import gzip
import io
import itertools
import random
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mtosi_jms import soap, xmlbind
from mtosi_jms.compression import ZSTD
from mtosi_jms.errors import ConfigError, DecodeError, MalformedXmlError
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.mri import rir
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType as Ctp
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType as Eh
from mtosi_jms.stubs.nrf.invdata import ManagedElementInventoryType
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType, Me
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType as Ptp

from .conftest import doc

NAME = "<coi:name><nam:rdn><nam:type>ME</nam:type><nam:value>{}</nam:value></nam:rdn></coi:name>"


def _reply(count: int) -> str:
    elements = "".join(f"\n<me:me>{NAME.format(number)}<me:location>L</me:location></me:me>" for number in range(count))
    return (
        "<soap:Envelope xmlns:soap='http://schemas.xmlsoap.org/soap/envelope/'><soap:Header><hdr:header/></soap:Header>"
        f"<soap:Body><mer:getAllManagedElementsResponse><mer:meList>{elements}</mer:meList>"
        "</mer:getAllManagedElementsResponse></soap:Body></soap:Envelope>"
    )


@pytest.fixture(scope="module")
def reply() -> bytes:
    """A response of three managed elements in an envelope."""
    return doc(_reply(3))


def _elements(data: bytes) -> list[ManagedElementType]:
    body = soap.parse(data).body
    assert isinstance(body, GetAllManagedElementsResponse)
    assert isinstance(body.me_list, ManagedElementListType)
    return body.me_list.me


def test_the_same_objects_from_any_source(reply: bytes, tmp_path: Path) -> None:
    expected = _elements(reply)
    plain, packed, packed_too = (tmp_path / f"reply.xml{suffix}" for suffix in ("", ".gz", ".zst"))
    plain.write_bytes(reply)
    packed.write_bytes(gzip.compress(reply))
    packed_too.write_bytes(import_module(ZSTD).compress(reply))
    with plain.open("rb") as opened:
        for source in (reply, bytearray(reply), plain, str(plain), packed, str(packed_too), io.BytesIO(reply), opened):
            assert list(xmlbind.iter_decode(source, ManagedElementType, strict=False)) == expected  # type: ignore[arg-type]


def test_a_class_finds_its_subclasses_and_objects_in_objects_are_parts(reply: bytes) -> None:
    assert [type(obj) for obj in xmlbind.iter_decode(reply, Me)] == [Me] * 3
    assert len(list(xmlbind.iter_decode(reply, NamingAttributeType))) == 3
    assert len(list(xmlbind.iter_decode(reply, ManagedElementListType))) == 1
    assert list(xmlbind.iter_decode(reply, Alarm)) == []
    assert len(list(xmlbind.iter_decode(reply, xmlbind.XmlObject))) == 2


def test_recursive_objects_come_once(c: ModuleType) -> None:
    xml = doc("<c:tree><c:node><c:node/></c:node><c:node/></c:tree>")
    assert len(list(xmlbind.iter_decode(xml, c.NodeType))) == 1


def test_objects_by_their_xsi_type(c: ModuleType) -> None:
    xml = doc(
        "<c:drawing><c:part xsi:type='c:RingType' id='1'><c:radius>1</c:radius></c:part>"
        "<c:part xsi:type='c:CircleType' id='2'><c:radius>2</c:radius></c:part>"
        "<c:circle xsi:type='c:RingType' id='3'><c:radius>3</c:radius></c:circle></c:drawing>"
    )
    assert [ring.id for ring in xmlbind.iter_decode(xml, c.RingType)] == ["1", "3"]
    assert [circle.id for circle in xmlbind.iter_decode(xml, c.CircleType)] == ["1", "2", "3"]


def test_objects_below_what_no_package_knows(c: ModuleType) -> None:
    xml = doc("<v:a><v:b><c:tree><c:name>1</c:name></c:tree></v:b><c:tree/></v:a>")
    assert [tree.name for tree in xmlbind.iter_decode(xml, c.Tree)] == ["1", None]


def test_nested_inventory() -> None:
    mes = "".join(f"<inv:meInv><inv:meNm>{number}</inv:meNm></inv:meInv>" for number in range(3))
    xml = (
        "<rir:getInventoryResponse xmlns:rir='http://www.tmforum.org/mtop/mri/xsd/rir/v1' "
        "xmlns:inv='http://www.tmforum.org/mtop/nrf/xsd/invdata/v1'><rir:inventoryData><inv:mdList><inv:md><inv:mdNm>d"
        f"</inv:mdNm><inv:meList>{mes}</inv:meList></inv:md></inv:mdList></rir:inventoryData></rir:getInventoryResponse>"
    )
    found = list(xmlbind.iter_decode(xml.encode(), ManagedElementInventoryType))
    assert [node.me_nm for node in found] == ["0", "1", "2"]
    deeper = xml.replace("</inv:meNm>", "</inv:meNm><inv:meAttrs/>")
    assert list(xmlbind.iter_decode(deeper.encode(), ManagedElementType)) == [ManagedElementType()] * 3


def test_warnings_tell_where() -> None:
    xml = doc(_reply(3).replace("<me:location>L</me:location></me:me>", "<me:new/><coi:name/></me:me>"))
    warnings: list[xmlbind.XmlWarning] = []
    found = list(xmlbind.iter_decode(xml, ManagedElementType, warnings=warnings))
    assert len(found) == 3
    base = "/Envelope/Body/getAllManagedElementsResponse/meList"
    assert [(warning.rule, warning.path, warning.line) for warning in warnings] == [
        (rule, f"{base}/{me}/{name}", line)
        for line, me in ((2, "me"), (3, "me[2]"), (4, "me[3]"))
        for rule, name in (("unknown-element", "new"), ("repeated", "name[2]"))
    ]
    with pytest.raises(DecodeError) as caught:
        list(xmlbind.iter_decode(xml, ManagedElementType, strict=True))
    assert (caught.value.line, caught.value.path) == (2, f"{base}/me/new")


def test_truncated_documents_give_what_was_whole(reply: bytes) -> None:
    expected = _elements(reply)
    ends = [match.end() for match in re.finditer(b"</me:me>", reply)]
    for end in range(len(reply)):
        found = []
        stream = xmlbind.iter_decode(reply[:end], ManagedElementType)
        with pytest.raises(MalformedXmlError):
            found.extend(stream)
        assert found == expected[: sum(1 for mark in ends if mark <= end)]


def test_a_fault_in_the_middle_comes_after_what_was_before(reply: bytes) -> None:
    expected = _elements(reply)
    at = reply.rindex(b">L<")
    spoilt = reply[:at] + b">&<" + reply[at + 3 :]
    found = []
    with pytest.raises(MalformedXmlError):
        found.extend(xmlbind.iter_decode(spoilt, ManagedElementType))
    assert found == expected[:2]


def test_stopping_early_closes_the_file(reply: bytes, tmp_path: Path) -> None:
    class Watched(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1) -> bytes:
            self.reads += 1
            return super().read(100)

    watched = Watched(reply)
    stream = xmlbind.iter_decode(watched, ManagedElementType)
    first = next(stream)
    reads = watched.reads
    stream.close()
    assert first == _elements(reply)[0]
    assert watched.reads == reads < len(reply) // 100
    assert not watched.closed  # the caller's own
    file = tmp_path / "reply.xml"
    file.write_bytes(reply)
    stream = xmlbind.iter_decode(file, ManagedElementType)
    assert next(stream) == first
    stream.close()  # an unclosed file would be a ResourceWarning, and so an error
    assert list(stream) == []


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(xmlbind.iter_decode(tmp_path / "none.xml", Me))
    with pytest.raises(ConfigError, match="binary"):
        list(xmlbind.iter_decode(io.StringIO("<a/>"), Me))  # type: ignore[arg-type]


# Several classes from one stream: each gives what it gives by itself, in the order of ends.

PtpInv = invdata.PhysicalTerminationPointInventoryType
CtpInv = invdata.ConnectionTerminationPointInventoryType
MeInv = invdata.ManagedElementInventoryType
EhInv = invdata.EquipmentHolderInventoryType
CLASSES = (Ctp, Eh, ManagedElementType, Ptp, PtpInv, CtpInv, MeInv, EhInv, NamingAttributeType, xmlbind.XmlObject)


@pytest.fixture(scope="module")
def inventory() -> bytes:
    """Three managed elements in the nested layout."""
    supplier = InventoryEms(Network(elements=3, ports=2, channels=2))
    return xmlbind.encode(rir.GetInventoryResponse(inventory_data=supplier.data(range(3))))


def test_a_whole_comes_after_its_parts(inventory: bytes) -> None:
    found = list(xmlbind.iter_decode(inventory, (PtpInv, CtpInv)))
    assert [type(value) for value in found] == [CtpInv, CtpInv, PtpInv] * 6
    for at in range(0, len(found), 3):
        whole = found[at + 2]
        assert isinstance(whole, PtpInv)
        assert whole.ctp_list is not None
        assert whole.ctp_list.ctp_inv == found[at : at + 2]
    assert [value for value in found if isinstance(value, PtpInv)] == list(xmlbind.iter_decode(inventory, PtpInv))


@pytest.mark.parametrize("classes", [*itertools.combinations(CLASSES, 2), (ManagedElementType, Ptp, Ctp), CLASSES])
def test_each_class_gives_what_it_gives_by_itself(inventory: bytes, classes: tuple[Any, ...]) -> None:
    apart = [{repr(value): None for value in xmlbind.iter_decode(inventory, cls)} for cls in classes]
    together = [repr(value) for value in xmlbind.iter_decode(inventory, classes)]
    assert set(together) == set().union(*apart)
    assert together == [repr(found.value) for found in xmlbind.iter_placed(inventory, classes)]
    assert together == [repr(value) for value in xmlbind.iter_decode(inventory, tuple(reversed(classes)))]


def test_one_class_in_a_tuple_is_that_class(inventory: bytes) -> None:
    expected = list(xmlbind.iter_decode(inventory, Ptp))
    assert len(expected) == 6
    assert list(xmlbind.iter_decode(inventory, (Ptp,))) == expected
    assert list(xmlbind.iter_decode(inventory, (Ptp, Ptp))) == expected


def test_recursion_and_derived_classes(c: ModuleType) -> None:
    tree = doc("<c:tree><c:name>1</c:name><c:node><c:name>2</c:name><c:node/></c:node></c:tree>")
    assert [type(value) for value in xmlbind.iter_decode(tree, (c.Tree, c.NodeType))] == [c.Tree]
    drawing = doc(
        "<c:drawing><c:part xsi:type='c:RingType' id='1'><c:radius>1</c:radius></c:part>"
        "<c:part xsi:type='c:CircleType' id='2'><c:radius>2</c:radius></c:part></c:drawing>"
    )
    found = list(xmlbind.iter_decode(drawing, (c.RingType, c.CircleType, c.Drawing)))
    assert [type(value) for value in found] == [c.RingType, c.CircleType, c.Drawing]
    assert [part.id for part in found[-1].part] == [part.id for part in found[:2]]


def test_what_is_read_twice_is_reported_once(inventory: bytes) -> None:
    odd = inventory.replace(b"<invdata:ctpNm>", b"\n<invdata:new/><invdata:ctpNm>")
    odd = odd.replace(b"</invdata:ptpNm>", b"</invdata:ptpNm><invdata:ptpNm>x</invdata:ptpNm>")
    warnings: list[xmlbind.XmlWarning] = []
    list(xmlbind.iter_decode(odd, (PtpInv, CtpInv, MeInv), warnings=warnings))
    whole: list[xmlbind.XmlWarning] = []
    xmlbind.decode(odd, warnings=whole)
    places = [(warning.rule, warning.message, warning.line) for warning in warnings]
    assert sorted(places) == sorted((warning.rule, warning.message, warning.line) for warning in whole)
    assert {warning.rule for warning in warnings} == {"unknown-element", "repeated"}
    placed: list[xmlbind.XmlWarning] = []
    list(xmlbind.iter_placed(odd, (PtpInv, CtpInv, MeInv), warnings=placed))
    assert sorted(map(str, placed)) == sorted(map(str, warnings))
    with pytest.raises(DecodeError, match="unknown element new"):
        list(xmlbind.iter_decode(odd, (PtpInv, CtpInv), strict=True))


def test_nil_objects_are_passed_over(c: ModuleType) -> None:
    xml = doc("<c:store><c:box xsi:nil='true'/><c:box>5</c:box><c:strict xsi:nil='1'/></c:store>")
    boxes = list(xmlbind.iter_decode(doc("<c:store><c:box xsi:nil='true'/><c:box/></c:store>"), c.BoxType, strict=True))
    assert len(boxes) == 1
    warnings: list[xmlbind.XmlWarning] = []
    assert len(list(xmlbind.iter_decode(xml, (c.Store, c.BoxType), warnings=warnings))) == 2
    assert [warning.rule for warning in warnings if warning.rule == "nil"] == ["nil"]


@pytest.mark.parametrize("largest", [1, 2, 100, 1000])
def test_in_any_pieces(inventory: bytes, largest: int) -> None:
    chance = random.Random(largest)

    class Pieces(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(chance.randint(1, largest))

    expected = list(map(repr, xmlbind.iter_placed(inventory, (Ctp, PtpInv))))
    assert len(expected) == 18
    assert list(map(repr, xmlbind.iter_placed(Pieces(inventory), (Ctp, PtpInv)))) == expected


def test_truncated_anywhere(inventory: bytes) -> None:
    expected = list(map(repr, xmlbind.iter_placed(inventory, (Ctp, PtpInv))))
    most = 0
    for end in range(0, len(inventory), 97):
        found: list[str] = []
        with pytest.raises(MalformedXmlError):
            found.extend(map(repr, xmlbind.iter_placed(inventory[:end], (Ctp, PtpInv))))
        assert found == expected[: len(found)]
        part = inventory[:end]
        assert len(found) == part.count(b"</invdata:ctpAttrs>") + part.count(b"</invdata:ptpInv>")
        most = max(most, len(found))
    assert most == len(expected)


@pytest.mark.parametrize("wrong", [(), "Me", None, (ManagedElementType, None), (ManagedElementType, int), int])
def test_what_is_no_class_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="generated class"):
        xmlbind.iter_decode(b"<a/>", wrong)
    with pytest.raises(ConfigError, match="generated class"):
        xmlbind.iter_placed(b"<a/>", wrong)
