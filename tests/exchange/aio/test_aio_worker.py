"""The thread that works for loops: order, errors, cancellation, its end."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.exchange.worker import Worker

from .conftest import run, until


def test_jobs_are_done_in_order_by_one_thread() -> None:
    worker = Worker("worker", "the worker")

    async def work() -> None:
        done: list[int] = []
        threads = await asyncio.gather(
            *[worker.run(lambda n=n: (done.append(n), threading.get_ident())[1]) for n in range(100)]  # type: ignore[misc]
        )
        assert done == list(range(100))
        assert len(set(threads)) == 1
        assert threads[0] != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 // 0)

    run(work())
    worker.close()


def test_a_job_that_nobody_waits_for_is_not_begun() -> None:
    worker = Worker("worker", "the worker")
    gate, entered = threading.Event(), threading.Event()
    done: list[str] = []

    def slow() -> None:
        entered.set()
        assert gate.wait(60)
        done.append("slow")

    async def work() -> None:
        assert worker.is_idle
        first = asyncio.create_task(worker.run(slow))
        second = asyncio.create_task(worker.run(lambda: done.append("second")))
        third = asyncio.create_task(worker.run(lambda: 1 // 0))
        await until(entered.is_set)
        assert not worker.is_idle
        for task in (first, second):
            task.cancel()
        await asyncio.wait([first, second])
        gate.set()
        with pytest.raises(ZeroDivisionError):
            await third
        await until(lambda: worker.is_idle)

    run(work())
    assert done == ["slow"]
    worker.close()
    assert not worker.is_idle


def test_closing_fails_what_waits() -> None:
    worker = Worker("worker", "the worker")
    gate, entered = threading.Event(), threading.Event()

    def slow() -> str:
        entered.set()
        assert gate.wait(60)
        return "slow"

    async def work() -> None:
        first = asyncio.create_task(worker.run(slow))
        second = asyncio.create_task(worker.run(slow))
        await until(entered.is_set)
        worker.close()
        gate.set()
        assert await first == "slow"
        with pytest.raises(IllegalStateError, match="the worker is closed"):
            await second
        with pytest.raises(IllegalStateError, match="the worker is closed"):
            await worker.run(slow)

    run(work())


def test_it_is_not_idle_between_the_line_and_the_job() -> None:
    """Or a request that a loop sends itself would overtake the one that the thread is just about to send."""
    worker = Worker("worker", "the worker")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(2_000):
            begun: list[int] = []
            done = worker.submit(lambda begun=begun: begun.append(1))  # type: ignore[misc]
            while not worker.is_idle:
                pass
            assert begun
            done.result()
    finally:
        sys.setswitchinterval(interval)
        worker.close()
