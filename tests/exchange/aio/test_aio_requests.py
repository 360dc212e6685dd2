"""One answer, awaited: what it brings, what it raises, and what is left when nobody waits for it any more (R3)."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from typing import Any

import pytest

from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    ReplyTimeoutError,
    SpoolError,
)
from mtosi_jms.exchange.worker import Worker
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import SUPPLIER, duplicate, exchange

from ...waiting import PATIENCE, background
from ..conftest import NE1, NE7, SmallEms
from .conftest import run, until


def stub(pair: Any) -> ManagedElementRetrieval:
    found: ManagedElementRetrieval = pair.stub(ManagedElementRetrieval)
    return found


def test_a_request_object() -> None:
    with exchange([SmallEms()]) as pair:
        assert run(stub(pair).aio.get_managed_element(GetManagedElementRequest(me_ref=NE1))).me.location == "Hall 1"
        with pytest.raises(ConfigError, match="a request or its fields"):
            stub(pair).aio.get_managed_element(GetManagedElementRequest(), me_ref=NE1)


def test_a_one_way_operation_returns_when_it_is_sent() -> None:
    with exchange() as pair:
        consumer = pair.stub(NotificationConsumer)
        message = NotifyMessage(common_event_information=[Alarm(object_type="ME")])
        assert run(consumer.aio.notify(topic="Fault", message=message)) is None
        assert isinstance(pair.scripted.take().envelope.body, Notify)
        assert not hasattr(consumer.aio.notify, "batches")


def test_the_hook_of_a_call_runs_in_the_loop() -> None:
    seen: list[Any] = []

    async def ask(mer: ManagedElementRetrieval) -> None:
        hook = CallOptions(
            on_reply=lambda envelope: seen.append((threading.current_thread(), envelope.header.msg_name))
        )
        await mer.aio.get_managed_element(me_ref=NE1, options=hook)

    with exchange([SmallEms()]) as pair:
        run(ask(stub(pair)))
    assert seen == [(threading.main_thread(), "getManagedElementResponse")]


@pytest.mark.parametrize("destinations", [{}, {"failure_reply_to": "jms/FailureOS"}])
def test_a_request_that_nobody_answers_times_out(destinations: dict[str, str]) -> None:
    with exchange(**destinations) as pair:
        with pytest.raises(ReplyTimeoutError) as caught:
            run(stub(pair).aio.get_managed_element(me_ref=NE1, options=CallOptions(timeout=0.05)))
        assert caught.value.clock == "total"
        assert pair.requestor.pending == 0


@pytest.mark.parametrize("destinations", [{"failure_reply_to": "jms/FailureOS"}, {"temporary_reply": True}])
def test_other_destinations_of_replies(destinations: dict[str, Any]) -> None:
    async def ask(mer: ManagedElementRetrieval) -> list[Any]:
        calls = [mer.aio.get_managed_element(me_ref=one) for one in (NE1, NE7, NE1)]
        return await asyncio.gather(*calls, return_exceptions=True)

    with exchange([SmallEms()], **destinations) as pair:
        one, fault, two = run(ask(stub(pair)))
    assert isinstance(fault, EntityNotFoundFault)
    assert one.me.location == two.me.location == "Hall 1"


async def test_callers_with_different_patience() -> None:
    with exchange() as pair:
        call = stub(pair).aio.get_managed_element
        long = asyncio.create_task(call(me_ref=NE1))
        asked = await asyncio.to_thread(pair.scripted.take)
        with pytest.raises(ReplyTimeoutError):
            await call(me_ref=NE1, options=CallOptions(timeout=0.02))
        assert not long.done()
        pair.scripted.send(asked.replies([SmallEms()]))
        assert (await long).me is not None


def test_cancelled_before_it_is_sent_it_never_is(gate: Any) -> None:
    with exchange(intercept=gate) as pair:

        async def ask() -> None:
            call = stub(pair).aio.get_managed_element
            first = asyncio.create_task(call(me_ref=name("ME=1")))
            await until(gate.held.is_set)
            second = asyncio.create_task(call(me_ref=name("ME=2")))
            await asyncio.sleep(0)
            second.cancel()
            first.cancel()
            for one in (first, second):
                with pytest.raises(asyncio.CancelledError):
                    await one
            gate.is_open.set()
            third = asyncio.create_task(call(me_ref=name("ME=3")))
            asked = [await asyncio.to_thread(pair.scripted.take) for _ in range(2)]
            assert [str(one.envelope.body.me_ref) for one in asked] == ["ME=1", "ME=3"]
            await until(lambda: pair.requestor.pending == 1)
            third.cancel()

        run(ask())
        assert pair.requestor.pending == 0


def test_no_request_overtakes_one_that_waits(gate: Any) -> None:
    """What the loop might send at once waits behind what the sending thread is at; where threads send, it waits too."""
    with exchange(intercept=gate) as pair:

        async def ask() -> None:
            call = stub(pair).aio.get_managed_element
            first = asyncio.create_task(call(me_ref=name("ME=1")))
            await until(gate.held.is_set)
            others = [asyncio.create_task(call(me_ref=name(f"ME={number}"))) for number in (2, 3)]
            await until(lambda: pair.requestor.pending == 3)
            gate.is_open.set()
            asked = [await asyncio.to_thread(pair.scripted.take) for _ in range(3)]
            gate.shut()
            background(lambda: stub(pair).get_managed_element.batches(me_ref=name("ME=4"), batch_size=1).close())
            await until(gate.held.is_set)
            others.append(asyncio.create_task(call(me_ref=name("ME=5"))))
            await until(lambda: pair.requestor.pending == 5)
            gate.is_open.set()
            asked += [await asyncio.to_thread(pair.scripted.take) for _ in range(2)]
            assert [str(one.envelope.body.me_ref) for one in asked] == [f"ME={number}" for number in range(1, 6)]
            for task in (first, *others):
                task.cancel()

        run(ask())


@pytest.mark.parametrize("how", ["cancel", "timeout", "wait_for"])
async def test_whoever_stops_waiting_leaves_an_orphan(how: str) -> None:
    orphans: list[Any] = []

    async def impatient(call: Any) -> None:
        if how == "wait_for":
            await asyncio.wait_for(call, 0.05)
        async with asyncio.timeout(0.05):
            await call

    with exchange(on_orphan=orphans.append, linger=PATIENCE) as pair:
        call = stub(pair).aio.get_managed_element
        if how == "cancel":
            task = asyncio.create_task(call(me_ref=NE1))
            asked = await asyncio.to_thread(pair.scripted.take)
            await until(lambda: pair.requestor.waiting)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(TimeoutError):
                await impatient(call(me_ref=NE1))
            asked = await asyncio.to_thread(pair.scripted.take)
        assert pair.requestor.pending == 0
        pair.scripted.send(asked.replies([SmallEms()]))
        await until(lambda: orphans)
        assert [stray.reason.name for stray in orphans] == ["LATE"]


async def test_a_correlation_id_may_be_used_again_after_a_cancellation() -> None:
    mine = CallOptions(correlation_id="case 4711")

    with exchange() as pair:
        call = stub(pair).aio.get_managed_element
        task = asyncio.create_task(call(me_ref=NE1, options=mine))
        await asyncio.to_thread(pair.scripted.take)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        again = asyncio.create_task(call(me_ref=NE1, options=mine))
        asked = await asyncio.to_thread(pair.scripted.take)
        gc.collect()
        pair.scripted.send(asked.replies([SmallEms()]))
        assert (await again).me is not None


@pytest.mark.parametrize("closer", ["requestor", "connection", "aio"])
async def test_closing_wakes_all_callers(closer: str) -> None:
    with exchange() as pair:
        calls = [asyncio.create_task(stub(pair).aio.get_managed_element(me_ref=NE1)) for _ in range(5)]
        for _ in calls:
            await asyncio.to_thread(pair.scripted.take)
        if closer == "aio":
            await pair.requestor.aio.close()
        else:
            getattr(pair, closer).close()
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, IllegalStateError)
        with pytest.raises(IllegalStateError):
            await stub(pair).aio.get_managed_element(me_ref=NE1)


def test_blocking_and_asynchronous_callers_share_a_requestor() -> None:
    async def ask(mer: ManagedElementRetrieval, wanted: list[str]) -> list[str]:
        answers = await asyncio.gather(*[mer.aio.get_managed_element(me_ref=name(one)) for one in wanted])
        return [str(answer.me.name) for answer in answers]

    wanted = [f"MD=EMS1/ME=NE-{number}" for number in range(1, 101)]
    with exchange([SmallEms(100)], threads=2) as pair:
        mer = stub(pair)
        blocking = [
            background(lambda: [str(mer.get_managed_element(me_ref=name(one)).me.name) for one in wanted])
            for _ in range(3)
        ]
        loops = [background(lambda: asyncio.run(ask(mer, wanted))) for _ in range(2)]
        assert run(ask(mer, wanted)) == wanted
        for other in (*blocking, *loops):
            assert other.result(PATIENCE) == wanted
        assert (pair.requestor.pending, pair.requestor.orphans) == (0, 0)


def test_a_blocking_caller_takes_over_where_the_loop_ended() -> None:
    """The receiving thread receives for a blocking caller too, and when no coroutine waits any more."""
    with exchange() as pair:
        with pytest.raises(ReplyTimeoutError):
            run(stub(pair).aio.get_managed_element(me_ref=NE1, options=CallOptions(timeout=0.01, time_to_live=60)))
        pair.scripted.take()
        call = background(lambda: stub(pair).get_managed_element(me_ref=NE1))
        pair.scripted.send(pair.scripted.take().replies([SmallEms()]))
        assert call.result(PATIENCE).me is not None


def test_the_threads_of_a_requestor_end_when_no_coroutine_waits() -> None:
    with exchange([SmallEms()], linger=0.01) as pair:
        for _ in range(3):  # and another one begins
            assert run(stub(pair).aio.get_managed_element(me_ref=NE1)).me is not None
            for thread in threading.enumerate():
                if thread.name in ("mtosi-receive", "mtosi-send"):
                    thread.join(PATIENCE)
                    assert not thread.is_alive()


class Full:
    """A landing that is full until it is told otherwise."""

    def __init__(self) -> None:
        self.full = True
        self.landed: list[Any] = []

    def land(self, message: Any) -> Any:
        if self.full:
            self.full = False
            raise SpoolError("landing", "no space left")
        self.landed.append(message)

    def acknowledged(self, landed: Any, **facts: Any) -> None:
        assert facts["correlation_id"]


def test_a_landing_that_fails_is_told_to_one_who_waits_and_the_message_comes_again() -> None:
    async def ask(pair: Any) -> list[Any]:
        calls = [asyncio.create_task(stub(pair).aio.get_managed_element(me_ref=NE1)) for _ in range(3)]
        asked = [await asyncio.to_thread(pair.scripted.take) for _ in calls]
        pair.scripted.send([reply for one in asked for reply in one.replies([SmallEms()])])
        return await asyncio.gather(*calls, return_exceptions=True)

    landing = Full()
    with exchange(landing=landing) as pair:
        outcomes = run(ask(pair))
    assert sum(isinstance(outcome, SpoolError) for outcome in outcomes) == 1
    assert len([outcome for outcome in outcomes if not isinstance(outcome, BaseException)]) == 2
    assert len(landing.landed) == 3


def test_the_orphan_hook_may_take_its_time_and_make_calls() -> None:
    """It runs in a thread of its own: a loop that depends on the receiving thread goes on meanwhile."""
    answers: list[Any] = []
    gate = threading.Event()

    def hook(orphan: Any) -> None:
        assert gate.wait(60)
        answers.append(asyncio.run_coroutine_threadsafe(pair_stub.aio.get_managed_element(me_ref=NE1), loop).result(60))

    async def ask() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        for _ in range(5):
            assert (await pair_stub.aio.get_managed_element(me_ref=NE1)).me is not None
        assert not answers
        gate.set()
        await until(lambda: answers)

    loop: Any = None
    with exchange(on_orphan=hook) as pair:
        once = [True]
        pair.scripted.start(
            lambda asked: (
                duplicate(asked.replies([SmallEms()]), at=0) if once and once.pop() else asked.replies([SmallEms()])
            )
        )
        pair_stub = stub(pair)
        run(ask())
        assert pair.requestor.orphans == 1


def test_a_loop_that_is_closed_under_its_tasks_leaves_nothing() -> None:
    """Not the way to end a loop, but no reason to lose anything either."""
    with exchange() as pair:
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *told: None)  # that a task was destroyed is what is tested
        task = loop.create_task(stub(pair).aio.get_managed_element(me_ref=NE1))
        while not pair.requestor.waiting:
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        del task
        gc.collect()  # throws the task away, with what it waits for
        assert pair.requestor.pending == 0
        pair.scripted.send(pair.scripted.take().replies([SmallEms()]))
        assert asyncio.run(asyncio.wait_for(_later(pair, SmallEms, NE1), 20)) is not None


async def _later(pair: Any, small_ems: Any, ne1: Any) -> Any:
    call = asyncio.create_task(stub(pair).aio.get_managed_element(me_ref=ne1))
    asked = await asyncio.to_thread(pair.scripted.take)
    pair.scripted.send(asked.replies([small_ems()]))
    return (await call).me


def test_views_say_what_they_are() -> None:
    with exchange([SmallEms()]) as pair:
        assert repr(stub(pair).aio) == f"<ManagedElementRetrieval for asyncio at {SUPPLIER}>"
        assert pair.requestor.aio is pair.requestor.aio


# Ten thousand requests in flight on one loop: each reply to its own task, and nothing left (R3).

IN_FLIGHT = 10_000


class Echo(ManagedElementRetrieval.Supplier):
    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref))


@pytest.mark.endurance
def test_ten_thousand_in_flight() -> None:
    """The replies are copies of one with the ids put in, so that the test is about waiting and not about XML."""
    threads: list[int] = []

    def answer_all(scripted: Any) -> None:
        asked = [scripted.take() for _ in range(IN_FLIGHT)]
        threads.append(threading.active_count())
        (sample,) = asked[0].replies([Echo()])
        identifier = asked[0].envelope.header.correlation_id.encode()
        replies = []
        for number, one in enumerate(asked):
            body = sample.body.replace(identifier, b"call-%d" % number).replace(b"NE-0<", b"NE-%d<" % number)
            replies.append(one.reply(body))
        random.Random(11).shuffle(replies)
        scripted.send(replies)

    async def ask(pair: Any) -> None:
        call = pair.stub(ManagedElementRetrieval).aio.get_managed_element
        calls = [asyncio.create_task(call(me_ref=name(f"ME=NE-{number}"))) for number in range(IN_FLIGHT)]
        answering = asyncio.create_task(asyncio.to_thread(answer_all, pair.scripted))
        answers = await asyncio.gather(*calls)
        await answering
        assert [answer.me.name.rdn[0].value for answer in answers] == [f"NE-{number}" for number in range(IN_FLIGHT)]
        assert (pair.requestor.pending, pair.requestor.orphans) == (0, 0)

    before = threading.active_count()
    ids = iter(range(IN_FLIGHT))
    timeouts = Timeouts(first_reply=None)  # the machine may be busy
    with exchange(new_id=lambda: f"call-{next(ids)}", timeouts=timeouts) as pair:
        asyncio.run(ask(pair))
        assert len(threads) == 1
        assert threads[0] - before <= 3, "one that sends, one that receives, and the one that answers"


# The thread that works for loops: order, errors, cancellation, its end.


def test_it_is_not_idle_between_the_line_and_the_job() -> None:
    """Or a request that a loop sends itself would overtake the one that the thread is just about to send."""
    worker = Worker("worker", "the worker")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(2_000):
            begun: list[int] = []
            done = worker.submit(lambda begun=begun: begun.append(1))  # type: ignore[misc]
            while not worker.is_idle:
                pass
            assert begun
            done.result()
    finally:
        sys.setswitchinterval(interval)
        worker.close()
