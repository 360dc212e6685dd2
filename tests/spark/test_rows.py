"""Objects as rows: the columns of a class, rows equal to what xmlbind decodes, both layouts, held or streamed."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark import SourceOptions, arrow_schema
from mtosi_jms.stubs.nrf.me import ManagedElementType, Me
from mtosi_jms.tables.columns import row_schema
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.reader import ObjectReader
from mtosi_jms.xmlbind import Nil, XmlEnum, XmlObject, XmlWarning, decode

Put = Callable[..., Path]

ME_SCHEMA = """\
name: struct<rdn: list<element: struct<type: string, value: string>>>
user_label: string
discovered_name: string
naming_os: string
owner: string
alias_name_list: struct<alias: list<element: struct<alias_name: string, alias_value: string>>>
vendor_extensions: map<string, string>
vendor_extensions_raw: string
source: struct<value: string, qualifier: string>
network_access_domain: string
mei_attributes: struct<ne_time: date32[day], event_indication: string>
resource_state: struct<value: string, overlap: string, qualifier: string, extension: string>
any_: list<element: string>
location: string
manufacturer: string
manufacture_date: date32[day]
product_name: string
software_version: string
is_in_sync_state: bool
supported_connection_layer_rate_list: struct<layer_rate: list<element: struct<value: string, extension: string>>>
communication_state: string
asap_ref: struct<rdn: list<element: struct<type: string, value: string>>>"""


def read(folder: Path, schema: pa.Schema | None = None, **options: str) -> list[dict[str, Any]]:
    given = SourceOptions.parse({"path": str(folder), **options})
    columns = schema or row_schema(given.object_types)
    landing = plan_landing(given)
    batches = ObjectReader(given, columns).read(landing.files, landing.rejects)
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, schema=columns).to_pylist()
    return rows


def as_row(value: Any) -> Any:
    """What a column should hold of a decoded value."""
    if value is None or isinstance(value, Nil):
        return None
    if isinstance(value, XmlEnum):
        return str(value.value)
    if isinstance(value, list):
        return [as_row(item) for item in value]
    if isinstance(value, XmlObject):
        return {field.name: as_row(getattr(value, field.name)) for field in value.__xml__.fields}
    return value


def expected(element: etree._Element) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The columns and the warnings of a managed element, by xmlbind."""
    warnings: list[XmlWarning] = []
    row = as_row(decode(element, Me, warnings=warnings)) or {}
    row.pop("vendor_extensions", None)
    row.pop("any_", None)
    return row, [dataclasses.asdict(warning) for warning in warnings]


def test_arrow_schema_of_me() -> None:
    assert "\n".join(f"{field.name}: {field.type}" for field in arrow_schema(ManagedElementType)) == ME_SCHEMA
    assert arrow_schema(Me) == arrow_schema(ManagedElementType)


def test_arrow_schema_of_a_response_names_fields_as_the_class_does() -> None:
    from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse

    response = arrow_schema(GetAllManagedElementsResponse)
    elements = response.field("me_list").type.field("me").type
    assert elements.value_type.field("location").type == pa.string()


def test_every_stub_class_has_a_schema() -> None:
    from mtosi_jms.inventory import tables_of_namespace
    from mtosi_jms.xmlbind import modules_of

    tables = [table for namespace in modules_of("mtosi_jms.stubs") for table in tables_of_namespace(namespace)]
    assert len(tables) > 150
    for table in tables:
        assert isinstance(arrow_schema(table.cls), pa.Schema)


def test_row_columns_and_their_order() -> None:
    names = row_schema(("ME",)).names
    own = arrow_schema(Me).names
    assert names[: 2 + len(own)] == ["name_text", "parent_names", *own]
    assert names[2 + len(own) :] == [
        "related", "quality", "unknown", "warnings", "release", "header_activity_name", "header_msg_name",
        "header_msg_type",
        "header_sender_uri", "header_destination_uri", "header_activity_status", "header_communication_pattern",
        "header_communication_style", "header_requested_batch_size", "header_timestamp", "header_time",
            "correlation_id",
        "batch_number", "end_of_reply", "complete", "source_file", "source_line", "source_position",
    ]  # fmt: skip


