"""What changed between two snapshots: objects created and deleted, and the attributes that changed.

    changes = diff_tables(old, new, "ME")

has one row for each object that differs:

| column | what |
|---|---|
| `object_type`, `name_text` | the object |
| `change` | created, deleted, changed, duplicate or unnamed |
| `attributes` | of a changed object: list of `attribute`, `old`, `new`: text, JSON for nested values, null if absent |
| `old_copies`, `new_copies` | number of rows with this name in each snapshot |

Objects are identified by their full names. If a snapshot has several rows with one name, the name is reported as a
`duplicate` and not compared. Objects without a name are only counted. Columns of provenance, and columns that the
source derives from the name, are not compared. A column that only one snapshot has is not compared either;
`column_notes` names it.

Spark shuffles each table once, by name, for the join. The driver only receives counts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from mtosi_jms.errors import ConfigError
from mtosi_jms.report import Fact, Report, Table, duration, number
from mtosi_jms.spark.jobs._expressions import comparable, content_fields, names_type, text_of
from mtosi_jms.spark.jobs._job import SparkJob
from mtosi_jms.spark.jobs._merge import state_of
from mtosi_jms.spark.jobs._snapshots import Snapshot
from mtosi_jms.tables.columns import PROVENANCE, own_columns
from mtosi_jms.tables.job import JobOptions, JobResult, Progress
from mtosi_jms.tables.writer import sample

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SAMPLED: Final = ("name_text", "change", "attributes")
KINDS: Final = ("created", "deleted", "changed", "duplicate", "unnamed")
_TABLES: Final = ("changes",)


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """A column that only one snapshot has, or that has different types in the two.

    Attributes:
        old: its type in the old snapshot; None if it is not there.
        new: its type in the new snapshot; None if it is not there. With two types the values are compared as text.
    """

    object_type: str
    column: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.old and self.new:
            return f"{self.object_type}.{self.column}: its type differs; compared as text"
        return f"{self.object_type}.{self.column}: only in the {'old' if self.old else 'new'} snapshot; not compared"


@dataclass(frozen=True, kw_only=True)
class DiffOptions(JobOptions):
    """Which snapshots to compare.

    Attributes:
        old: folder of the old snapshot, as `ingest` writes it.
        new: folder of the new snapshot.
        object_types: the tables to compare; by default all tables of both snapshots.
        ignore: further columns that are not compared.
        old_at: the time of the old state, for tables with a history (write append); by default their last state.
        new_at: the time of the new state. With two times, `old` and `new` may be one folder.
    """

    old: str | Path
    new: str | Path
    old_at: dt.datetime | None = None
    new_at: dt.datetime | None = None
    object_types: Sequence[str] = ()
    ignore: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class DiffResult(JobResult):
    """The differences in numbers.

    Attributes:
        types: by object type: number of rows in `old` and `new`, and number of objects by kind of change.
        attributes: by object type: how many objects changed in each attribute.
        columns: columns that only one snapshot has, or that have different types.
        old_complete: whether the landing of the old snapshot was complete; None if unknown.
        new_complete: whether the landing of the new snapshot was complete; None if unknown.
    """

    types: dict[str, dict[str, int]]
    attributes: dict[str, dict[str, int]]
    columns: tuple[ColumnNote, ...]
    old_complete: bool | None
    new_complete: bool | None

    def count(self, kind: str) -> int:
        return sum(counts[kind] for counts in self.types.values())

    def summary(self) -> dict[str, Any]:
        return {**{kind: self.count(kind) for kind in KINDS}, **super().summary()}


def diff_tables(old: DataFrame, new: DataFrame, object_type: str, *, ignore: Collection[str] = ()) -> DataFrame:
    """Return the differences of two tables of one object type, with the columns that the module docstring lists.

    Args:
        old: the old rows, with the columns that the source gives; of a table of a merge or append, its last state is
            compared.
        ignore: further columns that are not compared, such as those that `parse_messages` kept.

    Raises:
        ConfigError: a table has no column `name_text`.
    """
    old, new = state_of(old), state_of(new)
    both = _shared(old, new, ignore)
    left, right = _side(old, "old", both), _side(new, "new", both)
    joined = left.join(right, "name_text", "full_outer")
    single = (f.col("old_copies") == 1) & (f.col("new_copies") == 1)
    same = [_same(old, new, name) for name in both]
    equal = reduce(lambda one, other: one & other, same, f.lit(True))
    differing = joined.where(~f.coalesce(f.col("name_text").isNotNull() & single & equal, f.lit(False)))
    none = f.lit(None).cast("array<struct<attribute:string,old:string,new:string>>")
    attributes = f.array_compact(f.array(*(_change(old, new, name) for name in both))) if both else none
    old_copies, new_copies = (f.coalesce(f.col(name), f.lit(0)) for name in ("old_copies", "new_copies"))
    kind = (
        f.when(f.col("name_text").isNull(), "unnamed")
        .when((old_copies > 1) | (new_copies > 1), "duplicate")
        .when(old_copies == 0, "created")
        .when(new_copies == 0, "deleted")
        .otherwise("changed")
    )
    return differing.select(
        f.lit(object_type).alias("object_type"),
        "name_text",
        kind.alias("change"),
        f.when(kind == "changed", attributes).otherwise(none).alias("attributes"),
        old_copies.cast("long").alias("old_copies"),
        new_copies.cast("long").alias("new_copies"),
    )


def column_notes(
    old: DataFrame, new: DataFrame, object_type: str, *, ignore: Collection[str] = ()
) -> tuple[ColumnNote, ...]:
    """Return the columns that only one of two tables has, or that have different types; see `ColumnNote`."""
    before, after = (_counting(state_of(table), ignore) for table in (old, new))
    return tuple(
        ColumnNote(object_type, name, before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    )


def diff_snapshots(
    spark: SparkSession,
    old: str | Path,
    new: str | Path,
    *,
    object_types: Sequence[str] = (),
    ignore: Collection[str] = (),
    old_at: dt.datetime | None = None,
    new_at: dt.datetime | None = None,
) -> DataFrame:
    """Return the differences of two snapshots, all object types in one DataFrame; see the module docstring.

    Args:
        old, new, object_types, ignore, old_at, new_at: as in `DiffOptions`.

    Raises:
        SpoolError: a folder does not exist.
        ConfigError: a folder has no tables, or no history for a time, or neither snapshot has one of the object types.
    """
    before, after = Snapshot(old, at=old_at), Snapshot(new, at=new_at)
    tables = [
        diff_tables(*_pair(spark, before, after, name), name, ignore=ignore)
        for name in _types(before, after, object_types)
    ]
    return reduce(lambda one, other: one.unionByName(other), tables)


def run_diff(
    options: DiffOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> DiffResult:
    """Compare two snapshots and write `OUT/changes/objectType=X/*.parquet` and `OUT/_report/diff.json`."""
    sides = ((options.old, options.old_at), (options.new, options.new_at))
    before, after = (Snapshot(path, allow_empty=options.allow_empty, at=at) for path, at in sides)
    names = _types(before, after, options.object_types)
    job = SparkJob("diff", options.out, _TABLES, progress, format=options.format, where=options.where)
    types: dict[str, dict[str, int]] = {}
    attributes: dict[str, dict[str, int]] = {}
    notes: list[ColumnNote] = []
    samples: list[Table] = []
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        (staged.folder / "changes").mkdir()
        with before.unchanged(), after.unchanged():
            for name in names:
                with job.stage(name):
                    old, new = _pair(active, before, after, name)
                    notes.extend(column_notes(old, new, name, ignore=options.ignore))
                    place = staged.folder / "changes" / f"objectType={name}"
                    changes = job.write(diff_tables(old, new, name, ignore=options.ignore), place)
                    types[name] = {"old": old.count(), "new": new.count(), **_kinds(changes)}
                    attributes[name] = _attributes(changes)
                    samples.append(sample(f"{name}: the first changes", place, _SAMPLED))
            complete = before.complete, after.complete
        result = DiffResult(
            types=types,
            attributes={name: counts for name, counts in attributes.items() if counts},
            columns=tuple(notes),
            old_complete=complete[0],
            new_complete=complete[1],
            **job.facts,
        )
        job.finish(staged, result, _page(result, options, samples))
    return result


def _page(result: DiffResult, options: DiffOptions, samples: Sequence[Table]) -> Report:
    heads = ("object type", "old", "new", *KINDS)
    counts = [(name, *(held[key] for key in heads[1:])) for name, held in result.types.items()]
    notes = [f"{note}." for note in result.columns]
    for side, complete, seen in (("old", result.old_complete, "created"), ("new", result.new_complete, "deleted")):
        if complete is False:
            notes.append(f"The {side} snapshot is not complete: what it lacks counts as {seen}.")
    old, new = quote(str(options.old)), quote(str(options.new))
    return Report(
        title="What changed between two snapshots",
        subtitle=f"{options.old} to {options.new}",
        facts=[
            *(Fact(kind, number(result.count(kind))) for kind in KINDS),
            Fact("time", duration(result.seconds)),
        ],
        notes=notes,
        charts={
            "Changes by kind": {kind: result.count(kind) for kind in KINDS if result.count(kind)},
            **{f"{name}: changed attributes": held for name, held in result.attributes.items()},
        },
        tables=[Table("Objects", heads, counts), *samples],
        links={f"the changes of {name}": f"../changes/objectType={name}/" for name in result.types},
        steps={
            "Draw the network as it is now": f"mtosi-jms topology {new}",
            "Leave a column out": f"mtosi-jms diff {old} {new} --out {quote(str(result.out))} --ignore COLUMN",
        },
    )


def _types(before: Snapshot, after: Snapshot, requested: Sequence[str]) -> list[str]:
    """The object types to compare."""
    there = list(dict.fromkeys((*before.tables, *after.tables)))
    missing = [name for name in requested if name not in there]
    if missing:
        raise ConfigError(f"neither snapshot has a table of {', '.join(missing)}; there are {', '.join(there)}")
    return list(requested) or there


def _pair(spark: SparkSession, before: Snapshot, after: Snapshot, name: str) -> tuple[DataFrame, DataFrame]:
    """Return the old and the new table of an object type; an empty table if a snapshot has none."""
    old = before.read(spark, name) if name in before.tables else None
    new = after.read(spark, name) if name in after.tables else None
    if old is None:
        assert new is not None  # noqa: S101 - one of them has it
        return new.limit(0), new
    return old, old.limit(0) if new is None else new


def _counting(table: DataFrame, ignore: Collection[str]) -> dict[str, str]:
    """Return the columns that are compared: their types by name."""
    own = own_columns(table.columns)
    if own["name_text"] not in table.columns:
        raise ConfigError("a table of objects has a column name_text; this one has none")
    left_out = {own[name] for name in (*PROVENANCE, "name_text")} | set(ignore)
    return {
        column.name: column.dataType.simpleString()
        for column in content_fields(table.schema)
        if column.name not in left_out and not (column.name == "name" and names_type(column.dataType) == 1)
    }


def _shared(old: DataFrame, new: DataFrame, ignore: Collection[str]) -> list[str]:
    after = _counting(new, ignore)
    return [name for name in _counting(old, ignore) if name in after]


def _side(table: DataFrame, side: str, columns: Sequence[str]) -> DataFrame:
    """Return one row for each name: how many rows have it, and the content of one of these rows."""
    name = table[own_columns(table.columns)["name_text"]]
    content = f.struct(*(table[column] for column in columns)) if columns else f.struct(name)
    held = table.select(name.alias("name_text"), content.alias(side))
    return held.groupBy("name_text").agg(f.count("*").alias(f"{side}_copies"), f.first(side).alias(side))


def _same(old: DataFrame, new: DataFrame, name: str) -> Column:
    """Whether a column holds the same on both sides."""
    before, after = old.schema[name].dataType, new.schema[name].dataType
    make = comparable if before.simpleString() == after.simpleString() else text_of
    return make(f.col("old").getField(name), before).eqNullSafe(make(f.col("new").getField(name), after))


def _change(old: DataFrame, new: DataFrame, name: str) -> Column:
    """Return the name, old value and new value of a column; null if both values are the same."""
    before = text_of(f.col("old").getField(name), old.schema[name].dataType)
    after = text_of(f.col("new").getField(name), new.schema[name].dataType)
    made = f.struct(f.lit(name).alias("attribute"), before.alias("old"), after.alias("new"))
    return f.when(~_same(old, new, name), made)


def _kinds(changes: DataFrame) -> dict[str, int]:
    """Return how many objects have each kind of change; for `unnamed`, how many rows."""
    number = f.when(f.col("change") == "unnamed", f.col("old_copies") + f.col("new_copies")).otherwise(1)
    found = {row["change"]: row["n"] for row in changes.groupBy("change").agg(f.sum(number).alias("n")).collect()}
    return {kind: found.get(kind, 0) for kind in KINDS}


def _attributes(changes: DataFrame) -> dict[str, int]:
    """Return how many objects changed in each attribute, the most frequent attributes first."""
    each = changes.select(f.explode("attributes").alias("a")).groupBy("a.attribute").count()
    return {row["attribute"]: row["count"] for row in each.orderBy(f.desc("count"), "attribute").collect()}
