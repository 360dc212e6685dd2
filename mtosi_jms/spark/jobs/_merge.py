"""What news make of a table: facts of objects, in the order of their times, folded into states or into a history.

docs/design/lake.md says what a fact is and why the order in which facts arrive does not matter. Everything here is
DataFrames in, DataFrame out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark._columns import PROVENANCE, own_columns
from mtosi_jms.spark.jobs._checkpoint import Closing
from mtosi_jms.spark.jobs._events import FULL
from mtosi_jms.spark.jobs._expressions import comparable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MERGE: Final = "merge"
APPEND: Final = "append"
REMOVED: Final = "_removed"
BEFORE: Final = "_before"
PRESENT: Final = "present"
FACTS: Final = "_facts"
TIMES: Final[Mapping[str, tuple[str, ...]]] = {MERGE: ("as_of",), APPEND: ("valid_from", "valid_to")}
_GONE, _FULL, _TOLD = 0, 1, 2
_ROW: Final = "_row"
_FACT: Final = ("_time", "_rank", "_id", "_told")
_ORIGIN: Final = ("_source", "_whole")
"""Of a fact in a history besides: the file that told it, and whether its sequence is complete. A row has several facts,
and a late message may part it.
"""
_FACT_TYPE: Final = "struct<_time:timestamp,_rank:int,_id:bigint,_told:array<string>>"


@dataclass(frozen=True)
class News:
    """What is new about the objects of one type.

    Attributes:
        objects: rows as the source gives them, of responses.
        times: `source_file`, `_time` and `_sequence` of each response; the last is null where it is incomplete.
        events: rows of `event_rows`, of this type, without deletions.
        told: the columns of which some change tells, or told in an earlier run.
        closings: of this run, also answers; and those that are remembered.
    """

    objects: DataFrame
    times: DataFrame
    events: DataFrame | None
    closings: Sequence[Closing]
    remembered: Sequence[Closing]
    told: Collection[str] = ()


class TableMerge:
    """One table and what is to become of it.

    Args:
        spark: the session.
        write: merge or append.
        object_type: its label.
        table: as it is, None where there is none yet.
        news: what is new.
        files: column of the table with the file of each row, where only files that change are made again.
        few: whether there is so little news that one task does it all.

    Raises:
        ConfigError: the table is not one that grows, or a column of it has another type than in the news.
    """

    def __init__(
        self,
        spark: SparkSession,
        write: str,
        object_type: str,
        table: DataFrame | None,
        news: News,
        files: str | None = None,
        *,
        few: bool = False,
    ) -> None:
        if table is not None and not {FACTS, PRESENT, *TIMES[write]} <= set(table.columns):
            raise ConfigError(f"the table of {object_type} was not made by write {write}: ingest into another folder")
        self._spark = spark
        self._write = write
        self._type = object_type
        self._table = table
        self._files = files
        self._few = few
        self._news = news
        self._given = news.objects.columns
        own = own_columns(self._given)
        self._key = own["name_text"]
        self._file = own["source_file"]
        self._complete = own["complete"]
        provenance = {own.get(name, name) for name in PROVENANCE}
        ours = {self._key, PRESENT, FACTS, *TIMES[MERGE], *TIMES[APPEND]}
        before = [name for name in table.columns if name not in ours] if table is not None else []
        columns = [name for name in self._given if name != self._key]
        self._columns = [*columns, *(name for name in before if name not in columns)]
        self._content = [name for name in self._columns if name not in provenance]
        self._provenance = [name for name in self._columns if name in provenance]
        self.added = _added(table, news.objects) if table is not None else []
        self._schema = news.objects.schema if table is None else _fitted(table, news.objects.schema).drop(*ours).schema
        self._told = [name for name in self._content if name in news.told]
        self._kinds = {field.name: field.dataType for field in self._schema}

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._table is not None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell the rows of the table apart."""
        return (self._key,) if self._write == MERGE else (self._key, TIMES[APPEND][0])

    def fitted(self, table: DataFrame) -> DataFrame:
        """The table, or some files of it, with all columns that it will have."""
        return _fitted(table, self._news.objects.schema)

    @property
    def closes(self) -> bool:
        """Whether the news end objects of which they say nothing else."""
        return bool(self._mine(self._news.closings))

    @property
    def _fact(self) -> tuple[str, ...]:
        """The fields of a fact in the table."""
        return _FACT if self._write == MERGE else (*_FACT, *_ORIGIN)

    @property
    def key(self) -> str:
        """The column of names."""
        return self._key

    def knows(self) -> bool:
        """Whether the table has any object that the news are about."""
        if self._table is None:
            return False
        names = self._names().select(f.col("_name").alias(self._key))
        return self._table.select(self._key).join(f.broadcast(names), self._key, "left_semi").head() is not None

    def rows(self) -> DataFrame:
        """The rows of objects of which the table has none."""
        facts, _ = self._facts(None)
        return self._table_rows(self._states(self._once(facts))).withColumnRenamed("_name", self._key)

    def changes(self, table: DataFrame) -> DataFrame:
        """The rows that are new, take the place of others, or are to be removed; all others stay.

        `REMOVED` marks the latter, of which only the keys are given. `BEFORE` is the file, or for tables that Spark
        commits an empty text, of the row with the same keys that is there; null where there is none.

        Args:
            table: all of it, or the files that have rows of objects that the news are about.
        """
        files = f.lit("") if self._files is None else f.col(self._files)
        old = self.fitted(table.withColumn(BEFORE, files)).withColumnRenamed(self._key, "_name")
        facts, closed = self._facts(old)
        told = self._names()
        mine = self._affected(old, told, closed)
        held = mine.withColumn("_fact", f.explode(FACTS))
        fact = [f.col(f"_fact.{name}").alias(name) for name in self._fact]
        held = held.select("_name", *fact, self._held(held), f.lit(0).alias("_new"))
        made = self._table_rows(self._states(self._once(facts.unionByName(held))))
        return self._differences(made, mine).withColumnRenamed("_name", self._key)

    def _facts(self, old: DataFrame | None) -> tuple[DataFrame, DataFrame | None]:
        """What is new; and of it, what is closed."""
        news = self._told_news()
        if self._write == APPEND:
            news = news.withColumns({"_source": f.col(_ROW)[self._file], "_whole": f.col(_ROW)[self._complete]})
        closed = self._closed(self._names(), old)
        return (news if closed is None else news.unionByName(closed, allowMissingColumns=True)), closed

    def _affected(self, old: DataFrame, told: DataFrame, closed: DataFrame | None) -> DataFrame:
        """The rows of the table that the news may change."""
        if any(one.object_type == self._type for one in self._news.closings):
            return old
        names = told.select("_name")
        if closed is not None:
            names = names.unionByName(closed.select("_name"))
        return old.join(names.distinct(), "_name", "left_semi")

    def _differences(self, made: DataFrame, before: DataFrame) -> DataFrame:
        """Rows as they are to be, without those that are there already; with those that are to be removed."""
        keys = ["_name", *self.keys[1:]]
        same = [*TIMES[self._write], PRESENT, self._complete, FACTS]
        if self._write == APPEND:  # what a row says depends on earlier facts too
            same.append("_print")
            made, before = (rows.withColumn("_print", _digest(rows, self._content)) for rows in (made, before))
        known = before.select(*keys, BEFORE, f.struct(*same).alias("_known"))
        if self._write == MERGE:  # a name that is there stays
            both, removed = made.join(known, keys, "left"), f.lit(False)
        else:
            both, removed = made.join(known, keys, "full"), f.col(FACTS).isNull()
        fresh = both.where(removed | ~f.struct(*same).eqNullSafe(f.col("_known")))
        columns = [name for name in made.columns if name != "_print"]
        return fresh.select(*columns, removed.alias(REMOVED), BEFORE)

    def _table_rows(self, rows: DataFrame) -> DataFrame:
        return rows.select("_name", *self._columns, PRESENT, *TIMES[self._write], FACTS)

    def _held(self, rows: DataFrame) -> Column:
        """The row that each of its facts, `_fact`, led to; of a fact of another message only its origin is known."""
        if self._write == MERGE:
            return self._packed(rows)
        origin = {self._file: f.col("_fact._source"), self._complete: f.col("_fact._whole")}
        mine = f.lit(True)
        for name, told in origin.items():
            mine = mine & f.col(name).eqNullSafe(told)
        known = {name: origin.get(name, f.when(mine, f.col(name))) for name in self._provenance}
        return f.struct(*(known.get(name, f.col(name)).alias(name) for name in self._columns)).alias(_ROW)

    def _packed(self, rows: DataFrame) -> Column:
        """The columns of the table as one, which is null in no row; those that the rows lack are empty."""
        kinds = self._kinds
        there = set(rows.columns)
        fields = [f.col(name) if name in there else f.lit(None).cast(kinds[name]).alias(name) for name in self._columns]
        return f.struct(*fields).alias(_ROW)

    def _names(self) -> DataFrame:
        """The names that messages tell of, with the complete sequence that does."""
        objects = self._news.objects.select(f.col(self._key).alias("_name"), f.col(self._file).alias("source_file"))
        times = self._news.times.select("source_file", "_sequence")
        told = objects.where(f.col("_name").isNotNull()).join(f.broadcast(times), "source_file")
        told = told.select("_name", "_sequence")
        if self._news.events is not None:
            names = self._news.events.where(f.col("_name") != "")
            told = told.unionByName(names.select("_name", f.lit(None).cast("string").alias("_sequence")))
        return told.distinct()

    def _told_news(self) -> DataFrame:
        """The facts that messages tell."""
        objects = _fitted(self._news.objects, self._schema).withColumnRenamed(self._key, "_name")
        objects = objects.where(f.col("_name").isNotNull())
        times = self._news.times.select(f.col("source_file").alias(self._file), "_time")
        said = objects.join(f.broadcast(times), self._file)
        told = f.lit(None).cast("array<string>").alias("_told")
        facts = said.select(
            "_name",
            "_time",
            f.lit(_FULL).alias("_rank"),
            _digest(said, self._content).alias("_id"),
            told,
            self._packed(said),
            f.lit(1).alias("_new"),
        )
        if self._news.events is None:
            return facts
        events = _fitted(self._news.events.drop(self._key), self._schema).where(f.col("_name") != "")
        told_as = f.when(f.col("_fact") != FULL, f.to_json("_told"))
        spread = events.select(
            "_name",
            "_time",
            f.when(f.col("_fact") == FULL, _FULL).otherwise(_TOLD).alias("_rank"),
            _digest(events, self._content, told_as).alias("_id"),
            "_told",
            self._packed(events),
            f.lit(1).alias("_new"),
        )
        return facts.unionByName(spread)

    def _closed(self, told: DataFrame, old: DataFrame | None) -> DataFrame | None:
        """That objects are gone, since an object above them is, or a complete answer does not have them."""
        names = told.select("_name").distinct()
        closed = []
        if self._mine(self._news.closings):
            there = names if old is None else names.unionByName(old.select("_name")).distinct()
            pairs = self._closing_pairs(there, self._news.closings)
            if any(one.object_type for one in self._mine(self._news.closings)):
                pairs = pairs.join(told.where("_sequence is not null"), ["_name", "_sequence"], "left_anti")
            closed.append(pairs)
        if self._mine(self._news.remembered):
            unknown = names if old is None else names.join(old.select("_name"), "_name", "left_anti")
            closed.append(self._closing_pairs(unknown, self._news.remembered))
        if not closed:
            return None
        both = closed[0] if len(closed) == 1 else closed[0].unionByName(closed[1])
        return both.selectExpr("_name", "_time", *_GONE_FACT).distinct()

    def _mine(self, closings: Sequence[Closing]) -> list[Closing]:
        return [one for one in closings if one.name or one.object_type == self._type]

    def _closing_pairs(self, names: DataFrame, closings: Sequence[Closing]) -> DataFrame:
        """Names with the closings that end them: time, and the sequence that did."""
        mine = self._mine(closings)
        rows = pa.table(
            {
                "_above": pa.array([one.name for one in mine], pa.string()),
                "_time": pa.array([one.time for one in mine], pa.timestamp("us", tz="UTC")),
                "_sequence": pa.array([one.sequence for one in mine], pa.string()),
            }
        )
        above = f.explode(f.array_append(_name_and_above(f.col("_name")), "")).alias("_above")
        return (
            names.select("_name", above).join(f.broadcast(self._spark.createDataFrame(rows)), "_above").drop("_above")
        )

    def _once(self, facts: DataFrame) -> DataFrame:
        """Each fact once: of equal ones that of a complete sequence, then newest and by file, or by file and newest."""
        equal = Window.partitionBy("_name", "_time", "_rank", "_id")
        newest, file = f.col("_new").desc(), f.col(_ROW)[self._file].asc_nulls_last()
        after = (file, newest) if self._write == APPEND else (newest, file)
        first = [f.col(_ROW)[self._complete].desc_nulls_last(), *after]
        # All that follows finds the facts of a name in one place.
        together = facts.coalesce(1) if self._few else facts.repartition(f.col("_name"))
        numbered = together.withColumn("_copy", f.row_number().over(equal.orderBy(*first)))
        return numbered.where("_copy = 1").drop("_copy")

    def _states(self, facts: DataFrame) -> DataFrame:
        """The states that facts lead to."""
        told = self._told
        order = Window.partitionBy("_name").orderBy("_time", "_rank", "_id")
        rank = f.col("_rank")
        # A row comes from the last message that says something: of a deleted object nothing older is remembered.
        says = (rank != _TOLD) | (f.size("_told") > 0)

        def last(value: Column, sets: Column) -> Column:
            return f.last(f.when(sets, f.struct(value.alias("v"))), ignorenulls=True).over(order)["v"]

        states = facts.select(
            "_name",
            *self._fact,
            last(f.col(_ROW), rank != _TOLD).alias("_full"),
            last(f.struct(*(f.col(_ROW)[name].alias(name) for name in self._provenance)), says).alias("_from"),
            *(last(f.col(_ROW)[name], (rank != _TOLD) | f.array_contains("_told", name)).alias(name) for name in told),
            f.coalesce(last(rank == _FULL, rank != _TOLD), f.lit(False)).alias(PRESENT),
            f.lead("_time").over(order).alias("_next"),
        )
        return self._last_states(states, told) if self._write == MERGE else self._history(states, told)

    def _unpacked(self, told: Sequence[str]) -> list[Column]:
        """The columns of the table from those of `_states`."""
        content = [f.col(f"_full.{name}").alias(name) for name in self._content if name not in told]
        return [*content, *(f.col(f"_from.{name}").alias(name) for name in self._provenance), *map(f.col, told)]

    def _last_states(self, states: DataFrame, told: Sequence[str]) -> DataFrame:
        whole = Window.partitionBy("_name")
        held = states.withColumn("_all", f.array_sort(f.collect_list(f.struct(*_FACT)).over(whole)))
        held = held.where(f.col("_next").isNull()).withColumn(FACTS, _needed(f.col("_all")))
        as_of = f.array_max(f.transform(FACTS, lambda fact: fact["_time"])).alias("as_of")
        return held.select("_name", *self._unpacked(told), PRESENT, as_of, FACTS)

    def _history(self, states: DataFrame, told: Sequence[str]) -> DataFrame:
        """Each time in which nothing changed as one row."""
        order = Window.partitionBy("_name").orderBy("_time")
        instant = Window.partitionBy("_name", "_time")
        steps = states.withColumn("_instant", f.collect_list(f.struct(*self._fact)).over(instant))
        steps = steps.where(f.col("_next").isNull() | (f.col("_next") > f.col("_time")))
        steps = steps.select("_name", "_time", "_instant", PRESENT, *self._unpacked(told))
        steps = steps.withColumn("_print", f.concat(f.col(PRESENT).cast("string"), _text(steps, self._content)))
        begins = ~f.col("_print").eqNullSafe(f.lag("_print").over(order))
        steps = steps.withColumn("_begins", begins.cast("int")).drop("_print")
        steps = steps.withColumn("_run", f.sum("_begins").over(order))
        run = Window.partitionBy("_name", "_run")
        steps = (
            steps.withColumn("valid_from", f.min("_time").over(run))
            .withColumn(FACTS, f.array_sort(f.flatten(f.collect_list("_instant").over(run))))
            .withColumn("_last", f.max("_time").over(run))
            .where(f.col("_time") == f.col("_last"))
        )
        return steps.withColumn(
            "valid_to", f.lead("valid_from").over(Window.partitionBy("_name").orderBy("valid_from"))
        )


