"""Requests and notifications from JMS to an HTTP peer, and from an HTTP client to a topic."""

from __future__ import annotations

import itertools
import queue
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from mtosi_jms import simulator
from mtosi_jms.errors import ConfigError, MtosiFault
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import (
    ByDispatcher,
    Endpoint,
    Forwarder,
    HttpOptions,
    HttpPeer,
    HttpServer,
    Poster,
    Store,
    iterator_operation,
)
from mtosi_jms.jms import DeliveryMode, JmsMessage
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.runtime import ConsumerRuntime, RuntimeRules
from mtosi_jms.service import Call, CallOptions, OperationInfo, ServiceInfo
from mtosi_jms.soap import Envelope, parse, tag_of
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs11.ns_tmf854_v1.types import name as release1_name
from mtosi_jms.stubs11.ns_tmf854_v1_ws.equipment_inventory_mgr import EquipmentInventoryMgr
from mtosi_jms.stubs11.ns_tmf854_v1_ws.inventory_retrieval import InventoryRetrieval
from mtosi_jms.stubs11.ns_tmf854_v1_ws.managed_element_mgr import ManagedElementMgr
from mtosi_jms.transport import Backoff, Connection
from mtosi_jms.xmlbind import RawXml

from .conftest import ELEMENTS, QUEUE, Halting, forwarded, gateway, http_peer, respond, said


@contextmanager
def answering(status: int, *contents: bytes) -> Iterator[tuple[str, queue.Queue[Any]]]:
    """An HTTP peer that answers with some contents in turn; its URL, and what it was asked."""
    answers = itertools.cycle(contents or [b""])
    asked: queue.Queue[Any] = queue.Queue()

    def answer(handler: Any) -> None:
        asked.put((handler.headers, handler.body))
        more = {"Location": "http://192.0.2.1/elsewhere"} if status in (301, 307) else {}
        respond(handler, status, next(answers), **more)

    with http_peer(answer) as url:
        yield f"{url}peer", asked


def response(official: Any, number: str, end: str, *uri: str) -> bytes:
    """A sample's response with another number and end, `-`: without; and with or without an iterator."""
    text = str(official("6-2"))
    for field, value in (("batchSequenceNumber", number), ("batchSequenceEndOfReply", end)):
        written = "" if value == "-" else f"<hdr:{field}>{value}</hdr:{field}>"
        text = re.sub(f"<hdr:{field}>[^<]*</hdr:{field}>", written, text)
    return (text if uri else re.sub("<hdr:iteratorReferenceURI>[^<]*</hdr:iteratorReferenceURI>", "", text)).encode()


