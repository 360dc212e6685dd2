"""What changed between two snapshots: objects created and deleted, and the attributes that changed.

There is one row for each object that differs; docs/spark.md has the columns. Objects are identified by their full
names. If a snapshot has several rows with one name, the name is a `duplicate` and not compared. Objects without a name
are only counted. Columns of provenance, those that the source derives from the name, and those that only one snapshot
has (`column_notes`) are not compared.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from mtosi_jms.errors import ConfigError
from mtosi_jms.report import Fact, Report, Table, duration, number
from mtosi_jms.tables.columns import PROVENANCE, names_type, own_columns
from mtosi_jms.tables.ingest import Engine
from mtosi_jms.tables.job import JobOptions, JobResult, Progress, Staging
from mtosi_jms.tables.snapshots import Snapshot, choose_for, name_column
from mtosi_jms.tables.sql import ROW, LocalJob, Sql, SqlJob
from mtosi_jms.tables.writer import batches, sample

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = [
    "KINDS",
    "TABLES",
    "ColumnNote",
    "DiffOptions",
    "DiffResult",
    "choose",
    "compare",
    "differences",
    "notes_on",
    "page_of",
    "pair",
    "run_local",
    "snapshots_of",
    "types_of",
]

_SAMPLED: Final = ("name_text", "change", "attributes")
KINDS: Final = ("created", "deleted", "changed", "duplicate", "unnamed")
TABLES: Final = ("changes",)
_ATTRIBUTE: Final = pa.struct([("attribute", pa.string()), ("old", pa.string()), ("new", pa.string())])
_CHANGES: Final = pa.schema(
    [
        ("object_type", pa.string()),
        ("name_text", pa.string()),
        ("change", pa.string()),
        ("attributes", pa.list_(_ATTRIBUTE)),
        ("old_copies", pa.int64()),
        ("new_copies", pa.int64()),
    ]
)
_SIMPLE: Final = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "bool": "boolean",
    "date32[day]": "date",
    "large_string": "string",
}
"""The names that Spark has for types, by those of Arrow."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """A column that only one snapshot has, or that has different types in the two. `old`: its type in the old snapshot;
    None if it is not there. `new`: its type in the new snapshot; None if it is not there. With two types the values are
    compared as text."""

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
    """The differences in numbers. `types`: by object type: number of rows in `old` and `new`, and of objects by kind of
    change. `attributes`: by object type: how many objects changed in each. `columns`: those that only one snapshot has,
    or that have different types. `old_complete`, `new_complete`: whether the landing of the snapshot was complete; None
    if unknown."""

    types: dict[str, dict[str, int]]
    attributes: dict[str, dict[str, int]]
    columns: tuple[ColumnNote, ...]
    old_complete: bool | None
    new_complete: bool | None

    def count(self, kind: str) -> int:
        return sum(counts[kind] for counts in self.types.values())

    def summary(self) -> dict[str, Any]:
        return {**{kind: self.count(kind) for kind in KINDS}, **super().summary()}


def choose(options: DiffOptions, engine: Engine = "auto") -> tuple[Engine, str]:
    """Choose the engine of the job, and say why; see `mtosi_jms.tables.snapshots.choose_for`."""
    return choose_for(engine, options, lambda: snapshots_of(options))


def snapshots_of(options: DiffOptions) -> tuple[Snapshot, Snapshot]:
    """Find the snapshots. Raises SpoolError: a folder does not exist; ConfigError: a folder is no snapshot, or neither
    has a table of a type that is asked for."""
    sides = ((options.old, options.old_at), (options.new, options.new_at))
    before, after = (Snapshot(path, allow_empty=options.allow_empty, at=at) for path, at in sides)
    types_of(before, after, options.object_types)
    return before, after


def run_local(options: DiffOptions, *, progress: Progress | None = None) -> DiffResult:
    """Write `OUT/changes/objectType=X/*.parquet` and `OUT/_report/diff.json` without Spark. Raises ConfigError,
    SpoolError, SpoolInUseError: as `mtosi_jms.tables.ingest.run_local`; MtosiError: a snapshot was replaced while it
    was read."""
    choose(options, "local")
    sides = snapshots_of(options)
    job = LocalJob("diff", options.out, TABLES, progress, format=options.format, where=options.where)
    with job.working() as staged:
        return compare(job, staged, options, sides, lambda held, name: job.sql.parquet(held.tables[name]))


def compare(
    job: SqlJob[T],
    staged: Staging,
    options: DiffOptions,
    sides: tuple[Snapshot, Snapshot],
    table: Callable[[Snapshot, str], T],
) -> DiffResult:
    """Make the tables and the page. `table`: reads the table of an object type."""
    before, after = sides
    types: dict[str, dict[str, int]] = {}
    attributes: dict[str, dict[str, int]] = {}
    notes: list[ColumnNote] = []
    samples: list[Table] = []
    (staged.folder / "changes").mkdir()
    with before.unchanged(), after.unchanged():
        for name in types_of(before, after, options.object_types):
            with job.stage(name):
                old, new = pair(job.sql, before, after, name, table)
                notes.extend(notes_on(job.sql, old, new, name, options.ignore))
                place = staged.folder / "changes" / f"objectType={name}"
                job.write(differences(job.sql, old, new, name, options.ignore), place)
                kinds, attributes[name] = _counts(place)
                types[name] = {"old": _count(job.sql, old), "new": _count(job.sql, new), **kinds}
                samples.append(sample(f"{name}: the first changes", place, _SAMPLED))
        complete = before.complete, after.complete
    result = DiffResult(
        samples=tuple(samples),
        types=types,
        attributes={name: counts for name, counts in attributes.items() if counts},
        columns=tuple(notes),
        old_complete=complete[0],
        new_complete=complete[1],
        **job.facts,
    )
    job.finish(staged, result, page_of(result, options))
    return result


def page_of(result: DiffResult, options: DiffOptions) -> Report:
    """Return the page of the job."""
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
        tables=[Table("Objects", heads, counts)],
        samples=result.samples,
        links={f"the changes of {name}": f"../changes/objectType={name}/" for name in result.types},
        steps={
            "Draw the network as it is now": f"mtosi-jms topology {new}",
            "Leave a column out": f"mtosi-jms diff {old} {new} --out {quote(str(result.out))} --ignore COLUMN",
        },
    )


def types_of(before: Snapshot, after: Snapshot, requested: Sequence[str]) -> list[str]:
    """Return the object types to compare. Raises ConfigError: neither snapshot has one that is requested."""
    there = list(dict.fromkeys((*before.tables, *after.tables)))
    missing = [name for name in requested if name not in there]
    if missing:
        raise ConfigError(f"neither snapshot has a table of {', '.join(missing)}; there are {', '.join(there)}")
    return list(requested) or there


def pair(sql: Sql[T], before: Snapshot, after: Snapshot, name: str, table: Callable[[Snapshot, str], T]) -> tuple[T, T]:
    """Return the old and the new table of an object type; an empty one if a snapshot has none."""
    old, new = (table(held, name) if name in held.tables else None for held in (before, after))
    there = new if old is None else old
    assert there is not None  # noqa: S101 - `types_of` names the types of both
    none = sql.sql("SELECT * FROM {table} LIMIT 0", table=there)
    return none if old is None else old, none if new is None else new


def notes_on(sql: Sql[T], old: T, new: T, object_type: str, ignore: Collection[str]) -> tuple[ColumnNote, ...]:
    """Return the columns that only one of two tables has, or that have different types; see `ColumnNote`."""
    before, after = (_compared(sql.schema(table), ignore) for table in (old, new))
    return tuple(
        ColumnNote(object_type, name, before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    )


def _compared(schema: pa.Schema, ignore: Collection[str]) -> dict[str, str]:
    own = own_columns(schema.names)
    left_out = {own[name] for name in PROVENANCE} | {name_column(schema.names), *ignore}
    return {
        field.name: _type_name(field.type)
        for field in _content(schema)
        if field.name not in left_out and not (field.name == "name" and names_type(field.type) == 1)
    }


def _content(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """Return fields without the `..._raw` ones, which hold the XML of open content that a map beside them has, too.

    The XML may differ in prefixes and white space without meaning, so only the map is compared.
    """
    held = list(fields)
    raw = {f"{field.name}_raw" for field in held if pa.types.is_map(field.type)}
    return [field for field in held if field.name not in raw]


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{_type_name(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{_type_name(kind.key_type)},{_type_name(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{_type_name(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "timestamp" if pa.types.is_timestamp(kind) else _SIMPLE.get(str(kind), str(kind))


def differences(sql: Sql[T], old: T, new: T, object_type: str, ignore: Collection[str]) -> T:
    """Return the differences of two tables of one object type, with the columns that docs/spark.md lists.

    Names and a digest of each row are joined first; then rows that differ are taken, and compared column by column.
    Raises ConfigError: a table has no column `name_text`.
    """
    before, after = (_compared(sql.schema(table), ignore) for table in (old, new))
    both = [name for name in before if name in after]
    digests, rows = {}, {}
    for side, table in (("old", old), ("new", new)):
        name = name_column(sql.schema(table).names)
        content = sql.select(table, [name, *both])
        text = f"SELECT {name} AS name_text, {sql.row} AS held FROM {{content}} AS {ROW}"  # noqa: S608
        rows[side] = sql.sql(text, content=content)
        text = f"""
            SELECT name_text, count(*) AS copies, min(digest) AS digest
            FROM (SELECT {name} AS name_text, md5({sql.json}) AS digest FROM {{content}} AS {ROW}) AS each_row
            GROUP BY name_text
        """  # noqa: S608 - columns of our own
        digests[side] = sql.sql(text, content=content)
    text = """
        SELECT coalesce(a.name_text, b.name_text) AS name_text,
               coalesce(a.copies, 0) AS old_copies, coalesce(b.copies, 0) AS new_copies
        FROM {old} AS a FULL JOIN {new} AS b ON a.name_text = b.name_text
        WHERE a.copies IS DISTINCT FROM 1 OR b.copies IS DISTINCT FROM 1 OR a.digest IS DISTINCT FROM b.digest
    """
    differing = sql.sql(text, **digests)
    text = """
        SELECT differing.name_text, old_copies, new_copies, a.held AS old, b.held AS new
        FROM {differing} AS differing
        LEFT JOIN {old} AS a ON a.name_text = differing.name_text AND old_copies = 1 AND new_copies = 1
        LEFT JOIN {new} AS b ON b.name_text = differing.name_text AND old_copies = 1 AND new_copies = 1
    """
    held = sql.sql(text, differing=differing, **rows)
    return sql.each(held, partial(_changes, object_type, both), _CHANGES)


def _changes(object_type: str, columns: Sequence[str], batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Make rows of changes from names with their numbers of rows, and both rows of a name that each side has once."""
    for batch in batches:
        kinds = [{field.name: field.type for field in batch.schema.field(side).type} for side in ("old", "new")]
        rows = [row for held in batch.to_pylist() if (row := _change(object_type, columns, held, *kinds)) is not None]
        yield pa.RecordBatch.from_pylist(rows, schema=_CHANGES)


