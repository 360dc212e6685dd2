"""DataFrames of envelopes from any source: their objects as rows, their ledger, and functions for SQL.

    parse_messages(kafka_df, "ME", column="value", keep=("topic", "partition", "offset"))

gives the same columns as the source `mtosi`. `source_file` and `complete` are null, because only the planning of a
landing knows them. Duplicates are not removed: `ledger` counts them, and equal `body_digest` of MESSAGE rows shows
them.

    register_functions(spark)
    spark.sql("SELECT m.offset, o.name_text FROM messages m, LATERAL mtosi_objects(m.value, 'ME') o")

| function | gives |
|---|---|
| `mtosi_header(body)` | a struct with the fields of the header; null if `body` is not an envelope |
| `mtosi_error(body)` | why `body` is not an envelope, as `line: reason`; null for an envelope |
| `mtosi_objects(body, type[, columns])` | a table with the rows that `parse_messages` gives |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from mtosi_jms.binding.profile import FirstBatch
from mtosi_jms.errors import ConfigError, XmlError
from mtosi_jms.spark._stateful import EVENT, ledger_of_stream, stateful
from mtosi_jms.spark._workers import error_first, map_batches
from mtosi_jms.tables.columns import HEADER, LEDGER, MESSAGES, SEQUENCE, Message, full_schema, schema_of, values_of
from mtosi_jms.tables.envelope import FAULT, RESPONSE, envelope_facts, reject_of
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.reader import Reader, reader_for
from mtosi_jms.tables.sequences import NO_FILE, Receipt, reckon, time_of
from mtosi_jms.xmlbind import parse_xml

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Body = str | bytes | bytearray | None
"""A value of a column of envelopes."""

_FACTS: Final = (
    "kind",
    "correlation_id",
    "batch_number",
    "end_of_reply",
    "body_digest",
    "source_file",
    "duplicate_files",
    "header_timestamp",
    "header_sender_uri",
)
"""The columns of messages from which the ledger is made."""


def parse_messages(
    df: DataFrame,
    object_type: str,
    column: str = "body",
    *,
    mode: str = "PERMISSIVE",
    corrupt_column: str | None = None,
    message_types: str = "RESPONSE",
    stubs: str = "",
    columns: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> DataFrame:
    """Return the objects in a column of whole envelopes as rows. The envelopes may come from Kafka, a table or files.

    Args:
        object_type: as the option `objectType` of the source.
        column: string or binary column with the envelopes.
        mode: as the option of the source; a rejected message gives a row only with `corrupt_column`.
        corrupt_column: name of a column for the reasons of rejected messages.
        message_types: the kinds of messages whose objects are read.
        stubs: generated packages, joined by commas; they take precedence over the shipped stubs.
        columns: names of the columns to return, by default all; other columns are not decoded.
        keep: columns of `df` that are put in front of each row.

    Returns:
        The columns of the source for `object_type`, or those named in `columns`; `source_file` and `complete` are null.

    Raises:
        ConfigError: a column that `df` or the rows do not have, an option that does not fit, or a name that is taken.
    """
    given = {"objectType": object_type, "mode": mode, "messageTypes": message_types, "stubs": stubs, "path": "-"}
    if corrupt_column is not None:
        given["columnNameOfCorruptRecord"] = corrupt_column
    if columns:
        given["columns"] = columns if isinstance(columns, str) else ",".join(columns)
    options = SourceOptions.parse(given)
    schema = full_schema(options)
    for name in (column, *keep):
        if name not in df.columns:
            raise ConfigError(f"no column {name!r}; there are {', '.join(df.columns)}")
    taken = sorted(set(keep) & set(schema.names))
    if taken:
        raise ConfigError(f"the rows have a column {taken[0]!r} of their own: rename the one to keep")
    kept = [df.schema[name] for name in keep]
    result = StructType([*kept, *from_arrow_schema(schema).fields])
    return map_batches(df.select(column, *keep), partial(_parse, options, schema, len(keep)), result, options.stubs)


def _parse(
    options: SourceOptions, schema: pa.Schema, kept: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Make rows of the envelopes in the first column; the following ones are `kept`."""
    reader = reader_for(options, schema)
    for batch in batches:
        origins: list[int] = []
        for number, value in enumerate(batch.column(0)):
            _read(_envelope(value.as_py()), reader)
            origins.extend([number] * (reader.rows - len(origins)))
            if reader.full:
                yield _joined(batch, kept, origins, reader.flush())
                origins = []
        if reader.rows:
            yield _joined(batch, kept, origins, reader.flush())


