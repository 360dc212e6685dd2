"""The supplier's partial responses: some on their way at once, the request acknowledged when all are confirmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import ConfigError, MtosiFault, ResourceLimitError, TransportError
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import SUPPLIER, Asked, Pair, exchange
from mtosi_jms.transport.memory import CompletionGate

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
def answering(background: Background) -> Iterator[Answering]:
    with exchange() as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        asked = pair.scripted.take()
        with CompletionGate(pair.provider) as gate:
            yield Answering(pair, gate, asked, batches, [], background)
        batches.close()


def test_no_more_partials_than_the_window_are_unconfirmed(
    answering: Answering, small_ems: Any, patience: float
) -> None:
    """Nor is the handler asked for more than one object beyond them."""
    gate, yielded = answering.gate, []

    class Counting(small_ems):  # type: ignore[misc]  # the class is a fixture
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            for me in super().get_all_managed_elements(request, context):
                yielded.append(me)
                yield me

    answer = answering.start(Counting(8), send_window=3)
    assert gate.await_held(3, patience)
    gate.release()
    assert gate.await_held(3, patience)
    gate.release()
    assert gate.await_held(3, patience)
    assert len(yielded) <= 3 + 2 + 2
    assert not answer.done()
    for _ in range(3):
        gate.release()
        assert gate.await_held(3, patience)
    assert len(yielded) == 8
    assert not answer.done(), "three partials are not confirmed"
    gate.release_all()
    answer.result(patience)
    assert answering.reported == []


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_partial_that_fails_ends_the_reply(answering: Answering, small_ems: Any, patience: float, place: int) -> None:
    """The caller gets the error, and so does not acknowledge the request."""
    answer = answering.start(small_ems(5), send_window=5)
    assert answering.gate.await_held(5, patience)
    answering.gate.fail(TransportError("refused"), place)
    answering.gate.release_all()
    with pytest.raises(TransportError, match="refused"):
        answer.result(patience)


def test_a_full_reply_destination_ends_the_reply_and_is_reported(
    answering: Answering, small_ems: Any, patience: float
) -> None:
    ems = small_ems(50)
    answer = answering.start(ems, send_window=2)
    assert answering.gate.await_held(2, patience)
    answering.gate.fail(ResourceLimitError("queue:INVENTORY is full"))
    answering.gate.release_all()
    answer.result(patience)
    assert [type(error) for error in answering.reported] == [ResourceLimitError]
    assert answering.gate.held == ()


def test_a_fault_comes_after_the_partials_before_it(answering: Answering, faulty_ems: Any, patience: float) -> None:
    def some() -> Iterator[Any]:
        yield ManagedElementType()
        yield ManagedElementType()
        raise MtosiFault("no more")

    answer = answering.start(faulty_ems(some))
    assert answering.gate.await_held(1, patience)
    assert not answer.done()
    answering.gate.release_all()
    answer.result(patience)
    assert len(next(answering.batches).me_list.me) == 1
    with pytest.raises(MtosiFault, match="no more"):
        next(answering.batches)


def test_a_request_is_acknowledged_after_its_partials_are_confirmed(
    small_ems: Any, numbers: Any, ne1: Any, patience: float, background: Background
) -> None:
    with exchange([small_ems(6)], supplier={"send_window": 4}) as pair, CompletionGate(pair.provider) as gate:
        retrieval = pair.stub(ManagedElementRetrieval)
        batches = retrieval.get_all_managed_elements.batches(batch_size=2)
        asking = background(lambda: [number for one in batches for number in numbers(one)])
        assert gate.await_held(3, patience)
        assert asking.result(patience) == [1, 2, 3, 4, 5, 6], "the requestor has all of it"
        assert pair.provider.held() == 1, "the request is not acknowledged"
        gate.release_all()
        retrieval.get_managed_element(me_ref=ne1)
        assert pair.provider.held() <= 1, "the first request is done with, or the second would not be answered"


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_lets_something_through(answering: Answering, small_ems: Any, window: int) -> None:
    with pytest.raises(ConfigError, match="window"):
        answering.start(small_ems(), send_window=window)
