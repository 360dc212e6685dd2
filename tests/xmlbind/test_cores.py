"""The native core and the Python core: the same objects, warnings and errors of every document."""

from __future__ import annotations

import dataclasses
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.errors import MtosiError
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType
from mtosi_jms.xmlbind import XmlLimits

from .conftest import doc
from .test_cases import CASES

pytest.importorskip("mtosi_jms.xmlbind._core", reason="the native core is not built")


@pytest.fixture(scope="module")
def seeds(package: str) -> list[bytes]:
    """The case table, and answers with an inventory."""
    network = Network(elements=3, ports=1, channels=1)
    answers = [
        GetAllManagedElementsResponse(me_list=ManagedElementListType(me=list(network.managed_elements()))),
        GetInventoryResponse(inventory_data=InventoryEms(network).data([0])),
    ]
    return [doc(case.xml) for case in CASES] + [xmlbind.encode(answer) for answer in answers]


def test_the_cases_are_read_alike(seeds: list[bytes], cores: ModuleType) -> None:
    assert [found for seed in seeds if (found := cores.difference(seed))] == []
    assert sum(map(cores.is_read_natively, seeds)) > len(seeds) // 2


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.endurance)])
def test_anything_put_anywhere_is_read_alike(step: int, package: str, cores: ModuleType) -> None:
    """Each piece at each third place, another third for the next piece; at all places in `make endurance`."""
    data = doc("<c:store><c:box unit='m'/><c:label>a</c:label></c:store>")
    places = ((piece, at) for n, piece in enumerate(cores.PIECES) for at in range(n % step, len(data) + 1, step))
    found = (cores.difference(data[:at] + piece + data[at:]) for piece, at in places)
    assert next((one for one in found if one), "") == ""


def test_attributes_that_no_class_knows_are_read_natively(cores: ModuleType) -> None:
    data = doc("<c:store v:a='1' b='2'><c:box unit='m' v:c='3'/>\n<c:label>a</c:label></c:store>")
    assert cores.difference(data) == ""
    assert cores.is_read_natively(data)


@pytest.mark.parametrize(
    ("many", "part"),
    [(1_000, 0), *(pytest.param(500_000, part, marks=pytest.mark.endurance) for part in range(20))],
)
def test_changed_documents_are_read_alike(many: int, part: int, seeds: list[bytes], cores: ModuleType) -> None:
    """Ten million in `make endurance`, in parts that can run on several cores."""
    chance = random.Random(many + part)
    natively = 0
    for number in range(many):
        data = cores.changed(chance.choice(seeds), chance, seeds)
        assert cores.difference(data) == ""
        natively += number % 10 == 0 and cores.is_read_natively(data)
    assert natively > many // 100


@pytest.mark.parametrize("many", [200, pytest.param(500_000, marks=pytest.mark.endurance)])
def test_changed_documents_are_iterated_alike(many: int, cores: ModuleType) -> None:
    network = Network(elements=8, ports=1, channels=1)
    elements = ManagedElementListType(me=list(network.managed_elements()))
    answers: list[tuple[xmlbind.XmlObject, type[xmlbind.XmlObject]]] = [
        (GetAllManagedElementsResponse(me_list=elements), ManagedElementType),
        (GetInventoryResponse(inventory_data=InventoryEms(network).data(range(4))), ManagedElementType),
        (GetInventoryResponse(inventory_data=InventoryEms(network).data([0])), PhysicalTerminationPointType),
    ]
    seeds = [(xmlbind.encode(answer).replace(b"><", b">\n<"), cls) for answer, cls in answers]
    for data, cls in seeds:
        plain = cores.iterated("native", data, cls, 300)
        assert plain == cores.iterated("python", data, cls, 1 << 16)
        assert (len(plain[0]) > 0, plain[1:]) == (True, ([], ""))
    chance = random.Random(many)
    for _ in range(many):
        data, cls = chance.choice(seeds)
        data = cores.changed(data, chance, [data])
        size, strict = chance.choice((100, 1000, 1 << 16)), chance.random() < 0.2
        ours, theirs = (cores.iterated(name, data, cls, size, strict=strict) for name in ("native", "python"))
        assert ours == theirs, data


def test_odd_objects_are_read_again_with_their_lines_and_paths(package: str, cores: ModuleType) -> None:
    good = "<c:box unit='m'>\n<c:inside>x</c:inside></c:box>\n"
    odd = "<c:box\n unit='m'\n>\n<c:inside>x</c:inside><c:other>\n</c:other></c:box>\r\n"
    data = doc(f"<c:store>{(good + odd) * 40}{odd}<c:label>a</c:label></c:store>")
    assert cores.difference(data) == ""
    assert cores.is_read_natively(data)
    warnings: list[xmlbind.XmlWarning] = []
    xmlbind.decode(data, warnings=warnings)
    assert len(warnings) == 41
    assert (warnings[1].path, warnings[-1].path) == ("/store/box[4]/other", "/store/box[81]/other")


