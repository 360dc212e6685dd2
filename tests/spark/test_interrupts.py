"""Ctrl-C while Spark works: an exception, and nothing else."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

pytest.importorskip("pyspark")

# Where something still holds the traceback, py4j reads the answer of the interrupted call as that of the next one. The
# session is of no use then, so it must not be the one that other tests share.
pytestmark = [pytest.mark.spark, pytest.mark.endurance]


def test_an_interrupt_comes_as_an_exception_and_leaves_no_traceback(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    over = threading.Event()

    def interrupt() -> None:
        # Jobs of the group alone: one that another test has left behind says nothing of what waits here.
        while not spark.sparkContext.statusTracker().getJobIdsForGroup("interrupted"):
            if over.wait(0.05):
                return
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    spark.sparkContext.setJobGroup("interrupted", "a sum that takes long")
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come before the job is waited for
            thread.start()
            spark.range(10**13).selectExpr("sum(id)").collect()
    finally:
        over.set()
        thread.join()
        spark.sparkContext.cancelJobGroup("interrupted")
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert [record.getMessage() for record in caplog.records] == []
    assert spark.range(3).count() == 3