def test_one_object_in_full(put: Put, landing: Path, envelopes: Any) -> None:
    inner = (
        "<coi:userLabel>L</coi:userLabel>"
        "<coi:aliasNameList><gen:alias><gen:aliasName>n</gen:aliasName><gen:aliasValue>v</gen:aliasValue></gen:alias>"
        "</coi:aliasNameList>"
        '<coi:vendorExtensions><v:x unit="m"><v:y>1</v:y><v:y>2</v:y></v:x><v:x/></coi:vendorExtensions>'
        '<cri:source qualifier="q">NETWORK_ME</cri:source>'
        "<me:manufactureDate>2020-02-29</me:manufactureDate><me:isInSyncState>1</me:isInSyncState>"
        "<me:supportedConnectionLayerRateList><lay:layerRate>LR_DS0_64K</lay:layerRate>"
        "</me:supportedConnectionLayerRateList>"
        "<me:communicationState>CS_AVAILABLE</me:communicationState>"
    )
    path = put("a.xml", envelopes.batch(" 7", 1, True, envelopes.me("n/e=%", inner)))
    (row,) = read(landing)
    assert row["name_text"] == "MD=M/ME=n%2Fe%3D%25"
    assert row["parent_names"] == ["MD=M"]
    assert row["user_label"] == "L"
    assert row["alias_name_list"] == {"alias": [{"alias_name": "n", "alias_value": "v"}]}
    assert row["vendor_extensions"] == [("x/@unit", "m"), ("x/y", "1"), ("x/y[2]", "2"), ("x[2]", "")]
    assert row["vendor_extensions_raw"].startswith('<v:x xmlns:v="urn:vendor" unit="m"><v:y>1</v:y>')
    assert row["source"] == {"value": "NETWORK_ME", "qualifier": "q"}
    assert row["manufacture_date"] == dt.date(2020, 2, 29)
    assert row["is_in_sync_state"] is True
    assert row["supported_connection_layer_rate_list"]["layer_rate"][0]["value"] == "LR_DS0_64K"
    assert row["communication_state"] == "CS_AVAILABLE"
    assert row["location"] is None
    assert (row["correlation_id"], row["batch_number"], row["end_of_reply"], row["complete"]) == (" 7", 1, True, True)
    assert (row["source_file"], row["source_line"], row["source_position"]) == (str(path), 4, 1)
    assert row["header_activity_name"] == "getAllManagedElements"
    assert row["header_destination_uri"] is None
    assert (row["unknown"], row["warnings"], row["related"], row["quality"]) == ([], [], None, None)


def test_what_does_not_fit_is_kept_and_reported(put: Put, landing: Path, envelopes: Any) -> None:
    inner = (
        "<me:location>here</me:location><v:extra>e</v:extra><me:manufactureDate>soon</me:manufactureDate>"
        "<me:isInSyncState>perhaps</me:isInSyncState><me:communicationState>CS_NEW</me:communicationState>"
    )
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a") + envelopes.me("b", inner) + envelopes.me("c")))
    rows = read(landing)
    assert [row["name_text"] for row in rows] == ["MD=M/ME=a", "MD=M/ME=b", "MD=M/ME=c"]
    odd = rows[1]
    assert (odd["location"], odd["manufacture_date"], odd["is_in_sync_state"]) == ("here", None, None)
    assert odd["communication_state"] == "CS_NEW"
    assert [item["path"] for item in odd["unknown"]] == ["extra", "manufactureDate", "isInSyncState"]
    assert odd["unknown"][0]["content"] == '<v:extra xmlns:v="urn:vendor">e</v:extra>'
    assert len(odd["warnings"]) == 4
    assert {warning["line"] for warning in odd["warnings"]} == {5}
    assert all(warning["path"].startswith("/Envelope/Body/") for warning in odd["warnings"])
    assert rows[0]["warnings"] == rows[2]["warnings"] == []