def test_what_is_named_like_a_credential_is_hidden_in_the_same_way(package: str, cores: ModuleType) -> None:
    for name in ("password", "token"):
        xml = f"<c:{name}><c:store><c:box><c:other>secret</c:other>stray</c:box></c:store></c:{name}>"
        assert cores.difference(doc(xml)) == ""


@pytest.mark.parametrize("depth", [199, 200, 201, 256, 300])
@pytest.mark.parametrize(
    "limits", [XmlLimits(), XmlLimits(huge=True), XmlLimits(max_depth=300, huge=True), XmlLimits(max_depth=3)]
)
def test_depth_is_bounded_alike(depth: int, limits: XmlLimits, package: str, cores: ModuleType) -> None:
    assert (
        cores.difference(doc(f"{'<c:node>' * depth}{'</c:node>' * depth}".replace("node", "tree", 1)), limits=limits)
        == ""
    )
    assert (
        cores.difference(doc("<c:tree>" + "<c:node>" * depth + "</c:node>" * depth + "</c:tree>"), limits=limits) == ""
    )


@pytest.mark.parametrize("many", [1, 63, 64, 65, 1000, 1001])
def test_attributes_and_namespaces_are_bounded_alike(many: int, package: str, cores: ModuleType) -> None:
    for limits in (XmlLimits(), XmlLimits(max_attributes=64), XmlLimits(max_namespaces=64)):
        attributes = " ".join(f"a{number}='1'" for number in range(many))
        namespaces = " ".join(f"xmlns:n{number}='urn:n'" for number in range(many))
        for given in (attributes, namespaces):
            data = doc("<c:store><c:box unit='m'/><c:label>a</c:label></c:store>")
            assert cores.difference(data.replace(b"unit='m'", given.encode()), limits=limits) == ""
            assert cores.difference(data.replace(b"<c:store", b"<c:store " + given.encode()), limits=limits) == ""


def test_size_is_bounded_alike(package: str, cores: ModuleType) -> None:
    data = doc("<c:store><c:label>a</c:label></c:store>")
    assert cores.difference(data, limits=XmlLimits(max_bytes=len(data) - 1)) == ""
    for size in (8_999_000, 9_000_100, 9_999_999, 10_000_001):
        for long in (b"x" * size, b"<![CDATA[" + b"x" * size + b"]]>", b"<!--" + b"x" * size + b"-->"):
            with cores.core("native"):
                natively = _result(data.replace(b">a<", b">" + long + b"<"))
            with cores.core("python"):
                assert natively == _result(data.replace(b">a<", b">" + long + b"<"))


def _result(data: bytes) -> str:
    try:
        return str(len(xmlbind.decode(data).label or ""))
    except MtosiError as error:
        return str(error)


def test_a_long_name_is_refused_alike(package: str, cores: ModuleType) -> None:
    name = "x" * 60_000
    assert cores.difference(doc(f"<c:store><{name}/></c:store>")) == ""
    assert cores.difference(doc(f"<c:store {name}='1'/>")) == ""


def test_lines_of_long_documents_are_told(package: str, cores: ModuleType) -> None:
    """The tree knows no line after 65,535."""
    data = doc("<c:store>" + "\n" * 70_000 + "<c:box><c:other/></c:box><c:label>a</c:label></c:store>")
    (kind, value, _, (warning,)), (other_kind, other_value, _, (other,)) = map(
        cores.outcome, ("native", "python"), (data, data)
    )
    assert (kind, value, warning.line) == (other_kind, other_value, 70_001)
    assert dataclasses.replace(warning, line=other.line) == other


def test_other_threads_and_other_documents_may_come_in_between(package: str, cores: ModuleType) -> None:
    texts = [
        doc("<c:store>" + f"<c:box><c:inside>{number}</c:inside><c:new/></c:box>" * 50 + "</c:store>")
        for number in range(8)
    ]
    expected = [cores.outcome("native", text) for text in texts]
    with cores.core("native"), ThreadPoolExecutor(8) as pool:
        found = list(pool.map(xmlbind.decode, texts * 10))
    assert [cores.described(value) for value in found] == [value for _, value, _, _ in expected] * 10


def test_what_is_given_up_leaves_nothing(package: str, cores: ModuleType) -> None:
    data = doc("<c:store><c:box><c:new/></c:box></c:store>")[:-1]
    warnings: list[xmlbind.XmlWarning] = []
    with cores.core("native"), pytest.raises(MtosiError):
        xmlbind.decode(data, warnings=warnings)
    assert warnings == []


@pytest.mark.parametrize("wish", ["python", "native", ""])
def test_the_environment_chooses(wish: str, cores: ModuleType) -> None:
    with cores.core(wish):
        assert xmlbind.core().name == (wish or "native")


def test_the_samples_are_read_alike(shared: Path, cores: ModuleType) -> None:
    for path in sorted((shared / "samples").rglob("*.xml")):
        parts = [path.read_bytes()]
        with suppress(etree.XMLSyntaxError):  # of some that were seen in the field
            root = etree.fromstring(parts[0])
            parts += [etree.tostring(part) for part in root.iterfind("./*/*")]
        assert [found for part in parts if (found := cores.difference(part))] == []
