"""Closing and stopping: who waits is told, no thread is left, and what was not finished is delivered again."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mtosi_jms.errors import (
    AuthenticationError,
    IllegalStateError,
    ProtocolError,
    SendTimeoutError,
    SpoolError,
    TransportError,
    UnknownOutcomeError,
)
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.spool import Inbox
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import REQUESTOR, SUPPLIER, InterceptedConnection, Step, connect_privately, exchange
from mtosi_jms.transport import SendRules
from mtosi_jms.transport.memory import MemoryConnection

from ..waiting import PATIENCE, background
from .conftest import NE1, SmallEms, numbers


def supplier_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("supplier-")]


class Held(ManagedElementRetrieval.Supplier):
    """A handler that stands still until it is let go."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.entered = threading.Event()
        self.go = threading.Event()
        self.calls = 0

    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        self.calls += 1
        self.entered.set()
        assert self.go.wait(self.patience)
        return mer.GetManagedElementResponse()


def test_stop_ends_all_threads() -> None:
    with connect_privately() as opened:
        connection = InterceptedConnection(opened)
        supplier = Supplier(connection, SUPPLIER, [SmallEms()]).start(threads=5)
        assert (len(supplier_threads()), len(connection.sessions)) == (5, 5)
        with pytest.raises(IllegalStateError, match="started before"):
            supplier.start()
        assert len(supplier_threads()) == 5
        supplier.stop()
        assert supplier_threads() == []
        supplier.stop()
        with pytest.raises(IllegalStateError, match="stopped"):
            supplier.start()
        with pytest.raises(IllegalStateError, match="stopped"):
            supplier.run()
        assert connection.sessions == []


def test_a_with_block_starts_one_thread_and_no_more() -> None:
    with connect_privately() as connection:
        with Supplier(connection, SUPPLIER, [SmallEms()]):
            assert len(supplier_threads()) == 1
        with Supplier(connection, SUPPLIER, [SmallEms()]).start(threads=3):
            assert len(supplier_threads()) == 3
        assert supplier_threads() == []


def test_run_in_threads_of_ones_own() -> None:
    with connect_privately() as connection, Requestor(connection, sender_uri="jms/RequestorOS") as requestor:
        supplier = Supplier(connection, SUPPLIER, [SmallEms()])
        runs = [background(supplier.run) for _ in range(2)]
        assert ManagedElementRetrieval(requestor, SUPPLIER).get_managed_element(me_ref=NE1).me is not None
        while connection.consumers(supplier.destination) < 2:
            assert not any(run.done() for run in runs)
        supplier.stop()
        assert [run.result(PATIENCE) for run in runs] == [None, None]


def test_stop_lets_the_request_in_hand_be_answered_if_asked() -> None:
    """Its reply goes out; the request behind it stays for the next supplier; idle threads end at once."""
    held = Held(PATIENCE)
    with exchange([held], threads=2) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        assert isinstance(pair.supplier, Supplier)
        first = stub.get_managed_element.batches(me_ref=NE1, batch_size=1)
        assert held.entered.wait(PATIENCE)
        stopping = background(lambda: pair.supplier.drain(PATIENCE))  # type: ignore[union-attr]
        while len(supplier_threads()) > 1:
            assert not stopping.done()
        second = stub.get_managed_element.batches(me_ref=NE1, batch_size=1)
        held.go.set()
        assert stopping.result(PATIENCE) is True
        assert len(list(first)) == 1
        assert not pair.supplier.is_running
        assert (held.calls, pair.provider.depth(pair.destination)) == (1, 1)
        second.close()


def test_stop_while_a_handler_runs() -> None:
    """The handler is left to its end, its reply does not go out, and the request is there for the next supplier."""
    held = Held(PATIENCE)
    with exchange([held]) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE1, batch_size=1)
        assert held.entered.wait(PATIENCE)
        assert isinstance(pair.supplier, Supplier)
        assert not pair.supplier.drain(0.01)
        pair.supplier.stop(wait=0)
        assert supplier_threads()
        held.go.set()
        pair.supplier.stop(wait=None)
        assert (pair.provider.depth(pair.destination), pair.provider.depth(Queue("REQUESTOR.OS"))) == (1, 0)
        with Supplier(pair.connection, SUPPLIER, [held]):
            assert len(list(batches)) == 1
        assert held.calls == 2


def test_a_handler_may_stop_its_own_supplier() -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
            pair.supplier.stop()  # type: ignore[union-attr]
            return mer.GetManagedElementResponse()

    with exchange([Ems()]) as pair:
        pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE1, batch_size=1).close()
        for thread in supplier_threads():
            thread.join(10)
        assert pair.provider.depth(pair.destination) == 1


