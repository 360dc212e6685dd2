"""Many requests in flight at once: tasks of one event loop compared with threads, over the embedded provider.

Both use the same requestor. The same supplier answers in a thread of its own. All are in one process under one GIL, so
only the way of waiting differs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final

from measure import Comparison, Side, compare
from messaging import WANTED, pair
from network import managed_element, read_leaves

from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetManagedElementResponse

_MOST_THREADS: Final = 500


def in_flight_1(*, quick: bool) -> Comparison:
    """One call after another."""
    return _compared("asyncio-1", 1, 20 if quick else 300, quick)


def in_flight_100(*, quick: bool) -> Comparison:
    """A hundred at once."""
    return _compared("asyncio-100", 100, 2 if quick else 20, quick)


def in_flight_10000(*, quick: bool) -> Comparison:
    """Ten thousand at once."""
    return _compared("asyncio-10000", 1_000 if quick else 10_000, 1, quick)


def _compared(short: str, at_once: int, calls: int, quick: bool) -> Comparison:
    threads = min(at_once, _MOST_THREADS)
    notes = [] if threads == at_once else [f"threads are capped at {threads}, each with {at_once // threads} calls"]
    sides = [
        Side("asyncio", "ours", _alone(lambda service: asyncio.run(_tasks(service, at_once, calls)))),
        Side("threads", "ours", _alone(lambda service: _threads(service, threads, at_once // threads * calls))),
    ]
    title = f"request and reply over memory:, {at_once:,} in flight on one requestor"
    return compare(short, title, "calls", sides, rounds=3 if quick or at_once > 100 else 7, notes=notes)


def _alone(work: Callable[[ManagedElementRetrieval], int]) -> Callable[[], int]:
    """Return the work with a requestor of its own: one that loops have used receives for them a while longer."""

    def run() -> int:
        with pair([managed_element(7)]) as service:
            return work(service)

    return run


async def _tasks(service: ManagedElementRetrieval, tasks: int, calls: int) -> int:
    async def work() -> int:
        for _ in range(calls):
            _read(await service.aio.get_managed_element(me_ref=WANTED))
        return calls

    return sum(await asyncio.gather(*[work() for _ in range(tasks)]))


def _threads(service: ManagedElementRetrieval, threads: int, calls: int) -> int:
    done: list[int] = []

    def work() -> None:
        for _ in range(calls):
            _read(service.get_managed_element(me_ref=WANTED))
        done.append(calls)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done)


def _read(response: GetManagedElementResponse) -> None:
    if response.me is None:
        raise RuntimeError("an answer without its managed element")
    read_leaves(response.me)
