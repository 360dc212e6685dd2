"""What the contract suite shares: it knows the seam alone. What a transport lacks is skipped, and never made up for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport.base import Connection, Consumer, Delivery

SOON = 5.0
"""Seconds that a message which must come may take."""


@pytest.fixture(autouse=True)
def _capabilities(request: pytest.FixtureRequest) -> None:
    """Skips a test marked `capability` where the transport lacks one."""
    wanted = {one for marker in request.node.iter_markers("capability") for one in marker.args}
    if wanted:
        made = request.getfixturevalue("provider").connect()
        lacking = sorted(one.value for one in wanted - made.capabilities)
        if lacking:
            pytest.skip(f"{made.metadata.provider} lacks {', '.join(lacking)}")


@pytest.fixture
def text() -> Callable[..., JmsMessage]:
    """Makes a message that a number, or a word, tells from others."""

    def make(number: int | str, **fields: Any) -> JmsMessage:
        return JmsMessage(body=f"<n>{number}</n>".encode(), **fields)

    return make


def _take(consumer: Consumer) -> Delivery:
    delivery = consumer.receive(SOON)
    assert delivery is not None, "no message came"
    return delivery


@pytest.fixture
def take() -> Callable[[Consumer], Delivery]:
    """The next message, which must come."""
    return _take


@pytest.fixture
def nothing(provider: Any) -> Callable[[Consumer], bool]:
    """Whether no message comes."""
    return lambda consumer: consumer.receive(provider.quiet) is None


@pytest.fixture
def drain(provider: Any) -> Callable[[Consumer], list[JmsMessage]]:
    """What is there, each acknowledged."""

    def all_of(consumer: Consumer) -> list[JmsMessage]:
        taken = []
        while (delivery := consumer.receive(provider.quiet)) is not None:
            delivery.acknowledge()
            taken.append(delivery.message)
        return taken

    return all_of


@pytest.fixture
def bodies(drain: Callable[[Consumer], list[JmsMessage]]) -> Callable[[Consumer], list[str]]:
    """What tells the messages that are there, each acknowledged."""

    def all_of(consumer: Consumer) -> list[str]:
        return [named(message) for message in drain(consumer)]

    return all_of


def named(message: JmsMessage) -> str:
    """What `text` was called with."""
    return message.body.decode().removeprefix("<n>").removesuffix("</n>")


@pytest.fixture
def name_of() -> Callable[[JmsMessage], str]:
    """What a message of `text` was made with, as text."""
    return named


@pytest.fixture
def started(provider: Any) -> Callable[..., Connection]:
    """Opens one more connection, started; it takes the options of `connect`."""

    def open_one(**options: Any) -> Connection:
        made: Connection = provider.connect(**options)
        made.start()
        return made

    return open_one
