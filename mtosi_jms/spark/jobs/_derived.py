"""Alarms, differences and the network as tables, by Spark; the modules of these names in `tables` have the columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark._engine import EnginePlan, check_readable, for_engine, messages_of, plan_by_engine
from mtosi_jms.spark._frames import parse_messages
from mtosi_jms.spark._source import InventorySource
from mtosi_jms.spark._stateful import latest_of_stream, stateful
from mtosi_jms.spark.jobs._job import SparkJob, SparkSql, table_of
from mtosi_jms.spark.jobs._merge import state_of
from mtosi_jms.tables import alarms as of_alarms
from mtosi_jms.tables import diff as of_diff
from mtosi_jms.tables import topology as of_topology
from mtosi_jms.tables.alarms import ALARM, AlarmOptions, AlarmResult
from mtosi_jms.tables.diff import DiffOptions, DiffResult
from mtosi_jms.tables.job import Progress
from mtosi_jms.tables.landing import Plan, plan_landing
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.snapshots import Snapshot
from mtosi_jms.tables.topology import TopologyOptions, TopologyResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_alarms(spark: SparkSession, landing: str | Path, *, object_type: str = ALARM, stubs: str = "") -> DataFrame:
    """Return the alarms of a landing.

    Args:
        spark: a session; the function registers the source with it.
        landing: a spool, a folder of envelopes, a file or a glob.
        object_type: the class of alarms, for stubs that have another name for it.
        stubs: generated packages, joined by commas.

    Raises:
        ConfigError: no stub has the class, or it is not a class of alarms.
    """
    options = {"objectType": object_type, "messageTypes": of_alarms.MESSAGES, "stubs": stubs}
    spark.dataSource.register(InventorySource)
    return alarm_table(spark.read.format(InventorySource.name()).options(**options).load(str(landing)))


def parse_alarms(
    df: DataFrame, column: str = "body", *, object_type: str = ALARM, stubs: str = "", keep: Sequence[str] = ()
) -> DataFrame:
    """Return the alarms in a DataFrame of envelopes, from Kafka for example; the columns `keep` come last. Raises
    ConfigError: as `parse_messages`, or the class is not a class of alarms."""
    return alarm_table(
        parse_messages(df, object_type, column, message_types=of_alarms.MESSAGES, stubs=stubs, keep=keep)
    )


def alarm_table(rows: DataFrame) -> DataFrame:
    """Put the columns of `tables.alarms` in front of rows of the alarm class, as the source gives them. Raises
    ConfigError: the rows lack the column `object_name` or `perceived_severity`."""
    ours, kept = of_alarms.alarm_columns(rows.columns)
    known = to_arrow_schema(rows.schema)
    schema = pa.schema([*ours, *(known.field(name) for name in kept)])
    return SparkSql(rows.sparkSession).each(rows, partial(map, of_alarms.alarm_batch), schema)


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
        names = [name for name in of_alarms.NEWEST if name in alarms.columns]
        timed, milliseconds, event_time = stateful(alarms, timeout, "latest_alarms")
        return latest_of_stream(timed, names, "alarm_key", milliseconds, event_time=event_time)
    return of_alarms.last_states(SparkSql(alarms.sparkSession), alarms)


def run_alarms(
    options: AlarmOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> AlarmResult:
    """Write `OUT/alarms/*.parquet`, `OUT/_report/alarms.json` and, with `latest`, `OUT/latest/*.parquet`."""
    source = of_alarms.source_options(options)
    job = SparkJob("alarms", options.out, of_alarms.TABLES, progress, format=options.format, where=options.where)

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
        return of_alarms.report(job, staged, options, plan, partial(job.write, rows))


def diff_tables(old: DataFrame, new: DataFrame, object_type: str, *, ignore: Collection[str] = ()) -> DataFrame:
    """Return the differences of two tables of one object type.

    Args:
        old: the old rows, with the columns that the source gives; of a table of a merge or append, its last state is
            compared.
        ignore: further columns that are not compared, such as those that `parse_messages` kept.

    Raises:
        ConfigError: a table has no column `name_text`.
    """
    return of_diff.differences(SparkSql(old.sparkSession), state_of(old), state_of(new), object_type, ignore)


def diff_snapshots(
    spark: SparkSession,
    old: str | Path,
    new: str | Path,
    *,
    object_types: Sequence[str] = (),
    ignore: Collection[str] = (),
    old_at: dt.datetime | None = None,
    new_at: dt.datetime | None = None,
) -> DataFrame:
    """Return the differences of two snapshots, all object types in one DataFrame.

    Args:
        old, new, object_types, ignore, old_at, new_at: as in `DiffOptions`.

    Raises:
        SpoolError: a folder does not exist.
        ConfigError: a folder has no tables, or no history for a time, or neither snapshot has one of the object types.
    """
    before, after, sql = Snapshot(old, at=old_at), Snapshot(new, at=new_at), SparkSql(spark)
    tables = [
        of_diff.differences(sql, *of_diff.pair(sql, before, after, name, partial(table_of, spark)), name, ignore)
        for name in of_diff.types_of(before, after, object_types)
    ]
    return reduce(lambda one, other: one.unionByName(other), tables)


def run_diff(
    options: DiffOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> DiffResult:
    """Compare two snapshots and write `OUT/changes/objectType=X/*.parquet` and `OUT/_report/diff.json`."""
    sides = of_diff.snapshots_of(options)
    job = SparkJob("diff", options.out, of_diff.TABLES, progress, format=options.format, where=options.where)
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        return of_diff.compare(job, staged, options, sides, partial(table_of, active))


@dataclass(frozen=True, slots=True)
class Topology:
    """A network in the form of GraphFrames: `GraphFrame(topology.nodes, topology.edges)`."""

    nodes: DataFrame
    edges: DataFrame


def topology_tables(tables: Mapping[str, DataFrame]) -> Topology:
    """Return nodes and edges of the objects in some tables.

    Args:
        tables: by object type, with the columns that the source gives; of a table of a merge or append, its last state
            is drawn.

    Raises:
        ConfigError: there is no table, or one has no column `name_text`.
    """
    if not tables:
        raise ConfigError("no table to take nodes and edges from")
    states = {name: state_of(table) for name, table in tables.items()}
    sql = SparkSql(next(iter(states.values())).sparkSession)
    edges = of_topology.edges_in(sql, states)
    return Topology(of_topology.nodes_in(sql, states, edges), edges)


def snapshot_topology(spark: SparkSession, snapshot: str | Path, at: dt.datetime | None = None) -> Topology:
    """Return nodes and edges of a snapshot that `ingest` made.

    Args:
        at: as in `TopologyOptions`.

    Raises:
        SpoolError: the folder does not exist.
        ConfigError: the folder has no tables, or no history for a time.
    """
    held = Snapshot(snapshot, at=at)
    return topology_tables({name: table_of(spark, held, name) for name in held.tables})


def run_topology(
    options: TopologyOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> TopologyResult:
    """Write `OUT/nodes/*.parquet`, `OUT/edges/*.parquet` and `OUT/_report/topology.json`.

    The option `where` is a condition on nodes. Only edges with both ends among the written nodes are written.
    """
    held = of_topology.snapshot_of(options)
    job = SparkJob("topology", options.out, of_topology.TABLES, progress, format=options.format, where=options.where)
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        return of_topology.draw(job, staged, options, held, partial(table_of, active))
