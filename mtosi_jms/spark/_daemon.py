"""The process that Spark's Python workers are forked from: PySpark's own, with a search path without archives.

Before each task a worker has Python forget what it knows of the search path. For a folder that costs nothing; the
directory of an archive is read again. Spark puts PySpark, py4j and a jar of its own on the path as archives, though the
first two are installed as folders too. Without the archives a task without work takes 28 ms instead of 94.

    python -m mtosi_jms.spark._daemon pyspark.worker
"""

from __future__ import annotations

import gc
import importlib.util
import sys
from pathlib import Path


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
    """Whether an entry of the search path is one of pyspark.zip, py4j-VERSION-src.zip, and Spark's jar."""
    return entry.is_file() and entry.name.startswith(("pyspark", "py4j-", "spark-core_"))


if __name__ == "__main__":
    leave_archives_out()
    from pyspark.daemon import manager

    gc.freeze()  # a worker collects garbage after each task
    manager()  # type: ignore[no-untyped-call]
