"""The plan of a landing as a table that Spark makes, for landings that are large or on a Hadoop file system.

    list -> look at each file -> read copies again -> settle by correlationId -> the plan

Each step makes a table, and no table passes through the driver. Spark's tasks call the functions of `tables.landing`,
which also plan small landings, for each file and for the messages of each correlationId. They get one whole file at a
time: in memory up to `wholeFileBytes`; a larger file or an archive as a copy on the worker's disk.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from mtosi_jms.compression import is_document_name, scheme_of
from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.inventory import MESSAGE, load_stubs
from mtosi_jms.spark._hadoop import HadoopFiles
from mtosi_jms.spark._index import SeenFile
from mtosi_jms.spark._listing import LocalListing, Scan, checksum
from mtosi_jms.spark._writing import write_parquet
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.envelope import RESPONSE
from mtosi_jms.tables.files import NOT_THERE, SHELF, Lent, Reject, Sieve, disk_file, follow, lent, local_path
from mtosi_jms.tables.landing import Digests, Plan, PlannedFile, Scanned, plan_scanned, read_digests, scan_file, settle
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions
from mtosi_jms.tables.reader import reader_for
from mtosi_jms.tables.sequences import ReplySequence, check_complete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXT: Final = pa.string()
_LONG: Final = pa.int64()
_TIME: Final = pa.timestamp("us", tz="UTC")
_LONGS: Final = pa.list_(_LONG)
FILES: Final = (pa.field("path", _TEXT), pa.field("size", _LONG), pa.field("time", _LONG))
"""A listed file: URL, size in bytes, time of its last change in milliseconds since 1970."""
MESSAGES: Final = pa.struct(
    [
        ("path", _TEXT),
        ("size", _LONG),
        ("kind", _TEXT),
        ("correlation_id", _TEXT),
        ("batch_number", _LONG),
        ("end_of_reply", pa.bool_()),
        ("body_tag", _TEXT),
        ("complete", pa.bool_()),
        ("duplicates", pa.list_(_TEXT)),
        ("timestamp", _TEXT),
        ("modified_ns", _LONG),
        ("mark", _TEXT),
        ("sender", _TEXT),
    ]
)
"""A `PlannedFile`."""
REJECTS: Final = pa.schema([("file", _TEXT), ("line", _LONG), ("reason", _TEXT)])
_REJECT: Final = pa.struct(list(REJECTS))
_SEQUENCE: Final = pa.struct(
    [
        ("correlation_id", _TEXT),
        ("source", _TEXT),
        ("batches", _LONG),
        ("expected", _LONG),
        ("received", _LONGS),
        ("missing", _LONGS),
        ("missing_count", _LONG),
        ("duplicates", _LONG),
        ("conflicts", _LONGS),
        ("unexpected", _LONGS),
        ("faults", _LONG),
        ("complete", pa.bool_()),
        ("first_time", _TIME),
        ("last_time", _TIME),
    ]
)
"""A `ReplySequence`."""
_LISTED: Final = pa.schema([*FILES, ("error", _TEXT)])
"""Listed files, and what cannot be listed, with the reason."""
_FACTS: Final = pa.schema([*FILES, ("message", MESSAGES)])
"""Messages, and the files that they are in."""
_SCANNED: Final = pa.schema([*_FACTS, ("reject", _REJECT), ("reply", _TEXT), ("sha256", _TEXT), ("error", _TEXT)])
"""The content of files: a row for each message, with the file that it names, for each reject, and for each file with
its checksum or an error. The rows of a file follow each other."""
_PLAN: Final = pa.schema(
    [*FILES, ("message", MESSAGES), ("reject", _REJECT), ("unfollowed", _REJECT), ("sequence", _SEQUENCE)]
)
"""One row for each message to read, each reject, each reply that is not followed, and each sequence; the other columns
are null."""
_DIGESTS: Final = pa.schema([("document", _TEXT), ("digest", _TEXT), ("damage", _REJECT)])
_TASK_BYTES: Final = 64 * 1024 * 1024
_TASK_FILES: Final = 50_000
_ROWS: Final = 1000
_MILLISECOND: Final = 1_000_000

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function that the workers run."""


