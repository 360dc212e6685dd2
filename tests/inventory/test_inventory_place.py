"""Full names out of a stream: those that the search in a whole document gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

from mtosi_codegen import generate, write
from mtosi_jms import xmlbind
from mtosi_jms.inventory import Place, Routes, class_for, find_objects, is_object, place_of
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType as Ctp
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType as Eh
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType

TYPES = ("ME", "EQ", "EH", "PTP", "CTP", "FTP", "TL", "OS", "MD", "TMD", "SNC", "MLSN")
NODES = tuple(
    getattr(invdata, f"{name}InventoryType")
    for name in ("ManagementDomain", "ManagedElement", "PhysicalTerminationPoint", "ConnectionTerminationPoint")
)


def _inventory() -> bytes:
    supplier = InventoryEms(Network(elements=2, ports=2, channels=2, domain="A/B=C%"))
    return xmlbind.encode(GetInventoryResponse(inventory_data=supplier.data(range(2))))


def _without_names(data: bytes) -> bytes:
    """The same with the short names alone."""
    root = etree.fromstring(data)
    for name in root.findall(".//{http://www.tmforum.org/mtop/fmw/xsd/coi/v1}name"):
        parent = name.getparent()
        assert parent is not None
        parent.remove(name)
    return etree.tostring(root)


def _expected(data: bytes) -> list[Place]:
    hits = find_objects([etree.fromstring(data)], Routes(is_object))  # type: ignore[arg-type]
    return [Place(hit.name, tuple(hit.parents or ())) for hit in hits if hit.element is not None]


@pytest.mark.parametrize("named", [True, False])
def test_the_names_are_those_of_a_search_in_the_whole(named: bool) -> None:
    data = _inventory() if named else _without_names(_inventory())
    classes = tuple(class_for(name).cls for name in TYPES)
    found = [place_of(item) for item in xmlbind.iter_placed(data, classes)]
    assert len(found) > 20
    assert found == _expected(data)


def test_official_samples(shared: Path) -> None:
    file = shared / "samples/official-2.0/ManageResourceInventory/7-2_sit_getInventoryResponse.xml"
    (found,) = (place_of(item) for item in xmlbind.iter_placed(file, Ctp))
    assert found.parents == ("MD=MD_A", "MD=MD_A/ME=string", "MD=MD_A/ME=string/PTP=string")
    assert found.name == "MD=MD_A/ME=string/PTP=string/CTP=string"


_OTHER_PACKAGE = """
import sys
sys.path.insert(0, sys.argv[1])
from release.nrf import cc, ctp, invdata, snc
from mtosi_jms import xmlbind
from mtosi_jms.inventory import place_of
for found in xmlbind.iter_placed(sys.argv[2], (ctp.ConnectionTerminationPointType, snc.SubnetworkConnectionType)):
    me = found.around(invdata.ManagedElementInventoryType)
    print(type(found.value).__module__, place_of(found).name, me.me_nm, me.ptp_list)
"""


def test_a_package_generated_from_the_release(shared: Path, tmp_path: Path) -> None:
    release = shared / "mtosi/2.0/ManageResourceInventory/IIS/xsd/ResourceInventoryRetrievalMessages.xsd"
    result = generate([release])
    assert not result.failed
    write(tmp_path / "release", result.files)
    sample = shared / "samples/official-2.0/ManageResourceInventory/7-2_sit_getInventoryResponse.xml"
    command = [sys.executable, "-W", "error", "-c", _OTHER_PACKAGE, str(tmp_path), str(sample)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "release.nrf.ctp MD=MD_A/ME=string/PTP=string/CTP=string string None\n"


def test_nodes_and_attributes_agree() -> None:
    data = _without_names(_inventory())
    nodes = {place_of(item) for item in xmlbind.iter_placed(data, NODES)}
    attributes = tuple(class_for(name).cls for name in ("MD", "ME", "PTP", "CTP"))
    assert nodes == {place_of(item) for item in xmlbind.iter_placed(data, attributes)}
    assert len(nodes) == 1 + 2 + 4 + 8


def test_holders_are_named_within_the_element() -> None:
    data = _without_names(_inventory())
    names = [place_of(item) for item in xmlbind.iter_placed(data, Eh)]
    assert all(place.name and place.name.startswith(f"{place.parents[1]}/EH=") for place in names)


def test_flat_objects_carry_their_names() -> None:
    element = Network(elements=1).managed_element(0)
    data = xmlbind.encode(
        GetAllManagedElementsResponse(me_list=ManagedElementListType(me=[element, ManagedElementType()]))
    )
    first, second = (place_of(item) for item in xmlbind.iter_placed(data, ManagedElementType))
    assert first == Place("MD=EMS1/ME=NE-1", ("MD=EMS1",))
    assert second == Place(None, ())
    (whole,) = (place_of(item) for item in xmlbind.iter_placed(data, ManagedElementListType))
    assert whole == Place(None, ())
