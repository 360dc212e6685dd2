"""What is dropped without `close`: a connection is told and closed; a role belongs to its connection and lives on."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import ConsumerRuntime
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import REQUESTOR, SUPPLIER, connect_privately
from mtosi_jms.transport import Connection

from .. import waiting

PATIENCE = 20.0
DESCRIPTORS = Path("/proc/self/fd")
WORK = Queue("DROPPED")


def until(true: Callable[[], bool]) -> None:
    waiting.until(lambda: gc.collect() >= 0 and true(), PATIENCE)


def held() -> tuple[int, set[threading.Thread]]:
    return len(list(DESCRIPTORS.iterdir())), set(threading.enumerate())


def listening(connection: Connection) -> object:
    consumer = connection.session().consumer(WORK)
    consumer.listen(lambda delivery: None)
    connection.start()
    return consumer


def sending(connection: Connection) -> object:
    session = connection.session()
    session.send_async(Queue("DROPPED.SENT"), JmsMessage(body=b"x")).result(PATIENCE)
    return session


USES: dict[str, Callable[[Connection], object]] = {
    "nothing": lambda connection: None,
    "listening": listening,
    "sending": sending,
    "receiving": lambda connection: connection.session().consumer(WORK).receive(0.01),
    "requestor": lambda connection: mtosi.Requestor(connection, sender_uri="queue:OS"),
    "publisher": lambda connection: mtosi.Publisher(connection, {"Inventory": "topic:T"}, sender_uri="queue:OS"),
    "subscriber": lambda connection: mtosi.Subscriber(connection, mtosi.Topic("DROPPED")),
}
STARTED: dict[str, Callable[[Connection], object]] = {
    "supplier": lambda connection: mtosi.Supplier(connection, WORK, [ManagedElementRetrieval.Supplier()]).start(3),
    "runtime": lambda connection: ConsumerRuntime(connection, WORK, lambda *_: None, parking="queue:P").start(),
}
ROLES: dict[str, Callable[[Connection], object]] = {
    **STARTED,
    **{role: USES[role] for role in ("requestor", "publisher", "subscriber")},
}


@pytest.fixture
def warned() -> Iterator[Callable[[], list[str]]]:
    """What ResourceWarnings say."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield lambda: [str(one.message) for one in caught]


@pytest.mark.broker
@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="descriptors are counted in /proc")
@pytest.mark.parametrize("use", USES)
def test_a_dropped_connection(activemq: Any, warned: Callable[[], list[str]], use: str) -> None:
    before = held()
    made: list[Any] = [mtosi.connect(activemq.endpoints.url("stomp")) for _ in range(3)]
    made += [USES[use](one) for one in made]
    del made
    until(lambda: held()[1] <= before[1] and held()[0] <= before[0])
    assert sum("StompConnection" in one for one in warned()) == 3


def test_a_dropped_requestor(warned: Callable[[], list[str]]) -> None:
    """Its connection stays open, and has nothing of it any more."""
    with connect_privately() as connection:
        mtosi.Requestor(connection, sender_uri="queue:OS")
        until(lambda: not connection.open_sessions)
        assert warned() == ["a Requestor was dropped without being closed"]


@pytest.mark.parametrize("role", ["publisher", "subscriber"])
def test_a_dropped_publisher_or_subscriber(warned: Callable[[], list[str]], role: str) -> None:
    """It is told, and ends with its connection."""
    with connect_privately() as connection:
        USES[role](connection)
        gc.collect()
        assert warned() == [f"a {role.title()} was dropped without being closed"]
        assert connection.open_sessions == 1


@pytest.mark.parametrize("serves", ["threads", "asyncio"])
def test_a_started_supplier_that_nobody_keeps(warned: Callable[[], list[str]], small: Any, serves: str) -> None:
    """It serves until its connection is closed, and nothing of it is left then."""
    before = held()[1]

    def ask(connection: Connection) -> int:
        gc.collect()
        with mtosi.Requestor(connection, sender_uri=REQUESTOR) as requestor:
            found = ManagedElementRetrieval(requestor, SUPPLIER).get_all_managed_elements.batches(batch_size=1)
            return len(list(found))

    async def serve(connection: Connection) -> int:
        await mtosi.Supplier(connection, SUPPLIER, [small]).aio.start(2)
        return await asyncio.to_thread(ask, connection)

    with connect_privately() as connection:
        if serves == "threads":
            mtosi.Supplier(connection, SUPPLIER, [small]).start(2)
            assert ask(connection) == 4
        else:
            assert asyncio.run(serve(connection)) == 4
    until(lambda: held()[1] <= before)
    assert warned() == []


def test_a_started_runtime_that_nobody_keeps(warned: Callable[[], list[str]]) -> None:
    before, handled = held()[1], threading.Event()
    with connect_privately() as connection:
        ConsumerRuntime(connection, WORK, lambda *_: handled.set(), parking="queue:P").start()
        gc.collect()
        connection.session().send(WORK, JmsMessage(body=b"x"))
        assert handled.wait(PATIENCE)
    until(lambda: held()[1] <= before)
    assert warned() == []


@pytest.mark.parametrize("role", ROLES)
def test_what_was_closed_is_not_told(warned: Callable[[], list[str]], role: str) -> None:
    """Nor what ended with its connection."""
    for close in (True, False):
        with connect_privately() as connection:
            made: list[Any] = [ROLES[role](connection)]
            if close:
                getattr(made[0], "close", getattr(made[0], "stop", getattr(made[0], "drain", None)))()
        until(lambda: not connection.open_sessions)
        del made
    gc.collect()
    assert warned() == []


def test_batches_keep_what_receives_them(warned: Callable[[], list[str]], small: Any) -> None:
    """Who iterates needs neither stub nor requestor at hand."""
    with connect_privately() as connection, mtosi.Supplier(connection, SUPPLIER, [small]):
        requestor = mtosi.Requestor(connection, sender_uri=REQUESTOR)
        batches = ManagedElementRetrieval(requestor, SUPPLIER).get_all_managed_elements.batches(batch_size=1)
        del requestor
        gc.collect()
        assert len(list(batches)) == 4
        del batches
        gc.collect()


@pytest.fixture
def small() -> ManagedElementRetrieval.Supplier:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
            yield from (ManagedElementType() for _ in range(4))

    return Ems()
