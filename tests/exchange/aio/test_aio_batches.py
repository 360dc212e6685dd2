"""Several answers, iterated over asynchronously: order, completeness, giving up (R4, R5, R6, P32)."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from mtosi_jms.errors import (
    IllegalStateError,
    TransportError,
)
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import Step, exchange

from ...waiting import PATIENCE, background
from ..conftest import SmallEms, numbers
from .conftest import run, until


def batches(pair: Any, size: int = 1, **options: Any) -> Any:
    stub = pair.stub(ManagedElementRetrieval)
    return stub.aio.get_all_managed_elements.batches(batch_size=size, options=CallOptions(**options))


async def every(iterator: Any) -> list[Any]:
    return [batch async for batch in iterator]


def test_leaving_early_gives_the_rest_up() -> None:
    orphans: list[Any] = []

    async def ask(pair: Any) -> None:
        async for _ in batches(pair):
            break
        gc.collect()
        assert pair.requestor.pending == 0
        pair.scripted.send(replies[1:])
        await until(lambda: len(orphans) == 4)

    with exchange(on_orphan=orphans.append, linger=PATIENCE) as pair:
        replies: list[Any] = []

        async def both() -> None:
            asking = asyncio.create_task(ask(pair))
            asked = await asyncio.to_thread(pair.scripted.take)
            replies.extend(asked.replies([SmallEms(5)]))
            pair.scripted.send(replies[:1])
            await asking

        run(both())


@pytest.mark.parametrize("stage", ["waiting", "between"])
async def test_cancelling_gives_the_rest_up(stage: str) -> None:
    with exchange() as pair:
        got = asyncio.Event()

        async def iterate() -> None:
            async with batches(pair) as found:
                async for _ in found:
                    got.set()
                    if stage == "between":
                        await asyncio.Event().wait()

        asking = asyncio.create_task(iterate())
        asked = await asyncio.to_thread(pair.scripted.take)
        pair.scripted.send(asked.replies([SmallEms(3)])[:1])
        await got.wait()
        if stage == "waiting":
            await until(lambda: pair.requestor.waiting)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert pair.requestor.pending == 0


async def test_the_request_is_sent_by_the_call() -> None:
    with exchange() as pair:
        never = batches(pair, correlation_id="never")
        assert (never.correlation_id, never.held) == ("never", {})
        await asyncio.to_thread(pair.scripted.take)
        early = batches(pair, correlation_id="early")
        async with early:
            asked = await asyncio.to_thread(pair.scripted.take)
            assert asked.envelope.header.correlation_id == early.correlation_id == "early"
            pair.scripted.send(asked.replies([SmallEms(2)]))
            assert len(await every(early)) == 2
            assert early.counts.released == 2
        assert await every(early) == []
        never.close()
        assert await every(never) == []
        assert pair.provider.depth(pair.destination) == 0


async def test_closed_while_it_is_sent(gate: Any) -> None:
    with exchange(intercept=gate) as pair:
        found = batches(pair)
        asking = asyncio.create_task(every(found))
        await until(gate.held.is_set)
        with pytest.raises(IllegalStateError, match="another caller"):
            await anext(found)
        found.close()
        gate.is_open.set()
        assert await asking == []
        assert pair.requestor.pending == 0


@pytest.mark.parametrize("how", ["close", "cancel", "drop"])
async def test_given_up_while_it_stands_in_line_it_is_never_sent(gate: Any, how: str) -> None:
    with exchange(intercept=gate) as pair:
        first = batches(pair, correlation_id="first")
        await until(gate.held.is_set)
        second = batches(pair, correlation_id="second")
        third = batches(pair, correlation_id="third")
        assert second.correlation_id == "second"
        assert pair.requestor.pending == 3
        if how == "cancel":
            waits = asyncio.create_task(every(second))
            await asyncio.sleep(0)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
        elif how == "close":
            second.close()
            assert await every(second) == []
        del second
        gc.collect()
        assert pair.requestor.pending == 2
        gate.is_open.set()
        asked = [await asyncio.to_thread(pair.scripted.take) for _ in range(2)]
        assert [one.envelope.header.correlation_id for one in asked] == ["first", "third"]
        for one in (first, third):
            one.close()
        assert (pair.requestor.pending, pair.provider.depth(pair.destination)) == (0, 0)


async def test_a_request_that_cannot_be_sent_is_told_by_the_first_batch() -> None:
    def cut(step: Step) -> Any:
        if step.action == "send":
            raise TransportError("the line is cut")
        return None if step.action == "send_soon" else step.proceed()

    with exchange(intercept=cut) as pair:
        found = batches(pair)
        with pytest.raises(TransportError, match="the line is cut"):
            await anext(found)
        with pytest.raises(TransportError, match="the line is cut"):
            async with batches(pair):
                pytest.fail("it was not sent")
        assert await every(found) == []
        assert pair.requestor.pending == 0


async def test_closed_by_another_task_while_one_waits() -> None:
    with exchange() as pair:
        found = batches(pair)
        asking = asyncio.create_task(every(found))
        await until(lambda: pair.requestor.waiting)
        found.close()
        assert await asking == []


async def test_a_requestor_that_is_closed_ends_the_iteration() -> None:
    with exchange() as pair:
        asking = asyncio.create_task(every(batches(pair)))
        await until(lambda: pair.requestor.waiting)
        pair.requestor.close()
        with pytest.raises(IllegalStateError):
            await asking


def test_many_sequences_at_once_beside_blocking_ones() -> None:
    async def ask(pair: Any) -> list[list[int]]:
        async def one(size: int) -> list[int]:
            return [number async for batch in batches(pair, size) for number in numbers(batch)]

        return await asyncio.gather(*[one(1 + number % 4) for number in range(40)])

    with exchange([SmallEms(9)], threads=3) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        blocking = background(
            lambda: [n for b in stub.get_all_managed_elements.batches(batch_size=2) for n in numbers(b)]
        )
        assert run(ask(pair)) == [list(range(1, 10))] * 40
        assert blocking.result(PATIENCE) == list(range(1, 10))
        assert (pair.requestor.pending, pair.requestor.orphans) == (0, 0)