class TestRequests:
    @pytest.fixture
    def url(self, services: Any) -> Iterator[str]:
        with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), HttpOptions(logins={"os": "secret"}))) as server:
            yield server.url

    @pytest.mark.parametrize("size", [7, 30, ELEMENTS, 0])
    def test_iterators_are_followed(self, connection: Connection, url: str, size: int) -> None:
        with forwarded(connection, url, login=("os", "secret")) as stub:
            batches = list(stub.get_all_managed_elements.batches(batch_size=size))
        names = [str(me.name) for batch in batches for me in batch.me_list.me]
        assert len(names) == len(set(names)) == ELEMENTS
        assert len(batches) == (-(-ELEMENTS // size) if size else 1)

    def test_a_requestor_gets_every_element_in_order(self, provider: Any, queue_name: str) -> None:
        """Partial responses are numbered, and the last alone says that it is."""
        heads: list[tuple[int, bool]] = []

        def heard(reply: Envelope) -> None:
            assert reply.header is not None
            heads.append((reply.header.batch_sequence_number, reply.header.batch_sequence_end_of_reply))

        services = [simulator.ManagedElementEms(provider.network)]
        size = provider.network.elements // 6
        with (
            HttpServer(Endpoint(ByDispatcher(Dispatcher(services)))) as server,
            forwarded(provider.connection, server.url, queue_name) as stub,
        ):
            called = stub.get_all_managed_elements.batches(batch_size=size, options=CallOptions(on_reply=heard))
            batches = list(called)
        assert said(me for one in batches for me in one.me_list.me) == said(provider.network.managed_elements())
        count = -(-provider.network.elements // size)
        assert heads == [(number, number == count) for number in range(1, count + 1)]

    def test_responses_come_before_the_last_is_there(self, connection: Connection) -> None:
        halting = Halting(elements=50, first=35)
        with (
            HttpServer(Endpoint(ByDispatcher(Dispatcher([halting])))) as server,
            forwarded(connection, server.url) as stub,
        ):
            batches = stub.get_all_managed_elements.batches(batch_size=10)
            came = [next(batches), next(batches), next(batches)]
            halting.let_go.set()
            came += batches
        assert [len(one.me_list.me) for one in came] == [10] * 5

    def test_one_response_and_a_fault(self, connection: Connection, url: str) -> None:
        with forwarded(connection, url, login=("os", "secret")) as stub:
            assert str(stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3")).me.name) == "MD=EMS1/ME=NE-3"
            with pytest.raises(EntityNotFoundFault, match="nobody"):
                stub.get_managed_element(me_ref=name("MD=EMS1/ME=nobody"))

    def test_a_login_that_is_refused(self, connection: Connection, url: str) -> None:
        with forwarded(connection, url) as stub, pytest.raises(MtosiFault, match="did not answer as it should"):
            stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3"))

    @pytest.mark.obligation("001-H8")
    def test_from_http_to_jms_to_http(self, connection: Connection, url: str, client: Any, official: Any) -> None:
        with (
            forwarded(connection, url, login=("os", "secret")),
            gateway(connection, store=Store(0)) as server,
        ):
            text = official("6-1").replace(">500<", ">20<")
            assert len(list(client(server.url).fetch(text, official("6-3")))) == -(-ELEMENTS // 20)

    @pytest.mark.parametrize(
        ("status", "content"), [(200, b"no xml"), (200, b""), (404, b""), (502, b"<html/>"), (307, b""), (204, b"")]
    )
    def test_a_peer_that_does_not_answer_as_it_should(
        self, connection: Connection, status: int, content: bytes
    ) -> None:
        """It is a fault for the requestor; a redirection is not followed."""
        with answering(status, content) as (url, _), forwarded(connection, url) as stub, pytest.raises(MtosiFault):
            stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3"))

    @pytest.mark.parametrize(
        ("heads", "numbers", "ends"),
        [
            (["1 false URI", "2 false URI", "3 true"], [1, 2, 3], ""),
            (["- - URI", "- - URI", "- -"], [1, 2, 3], ""),
            (["1 false URI", "3 true"], [1], "did not answer as it should"),
            (["1 false URI", "1 false URI"], [1], "did not answer as it should"),
            (["1 false URI", "2 false"], [1, 2], "did not answer as it should"),
            (["1 false"], [1], "did not answer as it should"),
        ],
    )
    def test_what_a_peer_says_of_its_responses(
        self, connection: Connection, official: Any, heads: list[str], numbers: list[int], ends: str
    ) -> None:
        """What it leaves out is added; where it contradicts itself the requestor gets a fault, and does not wait."""
        told: list[Envelope] = []
        responses = [response(official, *head.split()) for head in heads]
        with answering(200, *responses) as (url, _), forwarded(connection, url) as stub:
            options = CallOptions(on_reply=told.append)
            batches = stub.get_all_managed_elements.batches(batch_size=500, options=options)
            with pytest.raises(MtosiFault, match=ends) if ends else nullcontext():
                list(batches)
        found = [one.header for one in told if one.fault is None]
        assert [one.batch_sequence_number for one in found] == numbers
        if not ends:
            assert [one.batch_sequence_end_of_reply for one in found] == [False] * (len(heads) - 1) + [True]

    def test_any_names_can_be_asked_for(self, connection: Connection, official: Any) -> None:
        """Whatever the header and the namespace of a request say, what is posted is XML."""
        answers = [response(official, "1", "false", "URI"), response(official, "2", "true")]
        body = b'<v:getThingsRequest xmlns:v="urn:a&amp;b"/>'
        operation = OperationInfo(name='get "<&>" Things', python_name="get_things")
        with (
            answering(200, *answers) as (url, asked),
            forwarded(connection, url) as stub,
        ):
            service = ServiceInfo(name="any", namespace="", root="")
            list(stub.caller.call_batches(Call(service, operation, QUEUE, RawXml(body)), 500))
            posted = [etree.fromstring(asked.get(timeout=60)[1]) for _ in range(2)]
        assert [one[1][0].tag for one in posted] == ["{urn:a&b}getThingsRequest", "{urn:a&b}getThingsIteratorRequest"]
        assert posted[0].findtext(".//{*}activityName") == 'get "<&>" Things'

    def test_a_peer_that_is_slow(self, connection: Connection) -> None:
        halting = Halting(first=0)
        with (
            HttpServer(Endpoint(ByDispatcher(Dispatcher([halting])))) as server,
            forwarded(connection, server.url, timeout=0.3) as stub,
        ):
            with pytest.raises(MtosiFault, match="in time"):
                list(stub.get_all_managed_elements.batches(batch_size=10))
            halting.let_go.set()

    def test_a_peer_that_is_not_there(self, connection: Connection) -> None:
        with forwarded(connection, "http://127.0.0.1:9/") as stub, pytest.raises(MtosiFault):
            stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3"))

    @pytest.mark.parametrize(
        "url", ["", "ftp://a/", "http:///x", "http://user:secret@a/", "nonsense", "http://[", None]
    )
    def test_no_url(self, url: Any) -> None:
        with pytest.raises(ConfigError, match="url") as caught:
            HttpPeer(url)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "iterator"),
    [
        ("getAllManagedElementsWrtOs", "getManagedElementsIterator"),
        ("getInventory", "getInventoryIterator"),
        ("getServiceInventory", "getServiceInventoryIterator"),
        ("getAllAssociatedMatrixFlowDomains", "getMatrixFlowDomainsIterator"),
        ("getFlowDomainFragmentsWithTp", "getFlowDomainFragmentsIterator"),
        ("getAllEdgePoints", "getTerminationPointsIterator"),
        ("getContainedEquipment", "getEquipmentIterator"),
        ("getAllTcaParameterProfileNames", "getTcaParameterProfileNamesIterator"),
        ("getAllMLSNPPLinksWithTP", "getMultiLayerSNPPLinksIterator"),
        ("getVendorThings", "getVendorThingsIterator"),
    ],
)
def test_iterator_operations(operation: str, iterator: str) -> None:
    assert iterator_operation(operation) == iterator


SHAPE = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns="tmf854.v1"><s:Header>
<header tmf854Version="1.1"><activityName>{0}</activityName><msgName>{0}</msgName><msgType>RESPONSE</msgType>
<senderURI>ems</senderURI><destinationURI>os</destinationURI><communicationPattern>MultipleBatchResponse</communicationPattern>
<communicationStyle>RPC</communicationStyle><requestedBatchSize>5</requestedBatchSize>{2}</header></s:Header>
<s:Body><{1}/></s:Body></s:Envelope>"""


def said_by(posted: bytes) -> tuple[str | None, ...]:
    """What a request of 1.x says: the element, the operation, the message, the iterator and the size of batches."""
    root = etree.fromstring(posted)
    fields = ("activityName", "msgName", "iteratorReferenceURI", "requestedBatchSize")
    return (root[1][0].tag, *(root.findtext(f".//{{tmf854.v1}}{field}") for field in fields))


class TestRelease1:
    """A supplier of MTOSI 1.1 over HTTP, where each operation has an iterator operation of its own."""

    def test_elements_names_and_faults(self, connection: Connection) -> None:
        network = simulator.Network(elements=20, seed=1)
        made = [simulator.ManagedElementEms(network), simulator.InventoryEms(network), simulator.EquipmentEms(network)]
        peers = ByDispatcher(Dispatcher([simulator.in_release1(one) for one in made]))
        with HttpServer(Endpoint(peers)) as server, forwarded(connection, server.url) as stub:
            manager = ManagedElementMgr(stub.caller, QUEUE)
            domain = release1_name("MD=EMS1")
            batches = list(manager.get_all_managed_elements.batches(md_name=domain, batch_size=7))
            assert [str(me.name.me_nm) for one in batches for me in one.me_list.me] == [
                f"NE-{number}" for number in range(1, 21)
            ]
            assert len(batches) == 3
            assert len(list(manager.get_all_managed_element_names.objects(md_name=domain, batch_size=7))) == 20
            assert len(list(InventoryRetrieval(stub.caller, QUEUE).get_inventory.batches(batch_size=3))) == 7
            equipment = EquipmentInventoryMgr(stub.caller, QUEUE).get_all_equipment
            element = release1_name("MD=EMS1/ME=NE-3")
            whole = equipment(me_or_holder_name=element).eq_list.eoh
            assert list(equipment.objects(me_or_holder_name=element, batch_size=2)) == whole
            with pytest.raises(EntityNotFoundFault, match="nobody"):
                manager.get_managed_element(me_name=release1_name("MD=EMS1/ME=nobody"))

    def test_the_iterator_operation_of_each_operation(self, shared: Path) -> None:
        """By the WSDLs of the release: the operation, its message, and the element, which operations share."""
        wsdl = "{http://schemas.xmlsoap.org/wsdl/}"
        pairs: dict[str, tuple[str, str]] = {}

        def local(text: Any) -> str:
            return str(text).rpartition(":")[2]

        for file in sorted((shared / "mtosi" / "1.1" / "wsdl" / "common").glob("*.wsdl")):
            root = etree.parse(file).getroot()
            elements = {
                one.get("name"): local(one[-1].get("element")) for one in root.iter(f"{wsdl}message") if len(one)
            }
            asks = {
                one.get("name", ""): elements[local(one.find(f"{wsdl}input").get("message"))]
                for one in root.iter(f"{wsdl}operation")
            }
            pairs |= {name: (asks[name], asks[f"{name}Iterator"]) for name in asks if f"{name}Iterator" in asks}
        assert len(pairs) == 63
        first = "<iteratorReferenceURI>it/1</iteratorReferenceURI>"
        answers = [SHAPE.format("x", "sharedResponse", part).encode() for part in (first, "")]
        with answering(200, *answers) as (url, asked), HttpPeer(url) as peer:
            for operation, (element, further) in pairs.items():
                replies = list(
                    Forwarder(peer).dispatch(parse(SHAPE.format(operation, element, "").replace("RESPONSE", "REQUEST")))
                )
                assert said_by(asked.get(timeout=60)[1]) == (f"{{tmf854.v1}}{element}", operation, operation, None, "5")
                wanted = f"{operation}Iterator"
                assert said_by(asked.get(timeout=60)[1]) == (f"{{tmf854.v1}}{further}", wanted, wanted, "it/1", "5")
                assert [one.header and one.header.activity_name for one in replies] == [operation] * 2
                assert {tag_of(one.body) for one in replies} == {"{tmf854.v1}sharedResponse"}

    @pytest.mark.parametrize(
        ("said", "count"),
        [
            (["<batchSequenceEndOfReply>false</batchSequenceEndOfReply>URI", "URI", ""], 3),
            (["1 URI", "2 <batchSequenceEndOfReply>false</batchSequenceEndOfReply>", "3 "], 3),
            (["1 URI", "3 "], None),
            (["1 <batchSequenceEndOfReply>false</batchSequenceEndOfReply>"], None),
        ],
        ids=["no numbers", "the iterator is named once", "a gap", "no iterator"],
    )
    def test_what_responses_say_of_their_iterator(self, said: list[str], count: int | None) -> None:
        parts = [
            re.sub(r"^(\d) ", r"<batchSequenceNumber>\1</batchSequenceNumber>", text).replace(
                "URI", "<iteratorReferenceURI>it/1</iteratorReferenceURI>"
            )
            for text in said
        ]
        answers = [SHAPE.format("getAllMDs", "getAllMDsResponse", part).encode() for part in parts]
        request = parse(SHAPE.replace("RESPONSE", "REQUEST").format("getAllMDs", "getAllMDs", ""))
        with answering(200, *answers) as (url, _), HttpPeer(url) as peer:
            replies = list(Forwarder(peer).dispatch(request))
        if count is None:
            assert replies[-1].fault is not None
            return
        heads = [one.header for one in replies if one.header is not None]
        assert [one.batch_sequence_number for one in heads] == [*range(1, count + 1)]
        assert [one.batch_sequence_end_of_reply for one in heads] == [False] * (count - 1) + [True]
        assert {one.iterator_reference_uri for one in heads} == {None}

    def test_what_an_answer_gets_wrong_in_its_header_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        answer = SHAPE.replace("<senderURI>ems<", "<senderURI>?<").format("getAllMDs", "getAllMDsResponse", "")
        request = parse(SHAPE.replace("RESPONSE", "REQUEST").format("getAllMDs", "getAllMDs", ""))
        with answering(200, answer.encode()) as (url, _), HttpPeer(url) as peer:
            (reply,) = Forwarder(peer, sender_uri="jms/Gateway").dispatch(request)
        assert "senderURI has the placeholder '?'" in caplog.text
        assert (reply.header and reply.header.sender_uri) == "jms/Gateway"

    def test_a_request_without_a_header(self) -> None:
        """It has the form of its body's release, and what that requires."""
        bare = re.sub(r"<s:Header>.*</s:Header>", "", SHAPE, flags=re.DOTALL).format("", "getAllMDs")
        with answering(200, SHAPE.format("getAllMDs", "getAllMDsResponse", "").encode()) as (url, asked):
            with HttpPeer(url) as peer:
                (reply,) = Forwarder(peer).dispatch(parse(bare, needs_header=False))
            posted = parse(asked.get(timeout=60)[1])
        left = [
            word for word in ("activityName", "msgName", "msgType", "Pattern", "Style") if word in str(posted.warnings)
        ]
        assert left == []
        assert said_by(posted.to_bytes())[:3] == ("{tmf854.v1}getAllMDs", "getAllMDs", "getAllMDs")
        assert reply.fault is None


class TestNotifications:
    TOPIC = "topic:Alarms"

    def test_a_topic_is_posted_to_a_consumer(self, connection: Connection) -> None:
        alarm = next(iter(simulator.Network(elements=5, seed=1).events(1)))
        with answering(202) as (url, asked), HttpPeer(url) as peer:
            runtime = ConsumerRuntime(connection, self.TOPIC, Poster(peer))
            running = threading.Thread(target=runtime.run)
            running.start()
            try:
                with Publisher(connection, {"Inventory": self.TOPIC, "Fault": self.TOPIC}, sender_uri="jms/EMS") as out:
                    while connection.consumers(connection.names.lookup(self.TOPIC)) == 0:
                        running.join(0.01)
                    sent = out.broadcast(alarm)[0]
                headers, body = asked.get(timeout=60)
            finally:
                runtime.drain()
                running.join(60)
        assert body == sent.body
        assert headers["Content-Type"] == "text/xml; charset=utf-8"

    def test_what_the_consumer_does_not_take_is_parked(self, connection: Connection) -> None:
        with answering(500) as (url, asked), HttpPeer(url) as peer:
            rules = RuntimeRules(attempts=3, retry=Backoff(initial=0.01, maximum=0.01))
            runtime = ConsumerRuntime(connection, "queue:Events", Poster(peer), parking="queue:Parked", rules=rules)
            running = threading.Thread(target=runtime.run)
            running.start()
            session = connection.session()
            connection.start()
            session.send("queue:Events", JmsMessage(body=b"<a/>", delivery_mode=DeliveryMode.PERSISTENT))
            parked = session.consumer("queue:Parked").receive(60)
            runtime.drain()
            running.join(60)
        assert parked is not None
        assert parked.message.body == b"<a/>"
        assert asked.qsize() == 3

    def test_a_notify_that_is_posted_is_published(self, connection: Connection, client: Any) -> None:
        event = next(iter(simulator.Network(elements=5, seed=1).events(1)))
        topics = dict.fromkeys(("Fault", "Inventory"), "topic:Posted")
        with (
            Publisher(connection, topics, sender_uri="jms/Gateway") as publisher,
            gateway(connection, publisher=publisher) as server,
            Subscriber(connection, "topic:Posted", timeout=60) as subscriber,
        ):
            connection.start()
            posted = publisher.message_of(connection.names.lookup("topic:Posted"), [event])
            answer = client(server.url).post(posted.body)
            assert (answer.status_code, answer.content) == (202, b"")
            received = next(iter(subscriber))
        assert received.event == event
