"""Completeness over time: what `ledger` and `latest_alarms` keep between the batches of a stream.

Both keep it in Spark's own state (`transformWithState`): it is part of the query's checkpoint, so a query that was
killed continues where it was. Time is that of the stream's watermark, where there is one, else that of the machine.

    ledger           the receipts of a sequence, until it has been silent for the timeout and was released, and silent
                     for the timeout once more
    latest_alarms    the place in the order of the last report of each alarm, until the alarm is cleared and then silent
                     for the timeout

The rules of completeness are those of `reckon`, which gets the same receipts as it does for a landing.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark._columns import LEDGER, schema_of, values_of
from mtosi_jms.spark._sequences import Receipt, ReplySequence, reckon, time_of
from mtosi_jms.spark._session import ROCKSDB, STATE_STORE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

EVENT: Final = "_event"
"""The event time of a row in milliseconds, null without a watermark. It is a number, so Spark drops no row for it."""
REVISION: Final = "revision"
"""The column that a ledger of a stream has besides: 1 for the release of a sequence, more for each correction."""

_DELAY: Final = "spark.watermarkDelayMs"
_RECEIPT: Final = "batch_number long, end boolean, digest string, copies long, fault boolean, time string"
_ALONE: Final = 64
"""Groups for rows without a key, which need no state: enough to keep all tasks busy."""


def check_stateful(df: DataFrame, timeout: float | None, function: str) -> int:
    """See that state can be kept for a stream; the timeout in milliseconds.

    Raises:
        ConfigError: no timeout, PySpark before 4.1, no protobuf, or a session that keeps its state elsewhere.
    """
    if timeout is None or timeout <= 0:
        raise ConfigError(f"{function}() of a stream needs timeout=SECONDS, more than 0: it bounds what is kept")
    if not hasattr(df.groupBy(), "transformWithState"):
        raise ConfigError(f"{function}() of a stream requires PySpark 4.1 or later")
    if importlib.util.find_spec("google") is None or importlib.util.find_spec("google.protobuf") is None:
        raise ConfigError(f"{function}() of a stream requires protobuf, as Spark does: pip install protobuf")
    if df.sparkSession.conf.get(STATE_STORE, "") != ROCKSDB:
        needed = f"spark.conf.set({STATE_STORE!r}, {ROCKSDB!r})"
        raise ConfigError(f"{function}() of a stream keeps its state in RocksDB; before it, say {needed}")
    return round(timeout * 1000)


def with_event(df: DataFrame) -> DataFrame:
    """A stream with its event time as the column `EVENT`: that of the column which has a watermark.

    That column is an ordinary one then, since Spark drops rows that are late by a column with a watermark.
    """
    marked = next((field.name for field in df.schema if _DELAY in field.metadata), None)
    if marked is None:
        return df.withColumn(EVENT, f.lit(None).cast("long"))
    time = f.col(marked).cast("timestamp")
    return df.withColumns({EVENT: f.unix_millis(time), marked: f.timestamp_micros(f.unix_micros(time))})


def has_watermark(df: DataFrame) -> bool:
    """Whether a stream has a watermark."""
    return any(_DELAY in field.metadata for field in df.schema)


def ledger_of_stream(messages: DataFrame, timeout: int, *, event_time: bool) -> DataFrame:
    """The ledger of a stream.

    Args:
        messages: the fields of `Receipt`, the time as text, and `EVENT`.
        timeout: milliseconds.
        event_time: whether the stream has a watermark.
    """
    groups = _grouped(messages, "correlation_id", "digest")
    result = StructType([*from_arrow_schema(schema_of(LEDGER)).fields, StructField(REVISION, LongType())])
    return groups.transformWithState(_Ledger(timeout, event_time), result, "Append", _time_mode(event_time))


def latest_of_stream(
    alarms: DataFrame, order: Sequence[str], identity: str, timeout: int, *, event_time: bool
) -> DataFrame:
    """The last states of a stream of alarms: a row each time that there is a newer one.

    Args:
        alarms: rows of alarms, and `EVENT`.
        order: the columns that tell which report is newer, the most important one first; null is the oldest.
        identity: the column that tells alarms apart.
        timeout: milliseconds.
        event_time: whether the stream has a watermark.
    """
    fields = [field for field in alarms.schema if field.name != EVENT]
    result = StructType([StructField(field.name, field.dataType, field.nullable) for field in fields])
    times = {field.name for field in fields if isinstance(field.dataType, TimestampType)}
    ordered = [(name, "long" if name in times else result[name].dataType.simpleString()) for name in order]
    groups = _grouped(alarms, identity, *order)
    processor = _Latest(timeout, event_time, tuple(ordered), tuple(result.names))
    return groups.transformWithState(processor, result, "Append", _time_mode(event_time))


def _grouped(df: DataFrame, key: str, *spread: str) -> GroupedData:
    """Rows by key; those without one spread over a few groups."""
    own = f.when(f.col(key).isNull(), f.pmod(f.xxhash64(*spread), f.lit(_ALONE)))
    return df.withColumn("_own", own).groupBy(key, "_own")


def _time_mode(event_time: bool) -> str:
    return "EventTime" if event_time else "ProcessingTime"


class _Aging(StatefulProcessor):
    """State that goes when its key has been silent for the timeout: one timer for each key."""

    def __init__(self, timeout: int, event_time: bool) -> None:
        self._timeout = timeout
        self._event_time = event_time

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._timer = handle.getValueState("timer", "at long")

    def close(self) -> None:
        """What there is belongs to Spark."""

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        if key[0] is None:
            yield from self._alone(rows)
            return
        yield from self._known(key[0], rows, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        self._timer.clear()  # Spark removes it from its own list
        yield from self._silent(key[0], timerValues)

    @abstractmethod
    def _alone(self, rows: Iterator[Row]) -> Iterator[Row]:
        """What rows without a key give; nothing is kept of them."""

    @abstractmethod
    def _known(self, key: str, rows: Iterator[Row], now: TimerValues) -> Iterator[Row]:
        """What rows of a key give."""

    @abstractmethod
    def _silent(self, key: str, now: TimerValues) -> Iterator[Row]:
        """What a key gives that has been silent for the timeout."""

    def _wait(self, now: TimerValues, events: Iterable[int | None] = ()) -> None:
        """Have the key time out after now, and after the last of some event times."""
        self._stop_waiting()
        clock = now.getCurrentWatermarkInMs() if self._event_time else now.getCurrentProcessingTimeInMs()
        at = max([clock, *(event for event in events if event is not None)]) + self._timeout
        self._handle.registerTimer(at)
        self._timer.update((at,))

    def _stop_waiting(self) -> None:
        before = self._timer.get()
        if before is not None:
            self._handle.deleteTimer(before[0])
            self._timer.clear()


class _Ledger(_Aging):
    """Releases a sequence when it is complete or silent for the timeout, and again whenever it changes after that."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self._receipts = handle.getListState("receipts", _RECEIPT)
        self._revision = handle.getValueState("revision", "number long")

    def _alone(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Each response without a correlationId is a sequence, and nothing else can belong to it."""
        for row in rows:
            receipt = Receipt(None, *_facts(row)[:3], row.source, row.copies, row.fault, time_of(row.time))
            yield from (_released(found, 1) for found in reckon([receipt]))

    def _known(self, key: str, rows: Iterator[Row], now: TimerValues) -> Iterator[Row]:
        events: list[int | None] = []
        facts: list[tuple[Any, ...]] = []
        for row in rows:
            events.append(row[EVENT])
            facts.append(_facts(row))
        self._receipts.appendList(facts)
        self._wait(now, events)
        before = self._revision.get()
        for found in self._reckoned(key):
            if before or found.complete:
                yield self._release(found, before[0] + 1 if before else 1)

    def _silent(self, key: str, now: TimerValues) -> Iterator[Row]:
        found = () if self._revision.exists() else self._reckoned(key)
        for sequence in found:
            yield self._release(sequence, 1)
            self._wait(now)
        if not found:  # released before, or faults alone, which make no sequence
            self._receipts.clear()
            self._revision.clear()

    def _reckoned(self, key: str) -> list[ReplySequence]:
        facts = (list(fact) for fact in self._receipts.get())
        return reckon(
            Receipt(key, number, end, digest, "", copies, fault, time_of(time))
            for number, end, digest, copies, fault, time in facts
        )

    def _release(self, found: ReplySequence, revision: int) -> Row:
        self._revision.update((revision,))
        return _released(found, revision)


def _facts(row: Row) -> tuple[Any, ...]:
    return row.batch_number, row.end, row.digest, row.copies, row.fault, row.time


def _released(found: ReplySequence, revision: int) -> Row:
    return Row(**values_of(LEDGER, found), **{REVISION: revision})


class _Latest(_Aging):
    """Gives the report of an alarm that is newer than all before it."""

    def __init__(
        self, timeout: int, event_time: bool, order: tuple[tuple[str, str], ...], columns: tuple[str, ...]
    ) -> None:
        super().__init__(timeout, event_time)
        self._order = order
        self._columns = columns

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self._last = handle.getValueState("last", ", ".join(f"{name} {kind}" for name, kind in self._order))

    def _alone(self, rows: Iterator[Row]) -> Iterator[Row]:
        return map(self._report, rows)

    def _known(self, key: str, rows: Iterator[Row], now: TimerValues) -> Iterator[Row]:
        events: list[int | None] = []
        newest: Row | None = None
        last = self._last.get()
        for row in rows:
            events.append(row[EVENT])
            place = tuple(_plain(row[name]) for name, _ in self._order)
            if last is None or _rank(place) > _rank(last):
                newest, last = row, place
        if newest is None or last is None:
            return
        self._last.update(last)
        if newest.active is False:
            self._wait(now, events)
        else:
            self._stop_waiting()
        yield self._report(newest)

    def _silent(self, key: str, now: TimerValues) -> Iterator[Row]:
        self._last.clear()
        return iter(())

    def _report(self, row: Row) -> Row:
        return Row(**{name: row[name] for name in self._columns})


def _plain(value: Any) -> Any:
    """A value as the state keeps it: a time as microseconds, since the state knows no zones."""
    if not isinstance(value, dt.datetime):
        return value
    return (value.replace(tzinfo=value.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)


def _rank(place: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in place)


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
