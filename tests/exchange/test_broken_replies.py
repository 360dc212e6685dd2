"""Replies that are broken: each is a typed error where the caller waits, never a hang, never dropped in silence."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import (
    DecodeError,
    EnvelopeError,
    ExchangeError,
    ForbiddenXmlError,
    IncompleteBatchError,
    MalformedXmlError,
    MtosiError,
    MtosiFault,
    ProtocolError,
)
from mtosi_jms.jms import DeliveryMode, JmsMessage
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import exchange, truncate

from ..waiting import PATIENCE
from .conftest import NE1, SmallEms, numbers, with_bodies

HEADER = re.compile(rb"<soap:Header>.*</soap:Header>", re.DOTALL)
SOAP = b'<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">%s</soap:Envelope>'

BODIES: dict[str, tuple[bytes, type[MtosiError], str]] = {
    "empty": (b"", MalformedXmlError, ""),
    "text": (b"Connection refused", MalformedXmlError, ""),
    "bytes": (b"\x00\xff\xfe\x80", MalformedXmlError, ""),
    "not soap": (b"<html><body/></html>", EnvelopeError, "not a SOAP envelope"),
    "no body": (SOAP % b"", EnvelopeError, "without a Body"),
    "dtd": (b'<!DOCTYPE a [<!ENTITY x "y">]>' + SOAP % b"<soap:Body>&x;</soap:Body>", ForbiddenXmlError, ""),
    "deep": (SOAP % (b"<soap:Body>" + b"<a>" * 10_000 + b"</a>" * 10_000 + b"</soap:Body>"), ForbiddenXmlError, ""),
    "empty body": (SOAP % b"<soap:Body/>", ProtocolError, "got an empty body"),
    "other body": (SOAP % b"<soap:Body><a/></soap:Body>", ProtocolError, "expected GetManagedElementResponse"),
    "bare fault": (
        SOAP % b"<soap:Body><soap:Fault><faultcode>soap:Server</faultcode><faultstring>no</faultstring></soap:Fault>"
        b"</soap:Body>",
        MtosiFault,
        "no",
    ),
    "empty fault": (SOAP % b"<soap:Body><soap:Fault/></soap:Body>", MtosiFault, ""),
    "unknown fault": (
        SOAP % b"<soap:Body><soap:Fault><detail><x:boom xmlns:x='urn:x'>7</x:boom></detail></soap:Fault></soap:Body>",
        MtosiFault,
        "",
    ),
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("pattern", ["simple", "batches"])
@pytest.mark.obligation("BAT12")
def test_a_broken_reply_is_a_typed_error(what: str, pattern: str, mtosi_exchange: Any) -> None:
    body, error, words = BODIES[what]
    pair = mtosi_exchange()
    pair.scripted.start(lambda asked: [asked.reply(body)])
    stub = pair.stub(ManagedElementRetrieval)

    def ask() -> Any:
        if pattern == "simple":
            return stub.get_managed_element(me_ref=NE1)
        return list(stub.get_managed_element.batches(me_ref=NE1, batch_size=1))

    with pytest.raises(error) as caught:
        ask()
    assert words in str(caught.value)
    assert type(caught.value) is error
    assert (pair.requestor.pending, pair.requestor.orphans) == (0, 0)
    assert pair.provider.held() == 0


@pytest.mark.parametrize("keep", [1, 60, 0.3, 0.7, 0.95, -1])
def test_a_reply_that_ends_early(keep: float) -> None:
    with exchange([SmallEms()], tamper=lambda replies: truncate(replies, at=0, keep=keep)) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        for _ in range(2):
            with pytest.raises(MalformedXmlError) as caught:
                stub.get_managed_element(me_ref=NE1)
            assert caught.value.line in (1, 2)


def test_a_broken_batch_ends_the_exchange_after_those_before_it() -> None:
    with exchange([SmallEms(4)], tamper=lambda replies: truncate(replies, at=2)) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        assert [numbers(next(batches)), numbers(next(batches))] == [[1], [2]]
        with pytest.raises(MalformedXmlError):
            next(batches)
        assert list(batches) == []


@pytest.mark.obligation("BAT11")
def test_a_reply_without_header_is_the_answer_with_a_warning() -> None:
    """It pairs by JMSCorrelationID."""
    seen: list[Any] = []

    with exchange([SmallEms()], tamper=with_bodies(lambda body: HEADER.sub(b"", body))) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        options = CallOptions(on_reply=seen.append)
        assert stub.get_managed_element(me_ref=NE1, options=options).me is not None
    assert {"no-header", "R3c"} <= {warning.rule for warning in seen[0].warnings}


NIL = b' xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"><'


@pytest.mark.parametrize(
    "field", ["batchSequenceNumber", "batchSequenceEndOfReply", "correlationId", "msgType", "priority"]
)
@pytest.mark.parametrize("value", [b"x", b"", NIL, b"-7", b"1e3", b"99999999999999999999"])
def test_header_fields_that_say_nothing(field: str, value: bytes) -> None:
    """Any of them leaves a response or a typed error; the exchange ends."""

    element = re.compile(f"{field}>[^<]*<".encode())
    tamper = with_bodies(lambda body: element.sub(field.encode() + value, body))
    with exchange([SmallEms(1)], tamper=tamper, timeouts=Timeouts(first_reply=0.05, gap=0.01)) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        with contextlib.suppress(MtosiError):
            assert len(list(batches)) == 1
        assert (pair.requestor.pending, pair.requestor.orphans) == (0, 0)


def test_warnings_that_nobody_listens_to_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with exchange([SmallEms()], tamper=with_bodies(lambda body: body.replace(b">SUCCESS<", b">SUPER<"))) as pair:
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None
    assert "a reply of getManagedElement with 2 warnings, correlation id " in caplog.text


def test_an_error_without_fault_is_a_fault() -> None:
    with exchange([SmallEms()], tamper=with_bodies(lambda body: body.replace(b">RESPONSE<", b"> ERROR <"))) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(MtosiFault, match="msgType ERROR and no fault") as caught:
            stub.get_managed_element(me_ref=NE1)
    assert isinstance(caught.value.detail, mer.GetManagedElementResponse)


def test_a_reply_that_does_not_fit_is_a_warning_or_in_strict_mode_an_error() -> None:
    end, odd = re.compile(rb"</(?=\w+:getManagedElementResponse)"), b"<x:odd xmlns:x='urn:x'/></"
    tamper = with_bodies(lambda body: end.sub(odd, body))
    seen: list[Any] = []
    with exchange([SmallEms()], tamper=tamper) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        stub.get_managed_element(me_ref=NE1, options=CallOptions(on_reply=seen.append))
        assert [warning.rule for warning in seen[0].warnings] == ["unknown-element"]
    with exchange([SmallEms()], tamper=tamper, profile=BindingProfile(validation="strict")) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(DecodeError):
            stub.get_managed_element(me_ref=NE1)


@pytest.mark.obligation("BAT10")
def test_broken_messages_for_nobody_go_to_the_hook(mtosi_exchange: Any) -> None:
    found: SimpleQueue[Any] = SimpleQueue()
    pair = mtosi_exchange(on_orphan=found.put)

    def script(asked: Any) -> list[JmsMessage]:
        unpaired = dataclasses.replace(asked.reply(b"<torn"), correlation_id=None)
        foreign = dataclasses.replace(asked.reply(b"<torn"), correlation_id="ID:other")
        return [unpaired, foreign, *asked.replies([SmallEms()])]

    pair.scripted.start(script)
    assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None
    orphans = [found.get(timeout=PATIENCE) for _ in range(2)]
    assert [(orphan.reason.name, type(orphan.reply.payload)) for orphan in orphans] == [
        ("NO_ID", MalformedXmlError),
        ("UNKNOWN", MalformedXmlError),
    ]


def test_requests_that_come_back_are_no_answers() -> None:
    """A requestor whose own queue is the destination gets its own request."""
    names = {"jms/RequestorOS": "queue:SAME", "jms/SupplierOS": "queue:OTHER"}
    with exchange(names=names) as pair:
        stub = ManagedElementRetrieval(pair.requestor, "jms/RequestorOS")
        with pytest.raises(ProtocolError, match="got GetManagedElementRequest"):
            stub.get_managed_element(me_ref=NE1)


@given(st.data())
def test_any_reply_at_all_gives_a_response_or_a_typed_error(data: st.DataObject) -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
            return mer.GetManagedElementResponse()

    with exchange(timeouts=Timeouts(first_reply=0.01)) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_managed_element.batches(batch_size=1)
        asked = pair.scripted.take()
        (reply,) = asked.replies([Ems()])
        body = bytearray(reply.body)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(body) - 1))
            body[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=6))
        pair.scripted.send([dataclasses.replace(reply, body=bytes(body))])
        try:
            assert isinstance(next(batches), mer.GetManagedElementResponse)
        except MtosiError:
            event("a typed error")
        assert pair.provider.held() == 0


# A supplier that answers a request twice, from data that changed: by threads, by coroutines, with a landing (P32).

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
