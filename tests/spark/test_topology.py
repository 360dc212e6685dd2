"""Nodes and edges of a snapshot: containment, links, references, and ends that nobody knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.spark.jobs import (
    TopologyOptions,
    run_topology,
    topology_tables,
)
from mtosi_jms.tables import write
from mtosi_jms.tables.columns import row_schema

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Edge = tuple[str, str, str]


def table(spark: Any, object_type: str, *rows: Row) -> Any:
    """Rows with the columns that one of them fills: planning all of them takes longer than the test."""
    filled = {"name_text"}.union(*rows)
    schema = pa.schema([field for field in row_schema((object_type,)) if field.name in filled])
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema))


def name(text: str) -> Row:
    """A full name in its steps; here no part holds a character that is written otherwise."""
    return {"rdn": [dict(zip(("type", "value"), step.split("=", 1), strict=True)) for step in text.split("/")]}


def names(*texts: str) -> Row:
    return {"name": [name(text) for text in texts]}


def edges(rows: list[Row]) -> set[Edge]:
    assert len(rows) == len({(row["src"], row["dst"], row["relationship"], row["via"]) for row in rows})
    return {(row["src"], row["relationship"], row["dst"]) for row in rows}


HOLDER = "ME=50%25%2Fa%3Db/EH=%2Frack%3D1"


def test_links_and_references_are_edges_and_their_ends_nodes(spark: Any) -> None:
    """A link goes from each A end to each Z end; one that is open on one side keeps its other end."""
    links = [
        {
            "name_text": "MD=M/TL=1",
            "direction": "CD_BI",
            "a_end_tp_ref_list": names("MD=M/ME=a/PTP=1", "MD=M/ME=a/PTP=2"),
            "z_end_tp_ref_list": names("MD=M/ME=b/PTP=1"),
            "asap_ref": name("ASAP=x"),
        },
        {"name_text": "TL=1", "a_end_tp_ref_list": names("PTP=1")},
        {"name_text": "TL=2", "z_end_tp_ref_list": names("PTP=2"), "a_end_tp_ref_list": {"name": [None]}},
        {"name_text": "TL=3"},
    ]
    inside = {"rdn": [{"type": "ME", "value": "50%/a=b"}, {"type": "EQ", "value": "1"}]}
    tables = {
        "TL": links,
        "PTP": [{"name_text": f"MD=M/ME={ends}"} for ends in ("a/PTP=1", "b/PTP=1")],
        "EH": [{"name_text": HOLDER, "expected_or_installed_equipment_ref": inside}],
    }
    network = topology_tables({kind: table(spark, kind, *rows) for kind, rows in tables.items()})
    found = [row.asDict() for row in network.edges.collect()]
    assert sorted((row for row in found if row["relationship"] == "link"), key=lambda row: row["src"]) == [
        {
            "src": f"MD=M/ME=a/PTP={port}",
            "dst": "MD=M/ME=b/PTP=1",
            "relationship": "link",
            "kind": "link",
            "via": "MD=M/TL=1",
            "direction": "CD_BI",
            "src_known": port == 1,
            "dst_known": True,
        }
        for port in (1, 2)
    ]
    assert edges(found) == {
        ("MD=M/ME=a/PTP=1", "link", "MD=M/ME=b/PTP=1"),
        ("MD=M/ME=a/PTP=2", "link", "MD=M/ME=b/PTP=1"),
        ("MD=M/TL=1", "asap", "ASAP=x"),
        ("MD=M", "contains", "MD=M/TL=1"),
        ("MD=M/ME=a", "contains", "MD=M/ME=a/PTP=1"),
        ("MD=M/ME=b", "contains", "MD=M/ME=b/PTP=1"),
        ("PTP=1", "open_link", "TL=1"),
        ("TL=2", "open_link", "PTP=2"),
        ("ME=50%25%2Fa%3Db", "contains", HOLDER),
        (HOLDER, "expected_or_installed_equipment", "ME=50%25%2Fa%3Db/EQ=1"),
    }
    assert {row["kind"] for row in found if row["relationship"] == "open_link"} == {"link"}
    nodes = {row.id: (row.type, row.label, row.known, row.copies) for row in network.nodes.collect()}
    assert nodes == {
        "MD=M/TL=1": ("TL", "1", True, 1),
        "MD=M/ME=a/PTP=1": ("PTP", "1", True, 1),
        "MD=M/ME=b/PTP=1": ("PTP", "1", True, 1),
        "MD=M/ME=a/PTP=2": ("PTP", "2", False, 0),
        "MD=M/ME=a": ("ME", "a", False, 0),
        "MD=M/ME=b": ("ME", "b", False, 0),
        "MD=M": ("MD", "M", False, 0),
        "ASAP=x": ("ASAP", "x", False, 0),
        **{f"TL={number}": ("TL", f"{number}", True, 1) for number in (1, 2, 3)},
        **{f"PTP={number}": ("PTP", f"{number}", False, 0) for number in (1, 2)},
        HOLDER: ("EH", "/rack=1", True, 1),
        "ME=50%25%2Fa%3Db": ("ME", "50%/a=b", False, 0),
        "ME=50%25%2Fa%3Db/EQ=1": ("EQ", "1", False, 0),
    }


def test_names_that_occur_twice_and_objects_without_one(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([field for field in row_schema(("ME",)) if field.name in ("name_text", "location")])
    (tmp_path / "in/objectType=ME").mkdir(parents=True)
    rows = [{"name_text": "ME=a"}, {"name_text": "ME=a"}, {"location": "x"}]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "in/objectType=ME/part.parquet")
    result = run_topology(TopologyOptions(snapshot=tmp_path / "in", out=tmp_path / "out"), spark=spark)
    assert (result.duplicates, result.unnamed, result.edges) == (1, 1, {})
    nodes = pq.read_table(tmp_path / "out/nodes").to_pylist()
    assert [(row["id"], row["copies"]) for row in nodes] == [("ME=a", 2)]


def inventory(envelopes: Any) -> str:
    refs = f"<inv:supportedPtpRefList>{envelopes.name('MD=D', 'ME=N', 'PTP=9')}</inv:supportedPtpRefList>"
    refs = refs.replace("coi:name", "nam:name")
    equipment = f"<inv:eqInv><inv:eqNm>1</inv:eqNm><inv:eqAttrs/>{refs}</inv:eqInv>"
    inner = f"<inv:ehInv><inv:ehNm>/rack=1/shelf=1</inv:ehNm><inv:ehAttrs/>{equipment}</inv:ehInv>"
    holder = f"<inv:ehInv><inv:ehNm>/rack=1</inv:ehNm><inv:ehAttrs/><inv:ehList>{inner}</inv:ehList></inv:ehInv>"
    me = f"<inv:meInv><inv:meNm>N</inv:meNm><inv:meAttrs/><inv:ehList>{holder}</inv:ehList></inv:meInv>"
    md = f"<inv:md><inv:mdNm>D</inv:mdNm><inv:meList>{me}</inv:meList></inv:md>"
    return str(envelopes.inventory(f"<inv:mdList>{md}</inv:mdList>"))


RACK = "MD=D/ME=N/EH=%2Frack%3D1"
SHELF = "MD=D/ME=N/EH=%2Frack%3D1%2Fshelf%3D1"


def test_the_command_tells_what_contains_what_in_the_nested_layout(
    put: Any,
    landing: Path,
    envelopes: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(landing.parent)
    put("i.xml", inventory(envelopes))
    write("landing", "in", object_type="ALL")
    assert main(["topology", "in", "--out", "out", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["nodes"] == {"EH": 2, "EQ": 1, "MD": 1, "ME": 1}
    assert document["unknown"] == {"PTP": 1}
    assert document["edges"] == {"contains": 4, "supported_ptp": 1}
    assert document["dangling"] == {"supported_ptp": 1}
    assert sorted(path.name for path in Path("out").iterdir()) == ["_report", "edges", "nodes"]
    found = pq.read_table("out/edges").to_pylist()
    assert edges(found) == {
        ("MD=D", "contains", "MD=D/ME=N"),
        ("MD=D/ME=N", "contains", RACK),
        (RACK, "contains", SHELF),
        (SHELF, "contains", f"{SHELF}/EQ=1"),
        (f"{SHELF}/EQ=1", "supported_ptp", "MD=D/ME=N/PTP=9"),
    }
    unknown = [(row["dst"], row["kind"], row["src_known"]) for row in found if not row["dst_known"]]
    assert unknown == [("MD=D/ME=N/PTP=9", "reference", True)]
    assert main(["topology", "no", "--out", "out"]) == 1
    assert main(["topology"]) == 2


def test_a_table_without_names(spark: Any) -> None:
    with pytest.raises(ConfigError, match="has a column name_text"):
        topology_tables({"ME": spark.range(1)})
