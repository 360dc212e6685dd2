"""Inventory of MTOSI 1.x in the tables of 2.x, read with the stubs of the package alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.inventory import load_stubs
from mtosi_jms.inventory._release1 import RENAMED
from mtosi_jms.tables import read, write

_PAGE = Path(__file__).parents[2] / "docs" / "mtosi-1x.md"

_ENVELOPE = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns="tmf854.v1">
<s:Header><header tmf854Version="1.1"><activityName>getInventory</activityName><msgName>getInventoryResponse</msgName>
<msgType>RESPONSE</msgType><senderURI>a</senderURI><destinationURI>b</destinationURI>
<communicationPattern>SimpleResponse</communicationPattern><communicationStyle>RPC</communicationStyle></header>
</s:Header><s:Body>{}</s:Body></s:Envelope>"""
_OF_ENVELOPE = _ENVELOPE[_ENVELOPE.index("<header") : _ENVELOPE.index("\n</s:Header>")]
_PORT = "<mdNm>EMS1</mdNm><meNm>NE-{}</meNm><ptpNm>p</ptpNm>"
_TL = f"""<name><tlNm>T/1</tlNm></name><direction>CD_BI</direction><rate>LR_Ethernet</rate>
<aEndTP>{_PORT.format(1)}</aEndTP><zEndTP>{_PORT.format(2)}</zEndTP>"""
_INVENTORY = f"""<getInventoryResponse><inventoryData>
<mdList><md><mdNm>EMS1</mdNm><supportingOSNameList><osNm>OS1</osNm></supportingOSNameList><meList><meInv>
<meNm>NE-1</meNm>
<meAttrs><name><meNm>NE-1</meNm><mdNm>EMS1</mdNm></name><userLabel>one</userLabel><version>R1</version>
<InSyncState>true</InSyncState><supportedRates><layerRate>LR_Ethernet</layerRate></supportedRates>
<communicationState>CS_AVAILABLE</communicationState><manufacturerDate>2020-01-02</manufacturerDate>
<own>kept</own></meAttrs>
<ehList><ehInv><ehNm>h</ehNm><ehAttrs><holderState>EMPTY</holderState><userLabel>h1</userLabel></ehAttrs>
<eqInv><eqNm>e</eqNm><eqAttrs><serviceState>IN_SERVICE</serviceState></eqAttrs>
<supportedPTPNameList><name>{_PORT.format(1)}</name></supportedPTPNameList>
<qualityIndicator><suspect>true</suspect><descendant>false</descendant></qualityIndicator></eqInv></ehInv></ehList>
<ptpList><ptpInv><ptpNm>p</ptpNm><ptpAttrs><edgePoint>true</edgePoint><transmissionParams><layeredParameters>
<layer>LR_Ethernet</layer><transmissionParams><nvs><name>a</name><value>b</value></nvs></transmissionParams>
</layeredParameters></transmissionParams></ptpAttrs>
<ctpList><ctpInv><ctpNm>c</ctpNm><ctpAttrs><connectionState>TPCS_NA</connectionState></ctpAttrs></ctpInv></ctpList>
</ptpInv></ptpList></meInv></meList></md></mdList>
<topLevelTlList><topLevelTopLink><tlNm>T/1</tlNm><tlAttrs>{_TL}</tlAttrs></topLevelTopLink></topLevelTlList>
</inventoryData></getInventoryResponse>"""


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "inventory.xml").write_text(_ENVELOPE.format(_INVENTORY))
    return tmp_path


def _rows(landing: Path, object_type: str, **options: Any) -> list[dict[str, Any]]:
    load_stubs(())
    rows: list[dict[str, Any]] = read(landing, object_type, **options).to_arrow().to_pylist()
    return rows


_ME = "MD=EMS1/ME=NE-1"
_ME_ONLY = "<me><name><meNm>k</meNm></name></me>"
_EXPECTED: dict[str, tuple[str, dict[str, Any]]] = {
    "MD": ("MD=EMS1", {"related": [("supporting_os_ref_list", ["OS=OS1"])]}),
    "ME": (_ME, {"user_label": "one", "software_version": "R1", "is_in_sync_state": True}),
    "EH": (f"{_ME}/EH=h", {"holder_state": "EMPTY", "user_label": "h1", "warnings": None}),
    "EQ": (
        f"{_ME}/EH=h/EQ=e",
        {
            "resource_fulfillment_state": "IN_SERVICE",
            "related": [("supported_ptp_ref_list", [f"{_ME}/PTP=p"])],
            "quality": {"is_suspect": True, "is_descendant": False, "reason": None},
            "warnings": None,
        },
    ),
    "PTP": (f"{_ME}/PTP=p", {"is_edge_point": True, "warnings": None}),
    "CTP": (f"{_ME}/PTP=p/CTP=c", {"connection_state": "TPCS_NA", "warnings": None}),
    "TL": ("TL=T%2F1", {"direction": "CD_BI", "warnings": None}),
}