def _read(data: bytes, reader: Reader) -> None:
    try:
        reader.message(data)
    except XmlError as error:
        reader.reject(reject_of(error, "", data), error)


def _joined(batch: pa.RecordBatch, kept: int, origins: list[int], rows: pa.RecordBatch) -> pa.RecordBatch:
    """Put the columns that are kept in front of the rows that were made of them."""
    indices = pa.array(origins, type=pa.int64())
    columns = [column.take(indices) for column in batch.columns[1 : kept + 1]]
    names = batch.schema.names[1 : kept + 1]
    return pa.RecordBatch.from_arrays([*columns, *rows.columns], names=[*names, *rows.schema.names])


def _envelope(body: Body) -> bytes:
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body or b"")


def ledger(
    df: DataFrame, column: str = "body", *, timeout: float | None = None, first_batch: FirstBatch = "auto"
) -> DataFrame:
    """Return the ledger of some messages: one row for each sequence, on a stream one for each release of a sequence.

    A stream releases a sequence when it is complete, or when no message of it has arrived for `timeout`; the row then
    says what is missing. The stream remembers the sequence for another `timeout`. If a message arrives in that time,
    there is another row with the next `revision`. Time is measured by the watermark of the stream (`df.withWatermark`),
    or by the clock of the machine if the stream has no watermark.

    Args:
        df: messages, not rows of objects: the rows of objectType MESSAGE, or any DataFrame with a column of whole
            envelopes (each row without a correlationId is then a sequence of its own).
        column: the column of envelopes, if `df` does not have the columns of objectType MESSAGE.
        timeout: seconds; required on a stream, and ignored elsewhere.
        first_batch: number of the first batch of each sequence: 0, 1, or "auto": 0 for senders of which a 0 is among
            the messages, else 1. On a stream "auto" knows the zeros of each sequence alone (C23).

    Returns:
        The fields of `ReplySequence` as columns (`source` is `source_file`; in `conflicts`, -1 is a message without a
        number), on a stream also `revision`, from 1. Rejected envelopes make no sequence: read them with
        `parse_messages`.

    Raises:
        ConfigError: `df` has neither the columns of objectType MESSAGE nor `column`; on a stream also: no `timeout`, a
            session whose state store is not RocksDB, or PySpark before 4.1.
    """
    if first_batch not in ("auto", 0, 1):
        raise ConfigError(f"first_batch {first_batch!r}: it is one of auto, 0, 1")
    streaming = df.isStreaming
    milliseconds, event_time = 0, False
    if streaming:
        df, milliseconds, event_time = stateful(df, timeout, "ledger")
    if "body_digest" not in df.columns:
        if column not in df.columns:
            raise ConfigError(
                f"no column {column!r}: ledger() needs rows of objectType MESSAGE, or a column of envelopes"
            )
        df = parse_messages(df, "MESSAGE", column, columns=_FACTS, keep=(EVENT,) if streaming else ())
    nothing = f.lit(None).cast("string")
    timestamp = f.col("header_timestamp") if "header_timestamp" in df.columns else nothing
    sender = f.col("header_sender_uri") if "header_sender_uri" in df.columns else nothing
    no_file = f.lit(NO_FILE)
    made_up = no_file if streaming else f.concat(no_file, f.monotonically_increasing_id().cast("string"))
    messages = df.where(f.col("kind").isin(RESPONSE, FAULT)).select(
        "correlation_id",
        "batch_number",
        f.col("end_of_reply").alias("end"),
        f.coalesce("body_digest", f.lit("")).alias("digest"),
        f.coalesce(f.col("source_file"), made_up).alias("source"),
        (f.size(f.coalesce("duplicate_files", f.array())) + 1).alias("copies"),
        (f.col("kind") == FAULT).alias("fault"),
        timestamp.alias("time"),
        *((EVENT,) if streaming else (f.coalesce(sender, f.lit("")).alias("sender"),)),
    )
    if streaming:
        return ledger_of_stream(messages, milliseconds, event_time=event_time, first_batch=first_batch)
    alone = f.when(f.col("correlation_id").isNull(), f.col("source"))
    fact = f.struct(*(name for name in messages.columns if name != "correlation_id"))
    counted = f.when(~f.col("fault") & (f.col("sender") != ""), f.col("sender"))
    groups = messages.groupBy("correlation_id", alone.alias("own")).agg(
        f.collect_list(fact).alias("facts"),
        f.coalesce(f.min(counted), f.lit("")).alias("sender"),
        f.max(~f.col("fault") & f.col("batch_number").eqNullSafe(0)).alias("zero"),
    )
    first = f.lit(first_batch)
    if first_batch == "auto":  # whether a sender counts from 0 shows only in all of its sequences
        first = f.when(f.max("zero").over(Window.partitionBy("sender")), 0).otherwise(1)
    groups = groups.select("correlation_id", "facts", first.alias("first"))
    return map_batches(groups, _reckon, schema_of(LEDGER))


