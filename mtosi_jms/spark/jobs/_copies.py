"""Copies of objects in tables that are too large for this process: as `mtosi_jms.tables` removes them from others."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, MapType

from mtosi_jms.spark._writing import write_parquet
from mtosi_jms.spark.jobs._merge import content_digest
from mtosi_jms.tables import writer
from mtosi_jms.tables.columns import own_columns
from mtosi_jms.tables.writer import Copies, content_columns, count_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_MOST: Final = 1_000_000
"""Of tables with more rows Spark removes the copies."""
_COPY: Final = "_copy"
_SCORE: Final = "_score"
_PRINT: Final = "_print"


def leave_out_copies(spark: SparkSession, folder: Path, schema: pa.Schema, conflicting: Collection[str]) -> Copies:
    """Remove the copies from a Parquet table."""
    if count_rows(folder) <= _MOST:
        return writer.leave_out_copies(folder, schema, conflicting)
    own = own_columns(schema.names)
    if not _has_copies(spark, folder, [own[name] for name in ("name_text", "correlation_id", "source_file")]):
        return Copies()
    rows = spark.read.parquet(str(folder))
    marked = _marked(rows, own, conflicting).cache()
    try:
        out = marked.where(f.col(_COPY) > 1)
        other = (f.col(_PRINT) != f.col("_first")) & (f.col(_SCORE) > 0)
        found = out.agg(f.count(f.lit(1)).alias("rows"), f.count(f.when(other, 1)).alias("differing")).first()
        copies = Copies(*found) if found is not None else Copies()
        if copies.rows:
            new = folder.with_name(f"once-{folder.name}")
            files = max(1, len(list(folder.glob("*.parquet"))))
            write_parquet(marked.where(f.col(_COPY) == 1).select(*rows.columns).coalesce(files), new)
            shutil.rmtree(folder)
            new.rename(folder)
    finally:
        marked.unpersist()
    return copies


def _has_copies(spark: SparkSession, folder: Path, key: list[str]) -> bool:
    """Whether a name comes twice in a sequence."""
    name, sequence, file = map(f.col, key)
    rows = spark.read.parquet(str(folder)).where(name.isNotNull())
    counted = rows.groupBy(name, sequence, f.when(sequence.isNull(), file)).count()
    return bool(counted.where("count > 1").take(1))


def _marked(rows: DataFrame, own: dict[str, str], conflicting: Collection[str]) -> DataFrame:
    """Return the rows with their place among the copies of an object, their number of attributes, and their content."""
    name, sequence, file = (f.col(own[column]) for column in ("name_text", "correlation_id", "source_file"))
    content = content_columns(rows.columns, own)
    score = reduce(add, (f.when(_given(rows, column), 1).otherwise(0) for column in content), f.lit(0))
    copies = Window.partitionBy(name, sequence, f.when(sequence.isNull(), file))
    place = (f.col(own[column]).asc_nulls_last() for column in ("batch_number", "source_file", "source_position"))
    order = copies.orderBy(f.desc(_SCORE), *place)
    stays = name.isNull() | f.coalesce(sequence.isin(list(conflicting)), f.lit(False))
    scored = rows.withColumns({_SCORE: score, _PRINT: content_digest(rows, content)})
    number = f.when(stays, 1).otherwise(f.row_number().over(order))
    return scored.withColumns({_COPY: number, "_first": f.first(_PRINT).over(order)})


def _given(rows: DataFrame, column: str) -> Column:
    """Whether an attribute has a value."""
    if isinstance(rows.schema[column].dataType, ArrayType | MapType):
        return f.size(column) > 0
    return f.col(column).isNotNull()
