"""A landing as Spark sees it: planned in this process or as a table that Spark makes, checked, and read.

    list -> look at each file -> read copies again -> settle by correlationId -> the plan

Where Spark plans, the driver lists; the other steps make tables, and none of these passes through the driver. Spark's
tasks call the functions of `tables.landing`, which also plan landings in one process, for each file and for the
messages of each correlationId. They open the files by their paths, as any process does.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args, get_origin, get_type_hints

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.inventory import MESSAGE, load_stubs
from mtosi_jms.spark._known import planned_file
from mtosi_jms.spark._workers import map_batches
from mtosi_jms.tables import reader
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.envelope import RESPONSE
from mtosi_jms.tables.files import SHELF, Reject, follow, list_files, local_path
from mtosi_jms.tables.landing import (
    Digested,
    Plan,
    PlannedFile,
    partition,
    read_digests,
    readable,
    scan_path,
    settle,
)
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions
from mtosi_jms.tables.reader import Shown, reader_for
from mtosi_jms.tables.sequences import ReplySequence, check_complete
from mtosi_jms.tables.writer import count_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANY: Final = 100_000
"""Spark plans a landing with more files than this. Of fewer the driver is sooner done, and holds at most 170 MB."""
_TEXT: Final = pa.string()
_LONG: Final = pa.int64()
_ARROW: Final = {str: _TEXT, int: _LONG, bool: pa.bool_(), dt.datetime: pa.timestamp("us", tz="UTC")}


def _arrow(hint: Any) -> pa.DataType:
    if get_origin(hint) is tuple:
        return pa.list_(_arrow(get_args(hint)[0]))
    return _ARROW[next((one for one in get_args(hint) if one is not type(None)), hint)]


def _struct(kind: type) -> pa.StructType:
    return pa.struct([(name, _arrow(hint)) for name, hint in get_type_hints(kind).items()])


_FILES: Final = (pa.field("path", _TEXT), pa.field("size", _LONG))
_REJECTS: Final = pa.schema(list(_struct(Reject)))
_LISTED: Final = pa.schema([*_FILES, ("reject", _struct(Reject))])
"""Listed files; and what cannot be listed, as rejects without a path."""
_PLAN: Final = pa.schema(
    [
        *_FILES,
        ("message", _struct(PlannedFile)),
        ("reject", _struct(Reject)),
        ("sequence", _struct(ReplySequence)),
        ("reply", pa.struct([("path", _TEXT), ("uri", _TEXT)])),
    ]
)
"""One row for each message, reply of BulkResponse, reject and sequence; the other columns are null. A row with a
message has the path and the size of its file."""
_DIGESTS: Final = pa.schema([("document", _TEXT), ("digest", _TEXT), ("damage", _struct(Reject))])
_TASK_BYTES: Final = 64 * 1024 * 1024
_TASK_FILES: Final = 50_000
_ROWS: Final = 1000


@dataclass(frozen=True)
class EnginePlan:
    """A landing that Spark has planned: a `Plan` whose files are rows of a table."""

    table: DataFrame

    @cached_property
    def rejects(self) -> tuple[Reject, ...]:
        """Files that cannot be read as a message, ordered by path."""
        return tuple(Reject(**row.asDict()) for row in self.reject_table().collect())

    @cached_property
    def unfollowed(self) -> tuple[Reject, ...]:
        """Replies of BulkResponse, whose files are not read here."""
        replies = (tuple(row) for row in self._facts("reply").orderBy("path").collect())
        return tuple(follow(replies, (), [])[1])

    @property
    def sequences(self) -> Iterator[ReplySequence]:
        """The ledger. It is not kept: each use asks Spark again."""
        rows = self._facts("sequence").orderBy(f.col("correlation_id").asc_nulls_last(), "source")
        return map(_sequence, _pylist(rows))

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of messages of each kind, duplicates included."""
        copies = f.sum(f.size("duplicates") + 1).alias("copies")
        rows = self._facts("message").groupBy("kind").agg(copies).orderBy("kind").collect()
        return {row["kind"]: row["copies"] for row in rows}

    def readable(self, options: SourceOptions) -> EnginePlan:
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

    def rows(self, options: SourceOptions) -> DataFrame:
        schema = full_schema(options)
        return map_batches(self._files(options.partitions), partial(_read, options, schema), schema, options.stubs)

    def refusals(self, options: SourceOptions) -> list[Reject] | None:
        """Return why nothing can be read from any message; None if something can."""
        tried = _step(_refusals, self._files(), options, _REJECTS)
        return None if tried.where("file is null").take(1) else [Reject(**row.asDict()) for row in tried.collect()]

    def reject_table(self) -> DataFrame:
        """The rejects as rows: file, line, reason."""
        return self._facts("reject").orderBy("file", "line")

    def _files(self, most: int | None = None) -> DataFrame:
        return _spread(_by_file(self.table.where("message is not null")), most)

    def _facts(self, column: str) -> DataFrame:
        return self.table.where(f.col(column).isNotNull()).select(f"{column}.*")