@pytest.mark.parametrize("object_type", _EXPECTED)
def test_an_inventory_gives_the_names_and_columns_of_2x(landing: Path, object_type: str) -> None:
    name, expected = _EXPECTED[object_type]
    [row] = _rows(landing, object_type)
    assert row["name_text"] == name
    assert {column: row[column] or None for column in expected} == {
        key: value or None for key, value in expected.items()
    }


def test_content_without_a_column_is_kept_under_its_own_name_with_line(landing: Path) -> None:
    [row] = _rows(landing, "ME")
    assert [found["path"] for found in row["unknown"]] == ["own"]
    assert [found["line"] for found in row["warnings"]] == [
        _ENVELOPE.format(_INVENTORY).splitlines().index("<own>kept</own></meAttrs>") + 1
    ]


def test_ends_of_links_and_parameters_of_layers_are_those_of_2x(landing: Path) -> None:
    [link] = _rows(landing, "TL")
    ends = [
        [part["value"] for part in link[end]["name"][0]["rdn"]] for end in ("a_end_tp_ref_list", "z_end_tp_ref_list")
    ]
    assert ends == [["EMS1", "NE-1", "p"], ["EMS1", "NE-2", "p"]]
    [port] = _rows(landing, "PTP")
    [layer] = port["transmission_parameters_list"]["transmission_parameters"]
    assert (layer["layer_rate"]["value"], layer["parameter_list"]["nvs"]) == (
        "LR_Ethernet",
        [{"name": "a", "value": "b"}],
    )


@pytest.mark.parametrize(
    ("object_type", "body"),
    [
        ("ME", "<getAllManagedElementsResponse><meList><me>{}</me></meList></getAllManagedElementsResponse>"),
        ("EH", "<getAllEquipmentResponse><eqList><eoh><eh>{}</eh></eoh></eqList></getAllEquipmentResponse>"),
        ("EQ", "<getAllEquipmentResponse><eqList><eoh><eq>{}</eq></eoh></eqList></getAllEquipmentResponse>"),
        ("PTP", "<getAllPTPsResponse><tpList><tp><ptp>{}</ptp></tp></tpList></getAllPTPsResponse>"),
        ("FTP", "<getAllFTPsResponse><tpList><FTP>{}</FTP></tpList></getAllFTPsResponse>"),
        ("CTP", "<getContainedCurrentCTPsResponse><tpList><CTP>{}</CTP></tpList></getContainedCurrentCTPsResponse>"),
        ("TL", "<getAllTopologicalLinksResponse><tlList><tl>{}</tl></tlList></getAllTopologicalLinksResponse>"),
        ("OS", "<getAllOSsResponse><osList><os>{}</os></osList></getAllOSsResponse>"),
        ("MD", "<getAllMDsResponse><mdList><md>{}</md></mdList></getAllMDsResponse>"),
        ("SNC", "<getAllSNCsResponse><sncList><snc>{}</snc></sncList></getAllSNCsResponse>"),
        ("MLSN", "<getAllMLSNsResponse><mlsnList><mlsn>{}</mlsn></mlsnList></getAllMLSNsResponse>"),
        ("TMD", "<getAllTMDsResponse><tmdList><tmd>{}</tmd></tmdList></getAllTMDsResponse>"),
    ],
)
def test_lists_of_managers_give_objects(tmp_path: Path, object_type: str, body: str) -> None:
    content = "<name><mdNm>EMS1</mdNm><propNm>x</propNm></name><userLabel>u</userLabel>"
    (tmp_path / "list.xml").write_text(_ENVELOPE.format(body.format(content)))
    [row] = _rows(tmp_path, object_type)
    assert (row["name_text"], row["user_label"]) == ("MD=EMS1/PROP=x", "u")


def test_what_a_vendor_adds_to_a_name_is_no_part_of_it(tmp_path: Path) -> None:
    vendors = '<v:key xmlns:v="vendor.v1">7</v:key>'
    content = f"<me><name>{vendors}<mdNm>EMS1</mdNm><meNm>k</meNm></name></me>"
    (tmp_path / "x.xml").write_text(
        _ENVELOPE.format(f"<getManagedElementResponse>{content}</getManagedElementResponse>")
    )
    [row] = _rows(tmp_path, "ME")
    assert row["name_text"] == "MD=EMS1/ME=k"
    assert "key" in str(row["unknown"])