_GONE_FACT: Final = ("0 AS _rank", "0L AS _id", "CAST(NULL AS array<string>) AS _told", "1 AS _new")


def told_columns(table: DataFrame) -> set[str]:
    """The columns of which some change tells in a table that grows."""
    told = f.flatten(f.filter(f.col(f"{FACTS}._told"), f.isnotnull))
    return {row["name"] for row in table.select(f.explode(told).alias("name")).distinct().collect()}


def _needed(facts: Column) -> Column:
    """Of all facts of a name, in order, those that a later message can still bring to bear."""

    def place(fact: Column) -> Column:
        return f.struct(fact["_time"], fact["_rank"], fact["_id"])

    last = f.array_max(f.transform(f.filter(facts, lambda fact: fact["_rank"] != _TOLD), place))
    later = f.filter(facts, lambda fact: (fact["_rank"] == _TOLD) & (last.isNull() | (place(fact) > last)))

    def shown(fact: Column) -> Column:
        def hidden(name: Column) -> Column:
            return f.exists(later, lambda other: (place(other) > place(fact)) & f.array_contains(other["_told"], name))

        told = f.filter(fact["_told"], lambda name: ~hidden(name))
        return f.struct(
            fact["_time"].alias("_time"), fact["_rank"].alias("_rank"), fact["_id"].alias("_id"), told.alias("_told")
        )

    base = f.filter(facts, lambda fact: place(fact) == last)
    base = f.coalesce(base, f.array().cast(f"array<{_FACT_TYPE}>"))
    kept = f.filter(f.transform(later, shown), lambda fact: f.size(fact["_told"]) > 0)
    return f.concat(base, kept)


