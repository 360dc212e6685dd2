"""The ledger and the last state of alarms on streams: what is released, when, and what comes late."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as f

import mtosi_jms as mtosi
from mtosi_jms.errors import ConfigError
from mtosi_jms.spark import latest_alarms, ledger, parse_alarms, parse_messages

from .conftest import examples

pytestmark = pytest.mark.spark

Put = Callable[..., Path]
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class Running:
    """A query into memory, fed step by step through a landing."""

    def __init__(self, spark: Any, frame: Any, checkpoint: Path, name: str) -> None:
        self._spark = spark
        self._name = name
        writer = frame.writeStream.format("memory").queryName(name).option("checkpointLocation", str(checkpoint))
        self.query = writer.start()
        self._seen = 0

    def rows(self) -> list[Any]:
        """The rows that came since the last call, after all that the landing has."""
        self.query.processAllAvailable()
        rows: list[Any] = self._spark.table(self._name).collect()
        self._seen, seen = len(rows), self._seen
        return rows[seen:]

    def stop(self) -> None:
        self.query.stop()
        self._spark.catalog.dropTempView(self._name)


@pytest.fixture
def one_task(spark: Any) -> Iterator[None]:
    """Queries whose state one task holds."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", "2")


@pytest.fixture
def run(spark: Any, tmp_path: Path, one_task: None) -> Iterator[Callable[[Any], Running]]:
    started: list[Running] = []

    def start(frame: Any) -> Running:
        started.append(Running(spark, frame, tmp_path / f"checkpoint{len(started)}", f"query{len(started)}"))
        return started[-1]

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def stream(spark: Any, landing: Path) -> Any:
    """The files of the landing as a stream of envelopes."""
    return spark.readStream.format("text").option("wholetext", True).load(str(landing))


def timed(frame: Any) -> Any:
    """Messages with the time of their headers as event time."""
    return frame.withColumn("time", f.to_timestamp("header_timestamp")).withWatermark("time", "0 seconds")


def facts(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((row.correlation_id, row.revision, row.received, row.missing, row.complete) for row in rows)


@pytest.mark.endurance
def test_a_sequence_is_released_when_it_is_complete_or_silent_and_told_again_when_more_comes(
    run: Callable[[Any], Running], stream: Any, put: Put, envelopes: Any
) -> None:
    def batch(cid: str | None, number: int | None, end: bool, time: str) -> str:
        return str(envelopes.batch(cid, number, end, envelopes.me(f"{cid}{number}"), time=f"2024-01-01T{time}Z"))

    running = run(ledger(timed(parse_messages(stream, "MESSAGE", "value")), timeout=600))
    put("1.xml", batch("whole", 1, False, "00:00:00"))
    put("2.xml", batch("gap", 1, False, "00:00:00"))
    put("3.xml", batch("gap", 3, True, "00:00:01"))
    put("4.xml", envelopes.fault("failed"))
    put("5.xml", "<order/>")
    put("6.xml", batch(None, None, True, "00:00:00"))
    rows = running.rows()
    assert [(row.correlation_id, row.revision, row.complete) for row in rows] == [(None, 1, True)]
    put("7.xml", batch("whole", 2, True, "00:05:00"))
    (row,) = running.rows()
    assert (row.correlation_id, row.revision, row.received, row.complete) == ("whole", 1, [1, 2], True)
    assert str(row.first_time) == "2024-01-01 00:00:00"
    put("8.xml", batch("clock", 1, False, "00:11:00"))
    assert facts(running.rows()) == [("gap", 1, [1, 3], [2], False)]
    # Late parts: the watermark has passed their times, and Spark would drop them.
    put("9.xml", batch("gap", 2, False, "00:00:00"))
    put("10.xml", batch("whole", 2, True, "00:05:00"))
    rows = running.rows()
    assert facts(rows) == [("gap", 2, [1, 2, 3], [], True), ("whole", 2, [1, 2], [], True)]
    assert [row.duplicates for row in rows if row.correlation_id == "whole"] == [1]
    assert running.query.lastProgress["stateOperators"][0]["numRowsDroppedByWatermark"] == 0
    # Everything is silent for two timeouts: nothing is kept but of the message that moves the clock.
    put("11.xml", batch("clock", 2, True, "02:00:00"))
    assert facts(running.rows()) == [("clock", 1, [1, 2], [], True)]
    put("12.xml", batch("gap", 2, False, "00:00:00"))
    assert running.rows() == []


def test_by_the_clock_of_the_machine(one_task: None, stream: Any, put: Put, envelopes: Any, tmp_path: Path) -> None:
    """Without a watermark Spark runs a batch whenever it can, until the time has come."""
    put("1.xml", envelopes.batch("a", 2, True, envelopes.me("x")))
    released: queue.Queue[list[Any]] = queue.Queue()

    def hand_over(frame: Any, _: int) -> None:
        if rows := frame.collect():
            released.put(rows)

    frame = ledger(stream, "value", timeout=0.001)
    query = frame.writeStream.foreachBatch(hand_over).option("checkpointLocation", str(tmp_path / "clock")).start()
    try:
        assert facts(released.get(timeout=120)) == [("a", 1, [2], [1], False)]
    finally:
        query.stop()


def test_what_is_missing_is_named(spark: Any, stream: Any, put: Put, envelopes: Any) -> None:
    put("1.xml", envelopes.request())
    with pytest.raises(ConfigError, match=r"ledger\(\) of a stream needs timeout=SECONDS"):
        ledger(stream, "value")
    with pytest.raises(ConfigError, match=r"latest_alarms\(\) of a stream needs timeout=SECONDS"):
        latest_alarms(parse_alarms(stream, "value"))
    known = spark.conf.get(PROVIDER)
    spark.conf.unset(PROVIDER)
    try:
        spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
        with pytest.raises(ConfigError, match=r"keeps its state in RocksDB; before it, say spark\.conf\.set"):
            ledger(stream, "value", timeout=1)
    finally:
        spark.conf.set(PROVIDER, known)


@pytest.mark.endurance
def test_the_guide(spark: Any, landing: Path, put: Put, envelopes: Any, tmp_path: Path) -> None:
    """The example of the page, the places aside; a second run goes on where the first one ended."""
    (code,) = examples("Completeness over time")
    for place in ("landing/", "state/ledger", "tables/ledger"):
        code = code.replace(f'"{place}"', repr(str(tmp_path / place)))
    run = compile(code, "spark.md", "exec")
    put("1.xml", envelopes.batch("a", 1, False, envelopes.me("x")))
    exec(run, {"mtosi": mtosi, "spark": spark})
    put("2.xml", envelopes.batch("a", 2, True, envelopes.me("y")))
    exec(run, {"mtosi": mtosi, "spark": spark})
    assert facts(spark.read.parquet(str(tmp_path / "tables/ledger")).collect()) == [("a", 1, [1, 2], [], True)]
