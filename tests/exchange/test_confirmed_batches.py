"""The supplier's partial responses: some on their way at once, the request acknowledged when all are confirmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import MtosiFault, ResourceLimitError, TransportError
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import SUPPLIER, Asked, Pair, exchange
from mtosi_jms.transport.memory import CompletionGate

from ..waiting import PATIENCE, background
from .conftest import NE1, FaultyEms, SmallEms, numbers

Background = Callable[[Callable[[], Any]], "Future[Any]"]


@dataclass
class Answering:
    """A supplier that answers one request in another thread, and the gate that its sends go through."""

    pair: Pair
    gate: CompletionGate
    asked: Asked
    batches: Iterator[Any]
    reported: list[Exception]
    background: Background

    def start(self, service: Any, **options: Any) -> Future[None]:
        supplier = mtosi.Supplier(self.pair.connection, SUPPLIER, [service], on_error=self.reported.append, **options)
        session = self.pair.connection.session()

        def answer() -> None:
            supplier.answer(self.asked.message, session)

        return self.background(answer)


@pytest.fixture
def answering() -> Iterator[Answering]:
    with exchange() as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        asked = pair.scripted.take()
        with CompletionGate(pair.provider) as gate:
            yield Answering(pair, gate, asked, batches, [], background)
        batches.close()


def test_no_more_partials_than_the_window_are_unconfirmed(answering: Answering) -> None:
    """Nor is the handler asked for more than one object beyond them."""
    gate, yielded = answering.gate, []

    class Counting(SmallEms):  # type: ignore[misc]  # the class is a fixture
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            for me in super().get_all_managed_elements(request, context):
                yielded.append(me)
                yield me

    answer = answering.start(Counting(8), send_window=3)
    assert gate.await_held(3, PATIENCE)
    gate.release()
    assert gate.await_held(3, PATIENCE)
    gate.release()
    assert gate.await_held(3, PATIENCE)
    assert len(yielded) <= 3 + 2 + 2
    assert not answer.done()
    for _ in range(3):
        gate.release()
        assert gate.await_held(3, PATIENCE)
    assert len(yielded) == 8
    assert not answer.done(), "three partials are not confirmed"
    gate.release_all()
    answer.result(PATIENCE)
    assert answering.reported == []


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_partial_that_fails_ends_the_reply(answering: Answering, place: int) -> None:
    """The caller gets the error, and so does not acknowledge the request."""
    answer = answering.start(SmallEms(5), send_window=5)
    assert answering.gate.await_held(5, PATIENCE)
    answering.gate.fail(TransportError("refused"), place)
    answering.gate.release_all()
    with pytest.raises(TransportError, match="refused"):
        answer.result(PATIENCE)


def test_a_full_reply_destination_ends_the_reply_and_is_reported(answering: Answering) -> None:
    ems = SmallEms(50)
    answer = answering.start(ems, send_window=2)
    assert answering.gate.await_held(2, PATIENCE)
    answering.gate.fail(ResourceLimitError("queue:INVENTORY is full"))
    answering.gate.release_all()
    answer.result(PATIENCE)
    assert [type(error) for error in answering.reported] == [ResourceLimitError]
    assert answering.gate.held == ()


def test_a_fault_comes_after_the_partials_before_it(answering: Answering) -> None:
    def some() -> Iterator[Any]:
        yield ManagedElementType()
        yield ManagedElementType()
        raise MtosiFault("no more")

    answer = answering.start(FaultyEms(some))
    assert answering.gate.await_held(1, PATIENCE)
    assert not answer.done()
    answering.gate.release_all()
    answer.result(PATIENCE)
    assert len(next(answering.batches).me_list.me) == 1
    with pytest.raises(MtosiFault, match="no more"):
        next(answering.batches)


def test_a_request_is_acknowledged_after_its_partials_are_confirmed() -> None:
    with exchange([SmallEms(6)], supplier={"send_window": 4}) as pair, CompletionGate(pair.provider) as gate:
        retrieval = pair.stub(ManagedElementRetrieval)
        batches = retrieval.get_all_managed_elements.batches(batch_size=2)
        asking = background(lambda: [number for one in batches for number in numbers(one)])
        assert gate.await_held(3, PATIENCE)
        assert asking.result(PATIENCE) == [1, 2, 3, 4, 5, 6], "the requestor has all of it"
        assert pair.provider.held() == 1, "the request is not acknowledged"
        gate.release_all()
        retrieval.get_managed_element(me_ref=NE1)
        assert pair.provider.held() <= 1, "the first request is done with, or the second would not be answered"
