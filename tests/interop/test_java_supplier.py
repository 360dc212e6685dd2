"""Our Requestor, and a supplier in Java alone: one answer, batches, faults; and what it may return for ids."""

from __future__ import annotations

import queue as queues
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import IllegalStateError
from mtosi_jms.jms import Queue
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.transport import Connection

from ..waiting import background
from .conftest import Side
from .peer import PATIENCE, Peer

pytestmark = pytest.mark.broker
LIMITS = mtosi.Timeouts(first_reply=PATIENCE, gap=PATIENCE, total=PATIENCE)


def retrieval(connection: Connection, queue: Queue, **options: Any) -> tuple[mtosi.Requestor, ManagedElementRetrieval]:
    requestor = mtosi.Requestor(connection, sender_uri="jms/OurOS", temporary_reply=True, timeouts=LIMITS, **options)
    return requestor, ManagedElementRetrieval(requestor, queue)


def names_in(batch: Any) -> list[str]:
    return [str(me.name).rpartition("=")[2] for me in batch.me_list.me]


@pytest.mark.obligation("P5", "R4b", "R2b")
def test_an_answer_five_elements_in_batches_of_two_and_a_fault(
    peer: Peer, connection: Connection, queue: Queue
) -> None:
    peer.ask("supplier", queue.name, "message-id", "true")
    requestor, stub = retrieval(connection, queue)
    with requestor:
        batches = stub.get_all_managed_elements.batches(batch_size=2)
        assert [names_in(one) for one in batches] == [["NE-1", "NE-2"], ["NE-3", "NE-4"], ["NE-5"]]
        assert names_in(stub.get_all_managed_elements()) == ["NE-1", "NE-2", "NE-3", "NE-4", "NE-5"]
        one = stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3")).me
        assert (str(one.name), one.location) == ("MD=EMS1/ME=NE-3", "Zaal € \U0001f600")
        with pytest.raises(EntityNotFoundFault, match="nobody \U0001f600"):
            stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-9"))
    peer.ask("close", queue.name)


@pytest.mark.obligation("C62", "O13d")
@pytest.mark.parametrize("correlation", ["both", "jms"])
def test_a_supplier_that_returns_jms_correlation_id_alone(
    side: Side, peer: Peer, connection: Connection, queue: Queue, correlation: Any
) -> None:
    """It does not copy the correlationId of the header: our own JMSCorrelationID tells whose its replies are."""
    if side.transport == "jvm":
        pytest.skip("requests have a JMSCorrelationID only where their JMSMessageID is not known")
    peer.ask("supplier", queue.name, "correlation-id", "false")
    requestor, stub = retrieval(connection, queue, profile=BindingProfile(correlation=correlation))
    with requestor:
        batches = stub.get_all_managed_elements.batches(batch_size=2)
        assert [len(names_in(one)) for one in batches] == [2, 2, 1]
    peer.ask("close", queue.name)


def test_a_supplier_that_returns_the_message_id_alone(
    side: Side, peer: Peer, connection: Connection, queue: Queue
) -> None:
    """Over STOMP we never learn that id: what it sends is an orphan, which is told, and the caller waits on."""
    strays: queues.Queue[Any] = queues.Queue()
    peer.ask("supplier", queue.name, "message-id", "false")
    requestor, stub = retrieval(connection, queue, on_orphan=strays.put)
    with requestor:
        call = background(lambda: stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3")))
        if side.transport == "jvm":
            assert str(call.result(PATIENCE).me.name) == "MD=EMS1/ME=NE-3"
        else:
            stray = strays.get(timeout=PATIENCE)
            assert stray.reply.correlation_id is None
            assert not call.done()
    if side.transport == "stomp":
        with pytest.raises(IllegalStateError):
            call.result(PATIENCE)
    peer.ask("close", queue.name)