@dataclass(frozen=True)
class KnownMessages:
    """Messages that the driver has planned."""

    spark: SparkSession
    files: tuple[PlannedFile, ...]

    def body_tags(self) -> set[str]:
        return {file.body_tag for file in self.files}

    def of_tags(self, tags: Iterable[str]) -> KnownMessages:
        wanted = set(tags)
        return replace(self, files=tuple(file for file in self.files if file.body_tag in wanted))

    def rows(self, options: SourceOptions) -> DataFrame:
        schema = full_schema(options)
        parts = [
            zlib.compress(json.dumps([asdict(file) for file in part]).encode())
            for part in partition(self.files, options.partitions)
        ]
        # A range has one number in each of its partitions; the parts travel with the function that the tasks run.
        numbers = self.spark.range(0, max(1, len(parts)), 1, max(1, len(parts)))
        return map_batches(numbers, partial(_read_parts, parts, options, schema), schema, options.stubs)


Messages: TypeAlias = EnginePlan | KnownMessages
"""Messages of a landing that Spark's tasks read."""


def for_engine(options: SourceOptions) -> bool:
    """Whether Spark plans a landing, because it is on other machines or has many files."""
    if options.bulk_files:
        return False
    return not options.is_local or any(islice(list_files(options.paths, [], options.sieve), _MANY, None))


def messages_of(spark: SparkSession, plan: Plan | EnginePlan, options: SourceOptions) -> Messages:
    """Return the messages of a plan that have to be read with these options."""
    if isinstance(plan, EnginePlan):
        return plan.readable(options)
    return KnownMessages(spark, tuple(file for file in readable(plan, options) if options.reads(file.kind)))


def check_readable(plan: Plan | EnginePlan, options: SourceOptions, shown: Shown = lambda reject: reject) -> None:
    """Check that at least one message of a landing can be read, so that tables are not replaced by empty ones."""
    if not isinstance(plan, EnginePlan):
        reader.check_readable(plan, options, shown)
    elif (refusals := plan.refusals(options)) is not None:
        raise reader.nothing_readable(options, [*plan.rejects, *refusals], shown)


def read_landing(
    spark: SparkSession, path: str | Sequence[str], object_type: str = "ME", *, scratch: str = "", **options: str
) -> DataFrame:
    """Return the rows of a landing, which Spark's tasks plan and read.

    This call plans the landing. To read a file that has changed since is an error. The driver lists the files; it holds
    neither rows nor plan.

    Args:
        spark: a session of which driver and executors reach the landing.
        path: a folder, a file or a glob, for example `s3a://bucket/landing`, or several of them.
        object_type: as the option `objectType` of the source.
        scratch: a folder for the tables of the plan, which driver and executors can reach. By default the executors
            keep these tables; if an executor is lost, its part is lost, and the landing has to be read again.
        options: those of the source `mtosi`, except `bulkFiles`.

    Returns:
        The columns that the source gives for the same options.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
        ConfigError: an option that does not fit, or a session of Spark Connect, whose client does not see the landing.
        ExchangeError: `onIncomplete` is fail and a sequence is incomplete.
        MtosiError: `mode` is FAILFAST and something is rejected, or Spark fails.
    """
    paths = [path] if isinstance(path, str) else list(path)
    settings = SourceOptions.parse({**options, "paths": json.dumps(paths), "objectType": object_type})
    load_stubs(settings.stubs)
    schema = full_schema(settings)
    plan = plan_by_engine(spark, settings, scratch or None)
    permissive = settings.mode is Mode.PERMISSIVE and settings.corrupt_column is not None
    for first in plan.reject_table().take(1) if settings.mode is Mode.FAILFAST else ():
        raise MtosiError(str(Reject(**first.asDict())))
    rows = plan.readable(settings).rows(settings)
    if not permissive:
        return rows
    rejects = partial(_rejected, settings, schema)
    return rows.unionByName(map_batches(plan.reject_table(), rejects, schema, settings.stubs))