def _reckon(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [
            values_of(LEDGER, found)
            for group in batch.to_pylist()
            for found in reckon(_receipts(group), group["first"])
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=schema_of(LEDGER))


def _receipts(group: dict[str, Any]) -> Iterator[Receipt]:
    for fact in group["facts"]:
        yield Receipt(group["correlation_id"], **{**fact, "time": time_of(fact["time"])})


_PREFIX: Final = "header_"
_SHOWN: Final = (*MESSAGES[:2], *(column for column in SEQUENCE if column.name != "complete"), *HEADER)
_HEADER: Final = pa.struct([(column.name.removeprefix(_PREFIX), column.type) for column in _SHOWN])


def register_functions(spark: SparkSession) -> None:
    """Register `mtosi_header`, `mtosi_error` and `mtosi_objects`. Raises ConfigError: PySpark is too old."""
    make = getattr(f, "arrow_udf", None)
    if make is None:
        raise ConfigError("register_functions() requires PySpark 4.1 or later")
    header = StructType(from_arrow_schema(pa.schema(list(_HEADER))).fields)
    spark.udf.register("mtosi_header", make(header_of, header))
    spark.udf.register("mtosi_error", make(error_of, "string"))
    spark.udtf.register("mtosi_objects", f.udtf(Objects, useArrow=True))  # type: ignore[arg-type]


def header_of(bodies: pa.Array) -> pa.Array:
    return pa.array(map(_header, bodies.to_pylist()), type=_HEADER)


def _header(body: Body) -> dict[str, Any] | None:
    try:
        message = Message(envelope_facts(parse_xml(_envelope(body))))
    except XmlError:
        return None
    return {column.name.removeprefix(_PREFIX): column.value(message) for column in _SHOWN}


def error_of(bodies: pa.Array) -> pa.Array:
    return pa.array(map(_error, bodies.to_pylist()), type=pa.string())


def _error(body: Body) -> str | None:
    data = _envelope(body)
    try:
        envelope_facts(parse_xml(data))
    except XmlError as error:
        return str(reject_of(error, "", data))
    return None


@dataclass
class Analyzed(AnalyzeResult):
    """The columns of a call of `mtosi_objects`, and the options for reading its rows."""

    given: dict[str, str] = field(default_factory=dict)


class Objects:
    """The table function `mtosi_objects`. Its columns depend on `type` and `columns`, so both must be literals."""

    def __init__(self, analyzed: Analyzed) -> None:
        options = SourceOptions.parse(analyzed.given)
        self._reader = reader_for(options, full_schema(options))

    @staticmethod
    def analyze(body: AnalyzeArgument, type: AnalyzeArgument, columns: AnalyzeArgument | None = None) -> Analyzed:
        """Return the columns of a call. Raises ConfigError: a type, a column or an argument is wrong."""
        with error_first():
            given = {"path": "-", "mode": "DROPMALFORMED", "objectType": _literal("type", type)}
            if columns is not None:
                given["columns"] = _literal("columns", columns)
            return Analyzed(from_arrow_schema(full_schema(SourceOptions.parse(given))), given=given)

    def eval(self, body: Body, type: str, columns: str | None = None) -> Iterator[tuple[Any, ...]]:
        try:
            self._reader.message(_envelope(body))
        except XmlError:
            return
        if self._reader.rows:
            for row in self._reader.flush().to_pylist(maps_as_pydicts="lossy"):
                yield tuple(row.values())


def _literal(name: str, argument: AnalyzeArgument) -> str:
    if not argument.isConstantExpression or not isinstance(argument.value, str):
        raise ConfigError(f"mtosi_objects: {name} must be a literal text, as 'ME'")
    return argument.value
