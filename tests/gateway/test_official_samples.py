"""TM Forum's samples of an exchange through iterators pass in both directions, but for ids, addresses and times."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from mtosi_jms.errors import MtosiFault
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpServer
from mtosi_jms.service import Call, CallOptions, OperationInfo, ServiceInfo
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.stubs.fmw.hdr import CommunicationStyleType
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import RawXml, to_element

from .conftest import QUEUE, forwarded, gateway, printed, with_iterator

EXCHANGES = [("6", "getAllManagedElements"), ("7", "getInventory")]


class Recorded(Dispatcher):
    """Answers with replies that were recorded. `replies`: to any request, in their order. `style`: of their headers."""

    def __init__(self, replies: list[Envelope], style: CommunicationStyleType) -> None:
        super().__init__([])
        self._replies = replies
        self._style = style
        self.asked: list[Envelope] = []

    def dispatch(self, envelope: Envelope, **_: Any) -> Generator[Envelope, None, None]:
        self.asked.append(envelope)
        assert envelope.header is not None
        for reply in self._replies:
            header = replace(
                reply.header,
                communication_style=self._style,
                correlation_id=envelope.header.correlation_id,
                iterator_reference_uri=None,
            )
            yield replace(reply, header=header, origin=None)


def recorded(text: str, operation: str) -> Envelope:
    """A reply of a sample as one of the operation that was called."""
    envelope = parse(text)
    if envelope.fault is None:
        element = to_element(envelope.body)
        element.tag = f"{str(element.tag).rpartition('}')[0]}}}{operation}Response"
        header = replace(envelope.header, activity_name=operation, msg_name=f"{operation}Response")
        envelope = replace(envelope, header=header, body=RawXml.from_element(element))
    return envelope


@pytest.mark.obligation("001-H8")
@pytest.mark.parametrize(("number", "operation"), EXCHANGES)
def test_an_http_client_sees_them_as_printed(
    connection: Connection, official: Any, client: Any, number: str, operation: str
) -> None:
    replies = [recorded(official(f"{number}-{which}"), operation) for which in (2, 4)]
    supplier = Recorded(replies, CommunicationStyleType.MSG)
    with gateway(connection, supplier) as server:
        found = list(client(server.url).fetch(official(f"{number}-1"), official(f"{number}-3")))
    assert [printed(one.to_bytes()) for one in found] == [printed(official(f"{number}-{which}")) for which in (2, 4)]
    (asked,) = supplier.asked
    assert printed(asked.to_bytes()) == printed(official(f"{number}-1").replace(">RPC<", ">MSG<"))
    assert asked.header.correlation_id
    assert asked.header.originator_uri == "/MTOSI/InventoryOS"
    assert asked.header.sender_uri == "jms/Gateway"


@pytest.mark.parametrize("number", ["6", "7"])
def test_a_fault_comes_as_it_was_printed(connection: Connection, official: Any, client: Any, number: str) -> None:
    supplier = Recorded([parse(official(f"{number}-5"))], CommunicationStyleType.RPC)
    with gateway(connection, supplier) as server:
        answer = client(server.url).post(official(f"{number}-1"))
    assert answer.status_code == 500
    assert printed(answer.content) == printed(official(f"{number}-5"))


@pytest.mark.parametrize(("number", "operation"), EXCHANGES)
def test_a_requestor_on_jms_sees_them_as_printed(
    connection: Connection, official: Any, number: str, operation: str
) -> None:
    supplier = Recorded(
        [recorded(official(f"{number}-{which}"), operation) for which in (2, 4)], CommunicationStyleType.RPC
    )
    with (
        HttpServer(Endpoint(ByDispatcher(supplier))) as server,
        forwarded(connection, server.url) as stub,
    ):
        told: list[Envelope] = []
        request = parse(official(f"{number}-1")).body
        call = Call(
            ServiceInfo(name="any", namespace="", root=""),
            OperationInfo(name=operation, python_name=operation),
            QUEUE,
            request,
            CallOptions(on_reply=told.append),
        )
        responses = list(stub.caller.call_batches(call, 500))
    assert len(responses) == 2
    wanted = [recorded(official(f"{number}-{which}"), operation) for which in (2, 4)]
    for came, expected in zip(told, wanted, strict=True):
        ours = replace(expected, header=replace(expected.header, communication_style=CommunicationStyleType.MSG))
        assert printed(came.to_bytes()) == printed(replace(ours, origin=None).to_bytes())
        assert came.header.iterator_reference_uri is None


def failing(official: Any, number: str, operation: str) -> list[Envelope]:
    """The first response of a sample, and the fault behind it as one of the operation that was called.

    In the samples the fault is that of the activityName that the iterator's request has.
    """
    fault = official(f"{number}-6").replace("getManagedElementsIteratorException", f"{operation}Exception")
    return [recorded(official(f"{number}-2"), operation), parse(fault)]


@pytest.mark.parametrize(("number", "operation"), EXCHANGES)
def test_an_http_client_sees_the_fault_of_its_iterator_as_printed(
    connection: Connection, official: Any, client: Any, number: str, operation: str
) -> None:
    supplier = Recorded(failing(official, number, operation), CommunicationStyleType.RPC)
    with gateway(connection, supplier) as server:
        asks = client(server.url)
        status, first = asks.ask(official(f"{number}-1"))
        assert status == 200
        request = with_iterator(official(f"{number}-3"), first.header.iterator_reference_uri)
        answer = asks.post(request)
        assert asks.ask(request)[1].fault.kind == "invalidInput", "a fault closes the iterator"
    assert answer.status_code == 500
    assert printed(answer.content) == printed(official(f"{number}-6"))


@pytest.mark.parametrize(("number", "operation"), EXCHANGES)
def test_a_requestor_on_jms_sees_the_fault_of_an_iterator_as_printed(
    connection: Connection, official: Any, number: str, operation: str
) -> None:
    """But for what JMS asks for: MSG style, and the exception of the operation that was called."""
    supplier = Recorded(failing(official, number, operation), CommunicationStyleType.RPC)
    told: list[Envelope] = []
    with (
        HttpServer(Endpoint(ByDispatcher(supplier))) as server,
        forwarded(connection, server.url) as stub,
    ):
        call = Call(
            ServiceInfo(name="any", namespace="", root=""),
            OperationInfo(name=operation, python_name=operation),
            QUEUE,
            parse(official(f"{number}-1")).body,
            CallOptions(on_reply=told.append),
        )
        batches = stub.caller.call_batches(call, 500)
        next(batches)
        with pytest.raises(MtosiFault, match="Database error"):
            next(batches)
    assert [one.fault is None for one in told] == [True, False]
    wanted = official(f"{number}-6").replace("getManagedElementsIteratorException", f"{operation}Exception")
    assert printed(told[1].to_bytes()) == printed(wanted.replace(">RPC<", ">MSG<"))
