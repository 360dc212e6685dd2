"""`operation.objects(...)`: the objects of all batches, flat and typed, complete or an error (R4, P32, C59)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mtosi_jms.errors import IncompleteBatchError, MtosiFault, ReplyTimeoutError
from mtosi_jms.patterns import Timeouts
from mtosi_jms.stubs.fmw.msg import CommLossFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType
from mtosi_jms.testing import duplicate, exchange, gap, reorder

from .conftest import FaultyEms, SmallEms

pytestmark = pytest.mark.parametrize("way", ["blocking", "asyncio"])
SHORT = Timeouts(gap=0.05)


def collect(way: str, pair: Any, most: int | None = None, **arguments: Any) -> tuple[list[Any], BaseException | None]:
    """The objects that are handed out, as many as wanted, and what ends the iteration."""
    found: list[Any] = []
    operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements

    async def iterate() -> None:
        async with pair.stub(ManagedElementRetrieval).aio.get_all_managed_elements.objects(**arguments) as objects:
            async for one in objects:
                found.append(one)
                if len(found) == most:
                    objects.close()
            assert [one async for one in objects] == [], "what has ended stays so"

    try:
        if way == "asyncio":
            asyncio.run(iterate())
        else:
            with operation.objects(**arguments) as objects:
                for one in objects:
                    found.append(one)
                    if len(found) == most:
                        objects.close()
                assert list(objects) == [], "what has ended stays so"
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return found, error
    return found, None


def names(found: list[Any]) -> list[str]:
    return [str(one.name) for one in found]


def elements(*numbers: int) -> list[str]:
    return [f"MD=EMS1/ME=NE-{number}" for number in numbers]


@pytest.mark.parametrize("size", [0, 1, 3, 7, 100])
def test_they_are_flat_typed_and_complete(way: str, size: int) -> None:
    with exchange([SmallEms(7)]) as pair:
        found, error = collect(way, pair, batch_size=size)
        assert (names(found), error) == (elements(*range(1, 8)), None)
        assert all(isinstance(one, ManagedElementType) for one in found)
        assert (pair.requestor.pending, pair.requestor.orphans) == (0, 0)


def test_batches_that_come_in_any_order_and_twice(way: str) -> None:
    with exchange([SmallEms(20)], tamper=lambda replies: reorder(duplicate(replies, at=range(7)), seed=5)) as pair:
        assert names(collect(way, pair, batch_size=3)[0]) == elements(*range(1, 21))


@pytest.mark.parametrize("lost", [0, 1, 2, -1])
def test_a_missing_batch_is_an_error_after_the_objects_before_it(way: str, lost: int) -> None:
    with exchange([SmallEms(8)], tamper=lambda replies: gap(replies, at=lost), timeouts=SHORT) as pair:
        found, error = collect(way, pair, batch_size=2)
    before = 6 if lost == -1 else 2 * lost
    assert names(found) == elements(*range(1, before + 1))
    assert isinstance(error, IncompleteBatchError)
    assert error.missing == (() if lost == -1 else (lost + 1,))
    held = [one for batch in error.batches.values() for one in batch.me_list.me]
    assert names(held) == ([] if lost == -1 else elements(*range(before + 3, 9)))


@pytest.mark.obligation("C59")
def test_a_fault_is_an_error_after_the_objects_before_it(way: str) -> None:
    def some() -> Iterator[ManagedElementType]:
        for number in range(1, 6):
            yield ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"))
        raise CommLossFault("NE-6 does not answer")

    with exchange([FaultyEms(some)]) as pair:
        found, error = collect(way, pair, batch_size=2)
    assert names(found) == elements(1, 2, 3, 4)
    assert isinstance(error, CommLossFault)


def test_no_reply_at_all_is_a_time_out(way: str) -> None:
    with exchange() as pair:
        found, error = collect(way, pair, timeout=0.02)
        assert (found, type(error)) == ([], ReplyTimeoutError)
        assert pair.requestor.pending == 0


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_closing_gives_up_the_rest_at_once(way: str, taken: int) -> None:
    """Also what is left of the batch at hand: after it nothing would tell that objects are missing."""
    with exchange([SmallEms(9)]) as pair:
        found, error = collect(way, pair, most=taken, batch_size=2)
        assert (names(found), error) == (elements(*range(1, taken + 1)), None)
        assert pair.requestor.pending == 0


@pytest.mark.parametrize(
    "answer",
    [
        list,
        mer.GetAllManagedElementsResponse,
        lambda: mer.GetAllManagedElementsResponse(me_list=ManagedElementListType()),
        lambda: [mer.GetAllManagedElementsResponse(), mer.GetAllManagedElementsResponse()],
    ],
    ids=["nothing yielded", "no list", "an empty list", "two without a list"],
)
def test_an_empty_inventory_has_no_objects(way: str, answer: Any) -> None:
    with exchange([FaultyEms(answer)]) as pair:
        assert collect(way, pair) == ([], None)


def test_empty_batches_between_others_are_passed_over(way: str) -> None:
    def some() -> Iterator[Any]:
        for number in range(1, 4):
            yield ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"))
            yield mer.GetAllManagedElementsResponse()

    with exchange([FaultyEms(some)]) as pair:
        assert names(collect(way, pair, batch_size=5)[0]) == elements(1, 2, 3)


@pytest.mark.parametrize(("given", "asked"), [({}, 500), ({"batch_size": 7}, 7)])
def test_the_size_of_a_batch_is_500_unless_given(way: str, given: Any, asked: int) -> None:
    ems = SmallEms(1)
    with exchange([ems]) as pair:
        assert len(collect(way, pair, **given)[0]) == 1
    assert [context.batch_size for context in ems.contexts] == [asked]


def test_the_batches_behind_the_objects_are_there(way: str) -> None:
    """For the correlationId and the counts."""
    if way == "asyncio":

        async def iterate() -> tuple[str, int]:
            objects = pair.stub(ManagedElementRetrieval).aio.get_all_managed_elements.objects(batch_size=2)
            found: Any = objects.batches
            return str(found.correlation_id), len([one async for one in objects])

        with exchange([SmallEms(3)], new_id=lambda: "case-1") as pair:
            assert asyncio.run(iterate()) == ("case-1", 3)
        return
    with exchange([SmallEms(3)], new_id=lambda: "case-1") as pair:
        objects = pair.stub(ManagedElementRetrieval).get_all_managed_elements.objects(batch_size=2)
        assert (objects.batches.correlation_id, len(list(objects))) == ("case-1", 3)


def test_an_operation_that_is_not_offered_is_a_fault(way: str) -> None:
    with exchange([ManagedElementRetrieval.Supplier()]) as pair:
        found, error = collect(way, pair)
    assert found == []
    assert isinstance(error, MtosiFault)
