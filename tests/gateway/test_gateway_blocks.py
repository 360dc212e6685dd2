"""What SOAP says beside the body, over HTTP: header blocks that must be understood, and the SOAP action."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, ByRequestor, Endpoint, HttpServer, Store
from mtosi_jms.namespaces import SOAP11, SOAP12
from mtosi_jms.service import OperationInfo, ServiceInfo, SupplierBase
from mtosi_jms.soap import parse
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import DECLARATION, RawXml, encode

from .conftest import ONE, QUEUE, forwarded, gateway

TYPES = {SOAP11: "text/xml", SOAP12: "application/soap+xml"}


def _operation(name: str) -> OperationInfo:
    element = "mri.mer:GetManagedElement"
    return OperationInfo(
        name=name,
        python_name=name,
        request=f"{element}Request",
        response=f"{element}Response",
        soap_action=f"urn:{name}",
    )


class Twins(SupplierBase):
    """Two operations with one request element."""

    __service__ = ServiceInfo(
        name="Twins",
        namespace="urn:twins",
        root="mtosi_jms.stubs",
        operations=(_operation("live"), _operation("stored")),
    )

    def live(self, request: Any, context: mtosi.RequestContext) -> mer.GetManagedElementResponse:
        return mer.GetManagedElementResponse(me=ManagedElementType(location="live"))

    def stored(self, request: Any, context: mtosi.RequestContext) -> mer.GetManagedElementResponse:
        return mer.GetManagedElementResponse(me=ManagedElementType(location="stored"))


@pytest.fixture(params=["services", "jms"])
def serve(request: pytest.FixtureRequest, connection: Connection) -> Iterator[Callable[[Any], str]]:
    """Starts a server with a service, here or beyond JMS; returns its URL."""
    with ExitStack() as stack:

        def start(service: Any) -> str:
            if request.param == "jms":
                return stack.enter_context(gateway(connection, service)).url
            return stack.enter_context(HttpServer(Endpoint(ByDispatcher(Dispatcher([service]))))).url

        yield start


@pytest.mark.obligation("REQ3")
@pytest.mark.parametrize("space", [SOAP11, SOAP12])
def test_a_block_that_must_be_understood(serve: Any, client: Any, space: str) -> None:
    url = serve(simulator.ManagedElementEms(simulator.Network(elements=1)))
    for must, code in (("0", None), ("1", "MustUnderstand")):
        block = f'<t:Tx xmlns:t="urn:tx" soap:mustUnderstand="{must}"/>'
        text = ONE.replace(SOAP11, space).replace("NAME", "NE-1")
        text = text.replace("<soap:Body>", f"<soap:Header>{block}</soap:Header><soap:Body>")
        answer = client(url).post(text, **{"Content-Type": TYPES[space]})
        fault = parse(answer.content, needs_header=False).fault
        assert (None if fault is None else fault.fault_code) == code
        assert answer.headers["content-type"].startswith(TYPES[space])


@pytest.mark.obligation("REQ3")
def test_what_the_gateway_answers_itself(serve: Any, client: Any, connection: Connection) -> None:
    block = '<soap:Header><t:Tx xmlns:t="urn:tx" soap:mustUnderstand="1"/></soap:Header><soap:Body>'
    further = ONE.replace("getManagedElementRequest", "getManagedElementsIteratorRequest").replace("<soap:Body>", block)
    _, envelope = client(serve(simulator.ManagedElementEms(simulator.Network(elements=1)))).ask(further)
    assert envelope.fault.fault_code == "MustUnderstand"
    event = NotifyMessage(common_event_information=[Alarm(object_type="ME")])
    body = encode(Notify(topic="Fault", message=event))[len(DECLARATION) :].decode()
    notify = f'<soap:Envelope xmlns:soap="{SOAP11}">{block}{body}</soap:Body></soap:Envelope>'
    names = {"jms/Gw": "queue:GW", "topic": "topic:T"}
    with (
        mtosi.connect("memory:blocks", names=names) as other,
        mtosi.Requestor(other, sender_uri="jms/Gw") as requestor,
        mtosi.Publisher(other, topics={"Fault": "topic"}, sender_uri="jms/Gw") as publisher,
        HttpServer(Endpoint(ByRequestor(requestor, QUEUE, Store(10_000), publisher=publisher))) as server,
    ):
        status, envelope = client(server.url).ask(notify)
        assert (status, envelope.fault.fault_code) == (500, "MustUnderstand")


@pytest.mark.obligation("REQ3")
def test_a_peer_over_http_is_told_of_it_in_its_version(connection: Connection) -> None:
    def with_block(envelope: Any) -> Any:
        envelope.version = "1.2"
        envelope.blocks = [RawXml(f'<t:Tx xmlns:t="urn:tx" xmlns:S="{SOAP12}" S:mustUnderstand="true"/>'.encode())]
        return envelope

    services = [simulator.ManagedElementEms(simulator.Network(elements=1))]
    with (
        HttpServer(Endpoint(ByDispatcher(Dispatcher(services)))) as server,
        forwarded(connection, server.url) as stub,
    ):
        options = mtosi.CallOptions(on_request=with_block)
        with pytest.raises(mtosi.MtosiFault) as refused:
            stub.get_managed_element(me_ref="MD=EMS1/ME=NE-1", options=options)
        assert refused.value.fault_code == "MustUnderstand"


@pytest.mark.obligation("REQ1")
def test_the_soap_action_chooses_among_operations_with_one_element(client: Any) -> None:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([Twins()])))) as server:
        for action in ("live", "stored"):
            answer = client(server.url).post(ONE, SOAPAction=f'"urn:{action}"')
            assert f">{action}<" in answer.text
            content_type = {"Content-Type": f'application/soap+xml; action="urn:{action}"'}
            answer = client(server.url).post(ONE.replace(SOAP11, SOAP12), **content_type)
            assert f">{action}<" in answer.text
        both = {"SOAPAction": '"urn:live"', "Content-Type": 'text/xml; action="urn:stored"'}
        assert "request of live and stored" in client(server.url).post(ONE, **both).text
        both = {"SOAPAction": '"urn:live"', "Content-Type": 'text/xml; action="urn:live"'}
        assert ">live<" in client(server.url).post(ONE, **both).text
        status, envelope = client(server.url).ask(ONE)
        assert (status, envelope.fault.reason[:49]) == (500, "getManagedElementRequest is the request of live a")