def _change(
    object_type: str,
    columns: Sequence[str],
    held: dict[str, Any],
    old_kinds: dict[str, pa.DataType],
    new_kinds: dict[str, pa.DataType],
) -> dict[str, Any] | None:
    """Return a row of changes; None if both rows say the same, in other words."""
    old, new, attributes = held["old"], held["new"], None
    if held["name_text"] is None:
        change = "unnamed"
    elif held["old_copies"] > 1 or held["new_copies"] > 1:
        change = "duplicate"
    elif not held["old_copies"]:
        change = "created"
    elif not held["new_copies"]:
        change = "deleted"
    else:
        change = "changed"
        texts = ((name, _text(old[name], old_kinds[name]), _text(new[name], new_kinds[name])) for name in columns)
        attributes = [dict(zip(("attribute", "old", "new"), each, strict=True)) for each in texts if each[1] != each[2]]
        if not attributes:
            return None
    copies = {name: held[name] for name in ("name_text", "old_copies", "new_copies")}
    return {"object_type": object_type, "change": change, "attributes": attributes, **copies}


def _text(value: Any, kind: pa.DataType) -> str | None:
    """Return a value as text: JSON for structs, lists and maps; None stays None."""
    if value is None:
        return None
    if isinstance(value, dict | list):
        return _json(value, kind)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        utc = (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).replace(tzinfo=None)
        return f"{utc.isoformat(timespec='microseconds' if utc.microsecond % 1000 else 'milliseconds')}Z"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _json(value: Any, kind: pa.DataType) -> str:
    """Return a value as JSON: structs without fields that are null, maps with sorted keys, as they have no order."""
    if value is None:
        return "null"
    if pa.types.is_list(kind):
        return f"[{','.join(_json(item, kind.value_type) for item in value)}]"
    if pa.types.is_struct(kind):
        held = [(field.name, value[field.name], field.type) for field in _content(kind)]
        entries = [entry for entry in held if entry[1] is not None]
    elif pa.types.is_map(kind):
        entries = [(*entry, kind.item_type) for entry in sorted(value, key=lambda entry: str(entry[0]))]
    else:
        text = str(_text(value, kind))
        is_plain = isinstance(value, bool | int | float | Decimal)
        return text if is_plain else json.dumps(text, ensure_ascii=False)
    inside = (f"{json.dumps(name, ensure_ascii=False)}:{_json(item, type_)}" for name, item, type_ in entries)
    return f"{{{','.join(inside)}}}"


def _count(sql: Sql[T], table: T) -> int:
    ((count,),) = sql.rows(sql.sql("SELECT count(*) FROM {table}", table=table))
    return int(count)


def _counts(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Count in a written table of changes the objects by kind of change, for `unnamed` the rows, and the objects that
    changed in each attribute, the most frequent attributes first."""
    kinds, attributes = Counter[str](), Counter[str]()
    for batch in batches(folder, ["change", "attributes", "old_copies", "new_copies"]):
        for change, old, new in zip(*(batch.column(at).to_pylist() for at in (0, 2, 3)), strict=True):
            kinds[change] += old + new if change == "unnamed" else 1
        attributes.update(pc.struct_field(pc.list_flatten(batch.column(1)), "attribute").to_pylist())
    ordered = sorted(attributes.items(), key=lambda item: (-item[1], item[0]))
    return {kind: kinds[kind] for kind in KINDS}, dict(ordered)