@dataclass(frozen=True)
class EnginePlan:
    """A landing that Spark has planned: a `Plan` whose files are rows of a table."""

    spark: SparkSession
    table: DataFrame

    @cached_property
    def rejects(self) -> tuple[Reject, ...]:
        """Files that cannot be read as a message, ordered by path."""
        return _rejects(self.reject_table())

    @cached_property
    def unfollowed(self) -> tuple[Reject, ...]:
        """Replies of BulkResponse, whose files are not read here."""
        return _rejects(self._facts("unfollowed"))

    @cached_property
    def sequences(self) -> tuple[ReplySequence, ...]:
        """The ledger."""
        rows = self._facts("sequence").orderBy(f.col("correlation_id").asc_nulls_last(), "source")
        return tuple(_sequence(row) for row in _pylist(rows))

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
        """The different body elements of the messages."""
        return {row[0] for row in self.table.select("message.body_tag").distinct().collect()}

    def of_tags(self, tags: Iterable[str]) -> EnginePlan:
        """The messages with some body elements."""
        return replace(self, table=self.table.where(f.col("message.body_tag").isin(*tags)))

    def rows(self, options: SourceOptions) -> DataFrame:
        """Return the rows of the messages. The stubs must be loaded."""
        schema = full_schema(options)
        return self.each_file(_Read(options, schema), schema, options.partitions)

    def each_file(self, task: Task, schema: pa.Schema, most: int | None = None) -> DataFrame:
        """Run a task over the files of the messages, and return the rows that it makes.

        Args:
            task: what the workers run; it gets the messages by `documents`.
            schema: of the rows that it makes.
            most: the largest number of partitions.
        """
        messages = self.table.where("message is not null")
        files = messages.groupBy("path", "size", "time").agg(f.collect_list("message").alias("facts"))
        return _map(HadoopFiles(self.spark).contents(_spread(files, most)), task, schema)

    def reject_table(self) -> DataFrame:
        """The rejects as rows: file, line, reason."""
        return self._facts("reject")

    def _facts(self, column: str) -> DataFrame:
        return self.table.where(f.col(column).isNotNull()).select(f"{column}.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPlan(Plan):
    """A plan that the driver has made for files that Spark's tasks list and read.

    Attributes:
        spark: the session.
        listed: the files by path.
    """

    spark: SparkSession
    listed: Mapping[str, SeenFile]

    def of(self, files: Iterable[PlannedFile]) -> EnginePlan:
        """Return some of its messages as a plan that can be read."""
        return EnginePlan(self.spark, _table(self.spark, self.listed, files))


class EngineListing:
    """A landing that Spark's tasks list and read, and the driver plans."""

    def __init__(self, spark: SparkSession, options: SourceOptions, scratch: str | Path | None = None) -> None:
        """List the landing.

        Args:
            spark: a session.
            options: of the load.
            scratch: as in `plan_by_engine`.

        Raises:
            SpoolError, ConfigError: as `plan_by_engine`.
        """
        _check_options(options)
        self._spark = spark
        self.files: dict[str, SeenFile] = {}
        rejects: list[Reject] = []
        for row in _pylist(_list(HadoopFiles(spark), options, _Keeper(scratch))):
            path = shown_path(row["path"])
            if row["error"] is None:
                self.files[path] = SeenFile(path, row["size"], row["time"] * _MILLISECOND)
            else:
                rejects.append(_unlisted(row))
        self.rejects = tuple(rejects)

    def look(self, paths: Iterable[str], options: SourceOptions) -> Iterator[Scan]:
        for looked in look_at(self._spark, [self.files[path] for path in paths], options):
            if isinstance(looked, SpoolError):
                raise looked
            yield looked

    def plan(
        self,
        scanned: Iterable[Scanned],
        options: SourceOptions,
        known: Mapping[str, Sequence[PlannedFile]],
        recalled: Iterable[str],
    ) -> ListedPlan:
        plan = plan_scanned(scanned, options, known, recalled, self._digests(options))
        facts = (plan.files, plan.rejects, plan.sequences, plan.counts, plan.unfollowed)
        return ListedPlan(*facts, spark=self._spark, listed=self.files)

    def _digests(self, options: SourceOptions) -> Digests:
        return lambda files: digests_by_engine(self._spark, self.files, files, options)


def look_at(spark: SparkSession, files: Iterable[SeenFile], options: SourceOptions) -> Iterator[Scan | SpoolError]:
    """Let Spark's tasks read files; yield an error for each that cannot be read or has changed since it was listed."""
    listed = [listed_row(file) for file in files]
    if not listed:
        return
    rows = spark.createDataFrame(pa.Table.from_pylist(listed, pa.schema(FILES)))
    contents = HadoopFiles(spark).contents(_spread(rows.withColumn("facts", f.struct("path", "size", "time")), None))
    scanned: list[Scanned] = []
    for row in _pylist(_map(contents, _LookAll(options), _SCANNED)):
        if row["message"] is not None:
            scanned.append((planned_file(row["message"]), row["reply"]))
        elif row["reject"] is not None:
            scanned.append(Reject(**row["reject"]))
        else:
            path = shown_path(row["path"])
            yield (
                Scan(path, row["sha256"], tuple(scanned)) if row["error"] is None else SpoolError(path, row["error"])
            )
            scanned = []


def digests_by_engine(
    spark: SparkSession, listed: Mapping[str, SeenFile], files: Sequence[PlannedFile], options: SourceOptions
) -> Iterator[tuple[PlannedFile, str | Reject]]:
    """Yield digests of listed files as `read_digests` does, but by one Spark job."""
    by_path = {file.path: file for file in files}
    for row in _pylist(EnginePlan(spark, _table(spark, listed, files)).each_file(_Digest(options), _DIGESTS)):
        damage = row["damage"]
        yield by_path.pop(row["document"]), row["digest"] if damage is None else Reject(**damage)
    for file in by_path.values():
        yield file, Reject(file.path, None, f"cannot be read: {NOT_THERE}")


def _table(spark: SparkSession, listed: Mapping[str, SeenFile], files: Iterable[PlannedFile]) -> DataFrame:
    """Return messages as rows of a plan."""
    rows = [
        {**listed_row(listed[disk]), "message": asdict(file)}
        for file in files
        if (disk := disk_file(file.path, listed)) is not None
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, _FACTS))


