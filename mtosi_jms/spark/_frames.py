"""DataFrames of envelopes from any source: their objects as rows, and their ledger.

    parse_messages(kafka_df, "ME", column="value", keep=("topic", "partition", "offset"))

gives the same columns as the source `mtosi`. `source_file` and `complete` are null, because only the planning of a
landing knows them. Duplicates are not removed: `ledger` counts them, and equal `body_digest` of MESSAGE rows shows
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from mtosi_jms.binding.profile import FirstBatch
from mtosi_jms.errors import ConfigError, XmlError
from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark._first_line import error_first
from mtosi_jms.spark._stateful import EVENT, check_stateful, has_watermark, ledger_of_stream, with_event
from mtosi_jms.tables.columns import LEDGER, full_schema, schema_of, values_of
from mtosi_jms.tables.envelope import FAULT, RESPONSE, reject_of
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.reader import Reader, reader_for
from mtosi_jms.tables.sequences import NO_FILE, Receipt, reckon, time_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    return df.select(column, *keep).mapInArrow(_Parser(options, schema, len(keep)), result)


class _Parser:
    """What the workers run: batches of envelopes in, batches of rows out."""

    def __init__(self, options: SourceOptions, schema: pa.Schema, kept: int) -> None:
        self._options = options
        self._schema = schema
        self._kept = kept

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with error_first():
            load_stubs(self._options.stubs)
            reader = reader_for(self._options, self._schema)
            for batch in batches:
                yield from self._batch(batch, reader)

    def _batch(self, batch: pa.RecordBatch, reader: Reader) -> Iterator[pa.RecordBatch]:
        origins: list[int] = []
        for number, value in enumerate(batch.column(0)):
            self._message(value.as_py(), reader)
            origins.extend([number] * (reader.rows - len(origins)))
            if reader.full:
                yield self._joined(batch, origins, reader.flush())
                origins = []
        if reader.rows:
            yield self._joined(batch, origins, reader.flush())

    def _message(self, value: str | bytes | bytearray | None, reader: Reader) -> None:
        data = envelope_bytes(value)
        try:
            reader.message(data)
        except XmlError as error:
            reader.reject(reject_of(error, "", data), error)

    def _joined(self, batch: pa.RecordBatch, origins: list[int], rows: pa.RecordBatch) -> pa.RecordBatch:
        if not self._kept:
            return rows
        indices = pa.array(origins, type=pa.int64())
        columns = [batch.column(position).take(indices) for position in range(1, self._kept + 1)]
        names = batch.schema.names[1 : self._kept + 1]
        return pa.RecordBatch.from_arrays([*columns, *rows.columns], names=[*names, *rows.schema.names])


def envelope_bytes(value: str | bytes | bytearray | None) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value or b"")


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
    milliseconds = check_stateful(df, timeout, "ledger") if streaming else 0
    event_time = streaming and has_watermark(df)
    if streaming:
        df = with_event(df)
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
    fact = f.struct(*(name for name in messages.columns if name != "correlation_id"))
    alone = f.when(f.col("correlation_id").isNull(), f.col("source"))
    groups = messages.groupBy("correlation_id", alone.alias("own")).agg(f.collect_list(fact).alias("facts"))
    result = from_arrow_schema(schema_of(LEDGER))
    groups = groups.select("correlation_id", "facts")
    if first_batch != "auto":
        return groups.mapInArrow(_Reckoning(first_batch), result)
    # Whether a sender counts from 0 shows only in all of its sequences: each is reckoned in both ways.
    either = StructType([*_SENDER, StructField("one", result), StructField("zero", result)])
    found = groups.mapInArrow(_Reckoning("auto"), either)
    zero = f.max("has_zero").over(Window.partitionBy("sender"))
    return found.select(f.when(zero, f.col("zero")).otherwise(f.col("one")).alias("found")).select("found.*")


_SENDER: Final = (StructField("sender", StringType()), StructField("has_zero", BooleanType()))


class _Reckoning:
    """What the workers run: makes sequences from grouped facts; with "auto" each as of a sender that counts from 1 and
    of one that counts from 0."""

    def __init__(self, first_batch: FirstBatch) -> None:
        self._first_batch = first_batch

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ledger = schema_of(LEDGER)
        if self._first_batch != "auto":
            for batch in batches:
                yield pa.RecordBatch.from_pylist(
                    [row for group in batch.to_pylist() for row in _rows(group, self._first_batch)], schema=ledger
                )
            return
        types = [("sender", pa.string()), ("has_zero", pa.bool_())]
        either = pa.schema([*types, ("one", pa.struct(list(ledger))), ("zero", pa.struct(list(ledger)))])
        for batch in batches:
            rows: list[dict[str, Any]] = []
            for group in batch.to_pylist():
                counted = [fact for fact in group["facts"] if not fact["fault"]]
                sender = min(filter(None, (fact["sender"] for fact in counted)), default="")
                has_zero = any(fact["batch_number"] == 0 for fact in counted)
                both = zip(_rows(group, 1), _rows(group, 0), strict=True)
                rows += [{"sender": sender, "has_zero": has_zero, "one": one, "zero": zero} for one, zero in both]
            yield pa.RecordBatch.from_pylist(rows, schema=either)


def _rows(group: dict[str, Any], first_batch: FirstBatch) -> list[dict[str, Any]]:
    return [values_of(LEDGER, one) for one in reckon(_receipts(group), first_batch)]


def _receipts(group: dict[str, Any]) -> Iterator[Receipt]:
    for fact in group["facts"]:
        yield Receipt(group["correlation_id"], **{**fact, "time": time_of(fact["time"])})
