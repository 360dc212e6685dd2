"""The plan of a landing as a table that Spark makes, for landings that are large or on a Hadoop file system.

    list -> look at each file -> read copies again -> settle by correlationId -> the plan

Each step makes a table, and no table passes through the driver. Spark's tasks call the functions of `tables.landing`,
which also plan landings in one process, for each file and for the messages of each correlationId. They open files of
this machine themselves. Of another file system they get one whole file at a time: in memory up to `wholeFileBytes`; a
larger file or an archive as a copy on the worker's disk.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial, reduce
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from mtosi_jms.compression import is_document_name, scheme_of
from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.inventory import MESSAGE, load_stubs
from mtosi_jms.spark._first_line import error_first
from mtosi_jms.spark._hadoop import HadoopFiles, default_scheme
from mtosi_jms.spark._writing import write_parquet
from mtosi_jms.tables.checks import refusal
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.envelope import RESPONSE
from mtosi_jms.tables.files import (
    NOT_THERE,
    SHELF,
    FileState,
    Lent,
    Reject,
    Sieve,
    disk_file,
    files_of,
    follow,
    lent,
    list_files,
    local_path,
)
from mtosi_jms.tables.landing import (
    Digested,
    PlannedFile,
    Scan,
    Scanned,
    checksum,
    partition,
    read_digests,
    scan_path,
    settle,
)
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions
from mtosi_jms.tables.reader import reader_for
from mtosi_jms.tables.sequences import ReplySequence, check_complete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXT: Final = pa.string()
_LONG: Final = pa.int64()
_ARROW: Final = {str: _TEXT, int: _LONG, bool: pa.bool_(), dt.datetime: pa.timestamp("us", tz="UTC")}


def _arrow(hint: Any) -> pa.DataType:
    """Return the Arrow type of a field of a dataclass."""
    if get_origin(hint) is tuple:
        return pa.list_(_arrow(get_args(hint)[0]))
    return _ARROW[next((one for one in get_args(hint) if one is not type(None)), hint)]


def _struct(kind: type) -> pa.StructType:
    """Return the type of what `asdict` makes of a dataclass."""
    return pa.struct([(name, _arrow(hint)) for name, hint in get_type_hints(kind).items()])


FILES: Final = (pa.field("path", _TEXT), pa.field("size", _LONG), pa.field("time", _LONG))
"""A listed file: URL, size in bytes, time of its last change in milliseconds since 1970."""
REJECTS: Final = pa.schema(list(_struct(Reject)))
_LISTED: Final = pa.schema([*FILES, ("error", _TEXT)])
"""Listed files, and what cannot be listed, with the reason."""
_FACTS: Final = pa.struct([("messages", pa.list_(_struct(PlannedFile))), ("rejects", pa.list_(_struct(Reject)))])
FOUND: Final = pa.schema([*FILES, ("facts", _FACTS)])
"""Files with the messages in them that are to be read; and, without a path, rejects."""
_PLAN: Final = pa.schema(
    [
        *FILES,
        ("message", _struct(PlannedFile)),
        ("reject", _struct(Reject)),
        ("sequence", _struct(ReplySequence)),
        ("reply", pa.struct([("path", _TEXT), ("uri", _TEXT)])),
        ("sha256", _TEXT),
        ("error", _TEXT),
    ]
)
"""One row for each message, before it one for the file that it names if it is a reply of BulkResponse; one for each
reject; and for each sequence. Of files whose messages the driver plans also one for each file, after its messages and
rejects, with an error or, if it is wanted, its checksum. The other columns are null."""
_DIGESTS: Final = pa.schema([("document", _TEXT), ("digest", _TEXT), ("damage", _struct(Reject))])
_TASK_BYTES: Final = 64 * 1024 * 1024
_TASK_FILES: Final = 50_000
_ROWS: Final = 1000
_MILLISECOND: Final = 1_000_000

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function that the workers run."""


