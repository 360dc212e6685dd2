"""Which operation a request is for: operations that share a request element, and requests of another operation."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import ConfigError, MtosiFault
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.jms import JmsMessage
from mtosi_jms.notifications import LocalBroker
from mtosi_jms.service import Call, OperationInfo, ServiceInfo, SupplierBase
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.stubs.fmw.notification_broker import NotificationBroker
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import SubscribeRequest, UnsubscribeRequest
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import exchange
from mtosi_jms.xmlbind import RawXml, encode

from .conftest import SmallEms

ASK = mer.GetManagedElementRequest(me_ref=None)


def operation(name: str, action: str, message: str) -> OperationInfo:
    """An operation that shares its request element with others."""
    return OperationInfo(
        name=name,
        python_name=name,
        request="mri.mer:GetManagedElementRequest",
        response="mri.mer:GetManagedElementResponse",
        request_message=message,
        soap_action=action,
    )


class Twins(SupplierBase):
    """Two operations with one request element; they answer with their names."""

    __service__ = ServiceInfo(
        name="Twins",
        namespace="urn:twins",
        root="mtosi_jms.stubs",
        operations=(operation("live", "urn:live", "liveRequest"), operation("stored", "urn:stored", "storedRequest")),
    )
    ran: ClassVar[list[str]] = []

    def live(self, request: Any, context: mtosi.RequestContext) -> mer.GetManagedElementResponse:
        return self._answer("live")

    def stored(self, request: Any, context: mtosi.RequestContext) -> mer.GetManagedElementResponse:
        return self._answer("stored")

    def _answer(self, name: str) -> mer.GetManagedElementResponse:
        self.ran.append(name)
        return mer.GetManagedElementResponse(me=ManagedElementType(location=name))


class Third(SupplierBase):
    """Another service with an operation that has that request element."""

    __service__ = ServiceInfo(
        name="Third",
        namespace="urn:third",
        root="mtosi_jms.stubs",
        operations=(operation("third", "urn:third", "thirdRequest"),),
    )

    def third(self, request: Any, context: mtosi.RequestContext) -> mer.GetManagedElementResponse:
        raise AssertionError("nobody calls it")


class Again(SupplierBase):
    """Another service with an operation of the same name."""

    __service__ = ServiceInfo(
        name="Again", namespace="urn:again", root="mtosi_jms.stubs", operations=(operation("live", "", ""),)
    )


def envelope(activity: str | None, message: str | None) -> Envelope:
    header = Header(activity_name=activity, msg_name=message, msg_type=MessageTypeType.REQUEST, sender_uri="urn:os")
    return Envelope(header=header, body=ASK)


@pytest.mark.obligation("REQ1")
@pytest.mark.parametrize(
    ("activity", "message", "action", "called"),
    [
        ("live", None, "", "live"),
        ("stored", None, "", "stored"),
        ("else", "storedRequest", "", "stored"),
        (None, "liveRequest", "", "live"),
        (None, None, '"urn:stored"', "stored"),
        (None, None, "live", "live"),
        ("else", "else", "urn:live", "live"),
        ("live", "storedRequest", "", "name different ones"),
        ("live", "", "urn:stored", "name different ones"),
        ("else", None, "urn:else", "say which in activityName"),
        (None, None, "", "request of live and stored"),
    ],
)
def test_header_and_soap_action_choose_among_operations_with_one_element(
    activity: str | None, message: str | None, action: str, called: str
) -> None:
    Twins.ran.clear()
    dispatcher = Dispatcher([Twins()])
    came = JmsMessage(body=b"", properties={"SOAPJMS_soapAction": action} if action else {})
    for given in ({"action": action.strip('"')}, {"message": came}):
        (reply,) = dispatcher.dispatch(envelope(activity, message), **given)  # type: ignore[arg-type]
        if called in ("live", "stored"):
            assert reply.body.me.location == called
            assert reply.header is not None
            assert reply.header.activity_name == called
        else:
            assert reply.fault is not None
            assert (reply.fault.fault_code, called in reply.fault.reason) == ("Client", True)
            assert Twins.ran == []


@pytest.mark.obligation("REQ1")
@pytest.mark.parametrize(("inside", "called"), [("urn:live", "live"), ("urn:stored", None), ("", "live")])
def test_two_soap_actions_that_differ_choose_nothing(inside: str, called: str | None) -> None:
    properties = {"SOAPJMS_soapAction": "urn:live", "SOAPJMS_contentType": f'text/xml; action="{inside}"'}
    message = JmsMessage(body=b"", properties=properties)
    (reply,) = Dispatcher([Twins()]).dispatch(envelope(None, None), message=message)
    assert (None if reply.fault else reply.body.me.location) == called


@pytest.mark.obligation("REQ1")
def test_over_jms_each_call_reaches_its_operation() -> None:
    with exchange([Twins(), Third()]) as pair:
        for one in Twins.__service__.operations:
            call = Call(Twins.__service__, one, pair.destination, ASK)
            answers = [pair.requestor.call(call), asyncio.run(pair.requestor.aio.call(call))]
            answers += list(pair.requestor.call_batches(call, 5))
            assert [answer.me.location for answer in answers] == [one.name] * 3  # type: ignore[union-attr]
        nothing = mtosi.CallOptions(header={"activity_name": None, "msg_name": None}, timeout=30)
        with pytest.raises(MtosiFault, match="request of live and stored and third"):
            pair.requestor.call(call._replace(options=nothing))
    with pytest.raises(ConfigError, match="two services on one destination take"):
        Dispatcher([Twins(), Again()])


@pytest.mark.obligation("REQ2")
def test_the_request_of_another_operation_is_not_sent() -> None:
    ems = SmallEms()
    with exchange([ems]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        consumer = pair.stub(NotificationConsumer)
        wrong: Any = mer.GetAllManagedElementsRequest()
        other: Any = ASK
        text: Any = RawXml(b"<getManagedElementRequest/>")
        for call in (
            lambda: stub.get_managed_element(wrong),
            lambda: stub.get_managed_element(text),
            lambda: stub.get_managed_element(mer.GetManagedElementResponse()),  # type: ignore[arg-type]
            lambda: stub.get_managed_element(ManagedElementType()),  # type: ignore[arg-type]
            lambda: stub.get_managed_element.bulk(wrong, file_location_uri="file:///x"),
            lambda: stub.get_all_managed_elements_passing_filter.batches(other, batch_size=2),
            lambda: stub.get_all_managed_elements_passing_filter.objects(other, batch_size=2),
            lambda: consumer.notify(wrong),
            lambda: asyncio.run(stub.aio.get_managed_element(wrong)),
            lambda: asyncio.run(consumer.aio.notify(wrong)),
        ):
            with pytest.raises(ConfigError, match="is not its request, which is"):
                call()
        assert pair.requestor.pending == 0
        same = RawXml(encode(ASK))
        with pytest.raises(MtosiFault):  # it is sent: there is no such element
            stub.get_managed_element(same)  # type: ignore[arg-type]
    assert len(ems.contexts) == 1


@pytest.mark.obligation("REQ2")
def test_a_local_broker_refuses_it_too() -> None:
    with mtosi.connect("memory:") as connection, LocalBroker(connection, {"Fault": "queue:F"}) as broker:
        stub = NotificationBroker(broker, "")
        known = stub.subscribe(SubscribeRequest(consumer_epr="x", topic="Fault"))
        with pytest.raises(ConfigError, match="is not its request"):
            stub.subscribe(UnsubscribeRequest(subscription_id=known.subscription_id))  # type: ignore[arg-type]
        assert set(broker.subscribers(known.subscription_id)) == {"Fault"}


def test_a_supplier_without_services_and_a_stub_of_an_asynchronous_requestor() -> None:
    with mtosi.connect("memory:", names={"jms/Os": "queue:OS"}) as connection:
        with pytest.raises(ConfigError, match="services: give at least one"):
            mtosi.Supplier(connection, "queue:EMS", services=[])
        with (
            mtosi.Requestor(connection, sender_uri="jms/Os") as requestor,
            pytest.raises(ConfigError, match="not its aio"),
        ):
            ManagedElementRetrieval(requestor.aio, "queue:EMS")  # type: ignore[arg-type]


# Two generated packages in one process, of the same namespaces: each stub gets objects of its own.


def run(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_stub_gets_objects_of_its_own_package(root: Path, tmp_path: Path) -> None:
    run(root, "-m", "mtosi_codegen", "generate", "wsdl", "xsd", "--package", "acme", "--out", str(tmp_path))
    said = run(root, str(Path(__file__).with_name("two_packages_process.py")), str(tmp_path))
    roots = ("mtosi_jms.stubs", "acme")
    assert said.splitlines() == [
        f"{asking} asks {answering}: here, there is none, ERROR" for asking in roots for answering in roots
    ]