def listed_row(file: SeenFile) -> dict[str, Any]:
    """Return a listed file as a row for `HadoopFiles.contents`."""
    url = file.path if scheme_of(file.path) else f"file:{file.path}"
    return {"path": url, "size": file.size, "time": file.modified_ns // _MILLISECOND}


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
        options: those of the source `mtosi`, except `planFile` and `bulkFiles`.

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
    return rows.unionByName(_map(plan.reject_table(), _RejectRows(settings, schema), schema)) if permissive else rows


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
    keep = _Keeper(scratch)
    listed = _list(HadoopFiles(spark), options, keep)
    files = listed.where("error is null")
    looked = f.struct("path", "size", "time").alias("facts")
    contents = HadoopFiles(spark).contents(_spread(files.select("path", "size", "time", looked), None))
    scanned = keep("scanned", _map(contents, _Look(options), _PLAN))
    messages = scanned.where("message is not null").select("path", "size", "time", "message")
    copies = _copies(spark, messages, options, keep)
    if options.first_batch == "auto":
        options = replace(options, from_zero=_senders_from_zero(messages))
    settled = _settled(messages, copies, options)
    found = scanned.where("message is null or unfollowed is not null").withColumn("message", f.lit(None))
    return EnginePlan(spark, keep("plan", settled.unionByName(found).unionByName(_folders(listed))))


def _check_options(options: SourceOptions) -> None:
    if options.plan_file or options.bulk_files:
        name = "planFile" if options.plan_file else "bulkFiles"
        raise ConfigError(f"the option {name} is for landings that the driver plans, on its own file system")


def _list(hadoop: HadoopFiles, options: SourceOptions, keep: _Keeper) -> DataFrame:
    """Return the files of a landing, and what cannot be listed. The driver lists paths of this machine.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
        ConfigError: a glob with `**` on another file system.
    """
    spark = hadoop.spark
    here = [path for path in options.paths if (scheme_of(path) or hadoop.scheme) == "file"]
    there = [path for path in options.paths if path not in here]
    listed = [_list_here(spark, here, options.sieve)] if here else []
    if there:
        listed.append(_list_there(hadoop, there, options, keep))
    return keep("listed", reduce(DataFrame.unionByName, listed))


def _list_here(spark: SparkSession, paths: Sequence[str], sieve: Sieve) -> DataFrame:
    listing = LocalListing(paths, sieve)
    rows = [{**listed_row(file), "error": None} for file in listing.files.values()]
    rows += [{"path": one.file, "size": 0, "time": 0, "error": one.reason} for one in listing.rejects]
    return spark.createDataFrame(pa.Table.from_pylist(rows, _LISTED))


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
            spread = folders.repartition(min(count, 4 * _cores(folders)), "path")
            found = found.unionByName(hadoop.below(spread))
    if len(paths) > 1:
        found = found.dropDuplicates(["path"])
    return _map(found, _InputFilter(options.sieve), _LISTED)


def _folders(listed: DataFrame) -> DataFrame:
    """Return the rejects of folders that cannot be listed, as rows of the plan."""
    return _map(listed.where("error is not null"), _folder_rejects, _PLAN)


def _copies(spark: SparkSession, messages: DataFrame, options: SourceOptions, keep: _Keeper) -> DataFrame:
    """Return the digests of the bodies of messages that have the same key as another message."""
    key = [f.col(f"message.{name}") for name in ("kind", "correlation_id", "batch_number")]
    keyed = messages.where("message.correlation_id is not null").groupBy(*key)
    groups = keyed.agg(f.collect_list(f.struct("path", "size", "time", "message")).alias("copies"))
    several = groups.where(f.size("copies") > 1).select(f.explode("copies").alias("copy")).select("copy.*")
    files = several.groupBy("path", "size", "time").agg(f.collect_list("message").alias("facts"))
    return keep("copies", _map(HadoopFiles(spark).contents(files), _Digest(options), _DIGESTS))


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
    return _map(groups.agg(rows).select("messages"), _Settle(options), _PLAN)


def _spread(files: DataFrame, most: int | None) -> DataFrame:
    """Distribute files to tasks, many small ones to one task."""
    [(count, size)] = files.agg(f.count("*"), f.coalesce(f.sum("size"), f.lit(0))).collect()
    wanted = max(math.ceil(size / _TASK_BYTES), math.ceil(count / _TASK_FILES), 2 * _cores(files))
    return files.repartition(max(1, min(most or wanted, count)), "path")


def _cores(df: DataFrame) -> int:
    return df.sparkSession.sparkContext.defaultParallelism


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


def _rejects(rows: DataFrame) -> tuple[Reject, ...]:
    return tuple(Reject(**row.asDict()) for row in rows.orderBy("file", "line").collect())


def _sequence(row: dict[str, Any]) -> ReplySequence:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return ReplySequence(**values)


def _pylist(rows: DataFrame) -> Iterator[dict[str, Any]]:
    table = rows.toArrow()
    for batch in table.to_batches():
        yield from batch.to_pylist()


# The following classes and functions are what the workers run.


@dataclass(frozen=True)
class _InputFilter:
    """Keeps listed files that are input, and folders that cannot be listed, with the reason."""

    sieve: Sieve

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("path", "time", "named", "error"))
            taken = [
                error is not None or self.sieve.takes(path, time, named=named)
                for path, time, named, error in zip(*columns, strict=True)
            ]
            kept = batch.filter(pa.array(taken, pa.bool_())).select(_LISTED.names)
            reasons = pc.binary_join_element_wise("cannot be read", kept.column("error"), ": ")
            yield pa.RecordBatch.from_arrays([*kept.columns[:-1], reasons], schema=_LISTED)


