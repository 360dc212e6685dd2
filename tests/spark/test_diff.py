"""Diff of two snapshots: exactly what changed, and nothing for what only was read another way."""

from __future__ import annotations

import datetime as dt
import json
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.spark.jobs import (
    DiffOptions,
    IngestOptions,
    column_notes,
    diff_snapshots,
    diff_tables,
    run_diff,
    run_ingest,
)
from mtosi_jms.tables.columns import row_schema

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Row = dict[str, Any]
Rows = dict[str, list[Row]]

FILLED = {
    *("name", "name_text", "parent_names", "related", "user_label", "owner", "location", "version", "source"),
    *("is_in_sync_state", "manufacture_date", "alias_name_list", "transmission_parameters_list", "warnings"),
    *("vendor_extensions", "vendor_extensions_raw", "source_file", "source_line", "correlation_id", "complete"),
    *("header_timestamp", "batch_number"),
}
"""The columns that rows here fill. Those that `ingest` writes have more: planning each takes longer than its test."""


def write(folder: Path, snapshot: Rows, *, files: int = 1, whole: bool = False, **more: Any) -> Path:
    """A snapshot as `ingest` lays it out, out of rows by object type; `whole` has all columns."""
    for name, rows in snapshot.items():
        assert all(row.keys() <= FILLED | more.keys() for row in rows)
        schema = pa.schema([field for field in row_schema((name,)) if whole or field.name in FILLED])
        for column, kind in more.items():
            schema = schema.append(pa.field(column, kind))
        place = folder / f"objectType={name}"
        place.mkdir(parents=True)
        size = max(1, -(-len(rows) // files))
        for number in range(files):
            part = pa.Table.from_pylist(rows[number * size : (number + 1) * size], schema=schema)
            pq.write_table(part, place / f"part-{number}.parquet")
    return folder


def compare(spark: Any, tmp_path: Path, old: Rows, new: Rows) -> dict[tuple[str, str | None], tuple[str, Row]]:
    """Kind of change and changed attributes, by object."""
    rows = diff_snapshots(spark, write(tmp_path / "old", old), write(tmp_path / "new", new)).collect()
    assert len({(row.object_type, row.name_text) for row in rows}) == len(rows)
    return {
        (row.object_type, row.name_text): (row.change, {a.attribute: (a.old, a.new) for a in row.attributes or ()})
        for row in rows
    }


def me(name: str, /, **fields: Any) -> Row:
    return {"name_text": f"MD=M/ME={name}", "parent_names": ["MD=M"], "vendor_extensions": [], "related": [], **fields}


def test_created_deleted_and_changed(spark: Any, tmp_path: Path) -> None:
    old = {"ME": [me("a"), me("b", location="Oslo", version="1"), me("c")], "EH": [{"name_text": "EH=1"}]}
    new = {"ME": [me("d"), me("c"), me("b", location="Bergen", version="1")], "PTP": [{"name_text": "PTP=1"}]}
    assert compare(spark, tmp_path, old, new) == {
        ("ME", "MD=M/ME=a"): ("deleted", {}),
        ("ME", "MD=M/ME=b"): ("changed", {"location": ("Oslo", "Bergen")}),
        ("ME", "MD=M/ME=d"): ("created", {}),
        ("EH", "EH=1"): ("deleted", {}),
        ("PTP", "PTP=1"): ("created", {}),
    }


def test_values_are_told_as_text_or_json(spark: Any, tmp_path: Path) -> None:
    day = dt.date(2020, 2, 29)
    before = me("a", is_in_sync_state=True, manufacture_date=day, source={"value": "S", "qualifier": None})
    after = me("a", is_in_sync_state=False, source={"value": "T", "qualifier": None}, vendor_extensions=[("k", "1")])
    after["alias_name_list"] = {"alias": [{"alias_name": "n", "alias_value": "v"}]}
    (change,) = compare(spark, tmp_path, {"ME": [before]}, {"ME": [after]}).values()
    assert change == (
        "changed",
        {
            "is_in_sync_state": ("true", "false"),
            "manufacture_date": ("2020-02-29", None),
            "source": ('{"value":"S"}', '{"value":"T"}'),
            "vendor_extensions": ("{}", '{"k":"1"}'),
            "alias_name_list": (None, '{"alias":[{"alias_name":"n","alias_value":"v"}]}'),
        },
    )


def test_maps_have_no_order_and_lists_have(spark: Any, tmp_path: Path) -> None:
    before = me("a", vendor_extensions=[("x", "1"), ("y", "2")], related=[("p", ["1", "2"]), ("q", [])])
    after = me("a", vendor_extensions=[("y", "2"), ("x", "1")], related=[("q", []), ("p", ["2", "1"])])
    found = compare(spark, tmp_path, {"ME": [before]}, {"ME": [after]})
    assert found == {
        ("ME", "MD=M/ME=a"): ("changed", {"related": ('{"p":["1","2"],"q":[]}', '{"p":["2","1"],"q":[]}')})
    }


def test_maps_inside_lists_are_compared_by_content(spark: Any, tmp_path: Path) -> None:
    def port(name: str, extensions: list[tuple[str, str]], raw: str) -> Row:
        layer = {"layer_rate": {"value": "LR_X"}, "vendor_extensions": extensions, "vendor_extensions_raw": raw}
        return {"name_text": name, "transmission_parameters_list": {"transmission_parameters": [layer]}}

    old = [port("PTP=1", [("a", "1"), ("b", "2")], "<a/>"), port("PTP=2", [("a", "1")], "")]
    new = [port("PTP=1", [("b", "2"), ("a", "1")], "<x:a/>"), port("PTP=2", [("a", "2")], "")]
    found = compare(spark, tmp_path, {"PTP": old}, {"PTP": new})
    assert list(found) == [("PTP", "PTP=2")]
    ((_, attributes),) = found.values()
    told = json.loads(attributes["transmission_parameters_list"][1])
    assert told["transmission_parameters"][0]["vendor_extensions"] == {"a": "2"}


def test_provenance_does_not_count(spark: Any, tmp_path: Path) -> None:
    name = {"rdn": [{"type": "MD", "value": "M"}, {"type": "ME", "value": "a"}]}
    warning = {"rule": "order", "message": "m", "path": "p", "line": 7}
    before = me("a", source_file="1.xml", source_line=1, correlation_id="x", complete=True, header_timestamp="t")
    after = me("a", source_file="2.xml", batch_number=3, name=name, warnings=[warning], vendor_extensions_raw="<a/>")
    assert compare(spark, tmp_path, {"ME": [before]}, {"ME": [after]}) == {}


def test_duplicates_and_objects_without_a_name_are_reported(spark: Any, tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"ME": [me("a"), me("a"), me("b", location="x"), {"location": "?"}]})
    new = write(tmp_path / "new", {"ME": [me("a"), me("b", location="y"), me("b", location="x")]})
    result = run_diff(DiffOptions(old=old, new=new, out=tmp_path / "out"), spark=spark)
    rows = spark.read.parquet(str(tmp_path / "out/changes")).orderBy("name_text").collect()
    assert [(row.name_text, row.change, row.attributes, row.old_copies, row.new_copies) for row in rows] == [
        (None, "unnamed", None, 1, 0),
        ("MD=M/ME=a", "duplicate", None, 2, 1),
        ("MD=M/ME=b", "duplicate", None, 1, 2),
    ]
    assert result.types == {
        "ME": {"old": 4, "new": 3, "created": 0, "deleted": 0, "changed": 0, "duplicate": 2, "unnamed": 1}
    }


def test_a_column_of_one_snapshot_is_reported_and_not_compared(spark: Any, tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"ME": [me("a", grade=1)]}, grade=pa.int32())
    new = write(tmp_path / "new", {"ME": [me("a", grade="1", colour="red")]}, grade=pa.string(), colour=pa.string())
    before, after = (spark.read.parquet(str(folder / "objectType=ME")) for folder in (old, new))
    assert diff_tables(before, after, "ME").collect() == []
    notes = column_notes(before, after, "ME")
    assert [str(note) for note in notes] == [
        "ME.grade: its type differs; compared as text",
        "ME.colour: only in the new snapshot; not compared",
    ]
    assert column_notes(before, after, "ME", ignore=("grade", "colour")) == ()


