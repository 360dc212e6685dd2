"""Ctrl-C while Spark works: an exception, and nothing else."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import deque
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")


def test_the_connection_of_an_interrupted_call_is_closed() -> None:
    """And no other one: Java gets no command of py4j's that closes some when the call ends."""
    from py4j.clientserver import JavaClient, JavaParameters, PythonParameters  # type: ignore[import-untyped]

    from mtosi_jms.spark._session import _quiet_interrupts

    told: list[bytes] = []
    ended = threading.Event()

    def serve(peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as lines:
            for line in lines:
                told.append(line)
                if line == b"slow\n":
                    os.kill(os.getpid(), signal.SIGINT)
                else:
                    peer.sendall(b"!y" + line)
        if b"slow\n" in told:
            ended.set()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server, _quiet_interrupts():
        threading.Thread(target=accept, daemon=True).start()
        parameters = JavaParameters(port=server.getsockname()[1])
        client = JavaClient(parameters, PythonParameters(), SimpleNamespace(pool=None), deque())
        with pytest.raises(KeyboardInterrupt):
            client.send_command("slow\n")
        assert ended.wait(60)
        assert client.send_command("fast\n") == "yfast"
        client.close()
    assert told == [b"slow\n", b"fast\n"]


@pytest.mark.spark
@pytest.mark.endurance
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
