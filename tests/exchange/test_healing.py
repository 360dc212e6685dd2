"""A supplier keeps all its threads whatever its provider does while they answer, and each request is answered."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mtosi_jms.errors import (
    AuthenticationError,
    ProtocolError,
    SendTimeoutError,
    SpoolError,
    TransportError,
    UnknownOutcomeError,
)
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import Inbox
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import SUPPLIER, Step, exchange

from .conftest import NE1, SmallEms, numbers

THREADS = 3


class Failing:
    """An interceptor that raises errors when a message is sent or acknowledged.

    Args:
        method: what fails: "send" in any way, or "acknowledge".
        errors: what is raised, one after the other.
        after: how many calls succeed before.
    """

    def __init__(self, method: str, errors: list[Exception], *, after: int = 0) -> None:
        self.method = method
        self.errors = iter(errors)
        self.after = after
        self.calls = itertools.count()

    def __call__(self, step: Step) -> Any:
        if step.action.startswith(self.method) and next(self.calls) >= self.after:
            for error in self.errors:
                raise error
        return step.proceed()


def supplier_threads() -> int:
    return sum(thread.name.startswith("supplier-") for thread in threading.enumerate())


@pytest.mark.parametrize("error", [TransportError("cut"), UnknownOutcomeError("cut"), AuthenticationError("cut")])
@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize("method", ["send", "acknowledge"])
@pytest.mark.parametrize("batches", [False, True])
def test_a_failure_costs_no_thread_and_no_answer(method: str, batches: bool, times: int, error: Exception) -> None:
    reported: list[Exception] = []
    supplier = {"on_error": reported.append, "retry_pause": 0}
    failing = Failing(method, [error] * times)
    with exchange([SmallEms()], threads=THREADS, supplier=supplier, intercept_supplier=failing) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        if batches:
            found = [numbers(batch) for batch in stub.get_all_managed_elements.batches(batch_size=2)]
            assert found == [[1, 2], [3, 4], [5]]
        else:
            assert stub.get_managed_element(me_ref=NE1).me is not None
        stub.get_managed_element(me_ref=NE1)
        while len(reported) < times:
            pass
        assert supplier_threads() == THREADS
    assert reported == [error] * times


def test_a_failure_between_batches() -> None:
    """Batches that went out before come twice, with the same content."""
    failing = Failing("send", [TransportError("cut"), SendTimeoutError(1.0)], after=2)
    with exchange([SmallEms(9)], threads=THREADS, supplier={"retry_pause": 0}, intercept_supplier=failing) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        assert [numbers(batch) for batch in batches] == [[number] for number in range(1, 10)]
        assert supplier_threads() == THREADS


@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit, KeyboardInterrupt, ZeroDivisionError])
def test_nothing_that_a_handler_raises_ends_a_thread(raised: type[BaseException]) -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> Any:
            raise raised

    with exchange([Ems()], threads=1) as pair:
        for _ in range(2):
            with pytest.raises(Exception, match=raised.__name__):
                pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1)


def test_a_refusal_that_cannot_be_sent_ends_no_thread() -> None:
    failing = Failing("send", [ValueError("nobody has foreseen this")])
    with exchange([SmallEms()], intercept_supplier=failing) as pair, pair.connection.session() as session:
        session.send(pair.destination, JmsMessage(body=b"<torn", reply_to=Queue("FAILURE.OS")))
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None


@pytest.mark.parametrize("times", [1, 4])
def test_an_inbox_without_room_costs_no_thread(tmp_path: Any, times: int) -> None:
    errors: Iterator[Exception] = iter([SpoolError("inbox", "no room")] * times)

    class FullAtFirst(Inbox):
        def land(self, message: JmsMessage) -> bool:
            for error in errors:
                raise error
            return super().land(message)

    reported: list[Exception] = []
    with (
        FullAtFirst(tmp_path / "inbox") as inbox,
        exchange([SmallEms()], supplier={"inbox": inbox, "on_error": reported.append, "retry_pause": 0}) as pair,
    ):
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None
    assert [str(error) for error in reported] == ["inbox: no room"] * times


@pytest.mark.parametrize("batches", [False, True])
def test_a_request_that_nobody_could_answer_is_not_carried_out(mtosi_exchange: Any, batches: bool) -> None:
    """Without JMSReplyTo the work would be for nothing: it is told, and not done."""
    ems, reported = SmallEms(), list[Exception]()
    pair = mtosi_exchange()
    stub = pair.stub(ManagedElementRetrieval)
    if batches:
        stub.get_all_managed_elements.batches(batch_size=1)
    else:
        stub.get_managed_element.batches(me_ref=NE1, batch_size=1)
    message = dataclasses.replace(pair.scripted.take().message, reply_to=None)
    supplier = Supplier(pair.connection, SUPPLIER, [ems], on_error=reported.append)
    supplier.answer(message, pair.connection.session())
    assert ems.contexts == []
    [error] = reported
    assert isinstance(error, ProtocolError)
    assert "JMSReplyTo" in str(error)
