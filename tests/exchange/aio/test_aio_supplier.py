"""Handlers on the loop: coroutines, asynchronous generators, plain functions; how many at once; the end (R4, P33)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiFault, TransportError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import NotifyMessage
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType
from mtosi_jms.testing import REQUESTOR, SUPPLIER, InterceptedConnection, Step, connect_privately, exchange
from mtosi_jms.transport.memory import MemoryConnection

from ...waiting import PATIENCE, background
from ..conftest import numbers
from .conftest import run, until


def element(number: int) -> ManagedElementType:
    return ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"))


class Ems(ManagedElementRetrieval.Supplier):
    """Answers in its own time; what it does is noted."""

    def __init__(self, elements: int = 5) -> None:
        self.elements = elements
        self.gate = asyncio.Event()
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.threads: set[threading.Thread] = set()
        self.running = self.most = 0

    async def get_all_managed_elements(self, request: Any, context: Any) -> AsyncIterator[ManagedElementType]:
        self.begun.append("all")
        try:
            for number in range(1, self.elements + 1):
                self.threads.add(threading.current_thread())
                await asyncio.sleep(0)
                yield element(number)
        finally:
            await asyncio.sleep(0)
            self.ended.append("all")

    async def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        wanted = str(request.me_ref)
        self.begun.append(wanted)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if wanted == "ME=waits":
                await self.gate.wait()
            await asyncio.sleep(0)
            if wanted == "ME=none":
                raise EntityNotFoundFault("there is none")
            if wanted == "ME=breaks":
                raise ZeroDivisionError("in the handler")
            if wanted == "ME=cancelled":
                raise asyncio.CancelledError
        finally:
            self.running -= 1
            self.ended.append(wanted)
        return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref))

    def get_all_managed_elements_wrt_os(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
        self.threads.add(threading.current_thread())
        yield element(1)


class Ends:
    """A requestor, and a supplier that is not served yet."""

    def __init__(
        self, connection: Any, services: list[Any], intercept: Any = lambda step: step.proceed(), **supplier: Any
    ) -> None:
        self.provider = connection.provider
        self.connection = connection
        self.supplier = Supplier(InterceptedConnection(connection, intercept), SUPPLIER, services, **supplier)
        self.requestor = Requestor(connection, sender_uri=REQUESTOR)
        self.stub = ManagedElementRetrieval(self.requestor, SUPPLIER)

    def ask(self, wanted: str) -> asyncio.Task[Any]:
        return asyncio.create_task(self.stub.aio.get_managed_element(me_ref=name(wanted)))


@contextmanager
def ends(*services: Any, intercept: Any = lambda step: step.proceed(), **supplier: Any) -> Iterator[Ends]:
    with connect_privately() as connection:
        both = Ends(connection, list(services), intercept, **supplier)
        with both.requestor:
            yield both


async def test_an_asynchronous_generator_runs_in_the_loop() -> None:
    ems = Ems(7)
    with ends(ems) as both:
        async with both.supplier.aio:
            found = [numbers(batch) async for batch in both.stub.aio.get_all_managed_elements.batches(batch_size=3)]
            assert found == [[1, 2, 3], [4, 5, 6], [7]]
            assert numbers(await both.stub.aio.get_all_managed_elements()) == [1, 2, 3, 4, 5, 6, 7]
        assert ems.threads == {threading.main_thread()}


async def test_a_coroutine_answers_and_raises() -> None:
    errors: list[Exception] = []

    with ends(Ems(), on_error=errors.append) as both:
        async with both.supplier.aio:
            assert str((await both.ask("ME=1")).me.name) == "ME=1"
            with pytest.raises(EntityNotFoundFault, match="there is none"):
                await both.ask("ME=none")
            for wanted, what in (("ME=breaks", "ZeroDivisionError"), ("ME=cancelled", "CancelledError")):
                with pytest.raises(MtosiFault, match=f"getManagedElement failed with {what}"):
                    await both.ask(wanted)
            with pytest.raises(MtosiFault, match="not implemented"):
                await both.stub.aio.get_all_managed_elements_passing_filter()
        assert both.provider.depth(both.supplier.destination) == 0
    assert [type(error).__name__ for error in errors] == ["ZeroDivisionError", "CancelledError"]


async def test_plain_handlers_run_in_threads() -> None:
    ems = Ems()
    with ends(ems) as both:
        async with both.supplier.aio:
            assert numbers(await both.stub.aio.get_all_managed_elements_wrt_os()) == [1]
        assert threading.main_thread() not in ems.threads


async def test_a_coroutine_may_return_objects_or_a_generator() -> None:
    class Other(ManagedElementRetrieval.Supplier):
        async def get_all_managed_elements(self, request: Any, context: Any) -> list[ManagedElementType]:
            return [element(1), element(2)]

        async def get_all_managed_elements_wrt_os(self, request: Any, context: Any) -> Any:
            return Ems(3).get_all_managed_elements(request, context)

    with ends(Other()) as both:
        async with both.supplier.aio:
            assert numbers(await both.stub.aio.get_all_managed_elements()) == [1, 2]
            assert numbers(await both.stub.aio.get_all_managed_elements_wrt_os()) == [1, 2, 3]


async def test_one_way() -> None:
    class Hears(NotificationConsumer.Supplier):
        heard: list[Any] = []  # noqa: RUF012

        async def notify(self, request: Any, context: Any) -> None:
            await asyncio.sleep(0)
            self.heard.append(request.topic)
            done.set()

    done = asyncio.Event()

    with ends(Hears()) as both:
        async with both.supplier.aio:
            consumer = NotificationConsumer(both.requestor, SUPPLIER)
            message = NotifyMessage(common_event_information=[Alarm(object_type="ME")])
            await consumer.aio.notify(topic="Fault", message=message)
            await done.wait()
    assert Hears.heard == ["Fault"]


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_at_once_than_allowed(limit: int) -> None:
    ems = Ems()
    with ends(ems) as both:
        async with await both.supplier.aio.start(limit=limit):
            calls = [both.ask("ME=waits") for _ in range(8)]
            await until(lambda: len(ems.begun) == limit)
            ems.gate.set()
            await asyncio.gather(*calls)
        assert ems.most == limit


async def test_one_at_a_time_is_in_order() -> None:
    ems = Ems()
    with ends(ems) as both:
        async with await both.supplier.aio.start(limit=1):
            await asyncio.gather(*[both.ask(f"ME={number}") for number in range(20)])
        assert ems.begun == [f"ME={number}" for number in range(20)]


async def begun(both: Ends, ems: Ems, until: Any, wanted: str = "ME=waits") -> asyncio.Task[Any]:
    call = both.ask(wanted)
    await until(lambda: ems.begun)
    return call


async def test_stop_lets_what_was_begun_be_finished() -> None:
    ems = Ems()
    with ends(ems) as both:
        serving = await both.supplier.aio.start(limit=2)
        first = await begun(both, ems, until)
        stopping = asyncio.create_task(serving.stop())
        await until(lambda: both.connection.consumers(both.supplier.destination) == 1)  # the idle one has ended
        second = both.ask("ME=2")
        ems.gate.set()
        await stopping
        assert (await first).me is not None
        await until(lambda: both.provider.depth(both.supplier.destination) == 1)
        second.cancel()
        assert ems.begun == ["ME=waits"]
        with pytest.raises(IllegalStateError):
            await both.supplier.aio.start()
        await serving.stop()


@pytest.mark.parametrize("how", ["at once", "cancel", "blocking stop"])
async def test_what_is_not_finished_is_handed_back(how: str) -> None:
    errors: list[Exception] = []

    ems = Ems()
    with ends(ems, on_error=errors.append) as both:
        serving = asyncio.create_task(both.supplier.aio.serve())
        call = await begun(both, ems, until)
        if how == "cancel":
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serving
        elif how == "at once":
            await both.supplier.aio.stop(wait=0)
            await serving
        else:
            await asyncio.to_thread(both.supplier.stop, 0)
            ems.gate.set()
            await serving
        assert ems.ended == ["ME=waits"]
        assert both.provider.depth(both.supplier.destination) == 1
        again = Ems()
        again.gate.set()
        async with Supplier(both.connection, SUPPLIER, [again]).aio:
            assert (await call).me is not None
        assert again.begun == ["ME=waits"]
    assert errors == []


def test_the_end_of_the_loop_hands_back() -> None:
    ems = Ems()
    errors: list[Exception] = []

    async def work(both: Ends) -> None:
        await both.supplier.aio.start()
        await begun(both, ems, until)

    with ends(ems, on_error=errors.append) as both:
        asyncio.run(work(both))
        assert errors == []
        assert ems.ended == ["ME=waits"]
        assert both.provider.depth(both.supplier.destination) == 1


async def test_a_generator_is_closed_when_nobody_can_be_answered_any_more() -> None:
    """Its `finally` runs in the loop, in the task that it ran in."""

    ems = Ems(100)
    with connect_privately() as connection:
        asking = Requestor(connection, sender_uri=REQUESTOR, temporary_reply=True)
        stub = ManagedElementRetrieval(asking, SUPPLIER)
        other = MemoryConnection(connection.provider, connection.names)
        async with Supplier(other, SUPPLIER, [ems]).aio:
            async for _ in stub.aio.get_all_managed_elements.batches(batch_size=1):
                connection.close()
                break
            await until(lambda: ems.ended)
        assert (ems.begun, ems.ended) == (["all"], ["all"])
        other.close()
        asking.close()


class Script(ManagedElementRetrieval.Supplier):
    """Yields objects and whole responses, and breaks off, as it is told: as a generator of either kind."""

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps

    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
        for step in self.steps:
            yield self.take(step)

    def take(self, step: Any) -> Any:
        if step == "fault":
            raise EntityNotFoundFault("gone")
        if step == "whole":
            return mer.GetAllManagedElementsResponse(me_list=ManagedElementListType(me=[element(9)]))
        return element(step)


class AsyncScript(Script):
    async def get_all_managed_elements(self, request: Any, context: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        for step in self.steps:
            await asyncio.sleep(0)
            yield self.take(step)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.sampled_from([1, 2, 3, "whole"]), max_size=9),
    fault=st.booleans(),
    size=st.integers(0, 4),
    eager=st.booleans(),
)
def test_the_same_replies_as_from_a_plain_generator(steps: list[Any], fault: bool, size: int, eager: bool) -> None:
    steps = [*steps, "fault"] if fault else steps

    async def heard(stub: ManagedElementRetrieval) -> list[Any]:
        found: list[Any] = []
        try:
            async for batch in stub.aio.get_all_managed_elements.batches(batch_size=size):
                found.append(numbers(batch))
        except MtosiFault as error:
            found.append(error.reason)
        return found

    async def work() -> list[Any]:
        with ends(AsyncScript(steps), eager=eager) as both:
            async with await both.supplier.aio.start(limit=1):
                return await heard(both.stub)

    with exchange([Script(steps)], supplier={"eager": eager}) as pair:
        plain = run(heard(pair.stub(ManagedElementRetrieval)))
    assert run(work()) == plain


async def test_bulk_response(tmp_path: Path) -> None:
    with ends(Ems(5), bulk_folders=tmp_path) as both:
        async with both.supplier.aio:
            target = (tmp_path / "all.xml").as_uri()
            reply = await both.stub.aio.get_all_managed_elements.bulk(file_location_uri=target)
            found = await asyncio.to_thread(lambda: list(reply.objects(ManagedElementType, allowed=tmp_path)))
            assert [str(one.name) for one in found] == [f"MD=EMS1/ME=NE-{number}" for number in range(1, 6)]


async def test_a_provider_that_fails_for_a_while_does_not_end_it() -> None:
    errors: list[BaseException] = []
    cut = [TransportError("the line is cut"), TransportError("the line is cut")]

    def flaky(step: Step) -> Any:
        if cut and step.action.startswith("send"):
            raise cut.pop()
        return step.proceed()

    ems = Ems()
    with ends(ems, on_error=errors.append, intercept=flaky) as both:
        serving = asyncio.create_task(both.supplier.aio.serve(limit=1))
        call = await begun(both, ems, until)
        ems.gate.set()
        assert (await call).me is not None
        assert not serving.done()
        await both.supplier.aio.stop()
        await serving
    assert [str(error) for error in errors] == ["the line is cut"] * 2


async def test_wrong_use_is_said_at_once() -> None:
    with ends(Ems()) as both:
        for begin in (both.supplier.run, both.supplier.start):
            with pytest.raises(ConfigError, match=r"is asynchronous: serve it by `supplier.aio`"):
                begin()

    with ends(Ems()) as both:
        with pytest.raises(ConfigError, match="answers none"):
            await both.supplier.aio.start(limit=0)
        async with both.supplier.aio:
            with pytest.raises(IllegalStateError, match="serves already"):
                await both.supplier.aio.serve()
    with ends(Ems()) as both:
        both.connection.close()
        with pytest.raises(IllegalStateError):
            await both.supplier.aio.start()
        await both.supplier.aio.stop()


def test_drain_lets_a_blocking_supplier_finish() -> None:
    entered, gate = threading.Event(), threading.Event()

    class Slow(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
            entered.set()
            assert gate.wait(60)
            return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref))

    with ends(Slow()) as both:
        both.supplier.start(threads=2)
        call = background(lambda: both.stub.get_managed_element(me_ref=name("ME=1")))
        assert entered.wait(PATIENCE)
        assert not both.supplier.drain(0)
        gate.set()
        assert both.supplier.drain()
        assert call.result(PATIENCE).me is not None
        both.supplier.stop()