def plan_by_engine(spark: SparkSession, options: SourceOptions, scratch: str | Path | None = None) -> EnginePlan:
    if options.bulk_files:
        raise ConfigError("the option bulkFiles is for landings that the driver plans: spark.read.format('mtosi')")
    if not hasattr(spark, "sparkContext"):
        raise ConfigError("Spark Connect: spark.read.format('mtosi').load(LANDING) plans a landing where the server is")
    keep = partial(_keep, scratch)
    listed = keep("listed", _list(spark, options))
    files = listed.where("path is not null").select("path", "size")
    scanned = keep("scanned", _step(_look, _spread(files, None), options, _PLAN))
    messages = scanned.where("message is not null").select("path", "size", "message")
    copies = _copies(messages, options, keep)
    if options.first_batch == "auto":
        zero = messages.where((f.col("message.batch_number") == 0) & (f.col("message.kind") == RESPONSE))
        senders = zero.select("message.sender").distinct().collect()
        options = replace(options, from_zero=frozenset(row[0] or "" for row in senders))
    found = scanned.where("message is null").unionByName(listed.where("path is null"), allowMissingColumns=True)
    return EnginePlan(keep("plan", _settled(messages, copies, options).unionByName(found)))


def _list(spark: SparkSession, options: SourceOptions) -> DataFrame:
    rejects: list[Reject] = []
    found = list_files(options.paths, rejects, options.sieve)
    files: Iterator[dict[str, Any]] = ({"path": file.path, "size": file.size} for file in found)
    rows = chain(files, ({"reject": asdict(reject)} for reject in rejects))
    listed = spark.createDataFrame(pa.Table.from_batches(_batches(rows, _LISTED), _LISTED))
    return listed.dropDuplicates(["path", "reject"])  # paths and what globs match may overlap


def _copies(messages: DataFrame, options: SourceOptions, keep: Callable[[str, DataFrame], DataFrame]) -> DataFrame:
    """Return the digests of the bodies of messages that have the same key as another message."""
    key = [f.col(f"message.{name}") for name in ("kind", "correlation_id", "batch_number")]
    keyed = messages.where("message.correlation_id is not null").groupBy(*key)
    groups = keyed.agg(f.collect_list(f.struct("path", "size", "message")).alias("copies"))
    several = groups.where(f.size("copies") > 1).select(f.explode("copies").alias("copy")).select("copy.*")
    return keep("copies", _step(_digest, _by_file(several), options, _DIGESTS))


def _by_file(messages: DataFrame) -> DataFrame:
    return messages.groupBy("path", "size").agg(f.collect_list("message").alias("messages"))


def _settled(messages: DataFrame, copies: DataFrame, options: SourceOptions) -> DataFrame:
    joined = messages.join(copies, messages["message.path"] == copies["document"], "left").drop("document")
    alone = f.when(f.col("message.correlation_id").isNull(), f.col("message.path"))
    groups = joined.groupBy(f.col("message.correlation_id"), alone.alias("alone"))
    rows = f.collect_list(f.struct(*joined.columns)).alias("messages")
    return _step(_settle, groups.agg(rows).select("messages"), options, _PLAN)


def _spread(files: DataFrame, most: int | None) -> DataFrame:
    """Distribute files to tasks, many small ones to one task."""
    [(count, size)] = files.agg(f.count("*"), f.coalesce(f.sum("size"), f.lit(0))).collect()
    cores = files.sparkSession.sparkContext.defaultParallelism
    tasks = most or max(math.ceil(size / _TASK_BYTES), math.ceil(count / _TASK_FILES), 2 * cores)
    return files.repartition(max(1, min(tasks, count)), "path")


def _keep(scratch: str | Path | None, name: str, rows: DataFrame) -> DataFrame:
    """Store a table that is used more than once, in a folder or on the executors."""
    if scratch is None:
        return rows.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
    folder = f"{scratch}/{name}"
    if scheme_of(folder) in ("", "file"):
        write_parquet(rows, Path(local_path(folder, "the folder of the plan")))
    else:
        rows.write.mode("overwrite").parquet(folder)
    return rows.sparkSession.read.schema(rows.schema).parquet(folder)


