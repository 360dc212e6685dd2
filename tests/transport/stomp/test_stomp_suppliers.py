"""A supplier over STOMP has all its threads, busy and idle ones, after its connection was lost, and lost again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.jms import Queue
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType

pytestmark = pytest.mark.broker
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
