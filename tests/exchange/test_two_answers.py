"""A supplier that answers a request twice, from data that changed: by threads, by coroutines, with a landing (P32)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import ConfigError, ExchangeError, IncompleteBatchError, ProtocolError
from mtosi_jms.jms import DeliveryMode, JmsMessage
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import exchange

from .conftest import numbers

BEFORE, AFTER = list(range(1, 10)), [1, 2, 4, 5, 6, 7, 8, 9]
"""Element 3 is deleted while the supplier is away."""
WAYS = ["blocking", "asyncio"]
Replies = list[JmsMessage]


class Ems(ManagedElementRetrieval.Supplier):
    def __init__(self, elements: list[int]) -> None:
        self.elements = elements

    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
        return (ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}")) for number in self.elements)


def ask(
    pair: Any, way: str, numbers: Any, send: Callable[[Replies, Replies], Replies], **options: Any
) -> tuple[list[int], ExchangeError | None]:
    """What is handed out, and how it ends, when some of two answers come: of BEFORE, and of AFTER."""
    call = {"batch_size": 2, "options": CallOptions(**options)}
    operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
    found: list[int] = []

    def answer() -> None:
        asked = pair.scripted.take()
        pair.scripted.send(send(asked.replies([Ems(BEFORE)]), asked.replies([Ems(AFTER)])))

    async def iterate() -> None:
        async with pair.stub(ManagedElementRetrieval).aio.get_all_managed_elements.batches(**call) as batches:
            answer()
            async for batch in batches:
                found.extend(numbers(batch))

    try:
        if way == "asyncio":
            asyncio.run(iterate())
        else:
            batches = operation.batches(**call)
            answer()
            for batch in batches:
                found += numbers(batch)
    except ExchangeError as error:
        return found, error
    return found, None


@pytest.mark.obligation("P32")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kept", ["landed", "not landed"])
@pytest.mark.parametrize("died", range(6))
@pytest.mark.obligation("BAT13")
def test_a_restart_at_every_point(way: str, kept: str, died: int, tmp_path: Any) -> None:
    landing = mtosi.DurableLanding(tmp_path) if kept == "landed" else None
    with landing or nullcontext(), exchange(landing=landing) as pair:
        found, error = ask(pair, way, numbers, lambda first, second: [*first[:died], *second])
        assert pair.requestor.pending == 0
    if 2 <= died < 5:
        assert isinstance(error, ProtocolError)
        assert "batch 2 came twice" in str(error)
        assert found == BEFORE[: 2 * died]
    else:
        assert (found, error) == (BEFORE if died == 5 else AFTER, None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.obligation("BAT13")
def test_what_was_lost_of_one_answer_is_not_made_up_from_the_other(way: str) -> None:
    """A broker lost batch 3 of the first answer: the second one has a batch of that number, and not what was in it."""
    with exchange() as pair:
        found, error = ask(
            pair, way, numbers, lambda first, second: [*first[:2], *first[3:], second[2]], gap_timeout=0.05
        )
    assert isinstance(error, IncompleteBatchError)
    assert (error.missing, found) == ((1, 2, 4, 5), [1, 2, 3, 4, 6, 7, 7, 8, 9])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["requestor", "call"])
def test_the_first_batch_is_kept_where_that_is_wanted(way: str, where: str) -> None:
    wanted: dict[str, Any] = {"on_conflict": "keep_first"}
    with exchange(**wanted if where == "requestor" else {}) as pair:
        options = wanted if where == "call" else {}
        found, error = ask(pair, way, numbers, lambda first, second: [*first[:2], *second], **options)
    assert (found, error) == ([1, 2, 3, 4, 6, 7, 8, 9], None)


def test_a_call_may_want_an_error_where_its_requestor_does_not() -> None:
    with exchange(on_conflict="keep_first") as pair:
        _, error = ask(pair, "blocking", numbers, lambda first, second: [*first[:2], *second], on_conflict="error")
    assert isinstance(error, ProtocolError)


def test_what_there_is_to_choose() -> None:
    with pytest.raises(ConfigError, match="on_conflict"), exchange(on_conflict="newest"):
        pass
    with pytest.raises(ConfigError, match="on_conflict"):
        CallOptions(on_conflict="newest")  # type: ignore[arg-type]


@pytest.mark.parametrize("died", range(len(BEFORE) + 1))
def test_a_supplier_that_really_dies(died: int) -> None:
    """Its connection breaks in the middle of the handler; another one serves the request that was not acknowledged."""

    class Dying(Ems):
        def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
            for number, element in enumerate(super().get_all_managed_elements(request, context)):
                if number == died:
                    one.close()
                    after.start()
                yield element

    url = f"memory:dying-{died}"
    one, other, own = (mtosi.connect(url) for _ in range(3))
    policy: dict[str, Any] = {"reply_policy": lambda _: True, "on_error": lambda _: None}
    after = mtosi.Supplier(other, "queue:S", services=[Ems(AFTER)], **policy)
    before = mtosi.Supplier(one, "queue:S", services=[Dying(BEFORE)], send_window=1, **policy).start()
    found: list[int] = []
    with other, own, mtosi.Requestor(own, sender_uri="queue:R") as requestor:
        stub = ManagedElementRetrieval(requestor, "queue:S")
        with suppress(ProtocolError):
            for batch in stub.get_all_managed_elements.batches(batch_size=2):
                found += numbers(batch)
            assert found in (BEFORE, AFTER)
        before.stop()
        after.stop()


@pytest.mark.obligation("O6b")
@pytest.mark.parametrize(
    ("requestor", "call", "mode"),
    [
        (None, None, "NON_PERSISTENT"),
        (True, None, "PERSISTENT"),
        (True, False, "NON_PERSISTENT"),
        (False, True, "PERSISTENT"),
    ],
)
def test_a_requestor_has_a_delivery_mode_of_its_own(requestor: bool | None, call: bool | None, mode: str) -> None:
    with exchange(persistent=requestor) as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        operation.batches(batch_size=1, options=CallOptions(persistent=call)).close()
        assert pair.scripted.take().message.delivery_mode is DeliveryMode[mode]
