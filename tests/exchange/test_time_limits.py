"""A call takes the time that it was given: sending, standing in line and waiting for room included; and says why."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import (
    IllegalStateError,
    IncompleteBatchError,
    InvalidDestinationError,
    MtosiError,
    ProtocolError,
    ReplyTimeoutError,
    ResourceLimitError,
    TransportError,
    UnknownOutcomeError,
)
from mtosi_jms.gateway import ByRequestor, Request, Store
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import NotifyMessage
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsRequest, GetManagedElementResponse
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.testing import (
    REQUESTOR,
    SUPPLIER,
    InterceptedConnection,
    ManualClock,
    Step,
    connect_privately,
    exchange,
    gap,
)
from mtosi_jms.transport.memory import MemoryConnection

from ..waiting import PATIENCE, background, until
from .conftest import SmallEms

WAYS = ["blocking", "asyncio"]
FULL = "queue:FULL"
EVENT = NotifyMessage(common_event_information=[Alarm(object_type="ME")])
_names = itertools.count()


def called(way: str, call: Callable[[Any], Any], stub: Any) -> Any:
    """What a call comes to, by a thread or by a coroutine."""
    if way == "blocking":
        found = call(stub)
        return [*found] if hasattr(found, "__next__") else found

    async def wait() -> Any:
        found = call(stub.aio)
        return [one async for one in found] if hasattr(found, "__anext__") else await found

    return asyncio.run(wait())


def cause(way: str, told: str) -> str:
    """What an error must say: a slow machine may keep the sending thread from telling the loop in time."""
    return told if way == "blocking" else ""


CALLS: dict[str, Callable[[Any], Any]] = {
    "one reply": lambda stub: stub.get_all_managed_elements(timeout=0.05),
    "one reply, by options": lambda stub: stub.get_all_managed_elements(options=CallOptions(timeout=0.05)),
    "batches": lambda stub: stub.get_all_managed_elements.batches(batch_size=1, timeout=0.05),
    "a file": lambda stub: stub.get_all_managed_elements.bulk(file_location_uri="file:///tmp/x", timeout=0.05),
}


@pytest.fixture
def sending() -> threading.Event:
    """Set when the requestor on the crowded provider is about to send."""
    return threading.Event()


@pytest.fixture
def crowded(sending: threading.Event) -> Iterator[mtosi.Requestor]:
    """A requestor on a provider that has room for one message at a destination; FULL is full."""

    def note(step: Step) -> Any:
        if step.action == "send":
            sending.set()
        return step.proceed()

    connection = mtosi.connect(f"memory:crowded-{next(_names)}", capacity=1)
    connection.session().send(Queue("FULL"), JmsMessage(body=b"<x/>"))
    watched = InterceptedConnection(connection, note)
    with connection, mtosi.Requestor(watched, sender_uri="queue:ANSWERS") as requestor:
        yield requestor


class Waits:
    """An interceptor for which time passes on a clock while a message is sent, or none comes.

    Attributes:
        clock: the requestor's.
        sending: seconds that a send takes.
        seconds: how long replies were waited for, each time.
    """

    def __init__(self, sending: float) -> None:
        self.clock = ManualClock()
        self.sending = sending
        self.seconds: list[float] = []

    def __call__(self, step: Step) -> Any:
        if step.action == "send":
            self.clock.advance(self.sending)
        if step.action == "receive" and step.timeout:
            self.seconds.append(step.timeout)
            self.clock.advance(step.timeout)
            return None
        return step.proceed()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_waiting_for_a_reply(way: str, call: Any) -> None:
    waits = Waits(sending=0)
    passing: dict[str, Any] = {"clock": waits.clock, "intercept": waits} if way == "blocking" else {}
    with exchange(**passing) as pair:
        with pytest.raises(ReplyTimeoutError) as caught:
            called(way, call, pair.stub(ManagedElementRetrieval))
        assert pair.requestor.pending == 0
    told = str(caught.value)
    assert told.startswith(
        f"getAllManagedElements to queue:SUPPLIER.OS: no reply within 0.05 s, total clock; {cause(way, 'nothing came')}"
    )
    assert told.count("queue:REQUESTOR.OS") == 1
    assert caught.value.clock == "total"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_waiting_for_room(way: str, call: Any, crowded: mtosi.Requestor) -> None:
    """Without the time of the call it would wait for ever."""
    with pytest.raises(ReplyTimeoutError) as caught:
        called(way, call, ManagedElementRetrieval(crowded, FULL))
    told = str(caught.value)
    assert told.startswith("getAllManagedElements to queue:FULL: no reply within 0.05 s, total clock; the request ")
    assert "nobody consumes queue:FULL" in told
    assert cause(way, "the request was not sent") in told
    assert cause(way, "full with 1 messages") in told
    assert way == "asyncio" or isinstance(caught.value.__cause__, ResourceLimitError)
    assert crowded.pending == 0


@pytest.mark.parametrize("way", WAYS)
def test_the_time_of_a_requestor_holds_for_sending_too(way: str) -> None:
    connection = mtosi.connect(f"memory:crowded-{next(_names)}", capacity=1)
    connection.session().send(Queue("FULL"), JmsMessage(body=b"<x/>"))
    timeouts = mtosi.Timeouts(total=0.05)
    with connection, mtosi.Requestor(connection, sender_uri="queue:ANSWERS", timeouts=timeouts) as requestor:
        stub = ManagedElementRetrieval(requestor, FULL)
        with pytest.raises(ReplyTimeoutError, match=f"the request {cause(way, 'was not sent')}"):
            called(way, lambda stub: stub.get_all_managed_elements(), stub)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", [False, True], ids=["sent", "stored and sent"])
def test_a_call_that_nobody_answers(way: str, stored: bool, tmp_path: Any) -> None:
    connection = mtosi.connect(f"memory:crowded-{next(_names)}", capacity=1)
    connection.session().send(Queue("FULL"), JmsMessage(body=b"<x/>"))
    outbox = Outbox(tmp_path / "outbox") if stored else None
    with connection, mtosi.Requestor(connection, sender_uri="queue:ANSWERS", outbox=outbox) as requestor:
        stub = NotificationConsumer(requestor, FULL)
        with pytest.raises(TransportError, match=r"notify to queue:FULL: not sent within 0\.05 s: ") as caught:
            called(way, lambda stub: stub.notify(topic="T", message=EVENT, timeout=0.05), stub)
        if outbox is not None:
            assert len(outbox.unconfirmed()) == 1
            outbox.close()
    assert cause(way, "full with 1") in str(caught.value)
    assert way == "asyncio" or isinstance(caught.value, ResourceLimitError)


@pytest.mark.parametrize("way", WAYS)
def test_standing_in_line(way: str, crowded: mtosi.Requestor, sending: threading.Event) -> None:
    """Another call is being sent, and has more time."""
    stub = ManagedElementRetrieval(crowded, FULL)
    other = background(lambda: stub.get_all_managed_elements(timeout=PATIENCE))
    assert sending.wait(PATIENCE)
    with pytest.raises(ReplyTimeoutError, match=f"the request {cause(way, 'was not sent: another message')}"):
        called(way, CALLS["one reply"], stub)
    with pytest.raises(TransportError, match=rf"not sent within 0\.05 s: {cause(way, 'another message')}"):
        called(
            way, lambda stub: stub.notify(topic="T", message=EVENT, timeout=0.05), NotificationConsumer(crowded, FULL)
        )
    crowded.close()
    with pytest.raises(MtosiError):
        other.result(PATIENCE)


def test_coroutines_that_stand_in_line(crowded: mtosi.Requestor, sending: threading.Event) -> None:
    """The sending thread is at work for another one; the loop sees to it that nobody waits longer than he wants to."""
    stub = ManagedElementRetrieval(crowded, FULL)

    async def ask() -> list[Any]:
        first = asyncio.create_task(stub.aio.get_all_managed_elements(timeout=PATIENCE))
        assert await asyncio.to_thread(sending.wait, PATIENCE)
        one_way = NotificationConsumer(crowded, FULL).aio.notify(topic="T", message=EVENT, timeout=0.05)
        calls = [stub.aio.get_all_managed_elements(timeout=0.05) for _ in range(3)]
        ended = await asyncio.gather(*calls, one_way, return_exceptions=True)
        assert not first.done()
        first.cancel()
        return ended

    *calls, one_way = asyncio.run(ask())
    assert [type(one) for one in calls] == [ReplyTimeoutError] * 3
    assert {str(one).partition(" (")[0].partition(", total clock; ")[2].partition(";")[0] for one in calls} == {
        "the request stands in line, or is being sent"
    }
    assert isinstance(one_way, TransportError)
    assert "notify to queue:FULL: not sent within 0.05 s" in str(one_way)
    assert crowded.pending <= 1


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (UnknownOutcomeError("no receipt"), "whether the request was sent is unknown: no receipt"),
        (TransportError("the connection is lost"), "the request was not sent: the connection is lost"),
    ],
)
@pytest.mark.parametrize("late", [True, False])
def test_a_provider_that_fails_is_told_from_one_that_needs_all_the_time(
    raised: TransportError, said: str, late: bool
) -> None:
    def fail(step: Step) -> Any:
        if step.action == "send":
            threading.Event().wait(step.timeout if late else 0)
            raise raised
        return step.proceed()

    with exchange(intercept=fail) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        if late:
            with pytest.raises(ReplyTimeoutError, match=said):
                stub.get_all_managed_elements(timeout=0.05)
            return
        with pytest.raises(type(raised)) as caught:
            stub.get_all_managed_elements(timeout=60)
        assert caught.value is raised


def test_the_first_reply_is_waited_for_from_when_the_request_was_sent() -> None:
    """A limit for the peer is not a limit for the way to it."""
    waits = Waits(sending=100)
    timeouts = mtosi.Timeouts(first_reply=5, total=None)
    with (
        exchange(clock=waits.clock, timeouts=timeouts, intercept=waits) as pair,
        pytest.raises(ReplyTimeoutError, match="no reply within 5 s, first reply clock"),
    ):
        next(pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1))
    assert (waits.seconds, waits.clock.now) == ([5], 105)


def test_what_sending_took_is_not_there_for_the_replies() -> None:
    waits = Waits(sending=9)
    with (
        exchange(clock=waits.clock, intercept=waits) as pair,
        pytest.raises(ReplyTimeoutError, match="no reply within 10 s, total clock"),
    ):
        pair.stub(ManagedElementRetrieval).get_all_managed_elements(timeout=10)
    assert (waits.seconds, waits.clock.now) == ([1], 10)


@pytest.mark.parametrize("way", WAYS)
def test_nobody_there_is_told_and_waited_for(way: str) -> None:
    """A supplier that starts later answers."""
    url = f"memory:nobody-{next(_names)}"
    clock = ManualClock()

    def pass_time(step: Step) -> Any:
        if way == "blocking" and step.action == "receive" and step.timeout and not told:
            clock.advance(step.timeout)
            return None
        return step.proceed()

    with mtosi.connect(url) as own, mtosi.connect(url) as other:
        late = mtosi.Supplier(other, "queue:LATE", services=[SmallEms(3)], reply_policy=lambda _: True)

        class Starter(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                told.append(record.getMessage())
                threading.Thread(target=late.start).start()

        told: list[str] = []
        handler = Starter(logging.WARNING)
        logging.getLogger("mtosi_jms.exchange").addHandler(handler)
        began = time.monotonic()
        seconds = clock if way == "blocking" else time.monotonic
        with mtosi.Requestor(
            InterceptedConnection(own, pass_time), sender_uri="queue:ANSWERS", clock=seconds
        ) as requestor:
            stub = ManagedElementRetrieval(requestor, "queue:LATE")
            found = called(way, lambda stub: stub.get_all_managed_elements(), stub)
        logging.getLogger("mtosi_jms.exchange").removeHandler(handler)
        assert clock.now + time.monotonic() - began >= 1
        assert len(found.me_list.me) == 3
        assert told == [
            "getAllManagedElements to queue:LATE: nobody consumes the destination, a second after the request was sent"
        ]
        late.stop()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("consumed", [False, True])
def test_the_error_says_whether_anybody_is_there(way: str, consumed: bool, caplog: pytest.LogCaptureFixture) -> None:
    waits = Waits(sending=0)
    with mtosi.connect(f"memory:nobody-{next(_names)}") as connection:
        consumer = connection.session().consumer(Queue("X")) if consumed else None
        passing: dict[str, Any] = {"clock": waits.clock} if way == "blocking" else {}
        watched = InterceptedConnection(connection, waits) if way == "blocking" else connection
        with mtosi.Requestor(watched, sender_uri="queue:ANSWERS", **passing) as requestor:
            stub = ManagedElementRetrieval(requestor, "queue:X")
            with pytest.raises(ReplyTimeoutError) as caught:
                called(way, CALLS["one reply"], stub)
        assert ("nobody consumes queue:X" in str(caught.value)) == (consumer is None)
    assert way == "asyncio" or not caplog.records  # it took less than a second of the clock


def test_a_sender_that_waits_for_room_where_nobody_reads(
    crowded: mtosi.Requestor, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ReplyTimeoutError):
        ManagedElementRetrieval(crowded, FULL).get_all_managed_elements(timeout=1.1)
    assert [one.getMessage() for one in caplog.records] == ["queue:FULL: full with 1 messages, and nobody consumes it"]


@pytest.mark.parametrize("way", WAYS)
def test_what_came_of_an_incomplete_reply(way: str) -> None:
    clock = ManualClock()

    def pass_time(step: Step) -> Any:
        """Time passes while nothing comes."""
        found = step.proceed()
        if step.action == "receive" and step.timeout and found is None:
            clock.advance(step.timeout)
        return found

    passing: dict[str, Any] = {"clock": clock, "intercept": pass_time} if way == "blocking" else {}
    with exchange([SmallEms(6)], tamper=lambda replies: gap(replies, at=3), **passing) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(IncompleteBatchError) as caught:
            called(way, lambda stub: stub.get_all_managed_elements.batches(batch_size=1, timeout=0.5), stub)
    asked, told, _ = str(caught.value).split("; ", 2)
    assert asked == "getAllManagedElements to queue:SUPPLIER.OS: incomplete reply: the total time-out fired"
    assert told.startswith("5 batches came within ")
    assert "missing batches 4;" in str(caught.value)
    assert sorted(caught.value.batches) == [5, 6]


def test_the_time_of_a_call_wins_over_that_of_its_options() -> None:
    options = CallOptions(timeout=60, priority=7)
    with exchange() as pair, pytest.raises(ReplyTimeoutError, match=r"within 0\.05 s"):
        pair.stub(ManagedElementRetrieval).get_all_managed_elements(options=options, timeout=0.05)
    assert CallOptions.of(options, 5) == CallOptions(timeout=5, priority=7)
    assert CallOptions.of(None, None) == CallOptions()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.012"), (0.5, "0.5"), (1.2345, "1.2"), (9.96, "10"), (59.9996, "60"), (3600.2, "3600")],
)
def test_seconds_are_rounded(seconds: float, text: str) -> None:
    from mtosi_jms.patterns import rounded

    assert rounded(seconds) == text


# A request lives no longer than its caller waits, and nobody carries out what nobody waits for.

NE1 = name("MD=EMS1/ME=NE-1")
HALF_HOUR = 1_800_000
CLOCKS = 250
"""Milliseconds that are added for clocks that differ."""


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
                asyncio.run(served(supplier, batches, failures))
            else:
                with supplier:
                    assert list(batches) != []
    assert ems.carried_out == ["living"]
    assert [type(one) for one in failures] == [InvalidDestinationError]


async def served(supplier: Any, batches: Any, failures: list[BaseException]) -> None:
    """The two requests are in threads of their own: at the end of the block the other one may not have begun."""
    async with supplier.aio:
        assert await asyncio.to_thread(list, batches) != []
        await asyncio.to_thread(until, lambda: failures)


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