PIECES = [
    "<coi:userLabel>a</coi:userLabel>",
    "<coi:userLabel/>",
    "<coi:userLabel> b </coi:userLabel>",
    '<coi:userLabel xsi:nil="true"/>',
    '<coi:userLabel xsi:nil="true">x</coi:userLabel>',
    '<coi:userLabel odd="1">c</coi:userLabel>',
    "<coi:userLabel><v:x/></coi:userLabel>",
    "<coi:userLabel>d<v:x/></coi:userLabel>",
    '<coi:discoveredName xsi:nil="true"/>',
    "<coi:owner>o</coi:owner>",
    "<coi:aliasNameList/>",
    "<coi:aliasNameList><gen:alias><gen:aliasName>n</gen:aliasName></gen:alias></coi:aliasNameList>",
    (
        "<coi:aliasNameList><gen:alias><gen:aliasName>n</gen:aliasName><gen:aliasValue xsi:nil='1'/></gen:alias>"
        "<gen:alias><gen:aliasName>m</gen:aliasName><gen:aliasValue>w</gen:aliasValue></gen:alias></coi:aliasNameList>"
    ),
    "<cri:source>OS</cri:source>",
    "<cri:source>SOMEWHERE</cri:source>",
    "<cri:source> OS </cri:source>",
    '<cri:source qualifier="q" more="m">OS</cri:source>',
    "<cri:source>O<v:x/>S</cri:source>",
    "<cri:meiAttributes><gen:neTime>2001-01-01</gen:neTime></cri:meiAttributes>",
    "<cri:meiAttributes><gen:eventIndication>x</gen:eventIndication></cri:meiAttributes>",
    '<cri:resourceState extension="e">VENDOR_EXT</cri:resourceState>',
    "<me:location>L</me:location>",
    "text between",
    "<me:manufactureDate>2001-02-03</me:manufactureDate>",
    "<me:manufactureDate> 2001-02-03 </me:manufactureDate>",
    "<me:manufactureDate>2001-02-30</me:manufactureDate>",
    "<me:isInSyncState>true</me:isInSyncState>",
    "<me:isInSyncState> 0 </me:isInSyncState>",
    "<me:isInSyncState>yes</me:isInSyncState>",
    (
        "<me:supportedConnectionLayerRateList><lay:layerRate>LR_DS0_64K</lay:layerRate><lay:layerRate>X</lay:layerRate>"
        "</me:supportedConnectionLayerRateList>"
    ),
    "<me:supportedConnectionLayerRateList xsi:nil='true'/>",
    "<me:communicationState>CS_AVAILABLE</me:communicationState>",
    "<me:communicationState>OTHER</me:communicationState>",
    "<me:asapRef><nam:rdn><nam:type>A</nam:type><nam:value>B</nam:value></nam:rdn></me:asapRef>",
    "<me:asapRef><nam:rdn><nam:type>A</nam:type></nam:rdn></me:asapRef>",
    "<v:foreign><v:deep>1</v:deep></v:foreign>",
    "<!-- a comment --><me:productName>p</me:productName>",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.lists(st.sampled_from(PIECES), max_size=6), st.booleans()), min_size=1, max_size=4),
    st.booleans(),
)
def test_rows_are_what_xmlbind_decodes(
    tmp_path: Path, envelopes: Any, objects: list[tuple[list[str], bool]], streamed: bool
) -> None:
    order = {piece: position for position, piece in enumerate(PIECES)}
    elements = "".join(
        envelopes.me(f"n{number}", "".join(sorted(pieces, key=order.__getitem__) if tidy else pieces))
        for number, (pieces, tidy) in enumerate(objects)
    )
    text = envelopes.batch("c", 1, True, elements)
    (tmp_path / "a.xml").write_text(text)
    rows = read(tmp_path, **({"wholeFileBytes": "1"} if streamed else {}))
    root = etree.fromstring(text.encode(), etree.XMLParser(remove_comments=True))
    found = root.iter("{http://www.tmforum.org/mtop/nrf/xsd/me/v1}me")
    assert len(rows) == len(objects)
    for row, element in zip(rows, found, strict=True):
        columns, warnings = expected(element)
        assert {name: row[name] for name in columns} == columns
        shown = [dict(warning, line=None, path=None) for warning in row["warnings"]]
        assert shown == [dict(warning, line=None, path=None) for warning in warnings]
        if not streamed:
            assert row["warnings"] == warnings


