"""What the tests of asynchronous exchanges share: a run with a time limit, and waiting for what happens elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

PATIENCE = 60.0

Run = Callable[[Coroutine[Any, Any, Any]], Any]
Until = Callable[[Callable[[], object]], Coroutine[Any, Any, None]]


@pytest.fixture
def run() -> Run:
    """Runs a coroutine to its end on a loop of its own, which reports what is slow or never awaited."""

    def start(work: Coroutine[Any, Any, Any]) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(PATIENCE):
                return await work

        return asyncio.run(limited())

    return start


@pytest.fixture
def until() -> Until:
    """Lets the loop go on until something holds."""

    async def wait(holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(0)

    return wait
