"""Fixtures for pytest. In a conftest.py: `from mtosi_jms.testing.fixtures import mtosi_connection, mtosi_exchange`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.testing.pair import Pair, connect_privately, exchange
from mtosi_jms.transport import Connection

try:
    import pytest
except ImportError as error:
    raise MissingExtraError("pytest", "test") from error

__all__ = ["mtosi_connection", "mtosi_exchange"]


@pytest.fixture
def mtosi_connection() -> Iterator[Connection]:
    """A connection to an embedded provider that no other test knows, with the names of `mtosi_jms.testing.NAMES`."""
    with connect_privately() as connection:
        yield connection


@pytest.fixture
def mtosi_exchange() -> Iterator[Callable[..., Pair]]:
    """Makes pairs, as `mtosi_jms.testing.exchange` does and with its arguments; they end with the test."""
    with ExitStack() as stack:

        def make(*arguments: Any, **options: Any) -> Pair:
            return stack.enter_context(exchange(*arguments, **options))

        yield make