def test_snapshots_that_ingest_made(spark: Any, tmp_path: Path, put: Any, landing: Path, envelopes: Any) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a") + envelopes.me("b")))
    run_ingest(IngestOptions(landing=landing, out=tmp_path / "old"), spark=spark)
    put("1.xml", envelopes.batch("d", 1, False, envelopes.me("b", "<me:location>x</me:location>")))
    run_ingest(IngestOptions(landing=landing, out=tmp_path / "new"), spark=spark)
    result = run_diff(DiffOptions(old=tmp_path / "old", new=tmp_path / "new", out=tmp_path / "out"), spark=spark)
    assert (result.count("deleted"), result.count("changed"), result.count("created")) == (1, 1, 0)
    assert result.attributes == {"ME": {"location": 1}}
    assert (result.old_complete, result.new_complete) == (True, False)
    summary = json.loads((tmp_path / "out/_report/diff.json").read_text())
    assert summary == json.loads(json.dumps(result.summary()))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_report", "changes"]


def test_what_cannot_be_compared(spark: Any, tmp_path: Path) -> None:
    there = write(tmp_path / "old", {"ME": [me("a")]})
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpoolError, match="no such folder"):
        diff_snapshots(spark, there, tmp_path / "no")
    with pytest.raises(ConfigError, match="a snapshot is what"):
        diff_snapshots(spark, tmp_path / "empty", there)
    with pytest.raises(ConfigError, match="neither snapshot has a table of PTP; there are ME"):
        diff_snapshots(spark, there, there, object_types=["PTP"])
    with pytest.raises(ConfigError, match="a snapshot must be on a file system of this machine"):
        diff_snapshots(spark, "s3a://bucket/snapshot", there)
    (tmp_path / "out/changes").mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds changes folders that no diff of ours made"):
        run_diff(DiffOptions(old=there, new=there, out=tmp_path / "out"), spark=spark)