@dataclass(frozen=True)
class _Look:
    """Makes rows of the plan from files: messages (not settled yet), rejects, and replies that are not followed."""

    options: SourceOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(self._rows(batches), _PLAN)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        for path, facts in lent_files(batches, self.options.whole_file_bytes):
            for scanned in scan_file(path, self.options):
                if isinstance(scanned, Reject):
                    yield {"reject": asdict(scanned)}
                elif scanned is not None:
                    file, named = scanned
                    yield {**facts, "message": asdict(file)}
                    _, unfollowed = follow([(file.path, named)], (), []) if named is not None else ({}, [])
                    yield from ({"unfollowed": asdict(reply)} for reply in unfollowed)


@dataclass(frozen=True)
class _LookAll:
    """Makes the rows `_SCANNED` for a plan that the driver makes; after the rows of a file comes its checksum."""

    options: SourceOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(self._rows(batches), _SCANNED)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        for path, facts in lent_files(batches, self.options.whole_file_bytes):
            try:
                digest = checksum(path)
            except SpoolError as error:
                yield {**facts, "error": error.reason}
                continue
            for scanned in scan_file(path, self.options):
                if isinstance(scanned, Reject):
                    yield {"reject": asdict(scanned)}
                elif scanned is not None:
                    file, named = scanned
                    yield {"message": asdict(file), "reply": named}
            yield {**facts, "sha256": digest}


