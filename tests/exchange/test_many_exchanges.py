"""Many requests at once: on one requestor, from many threads, over shared and separate destinations (R3, O9b)."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, IncompleteBatchError, MalformedXmlError, ReplyTimeoutError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.jms import NamingContext
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import ScriptedSupplier, Step, exchange
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

from ..waiting import PATIENCE, background


class Echo(ManagedElementRetrieval.Supplier):
    """Answers with the name that it was asked for, from a place of its own."""

    def __init__(self, place: str = "") -> None:
        self.place = place

    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref, location=self.place))

    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
        for number in range(3):
            yield ManagedElementType(name=name(f"{request.md_or_mlsn_ref}/ME={number}"), location=self.place)


@pytest.mark.obligation("R3a", "F8")
def test_fifty_requests_to_two_suppliers_before_any_reply_is_looked_at() -> None:
    """R3a."""
    names = NamingContext({"jms/OS": "queue:OS", "jms/A": "queue:A", "jms/B": "queue:B"})
    with ExitStack() as stack:
        connection = stack.enter_context(MemoryConnection(MemoryProvider(), names))
        for place in "AB":
            stack.enter_context(Supplier(connection, f"jms/{place}", [Echo(place)]))
        requestor = stack.enter_context(Requestor(connection, sender_uri="jms/OS"))
        stubs = [ManagedElementRetrieval(requestor, f"jms/{place}") for place in "AB"]
        asked = [
            (
                f"MD={number}",
                stubs[number % 2].get_all_managed_elements.batches(batch_size=2, md_or_mlsn_ref=name(f"MD={number}")),
            )
            for number in range(50)
        ]
        assert requestor.pending == 50
        random.Random(7).shuffle(asked)
        for domain, batches in asked:
            found = [(str(me.name), me.location) for batch in batches for me in batch.me_list.me]
            place = "AB"[int(domain[3:]) % 2]
            assert found == [(f"{domain}/ME={number}", place) for number in range(3)]
        assert (requestor.pending, requestor.orphans) == (0, 0)


class Shuffler:
    """Takes what requests there are, answers them in any order, some twice, and throws in replies for nobody."""

    def __init__(self, scripted: ScriptedSupplier, seed: int) -> None:
        self.scripted = scripted
        self.dice = random.Random(seed)
        self.strays = 0
        self.doubled = 0

    def run(self, requests: int) -> None:
        done = 0
        while done < requests:
            taken = [self.scripted.take()]
            while len(taken) < 16:
                try:
                    taken.append(self.scripted.take(0))
                except ReplyTimeoutError:
                    break
            done += len(taken)
            replies = [reply for asked in taken for reply in asked.replies([Echo()])]
            for reply in list(replies):
                if self.dice.random() < 0.1:
                    replies.append(reply)
                    self.doubled += 1
                if self.dice.random() < 0.1:
                    body = reply.body.replace(b"correlationId>", b"correlationId>not-", 1)
                    replies.append(dataclasses.replace(reply, body=body, correlation_id="ID:nobody's"))
                    self.strays += 1
            self.dice.shuffle(replies)
            self.scripted.send(replies)


@pytest.mark.obligation("R3e", "R3f")
def test_sixteen_threads_on_one_requestor() -> None:
    """R3f: 3200 requests and one reply queue, where every tenth reply comes twice and others are for nobody, shuffled.

    No reply is lost, none gets to another caller, and each that is one too many gets to the hook.
    """
    threads, calls = 16, 200
    orphans: SimpleQueue[Any] = SimpleQueue()
    with exchange(on_orphan=orphans.put, timeouts=Timeouts(first_reply=PATIENCE)) as pair:
        shuffler = Shuffler(pair.scripted, seed=11)
        serving = background(lambda: shuffler.run(threads * calls))
        stub = pair.stub(ManagedElementRetrieval)

        def ask(thread: int) -> list[str]:
            wanted = [name(f"MD={thread}/ME={number}") for number in range(calls)]
            return [str(stub.get_managed_element(me_ref=one).me.name) for one in wanted]

        with ThreadPoolExecutor(threads) as pool:
            results = list(pool.map(ask, range(threads)))
        serving.result(PATIENCE)
        pair.scripted.start(lambda asked: asked.replies([Echo()]))
        stub.get_managed_element(me_ref=name("ME=last"))  # whoever waits for it receives what is left before it
        assert results == [[f"MD={thread}/ME={number}" for number in range(calls)] for thread in range(threads)]
        assert pair.requestor.pending == 0
        assert shuffler.strays > 100 < shuffler.doubled
        assert pair.requestor.orphans == shuffler.strays + shuffler.doubled
        for _ in range(pair.requestor.orphans):
            orphans.get(timeout=PATIENCE)
        assert pair.provider.held() == 0


def test_a_caller_that_has_its_reply_leaves_receiving_to_another() -> None:
    """The first caller receives for the second; when it has its own reply the second must not be left asleep."""
    with exchange(timeouts=Timeouts(first_reply=PATIENCE)) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        calls = [background(lambda n=n: stub.get_managed_element(me_ref=name(f"ME={n}"))) for n in range(3)]  # type: ignore[misc]
        asked = [pair.scripted.take() for _ in calls]
        while pair.requestor.waiting < len(calls):
            assert not any(call.done() for call in calls)
        for one in asked:
            pair.scripted.send(one.replies([Echo()]))
            wanted = int(one.envelope.body.me_ref.rdn[0].value)
            assert str(calls[wanted].result(PATIENCE).me.name) == f"ME={wanted}"


def test_callers_with_different_patience() -> None:
    """A caller with less time than the one that receives is told in time all the same."""
    with exchange() as pair:
        stub = pair.stub(ManagedElementRetrieval)
        long = background(lambda: stub.get_managed_element(me_ref=name("ME=1")))
        asked = pair.scripted.take()
        short = background(lambda: stub.get_managed_element(me_ref=name("ME=2"), options=CallOptions(timeout=0.05)))
        with pytest.raises(ReplyTimeoutError):
            short.result(PATIENCE)
        assert not long.done()
        pair.scripted.send(asked.replies([Echo()]))
        assert long.result(PATIENCE).me is not None


def test_a_caller_whose_time_gets_shorter_is_told() -> None:
    """A reply out of turn starts another clock, of a caller that does not receive and was about to wait for long."""
    with exchange() as pair:
        stub = pair.stub(ManagedElementRetrieval)
        receives = background(lambda: stub.get_managed_element(me_ref=name("ME=1")))
        asked = pair.scripted.take()
        hurried = CallOptions(gap_timeout=0.05)
        batches = stub.get_all_managed_elements.batches(batch_size=1, md_or_mlsn_ref=name("MD=1"), options=hurried)
        waits = background(lambda: next(batches))
        while pair.requestor.waiting < 2:
            assert not waits.done()
        pair.scripted.send(pair.scripted.take().replies([Echo()])[1:2])
        with pytest.raises(IncompleteBatchError):
            waits.result(PATIENCE)
        pair.scripted.send(asked.replies([Echo()]))
        assert receives.result(PATIENCE).me is not None


def test_a_requestor_that_is_closed_wakes_all_callers() -> None:
    with exchange() as pair:
        stub = pair.stub(ManagedElementRetrieval)
        calls = [background(lambda: stub.get_managed_element(me_ref=name("ME=1"))) for _ in range(5)]
        for _ in calls:
            pair.scripted.take()
        pair.requestor.close()
        for call in calls:
            with pytest.raises(IllegalStateError):
                call.result(PATIENCE)


def test_several_threads_of_one_supplier_share_the_work() -> None:
    """Both handlers run at the same time: each waits for the other."""
    meeting = threading.Barrier(2, timeout=PATIENCE)

    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
            meeting.wait()
            return mer.GetManagedElementResponse()

    with exchange([Ems()], threads=2) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        both = [stub.get_managed_element.batches(batch_size=1) for _ in range(2)]
        assert [len(list(batches)) for batches in both] == [1, 1]


@pytest.mark.obligation("O13b", "O13d")
def test_a_reply_that_is_there_before_the_message_id_is_known() -> None:
    """O13d: a fault that pairs by message id alone may overtake the return of `send`."""
    others: list[Any] = []

    def slow(step: Step) -> Any:
        sent = step.proceed()
        if step.action == "send" and others:
            other, asked = others
            pair.scripted.send([pair.scripted.take().reply(b"<broken"), *asked.replies([Echo()])])
            other.result(PATIENCE)  # it has received the broken one before its own
        return sent

    with exchange(intercept=slow) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        waits = background(lambda: stub.get_managed_element(me_ref=name("ME=1")))
        others += waits, pair.scripted.take()
        batches = stub.get_all_managed_elements.batches(batch_size=1)
        with pytest.raises(MalformedXmlError):
            next(batches)
        assert pair.requestor.orphans == 0