class Messages(ABC):
    """Messages of a landing that Spark's tasks read."""

    @abstractmethod
    def body_tags(self) -> set[str]:
        """The different body elements of the messages."""

    @abstractmethod
    def of_tags(self, tags: Iterable[str]) -> Messages:
        """The messages with some body elements."""

    @abstractmethod
    def each_file(self, task: Task, schema: pa.Schema, most: int | None = None) -> DataFrame:
        """Run a task over the files of the messages, and return the rows that it makes.

        Args:
            task: what the workers run; it gets the messages by `documents`.
            schema: of the rows that it makes.
            most: the largest number of partitions.
        """

    def rows(self, options: SourceOptions) -> DataFrame:
        """Return the rows of the messages."""
        schema = full_schema(options)
        return self.each_file(ReadFiles(options, schema), schema, options.partitions)

    def refusals(self, options: SourceOptions) -> list[Reject] | None:
        """Return why nothing can be read from any message; None if something can."""
        tried = self.each_file(_Rows(_refusals, options, REJECTS), REJECTS)
        return None if tried.where("file is null").take(1) else [Reject(**row.asDict()) for row in tried.collect()]


@dataclass(frozen=True)
class EnginePlan(Messages):
    """A landing that Spark has planned: a `Plan` whose files are rows of a table.

    Attributes:
        table: with the columns `_PLAN`.
        is_local: whether the tasks open the files themselves.
    """

    table: DataFrame
    is_local: bool

    @cached_property
    def rejects(self) -> tuple[Reject, ...]:
        """Files that cannot be read as a message, ordered by path."""
        return tuple(Reject(**row.asDict()) for row in self.reject_table().orderBy("file", "line").collect())

    @cached_property
    def unfollowed(self) -> tuple[Reject, ...]:
        """Replies of BulkResponse, whose files are not read here."""
        replies = (tuple(row) for row in self._facts("reply").orderBy("path").collect())
        return tuple(follow(replies, (), [])[1])

    @cached_property
    def sequences(self) -> tuple[ReplySequence, ...]:
        """The ledger."""
        rows = self._facts("sequence").orderBy(f.col("correlation_id").asc_nulls_last(), "source")
        return tuple(map(_sequence, _pylist(rows)))

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of messages of each kind, duplicates included."""
        copies = f.sum(f.size("duplicates") + 1).alias("copies")
        rows = self._facts("message").groupBy("kind").agg(copies).orderBy("kind").collect()
        return {row["kind"]: row["copies"] for row in rows}

    def readable(self, options: SourceOptions) -> EnginePlan:
        """Return the messages that have to be read with these options.

        Raises:
            ExchangeError: `onIncomplete=fail` and a sequence is incomplete.
        """
        if options.on_incomplete is OnIncomplete.FAIL:
            check_complete(map(_sequence, _pylist(self._facts("sequence").where("not complete"))))
        messages = self.table.where("message is not null")
        if options.on_incomplete is OnIncomplete.FILTER:
            messages = messages.where(f.coalesce("message.complete", f.lit(True)))
        if options.object_types != (MESSAGE,):
            messages = messages.where(f.col("message.kind").isin(*options.message_types))
        return replace(self, table=messages)

    def body_tags(self) -> set[str]:
        return {row[0] for row in self.table.select("message.body_tag").distinct().collect()}

    def of_tags(self, tags: Iterable[str]) -> EnginePlan:
        return replace(self, table=self.table.where(f.col("message.body_tag").isin(*tags)))

    def each_file(self, task: Task, schema: pa.Schema, most: int | None = None) -> DataFrame:
        files = _by_file(self.table.where("message is not null"))
        return _read(_spread(files, most), task, schema, is_local=self.is_local)

    def reject_table(self) -> DataFrame:
        """The rejects as rows: file, line, reason."""
        return self._facts("reject")

    def _facts(self, column: str) -> DataFrame:
        return self.table.where(f.col(column).isNotNull()).select(f"{column}.*")


@dataclass(frozen=True)
class KnownMessages(Messages):
    """Messages that the driver has planned.

    Attributes:
        spark: the session.
        files: the messages.
        listed: the files that only Spark's tasks reach; None if any process opens the messages.
    """

    spark: SparkSession
    files: tuple[PlannedFile, ...]
    listed: Mapping[str, FileState] | None = None

    def body_tags(self) -> set[str]:
        return {file.body_tag for file in self.files}

    def of_tags(self, tags: Iterable[str]) -> KnownMessages:
        wanted = set(tags)
        return replace(self, files=tuple(file for file in self.files if file.body_tag in wanted))

    def each_file(self, task: Task, schema: pa.Schema, most: int | None = None) -> DataFrame:
        if self.listed is None:
            parts = [[found_row(file, [file]) for file in part] for part in partition(self.files, most)]
            return _in_parts(self.spark, parts, task, schema)
        inside = by_file(self.files, self.listed)
        given = _listed_files(self.spark, [self.listed[path] for path in inside], inside, most)
        return _read(given, task, schema, is_local=False)


def by_file(messages: Iterable[PlannedFile], listed: Mapping[str, FileState]) -> dict[str, list[PlannedFile]]:
    """Return messages by the path of the file that they are in, without those whose file is not listed."""
    inside: dict[str, list[PlannedFile]] = {}
    for message in messages:
        if (path := disk_file(message.path, listed)) is not None:
            inside.setdefault(path, []).append(message)
    return inside


class SparkRunner:
    """Runs the steps of planning that work on files in the tasks of Spark.

    Args:
        spark: a session.
        scratch: as in `plan_by_engine`.
    """

    def __init__(self, spark: SparkSession, scratch: str | Path | None = None) -> None:
        self.spark = spark
        self._scratch = scratch

    def find(self, options: SourceOptions) -> tuple[dict[str, FileState], list[Reject]]:
        _check_options(options)
        files: dict[str, FileState] = {}
        rejects: list[Reject] = []
        for row in _pylist(_list(self.spark, options, _Keeper(self._scratch))):
            path = shown_path(row["path"])
            if row["error"] is None:
                files[path] = FileState(path, row["size"], row["time"] * _MILLISECOND)
            else:
                rejects.append(Reject(path, None, row["error"]))
        return files, rejects

    def look(self, files: Sequence[FileState], options: SourceOptions, *, whole: bool) -> Iterator[Scan]:
        rows = _listed_files(self.spark, files, {}, None)
        task = _Rows(partial(_look_all, whole=whole), options, _PLAN)
        scanned: list[Scanned] = []
        uri: str | None = None
        for row in _pylist(_read(rows, task, _PLAN, is_local=False)) if files else ():
            if row["reply"] is not None:
                uri = row["reply"]["uri"]
            elif row["message"] is not None:
                scanned.append((planned_file(row["message"]), uri))
                uri = None
            elif row["reject"] is not None:
                scanned.append(Reject(**row["reject"]))
            else:
                yield Scan(shown_path(row["path"]), tuple(scanned), row["sha256"] or "", row["error"] or "")
                scanned = []

    def digests(
        self, messages: Sequence[PlannedFile], files: Mapping[str, FileState], options: SourceOptions
    ) -> Iterator[Digested]:
        by_path = {message.path: message for message in messages}
        known = KnownMessages(self.spark, tuple(messages), files)
        for row in _pylist(known.each_file(_Rows(_digest, options, _DIGESTS), _DIGESTS)):
            damage = row["damage"]
            yield by_path.pop(row["document"]), row["digest"] if damage is None else Reject(**damage)
        for message in by_path.values():
            yield message, Reject(message.path, None, f"cannot be read: {NOT_THERE}")


def found_row(file: FileState | PlannedFile, messages: Iterable[PlannedFile]) -> dict[str, Any]:
    """Return a file and messages in it as a row of `FOUND`."""
    return {**listed_row(file), "facts": {"messages": [asdict(message) for message in messages]}}


def listed_row(file: FileState | PlannedFile) -> dict[str, Any]:
    """Return a listed file as a row for `HadoopFiles.contents`."""
    url = file.path if scheme_of(file.path) else f"file:{file.path}"
    return {"path": url, "size": file.size, "time": (file.modified_ns or 0) // _MILLISECOND}


def _listed_files(
    spark: SparkSession, files: Sequence[FileState], inside: Mapping[str, list[PlannedFile]], most: int | None
) -> DataFrame:
    """Return listed files, with the messages in them, as rows."""
    shares = partition(files, most or _tasks(spark, len(files), sum(file.size for file in files)))
    parts = [[found_row(file, inside.get(file.path, ())) for file in share] for share in shares]
    return _in_parts(spark, parts, None, FOUND)


def _in_parts(
    spark: SparkSession, parts: Sequence[Sequence[dict[str, Any]]], task: Task | None, schema: pa.Schema
) -> DataFrame:
    """Hand out files that the driver knows, each part to a task of its own; without a task return them as rows."""
    # A range has one number in each of its partitions; the parts travel with the function that the tasks run.
    numbers = spark.range(0, max(1, len(parts)), 1, max(1, len(parts)))
    return _map(numbers, _Parts([_packed(part) for part in parts], task), schema)


def _packed(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return rows of `FOUND` as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, FOUND, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        for batch in _batches(rows, FOUND):
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def read_landing(
    spark: SparkSession, path: str | Sequence[str], object_type: str = "ME", *, scratch: str = "", **options: str
) -> DataFrame:
    """Return the rows of a landing on any Hadoop file system. Spark lists, plans and reads it.

    This call plans the landing. To read a file that has changed since is an error. The driver holds neither rows nor
    files, apart from the list of those on its own file systems.

    Args:
        spark: a session whose settings give access to the file system.
        path: a folder, a file or a glob, for example `s3a://bucket/landing`, or several of them.
        object_type: as the option `objectType` of the source.
        scratch: a folder for the tables of the plan, which driver and executors can reach. By default the executors
            keep these tables; if an executor is lost, its part is lost, and the landing has to be read again.
        options: those of the source `mtosi`, except `bulkFiles`.

    Returns:
        The columns that the source gives for the same options.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
        ConfigError: an option that does not fit, or a session of Spark Connect.
        ExchangeError: `onIncomplete` is fail and a sequence is incomplete.
        MtosiError: `mode` is FAILFAST and something is rejected, or Spark fails.
    """
    paths = [path] if isinstance(path, str) else list(path)
    settings = SourceOptions.parse({**options, "paths": json.dumps(paths), "objectType": object_type})
    load_stubs(settings.stubs)
    schema = full_schema(settings)
    plan = plan_by_engine(spark, settings, scratch or None)
    permissive = settings.mode is Mode.PERMISSIVE and settings.corrupt_column is not None
    if settings.mode is Mode.FAILFAST and plan.rejects:
        raise MtosiError(str(plan.rejects[0]))
    rows = plan.readable(settings).rows(settings)
    if not permissive:
        return rows
    facts = f.struct(f.lit(None).alias("messages"), f.array("reject").alias("rejects")).alias("facts")
    rejects = plan.table.where("reject is not null").select(f.lit("").alias("path"), facts)
    return rows.unionByName(_map(rejects, ReadFiles(settings, schema), schema))


def plan_by_engine(spark: SparkSession, options: SourceOptions, scratch: str | Path | None = None) -> EnginePlan:
    """Plan a landing in Spark.

    Args:
        spark: a session.
        options: of the load.
        scratch: a folder for the tables of the plan, which driver and executors can reach; by default the executors
            keep these tables.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
        ConfigError: a session of Spark Connect, or an option that is only for landings on this machine.
    """
    _check_options(options)
    is_local = not _elsewhere(spark, options)
    keep = _Keeper(scratch)
    listed = _list(spark, options, keep)
    files = listed.where("error is null").select(
        "path", "size", "time", f.struct("path", "size", "time").alias("facts")
    )
    scanned = keep("scanned", _read(_spread(files, None), _Rows(_look, options, _PLAN), _PLAN, is_local=is_local))
    messages = scanned.where("message is not null").select("path", "size", "time", "message")
    copies = _copies(messages, options, keep, is_local=is_local)
    if options.first_batch == "auto":
        options = replace(options, from_zero=_senders_from_zero(messages))
    settled = _settled(messages, copies, options)
    unlisted = _map(listed.where("error is not null"), _Rows(_unlisted, options, _PLAN), _PLAN)
    found = scanned.where("message is null").unionByName(unlisted)
    return EnginePlan(keep("plan", settled.unionByName(found)), is_local)


def _check_options(options: SourceOptions) -> None:
    if options.bulk_files:
        raise ConfigError("the option bulkFiles is for landings that the driver plans, on its own file system")


def _elsewhere(spark: SparkSession, options: SourceOptions) -> list[str]:
    """Return the paths of a landing that are on another file system than those of this machine."""
    default = default_scheme(spark)
    return [path for path in options.paths if (scheme_of(path) or default) != "file"]


def _list(spark: SparkSession, options: SourceOptions, keep: _Keeper) -> DataFrame:
    """Return the files of a landing, and what cannot be listed. The driver lists paths of this machine.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
        ConfigError: a glob with `**` on another file system.
    """
    there = _elsewhere(spark, options)
    here = [path for path in options.paths if path not in there]
    listed = [_list_here(spark, here, options.sieve)] if here else []
    if there:
        listed.append(_list_there(HadoopFiles(spark), there, options, keep))
    return keep("listed", reduce(DataFrame.unionByName, listed))


def _list_here(spark: SparkSession, paths: Sequence[str], sieve: Sieve) -> DataFrame:
    rejects: list[Reject] = []
    states = {state.path: state for state in list_files(paths, rejects, sieve)}
    rows = chain(
        ({**listed_row(state), "error": None} for state in states.values()),
        ({"path": one.file, "size": 0, "time": 0, "error": one.reason} for one in rejects),
    )
    return spark.createDataFrame(pa.Table.from_batches(_batches(rows, _LISTED), _LISTED))


def _list_there(hadoop: HadoopFiles, paths: Sequence[str], options: SourceOptions, keep: _Keeper) -> DataFrame:
    for path in paths:
        if "**" in path:
            raise ConfigError(f"{path}: ** is for paths of this machine; a folder is read with all that are in it")
    roots = keep("roots", hadoop.roots(paths))
    for row in roots.where("error is not null").limit(1).collect():
        raise SpoolError(shown_path(row["path"]), row["error"])
    found = roots.where("not folder")
    if options.recursive:
        folders = roots.where("folder")
        count = folders.count()
        if count:
            spread = folders.repartition(min(count, 4 * _cores(hadoop.spark)), "path")
            found = found.unionByName(hadoop.below(spread))
    if len(paths) > 1:
        found = found.dropDuplicates(["path"])
    return _map(found, _Rows(_input, options, _LISTED), _LISTED)


def _copies(messages: DataFrame, options: SourceOptions, keep: _Keeper, *, is_local: bool) -> DataFrame:
    """Return the digests of the bodies of messages that have the same key as another message."""
    key = [f.col(f"message.{name}") for name in ("kind", "correlation_id", "batch_number")]
    keyed = messages.where("message.correlation_id is not null").groupBy(*key)
    groups = keyed.agg(f.collect_list(f.struct("path", "size", "time", "message")).alias("copies"))
    several = groups.where(f.size("copies") > 1).select(f.explode("copies").alias("copy")).select("copy.*")
    return keep("copies", _read(_by_file(several), _Rows(_digest, options, _DIGESTS), _DIGESTS, is_local=is_local))


def _by_file(messages: DataFrame) -> DataFrame:
    """Return files with the messages in them, `FOUND`."""
    rejects = f.lit(None).cast(from_arrow_type(_FACTS.field("rejects").type)).alias("rejects")
    facts = f.struct(f.collect_list("message").alias("messages"), rejects)
    return messages.groupBy("path", "size", "time").agg(facts.alias("facts"))


def _senders_from_zero(messages: DataFrame) -> frozenset[str]:
    """Return the senders of which a batch 0 is among the messages."""
    zero = messages.where((f.col("message.batch_number") == 0) & (f.col("message.kind") == RESPONSE))
    return frozenset(row[0] or "" for row in zero.select("message.sender").distinct().collect())


def _settled(messages: DataFrame, copies: DataFrame, options: SourceOptions) -> DataFrame:
    """Return the plan of the messages: messages to read, rejects and sequences."""
    joined = messages.join(copies, messages["message.path"] == copies["document"], "left").drop("document")
    alone = f.when(f.col("message.correlation_id").isNull(), f.col("message.path"))
    groups = joined.groupBy(f.col("message.correlation_id"), alone.alias("alone"))
    rows = f.collect_list(f.struct(*joined.columns)).alias("messages")
    return _map(groups.agg(rows).select("messages"), _Rows(_settle, options, _PLAN), _PLAN)


def _spread(files: DataFrame, most: int | None) -> DataFrame:
    """Distribute files to tasks, many small ones to one task."""
    [(count, size)] = files.agg(f.count("*"), f.coalesce(f.sum("size"), f.lit(0))).collect()
    return files.repartition(max(1, min(most or _tasks(files.sparkSession, count, size), count)), "path")


def _tasks(spark: SparkSession, count: int, size: int) -> int:
    """Return the number of tasks for files, from their number and their bytes."""
    return max(math.ceil(size / _TASK_BYTES), math.ceil(count / _TASK_FILES), 2 * _cores(spark))


def _cores(spark: SparkSession) -> int:
    return spark.sparkContext.defaultParallelism


def _read(files: DataFrame, task: Task, schema: pa.Schema, *, is_local: bool) -> DataFrame:
    """Run a task over files with their facts; on another file system than those of this machine Java reads them."""
    return _map(files if is_local else HadoopFiles(files.sparkSession).contents(files), task, schema)


def _map(rows: DataFrame, task: Task, schema: pa.Schema) -> DataFrame:
    return rows.mapInArrow(task, from_arrow_schema(schema))


class _Keeper:
    """Stores tables that are used more than once, in a folder or on the executors."""

    def __init__(self, scratch: str | Path | None) -> None:
        self._scratch = scratch

    def __call__(self, name: str, rows: DataFrame) -> DataFrame:
        if self._scratch is None:
            return rows.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
        folder = f"{self._scratch}/{name}"
        if scheme_of(folder) in ("", "file"):
            write_parquet(rows, Path(local_path(folder)))
        else:
            rows.write.mode("overwrite").parquet(folder)
        return rows.sparkSession.read.schema(rows.schema).parquet(folder)


def shown_path(url: str) -> str:
    """Return a path as the source shows it: without a scheme for files of this machine."""
    return url.removeprefix("file:").replace("//", "", 1) if url.startswith("file://") else url.removeprefix("file:")


def _sequence(row: dict[str, Any]) -> ReplySequence:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return ReplySequence(**values)


def _pylist(rows: DataFrame) -> Iterator[dict[str, Any]]:
    table = rows.toArrow()
    for batch in table.to_batches():
        yield from batch.to_pylist()


# The following classes and functions are what the workers run.


@dataclass(frozen=True)
class _Parts:
    """Gives files that the driver knows: those parts whose numbers come in, as they are or to a task."""

    parts: list[bytes]
    task: Task | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist() if number < len(self.parts))
        given = (batch for number in numbers for batch in pa.ipc.open_stream(self.parts[number]))
        return given if self.task is None else self.task(given)


@dataclass(frozen=True)
class _Rows:
    """Makes rows with some columns by one of the functions below, each a step of planning."""

    step: Callable[[Iterable[pa.RecordBatch], SourceOptions], Iterable[dict[str, Any]]]
    options: SourceOptions
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with error_first():
            load_stubs(self.options.stubs)
            yield from _batches(self.step(batches, self.options), self.schema)


def _input(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    """Keep listed files that are input, and folders that cannot be listed, with the reason."""
    for row in (row for batch in batches for row in batch.to_pylist()):
        if row["error"] is not None:
            yield {**row, "error": f"cannot be read: {row['error']}"}
        elif options.sieve.takes_name(row["path"], named=row["named"]) and options.sieve.takes_time(row["time"]):
            yield row


def _look(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    """Look at files: messages, not settled yet, and rejects."""
    for path, facts in lent_files(batches, options.whole_file_bytes):
        yield from ({**facts, **row} if "message" in row else row for row in _scanned_rows(path, options))


def _look_all(batches: Iterable[pa.RecordBatch], options: SourceOptions, *, whole: bool) -> Iterator[dict[str, Any]]:
    """The same for a plan that the driver makes, with a row for each file."""
    for path, _ in lent_files(batches, options.whole_file_bytes):
        try:
            files_of(path).open(path).close()
            end = {"path": path, "sha256": checksum(path) if whole else None}
        except SpoolError as error:
            yield {"path": path, "error": error.reason}
            continue
        yield from _scanned_rows(path, options)
        yield end


def _scanned_rows(path: str, options: SourceOptions) -> Iterator[dict[str, Any]]:
    for scanned in scan_path(path, options):
        if isinstance(scanned, Reject):
            yield {"reject": asdict(scanned)}
        elif scanned is not None:
            file, uri = scanned
            yield from [{"reply": {"path": file.path, "uri": uri}}] if uri is not None else []
            yield {"message": asdict(file)}


def _digest(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    """Make the digests of the bodies of messages."""
    for file in documents(batches, options.whole_file_bytes):
        for _, body in read_digests((file,), options.whole_file_bytes):
            yield {
                "document": file.path,
                **({"damage": asdict(body)} if isinstance(body, Reject) else {"digest": body}),
            }


def _refusals(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    """Say of each message why nothing can be read from it; nulls if something can."""
    for file in documents(batches, options.whole_file_bytes):
        reject = refusal(file, options)
        yield {} if reject is None else asdict(reject)


def _settle(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    """Settle the messages of each correlationId."""
    for group in (group.as_py() for batch in batches for group in batch.column("messages")):
        by_path = {row["message"]["path"]: row for row in group}
        digests = partial(_known_digests, by_path)
        rejects: list[Reject] = []
        files = (planned_file(by_path[path]["message"]) for path in sorted(by_path))
        kept, sequences = settle(files, rejects, digests, options)
        for file in kept:
            row = by_path[file.path]
            yield {**{name: row[name] for name in ("path", "size", "time")}, "message": asdict(file)}
        yield from ({"reject": asdict(reject)} for reject in rejects)
        yield from ({"sequence": asdict(sequence)} for sequence in sequences)


def _known_digests(rows: Mapping[str, dict[str, Any]], copies: Sequence[PlannedFile]) -> Iterator[Digested]:
    for copy in copies:
        row = rows[copy.path]
        yield copy, row["digest"] if row["damage"] is None else Reject(**row["damage"])


def _unlisted(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    """Make the rejects of what cannot be listed."""
    for row in (row for batch in batches for row in batch.to_pylist()):
        yield {"reject": {"file": shown_path(row["path"]), "reason": row["error"]}}


@dataclass(frozen=True)
class ReadFiles:
    """Makes the rows of messages and rejects."""

    options: SourceOptions
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with error_first():
            load_stubs(self.options.stubs)
            rejects: list[Reject] = []
            messages = documents(batches, self.options.whole_file_bytes, rejects)
            yield from reader_for(self.options, self.schema).read(messages, rejects)


def documents(
    batches: Iterable[pa.RecordBatch], whole: int, rejects: list[Reject] | None = None
) -> Iterator[PlannedFile]:
    """Yield the messages in incoming files; each can be read under its path until the caller asks for the next one.

    Incoming rejects are added to `rejects`.
    """
    for _, facts in lent_files(batches, whole):
        if rejects is not None:
            rejects += (Reject(**reject) for reject in facts["rejects"] or ())
        yield from map(planned_file, sorted(facts["messages"] or (), key=lambda message: str(message["path"])))


def planned_file(row: dict[str, Any]) -> PlannedFile:
    """Return a message from its row."""
    return PlannedFile(**{**row, "duplicates": tuple(row["duplicates"] or ())})


def _batches(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    held: list[dict[str, Any]] = []
    for row in rows:
        held.append(row)
        if len(held) == _ROWS:
            yield pa.RecordBatch.from_pylist(held, schema)
            held = []
    if held:
        yield pa.RecordBatch.from_pylist(held, schema)


def lent_files(batches: Iterable[pa.RecordBatch], whole: int) -> Iterator[tuple[str, Any]]:
    """Yield the path and the facts of each file, which the caller can then open.

    Parts of files that come in are put together, and lent under the path until the caller asks for the next one.
    """
    with SHELF.held():
        file = _Gathered(whole)
        for batch in batches:
            if "part" not in batch.schema.names:
                paths = map(shown_path, batch.column("path").to_pylist())
                yield from zip(paths, batch.column("facts").to_pylist(), strict=True)
                continue
            small = (batch.column(name).to_pylist() for name in ("path", "last", "error", "facts"))
            for number, (url, last, error, facts) in enumerate(zip(*small, strict=True)):
                file.add(shown_path(url), batch.column("part")[number].as_py(), facts)
                if last:
                    with file.lent(error) as known:
                        yield file.path, known
                    file = _Gathered(whole)


class _Gathered:
    """The parts of one file: in memory, or on disk for a large file or an archive."""

    def __init__(self, whole: int) -> None:
        self.path = ""
        self._whole = whole
        self._facts: Any = None
        self._parts: list[bytes] = []
        self._size = 0
        self._disk: IO[bytes] | None = None

    def add(self, path: str, part: bytes, facts: Any) -> None:
        """Add the next part."""
        self.path = path
        self._facts = facts if facts is not None else self._facts
        self._parts.append(part)
        self._size += len(part)
        if self._disk is None and (self._size > self._whole or not is_document_name(path)):
            self._disk = tempfile.NamedTemporaryFile(prefix="mtosi-", dir=_scratch())  # noqa: SIM115 - closed in `lent`
        if self._disk is not None:
            self._disk.writelines(self._parts)
            self._parts.clear()

    @contextmanager
    def lent(self, error: str | None) -> Iterator[Any]:
        """Make the file readable under its path while the block runs; give its facts."""
        try:
            content: bytes | Path | SpoolError
            if error is not None:
                content = SpoolError(self.path, error)
            elif self._disk is not None:
                self._disk.flush()
                content = Path(self._disk.name)
            else:
                content = b"".join(self._parts)
            with lent(self.path, Lent(self._size, content)):
                yield self._facts
        finally:
            if self._disk is not None:
                self._disk.close()


def _scratch() -> str | None:
    """Return the folder for temporary files of a worker: one of those that Spark gives it."""
    return next(filter(os.path.isdir, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")), None)