NODE = "<inv:{0}Inv><inv:{0}Nm>{1}</inv:{0}Nm>{2}</inv:{0}Inv>"


def inventory(envelopes: Any, *, wrong_order: bool = False) -> str:
    eq = (
        "<inv:eqInv><inv:eqNm>1</inv:eqNm><inv:eqAttrs><coi:owner>o</coi:owner></inv:eqAttrs><inv:supportedPtpRefList>"
        "<nam:name><nam:rdn><nam:type>PTP</nam:type><nam:value>/p</nam:value></nam:rdn></nam:name>"
        "</inv:supportedPtpRefList></inv:eqInv>"
    )
    inner = NODE.format("eh", "/rack=1/shelf=2", f"<inv:ehAttrs/>{eq}")
    outer = NODE.format("eh", "/rack=1", f"<inv:ehAttrs/><inv:ehList>{inner}</inv:ehList>")
    ctp = NODE.format("ctp", "/vc4=1", "<inv:ctpAttrs/>")
    named = f"<inv:ptpAttrs>{envelopes.name('MD=Other', 'ME=x', 'PTP=/given')}</inv:ptpAttrs>"
    ptps = NODE.format("ptp", "/p", f"<inv:ptpAttrs/><inv:ctpList>{ctp}{ctp}</inv:ctpList>")
    ptps += NODE.format("ptp", "ignored", f"{named}<inv:ctpList>{ctp}</inv:ctpList>")
    quality = (
        "<inv:qualityIndicator><inv:isSuspect>true</inv:isSuspect><inv:reason>r</inv:reason></inv:qualityIndicator>"
    )
    me = NODE.format(
        "me",
        "N",
        "<inv:meAttrs><me:location>L</me:location></inv:meAttrs>"
        f"<inv:ehList>{outer}</inv:ehList><inv:ptpList>{ptps}</inv:ptpList>{quality}",
    )
    bare = NODE.format("me", "only a name", "")
    return (
        "<inv:mdList><inv:md><inv:mdNm>D</inv:mdNm><inv:mdAttrs/>"
        f"<inv:meList>{me}{bare}</inv:meList></inv:md></inv:mdList>"
        "<inv:osList><inv:os><inv:osNm>O</inv:osNm></inv:os></inv:osList>"
    )


EXPECTED = [
    ("MD", "MD=D", []),
    ("ME", "MD=D/ME=N", ["MD=D"]),
    ("EH", "MD=D/ME=N/EH=%2Frack%3D1", ["MD=D", "MD=D/ME=N"]),
    ("EH", "MD=D/ME=N/EH=%2Frack%3D1%2Fshelf%3D2", ["MD=D", "MD=D/ME=N", "MD=D/ME=N/EH=%2Frack%3D1"]),
    (
        "EQ",
        "MD=D/ME=N/EH=%2Frack%3D1%2Fshelf%3D2/EQ=1",
        ["MD=D", "MD=D/ME=N", "MD=D/ME=N/EH=%2Frack%3D1", "MD=D/ME=N/EH=%2Frack%3D1%2Fshelf%3D2"],
    ),
    ("PTP", "MD=D/ME=N/PTP=%2Fp", ["MD=D", "MD=D/ME=N"]),
    ("CTP", "MD=D/ME=N/PTP=%2Fp/CTP=%2Fvc4%3D1", ["MD=D", "MD=D/ME=N", "MD=D/ME=N/PTP=%2Fp"]),
    ("CTP", "MD=D/ME=N/PTP=%2Fp/CTP=%2Fvc4%3D1", ["MD=D", "MD=D/ME=N", "MD=D/ME=N/PTP=%2Fp"]),
    ("PTP", "MD=Other/ME=x/PTP=%2Fgiven", ["MD=D", "MD=D/ME=N"]),
    ("CTP", "MD=Other/ME=x/PTP=%2Fgiven/CTP=%2Fvc4%3D1", ["MD=D", "MD=D/ME=N", "MD=Other/ME=x/PTP=%2Fgiven"]),
    ("ME", "MD=D/ME=only a name", ["MD=D"]),
    ("OS", "OS=O", []),
]