def _name_and_above(name: Column) -> Column:
    """A full name and those of the objects around it."""
    parts = f.split(name, "/")
    return f.transform(f.sequence(f.lit(1), f.size(parts)), lambda count: f.array_join(f.slice(parts, 1, count), "/"))


def _digest(table: DataFrame, columns: Sequence[str], *more: Column) -> Column:
    """A hash of columns, equal for equal content; of plain ones without a detour by a text."""
    kinds = {field.name: field.dataType for field in table.schema}
    nested = [name for name in columns if isinstance(kinds[name], StructType | ArrayType | MapType)]
    plain = sorted(set(columns) - set(nested))
    # The hash passes over nulls, so it is told where they are.
    nulls = (f.when(f.col(name).isNull(), "0").otherwise("1") for name in plain)
    return f.xxhash64(*more, *plain, f.concat(f.lit(""), *nulls), _text(table, nested))


def _text(table: DataFrame, columns: Sequence[str]) -> Column:
    """Columns as one text, equal for equal content."""
    kinds = {field.name: field.dataType for field in table.schema}
    return f.to_json(f.struct(*(comparable(f.col(name), kinds[name]).alias(name) for name in sorted(columns))))


def _added(table: DataFrame, rows: DataFrame) -> list[tuple[str, str]]:
    """The columns, and fields in structs, that a table lacks: their names and types as SQL writes them.

    Raises:
        ConfigError: a column has another type.
    """
    return list(_lacking(table.schema, rows.schema, ()))