@pytest.mark.parametrize("object_type", ["ME", "ME,TL", "ALL"])
def test_a_message_that_is_too_large_to_be_read_as_a_whole_is_rejected(landing: Path, object_type: str) -> None:
    load_stubs(())
    (landing / "2.xml").write_text(
        _ENVELOPE.format(f"<getManagedElementResponse>{_ME_ONLY}</getManagedElementResponse>")
    )
    found = read(landing, object_type, wholeFileBytes=1024)
    assert found.to_arrow().column("name_text").to_pylist() == ["ME=k"]
    [reject] = found.rejects.to_pylist()
    assert reject["file"].endswith("inventory.xml")
    assert "larger than wholeFileBytes (1024)" in reject["reason"]


def test_messages_count_objects_and_have_a_digest_of_what_came(landing: Path) -> None:
    [row] = _rows(landing, "MESSAGE")
    assert dict(row["objects"]) == {"MD": 1, "ME": 1, "EH": 1, "EQ": 1, "PTP": 1, "CTP": 1, "TL": 1}
    [large] = _rows(landing, "MESSAGE", wholeFileBytes=1024)
    assert row["body_digest"] == large["body_digest"]


def test_a_body_of_a_vendor_has_a_row_of_its_message(tmp_path: Path) -> None:
    (tmp_path / "vendor.xml").write_text(_ENVELOPE.format('<lineTestResponse xmlns="vendor.v1"/>'))
    [row] = _rows(tmp_path, "MESSAGE")
    assert (row["body_element"], row["header_activity_name"]) == ("{vendor.v1}lineTestResponse", "getInventory")


_OTHERS = """<getInventoryResponse><inventoryData><mdList><md><mdNm>EMS1</mdNm><meList><meInv><meNm>k</meNm>
<pgpList><pgpInv><pgpNm>g</pgpNm></pgpInv>
<pgpInv><pgpNm>h</pgpNm><pgpAttrs><name><mdNm>EMS1</mdNm><pgpNm>h</pgpNm></name></pgpAttrs></pgpInv></pgpList></meInv>
</meList></md></mdList></inventoryData></getInventoryResponse>"""
_LINKED = f"""<getInventoryResponse><inventoryData><mdList><md><mdNm>EMS1</mdNm><mlsnList><mlsnInv><mlsnNm>s</mlsnNm>
<tlList><tlInv><tlNm>T/1</tlNm><tlAttrs>{_TL}</tlAttrs></tlInv></tlList>
<associatedMEList><associatedME><name><mdNm>EMS1</mdNm><meNm>k</meNm></name>
<edgePTPList><edgePTPInv><ptpNm>p</ptpNm></edgePTPInv></edgePTPList></associatedME></associatedMEList>
</mlsnInv></mlsnList></md></mdList></inventoryData></getInventoryResponse>"""
_FLAT = "<getAllTPPoolsResponse><tpPoolList><tpPool><name><tppoolNm>x</tppoolNm></name><own/></tpPool></tpPoolList>{}"
_POOLS = "</getAllTPPoolsResponse>"


