"""Diff of two snapshots: exactly what changed, and nothing for what only was read another way."""

from __future__ import annotations

import datetime as dt
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.spark.jobs import DiffOptions, diff_snapshots, diff_tables, run_diff
from mtosi_jms.spark.jobs._job import SparkSql
from mtosi_jms.tables.columns import row_schema
from mtosi_jms.tables.diff import notes_on

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Rows = dict[str, list[Row]]


def write(folder: Path, snapshot: Rows, columns: set[str] | None, *, files: int = 1, **more: Any) -> Path:
    """A snapshot as `ingest` lays it out, out of rows by object type; without `columns` it has all there are."""
    for name, rows in snapshot.items():
        schema = pa.schema([field for field in row_schema((name,)) if columns is None or field.name in columns])
        for column, kind in more.items():
            schema = schema.append(pa.field(column, kind))
        assert all(row.keys() <= set(schema.names) for row in rows)
        place = folder / f"objectType={name}"
        place.mkdir(parents=True)
        size = max(1, -(-len(rows) // files))
        for number in range(files):
            part = pa.Table.from_pylist(rows[number * size : (number + 1) * size], schema=schema)
            pq.write_table(part, place / f"part-{number}.parquet")
    return folder


def filled(*snapshots: Rows) -> set[str]:
    """The columns that rows of snapshots fill: planning all that `ingest` writes takes longer than a test."""
    return {"name_text"}.union(*(row for snapshot in snapshots for rows in snapshot.values() for row in rows))


def me(name: str, /, **fields: Any) -> Row:
    return {"name_text": f"MD=M/ME={name}", "parent_names": ["MD=M"], "vendor_extensions": [], "related": [], **fields}


def port(name: str, extensions: list[tuple[str, str]], raw: str = "") -> Row:
    layer = {"layer_rate": {"value": "LR_X"}, "vendor_extensions": extensions, "vendor_extensions_raw": raw}
    return {"name_text": name, "transmission_parameters_list": {"transmission_parameters": [layer]}}


PAIRS: dict[str, tuple[Row | None, Row | None, tuple[str, Row] | None]] = {
    "gone": ({}, None, ("deleted", {})),
    "new": (None, {}, ("created", {})),
    "same": ({}, {}, None),
    "moved": (
        {"location": "Oslo", "owner": "o"},
        {"location": "Bergen", "owner": "o"},
        ("changed", {"location": ("Oslo", "Bergen")}),
    ),
    "values are text or JSON": (
        {
            "is_in_sync_state": True,
            "manufacture_date": dt.date(2020, 2, 29),
            "source": {"value": "S", "qualifier": None},
        },
        {
            "is_in_sync_state": False,
            "source": {"value": "T", "qualifier": None},
            "vendor_extensions": [("k", "1")],
            "alias_name_list": {"alias": [{"alias_name": "n", "alias_value": "v"}]},
        },
        (
            "changed",
            {
                "is_in_sync_state": ("true", "false"),
                "manufacture_date": ("2020-02-29", None),
                "source": ('{"value":"S"}', '{"value":"T"}'),
                "vendor_extensions": ("{}", '{"k":"1"}'),
                "alias_name_list": (None, '{"alias":[{"alias_name":"n","alias_value":"v"}]}'),
            },
        ),
    ),
    "maps have no order, lists have one": (
        {"vendor_extensions": [("x", "1"), ("y", "2")], "related": [("p", ["1", "2"]), ("q", [])]},
        {"vendor_extensions": [("y", "2"), ("x", "1")], "related": [("q", []), ("p", ["2", "1"])]},
        ("changed", {"related": ('{"p":["1","2"],"q":[]}', '{"p":["2","1"],"q":[]}')}),
    ),
    "provenance does not count": (
        {"source_file": "1.xml", "source_line": 1, "correlation_id": "x", "complete": True, "header_timestamp": "t"},
        {
            "source_file": "2.xml",
            "batch_number": 3,
            "name": {"rdn": [{"type": "MD", "value": "M"}, {"type": "ME", "value": "read"}]},
            "warnings": [{"rule": "order", "message": "m", "path": "p", "line": 7}],
            "vendor_extensions_raw": "<a/>",
        },
        None,
    ),
}
"""Of each managed element its old fields, its new ones, and what a diff says of it."""


def test_exactly_what_changed(spark: Any, tmp_path: Path) -> None:
    old: Rows = {"ME": [me(name, **fields) for name, (fields, _, _) in PAIRS.items() if fields is not None]}
    new: Rows = {"ME": [me(name, **fields) for name, (_, fields, _) in PAIRS.items() if fields is not None]}
    old["EH"], new["TL"] = [{"name_text": "EH=1"}], [{"name_text": "TL=1"}]
    old["PTP"] = [port("PTP=1", [("a", "1"), ("b", "2")], "<a/>"), port("PTP=2", [("a", "1")])]
    new["PTP"] = [port("PTP=1", [("b", "2"), ("a", "1")], "<x:a/>"), port("PTP=2", [("a", "2")])]
    columns = filled(old, new)
    changes = diff_snapshots(spark, write(tmp_path / "old", old, columns), write(tmp_path / "new", new, columns))
    rows = changes.collect()
    found = {
        (row.object_type, row.name_text): (row.change, {a.attribute: (a.old, a.new) for a in row.attributes or ()})
        for row in rows
    }
    assert len(found) == len(rows)
    _, lists = found.pop(("PTP", "PTP=2"))
    told = json.loads(lists["transmission_parameters_list"][1])
    assert told["transmission_parameters"][0]["vendor_extensions"] == {"a": "2"}
    assert found == {
        ("EH", "EH=1"): ("deleted", {}),
        ("TL", "TL=1"): ("created", {}),
        **{("ME", me(name)["name_text"]): said for name, (_, _, said) in PAIRS.items() if said},
    }


def test_a_column_of_one_snapshot_is_reported_and_not_compared(spark: Any) -> None:
    before = spark.createDataFrame([("ME=a", 1)], "name_text string, grade int")
    after = spark.createDataFrame([("ME=a", "1", "red")], "name_text string, grade string, colour string")
    assert diff_tables(before, after, "ME").collect() == []
    notes = partial(notes_on, SparkSql(spark), before, after, "ME")
    assert [str(note) for note in notes(())] == [
        "ME.grade: its type differs; compared as text",
        "ME.colour: only in the new snapshot; not compared",
    ]
    assert notes(("grade", "colour")) == ()


def test_what_cannot_be_compared(spark: Any, tmp_path: Path) -> None:
    there = write(tmp_path / "old", {"ME": [me("a")]}, {"name_text"} | me("a").keys())
    with pytest.raises(ConfigError, match="neither snapshot has a table of PTP; there are ME"):
        diff_snapshots(spark, there, there, object_types=["PTP"])
    with pytest.raises(ConfigError, match="a snapshot must be on a file system of this machine"):
        diff_snapshots(spark, "s3a://bucket/snapshot", there)
    (tmp_path / "out/changes").mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds changes folders that no diff of ours made"):
        run_diff(DiffOptions(old=there, new=there, out=tmp_path / "out"), spark=spark)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    doubtful = [me("d"), me("d"), me("e", location="x"), {"location": "?"}]
    old: Rows = {"ME": [me("a", location="x"), me("b", owner="x"), *doubtful]}
    repeated = [me("d"), me("e", location="y"), me("e", location="x")]
    new: Rows = {"ME": [me("a", location="y"), me("b", owner="y"), *repeated]}
    columns = filled(old, new)
    write(tmp_path / "old", old, columns)
    write(tmp_path / "new", new, columns, colour=pa.string())
    command = ["diff", "old", "new", "--out", "out"]
    assert main([*command, "--json", "--ignore", "owner"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["changed"], document["created"]) == (1, 0)
    assert document["columns"] == [{"object_type": "ME", "column": "colour", "old": None, "new": "string"}]
    assert document["types"] == {
        "ME": {"old": 6, "new": 5, "created": 0, "deleted": 0, "changed": 1, "duplicate": 2, "unnamed": 1}
    }
    rows = pq.read_table(tmp_path / "out/changes", partitioning=None).to_pylist()
    found = [(row["name_text"], row["change"], row["old_copies"], row["new_copies"]) for row in rows]
    assert sorted(found, key=str) == [
        ("MD=M/ME=a", "changed", 1, 1),
        ("MD=M/ME=d", "duplicate", 2, 1),
        ("MD=M/ME=e", "duplicate", 1, 2),
        (None, "unnamed", 1, 0),
    ]
    assert {row["attributes"] is None for row in rows if row["change"] != "changed"} == {True}
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "2 changed" in shown.out
    assert "location" in shown.out
    assert "ME.colour: only in the new snapshot; not compared" in shown.out
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
        kind = list(rows)[number % len(rows)]
        later[kind].append({**rows[kind][0], "name_text": f"MD=M/{kind}=new-{number}"})
        known[kind, f"MD=M/{kind}=new-{number}"] = ("created", None)
    for held_rows in later.values():
        dice.shuffle(held_rows)
    return later, known


@pytest.mark.parametrize("objects", [1_000, pytest.param(100_000, marks=pytest.mark.endurance)])
def test_known_changes_of_a_network(spark: Any, tmp_path: Path, objects: int) -> None:
    """A thousand objects in the columns that they fill and of two types, or very many in all columns and of four."""
    changes = objects // 100
    before = network(objects)
    if objects == 1_000:
        before = {"ME": before.pop("ME"), "CTP": [row for rows in before.values() for row in rows]}
    after, known = alter(before, changes, random.Random(7))
    assert len(known) == changes
    columns = filled(before, after) if objects == 1_000 else None
    write(tmp_path / "old", before, columns, files=3)
    write(tmp_path / "new", after, columns, files=4)
    result = run_diff(DiffOptions(old=tmp_path / "old", new=tmp_path / "new", out=tmp_path / "out"), spark=spark)
    found: dict[tuple[str, str], tuple[str, str | None]] = {}
    for row in pq.read_table(tmp_path / "out/changes", partitioning=None).to_pylist():
        names = [change["attribute"] for change in row["attributes"] or ()]
        assert len(names) == (row["change"] == "changed")
        found[row["object_type"], row["name_text"]] = (row["change"], names[0] if names else None)
    assert found == known
    assert sum(counts["old"] for counts in result.types.values()) == objects
    assert sum(result.count(kind) for kind in ("created", "deleted", "changed")) == changes