def write_parquet(rows: DataFrame, folder: Path, *, by: Sequence[str] = ()) -> int:
    """Write a table, and check that this process sees the rows that the tasks have written.

    Executors on other machines write into a folder of their own if they do not share this one.
    """
    written = Observation()
    counted = rows.observe(written, f.count(f.lit(1)).alias("rows"))
    counted.write.mode("overwrite").partitionBy(*by).parquet(str(folder))
    for checksum in folder.rglob(".*.crc"):
        checksum.unlink()
    wanted, found = int(written.get["rows"]), count_rows(folder)
    if found != wanted:
        raise SpoolError(
            str(folder),
            f"Spark's tasks wrote {wanted:,} rows, and {found:,} are there; nothing was replaced. The executors must "
            "share this folder: mount it at the same path on all machines",
        )
    return wanted


def _sequence(row: dict[str, Any]) -> ReplySequence:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return ReplySequence(**values)


def _pylist(rows: DataFrame) -> Iterator[dict[str, Any]]:
    table = rows.toArrow()
    for batch in table.to_batches():
        yield from batch.to_pylist()


# The following functions are what the workers run, each a step of planning or reading.

Step: TypeAlias = Callable[[Iterable[pa.RecordBatch], SourceOptions], Iterable[dict[str, Any]]]


def _step(step: Step, rows: DataFrame, options: SourceOptions, schema: pa.Schema) -> DataFrame:
    return map_batches(rows, partial(_rows, step, options, schema), schema, options.stubs)


def _rows(
    step: Step, options: SourceOptions, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return _batches(step(batches, options), schema)


def _look(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    with SHELF.held():
        for row in (row for batch in batches for row in batch.to_pylist()):
            for scanned in scan_path(row["path"], options):
                if isinstance(scanned, Reject):
                    yield {"reject": asdict(scanned)}
                elif scanned is not None:
                    file, uri = scanned
                    yield {**row, "message": asdict(file)}
                    if uri is not None:
                        yield {"reply": {"path": file.path, "uri": uri}}


def _digest(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    for file in documents(batches):
        for _, body in read_digests((file,), options.whole_file_bytes):
            yield {
                "document": file.path,
                **({"damage": asdict(body)} if isinstance(body, Reject) else {"digest": body}),
            }


def _refusals(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    """Say of each message why nothing can be read from it; nulls if something can."""
    for file in documents(batches):
        reject = reader.refusal(file, options)
        yield {} if reject is None else asdict(reject)


def _settle(batches: Iterable[pa.RecordBatch], options: SourceOptions) -> Iterator[dict[str, Any]]:
    for group in (group.as_py() for batch in batches for group in batch.column("messages")):
        by_path = {row["message"]["path"]: row for row in group}
        digests = partial(_known_digests, by_path)
        rejects: list[Reject] = []
        files = (planned_file(by_path[path]["message"]) for path in sorted(by_path))
        kept, sequences = settle(files, rejects, digests, options)
        for file in kept:
            row = by_path[file.path]
            yield {"path": row["path"], "size": row["size"], "message": asdict(file)}
        yield from ({"reject": asdict(reject)} for reject in rejects)
        yield from ({"sequence": asdict(sequence)} for sequence in sequences)


def _known_digests(rows: Mapping[str, dict[str, Any]], copies: Sequence[PlannedFile]) -> Iterator[Digested]:
    for copy in copies:
        row = rows[copy.path]
        yield copy, row["digest"] if row["damage"] is None else Reject(**row["damage"])


def _read(options: SourceOptions, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return reader_for(options, schema).read(documents(batches))


def _rejected(options: SourceOptions, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rejects = [Reject(**row) for batch in batches for row in batch.to_pylist()]
    return reader_for(options, schema).read((), rejects)


def _read_parts(
    parts: Sequence[bytes], options: SourceOptions, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Make the rows of messages that the driver knows: of those parts whose numbers come in."""
    numbers = (number for batch in batches for number in batch.column(0).to_pylist() if number < len(parts))
    files = (planned_file(row) for number in numbers for row in json.loads(zlib.decompress(parts[number])))
    with SHELF.held():
        yield from reader_for(options, schema).read(files)


def documents(batches: Iterable[pa.RecordBatch]) -> Iterator[PlannedFile]:
    """Yield the messages in incoming files."""
    with SHELF.held():
        for messages in (messages for batch in batches for messages in batch.column("messages").to_pylist()):
            yield from map(planned_file, sorted(messages, key=lambda message: str(message["path"])))


def _batches(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    waiting = iter(rows)
    while some := list(islice(waiting, _ROWS)):
        yield pa.RecordBatch.from_pylist(some, schema)
