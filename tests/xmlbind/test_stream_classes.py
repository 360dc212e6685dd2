"""Several classes from one stream: each gives what it gives by itself, in the order of ends."""

from __future__ import annotations

import io
import itertools
import random
from types import ModuleType
from typing import Any

import pytest

from mtosi_jms import xmlbind
from mtosi_jms.errors import ConfigError, DecodeError, MalformedXmlError
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.mri import rir
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType as Ctp
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType as Eh
from mtosi_jms.stubs.nrf.me import ManagedElementType as Me
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType as Ptp

from .conftest import doc

PtpInv = invdata.PhysicalTerminationPointInventoryType
CtpInv = invdata.ConnectionTerminationPointInventoryType
MeInv = invdata.ManagedElementInventoryType
EhInv = invdata.EquipmentHolderInventoryType
CLASSES = (Ctp, Eh, Me, Ptp, PtpInv, CtpInv, MeInv, EhInv, NamingAttributeType, xmlbind.XmlObject)


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


@pytest.mark.parametrize("classes", [*itertools.combinations(CLASSES, 2), (Me, Ptp, Ctp), CLASSES])
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


@pytest.mark.parametrize("wrong", [(), "Me", None, (Me, None), (Me, int), int])
def test_what_is_no_class_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="generated class"):
        xmlbind.iter_decode(b"<a/>", wrong)
    with pytest.raises(ConfigError, match="generated class"):
        xmlbind.iter_placed(b"<a/>", wrong)
