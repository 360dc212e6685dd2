"""The network of a snapshot, by Spark; the module `mtosi_jms.tables.topology` has the columns of nodes and edges."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark.jobs._job import SparkJob, SparkSql, table_of
from mtosi_jms.spark.jobs._merge import state_of
from mtosi_jms.tables.job import Progress
from mtosi_jms.tables.snapshots import Snapshot
from mtosi_jms.tables.topology import TABLES, TopologyOptions, TopologyResult, draw, edges_in, nodes_in, snapshot_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Topology:
    """A network in the form of GraphFrames: `GraphFrame(topology.nodes, topology.edges)`; see the module docstring."""

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
    edges = edges_in(sql, states)
    return Topology(nodes_in(sql, states, edges), edges)


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
    held = snapshot_of(options)
    job = SparkJob("topology", options.out, TABLES, progress, format=options.format, where=options.where)
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        return draw(job, staged, options, held, partial(table_of, active))
