"""Alarms as a table, by Spark; the module `mtosi_jms.tables.alarms` has the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from mtosi_jms.spark._engine import EnginePlan, plan_by_engine
from mtosi_jms.spark._frames import parse_messages
from mtosi_jms.spark._stateful import check_stateful, has_watermark, latest_of_stream, with_event
from mtosi_jms.spark.jobs._job import SparkJob, SparkSql, load
from mtosi_jms.spark.jobs._landed import check_readable, for_engine, messages_of
from mtosi_jms.tables.alarms import (
    ALARM,
    MESSAGES,
    NEWEST,
    TABLES,
    AlarmOptions,
    AlarmResult,
    alarm_batch,
    alarm_columns,
    last_states,
    report,
    source_options,
)
from mtosi_jms.tables.job import Progress
from mtosi_jms.tables.landing import Plan, plan_landing
from mtosi_jms.tables.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_alarms(spark: SparkSession, landing: str | Path, *, object_type: str = ALARM, stubs: str = "") -> DataFrame:
    """Return the alarms of a landing, with the columns that the module docstring lists.

    Args:
        spark: a session; the function registers the source with it.
        landing: a spool, a folder of envelopes, a file or a glob.
        object_type: the class of alarms, for stubs that have another name for it.
        stubs: generated packages, joined by commas.

    Raises:
        ConfigError: no stub has the class, or it is not a class of alarms.
    """
    return alarm_table(
        load(spark, path=str(landing), objectType=object_type, messageTypes=MESSAGES, stubs=stubs),
    )


def parse_alarms(
    df: DataFrame, column: str = "body", *, object_type: str = ALARM, stubs: str = "", keep: Sequence[str] = ()
) -> DataFrame:
    """Return the alarms in a DataFrame of envelopes, from Kafka for example; the columns `keep` come last. Raises
    ConfigError: as `parse_messages`, or the class is not a class of alarms."""
    return alarm_table(parse_messages(df, object_type, column, message_types=MESSAGES, stubs=stubs, keep=keep))


def alarm_table(rows: DataFrame) -> DataFrame:
    """Put the columns of the module docstring in front of rows of the alarm class, as the source gives them. Raises
    ConfigError: the rows lack the column `object_name` or `perceived_severity`."""
    ours, kept = alarm_columns(rows.columns)
    known = to_arrow_schema(rows.schema)
    schema = pa.schema([*ours, *(known.field(name) for name in kept)])
    return SparkSql(rows.sparkSession).each(rows, partial(map, alarm_batch), schema)


def latest_alarms(alarms: DataFrame, *, timeout: float | None = None) -> DataFrame:
    """Return the last state of each alarm.

    Reports are ordered by `source_time`, `os_time` and `header_timestamp`, then by their position in the landing. All
    rows without `alarm_key` stay. On a stream, each report that is newer than the earlier reports of its alarm gives a
    row, so the last row of an `alarm_key` counts. A stream forgets a cleared alarm after `timeout` without a new
    report; it never forgets an active alarm.

    Args:
        alarms: the result of `read_alarms` or `parse_alarms`.
        timeout: seconds, required on a stream and ignored elsewhere; measured by the watermark of the stream, or by the
            clock of the machine if the stream has no watermark.

    Raises:
        ConfigError: for a stream: no `timeout`, a session whose state store is not RocksDB, or PySpark before 4.1.
    """
    if alarms.isStreaming:
        names = [name for name in NEWEST if name in alarms.columns]
        milliseconds = check_stateful(alarms, timeout, "latest_alarms")
        event_time = has_watermark(alarms)
        return latest_of_stream(with_event(alarms), names, "alarm_key", milliseconds, event_time=event_time)
    return last_states(SparkSql(alarms.sparkSession), alarms)


def run_alarms(
    options: AlarmOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> AlarmResult:
    """Write `OUT/alarms/*.parquet`, `OUT/_report/alarms.json` and, with `latest`, `OUT/latest/*.parquet`."""
    source = source_options(options)
    job = SparkJob("alarms", options.out, TABLES, progress, format=options.format, where=options.where)

    def planned(planner: Callable[[SourceOptions], Plan | EnginePlan]) -> Plan | EnginePlan:
        with job.stage("plan"):
            plan = planner(source)
        if not options.allow_empty:
            check_readable(plan, source)
        return plan

    plan = None if for_engine(source) else planned(plan_landing)
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        if plan is None:
            plan = planned(partial(plan_by_engine, active, scratch=staged.folder / "plan"))
        rows = alarm_table(messages_of(active, plan, source).rows(source))
        return report(job, staged, options, plan, partial(job.write, rows))