def test_the_command(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mtosi_jms.spark._session.local_session", lambda *args, **options: nullcontext(spark))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "old", {"ME": [me("a", location="x"), me("b", owner="x")]})
    write(tmp_path / "new", {"ME": [me("a", location="y"), me("b", owner="y")]}, colour=pa.string())
    command = ["diff", "old", "new", "--out", "out"]
    assert main([*command, "--json", "--ignore", "owner"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["changed"], document["created"]) == (1, 0)
    assert document["columns"] == [{"object_type": "ME", "column": "colour", "old": None, "new": "string"}]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "2 changed" in shown.out
    assert "location" in shown.out
    assert "note: ME.colour: only in the new snapshot; not compared" in shown.err
    assert main(["diff", "old", "no", "--out", "out"]) == 1
    assert capsys.readouterr().err.startswith("error: no: no such folder")
    assert main([*command, "--object", "PTP"]) == 1
    assert main(["diff", "old"]) == 2


def network(objects: int) -> Rows:
    """A network: a managed element, 4 equipments, 20 ports and 25 connection points in each 50 objects."""
    made: Rows = {"ME": [], "EQ": [], "PTP": [], "CTP": []}
    for number in range(objects):
        element, place = divmod(number, 50)
        kind = "ME" if place == 0 else "EQ" if place < 5 else "PTP" if place < 25 else "CTP"
        above = f"MD=M/ME=NE-{element}"
        name = above if kind == "ME" else f"{above}/{kind}={place}"
        made[kind].append(
            {
                "name_text": name,
                "parent_names": ["MD=M"] if kind == "ME" else ["MD=M", above],
                "user_label": f"label {number}",
                "source": {"value": "NETWORK_EMS", "qualifier": None},
                "alias_name_list": {"alias": [{"alias_name": "site", "alias_value": str(element % 97)}]},
                "vendor_extensions": [("shelf", str(place)), ("rack", str(element))],
                "related": [("peer_ref_list", [f"MD=M/ME=NE-{element + 1}"])],
            }
        )
    return made


def alter(rows: Rows, changes: int, dice: random.Random) -> tuple[Rows, dict[tuple[str, str], tuple[str, str | None]]]:
    """The same network later, read in another order, with so many changes: which ones."""
    flat = [(kind, row) for kind, held in rows.items() for row in held]
    picked = dice.sample(range(len(flat)), changes * 4 // 5)
    known: dict[tuple[str, str], tuple[str, str | None]] = {}
    later: Rows = {kind: [] for kind in rows}
    new: dict[str, Any] = {
        "user_label": "other",
        "owner": "new owner",
        "source": {"value": "NETWORK_EMS", "qualifier": "q"},
        "alias_name_list": {"alias": []},
        "vendor_extensions": [("rack", "r"), ("shelf", "s")],
        "related": [("peer_ref_list", [])],
    }
    attributes = [None, *new]
    fate = {index: attributes[turn % len(attributes)] for turn, index in enumerate(picked)}
    for index, (kind, row) in enumerate(flat):
        if index in fate and fate[index] is None:
            known[kind, row["name_text"]] = ("deleted", None)
            continue
        held = {**row, "vendor_extensions": row["vendor_extensions"][::-1], "source_file": f"{index}.xml"}
        attribute = fate.get(index)
        if attribute is not None:
            held[attribute] = new[attribute]
            known[kind, row["name_text"]] = ("changed", attribute)
        later[kind].append(held)
    for number in range(changes - len(picked)):
        kind = ("ME", "EQ", "PTP", "CTP")[number % 4]
        later[kind].append({**rows[kind][0], "name_text": f"MD=M/{kind}=new-{number}"})
        known[kind, f"MD=M/{kind}=new-{number}"] = ("created", None)
    for held_rows in later.values():
        dice.shuffle(held_rows)
    return later, known


@pytest.mark.parametrize("objects", [1_000, pytest.param(100_000, marks=pytest.mark.endurance)])
def test_known_changes_of_a_network(spark: Any, tmp_path: Path, objects: int) -> None:
    changes = objects // 100
    before = network(objects)
    after, known = alter(before, changes, random.Random(7))
    assert len(known) == changes
    whole = objects > 1_000
    write(tmp_path / "old", before, files=3, whole=whole)
    write(tmp_path / "new", after, files=4, whole=whole)
    result = run_diff(DiffOptions(old=tmp_path / "old", new=tmp_path / "new", out=tmp_path / "out"), spark=spark)
    found: dict[tuple[str, str], tuple[str, str | None]] = {}
    for row in pq.read_table(tmp_path / "out/changes", partitioning=None).to_pylist():
        names = [change["attribute"] for change in row["attributes"] or ()]
        assert len(names) == (row["change"] == "changed")
        found[row["object_type"], row["name_text"]] = (row["change"], names[0] if names else None)
    assert found == known
    assert sum(counts["old"] for counts in result.types.values()) == objects
    assert sum(result.count(kind) for kind in ("created", "deleted", "changed")) == changes
