"""The public API as an application uses it, written for mypy --strict; nothing here is run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import assert_type

import mtosi_jms as mtosi
from mtosi_jms import errors, soap, xmlbind
from mtosi_jms.binding.mapping import from_jms, to_jms
from mtosi_jms.binding.selector import Finding, P, lint
from mtosi_jms.deployment import Deployment, read_deployment
from mtosi_jms.exchange import send_all
from mtosi_jms.inventory import place_of
from mtosi_jms.jms.selector import Selector, parse
from mtosi_jms.notifications import Received
from mtosi_jms.service import RequestContext
from mtosi_jms.stubs.fmw.nam import NamingAttributeType, name
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import Notify
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import (
    GetAllManagedElementsRequest,
    GetAllManagedElementsResponse,
    GetManagedElementRequest,
    GetManagedElementResponse,
)
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.mri.rir import GetInventoryRequest, GetInventoryResponse
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf.invdata import ManagementDomainInventoryType
from mtosi_jms.stubs.nrf.me import ManagedElementType, Me
from mtosi_jms.testing import InterceptedConnection, Step
from mtosi_jms.transport import AckMode, Capability, Connection, Delivery


def ask(connection: Connection) -> str | xmlbind.Nil | None:
    """One answer and many, with and without options."""
    requestor = mtosi.Requestor(connection, sender_uri="jms/InventoryOS")
    mer = ManagedElementRetrieval(requestor, "jms/EmsOS")
    wanted = name("MD=EMS1/ME=NE-7")
    assert_type(wanted, NamingAttributeType)
    response = mer.get_managed_element(me_ref=wanted, options=mtosi.CallOptions(timeout=5.0, priority=6))
    assert_type(response, GetManagedElementResponse)
    assert_type(response.me, ManagedElementType | None)
    return response.me.location if response.me else None


def ask_for_all(mer: ManagedElementRetrieval) -> Iterator[ManagedElementType]:
    """Batches in order, each once."""
    for batch in mer.get_all_managed_elements.batches(batch_size=500):
        assert_type(batch, GetAllManagedElementsResponse)
        if batch.me_list is not None:
            yield from batch.me_list.me
    request = GetAllManagedElementsRequest(md_or_mlsn_ref=name("MD=EMS1"))
    assert_type(mer.get_all_managed_elements(request), GetAllManagedElementsResponse)


def first_batch(mer: ManagedElementRetrieval) -> str:
    """What a batch call gives besides its responses."""
    options = mtosi.CallOptions(on_reply=print)
    with mer.get_all_managed_elements.batches(batch_size=5, options=options) as batches:
        assert_type(next(batches), GetAllManagedElementsResponse)
        assert_type(batches.held, Mapping[int, GetAllManagedElementsResponse])
        return batches.correlation_id


def one_by_one(mer: ManagedElementRetrieval) -> Iterator[ManagedElementType]:
    """The objects of all batches; names may be text."""
    with mer.get_all_managed_elements.objects(md_or_mlsn_ref="MD=EMS1", timeout=60) as objects:
        assert_type(next(objects), ManagedElementType)
        assert_type(objects.batches.correlation_id, str)
        yield from objects
    mer.get_all_managed_elements.objects(batch_size="5")  # type: ignore[arg-type]
    mer.get_managed_element(me_ref=7)  # type: ignore[arg-type]


def in_a_file(mer: ManagedElementRetrieval, folder: Path) -> Iterator[ManagedElementType]:
    """The answer in a file (experimental)."""
    reply = mer.get_all_managed_elements.bulk(file_location_uri=(folder / "all.zip").as_uri(), packing="ZIP")
    assert_type(reply.response, GetAllManagedElementsResponse)
    assert_type(reply.files(allowed=folder), list[Path])
    yield from reply.objects(ManagedElementType, allowed=folder)


async def ask_asynchronously(connection: Connection) -> AsyncIterator[ManagedElementType]:
    """The same on asyncio: what is awaited has the type of what is returned."""
    requestor = mtosi.Requestor(connection, sender_uri="jms/InventoryOS")
    mer = ManagedElementRetrieval(requestor, "jms/EmsOS")
    options = mtosi.CallOptions(timeout=5.0)
    response = await mer.aio.get_managed_element(me_ref=name("MD=EMS1/ME=NE-7"), options=options)
    assert_type(response, GetManagedElementResponse)
    request = GetAllManagedElementsRequest(md_or_mlsn_ref=name("MD=EMS1"))
    assert_type(await mer.aio.get_all_managed_elements(request), GetAllManagedElementsResponse)
    await mer.aio.get_managed_element(me=name("MD=EMS1"))  # type: ignore[call-arg] # there is no such field
    await mer.aio.get_managed_element(me_ref="MD=EMS1/ME=NE-7")  # a name's text form
    await mer.aio.get_managed_element(me_ref=7)  # type: ignore[arg-type]
    async for me in mer.aio.get_all_managed_elements.objects(batch_size=500):
        assert_type(me, ManagedElementType)
    mer.aio.get_all_managed_elements.batches()  # type: ignore[call-arg] # how many in a batch?
    async for batch in mer.aio.get_all_managed_elements.batches(request, batch_size=500):
        assert_type(batch, GetAllManagedElementsResponse)
        if batch.me_list is not None:
            for element in batch.me_list.me:
                yield element
    async with mer.aio.get_all_managed_elements.batches(batch_size=5) as batches:
        assert_type(await anext(batches), GetAllManagedElementsResponse)
        assert_type(batches.held, Mapping[int, GetAllManagedElementsResponse])
    assert_type(await NotificationConsumer(requestor, "jms/Fault").aio.notify(topic="Fault"), None)
    await requestor.aio.close()


class AsyncEms(ManagedElementRetrieval.Supplier):
    """A supplier for an event loop."""

    async def get_all_managed_elements(
        self, request: GetAllManagedElementsRequest, context: RequestContext
    ) -> AsyncIterator[ManagedElementType]:
        """Objects one by one."""
        yield ManagedElementType(name=name("MD=EMS1/ME=NE-1"))

    async def get_managed_element(
        self, request: GetManagedElementRequest, context: RequestContext
    ) -> GetManagedElementResponse:
        """One response."""
        return GetManagedElementResponse(me=ManagedElementType(name=request.me_ref or name("ME=NE-1")))


class AsyncConsumer(NotificationConsumer.Supplier):
    """A handler without an answer."""

    async def notify(self, request: Notify, context: RequestContext) -> None:
        """Nothing comes back."""


async def serve_asynchronously(connection: Connection) -> None:
    """A supplier, a publisher and a subscriber on the running loop."""
    supplier = mtosi.Supplier(connection, "jms/EmsOS", services=[AsyncEms(), AsyncConsumer()])
    async with supplier.aio as serving:
        await serving.stop(wait=5.0)
    await supplier.aio.serve(limit=4)
    publisher = mtosi.Publisher(connection, {"Fault": mtosi.Topic("Fault")}, sender_uri="jms/EmsOS")
    assert_type(await publisher.aio.publish(Alarm(object_type="ME")), mtosi.JmsMessage)
    async for received in mtosi.Subscriber(connection, "jms/FaultTopic").aio:
        assert_type(received, Received)
        assert_type(received.event, xmlbind.XmlObject | xmlbind.RawXml)
        assert_type(received.envelope, soap.Envelope)
        assert_type(received.message, mtosi.JmsMessage)


class Inventory(ResourceInventoryRetrieval.Supplier):
    """A supplier of whole responses."""

    def get_inventory(self, request: GetInventoryRequest, context: RequestContext) -> Iterator[GetInventoryResponse]:
        """Each is a batch."""
        yield GetInventoryResponse()


class Ems(ManagedElementRetrieval.Supplier):
    """A supplier: objects one by one, or a whole response."""

    def get_all_managed_elements(
        self, request: GetAllManagedElementsRequest, context: RequestContext
    ) -> Iterator[ManagedElementType]:
        """The SDK cuts batches by the size asked for."""
        for number in range(context.batch_size):
            yield ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"), location="Hall 1")

    def get_managed_element(
        self, request: GetManagedElementRequest, context: RequestContext
    ) -> GetManagedElementResponse:
        """One response."""
        if request.me_ref is None:
            raise errors.MtosiFault("meRef is missing", kind="invalidInput")
        return GetManagedElementResponse(me=ManagedElementType(name=request.me_ref))


def endpoint(body: bytes) -> list[bytes]:
    """A supplier without JMS: request in, replies out."""
    dispatcher = mtosi.Dispatcher([Ems()], sender_uri="http://ems.example/mtosi", on_error=print)
    replies = dispatcher.dispatch(soap.parse(body))
    assert_type(next(replies), soap.Envelope)
    sent: list[bytes] = []
    send_all(replies, lambda reply: sent.append(reply.to_bytes()))
    mtosi.Dispatcher([Ems])  # type: ignore[list-item] # a class, no instance
    return sent


def held_up(connection: Connection, requestor: mtosi.Requestor) -> Connection:
    """A connection of a test, which has a hand in each step of its sessions."""

    def hold(step: Step) -> object:
        while step.action == "send" and requestor.waiting < 2:
            pass
        return step.proceed()

    return InterceptedConnection(connection, hold)


def talk(connection: Connection, destination: mtosi.Queue) -> list[mtosi.JmsMessage]:
    """JMS itself: a producer, a consumer, a listener, a browser."""

    def on_message(delivery: Delivery) -> None:
        delivery.acknowledge()

    def on_error(error: BaseException, delivery: Delivery | None) -> None:
        print(error, delivery and delivery.message.message_id)

    with connection.session(AckMode.DUPS_OK) as session:
        sent = session.producer(destination, priority=6).send(mtosi.JmsMessage(body=b"x"), time_to_live_ms=1000)
        assert_type(sent, mtosi.JmsMessage)
        consumer = session.consumer(destination, "MTOSI_msgType = 'REQUEST'")
        assert_type(consumer.receive(1), Delivery | None)
        consumer.listen(on_message, on_error)
        return session.browse(destination) if Capability.BROWSE in connection.capabilities else []


def serve() -> None:
    """A supplier on the embedded provider."""
    with mtosi.connect("memory:", names={"jms/EmsOS": "queue:EMS"}) as connection:
        mtosi.Supplier(connection, "jms/EmsOS", services=[Ems()]).run()


def report(mer: ManagedElementRetrieval) -> tuple[int, ...]:
    """Errors carry their facts with their types."""
    try:
        mer.get_all_managed_elements()
    except errors.IncompleteBatchError as error:
        return error.missing
    except errors.MtosiFault as fault:
        assert_type(fault.kind, str)
    except errors.MtosiError:
        return ()
    return ()


def read(data: bytes, path: Path) -> list[str | xmlbind.Nil | None]:
    """Documents to objects and back."""
    warnings: list[xmlbind.XmlWarning] = []
    element = xmlbind.decode(data, Me, warnings=warnings)
    assert_type(element, Me)
    assert_type(xmlbind.encode(element), bytes)
    return [me.location for me in xmlbind.iter_decode(path, Me)]


def walk(path: Path) -> Iterator[str | None]:
    """Objects out of a large document, and what stands around them."""
    for value in xmlbind.iter_decode(path, (Me, NamingAttributeType)):
        assert_type(value, xmlbind.XmlObject)
    for found in xmlbind.iter_placed(path, Me, strict=True):
        assert_type(found, xmlbind.Placed[Me])
        assert_type(found.value, Me)
        assert_type(found.around(ManagementDomainInventoryType), ManagementDomainInventoryType | None)
        yield place_of(found).name


def carry(data: bytes, profile: mtosi.BindingProfile) -> bytes:
    """An envelope to a JMS message and back."""
    envelope = soap.parse(data)
    if envelope.header is None:
        raise errors.EnvelopeError("no MTOSI header")
    message = to_jms(envelope.header, envelope.body, profile)
    assert_type(message, mtosi.JmsMessage)
    back = from_jms(message)
    assert_type(back, soap.Envelope)
    return back.to_bytes()


def selecting(message: mtosi.JmsMessage) -> bool:
    """Selectors as text and in Python."""
    written = parse("MTOSI_EventType = 'ObjectCreation' AND JMSPriority > 4")
    assert_type(written.matches({"JMSPriority": 5}), bool | None)
    built = (P.EventType.in_("ObjectCreation") & (P.JMSPriority + 1 > 4)) | ~P.isEdgePointRelated
    assert_type(built.selector(), Selector)
    assert_type(lint(written, mode="strict", filters=["EventType"]), list[Finding])
    return written.accepts(message) and (P["color"] == "blue").selector().accepts(message)


def deployed(path: Path) -> None:
    """A stub keeps its type when a deployment makes it."""
    deployment = read_deployment(path)
    assert_type(deployment, Deployment)
    with (
        mtosi.connect("jndi:jms/ConnectionFactory", names=deployment.names) as connection,
        deployment.open_requestors(connection, timeouts=mtosi.Timeouts(gap=5)) as requestors,
    ):
        assert_type(requestors.stub(ManagedElementRetrieval), ManagedElementRetrieval)
