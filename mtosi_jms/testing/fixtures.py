"""The fixtures for pytest; where this distribution is installed pytest finds them by itself.

`mtosi_clock`, `mtosi_connection`, `mtosi_exchange`, `mtosi_network` and `mtosi_notifications` are there for every test;
`-p no:mtosi_jms.testing.fixtures` turns them off. The SDK itself is imported by the first fixture that is asked for, so
that test suites without such tests start as fast as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mtosi_jms.errors import MissingExtraError

try:
    import pytest
except ImportError as error:
    raise MissingExtraError("pytest") from error

if TYPE_CHECKING:
    from mtosi_jms.simulator import Network
    from mtosi_jms.testing import ManualClock, Notifications, Pair
    from mtosi_jms.transport import Connection

__all__ = ["mtosi_clock", "mtosi_connection", "mtosi_exchange", "mtosi_network", "mtosi_notifications"]


@pytest.fixture
def mtosi_clock() -> ManualClock:
    """A clock that stands at 0 until the test moves it, and a timer for late messages."""
    from mtosi_jms.testing import ManualClock

    return ManualClock()


@pytest.fixture
def mtosi_connection() -> Iterator[Connection]:
    """A connection to an embedded provider that no other test knows, with the names of `mtosi_jms.testing.NAMES`."""
    from mtosi_jms.testing import connect_privately

    with connect_privately() as connection:
        yield connection


@pytest.fixture
def mtosi_exchange() -> Iterator[Callable[..., Pair]]:
    """Makes pairs, as `mtosi_jms.testing.exchange` does and with its arguments; they end with the test."""
    from mtosi_jms.testing import exchange

    with ExitStack() as stack:

        def make(*arguments: Any, **options: Any) -> Pair:
            return stack.enter_context(exchange(*arguments, **options))

        yield make


@pytest.fixture
def mtosi_network() -> Callable[..., Network]:
    """Makes networks, as `mtosi_jms.simulator.Network` does and with its arguments; by default of five elements."""
    from mtosi_jms.simulator import Network

    def make(**options: Any) -> Network:
        return Network(**{"elements": 5, **options})

    return make


@pytest.fixture
def mtosi_notifications() -> Iterator[Callable[..., Notifications]]:
    """Makes publishers with subscribers, as `mtosi_jms.testing.notifications` does and with its arguments; they end
    with the test."""
    from mtosi_jms.testing import notifications

    with ExitStack() as stack:

        def make(**options: Any) -> Notifications:
            return stack.enter_context(notifications(**options))

        yield make