@pytest.mark.parametrize("whole", ["1", "8388608"])
@pytest.mark.parametrize("element", ["getInventoryResponse", "unheardOfResponse"])
def test_nested_layout_in_long_form(put: Put, landing: Path, envelopes: Any, whole: str, element: str) -> None:
    put("a.xml", envelopes.inventory(inventory(envelopes), element=element))
    rows = sorted(read(landing, objectType="ALL", wholeFileBytes=whole), key=lambda row: row["source_position"])
    assert [(row["object_type"], row["name_text"], row["parent_names"]) for row in rows] == EXPECTED
    assert [row["source_position"] for row in rows] == list(range(1, 13))
    assert rows[1]["attributes"] == [("location", "L")]
    assert rows[1]["quality"] == {"is_suspect": True, "is_descendant": None, "reason": "r"}
    assert rows[4]["related"] == [("supported_ptp_ref_list", ["PTP=%2Fp"])]
    assert "<inv:eqAttrs" in rows[4]["xml"]
    assert (rows[10]["attributes"], rows[10]["xml"]) == (None, None)


@pytest.mark.parametrize("whole", ["1", "8388608"])
def test_nested_layout_as_typed_rows(put: Put, landing: Path, envelopes: Any, whole: str) -> None:
    put("a.xml", envelopes.inventory(inventory(envelopes)))
    elements = {row["name_text"]: row for row in read(landing, objectType="ME", wholeFileBytes=whole)}
    assert {name: row["location"] for name, row in elements.items()} == {
        "MD=D/ME=N": "L",
        "MD=D/ME=only a name": None,
    }
    assert elements["MD=D/ME=N"]["quality"]["reason"] == "r"
    (equipment,) = read(landing, objectType="EQ", wholeFileBytes=whole)
    assert equipment["owner"] == "o"
    assert equipment["related"] == [("supported_ptp_ref_list", ["PTP=%2Fp"])]


def test_several_types_at_once(put: Put, landing: Path, envelopes: Any) -> None:
    put("a.xml", envelopes.inventory(inventory(envelopes)))
    put("b.xml", envelopes.batch("c", 1, True, envelopes.me("f", "<me:location>F</me:location>")))
    rows = read(landing, objectType="EQ,ME")
    assert [
        (row["object_type"], row["me"] and row["me"]["location"], row["eq"] and row["eq"]["owner"]) for row in rows
    ] == [
        ("ME", "L", None),
        ("EQ", None, "o"),
        ("ME", None, None),
        ("ME", "F", None),
    ]


DEEP = (
    "<inv:mdList><inv:md><inv:meList><inv:meInv><inv:meNm>N</inv:meNm>{}</inv:meInv></inv:meList></inv:md></inv:mdList>"
)


