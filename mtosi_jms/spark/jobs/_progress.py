"""The progress of a job: its stages, and the tasks of Spark in each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAUSE: Final = 0.5


@contextmanager
def watching(spark: SparkSession, report: Callable[[int, int], None]) -> Iterator[None]:
    """Report the tasks of the active Spark stages while the block runs; nothing for a remote session."""
    from pyspark import InheritableThread
    from pyspark.sql.utils import is_remote

    if is_remote():
        yield
        return
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        before = (0, 0)
        while not done.wait(_PAUSE):
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [stage for stage in found if stage is not None]
            now = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
            if stages and now != before:
                report(*now)
                before = now

    thread = InheritableThread(target=watch, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
