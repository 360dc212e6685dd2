"""Wrong suppliers of all kinds, against one small model: an answer is whole for a requestor, for the ledger and for the
gateway's clients exactly where the model says so, and never with less than was sent (P32, R5a, C23, C58).

A failure prints the case; `Maker(SEED).case()` makes it again.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import MtosiError
from mtosi_jms.exchange.messages import read_reply
from mtosi_jms.jms import JmsMessage
from mtosi_jms.patterns import BatchAssembler, BatchRules, Complete, Release, Reply
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.tables.envelope import envelope_facts
from mtosi_jms.tables.sequences import Receipt, reckon
from mtosi_jms.testing import SUPPLIER, exchange
from mtosi_jms.xmlbind import parse_xml

from .wrong_replies import HDR, Case, Maker, Said, heard, is_whole, message, number_of

CASES = 10_000
"""Of about five replies each."""
FEW = 50

pytestmark = pytest.mark.obligation("P32", "BAT1", "BAT2", "BAT3")


def auto(first: int | None) -> Literal["auto", 0, 1]:
    return "auto" if first is None else 0 if first == 0 else 1


@lru_cache(maxsize=50_000)
def replied(said: Said) -> Reply[Any]:
    return read_reply(message(said, "c", "jms/Ems"))


@lru_cache(maxsize=50_000)
def receipt(said: Said) -> Receipt:
    facts = envelope_facts(parse_xml(message(said, "c", "jms/Ems").body))
    return Receipt("c", facts.batch_number, facts.end_of_reply, said.content, sender="jms/Ems")


def content_of(payload: Any) -> str:
    return str(payload.body.me_list.me[0].name).removeprefix("ME=")


def check(case: Case) -> None:
    """Both readers of one case against the model, and the model against what was sent."""
    seen: set[str] = set()
    knows = False
    for answer in case.answers:
        machine: BatchAssembler[Any] = BatchAssembler(
            "c", started=0.0, rules=BatchRules(first=auto(case.first)), supplier="EMS", from_zero=seen
        )
        actions = [action for said in answer.arrived for action in machine.receive(replied(said), 0.0)]
        actions += machine.exhaust()
        is_complete = any(isinstance(action, Complete) for action in actions)
        released = [content_of(action.payload) for action in actions if isinstance(action, Release)]
        expected = heard(answer.arrived, case.first, from_zero=knows)
        assert (released if is_complete else None) == expected, str(case)
        untold = case.base == 0 and (case.first == 1 or (case.first is None and not knows))
        if is_complete and answer.is_honest and not untold:
            assert released == [said.content for said in answer.sent], str(case)
        knows = knows or any(number_of(said) == 0 for said in answer.arrived)
    from_zero = any(number_of(said, with_properties=False) == 0 for one in case.answers for said in one.arrived)
    senders = ("jms/Ems",) if from_zero else ()
    for answer in case.answers:
        found = reckon(map(receipt, answer.arrived), auto(case.first), senders)
        is_complete = bool(found) and found[0].complete
        zero = from_zero if case.first is None else False
        assert is_complete == is_whole(answer.arrived, case.first, from_zero=zero, with_properties=False), str(case)


@pytest.mark.obligation("BAT4", "BAT5", "BAT6", "BAT7", "BAT8", "BAT9")
def test_requestor_and_ledger_agree_with_the_model() -> None:
    for seed in range(CASES):
        check(Maker(seed).case())


@pytest.mark.endurance
def test_many_more_cases() -> None:
    start = random.randrange(2**40)
    for seed in range(start, start + 400_000):
        check(Maker(seed).case())


ENDED = (
    '<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body><S:Fault><faultcode>S:Server</faultcode>'
    "<faultstring>nothing more comes</faultstring></S:Fault></S:Body></S:Envelope>"
)
"""Ends an exchange that is not whole at once, so that no test waits for a time-out."""


def scripted(case: Case, answers: Iterator[int]) -> Any:
    """The script of a supplier that gives the answers of a case one after the other."""

    def script(asked: Any) -> list[JmsMessage]:
        identifier, ended = asked.envelope.header.correlation_id, asked.reply(ENDED.encode())
        made = [message(said, identifier, "jms/Ems") for said in case.answers[next(answers)].arrived]
        ids = {"destination": ended.destination, "correlation_id": ended.correlation_id}
        return [*(replace(one, **ids) for one in made), ended]

    return script


@pytest.mark.parametrize("ask", ["threads", "asyncio"])
def test_whole_exchanges(ask: str) -> None:
    for seed in range(FEW):
        case = Maker(seed).case()
        with exchange(profile=BindingProfile(first_batch=auto(case.first)), on_orphan=lambda orphan: None) as pair:
            pair.scripted.start(scripted(case, itertools.count()))
            stub, knows = pair.stub(ManagedElementRetrieval), False
            for answer in case.answers:
                found = asked(stub) if ask == "threads" else asyncio.run(asked_on_a_loop(stub))
                assert found == heard(answer.arrived, case.first, from_zero=knows), str(case)
                knows = knows or any(number_of(said) == 0 for said in answer.arrived)


def asked(stub: Any) -> list[str] | None:
    try:
        return [str(one.name).removeprefix("ME=") for one in stub.get_all_managed_elements.objects(batch_size=1)]
    except MtosiError:
        return None


async def asked_on_a_loop(stub: Any) -> list[str] | None:
    try:
        objects = stub.aio.get_all_managed_elements.objects(batch_size=1)
        return [str(one.name).removeprefix("ME=") async for one in objects]
    except MtosiError:
        return None


ASKED = (
    f'<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Header><header xmlns="{HDR}">'
    "<activityName>%(name)s</activityName><msgName>%(name)sRequest</msgName><msgType>REQUEST</msgType>"
    "<communicationPattern>MultipleBatchResponse</communicationPattern><communicationStyle>RPC</communicationStyle>"
    "<requestedBatchSize>1</requestedBatchSize>%(more)s</header></S:Header><S:Body>"
    '<%(name)sRequest xmlns="http://www.tmforum.org/mtop/mri/xsd/mer/v1"/></S:Body></S:Envelope>'
)
ITERATOR = re.compile("<[^<>]*iteratorReferenceURI>[^<]*</[^<>]*iteratorReferenceURI>")


@pytest.mark.obligation("BAT15")
def test_clients_of_the_gateway() -> None:
    """A client over HTTP that gets all responses to the last one has the whole answer; otherwise it gets a fault."""
    httpx = pytest.importorskip("httpx", reason="the extra http is not installed")
    gateway = pytest.importorskip("mtosi_jms.gateway", reason="the extra http is not installed")

    async def fetched(endpoint: Any) -> list[str] | None:
        transport, found = httpx.ASGITransport(app=endpoint), []
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            text = ASKED % {"name": "getAllManagedElements", "more": ""}
            while True:
                answer = await client.post("/", content=text, headers={"Content-Type": "text/xml"})
                if answer.status_code != httpx.codes.OK:
                    return None
                found += re.findall("NE-[^<]*", answer.text)
                uri = ITERATOR.search(answer.text)
                if uri is None:
                    return found
                place = re.sub("<[^<>]*:", "<", re.sub("</[^<>]*:", "</", uri[0]))
                text = ASKED % {"name": "getManagedElementsIterator", "more": place}

    for seed in range(FEW):
        case = Maker(seed).case()
        with exchange(profile=BindingProfile(first_batch=auto(case.first)), on_orphan=lambda orphan: None) as pair:
            pair.scripted.start(scripted(case, itertools.count()))
            source = gateway.ByRequestor(pair.requestor, SUPPLIER, gateway.Store(2**20))
            knows = False
            for answer in case.answers:
                found = asyncio.run(fetched(gateway.Endpoint(source)))
                assert found == heard(answer.arrived, case.first, from_zero=knows), str(case)
                knows = knows or any(number_of(said) == 0 for said in answer.arrived)
