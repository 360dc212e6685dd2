"""Tables as Parquet, written by Spark's tasks into a folder of this machine and checked here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as f

from mtosi_jms.errors import SpoolError
from mtosi_jms.tables.writer import count_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_parquet(rows: DataFrame, folder: Path, *, by: Sequence[str] = ()) -> int:
    """Write a table, and check that this process sees the rows that the tasks have written.

    Executors on other machines write into a folder of their own if they do not share this one.
    """
    written = Observation()
    counted = rows.observe(written, f.count(f.lit(1)).alias("rows"))
    counted.write.mode("overwrite").partitionBy(*by).parquet(str(folder))
    for checksum in folder.rglob(".*.crc"):
        checksum.unlink()
    wanted, found = int(written.get["rows"]), count_rows(folder)
    if found != wanted:
        raise SpoolError(
            str(folder),
            f"Spark's tasks wrote {wanted:,} rows, and {found:,} are there; nothing was replaced. The executors must "
            "share this folder: mount it at the same path on all machines",
        )
    return wanted
