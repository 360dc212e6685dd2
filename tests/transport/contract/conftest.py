"""What the contract suite shares: it knows the seam alone. What a transport lacks is skipped, and never made up for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import Capability, Connection, Consumer, Delivery

SOON = 30.0
"""Seconds that a message which must come may take."""


HERE = Path(__file__).parent
WHOLE = ("memory", "activemq", "jvm-artemis")
"""The providers on which `make test` runs all cases: the embedded one, one over STOMP, one by Java.

What others may do otherwise has a capability: of the cases without one they would show the same client once more.
"""
BY_OTHERS = {"test_selectors", "test_states", "TestLargeOnes"}
"""Selectors are the two brokers', states and what is on the way the two clients', which these three have."""
OF_JAVA = {
    "test_acknowledging",
    "test_browsing",
    "test_content",
    "test_delivery",
    "test_lacking",
    "test_selectors",
    "test_transactions",
}
"""Of Java clients `make test` runs these alone, as they take long; `make endurance` runs the rest."""


_seen: dict[str, tuple[str, Collection[Capability]]] = {}  # names and capabilities of providers: each is asked once


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What `make test` leaves to `make endurance`."""
    for item in items:
        if item.path.parent != HERE or not hasattr(item, "callspec") or "provider" not in item.callspec.params:
            continue
        provider = item.callspec.params["provider"]
        marks = {mark.name for mark in item.iter_markers()} & {"capability", "without"}
        depends = marks and not {item.path.stem, item.parent.name if item.parent else ""} & BY_OTHERS
        if not (provider in WHOLE or depends) or (provider.startswith("jvm-") and item.path.stem not in OF_JAVA):
            item.add_marker(pytest.mark.endurance)


@pytest.fixture(autouse=True)
def _capabilities(request: pytest.FixtureRequest) -> None:
    """Skips a test marked `capability` where the transport lacks one, and one marked `without` where it has one."""
    wanted = _of(request, "capability")
    unwanted = _of(request, "without")
    if wanted or unwanted:
        kind = request.node.callspec.params["provider"]
        if kind not in _seen:
            made = request.getfixturevalue("provider").connect()
            _seen[kind] = made.metadata.provider, made.capabilities
        name, there = _seen[kind]
        for found, verb in ((wanted - there, "lacks"), (unwanted & there, "has")):
            if found:
                pytest.skip(f"{name} {verb} {', '.join(sorted(one.value for one in found))}")


def _of(request: pytest.FixtureRequest, name: str) -> set[Any]:
    return {one for marker in request.node.iter_markers(name) for one in marker.args}


def text(number: int | str, **fields: Any) -> JmsMessage:
    """A message that a number, or a word, tells from others."""
    return JmsMessage(body=f"<n>{number}</n>".encode(), **fields)


def name_of(message: JmsMessage) -> str:
    """What `text` was called with, as text."""
    return message.body.decode().removeprefix("<n>").removesuffix("</n>")


def take(consumer: Consumer) -> Delivery:
    """The next message, which must come."""
    delivery = consumer.receive(SOON)
    assert delivery is not None, "no message came"
    return delivery


@pytest.fixture
def more(provider: Any) -> Callable[[Consumer], Delivery | None]:
    """The next message; None where none comes any more."""

    def next_one(consumer: Consumer) -> Delivery | None:
        delivery = consumer.receive(0)
        if delivery is None and provider.quiet:
            provider.settle()
            delivery = consumer.receive(provider.quiet)
        return delivery

    return next_one


@pytest.fixture
def nothing(more: Callable[[Consumer], Delivery | None]) -> Callable[[Consumer], bool]:
    """Whether no message comes."""
    return lambda consumer: more(consumer) is None


@pytest.fixture
def drain(more: Callable[[Consumer], Delivery | None]) -> Callable[[Consumer], list[JmsMessage]]:
    """What is there, each acknowledged."""

    def all_of(consumer: Consumer) -> list[JmsMessage]:
        taken = []
        while (delivery := more(consumer)) is not None:
            delivery.acknowledge()
            taken.append(delivery.message)
        return taken

    return all_of


@pytest.fixture
def bodies(drain: Callable[[Consumer], list[JmsMessage]]) -> Callable[[Consumer], list[str]]:
    """What tells the messages that are there, each acknowledged."""

    def all_of(consumer: Consumer) -> list[str]:
        return [name_of(message) for message in drain(consumer)]

    return all_of


@pytest.fixture
def started(provider: Any) -> Callable[..., Connection]:
    """Opens one more connection, started; it takes the options of `connect`."""

    def open_one(**options: Any) -> Connection:
        made: Connection = provider.connect(**options)
        made.start()
        return made

    return open_one


class Ear:
    """A listener that remembers, and tells when it has heard enough. `enough`: how many messages. `reaction`: what it
    does with each, given how many it has heard."""

    def __init__(self, enough: int = 1, reaction: Callable[[Delivery, int], object] = lambda _, __: None) -> None:
        self.heard: list[Delivery] = []
        self.errors: list[tuple[BaseException, Delivery | None]] = []
        self.threads: set[threading.Thread] = set()
        self.done = threading.Event()
        self._enough = enough
        self._reaction = reaction

    def __call__(self, delivery: Delivery) -> None:
        self.heard.append(delivery)
        self.threads.add(threading.current_thread())
        try:
            self._reaction(delivery, len(self.heard))
        finally:
            if len(self.heard) >= self._enough:
                self.done.set()

    def on_error(self, error: BaseException, delivery: Delivery | None) -> None:
        self.errors.append((error, delivery))
        self.threads.add(threading.current_thread())


class Holding:
    """A listener in the middle of its work until it is let go."""

    def __init__(self, patience: float, last: Callable[[Delivery], object] = lambda _: None) -> None:
        self.entered, self.release, self.left = threading.Event(), threading.Event(), threading.Event()
        self._patience, self._last = patience, last

    def __call__(self, delivery: Delivery) -> None:
        self.entered.set()
        assert self.release.wait(self._patience)
        self._last(delivery)
        self.left.set()
