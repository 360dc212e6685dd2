"""What the contract of channels shares: it knows the seam alone, and a channel with the semantics of a topic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from mtosi_jms.bridge.endpoints import Channel, EventSource, FlowStyle
from mtosi_jms.bridge.events import Property, StructuredEvent, any_of
from mtosi_jms.testing import MemoryChannel

SOON = 30.0
"""Seconds that an event which must come may take."""


@pytest.fixture(params=["memory", "jacorb"])
def channel(request: pytest.FixtureRequest) -> Iterator[Channel]:
    """A channel that nobody is connected to."""
    made: Channel
    if request.param == "memory":
        made = MemoryChannel()
    else:
        made = request.getfixturevalue("orb").channel(request.getfixturevalue("jacorb_address"))
    yield made
    made.close()


class Collected:
    """A consumer that keeps what it is given. `refuse`: raised in place of the next calls. `calls`: how many there
    were."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[StructuredEvent] = []
        self.refuse: list[Exception] = []
        self.calls = 0

    def __call__(self, events: Sequence[StructuredEvent]) -> None:
        with self._changed:
            self.calls += 1
            if self.refuse:
                raise self.refuse.pop(0)
            self._events.extend(events)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[StructuredEvent]:
        """The events, once there are so many; those that are there after a long time."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) >= count, SOON)
            return list(self._events)


@pytest.fixture
def collected() -> Collected:
    return Collected()


def event(number: int, **data: str | int) -> StructuredEvent:
    """An event that a number tells from others."""
    named = {"number": number, **data}
    listed = tuple(Property(name, any_of(value)) for name, value in named.items())
    return StructuredEvent("telecom", "Alarm", f"{number}", (), listed, any_of("body"))


@pytest.fixture
def drained(collected: Collected) -> Callable[[EventSource, int], list[StructuredEvent]]:
    """Connects a source, and gives a function that waits for so many events of it, in either style."""

    def drain(source: EventSource, count: int) -> list[StructuredEvent]:
        if source.style is FlowStyle.PUSH:
            return collected.wait_for(count)
        found: list[StructuredEvent] = []
        while len(found) < count and (more := source.pull(100, timeout=SOON)):
            found += more
        return found

    return drain
