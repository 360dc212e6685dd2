"""The state that `ledger` and `latest_alarms` keep between the batches of a stream.

Both use Spark's state (`transformWithState`). It is part of the checkpoint of the query, so a killed query continues
where it was. Time is measured by the watermark of the stream, or by the clock of the machine without a watermark. A key
is *silent* while no row of it arrives.

    ledger           keeps the receipts of a sequence until it was released and has then been silent for the timeout
    latest_alarms    keeps the order values of the last report of each alarm, until the alarm is cleared and has then
                     been silent for the timeout

The rules of completeness are those of `reckon`, which gets the same receipts as for a landing.
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
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from mtosi_jms.binding.profile import FirstBatch
from mtosi_jms.errors import ConfigError
from mtosi_jms.spark._session import ROCKSDB, STATE_STORE
from mtosi_jms.tables.columns import LEDGER, schema_of, values_of
from mtosi_jms.tables.sequences import Receipt, ReplySequence, reckon, time_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

EVENT: Final = "_event"
"""The column with the event time of a row in milliseconds, null without a watermark. Because it is a number, Spark does
not drop rows that are late."""
REVISION: Final = "revision"
"""A further column of the ledger of a stream: 1 for the first release of a sequence, one more for each later one."""

_DELAY: Final = "spark.watermarkDelayMs"
_RECEIPT: Final = "batch_number long, end boolean, digest string, copies long, fault boolean, time string"
_ALONE: Final = 64
"""The number of groups for rows without a key, which need no state; enough to keep all tasks busy."""


def stateful(df: DataFrame, timeout: float | None, function: str) -> tuple[DataFrame, int, bool]:
    """Check that a stream can keep state.

    Returns:
        The stream with the column `EVENT`, taken from the column with the watermark, which loses it, because Spark
        would otherwise drop rows that are late; the timeout in milliseconds; and whether there is a watermark.

    Raises:
        ConfigError: it cannot.
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
    milliseconds = round(timeout * 1000)
    marked = next((field.name for field in df.schema if _DELAY in field.metadata), None)
    if marked is None:
        return df.withColumn(EVENT, f.lit(None).cast("long")), milliseconds, False
    time = f.col(marked).cast("timestamp")
    timed = df.withColumns({EVENT: f.unix_millis(time), marked: f.timestamp_micros(f.unix_micros(time))})
    return timed, milliseconds, True


def ledger_of_stream(
    messages: DataFrame, timeout_ms: int, *, event_time: bool, first_batch: FirstBatch = "auto"
) -> DataFrame:
    groups = _grouped(messages, "correlation_id", "digest")
    result = StructType([*from_arrow_schema(schema_of(LEDGER)).fields, StructField(REVISION, LongType())])
    return groups.transformWithState(
        _Ledger(timeout_ms, event_time, first_batch), result, "Append", _time_mode(event_time)
    )


def latest_of_stream(
    alarms: DataFrame, order: Sequence[str], identity: str, timeout_ms: int, *, event_time: bool
) -> DataFrame:
    """Return the last states of a stream of alarms: a row for each report that is newer than all before it."""
    fields = [field for field in alarms.schema if field.name != EVENT]
    result = StructType([StructField(field.name, field.dataType, field.nullable) for field in fields])
    times = {field.name for field in fields if isinstance(field.dataType, TimestampType)}
    ordered = [(name, "long" if name in times else result[name].dataType.simpleString()) for name in order]
    groups = _grouped(alarms, identity, *order)
    processor = _Latest(timeout_ms, event_time, tuple(ordered), tuple(result.names))
    return groups.transformWithState(processor, result, "Append", _time_mode(event_time))


def _grouped(df: DataFrame, key: str, *spread: str) -> GroupedData:
    """Group rows by key; rows without a key are spread over a few groups."""
    own = f.when(f.col(key).isNull(), f.pmod(f.xxhash64(*spread), f.lit(_ALONE)))
    return df.withColumn("_own", own).groupBy(key, "_own")


def _time_mode(event_time: bool) -> str:
    return "EventTime" if event_time else "ProcessingTime"


class _Aging(StatefulProcessor):
    """State with a timer for each key, which expires when the key has been silent for the timeout."""

    def __init__(self, timeout_ms: int, event_time: bool) -> None:
        self._timeout_ms = timeout_ms
        self._event_time = event_time

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._timer = handle.getValueState("timer", "at long")

    def close(self) -> None: ...

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

    # The rows that rows without a key give, of which no state is kept; that new rows of a key give; and that a key
    # gives when it has been silent for the timeout.
    @abstractmethod
    def _alone(self, rows: Iterator[Row]) -> Iterator[Row]: ...

    @abstractmethod
    def _known(self, key: str, rows: Iterator[Row], now: TimerValues) -> Iterator[Row]: ...

    @abstractmethod
    def _silent(self, key: str, now: TimerValues) -> Iterator[Row]: ...

    def _wait(self, now: TimerValues, events: Iterable[int | None] = ()) -> None:
        """Restart the timeout of the key, from the present time or the last of some event times if that is later."""
        self._stop_waiting()
        clock = now.getCurrentWatermarkInMs() if self._event_time else now.getCurrentProcessingTimeInMs()
        at = max([clock, *(event for event in events if event is not None)]) + self._timeout_ms
        self._handle.registerTimer(at)
        self._timer.update((at,))

    def _stop_waiting(self) -> None:
        before = self._timer.get()
        if before is not None:
            self._handle.deleteTimer(before[0])
            self._timer.clear()


class _Ledger(_Aging):
    """Releases a sequence when it is complete or silent for the timeout, and again whenever rows arrive later."""

    def __init__(self, timeout_ms: int, event_time: bool, first_batch: FirstBatch) -> None:
        super().__init__(timeout_ms, event_time)
        self._first_batch = first_batch

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self._receipts = handle.getListState("receipts", _RECEIPT)
        self._revision = handle.getValueState("revision", "number long")

    def _alone(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Release each response without a correlationId: it is a sequence of its own."""
        for row in rows:
            found = reckon([_receipt(None, _facts(row), row.source)], self._first_batch)
            yield from (_released(sequence, 1) for sequence in found)

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
        if not found:  # released before, or only faults, which make no sequence
            self._receipts.clear()
            self._revision.clear()

    def _reckoned(self, key: str) -> list[ReplySequence]:
        return reckon((_receipt(key, facts) for facts in self._receipts.get()), self._first_batch)

    def _release(self, found: ReplySequence, revision: int) -> Row:
        self._revision.update((revision,))
        return _released(found, revision)


def _facts(row: Row) -> tuple[Any, ...]:
    """Return the facts about a message that the state keeps."""
    return row.batch_number, row.end, row.digest, row.copies, row.fault, row.time


def _receipt(correlation_id: str | None, facts: Iterable[Any], source: str = "") -> Receipt:
    number, end, digest, copies, fault, time = facts
    return Receipt(correlation_id, number, end, digest, source, copies, fault, time_of(time))


def _released(found: ReplySequence, revision: int) -> Row:
    return Row(**values_of(LEDGER, found), **{REVISION: revision})


class _Latest(_Aging):
    """Gives each report of an alarm that is newer than all before it."""

    def __init__(
        self, timeout_ms: int, event_time: bool, order: tuple[tuple[str, str], ...], columns: tuple[str, ...]
    ) -> None:
        super().__init__(timeout_ms, event_time)
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
    """Return a value in the form of the state, with a time as microseconds, because the state has no time zones."""
    if not isinstance(value, dt.datetime):
        return value
    return (value.replace(tzinfo=value.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)


def _rank(place: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in place)


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