@pytest.mark.obligation("TAB12")
@pytest.mark.parametrize(
    ("body", "rows", "line", "what"),
    [
        (_OTHERS, ["MD=EMS1", "MD=EMS1/ME=k"], 6, "2 of {tmf854.v1}pgpInv"),
        (_LINKED, ["MD=EMS1", "MD=EMS1/MLSN=s", "TL=T%2F1"], 9, "1 of {tmf854.v1}edgePTPInv"),
        (_FLAT.format(_POOLS), [], 5, "1 of {tmf854.v1}tpPool"),
        (_FLAT.format(_ME_ONLY + _POOLS), ["ME=k"], 5, "1 of {tmf854.v1}tpPool"),
    ],
    ids=["in a tree", "beside a link", "in a list", "beside an element"],
)
def test_objects_without_a_class_are_counted_with_file_and_line(
    tmp_path: Path, body: str, rows: list[str], line: int, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "others.xml"
    file.write_text(_ENVELOPE.format(body))
    expected = {
        "file": str(file),
        "line": line,
        "reason": f"objects that give no row, as no stub has a class for them: {what}",
    }
    load_stubs(())
    found = read(file, "ALL", allow_empty=True)
    assert found.to_arrow().column("name_text").to_pylist() == rows
    assert found.rejects.to_pylist() == [expected]
    assert f"not read {file}:{line}: " in caplog.text
    [message] = _rows(file, "MESSAGE")
    assert [(one["rule"], one["line"], one["message"]) for one in message["warnings"]] == [
        ("no-class", line, expected["reason"])
    ]
    result = write(file, tmp_path / "out", object_type="ALL", allow_empty=True)
    assert [(reject.file, reject.line, reject.reason) for reject in result.rejected] == [tuple(expected.values())]


_HEADER = """<header tmf854Version="{}"><activityName>a</activityName><msgName>getInventoryResponse</msgName>
<msgType>RESPONSE</msgType><senderURI>a</senderURI><destinationURI>b</destinationURI>
<communicationPattern>SimpleResponse</communicationPattern><communicationStyle>RPC</communicationStyle></header>"""
_OF_2X = """<h:header xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><h:msgType>RESPONSE</h:msgType></h:header>"""
_BODY_2X = """<r:getManagedElementResponse xmlns:r="http://www.tmforum.org/mtop/mri/xsd/mer/v1">
<r:me xmlns:n="http://www.tmforum.org/mtop/fmw/xsd/nam/v1"><c:name xmlns:c="http://www.tmforum.org/mtop/fmw/xsd/coi/v1">
<n:rdn><n:type>ME</n:type><n:value>k</n:value></n:rdn></c:name></r:me></r:getManagedElementResponse>"""
_BODY_1X = f"<getManagedElementResponse>{_ME_ONLY}</getManagedElementResponse>"


@pytest.mark.obligation("TAB13")
@pytest.mark.parametrize(
    ("header", "body", "release", "warning"),
    [
        (_HEADER.format("1.1"), _BODY_1X, "1.1", None),
        (_HEADER.format("1.0"), _BODY_1X, "1.0", None),
        (_HEADER.format("?"), _BODY_1X, "1.x", "tmf854Version has the placeholder"),
        (_HEADER.format("3.7"), _BODY_1X, "1.x", "tmf854Version '3.7' is no version"),
        (_OF_2X, _BODY_2X, "2.x", None),
        (_HEADER.format("1.1") * 2, _BODY_1X, "1.1", "more than one MTOSI header"),
        (_HEADER.format("1.1") + _OF_2X, _BODY_1X, "1.1", "more than one MTOSI header"),
        (_OF_2X * 2, _BODY_2X, "2.x", "more than one MTOSI header"),
        (_HEADER.format("1.1"), _BODY_2X, "1.1", "header of MTOSI 1.x is over a body of another"),
        (_OF_2X, _BODY_1X, "2.x", "header of MTOSI 2.x is over a body of another"),
        (_HEADER.replace("header", "MTOSI_Header").format("1.1"), _BODY_1X, "1.1", None),
        (_HEADER.format("1.1").replace("RPC", "rpc"), _BODY_1X, "1.1", "'rpc' is not one of the values listed"),
        (_HEADER.format("1.1").replace("</h", "<timestamp>soon</timestamp></h"), _BODY_1X, "1.1", "not a dateTime"),
        (
            '<h:header xmlns:h="tmf854.v1" xmlns="v" tmf854Version="1.1"><msgType>RESPONSE</msgType></h:header>',
            _BODY_1X,
            "1.1",
            "msgType is in v, not in tmf854.v1",
        ),
        (
            '<MTOSI_Header xmlns="" tmf854Version="1.1"><msgType>RESPONSE</msgType></MTOSI_Header>',
            _BODY_1X,
            "1.1",
            "activityName is missing",
        ),
    ],
)
def test_headers_of_either_form_are_read_and_departures_are_warned_of(
    tmp_path: Path, header: str, body: str, release: str, warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x.xml").write_text(_ENVELOPE.format(body).replace(_OF_ENVELOPE, header))
    rows = _rows(tmp_path, "ME")
    assert [(row["name_text"], row["release"]) for row in rows] == [("ME=k", release)]
    told = caplog.text
    [message] = _rows(tmp_path, "MESSAGE")
    assert (message["release"], message["header_msg_type"]) == (release, "RESPONSE")
    texts = [one["message"] for one in message["warnings"]]
    assert all(one["line"] for one in message["warnings"])
    if warning is None:
        assert (texts, told) == ([], "")
    else:
        assert warning in texts[0]
        assert "warning in 1 messages, first" in told
        assert warning in told


def test_the_page_has_the_names_that_differ() -> None:
    rows = [f"|`{old}`|{', '.join(f'`{name}`' for name in new)}|" for old, new in RENAMED.items()]
    assert "\n".join(rows) in _PAGE.read_text()