def test_stop_in_the_middle_of_a_reply() -> None:
    """A handler that yields is closed where it stands."""
    sent, ended = threading.Event(), threading.Event()

    class Ems(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            try:
                for number in range(1_000_000):
                    yield mer.GetAllManagedElementsResponse()
                    if number == 5:
                        sent.set()
            finally:
                ended.set()

    with exchange([Ems()]) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        assert sent.wait(PATIENCE)
        assert isinstance(pair.supplier, Supplier)
        pair.supplier.stop()
        assert ended.is_set()
        batches.close()
        assert pair.provider.depth(pair.destination) == 1


def test_stop_while_a_reply_waits_for_room() -> None:
    """A bounded destination makes its senders wait; stopping ends the wait."""
    second = threading.Event()

    class Ems(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            yield mer.GetAllManagedElementsResponse()
            yield mer.GetAllManagedElementsResponse()
            second.set()
            for _ in range(1_000_000):
                yield mer.GetAllManagedElementsResponse()

    with (
        connect_privately(capacity=1, send_timeout=None) as connection,
        MemoryConnection(connection.provider, connection.names, send_rules=SendRules(0.2)) as hasty,
        Supplier(hasty, SUPPLIER, [Ems()]) as supplier,
        Requestor(connection, sender_uri=REQUESTOR) as requestor,
    ):
        batches = ManagedElementRetrieval(requestor, SUPPLIER).get_all_managed_elements.batches(batch_size=1)
        assert second.wait(PATIENCE)
        supplier.stop()
        assert [connection.provider.depth(Queue(f"{name}.OS")) for name in ("SUPPLIER", "REQUESTOR")] == [1, 1]
        batches.close()


def test_close_while_a_request_waits_for_room() -> None:
    with exchange(provider={"capacity": 1, "send_timeout": None}) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        stub.get_managed_element.batches(batch_size=1).close()
        blocked = background(lambda: stub.get_managed_element.batches(batch_size=1))
        while pair.requestor.pending < 1:
            assert not blocked.done()
        pair.requestor.close()
        with pytest.raises(IllegalStateError):
            blocked.result(PATIENCE)
        assert pair.requestor.pending == 0


def test_a_connection_that_is_closed_ends_supplier_and_callers(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    call = background(lambda: pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1))
    pair.scripted.take()
    supplier = Supplier(pair.connection, "queue:OTHER", [SmallEms()]).start(threads=2)
    threads = supplier_threads()
    assert len(threads) == 2
    pair.connection.close()
    with pytest.raises(IllegalStateError):
        call.result(PATIENCE)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not supplier.is_running
    supplier.stop()


def test_a_closed_requestor_refuses_calls(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange([SmallEms(4)])
    stub = pair.stub(ManagedElementRetrieval)
    batches = stub.get_all_managed_elements.batches(batch_size=1)
    assert next(batches) is not None
    pair.requestor.close()
    pair.requestor.close()
    with pytest.raises(IllegalStateError):
        stub.get_managed_element(me_ref=NE1)
    with pytest.raises(IllegalStateError):
        list(batches)
    assert list(batches) == []
    assert pair.requestor.pending == 0


def test_a_closed_requestor_leaves_its_replies_to_the_next(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    pair.scripted.send(pair.scripted.take().replies([SmallEms(3)]))
    assert next(batches) is not None
    pair.requestor.close()
    assert pair.provider.depth(Queue("REQUESTOR.OS")) == 2


def test_requestor_and_supplier_leave_the_connection_open(mtosi_connection: Any) -> None:
    connection = InterceptedConnection(mtosi_connection)
    for _ in range(3):
        with (
            Supplier(connection, SUPPLIER, [SmallEms()]),
            Requestor(connection, sender_uri="jms/RequestorOS") as requestor,
        ):
            assert ManagedElementRetrieval(requestor, SUPPLIER).get_managed_element(me_ref=NE1).me is not None
    assert connection.sessions == []


def test_a_supplier_on_a_topic_hears_what_comes_after_its_start() -> None:
    """O2: any pattern on either kind; the consumer is there before `start` returns."""
    names = {"jms/RequestorOS": "queue:R", SUPPLIER: "topic:T"}
    with exchange([SmallEms()], names=names) as pair:
        assert pair.destination == Topic("T")
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None


def test_start_tells_when_the_provider_is_gone() -> None:
    connection = connect_privately()
    supplier = Supplier(connection, SUPPLIER, [SmallEms()])
    connection.close()
    with pytest.raises(IllegalStateError):
        supplier.start()
    assert not supplier.is_running


def test_a_failing_error_hook_does_not_end_the_supplier(caplog: pytest.LogCaptureFixture) -> None:
    def hook(error: Exception) -> None:
        raise ZeroDivisionError

    with exchange([SmallEms()], supplier={"on_error": hook, "reply_policy": lambda one: "R" in one.name}) as pair:
        pair.connection.session().send(pair.destination, JmsMessage(body=b"<torn", reply_to=Queue("X")))
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None
    assert "on_error failed" in caplog.text


# A supplier keeps all its threads whatever its provider does while they answer, and each request is answered.

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
        assert len(supplier_threads()) == THREADS
    assert reported == [error] * times


def test_a_failure_between_batches() -> None:
    """Batches that went out before come twice, with the same content."""
    failing = Failing("send", [TransportError("cut"), SendTimeoutError(1.0)], after=2)
    with exchange([SmallEms(9)], threads=THREADS, supplier={"retry_pause": 0}, intercept_supplier=failing) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        assert [numbers(batch) for batch in batches] == [[number] for number in range(1, 10)]
        assert len(supplier_threads()) == THREADS


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
