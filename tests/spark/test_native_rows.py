"""Rows by the native core are those of the Python core: plain, odd, damaged, nested, held or streamed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.spark import SourceOptions
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType
from mtosi_jms.tables import _native_rows
from mtosi_jms.tables.columns import row_schema
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.reader import ObjectReader
from mtosi_jms.xmlbind import encode

from .conftest import Envelopes

pytest.importorskip("mtosi_jms.xmlbind._core", reason="the native core is not built")

Put = Callable[..., Path]
Both = Callable[..., tuple[pa.Table, int]]

FULL = (
    "<coi:userLabel>a &amp; b</coi:userLabel><coi:owner/><coi:aliasNameList><gen:alias><gen:aliasName>n"
    "</gen:aliasName><gen:aliasValue>v &lt;1&gt;</gen:aliasValue></gen:alias><gen:alias><gen:aliasName>m"
    "</gen:aliasName><gen:aliasValue/></gen:alias></coi:aliasNameList><coi:vendorExtensions><v:e>t<v:f>u</v:f></v:e></coi:vendorExtensions>"
    "<cri:resourceState>WORKING</cri:resourceState><me:location>L</me:location>"
    "<me:manufactureDate>2024-02-29</me:manufactureDate><me:isInSyncState>true</me:isInSyncState>"
    "<me:supportedConnectionLayerRateList><lay:layerRate>LR_Ethernet</lay:layerRate><lay:layerRate>LR_OCH_Data_Unit_1"
    "</lay:layerRate></me:supportedConnectionLayerRateList><me:communicationState>CS_AVAILABLE</me:communicationState>"
)
"""A managed element of which nearly every column has a value."""


@pytest.fixture
def both(landing: Path) -> Both:
    """Reads the landing with both cores, sees that the rows are equal, and gives them, and how many Python made."""

    def rows(columns: list[str] | None = None, **options: str) -> tuple[pa.Table, int]:
        given = SourceOptions.parse({"path": str(landing), "columnNameOfCorruptRecord": "bad", **options})
        schema = row_schema(given.object_types).append(pa.field("bad", pa.string()))
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        plan = plan_landing(given)
        native, python = (ObjectReader(given, schema, core=core) for core in ("native", "python"))
        made, specified = (
            pa.Table.from_batches(reader.read(plan.files, plan.rejects), schema=schema) for reader in (native, python)
        )
        made.validate(full=True)
        assert made.to_pylist() == specified.to_pylist()
        return made, native.by_python

    return rows


def test_all_columns_of_plain_messages(put: Put, envelopes: Any, other_prefixes: Any, both: Both) -> None:
    for number, maker in enumerate((envelopes, other_prefixes), start=1):
        elements = [maker.me(f"{number}-{index}", FULL if index % 3 else "") for index in range(9)]
        put(f"{number}.xml", maker.batch("c", number, number == 2, "".join(elements)))
    rows, by_python = both()
    assert by_python == 0
    assert rows["name_text"].to_pylist()[:2] == ["MD=M/ME=1-0", "MD=M/ME=1-1"]
    assert rows["parent_names"].to_pylist()[0] == ["MD=M"]
    assert rows["user_label"].to_pylist()[:3] == [None, "a & b", "a & b"]
    assert rows["source_position"].to_pylist() == [*range(1, 10)] * 2
    assert rows["vendor_extensions"].to_pylist()[1] == [("e", "t"), ("e/f", "u")]


@pytest.mark.parametrize(
    "columns", [["name_text"], ["user_label"], ["source_line", "name", "location"], ["parent_names"]]
)
def test_some_columns(columns: list[str], put: Put, envelopes: Any, both: Both) -> None:
    put("a.xml", envelopes.batch("c", 1, True, "".join(envelopes.me(str(index), FULL) for index in range(4))))
    rows, by_python = both(columns)
    assert (rows.column_names, rows.num_rows, by_python) == (columns, 4, 0)


@pytest.mark.parametrize("bad", ["a & b", "&unknown;", "&#0;", "&amp"])
def test_columns_that_nobody_asked_for_are_looked_at_all_the_same(
    bad: str, put: Put, envelopes: Any, both: Both
) -> None:
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("1", FULL).replace("a &amp; b", bad)))
    rows, _ = both(["name_text", "bad"])
    assert rows["name_text"].to_pylist() == [None]
    assert "a.xml" in rows["bad"].to_pylist()[0]


def test_lines_are_those_of_the_document(put: Put, envelopes: Any, both: Both) -> None:
    text = envelopes.batch("c", 1, True, "".join(envelopes.me(str(index), FULL) for index in range(4)))
    text = text.replace("><", ">\n\t<").replace("<coi:owner/>", "<coi:owner></coi:owner>\n\n\n")
    put("a.xml", text.replace("<me:me>", '<me:me\n  xmlns:more="urn:more"\n>'))
    rows, by_python = both()
    assert by_python == 0
    assert len(set(rows["source_line"].to_pylist())) == 4


@pytest.mark.parametrize(
    "inner",
    [
        "<me:location>a &amp; b &#233; &#x41;<![CDATA[<&]]></me:location>",
        "<coi:owner>&#65;</coi:owner>",
        "<!-- a comment --><me:location>L<!-- another --></me:location><?go on?>",
        "<coi:userLabel/><coi:vendorExtensions/>",
        '<coi:vendorExtensions><v:x u="&amp;"><v:y>1</v:y><v:y xmlns="urn:d">2<z/></v:y></v:x></coi:vendorExtensions>',
        "<other:location xmlns:other='http://www.tmforum.org/mtop/nrf/xsd/me/v1'>L</other:location >",
        "<me:isInSyncState> 1 </me:isInSyncState><me:communicationState>CS_AVAILABLE</me:communicationState>",
        "<me:manufactureDate>2024-02-29</me:manufactureDate>",
        "<cri:source qualifier='q'>OS</cri:source>",
        "<me:supportedConnectionLayerRateList/>",
        "<me:location xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='true'/>",
    ],
)
def test_common_shapes_need_no_python(inner: str, put: Put, envelopes: Any, both: Both) -> None:
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a", inner) + envelopes.me("b", FULL)))
    assert both()[1] == 0


@pytest.mark.parametrize(
    "inner",
    [
        "<me:isInSyncState>maybe</me:isInSyncState>",
        "<me:manufactureDate>2024-02-30</me:manufactureDate>",
        "<me:location>first</me:location><coi:userLabel>late</coi:userLabel>",
        "<me:unknown>x</me:unknown>",
        "\n\n<v:unknown\n>x</v:unknown><v:other/>",
        "<coi:vendorExtensions><me:me/>text</coi:vendorExtensions>",
        "<me:location me:odd='1'>L</me:location>",
        "text",
    ],
)
def test_only_odd_objects_are_read_by_python(inner: str, put: Put, envelopes: Any, both: Both) -> None:
    plain = [envelopes.me(str(index), FULL) for index in range(3)]
    put("a.xml", envelopes.batch("c", 1, False, "\n".join(plain)))
    put("b.xml", envelopes.batch("c", 2, False, "\n".join([*plain, envelopes.me("odd", inner), *plain])))
    put("c.xml", envelopes.batch("c", 3, True, "".join(plain)))
    rows, by_python = both()
    assert (rows.num_rows, by_python) == (13, 1)
    assert rows["name_text"].to_pylist()[6] == "MD=M/ME=odd"
    assert rows["warnings"].to_pylist()[6] or rows["unknown"].to_pylist()[6]


def test_several_types_and_batches(put: Put, envelopes: Any, both: Both) -> None:
    for number in range(1, 5):
        elements = "".join(envelopes.me(f"{number}-{index}", FULL) for index in range(5))
        put(f"{number}.xml", envelopes.batch("c", number, number == 4, elements))
    rows, by_python = both(objectType="EQ,ME", batchRows="7")
    assert (rows.num_rows, by_python) == (20, 0)
    assert rows["eq"].null_count == 20
    assert rows["me"].null_count == 0
    assert max(len(chunk) for chunk in rows["me"].chunks) <= 7
    long, by_python = both(objectType="ALL")
    assert (long.num_rows, by_python) == (20, 20)


def test_messages_without_objects(put: Put, envelopes: Any, both: Both) -> None:
    put("b.xml", envelopes.fault("c"))
    put("c.xml", envelopes.request())
    put("d.xml", envelopes.batch("d", 1, True, ""))
    put("e.xml", "<a/>")
    assert both()[0]["bad"].null_count == 0


NODES = (
    "<inv:mdList><inv:md><inv:mdNm>M/1</inv:mdNm><inv:meList><inv:meInv><inv:meNm>a</inv:meNm><inv:meAttrs>"
    "<me:location>L</me:location></inv:meAttrs><inv:ehList><inv:ehInv><inv:ehNm>/rack=1</inv:ehNm><inv:ehList>"
    "<inv:ehInv><inv:ehNm>/rack=1/shelf=1</inv:ehNm></inv:ehInv></inv:ehList></inv:ehInv></inv:ehList></inv:meInv>"
    "<inv:meInv><inv:meNm>b</inv:meNm><inv:meAttrs><coi:name><nam:rdn><nam:type>MD</nam:type><nam:value>X</nam:value>"
    "</nam:rdn><nam:rdn><nam:type>ME</nam:type><nam:value>given</nam:value></nam:rdn></coi:name>"
    "<coi:userLabel>label</coi:userLabel></inv:meAttrs></inv:meInv></inv:meList></inv:md></inv:mdList>"
)
"""Named by what stands around them; one by itself."""


def test_nested_layouts(put: Put, envelopes: Any, other_prefixes: Any, both: Both) -> None:
    put("a.xml", envelopes.inventory(NODES))
    put("b.xml", other_prefixes.inventory(NODES.replace("><", ">\n<"), cid="b"))
    rows, by_python = both(objectType="ME,EH")
    assert (rows.num_rows, by_python) == (8, 0)
    assert rows["name_text"].to_pylist()[:4] == [
        "MD=M%2F1/ME=a",
        "MD=M%2F1/ME=a/EH=%2Frack%3D1",
        "MD=M%2F1/ME=a/EH=%2Frack%3D1%2Fshelf%3D1",
        "MD=X/ME=given",
    ]
    assert rows["related"].to_pylist() == [[]] * 8


def test_only_odd_nodes_are_read_by_python(put: Put, envelopes: Any, both: Both) -> None:
    odd = NODES.replace("<coi:userLabel>", "\n<v:more/><coi:userLabel>").replace("<me:location>", "<v:x/><me:location>")
    put("a.xml", envelopes.inventory(f"\n{NODES}".replace("M/1", "M")).replace("<inv:md>", "\n<inv:md>"))
    put("b.xml", envelopes.inventory(odd, cid="b"))
    rows, by_python = both(objectType="ME,EH")
    assert (rows.num_rows, by_python) == (8, 2)
    assert [bool(unknown) for unknown in rows["unknown"].to_pylist()[4:]] == [True, False, False, True]
    assert both(objectType="EH")[1] == 0


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """A flat list and a nested inventory with all that a network has."""
    network = Network(elements=2, ports=1, channels=1)
    answers = [
        GetAllManagedElementsResponse(me_list=ManagedElementListType(me=list(network.managed_elements()))),
        GetInventoryResponse(inventory_data=InventoryEms(network).data([0])),
    ]
    made = Envelopes()
    header = made.header(msgType="RESPONSE", correlationId="c", batchSequenceNumber=1, batchSequenceEndOfReply="true")
    bodies = [encode(answer).decode().partition("?>")[2] for answer in answers]
    plain = made.batch("c", 1, True, "".join(made.me(str(index), FULL) for index in range(3)))
    return [plain, *(made.envelope(header, body) for body in bodies)]


_PIECES = (
    "&",
    "<",
    "x",
    "&amp;",
    "&#65;",
    "\n",
    "<x/>",
    "]]>",
    "\x01",
    "<!-- - -->",
    "<![CDATA[x]]>",
    "<?p?>",
    "\u00e9",
)
_TEXTS = ("", "x", " ", "a &amp; b", "true", "2024-01-01", "1", "<![CDATA[a]]>b")


def mutated(chance: random.Random, plain: str) -> str:
    """A message with something put in, taken out, doubled or written in another way."""
    at = chance.randrange(plain.index("Body>") + 5, len(plain))
    kind = chance.randrange(9)
    if kind > 3:
        leaf = chance.choice(list(re.finditer(r"<([^<>/ ]+)>[^<]*</\1>", plain)))
        again = f"<{leaf[1]}>{chance.choice(_TEXTS)}</{leaf[1]}>"
        return plain[: leaf.start()] + chance.choice(["", again, again, leaf[0] + leaf[0]]) + plain[leaf.end() :]
    if kind == 0:
        return plain[:at] + chance.choice(_PIECES) + plain[at:]
    if kind == 1:
        return plain[:at] + plain[at + chance.randrange(1, 30) :]
    at = plain.find("<", at)
    piece: str = chance.choice(re.findall("<[^<>]+>", plain))
    return plain[:at] + piece + (plain[at:] if kind == 2 else plain[plain.find(">", at) + 1 :])


@pytest.mark.parametrize(
    "rounds", [pytest.param(12, id="some"), pytest.param(3000, id="many", marks=pytest.mark.endurance)]
)
def test_changed_messages_give_the_same_rows_and_rejects(
    rounds: int, messages: list[str], put: Put, both: Both
) -> None:
    chance = random.Random(7)
    native = 0
    for _ in range(rounds):
        for number in range(12):
            text = chance.choice(messages)
            for _ in range(chance.choice((1, 1, 1, 4))):
                text = mutated(chance, text)
            put(f"{number}.xml", text.replace("><", ">\n<") if chance.random() < 0.3 else text)
        rows, by_python = both(objectType=chance.choice(("ME", "ME,MD,EH,EQ,PTP,CTP", "CTP,TL")))
        native += rows.num_rows - by_python
    assert native > rounds


@pytest.mark.parametrize("piece", [64, 700, 1 << 20])
def test_large_messages_in_pieces_of_any_size(
    piece: int, messages: list[str], put: Put, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native_rows, "_PIECE", piece)
    odd = (
        messages[0].replace("<me:location>", "\n<v:odd/>\n<me:location>", 2).replace("<coi:owner/>", "<!-- > -->\n", 1)
    )
    for number, text in enumerate((odd, *messages, messages[0].replace("</me:me>", "</me:m>", 1))):
        put(f"{number}.xml.gz", text)
    for batch in ("2", "10000"):
        rows, _ = both(
            ["name_text", "source_line", "source_position", "location", "unknown", "bad"],
            wholeFileBytes="1",
            batchRows=batch,
        )
        assert rows["bad"].null_count == rows.num_rows - 1
