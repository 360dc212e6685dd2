"""What the tests of asynchronous exchanges share: a run with a time limit, and waiting for what happens elsewhere."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ...waiting import PATIENCE


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end on a loop of its own, which reports what is slow or never awaited."""

    async def limited() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await work

    return asyncio.run(limited())


async def until(holds: Callable[[], object]) -> None:
    """Let the loop go on until something holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True
