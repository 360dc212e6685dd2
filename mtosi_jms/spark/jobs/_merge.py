"""The merge of news into a table: facts about objects, ordered by time, give the last state or the history of each.

docs/design/lake.md explains what a fact is and why the order in which facts arrive does not matter. All functions here
take DataFrames and return a DataFrame.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Observation, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark.jobs._checkpoint import Closing
from mtosi_jms.spark.jobs._events import FULL
from mtosi_jms.tables.columns import PROVENANCE, own_columns
from mtosi_jms.tables.ingest import APPEND, MERGE
from mtosi_jms.tables.snapshots import FACTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REMOVED: Final = "_removed"
PRESENT: Final = "present"
TIMES: Final[Mapping[str, tuple[str, ...]]] = {MERGE: ("as_of",), APPEND: ("valid_from", "valid_to")}
_GONE, _FULL, _CHANGE = 0, 1, 2
_NEVER: Final = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)
_ROW: Final = "_row"
_FACT: Final = ("_time", "_rank", "_id", "_told")
"""The fields of a fact in the column `_facts`."""
_ORIGIN: Final = ("_source", "_whole")
"""Further fields of a fact in a history: its file, and whether its sequence is complete. A late message may split a row
that has several facts, and each part then needs its own file.
"""
_FACT_TYPE: Final = "struct<_time:timestamp,_rank:int,_id:bigint,_told:array<string>>"


@dataclass(frozen=True)
class Counts:
    """What a load does to the objects of one type, in numbers of objects.

    Attributes:
        rows: how many rows are written.
        replaces: how many of them replace rows of the table.
        removes: how many rows are removed.
    """

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    ended: int = 0
    rows: int = 0
    replaces: int = 0
    removes: int = 0


@dataclass(frozen=True)
class News:
    """What is new about the objects of one type.

    Attributes:
        objects: rows of responses, as the source gives them.
        times: `source_file`, `_time` and `_sequence` of each message; `_sequence` is null if it is incomplete.
        events: rows of `event_rows` of this type, without deletions; None if there are none.
        changed_columns: the columns that attribute changes set, in this run or an earlier one.
    """

    objects: DataFrame
    times: DataFrame
    events: DataFrame | None
    closings: Sequence[Closing]
    remembered: Sequence[Closing]
    changed_columns: Collection[str]


def state_of(table: DataFrame, at: dt.datetime | None = None) -> DataFrame:
    """Return the objects that a table has at a time, as an ingest that replaces its tables would have written them.

    Args:
        table: of any ingest; one that replaces its tables keeps one state only, and its table is returned unchanged.
        at: the time, for a table that keeps its history (`append`); by default the last state. A time without a zone is
            in UTC.

    Raises:
        ConfigError: `at` is given, and the table has no history.
    """
    grows = {FACTS, PRESENT} <= set(table.columns)
    history = grows and set(TIMES[APPEND]) <= set(table.columns)
    if at is not None and not history:
        raise ConfigError(f"only tables of write {APPEND} have a state at a time; this one has a single state")
    if not grows:
        return table
    there = f.col(PRESENT)
    if history:
        first, last = map(f.col, TIMES[APPEND])
        if at is None:
            there = there & last.isNull()
        else:
            time = f.lit(at if at.tzinfo else at.replace(tzinfo=dt.UTC))
            there = there & (first <= time) & (last.isNull() | (last > time))
    return table.where(there).drop(FACTS, PRESENT, *TIMES[APPEND if history else MERGE])


class TableMerge:
    """The merge of news into one table.

    Args:
        write: merge or append.
        table: the present table; None if there is none yet.
        few: whether there is so little news that one task does everything.

    Attributes:
        key: the column with the full names.
        keys: the columns that identify a row of the table.
        closes: whether closings of this run may end objects of the table, even objects that are not in the news.
        added: columns, and fields in structs, that the table lacks, with types.

    Raises:
        ConfigError: the table was not made by this `write`, or a column has another type in it than in the news.
    """

    def __init__(
        self, spark: SparkSession, write: str, object_type: str, table: DataFrame | None, news: News, *, few: bool
    ) -> None:
        if table is not None and not {FACTS, PRESENT, *TIMES[write]} <= set(table.columns):
            raise ConfigError(f"the table of {object_type} was not made by write {write}: ingest into another folder")
        self._spark = spark
        self._write = write
        self._type = object_type
        self._table = table
        self.exists = table is not None
        self._few = few
        self.in_one_job = False
        self._news = news
        given = news.objects.columns
        own = own_columns(given)
        self.key = own["name_text"]
        self.keys = (self.key,) if write == MERGE else (self.key, TIMES[APPEND][0])
        self._fact = _FACT if write == MERGE else (*_FACT, *_ORIGIN)
        self.closes = bool(self._applicable(news.closings))
        self._file = own["source_file"]
        self._complete = own["complete"]
        provenance = {own.get(name, name) for name in PROVENANCE}
        ours = {self.key, PRESENT, FACTS, *TIMES[MERGE], *TIMES[APPEND]}
        before = [name for name in table.columns if name not in ours] if table is not None else []
        columns = [name for name in given if name != self.key]
        self._columns = [*columns, *(name for name in before if name not in columns)]
        self._content = [name for name in self._columns if name not in provenance]
        self._provenance = [name for name in self._columns if name in provenance]
        self.added = _added(table, news.objects) if table is not None else []
        self._whole = news.objects.schema if table is None else _fitted(news.objects, table.schema).schema
        self._schema = StructType([field for field in self._whole if field.name not in ours])
        self._changed_columns = [name for name in self._content if name in news.changed_columns]

    def knows(self) -> bool:
        """Whether the table has any object of the news."""
        if self._table is None:
            return False
        names = self._names().select(f.col("_name").alias(self.key))
        return self._table.select(self.key).join(f.broadcast(names), self.key, "left_semi").head() is not None

    def only(self, table: DataFrame, names: Iterable[str]) -> DataFrame:
        """Return the rows of the table that have one of a few names. From such a condition Delta and Iceberg also know
        which files they need not read."""
        texts = ", ".join(f"CAST(X'{name.encode().hex()}' AS STRING)" for name in names)  # needs no quoting
        return table.where(f"`{self.key}` IN ({texts})" if texts else "false")

    def _small(self, rows: DataFrame) -> DataFrame:
        """Let a join send these rows to all tasks, unless there is one task."""
        return rows if self.in_one_job else f.broadcast(rows)

    def rows(self, *, once: bool) -> tuple[DataFrame, Observation | None]:
        """Return the rows of the news, if none of their objects is in the table, and what is counted when they are
        written, for `Counts`; None if each row is an object that is there.

        Args:
            once: whether each name is in the news once. Without a closing, each row then has one fact, and there is
                nothing to sort.
        """
        facts, closed = self._facts(None)
        if once and self._news.events is None and closed is None:
            return self._table_rows(self._first_states(facts)).withColumnRenamed("_name", self.key), None
        made = self._table_rows(self._states(self._once(facts)))
        new = {"_written": f.lit(True), "_differs": f.lit(True), "_there": self._there}
        none = {REMOVED: f.lit(False), "_was": f.lit(False), "_known": f.lit(None)}
        rows, observed = self._counted(made.withColumns({**new, **none}))
        return rows.select(*made.columns).withColumnRenamed("_name", self.key), observed

    def changes(self, table: DataFrame) -> tuple[DataFrame, Observation]:
        """Return the rows that are new, replace others, or have to be removed, and what is counted when they are
        written, for `Counts`; all other rows stay.

        `REMOVED` is true for rows that have to be removed; these have only their keys. A row that would only get a
        later time or another origin stays as it is, if its facts can be had again: those of responses from their files
        (`Checkpoint.unwritten`), and with `merge` those of closings from the checkpoint.
        """
        old = _fitted(table, self._whole).withColumnRenamed(self.key, "_name")
        facts, closed = self._facts(old)
        names = self._names()
        affected = self._affected(old, names, closed)
        earlier = affected.withColumn("_fact", f.explode(FACTS))
        fact = [f.col(f"_fact.{name}").alias(name) for name in self._fact]
        earlier = earlier.select("_name", *fact, self._row_of_fact(earlier), f.lit(0).alias("_new"))
        made = self._table_rows(self._states(self._once(facts.unionByName(earlier))))
        rows, observed = self._differences(made, affected)
        return rows.withColumnRenamed("_name", self.key), observed

    def _facts(self, old: DataFrame | None) -> tuple[DataFrame, DataFrame | None]:
        """Return the new facts, and those of them that come from closings."""
        news = self._message_facts()
        if self._write == APPEND:
            news = news.withColumns({"_source": f.col(_ROW)[self._file], "_whole": f.col(_ROW)[self._complete]})
        closed = self._closed(self._names(), old)
        return (news if closed is None else news.unionByName(closed, allowMissingColumns=True)), closed

    def _affected(self, old: DataFrame, names: DataFrame, closed: DataFrame | None) -> DataFrame:
        if self.in_one_job or any(one.object_type == self._type for one in self._news.closings):
            return old
        keys = names.select("_name")
        if closed is not None:
            keys = keys.unionByName(closed.select("_name"))
        return old.join(keys.distinct(), "_name", "left_semi")

    @property
    def _there(self) -> Column:
        return f.col(PRESENT) & self._holds(None)

    def _holds(self, since: dt.datetime | None) -> Column:
        """Whether a row holds now, or has done so after a time."""
        if self._write == MERGE:
            return f.lit(True)
        end = f.col(TIMES[APPEND][1])
        return end.isNull() if since is None else end.isNull() | (end > f.lit(since))

    def _differences(self, made: DataFrame, before: DataFrame) -> tuple[DataFrame, Observation]:
        """Return the rows that differ from the present ones, and those that have to be removed."""
        keys = ["_name", *self.keys[1:]]
        # The content of a row of a history also depends on facts of earlier rows.
        made, before = (rows.withColumn("_print", content_digest(rows, self._content)) for rows in (made, before))
        same = f.struct(PRESENT, "_print", self._complete, *TIMES[self._write][1:])
        known = before.select(*keys, f.struct(same.alias("same"), FACTS, self._there.alias("there")).alias("_known"))
        if self._write == MERGE:  # no name is ever removed
            both, removed = made.join(known, keys, "left"), f.lit(False)
        else:
            both, removed = made.join(known, keys, "full"), f.col(FACTS).isNull()
        differs = removed | ~same.eqNullSafe(f.col("_known.same"))
        new_facts = ~f.col(FACTS).eqNullSafe(f.col("_known")[FACTS])
        if self._news.events is not None:
            written = differs | new_facts
        elif self._write == APPEND:
            written = differs | (new_facts & ~f.col(PRESENT))
        else:
            written = differs
        marks = {"_written": written, "_differs": differs, "_there": self._there, "_was": f.col("_known.there")}
        marks = {name: f.coalesce(value, f.lit(False)) for name, value in marks.items()}
        counted, observed = self._counted(both.withColumns({REMOVED: removed, **marks}))
        return counted.where("_written").select(*made.drop("_print").columns, REMOVED), observed

    def _counted(self, rows: DataFrame) -> tuple[DataFrame, Observation]:
        """Count what happens to the objects; of a history in the first row of each."""
        marks = ("_there", "_was", "_differs")
        first, now, was, differs = f.lit(True), *map(f.col, marks)
        if self._write == APPEND:
            of_name = Window.partitionBy("_name")
            rows = rows.withColumns({f"{mark}_any": f.max(mark).over(of_name) for mark in marks})
            rows = rows.withColumn("_first", f.row_number().over(of_name.orderBy(*self.keys[1:])) == 1)
            first, now, was, differs = map(f.col, ("_first", *(f"{mark}_any" for mark in marks)))
        kinds = {
            "created": differs & now & ~was,
            "changed": differs & (now == was),
            "unchanged": ~differs & now,
            "ended": differs & was & ~now,
        }
        rows_of = {"rows": f.lit(True), "replaces": f.col("_known").isNotNull(), "removes": f.col(REMOVED)}
        counts = [f.count_if(first & kind).alias(name) for name, kind in kinds.items()]
        counts += [f.count_if(f.col("_written") & which).alias(name) for name, which in rows_of.items()]
        observed = Observation()
        return rows.observe(observed, *counts), observed

    def _table_rows(self, rows: DataFrame) -> DataFrame:
        return rows.select("_name", *self._columns, PRESENT, *TIMES[self._write], FACTS)

    def _row_of_fact(self, rows: DataFrame) -> Column:
        """Return the row of each of its facts, `_fact`; if the fact is from another message, with its origin only.

        The other columns of provenance are then null.
        """
        if self._write == MERGE:
            return self._packed
        origin = {self._file: f.col("_fact._source"), self._complete: f.col("_fact._whole")}
        same_origin = f.lit(True)
        for name, value in origin.items():
            same_origin = same_origin & f.col(name).eqNullSafe(value)
        known = {name: origin.get(name, f.when(same_origin, f.col(name))) for name in self._provenance}
        return f.struct(*(known.get(name, f.col(name)).alias(name) for name in self._columns)).alias(_ROW)

    @property
    def _packed(self) -> Column:
        """Return the columns of the table as one struct, which is never null."""
        return f.struct(*self._columns).alias(_ROW)

    def _names(self) -> DataFrame:
        """Return the names in the news, each with the complete sequence that has it, if any."""
        objects = self._news.objects.select(f.col(self.key).alias("_name"), f.col(self._file).alias("source_file"))
        times = self._news.times.select("source_file", "_sequence")
        names = objects.where(f.col("_name").isNotNull()).join(self._small(times), "source_file")
        names = names.select("_name", "_sequence")
        if self._news.events is not None:
            of_events = self._news.events.where(f.col("_name") != "")
            names = names.unionByName(of_events.select("_name", f.lit(None).cast("string").alias("_sequence")))
        return names.distinct()

    def _message_facts(self) -> DataFrame:
        objects = _fitted(self._news.objects, self._schema).withColumnRenamed(self.key, "_name")
        objects = objects.where(f.col("_name").isNotNull())
        times = self._news.times.select(f.col("source_file").alias(self._file), "_time")
        rows = objects.join(self._small(times), self._file)
        no_columns = f.lit(None).cast("array<string>").alias("_told")
        facts = rows.select(
            "_name",
            "_time",
            f.lit(_FULL).alias("_rank"),
            content_digest(rows, self._content).alias("_id"),
            no_columns,
            self._packed,
            f.lit(1).alias("_new"),
        )
        if self._news.events is None:
            return facts
        events = _fitted(self._news.events.drop(self.key), self._schema).where(f.col("_name") != "")
        columns = f.when(f.col("_fact") != FULL, f.to_json("_told"))
        spread = events.select(
            "_name",
            "_time",
            f.when(f.col("_fact") == FULL, _FULL).otherwise(_CHANGE).alias("_rank"),
            content_digest(events, self._content, columns).alias("_id"),
            "_told",
            self._packed,
            f.lit(1).alias("_new"),
        )
        return facts.unionByName(spread)

    def _closed(self, news_names: DataFrame, old: DataFrame | None) -> DataFrame | None:
        """Return the facts that objects are gone: deleted, below a deleted object, or not in a complete answer.

        Closings are remembered, so what was gone before is not written again: it gets those facts with its next news.
        """
        names = news_names.select("_name").distinct()
        last = f.try_element_at(FACTS, f.lit(-1))  # a merge keeps no fact of an object of which nothing was told
        closed = []
        if new := self._applicable(self._news.closings):
            there = names
            if old is not None:
                since = self._holds(min(one.time for one in new))
                there = names.unionByName(old.where(since & (last["_rank"] != _GONE)).select("_name")).distinct()
            pairs = self._closing_pairs(there, new)
            if any(one.object_type for one in new):
                pairs = pairs.join(news_names.where("_sequence is not null"), ["_name", "_sequence"], "left_anti")
            closed.append(pairs)
        if remembered := self._applicable(self._news.remembered):
            if self._write == MERGE:  # of several the last one decides
                remembered = [*{(one.object_type, one.name): one for one in remembered}.values()]
            pairs = self._closing_pairs(names, remembered)
            if old is not None:  # since an object is gone no answer has had it; to a merge what was before is the same
                since = f.lit(None) if self._write == MERGE else f.try_element_at(FACTS, f.lit(1))["_time"]
                gone = f.when(f.col(PRESENT), f.lit(_NEVER)).otherwise(since)
                known = old.where(self._holds(None)).select("_name", gone.alias("_known"))
                pairs = pairs.join(known, "_name", "left").where("_known is null or _time > _known").drop("_known")
            closed.append(pairs)
        if not closed:
            return None
        both = closed[0] if len(closed) == 1 else closed[0].unionByName(closed[1])
        return both.selectExpr("_name", "_time", *_GONE_FACT).distinct()

    def _applicable(self, closings: Sequence[Closing]) -> list[Closing]:
        return [one for one in closings if one.name or one.object_type == self._type]

    def _closing_pairs(self, names: DataFrame, closings: Sequence[Closing]) -> DataFrame:
        """Return names with the time and the sequence of each closing that applies to them."""
        rows = pa.table(
            {
                "_above": pa.array([one.name for one in closings], pa.string()),
                "_time": pa.array([one.time for one in closings], pa.timestamp("us", tz="UTC")),
                "_sequence": pa.array([one.sequence for one in closings], pa.string()),
            }
        )
        above = f.explode(f.array_append(_name_and_above(f.col("_name")), "")).alias("_above")
        return (
            names.select("_name", above).join(self._small(self._spark.createDataFrame(rows)), "_above").drop("_above")
        )

    def _once(self, facts: DataFrame) -> DataFrame:
        """Return each fact once.

        Of equal facts the one of a complete sequence stays. Among several of these, `merge` prefers new facts and then
        the first file; `append` prefers the first file and then new facts.
        """
        equal = Window.partitionBy("_name", "_time", "_rank", "_id")
        newest, file = f.col("_new").desc(), f.col(_ROW)[self._file].asc_nulls_last()
        after = (file, newest) if self._write == APPEND else (newest, file)
        first = [f.col(_ROW)[self._complete].desc_nulls_last(), *after]
        # All following steps need the facts of a name in one partition.
        together = facts.coalesce(1) if self._few else facts.repartition(f.col("_name"))
        numbered = together.withColumn("_copy", f.row_number().over(equal.orderBy(*first)))
        return numbered.where("_copy = 1").drop("_copy")

    def _states(self, facts: DataFrame) -> DataFrame:
        changed = self._changed_columns
        order = Window.partitionBy("_name").orderBy("_time", "_rank", "_id")
        replaces_all = f.col("_rank") != _CHANGE
        # A row's origin is the last fact that sets anything. A deletion counts: it leaves the origin empty.
        sets_any = replaces_all | (f.size("_told") > 0)

        def last(value: Column, sets: Column) -> Column:
            return f.last(f.when(sets, f.struct(value.alias("v"))), ignorenulls=True).over(order)["v"]

        states = facts.select(
            "_name",
            *self._fact,
            last(f.col(_ROW), replaces_all).alias("_full"),
            last(f.struct(*(f.col(_ROW)[name].alias(name) for name in self._provenance)), sets_any).alias("_from"),
            *(last(f.col(_ROW)[name], replaces_all | f.array_contains("_told", name)).alias(name) for name in changed),
            f.coalesce(last(f.col("_rank") == _FULL, replaces_all), f.lit(False)).alias(PRESENT),
            f.lead("_time").over(order).alias("_next"),
        )
        return self._last_states(states, changed) if self._write == MERGE else self._history(states, changed)

    def _unpacked(self, changed: Sequence[str]) -> list[Column]:
        content = [f.col(f"_full.{name}").alias(name) for name in self._content if name not in changed]
        return [*content, *(f.col(f"_from.{name}").alias(name) for name in self._provenance), *map(f.col, changed)]

    def _first_states(self, facts: DataFrame) -> DataFrame:
        """Return what `_states` makes of objects with one fact each, which sets all columns."""
        columns = [f.col(_ROW)[name].alias(name) for name in self._columns]
        end = [f.lit(None).cast("timestamp").alias(name) for name in TIMES[self._write][1:]]
        time = f.col("_time").alias(TIMES[self._write][0])
        fact_list = f.array(f.struct(*self._fact))
        if self._write == MERGE:  # as `_needed` gives them: files of one table have the same types, also as to nulls
            fact_list = fact_list.cast(f"array<{_FACT_TYPE}>")
        return facts.select("_name", *columns, f.lit(True).alias(PRESENT), time, *end, fact_list.alias(FACTS))

    def _last_states(self, states: DataFrame, changed: Sequence[str]) -> DataFrame:
        whole = Window.partitionBy("_name")
        latest = states.withColumn("_all", f.array_sort(f.collect_list(f.struct(*_FACT)).over(whole)))
        latest = latest.where(f.col("_next").isNull()).withColumn(FACTS, _needed(f.col("_all")))
        as_of = f.array_max(f.transform(FACTS, lambda fact: fact["_time"])).alias("as_of")
        return latest.select("_name", *self._unpacked(changed), PRESENT, as_of, FACTS)

    def _history(self, states: DataFrame, changed: Sequence[str]) -> DataFrame:
        """Return one row for each period in which nothing changed."""
        order = Window.partitionBy("_name").orderBy("_time")
        instant = Window.partitionBy("_name", "_time")
        steps = states.withColumn("_instant", f.collect_list(f.struct(*self._fact)).over(instant))
        steps = steps.where(f.col("_next").isNull() | (f.col("_next") > f.col("_time")))
        steps = steps.select("_name", "_time", "_instant", PRESENT, *self._unpacked(changed))
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


def changed_columns_of(table: DataFrame) -> set[str]:
    names = f.flatten(f.filter(f.col(f"{FACTS}._told"), f.isnotnull))
    return {row["name"] for row in table.select(f.explode(names).alias("name")).distinct().collect()}


def _needed(facts: Column) -> Column:
    """Return the facts of a name that can still matter if another message arrives.

    These are the last full or gone fact, and the later changes, without columns that a still later change sets.
    """

    def place(fact: Column) -> Column:
        return f.struct(fact["_time"], fact["_rank"], fact["_id"])

    last = f.array_max(f.transform(f.filter(facts, lambda fact: fact["_rank"] != _CHANGE), place))
    later = f.filter(facts, lambda fact: (fact["_rank"] == _CHANGE) & (last.isNull() | (place(fact) > last)))

    def shown(fact: Column) -> Column:
        def hidden(name: Column) -> Column:
            return f.exists(later, lambda other: (place(other) > place(fact)) & f.array_contains(other["_told"], name))

        columns = f.filter(fact["_told"], lambda name: ~hidden(name))
        return f.struct(
            fact["_time"].alias("_time"), fact["_rank"].alias("_rank"), fact["_id"].alias("_id"), columns.alias("_told")
        )

    base = f.filter(facts, lambda fact: place(fact) == last)
    base = f.coalesce(base, f.array().cast(f"array<{_FACT_TYPE}>"))
    kept = f.filter(f.transform(later, shown), lambda fact: f.size(fact["_told"]) > 0)
    return f.concat(base, kept)


def _name_and_above(name: Column) -> Column:
    """Return a full name and the names of all objects that contain it."""
    parts = f.split(name, "/")
    return f.transform(f.sequence(f.lit(1), f.size(parts)), lambda count: f.array_join(f.slice(parts, 1, count), "/"))


def content_digest(table: DataFrame, columns: Sequence[str], *more: Column) -> Column:
    """Return a hash of columns, equal for equal content. Only nested columns are turned into text for it."""
    kinds = {field.name: field.dataType for field in table.schema}
    nested = [name for name in columns if isinstance(kinds[name], StructType | ArrayType | MapType)]
    plain = sorted(set(columns) - set(nested))
    # The hash ignores nulls, so their positions are added.
    nulls = (f.when(f.col(name).isNull(), "0").otherwise("1") for name in plain)
    return f.xxhash64(*more, *plain, f.concat(f.lit(""), *nulls), _text(table, nested))


def _text(table: DataFrame, columns: Sequence[str]) -> Column:
    """Return columns as one text, equal for equal content."""
    kinds = {field.name: field.dataType for field in table.schema}
    return f.to_json(f.struct(*(_comparable(f.col(name), kinds[name]).alias(name) for name in sorted(columns))))


def _comparable(value: Column, kind: DataType) -> Column:
    """Return a value in a form that Spark can compare at any depth, with maps as sorted entries.

    A table has open content twice: as a map of texts, and as the received XML in a column `..._raw`. The XML may differ
    in prefixes and white space without meaning, so only the map is compared.
    """
    if _is_plain(kind):
        return value
    if isinstance(kind, MapType):
        return f.array_sort(f.transform(f.map_entries(value), lambda entry: _entry(entry, kind)))
    if isinstance(kind, ArrayType):
        return f.transform(value, lambda item: _comparable(item, kind.elementType))
    assert isinstance(kind, StructType)  # noqa: S101 - what is not plain is one of these
    fields = [
        _comparable(value.getField(field.name), field.dataType).alias(field.name) for field in _content_fields(kind)
    ]
    return f.when(value.isNotNull(), f.struct(*fields)) if fields else value.isNotNull()


def _content_fields(kind: StructType) -> list[StructField]:
    """Return the fields of a struct, without the `..._raw` columns that hold the XML of open content."""
    raw = {f"{field.name}_raw" for field in kind if isinstance(field.dataType, MapType)}
    return [field for field in kind if field.name not in raw]


def _is_plain(kind: DataType) -> bool:
    """Whether Spark can compare values of a type as they are."""
    if isinstance(kind, ArrayType):
        return _is_plain(kind.elementType)
    if isinstance(kind, StructType):
        return len(_content_fields(kind)) == len(kind) and all(_is_plain(field.dataType) for field in kind)
    return not isinstance(kind, MapType)


def _entry(entry: Column, kind: MapType) -> Column:
    inner = _comparable(entry.getField("value"), kind.valueType)
    return f.struct(entry.getField("key").alias("key"), inner.alias("value"))


def _added(table: DataFrame, rows: DataFrame) -> list[tuple[str, str]]:
    """Return the columns, and fields in structs, that a table lacks, with types. Raises ConfigError: a type differs."""
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


def _fitted(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows with the columns of a schema, and fields in structs, in its order; those that they lack are null."""
    none = rows.sparkSession.createDataFrame([], schema).limit(0)  # Spark leaves this out of the plan
    return none.unionByName(rows, allowMissingColumns=True)
