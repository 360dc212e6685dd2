"""Spark's Python processes: how they start, how they show errors, and how they make rows.

    python -m mtosi_jms.spark._workers pyspark.worker

starts PySpark's own process from which workers are forked, with a search path without archives. Before each task a
worker has Python forget what it knows of the search path. For a folder that costs nothing; the directory of an archive
is read again. Spark puts PySpark, py4j and a jar of its own on the path as archives, though the first two are installed
as folders too. Without the archives a task without work takes 28 ms instead of 94.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from mtosi_jms.errors import MtosiError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    Batches: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]

_OF_WORKERS: Final = "PYTHON_WORKER_FACTORY_"
_HIDE: Final = "SPARK_HIDE_TRACEBACK"


def map_batches(rows: DataFrame, make: Batches, schema: pa.Schema | StructType, stubs: Sequence[str] = ()) -> DataFrame:
    """Return the rows that workers make from Arrow batches, with generated packages loaded."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    result = schema if isinstance(schema, StructType) else from_arrow_schema(schema)
    return rows.mapInArrow(partial(_in_worker, make, stubs), result)


def _in_worker(make: Batches, stubs: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from mtosi_jms.inventory import load_stubs

    with error_first():
        load_stubs(stubs)
        yield from make(batches)


@contextmanager
def error_first() -> Iterator[None]:
    """In a Python process of Spark, let Spark show the message of an `MtosiError` above its traceback.

    Spark gives the caller what Python prints for an exception, the long traceback first. The setting tells it to leave
    the traceback out, and a note of the error has it instead. The process ends with the error, so the setting affects
    no other error.
    """
    try:
        yield
    except MtosiError as error:
        if _HIDE not in os.environ and any(name.startswith(_OF_WORKERS) for name in os.environ):
            error.add_note(traceback.format_exc().rstrip())
            os.environ[_HIDE] = "1"
        raise


def leave_archives_out() -> None:
    """Take Spark's own archives off the search path, unless PySpark or py4j is in no folder of it.

    Archives of the user stay.
    """
    before = list(sys.path)
    sys.path[:] = [entry for entry in before if not _is_of_spark(Path(entry))]
    sys.path_importer_cache.clear()
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "py4j")):
        sys.path[:] = before


def _is_of_spark(entry: Path) -> bool:
    return entry.is_file() and entry.name.startswith(("pyspark", "py4j-", "spark-core_"))


if __name__ == "__main__":
    leave_archives_out()
    from pyspark.daemon import manager

    gc.freeze()  # a worker collects garbage after each task
    manager()  # type: ignore[no-untyped-call]
