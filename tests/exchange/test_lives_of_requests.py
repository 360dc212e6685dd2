"""A request lives no longer than its caller waits, and nobody carries out what nobody waits for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import IllegalStateError, InvalidDestinationError, ProtocolError, ReplyTimeoutError
from mtosi_jms.gateway import ByRequestor, Request, Store
from mtosi_jms.jms import JmsMessage
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.spool import Inbox
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsRequest, GetManagedElementResponse
from mtosi_jms.testing import REQUESTOR, SUPPLIER, connect_privately, exchange
from mtosi_jms.transport.memory import MemoryConnection

NE1 = name("MD=EMS1/ME=NE-1")
HALF_HOUR = 1_800_000
CLOCKS = 250
"""Milliseconds that are added for clocks that differ."""
PATIENCE = 60.0


def sent(pair: Any, call: Callable[[], object]) -> JmsMessage:
    """The request of a call whose caller waits until the requestor is closed."""
    with ThreadPoolExecutor(1) as threads:
        called = threads.submit(call)
        asked: JmsMessage = pair.scripted.take(PATIENCE).message
        pair.requestor.close()
        assert isinstance(called.exception(PATIENCE), IllegalStateError)
    return asked


@pytest.mark.obligation("NOT6")
@pytest.mark.parametrize("way", ["blocking", "asyncio"])
@pytest.mark.parametrize(
    ("timeouts", "ttl", "options", "life"),
    [
        (Timeouts(), HALF_HOUR, {}, 60_000),
        (Timeouts(), HALF_HOUR, {"timeout": 20}, 20_000),
        (Timeouts(), HALF_HOUR, {"timeout": 16.1}, 16_100),
        (Timeouts(), 0, {"timeout": 20}, 20_000),
        (Timeouts(), 5_000, {"timeout": 20}, 5_000),
        (Timeouts(total=30), HALF_HOUR, {}, 30_000),
        (Timeouts(first_reply=None), HALF_HOUR, {}, HALF_HOUR),
        (Timeouts(), HALF_HOUR, {"timeout": 20, "time_to_live": 120}, 120_000),
        (Timeouts(), HALF_HOUR, {"timeout": 20, "time_to_live": 0}, 0),
    ],
)
def test_a_request_lives_no_longer_than_its_caller_waits(
    way: str, timeouts: Timeouts, ttl: int, options: dict[str, Any], life: int
) -> None:
    """Unless the call says how long. A limit of the whole call counts from the call on."""
    with exchange(timeouts=timeouts, profile=BindingProfile(ttl={"REQUEST": ttl})) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        given = CallOptions(**options)
        calls: dict[str, Callable[[], object]] = {
            "blocking": lambda: stub.get_managed_element(me_ref=NE1, options=given),
            "asyncio": lambda: asyncio.run(stub.aio.get_managed_element(me_ref=NE1, options=given)),
        }
        asked = sent(pair, calls[way])
        assert life - 5_000 < asked.time_to_live_ms <= life + CLOCKS or asked.time_to_live_ms == life
        assert (asked.expiration_ms == 0) is (life == 0)


def test_a_request_for_batches_lives_as_the_profile_says_unless_the_whole_call_has_a_limit() -> None:
    """Nobody waits while no batch is asked for."""
    with exchange() as pair:
        stub = pair.stub(ManagedElementRetrieval)
        lives = []
        for options in (CallOptions(), CallOptions(timeout=20)):
            stub.get_all_managed_elements.batches(batch_size=1, options=options)
            lives.append(pair.scripted.take().message.time_to_live_ms)
    assert lives[0] == HALF_HOUR
    assert 15_000 < lives[1] <= 20_000 + CLOCKS


@pytest.mark.parametrize(("timeout", "waits", "life"), [(20.0, None, 20_000), (None, 9.0, 9_000), (None, None, 60_000)])
@pytest.mark.parametrize("batches", [False, True])
def test_a_request_over_http_lives_no_longer_than_its_client_waits(
    timeout: float | None, waits: float | None, life: int, batches: bool
) -> None:
    pattern = CommunicationPatternType.MultipleBatchResponse if batches else None
    envelope = Envelope(header=Header(communication_pattern=pattern), body=GetAllManagedElementsRequest())
    with exchange() as pair:
        source = ByRequestor(pair.requestor, SUPPLIER, Store(2**20), timeout)
        request = Request(envelope, "getAllManagedElements", timeout=waits)

        async def ask() -> object:
            return await anext(source.replies(request))

        asked = sent(pair, lambda: asyncio.run(ask()))
    assert life - 5_000 < asked.time_to_live_ms <= life + CLOCKS


class Ems(ManagedElementRetrieval.Supplier):
    """Notes what it carries out."""

    def __init__(self) -> None:
        self.carried_out: list[str] = []

    def get_managed_element(self, request: Any, context: Any) -> Any:
        self.carried_out.append(request.me_ref.rdn[0].value)
        return GetManagedElementResponse()


def ask(requestor: Any, who: str, timeout: float = PATIENCE) -> object:
    stub = ManagedElementRetrieval(requestor, SUPPLIER)
    return stub.get_managed_element.batches(me_ref=name(f"ME={who}"), batch_size=1, timeout=timeout)


@pytest.mark.obligation("NOT7")
@pytest.mark.parametrize("aio", [False, True])
def test_requests_of_a_requestor_that_is_gone_are_not_carried_out(aio: bool) -> None:
    ems, failures = Ems(), list[BaseException]()
    with connect_privately() as connection:
        with MemoryConnection(connection.provider, connection.names) as other:
            ask(mtosi.Requestor(other, sender_uri=REQUESTOR, temporary_reply=True), "dead")
        with mtosi.Requestor(connection, sender_uri=REQUESTOR, temporary_reply=True) as requestor:
            batches: Any = ask(requestor, "living")
            supplier = mtosi.Supplier(connection, SUPPLIER, [ems], on_error=failures.append)
            if aio:
                asyncio.run(served(supplier, batches))
            else:
                with supplier:
                    assert list(batches) != []
    assert ems.carried_out == ["living"]
    assert [type(one) for one in failures] == [InvalidDestinationError]


async def served(supplier: Any, batches: Any) -> None:
    async with supplier.aio:
        assert await asyncio.to_thread(list, batches) != []


@pytest.mark.obligation("NOT7")
def test_a_request_that_expired_in_an_inbox_is_not_carried_out(tmp_path: Path) -> None:
    """It was stored by a process that ended; one that has time left, and one that is for ever, are carried out."""
    ems, failures, done = Ems(), list[BaseException](), threading.Event()
    with connect_privately() as connection, Inbox(tmp_path / "inbox") as inbox:
        with mtosi.Requestor(connection, sender_uri=REQUESTOR) as requestor:
            consumer = connection.session().consumer(SUPPLIER)
            for who in ("late", "early"):
                ask(requestor, who)
                delivery = consumer.receive(PATIENCE)
                assert delivery is not None
                late = who == "late"
                inbox.land(replace(delivery.message, expiration_ms=1) if late else delivery.message)
                delivery.acknowledge()
            consumer.close()
            batches: Any = ask(requestor, "now")
            with mtosi.Supplier(connection, SUPPLIER, [ems], on_error=failures.append, inbox=inbox):
                assert list(batches) != []
                done.set()
        assert (len(inbox), inbox.in_doubt) == (0, [])
    assert ems.carried_out == ["early", "now"]
    assert [type(one) for one in failures] == [ProtocolError]


@pytest.mark.parametrize("temporary", [True, False])
def test_a_reply_to_a_temporary_queue_lives_no_longer_than_the_request(temporary: bool) -> None:
    """A broker may make the queue of a requestor that is gone anew; what is in there must not stay."""
    ems = Ems()
    with connect_privately() as connection:
        session = connection.session()
        queue = session.temporary_queue() if temporary else mtosi.Queue("REPLIES")
        consumer = session.consumer(queue)
        with exchange() as pair:
            asked = sent(pair, lambda: pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1, timeout=20))
        session.send(SUPPLIER, JmsMessage(body=asked.body, reply_to=queue, time_to_live_ms=20_000))
        with mtosi.Supplier(connection, SUPPLIER, [ems], reply_policy=lambda _: True):
            reply = consumer.receive(PATIENCE)
            assert reply is None or reply.message.time_to_live_ms == (20_000 if temporary else HALF_HOUR)
            connection.start()
            reply = reply or consumer.receive(PATIENCE)
            assert reply is not None
            assert reply.message.time_to_live_ms == (20_000 if temporary else HALF_HOUR)


def test_a_call_that_is_over_is_not_carried_out_later() -> None:
    ems, later = Ems(), [0.0]
    connection = connect_privately(clock=lambda: time.time() + later[0])
    with connection, mtosi.Requestor(connection, sender_uri=REQUESTOR) as requestor:
        with pytest.raises(ReplyTimeoutError):
            ManagedElementRetrieval(requestor, SUPPLIER).get_managed_element(me_ref=name("ME=late"), timeout=0.05)
        later[0] = 0.25
        batches: Any = ask(requestor, "now")
        with mtosi.Supplier(connection, SUPPLIER, [ems]):
            assert list(batches) != []
    assert ems.carried_out == ["now"]
