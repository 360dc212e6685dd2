"""One generated network in MTOSI 2.0 and in 1.1 gives the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.inventory import OBJECT_TYPES
from mtosi_jms.inventory._release1 import RENAMED
from mtosi_jms.namespaces import MTOP, TMF854, clark, split_clark
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.com import ConnectionDirectionType, SubnetworkConnectionStateType
from mtosi_jms.stubs.nrf.mlsn import MultiLayerSubnetworkType
from mtosi_jms.stubs.nrf.snc import SubnetworkConnectionType
from mtosi_jms.stubs.nrf.tpdata import TerminationPointDataListType, TerminationPointDataType
from mtosi_jms.tables import read, write

_OLD = {new: old for old, names in RENAMED.items() for new in names}
_PLACE = ("source_file", "source_line", "release")
_ENVELOPE = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><header xmlns="{}" {}>
<activityName>getInventory</activityName><msgName>getInventoryResponse</msgName><msgType>RESPONSE</msgType>
<senderURI>a</senderURI><destinationURI>b</destinationURI><correlationId>c</correlationId>
<communicationPattern>SimpleResponse</communicationPattern><communicationStyle>RPC</communicationStyle></header>
</s:Header><s:Body>{}</s:Body></s:Envelope>"""


class _Context:
    batch_size = None


class _Request:
    filter = None


def _network() -> bytes:
    """A network with a subnetwork and a connection in it, as the answer of 2.0."""
    supplier = InventoryEms(Network(elements=3, ports=2, channels=2, domain="A/B=C%", technology="ETHERNET", ftps=1))
    response = next(iter(supplier.get_inventory(_Request(), _Context())))  # type: ignore[arg-type]
    assert response.inventory_data is not None
    assert response.inventory_data.md_list is not None
    [domain] = response.inventory_data.md_list.md
    ends = [
        TerminationPointDataListType(tp_data=[TerminationPointDataType(tp_ref=name(f"MD=A/ME=NE-{end}/PTP=p"))])
        for end in (1, 2)
    ]
    connection = SubnetworkConnectionType(
        user_label="path",
        snc_state=SubnetworkConnectionStateType.SNCS_ACTIVE,
        direction=ConnectionDirectionType.CD_BI,
        is_fixed=True,
        a_end_tp_data_list=ends[0],
        z_end_tp_data_list=ends[1],
    )
    inside = invdata.MultiLayerSubnetworkInventoryType(
        mlsn_nm="sub",
        mlsn_attrs=MultiLayerSubnetworkType(user_label="all"),
        snc_list=invdata.MultiLayerSubnetworkInventoryTypeSncList(
            snc_inv=[invdata.SubnetworkConnectionInventoryType(snc_nm="s/1", snc_attrs=connection)]
        ),
    )
    domain.mlsn_list = invdata.ManagementDomainInventoryTypeMlsnList(mlsn_inv=[inside])
    return xmlbind.encode(response)


def _in_1x(element: etree._Element) -> etree._Element:
    """The same element in the namespace, and with the names, of 1.x."""
    namespace, local = split_clark(str(element.tag))
    if not namespace.startswith(MTOP):
        return element
    made = etree.Element(clark(TMF854, _OLD.get(local, local)))
    made.text = element.text
    for child in element[0] if local in ("aEndTpRefList", "zEndTpRefList") else list(element):  # one end of a link
        if str(child.tag).endswith("}rdn"):
            kind, value = (str(part.text) for part in child)
            etree.SubElement(made, clark(TMF854, f"{kind.lower()}Nm")).text = value
        else:
            made.append(_in_1x(child))
    return made


@pytest.fixture
def landings(tmp_path: Path) -> dict[str, Path]:
    """A landing of each release, by the value of the column."""
    body = etree.fromstring(_network())
    of_2x = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
    made = {
        "2.x": _ENVELOPE.format(of_2x, "", etree.tostring(body).decode()),
        "1.1": _ENVELOPE.format(TMF854, 'tmf854Version="1.1"', etree.tostring(_in_1x(body)).decode()),
    }
    for release, text in made.items():
        (tmp_path / release).mkdir()
        (tmp_path / release / "inventory.xml").write_text(text)
    return {release: tmp_path / release for release in made}


@pytest.mark.parametrize("object_type", OBJECT_TYPES)
def test_two_releases_give_the_same_rows(landings: dict[str, Path], object_type: str) -> None:
    tables = {release: read(landing, object_type).to_arrow() for release, landing in landings.items()}
    for release, table in tables.items():
        assert set(table.column("release").to_pylist()) == ({release} if table.num_rows else set())
    old, new = (table.drop_columns(list(_PLACE)).to_pylist() for table in tables.values())
    assert old == new
    assert old
    assert not any(row["unknown"] or row["warnings"] for row in old)


def test_a_response_of_the_profile_has_what_is_read(landings: dict[str, Path]) -> None:
    assert isinstance(xmlbind.decode(_network()), GetInventoryResponse)
    [row] = read(landings["1.1"], "SNC").to_arrow().to_pylist()
    assert row["name_text"] == "MD=A%2FB%3DC%25/MLSN=sub/SNC=s%2F1"
    assert row["parent_names"] == ["MD=A%2FB%3DC%25", "MD=A%2FB%3DC%25/MLSN=sub"]


@pytest.mark.endurance
def test_diff_finds_nothing_and_the_network_is_the_same(landings: dict[str, Path], spark: Any, tmp_path: Path) -> None:
    from mtosi_jms.spark import jobs

    made = {release: tmp_path / f"tables-{release}" for release in landings}
    for release, landing in landings.items():
        assert write(landing, made[release], object_type="ALL").rejected == ()
    old, new = made.values()
    changes = jobs.run_diff(jobs.DiffOptions(old=old, new=new, out=tmp_path / "diff"), spark=spark)
    assert set(changes.types) == set(OBJECT_TYPES)
    summary = changes.summary()
    assert [summary[kind] for kind in ("created", "deleted", "changed", "duplicate", "unnamed")] == [0] * 5
    assert changes.columns == ()
    drawn = [
        jobs.run_topology(jobs.TopologyOptions(snapshot=one, out=tmp_path / f"drawn-{one.name}"), spark=spark)
        for one in made.values()
    ]
    assert drawn[0].edges == drawn[1].edges != {}
    assert drawn[0].nodes == drawn[1].nodes != {}