@pytest.mark.parametrize("whole", ["1", "8388608"])
def test_unknown_content_is_searched(put: Put, landing: Path, envelopes: Any, whole: str) -> None:
    """In an unknown message, around objects of a known list, and in a node."""
    body = f"<v:getStuffResponse><v:list><v:item>{envelopes.me('w')}</v:item></v:list></v:getStuffResponse>"
    put("a.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), body))
    put("b.xml", envelopes.batch("c", 1, True, f"<v:page>{envelopes.me('x')}</v:page>{envelopes.me('y')}"))
    more = f"<v:more><v:list>{envelopes.me('deep')}</v:list></v:more>"
    node = f"<inv:meInv><inv:meNm>N</inv:meNm>{more}</inv:meInv>"
    put("c.xml", envelopes.inventory(DEEP.format(node)))
    rows = sorted(read(landing, wholeFileBytes=whole), key=lambda row: (row["source_file"], row["source_position"]))
    names = [f"MD=M/ME={name}" for name in ("w", "x", "y", "deep")]
    assert [row["name_text"] for row in rows] == [*names[:3], "ME=N", names[3]]


def test_objects_in_vendor_extensions_are_not_rows(put: Put, landing: Path, envelopes: Any) -> None:
    inner = f"<coi:vendorExtensions>{envelopes.me('inside')}</coi:vendorExtensions>"
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("outside", inner)))
    for whole in ("1", "8388608"):
        (row,) = read(landing, wholeFileBytes=whole)
        assert row["name_text"] == "MD=M/ME=outside"
        assert dict(row["vendor_extensions"])["me/name/rdn[2]/value"] == "inside"


def test_requests_faults_and_notifications_give_no_rows(put: Put, landing: Path, envelopes: Any) -> None:
    put("r.xml", envelopes.request())
    put("f.xml", envelopes.fault())
    notify = f"<v:notify>{envelopes.me('n')}</v:notify>"
    put("n.xml", envelopes.envelope(envelopes.header(msgType="NOTIFICATION"), notify))
    assert read(landing) == []
    assert [row["name_text"] for row in read(landing, messageTypes="NOTIFICATION")] == ["MD=M/ME=n"]


def test_a_class_by_name(put: Put, landing: Path, envelopes: Any) -> None:
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a") + envelopes.me("b")))
    names = [row["name_text"] for row in read(landing, objectType="ManagedElementType")]
    assert names == ["MD=M/ME=a", "MD=M/ME=b"]
    lists = read(landing, objectType="nrf.me:ManagedElementListType")
    assert [len(row["me"]) for row in lists] == [2]
    with pytest.raises(ConfigError, match="no such class"):
        read(landing, objectType="NoSuchType")


def test_fewer_columns(put: Put, landing: Path, envelopes: Any) -> None:
    inner = "<coi:vendorExtensions><v:a>1</v:a></coi:vendorExtensions><me:location>L</me:location>"
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a", inner) + envelopes.me("b")))
    full = row_schema(("ME",))
    for names in (["name_text"], ["location", "source_file"], ["vendor_extensions"], ["vendor_extensions_raw", "name"]):
        schema = pa.schema([full.field(name) for name in names])
        rows = read(landing, schema, batchRows="1")
        assert rows == [{name: row[name] for name in names} for row in read(landing)]


def test_rejects_are_rows_only_where_a_column_asks_for_them(put: Put, landing: Path, envelopes: Any) -> None:
    elements = "".join(envelopes.me(f"n{index}") for index in range(300))
    text = envelopes.batch("d", 1, True, elements)
    middle = text.index("<me:me>", len(text) // 2)
    put("broken.xml", text[:middle] + "<oops>" + text[middle:])
    put("good.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    stranger = put("stranger.xml", "<order/>")
    for whole in ("1", "8388608"):
        assert [row["name_text"] for row in read(landing, wholeFileBytes=whole)] == ["MD=M/ME=a"]
    schema = row_schema(("ME",)).append(pa.field("_bad", pa.string()))
    rows = read(landing, schema, columnNameOfCorruptRecord="_bad")
    bad = {Path(row["source_file"]).name: row for row in rows if row["_bad"]}
    assert sorted(bad) == ["broken.xml", "stranger.xml"]
    assert bad["stranger.xml"]["_bad"] == f"{stranger}:1: not SOAP: the root element is order"
    assert bad["stranger.xml"]["source_line"] == 1
    assert "not well-formed" in bad["broken.xml"]["_bad"]
    assert len(rows) == 3
    dropped = read(landing, schema, columnNameOfCorruptRecord="_bad", mode="DROPMALFORMED")
    assert [row["name_text"] for row in dropped] == ["MD=M/ME=a"]