@dataclass(frozen=True)
class _Digest:
    """Makes the digests of the bodies of messages."""

    options: SourceOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(self._rows(batches), _DIGESTS)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        for _, facts in lent_files(batches, self.options.whole_file_bytes):
            for message in facts:
                for file, body in read_digests((planned_file(message),), self.options.whole_file_bytes):
                    result = {"damage": asdict(body)} if isinstance(body, Reject) else {"digest": body}
                    yield {"document": file.path, **result}


@dataclass(frozen=True)
class _Settle:
    """Makes rows of the plan from the messages of each correlationId."""

    options: SourceOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups = (group.as_py() for batch in batches for group in batch.column("messages"))
        return _batches((row for group in groups for row in _settle_group(group, self.options)), _PLAN)


def _settle_group(group: Sequence[dict[str, Any]], options: SourceOptions) -> Iterator[dict[str, Any]]:
    by_path = {row["message"]["path"]: row for row in group}
    rejects: list[Reject] = []

    def digests(copies: Sequence[PlannedFile]) -> Iterator[tuple[PlannedFile, str | Reject]]:
        for copy in copies:
            row = by_path[copy.path]
            yield copy, row["digest"] if row["damage"] is None else Reject(**row["damage"])

    files = (planned_file(by_path[path]["message"]) for path in sorted(by_path))
    kept, sequences = settle(files, rejects, digests, options)
    for file in kept:
        listed = by_path[file.path]
        yield {"path": listed["path"], "size": listed["size"], "time": listed["time"], "message": asdict(file)}
    yield from ({"reject": asdict(reject)} for reject in rejects)
    yield from ({"sequence": asdict(sequence)} for sequence in sequences)


def _folder_rejects(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rejects = [{"reject": asdict(_unlisted(row))} for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rejects, _PLAN)


def _unlisted(row: Mapping[str, Any]) -> Reject:
    """Return the reject of what cannot be listed."""
    return Reject(shown_path(row["path"]), None, row["error"])


@dataclass(frozen=True)
class _Read:
    """Makes the rows of messages."""

    options: SourceOptions
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        load_stubs(self.options.stubs)
        yield from reader_for(self.options, self.schema).read(documents(batches, self.options.whole_file_bytes))


def documents(batches: Iterable[pa.RecordBatch], whole_file_bytes: int) -> Iterator[PlannedFile]:
    """Yield the messages in incoming files. Each can be read under its path until the caller asks for the next one."""
    for _, facts in lent_files(batches, whole_file_bytes):
        yield from map(planned_file, sorted(facts, key=lambda message: str(message["path"])))


@dataclass(frozen=True)
class _RejectRows:
    """Makes the rows of rejects."""

    options: SourceOptions
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        load_stubs(self.options.stubs)
        reader = reader_for(self.options, self.schema)
        for batch in batches:
            yield from reader.read((), [Reject(**row) for row in batch.to_pylist()])


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
    """Put incoming parts together to files, lend one file at a time under its shown path, and yield path and facts."""
    with SHELF.held():
        file = _Gathered(whole)
        for batch in batches:
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
