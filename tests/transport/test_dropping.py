"""What is dropped without `close` is told, and gives its threads and sockets back; what is used is not dropped."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import ConsumerRuntime
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.transport import Connection
from mtosi_jms.transport.dropping import dropped

PATIENCE = 60.0
WORK = Queue("DROPPED")


@pytest.fixture
def told() -> Iterator[list[str]]:
    """The names of classes that ResourceWarnings were about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        names: list[str] = []
        yield names
        names += [str(one.message).split("(")[0].split(" ")[0] for one in caught]


def until(true: Callable[[], bool]) -> None:
    watch = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        gc.collect()
        if true():
            return
        watch.wait(0.01)
    pytest.fail("it did not come to that")


def held() -> tuple[int, set[threading.Thread]]:
    return len(os.listdir("/proc/self/fd")), set(threading.enumerate())


def listening(connection: Connection) -> object:
    consumer = connection.session().consumer(WORK)
    consumer.listen(lambda delivery: None)
    connection.start()
    return consumer


def sending(connection: Connection) -> object:
    session = connection.session()
    session.send_async(WORK, JmsMessage(body=b"x")).result(PATIENCE)
    return session


USES: dict[str, Callable[[Connection], object]] = {
    "nothing": lambda connection: None,
    "listening": listening,
    "sending": sending,
    "receiving": lambda connection: connection.session().consumer(WORK).receive(0.01),
    "requestor": lambda connection: mtosi.Requestor(connection, sender_uri="queue:OS"),
    "supplier": lambda connection: mtosi.Supplier(connection, WORK, [ManagedElementRetrieval.Supplier()]).start(3),
    "subscriber": lambda connection: mtosi.Subscriber(connection, mtosi.Topic("DROPPED")),
    "runtime": lambda connection: ConsumerRuntime(connection, WORK, lambda *_: None, parking="queue:P").start(),
}


@pytest.mark.broker
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in /proc")
@pytest.mark.parametrize("use", USES)
def test_a_dropped_connection(activemq: Any, open_stomp: Any, use: str) -> None:
    pytest.importorskip("stomp")
    url = activemq.endpoints.url("stomp")
    before = held()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        made: list[Any] = [mtosi.connect(url) for _ in range(3)]
        made += [USES[use](one) for one in made]
        assert held() > before
        del made
        until(lambda: held()[1] <= before[1] and held()[0] <= before[0])
    assert sum("StompConnection" in str(one.message) for one in caught) == 3
