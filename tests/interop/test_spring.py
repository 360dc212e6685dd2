"""Spring at the other end: our Requestor, and a supplier in a listener container of Spring's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.broker import KINDS
from mtosi_jms.jms import Queue
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

from ..processes import Program
from .conftest import CLIENTS
from .peer import PATIENCE

pytestmark = pytest.mark.broker
JARS = ("org.springframework:spring-jms:5.3.39", "org.springframework:spring-context:5.3.39")
LIMITS = mtosi.Timeouts(first_reply=PATIENCE, gap=PATIENCE, total=PATIENCE)


@pytest.fixture
def supplied(
    client_name: str, request: pytest.FixtureRequest, queue: Queue, java: Any, tmp_path: Path
) -> Iterator[Any]:
    """A broker at which Spring answers what comes to the queue."""
    client = CLIENTS[client_name]
    broker = request.getfixturevalue(client.broker)
    endpoints = broker.endpoints
    jars = [*java.jars(*JARS), *KINDS[client.broker].jars()]
    command = java.compiled(Path(__file__).with_name("SpringSupplier.java"), jars)
    arguments = [client.factory, f"tcp://127.0.0.1:{endpoints.ports['openwire']}", endpoints.user, queue.name]
    with Program([*command, *arguments], log=tmp_path / "stderr") as program:
        program.say(endpoints.password)
        program.await_line("ready")
        yield client.broker, broker


@pytest.mark.parametrize(
    ("client_name", "transport"),
    [
        ("openwire-activemq", "stomp"),
        ("core-artemis", "jvm"),
        pytest.param("openwire-activemq", "jvm", marks=pytest.mark.endurance),
        pytest.param("core-artemis", "stomp", marks=pytest.mark.endurance),
    ],
)
def test_an_answer_batches_and_a_fault(transport: str, supplied: Any, queue: Queue, connect_by_java: Any) -> None:
    kind, broker = supplied
    connection = connect_by_java(kind, broker) if transport == "jvm" else mtosi.connect(broker.endpoints.url("stomp"))
    with connection, mtosi.Requestor(connection, sender_uri="jms/OurOS", temporary_reply=True, timeouts=LIMITS) as asks:
        connection.start()
        stub = ManagedElementRetrieval(asks, queue)
        batches = stub.get_all_managed_elements.batches(batch_size=2)
        assert [len(batch.me_list.me) for batch in batches] == [2, 2, 1]
        assert str(stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3")).me.name) == "MD=EMS1/ME=NE-3"
        with pytest.raises(EntityNotFoundFault, match="nobody"):
            stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-9"))
