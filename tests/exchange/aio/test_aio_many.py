"""Ten thousand requests in flight on one loop: each reply to its own task, and nothing left (R3)."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import pytest

from mtosi_jms.patterns import Timeouts
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import exchange

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