def _lacking(old: StructType, new: StructType, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for field in new:
        path = (*above, field.name)
        if field.name not in old.names:
            yield ".".join(f"`{part}`" for part in path), field.dataType.simpleString()
        else:
            yield from _different(old[field.name].dataType, field.dataType, path)


def _different(old: DataType, new: DataType, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(old, StructType) and isinstance(new, StructType):
        yield from _lacking(old, new, path)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _different(old.elementType, new.elementType, (*path, "element"))
    elif old.simpleString() != new.simpleString():
        kinds = f"{old.simpleString()} in the table and {new.simpleString()} now"
        raise ConfigError(f"column {'.'.join(path)} is {kinds}: ingest into another folder")


def _fitted(table: DataFrame, schema: StructType) -> DataFrame:
    """A table with the columns of a schema that it lacks, empty; its structs with all fields that those there have."""
    changed: dict[str, Any] = {}
    for field in schema:
        if field.name not in table.columns:
            changed[field.name] = f.lit(None).cast(field.dataType)
        elif table.schema[field.name].dataType != field.dataType:
            changed[field.name] = _cast(f.col(field.name), table.schema[field.name].dataType, field.dataType)
    return table.withColumns(changed) if changed else table


def _cast(value: Column, old: DataType, new: DataType) -> Column:
    """A value of one type in the union of two, by the names of fields."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        fields = []
        for name in dict.fromkeys((*old.names, *new.names)):
            if name not in old.names:
                field = f.lit(None).cast(new[name].dataType)
            elif name not in new.names:
                field = value[name]
            else:
                field = _cast(value[name], old[name].dataType, new[name].dataType)
            fields.append(field.alias(name))
        return f.when(value.isNotNull(), f.struct(*fields))
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return f.transform(value, lambda item: _cast(item, old.elementType, new.elementType))
    return value
