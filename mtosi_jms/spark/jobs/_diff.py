"""What changed between two snapshots, by Spark; the module `mtosi_jms.tables.diff` has the columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from mtosi_jms.spark.jobs._job import SparkJob, SparkSql, table_of
from mtosi_jms.spark.jobs._merge import state_of
from mtosi_jms.tables.diff import (
    TABLES,
    ColumnNote,
    DiffOptions,
    DiffResult,
    compare,
    differences,
    notes_on,
    pair,
    snapshots_of,
    types_of,
)
from mtosi_jms.tables.job import Progress
from mtosi_jms.tables.snapshots import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def diff_tables(old: DataFrame, new: DataFrame, object_type: str, *, ignore: Collection[str] = ()) -> DataFrame:
    """Return the differences of two tables of one object type, with the columns that the module docstring lists.

    Args:
        old: the old rows, with the columns that the source gives; of a table of a merge or append, its last state is
            compared.
        ignore: further columns that are not compared, such as those that `parse_messages` kept.

    Raises:
        ConfigError: a table has no column `name_text`.
    """
    return differences(SparkSql(old.sparkSession), state_of(old), state_of(new), object_type, ignore)


def column_notes(
    old: DataFrame, new: DataFrame, object_type: str, *, ignore: Collection[str] = ()
) -> tuple[ColumnNote, ...]:
    """Return the columns that only one of two tables has, or that have different types; see `ColumnNote`."""
    return notes_on(SparkSql(old.sparkSession), state_of(old), state_of(new), object_type, ignore)


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
    """Return the differences of two snapshots, all object types in one DataFrame; see the module docstring.

    Args:
        old, new, object_types, ignore, old_at, new_at: as in `DiffOptions`.

    Raises:
        SpoolError: a folder does not exist.
        ConfigError: a folder has no tables, or no history for a time, or neither snapshot has one of the object types.
    """
    before, after, sql = Snapshot(old, at=old_at), Snapshot(new, at=new_at), SparkSql(spark)
    tables = [
        differences(sql, *pair(sql, before, after, name, partial(table_of, spark)), name, ignore)
        for name in types_of(before, after, object_types)
    ]
    return reduce(lambda one, other: one.unionByName(other), tables)


def run_diff(
    options: DiffOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> DiffResult:
    """Compare two snapshots and write `OUT/changes/objectType=X/*.parquet` and `OUT/_report/diff.json`."""
    sides = snapshots_of(options)
    job = SparkJob("diff", options.out, TABLES, progress, format=options.format, where=options.where)
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        return compare(job, staged, options, sides, partial(table_of, active))
