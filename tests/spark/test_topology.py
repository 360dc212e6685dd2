"""Nodes and edges of a snapshot: containment, links, references, and ends that nobody knows."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.spark.jobs import (
    IngestOptions,
    TopologyOptions,
    run_ingest,
    run_topology,
    snapshot_topology,
    topology_tables,
)
from mtosi_jms.tables.columns import row_schema

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Row = dict[str, Any]
Edge = tuple[str, str, str]


def table(spark: Any, object_type: str, *rows: Row) -> Any:
    """Rows with the columns that one of them fills: planning all of them takes longer than the test."""
    import pyarrow as pa

    filled = {"name_text"}.union(*rows)
    schema = pa.schema([field for field in row_schema((object_type,)) if field.name in filled])
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema))


def name(text: str) -> Row:
    """A full name in its steps; here no part holds a character that is written otherwise."""
    return {"rdn": [dict(zip(("type", "value"), step.split("=", 1), strict=True)) for step in text.split("/")]}


def names(*texts: str) -> Row:
    return {"name": [name(text) for text in texts]}


def edges(found: Any) -> set[Edge]:
    rows = found.edges.collect()
    assert len(rows) == len({(row.src, row.dst, row.relationship, row.via) for row in rows})
    return {(row.src, row.relationship, row.dst) for row in rows}


def test_links_go_from_each_a_end_to_each_z_end(spark: Any) -> None:
    tl = {
        "name_text": "MD=M/TL=1",
        "direction": "CD_BI",
        "a_end_tp_ref_list": names("MD=M/ME=a/PTP=1", "MD=M/ME=a/PTP=2"),
        "z_end_tp_ref_list": names("MD=M/ME=b/PTP=1"),
        "asap_ref": name("ASAP=x"),
    }
    ports = [{"name_text": f"MD=M/ME={ends}"} for ends in ("a/PTP=1", "b/PTP=1")]
    found = topology_tables({"TL": table(spark, "TL", tl), "PTP": table(spark, "PTP", *ports)})
    links = found.edges.where("kind = 'link'").orderBy("src").collect()
    assert [row.asDict() for row in links] == [
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
    }
    nodes = {row.id: (row.type, row.label, row.known, row.copies) for row in found.nodes.collect()}
    assert nodes == {
        "MD=M/TL=1": ("TL", "1", True, 1),
        "MD=M/ME=a/PTP=1": ("PTP", "1", True, 1),
        "MD=M/ME=b/PTP=1": ("PTP", "1", True, 1),
        "MD=M/ME=a/PTP=2": ("PTP", "2", False, 0),
        "MD=M/ME=a": ("ME", "a", False, 0),
        "MD=M/ME=b": ("ME", "b", False, 0),
        "MD=M": ("MD", "M", False, 0),
        "ASAP=x": ("ASAP", "x", False, 0),
    }


def test_a_link_that_is_open_on_one_side_keeps_its_other_end(spark: Any) -> None:
    open_z = {"name_text": "TL=1", "a_end_tp_ref_list": names("PTP=1")}
    open_a = {"name_text": "TL=2", "z_end_tp_ref_list": names("PTP=2"), "a_end_tp_ref_list": {"name": [None]}}
    no_end = {"name_text": "TL=3"}
    found = topology_tables({"TL": table(spark, "TL", open_z, open_a, no_end)})
    assert edges(found) == {("PTP=1", "open_link", "TL=1"), ("TL=2", "open_link", "PTP=2")}


def test_names_are_written_as_name_text_is(spark: Any) -> None:
    inside = {"rdn": [{"type": "ME", "value": "50%/a=b"}, {"type": "EQ", "value": "1"}]}
    holder = {"name_text": "ME=50%25%2Fa%3Db/EH=%2Frack=1".replace("rack=", "rack%3D")}
    holder["expected_or_installed_equipment_ref"] = inside
    found = topology_tables({"EH": table(spark, "EH", holder)})
    assert edges(found) == {
        ("ME=50%25%2Fa%3Db", "contains", holder["name_text"]),
        (holder["name_text"], "expected_or_installed_equipment", "ME=50%25%2Fa%3Db/EQ=1"),
    }
    labels = {row.id: row.label for row in found.nodes.collect()}
    assert labels[holder["name_text"]] == "/rack=1"
    assert labels["ME=50%25%2Fa%3Db"] == "50%/a=b"


def test_names_that_occur_twice_and_objects_without_one(spark: Any, tmp_path: Path) -> None:
    rows = table(spark, "ME", {"name_text": "ME=a"}, {"name_text": "ME=a"}, {"location": "x"})
    found = topology_tables({"ME": rows})
    assert [(row.id, row.copies) for row in found.nodes.collect()] == [("ME=a", 2)]
    rows.write.parquet(str(tmp_path / "in/objectType=ME"))
    result = run_topology(TopologyOptions(snapshot=tmp_path / "in", out=tmp_path / "out"), spark=spark)
    assert (result.duplicates, result.unnamed, result.edges) == (1, 1, {})


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


def test_the_nested_layout_tells_what_contains_what(
    spark: Any, put: Any, landing: Path, envelopes: Any, tmp_path: Path
) -> None:
    put("i.xml", inventory(envelopes))
    run_ingest(IngestOptions(landing=landing, out=tmp_path / "in", object_type="ALL"), spark=spark)
    found = snapshot_topology(spark, tmp_path / "in")
    assert edges(found) == {
        ("MD=D", "contains", "MD=D/ME=N"),
        ("MD=D/ME=N", "contains", RACK),
        (RACK, "contains", SHELF),
        (SHELF, "contains", f"{SHELF}/EQ=1"),
        (f"{SHELF}/EQ=1", "supported_ptp", "MD=D/ME=N/PTP=9"),
    }
    unknown = found.edges.where("not dst_known").collect()
    assert [(row.dst, row.kind, row.src_known) for row in unknown] == [("MD=D/ME=N/PTP=9", "reference", True)]


def test_the_command(
    spark: Any,
    put: Any,
    landing: Path,
    envelopes: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("mtosi_jms.spark._session.local_session", lambda *args, **options: nullcontext(spark))
    monkeypatch.chdir(landing.parent)
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a") + envelopes.me("b")))
    run_ingest(IngestOptions(landing=landing, out="in"), spark=spark)
    assert main(["topology", "in", "--out", "out", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["nodes"] == {"ME": 2}
    assert document["unknown"] == {"MD": 1}
    assert document["edges"] == document["dangling"] == {"contains": 2}
    assert sorted(path.name for path in Path("out").iterdir()) == ["_report", "edges", "nodes"]
    assert main(["topology", "in", "--out", "out"]) == 0
    assert "2 nodes, 2 edges" in capsys.readouterr().out
    assert main(["topology", "no", "--out", "out"]) == 1
    assert main(["topology"]) == 2


def test_what_is_no_snapshot(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="no such folder"):
        snapshot_topology(spark, tmp_path / "no")
    with pytest.raises(ConfigError, match="no objectType="):
        run_topology(TopologyOptions(snapshot=tmp_path, out=tmp_path / "out"), spark=spark)
    with pytest.raises(ConfigError, match="has a column name_text"):
        topology_tables({"ME": spark.range(1)})
