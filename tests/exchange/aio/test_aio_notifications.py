"""Events published and received by coroutines (R7, R8)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, SpoolError, XmlError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.spool import Inbox, InboxEntry
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.testing import connect_privately

from .conftest import run, until

TOPIC, QUEUE = Topic("MTOSI.Fault"), Queue("EVENTS")


def alarm(number: int) -> Alarm:
    return Alarm(object_type="ME", object_name=name(f"ME={number}"))


def number_of(received: Any) -> int:
    return int(str(received.event.object_name).removeprefix("ME="))


def a_thread_receives() -> bool:
    return any(thread.name == "mtosi-subscribe" for thread in threading.enumerate())


@pytest.fixture
def connection() -> Iterator[Any]:
    with connect_privately() as made:
        yield made


@pytest.fixture
def publisher(connection: Any) -> Iterator[Publisher]:
    with Publisher(connection, {"Fault": TOPIC}, sender_uri="jms/EmsOS") as made:
        yield made


async def test_events_in_the_order_in_which_they_were_published(connection: Any, publisher: Publisher) -> None:
    subscriber = Subscriber(connection, TOPIC)
    async with subscriber.aio as events:
        sent = await asyncio.gather(*[publisher.aio.publish(alarm(number)) for number in range(20)])
        assert len({message.message_id for message in sent}) == 20
        found = []
        async for received in events:
            found.append(number_of(received))
            if len(found) == 20:
                break
        assert found == list(range(20))
    with pytest.raises(IllegalStateError):
        await anext(events)


@pytest.mark.parametrize("awaited_again", [True, False])
def test_a_cancelled_task_loses_no_event(connection: Any, awaited_again: bool) -> None:
    """What is received for nobody is not acknowledged: the next one gets it, in this loop, another, or elsewhere."""
    landing = Landing()

    async def leave(subscriber: Subscriber) -> None:
        waiting = asyncio.create_task(anext(subscriber.aio))
        await until(a_thread_receives)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await publisher.aio.publish(alarm(1))
        await until(lambda: connection.provider.depth(QUEUE) == 0)
        assert landing.landed == []

    async def one(subscriber: Subscriber) -> int:
        return number_of(await anext(subscriber.aio))

    with (
        Publisher(connection, {"Fault": QUEUE}, sender_uri="jms/EmsOS") as publisher,
        Subscriber(connection, QUEUE, landing=landing) as subscriber,
    ):
        run(leave(subscriber))
        if awaited_again:
            assert run(one(subscriber)) == 1
            assert len(landing.landed) == 1
    assert connection.provider.depth(QUEUE) == (0 if awaited_again else 1)


class Landing:
    """Refuses what it is told to refuse."""

    def __init__(self, refused: int = 0) -> None:
        self.refused = refused
        self.landed: list[Any] = []

    def land(self, message: Any) -> Any:
        if self.refused:
            self.refused -= 1
            raise SpoolError("landing", "no space left")
        self.landed.append(message)

    def acknowledged(self, landed: Any, **facts: Any) -> None:
        pass


async def test_errors_are_raised_where_somebody_waits_and_iteration_may_go_on(
    connection: Any, publisher: Publisher
) -> None:
    with Subscriber(connection, TOPIC, landing=Landing(refused=1)) as subscriber:
        session = connection.session()
        session.send(TOPIC, JmsMessage(body=b"<torn"))
        await publisher.aio.publish(alarm(2))
        with pytest.raises(SpoolError):
            await anext(subscriber.aio)
        with pytest.raises(XmlError):
            await anext(subscriber.aio)
        assert number_of(await anext(subscriber.aio)) == 2
        session.close()


async def test_closing_ends_a_wait(connection: Any) -> None:
    subscriber = Subscriber(connection, TOPIC)
    waiting = asyncio.create_task(anext(subscriber.aio, "the end"))
    await until(a_thread_receives)
    await subscriber.aio.close()
    assert await waiting == "the end"


def test_closing_ends_a_wait_that_has_just_begun(connection: Any, tmp_path: Path) -> None:
    """However little of it was done: who asked before the end gets the end, and no error."""

    class Closing(Inbox):
        """Looked at before the provider."""

        def take(self) -> InboxEntry | None:
            subscriber.close()
            return None

    async def work() -> None:
        assert await anext(subscriber.aio, "the end") == "the end"
        with pytest.raises(IllegalStateError, match="closed"):
            await anext(subscriber.aio)

    with Closing(tmp_path) as inbox:
        subscriber = Subscriber(connection, TOPIC, inbox=inbox)
        run(work())
