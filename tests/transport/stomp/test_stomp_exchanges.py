"""Requestor and supplier over real brokers, and sends that are given less time than the connection has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import ReplyTimeoutError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.transport.stomp import StompConnection

from .proxy import Proxy

pytestmark = pytest.mark.broker


@pytest.mark.obligation("C62", "P32", "R2b")
@pytest.mark.parametrize("temporary", [False, True])
def test_an_inventory(broker: BrokerProcess, temporary: bool, request: pytest.FixtureRequest) -> None:
    """The message id of a request is not known here, so replies are paired by the XML correlationId."""
    unique = f"{request.node.name}".replace("[", ".").replace("]", "")
    names = {"jms/InventoryOS": f"queue:INVENTORY.{unique}", "jms/EmsOS": f"queue:EMS.{unique}"}
    url = broker.endpoints.url("stomp")
    with (
        mtosi.connect(url, names=names) as theirs,
        mtosi.connect(url, names=names) as ours,
        mtosi.Supplier(theirs, "jms/EmsOS", services=[ManagedElementEms(Network(elements=60))]),
        mtosi.Requestor(ours, sender_uri="jms/InventoryOS", temporary_reply=temporary) as requestor,
    ):
        retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
        sizes = [len(batch.me_list.me) for batch in retrieval.get_all_managed_elements.batches(batch_size=25)]
        assert sizes == [25, 25, 10]
        with pytest.raises(EntityNotFoundFault):
            retrieval.get_managed_element(me_ref=name("MD=EMS1/ME=nobody"))


ENOUGH = 20.0
"""Seconds; the connection's own limit is 30."""


def test_no_connection(by_proxy: Callable[..., StompConnection], proxy: Proxy, queue: Queue) -> None:
    session = by_proxy().session()
    proxy.refuse()
    proxy.cut()
    assert proxy.refused.acquire(timeout=ENOUGH)
    began = time.monotonic()
    with pytest.raises(TransportError, match="not sent"):
        session.send(queue, JmsMessage(body=b"<x/>"), timeout=0.1)
    assert time.monotonic() - began < ENOUGH
    proxy.refuse(False)


def test_no_answer(by_proxy: Callable[..., StompConnection], proxy: Proxy, queue: Queue) -> None:
    session = by_proxy().session()
    proxy.stall(to_client=True)
    message = JmsMessage(body=b"<x/>", delivery_mode=DeliveryMode.PERSISTENT)
    began = time.monotonic()
    with pytest.raises(UnknownOutcomeError, match=r"no receipt within 0\.1 s") as caught:
        session.send(queue, message, timeout=0.1)
    assert time.monotonic() - began < ENOUGH
    assert [one.body for one in caught.value.messages] == [b"<x/>"]
    proxy.flow()


@pytest.mark.parametrize("persistent", [False, True])
def test_a_call_while_the_broker_is_away(
    by_proxy: Callable[..., StompConnection], proxy: Proxy, queue: Queue, persistent: bool
) -> None:
    connection = by_proxy()
    requestor = mtosi.Requestor(connection, sender_uri=f"queue:{queue.name}-ANSWERS", persistent=persistent)
    proxy.refuse()
    proxy.cut()
    assert proxy.refused.acquire(timeout=ENOUGH)
    began = time.monotonic()
    with pytest.raises(ReplyTimeoutError, match=r"getAllManagedElements to queue:.*no reply within 0\.1 s.*not sent"):
        ManagedElementRetrieval(requestor, queue).get_all_managed_elements(timeout=0.1)
    assert time.monotonic() - began < ENOUGH
    proxy.refuse(False)
    requestor.close()


LONG = 60.0
THREADS, BUSY = 4, 3


class Held(ManagedElementRetrieval.Supplier):
    """Handlers that stand still, in one answer and in the middle of batches, until they are let go; not again when the
    request is delivered again."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Event()
        self.seen: set[str] = set()

    def _wait(self, context: Any) -> None:
        identifier = context.header.correlation_id
        if identifier not in self.seen:
            self.seen.add(identifier)
            self.begun.release()
            assert self.go.wait(LONG)

    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        self._wait(context)
        return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref))

    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
        yield ManagedElementType(name=name("MD=E/ME=1"))
        yield ManagedElementType(name=name("MD=E/ME=2"))
        self._wait(context)
        yield ManagedElementType(name=name("MD=E/ME=3"))


@pytest.mark.parametrize("broker", ["activemq"], indirect=True)
@pytest.mark.parametrize("batches", [False, True])
def test_losses_cost_no_thread(by_proxy: Any, proxy: Any, broker: Any, queue: Queue, batches: bool) -> None:
    held, persistent = Held(), mtosi.CallOptions(persistent=True, timeout=LONG)
    connection = by_proxy()
    replies = Queue(f"{queue.name}.replies")
    with (
        mtosi.connect(broker.endpoints.url("stomp")) as other,
        mtosi.Supplier(connection, queue, [held]).start(THREADS),
        mtosi.Requestor(other, sender_uri=f"queue:{replies.name}") as requestor,
    ):
        stub, answers = ManagedElementRetrieval(requestor, queue), []

        def ask(number: int) -> None:
            if batches:
                found = stub.get_all_managed_elements.batches(batch_size=1, options=persistent)
                answers.append(len(list(found)))
            else:
                me = stub.get_managed_element(me_ref=name(f"MD=E/ME={number}"), options=persistent).me
                answers.append(3 if me is not None else 0)

        for _ in range(3):
            callers = [threading.Thread(target=ask, args=(number,)) for number in range(BUSY)]
            for caller in callers:
                caller.start()
            for _ in callers:
                assert held.begun.acquire(timeout=LONG)
            proxy.cut()
            held.go.set()
            for caller in callers:
                caller.join(LONG)
            held.go.clear()
        assert answers == [3] * 3 * BUSY
        assert sum(one.name.startswith(f"supplier-{queue.name}-") for one in threading.enumerate()) == THREADS
        held.go.set()
