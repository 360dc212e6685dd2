"""SOAP over HTTP: what clients get, from services in the process and from a supplier on JMS."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import ConfigError, IllegalStateError, TransportError
from mtosi_jms.exchange import Dispatcher, Supplier
from mtosi_jms.gateway import ByDispatcher, ByRequestor, Endpoint, HttpOptions, HttpServer, Request, Store
from mtosi_jms.header import MTOSI_1X
from mtosi_jms.soap import Envelope, Header, header_class, header_text, tag_of
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.telemetry import Metrics
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import RawXml

from ..waiting import PATIENCE, background, until
from .conftest import ELEMENTS, ONE, QUEUE, Halting, connected, gateway, with_iterator

ASKED = b"GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n"


@pytest.fixture(params=["services", "jms"])
def serve(request: pytest.FixtureRequest, connection: Connection) -> Iterator[Callable[..., HttpServer]]:
    """Starts servers of an endpoint with services, here or beyond JMS."""
    with ExitStack() as stack:

        def start(services: list[Any], **options: Any) -> HttpServer:
            chosen = HttpOptions(**options)
            if request.param == "services":
                return stack.enter_context(HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), chosen)))
            return stack.enter_context(gateway(connection, *services, store=Store(10_000), options=chosen))

        yield start


def batches_of(text: str, size: int) -> str:
    """A request for partial responses of another size."""
    return text.replace("<hdr:requestedBatchSize>500<", f"<hdr:requestedBatchSize>{size}<")


def test_a_telemetry_counts_answers_and_refusals(services: Any, client: Any, official: Any) -> None:
    metrics = Metrics()
    endpoint = Endpoint(ByDispatcher(Dispatcher(services)), HttpOptions(iterators=1), telemetry=metrics)
    with HttpServer(endpoint) as server:
        asks = client(server.url)
        assert [asks.ask(batches_of(official("6-1"), 60))[0] for _ in range(2)] == [200, 500]
        assert asks.http.post(asks.url, headers={"Content-Type": "text/plain"}).status_code == 415
        assert metrics.numbers("mtosi.gateway.iterators") == [(("http",), 1.0)]
        assert metrics.numbers("mtosi.gateway.in_hand") == [(("http",), 0.0)]
    answers = {labels: sum(counts) for labels, counts, _ in metrics.histograms("http.server.request.duration")}
    assert answers == {("POST", "200"): 1, ("POST", "500"): 1, ("POST", "415"): 1}


class TestIterators:
    @pytest.mark.parametrize("size", [1, 7, 30, ELEMENTS, 500])
    def test_every_element_comes_once_and_in_order(
        self, serve: Any, services: Any, client: Any, official: Any, size: int
    ) -> None:
        server = serve(services)
        found = list(client(server.url).fetch(batches_of(official("6-1"), size), official("6-3")))
        numbers = [one.header.batch_sequence_number for one in found]
        assert numbers == [*range(1, len(found) + 1)]
        assert len(found) == -(-ELEMENTS // size)
        assert all(one.header.communication_style.value == "RPC" for one in found)
        names = [name for one in found for name in one.to_bytes().split(b"nam:value>") if name.startswith(b"NE-")]
        assert len(names) == len(set(names)) == ELEMENTS

    def test_too_many_are_refused_and_places_come_back(
        self, serve: Any, services: Any, client: Any, official: Any
    ) -> None:
        asks = client(serve(services, iterators=2).url)
        first, _ = (asks.ask(batches_of(official("6-1"), 60)) for _ in range(2))
        status, refused = asks.ask(batches_of(official("6-1"), 60))
        assert (status, refused.fault.kind) == (500, "tooManyOpenIterators")
        status, last = asks.ask(with_iterator(official("6-3"), first[1].header.iterator_reference_uri))
        assert (status, last.header.batch_sequence_end_of_reply) == (200, True)
        assert asks.ask(batches_of(official("6-1"), 60))[0] == 200

    @pytest.mark.parametrize("uri", ["http://host:port/iterator123", "", "nothing", "http://127.0.0.1/iterator/../x"])
    def test_an_unknown_one_is_invalid_input(
        self, serve: Any, services: Any, client: Any, official: Any, uri: str
    ) -> None:
        status, answer = client(serve(services).url).ask(with_iterator(official("6-3"), uri))
        assert status == 500
        assert answer.fault.kind == "invalidInput"
        assert b"getManagedElementsIteratorException" in answer.to_bytes()

    def test_one_that_nobody_asks_for_expires(self, serve: Any, services: Any, client: Any, official: Any) -> None:
        asks = client(serve(services, iterator_timeout=0.2).url)
        _, first = asks.ask(batches_of(official("6-1"), 10))
        until(lambda: asks.http.get(f"{asks.url}/health").json()["iterators"] == 0)
        status, answer = asks.ask(with_iterator(official("6-3"), first.header.iterator_reference_uri))
        assert (status, answer.fault.kind) == (500, "invalidInput")

    @pytest.mark.parametrize("other", ["client", "address"])
    def test_another_one_cannot_have_it(
        self, serve: Any, services: Any, client: Any, official: Any, other: str
    ) -> None:
        if other == "client":
            url = serve(services, logins={"a": "1", "b": "2"}).url
            first, second = client(url, auth=("a", "1")), client(url, auth=("b", "2"))
        else:
            url = serve(services).url
            first, second = client(url), client(url, transport=httpx.HTTPTransport(local_address="127.0.0.2"))
        _, begun = first.ask(batches_of(official("6-1"), 60))
        wanted = with_iterator(official("6-3"), begun.header.iterator_reference_uri)
        status, answer = second.ask(wanted)
        assert (status, answer.fault.kind) == (500, "invalidInput")
        assert first.ask(wanted)[0] == 200

    def test_responses_that_wait_lie_in_files(
        self, connection: Connection, services: Any, client: Any, official: Any, tmp_path: Path
    ) -> None:
        with gateway(connection, *services, store=Store(1, tmp_path)) as server:
            answers = client(server.url).fetch(batches_of(official("6-1"), 10), official("6-3"))
            next(answers)
            until(lambda: len(list(tmp_path.iterdir())) == 6)
            assert len(list(answers)) == 6
            assert list(tmp_path.iterdir()) == []
            next(client(server.url).fetch(batches_of(official("6-1"), 10), official("6-3")))
        assert list(tmp_path.iterdir()) == [], "files of an iterator that was left open go with the server"


class TestAnswers:
    def test_one_response(self, serve: Any, services: Any, client: Any) -> None:
        answer = client(serve(services).url).post(ONE.replace("NAME", "NE-1"))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/xml; charset=utf-8")
        assert b"getManagedElementResponse" in answer.content

    def test_a_fault(self, serve: Any, services: Any, client: Any) -> None:
        status, answer = client(serve(services).url).ask(ONE.replace("NAME", "nobody"))
        assert (status, answer.fault.kind) == (500, "entityNotFound")

    def test_soap_1_2_is_answered_in_kind(self, serve: Any, services: Any, client: Any) -> None:
        asks = client(serve(services).url)
        text = ONE.replace("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope")
        for name, status in (("NE-1", 200), ("nobody", 500)):
            answer = asks.post(text.replace("NAME", name), **{"Content-Type": "application/soap+xml"})
            assert (answer.status_code, answer.headers["content-type"]) == (
                status,
                "application/soap+xml; charset=utf-8",
            )
            assert b"http://www.w3.org/2003/05/soap-envelope" in answer.content

    @pytest.mark.obligation("001-H6")
    def test_the_client_gets_its_own_id_back(self, serve: Any, services: Any, client: Any, official: Any) -> None:
        text = official("6-1").replace("<hdr:timestamp>", "<hdr:correlationId>mine</hdr:correlationId><hdr:timestamp>")
        header = (
            '<soap:Header><hdr:header xmlns:hdr="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><hdr:senderURI>'
            "/MTOSI/InventoryOS</hdr:senderURI><hdr:correlationId>mine</hdr:correlationId></hdr:header></soap:Header>"
        )
        refused = ONE.replace("NAME", "nobody").replace("<soap:Body>", f"{header}<soap:Body>")
        for asked, fault in ((text, False), (refused, True)):
            _, answer = client(serve(services).url).ask(asked)
            assert (answer.fault is not None) is fault
            assert answer.header.correlation_id == "mine"
            assert answer.header.destination_uri == "/MTOSI/InventoryOS"

    def test_an_operation_that_nobody_has(self, serve: Any, client: Any, services: Any) -> None:
        status, answer = client(serve(services).url).ask(ONE.replace("getManagedElementRequest", "getNothingRequest"))
        assert status == 500
        assert answer.fault is not None


class TestRefusals:
    def test_chunks_without_end(self, serve: Any, services: Any) -> None:
        server = serve(services, largest=100_000)
        with connected(server.url) as raw:
            raw.sendall(
                b"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            with pytest.raises(OSError):  # noqa: PT012 - it is closed while we send
                for _ in range(1_000):
                    raw.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
                assert raw.recv(100).startswith(b"HTTP/1.1 413")
                raise OSError

    @pytest.mark.parametrize("begun", [b"", b"POST / HTTP/1.1\r\nHost:", ASKED + b"GET / HTTP/1.1\r\nHost"])
    def test_headers_that_do_not_end(self, serve: Any, services: Any, begun: bytes) -> None:
        """Of the first request, and of another on the same connection."""
        server = serve(services, read_timeout=0.3)
        with connected(server.url) as raw:
            raw.sendall(begun)
            while raw.recv(10_000):
                pass

    @pytest.mark.parametrize(
        ("given", "status"),
        [
            ({}, 401),
            ({"auth": ("os", "wrong")}, 401),
            ({"auth": ("nobody", "secret")}, 401),
            ({"headers": {"Authorization": "Basic ???"}}, 401),
            ({"headers": {"Authorization": "Bearer wrong"}}, 401),
            ({"auth": ("os", "secret")}, 200),
            ({"headers": {"Authorization": "Bearer tok"}}, 200),
        ],
    )
    def test_logins(self, serve: Any, services: Any, client: Any, given: dict[str, Any], status: int) -> None:
        url = serve(services, logins={"os": "secret"}, tokens=frozenset({"tok"})).url
        answer = client(url, **given).post(ONE.replace("NAME", "NE-1"))
        assert answer.status_code == status
        assert "secret" not in answer.text

    def test_addresses(self, serve: Any, services: Any, client: Any) -> None:
        url = serve(services, clients=frozenset({"127.0.0.2"})).url
        stranger, known = client(url), client(url, transport=httpx.HTTPTransport(local_address="127.0.0.2"))
        assert stranger.post(ONE.replace("NAME", "NE-1"), **{"X-Forwarded-For": "127.0.0.2"}).status_code == 403
        assert known.post(ONE.replace("NAME", "NE-1")).status_code == 200

    def test_options_show_no_secret(self) -> None:
        shown = repr(HttpOptions(logins={"os": "hidden"}, tokens=frozenset({"concealed"})))
        assert "hidden" not in shown
        assert "concealed" not in shown
        with pytest.raises(ConfigError, match="iterators"):
            HttpOptions(iterators=0)

    def test_a_port_that_is_taken_and_a_second_start(self, serve: Any, services: Any) -> None:
        server = serve(services)
        with pytest.raises(TransportError, match="cannot listen"):
            HttpServer(Endpoint(ByDispatcher(Dispatcher([]))), "127.0.0.1", int(server.url.rpartition(":")[2]))
        with pytest.raises(IllegalStateError, match="started before"):
            server.start()


ALL = ONE.replace("getManagedElementRequest", "getAllManagedElementsRequest")
NAMES = re.compile(r"value>(NE-\d+)<")


class Slow(simulator.ManagedElementEms):
    """Gives all elements when it is let go."""

    def __init__(self) -> None:
        super().__init__(simulator.Network(elements=3, seed=1))
        self.let_go, self.entered = threading.Event(), threading.Event()

    def get_all_managed_elements(self, request: Any, context: Any) -> Any:
        self.entered.set()
        assert self.let_go.wait(PATIENCE)
        return super().get_all_managed_elements(request, context)


class TestTime:
    @pytest.mark.obligation("001-S14")
    def test_no_answer_in_time(self, connection: Connection, client: Any) -> None:
        """The late one reaches nobody else."""
        slow = Slow()
        with gateway(connection, slow, timeout=0.2) as server:
            asks = client(server.url)
            status, answer = asks.ask(ALL)
            assert (status, answer.fault.fault_string, answer.fault.kind) == (504, "no answer in time", "internalError")
            slow.let_go.set()
            assert NAMES.findall(asks.post(ONE.replace("NAME", "NE-3")).text) == ["NE-3"]

    def test_a_further_response_that_does_not_come_in_time(
        self, connection: Connection, services: Any, client: Any, official: Any
    ) -> None:
        halting = Halting()
        source = ByDispatcher(Dispatcher([halting]))
        with HttpServer(Endpoint(source, HttpOptions(answer_timeout=2.0))) as server:
            asks = client(server.url)
            status, first = asks.ask(batches_of(official("6-1"), 10))
            assert (status, first.header.batch_sequence_number) == (200, 1)
            more = with_iterator(official("6-3"), first.header.iterator_reference_uri)
            assert asks.ask(more)[0] == 200
            status, late = asks.ask(more)
            assert (status, late.fault.kind) == (504, "internalError")
            halting.let_go.set()

    def test_a_provider_that_is_gone(self, connection: Connection, client: Any) -> None:
        with (
            mtosi.Requestor(connection, sender_uri="jms/Gateway", temporary_reply=True) as requestor,
            HttpServer(Endpoint(ByRequestor(requestor, QUEUE, Store(10)))) as server,
        ):
            requestor.close()
            status, _ = client(server.url).ask(ONE)
        assert status == 503

    @pytest.mark.obligation("001-S14")
    def test_a_slow_call_holds_up_no_other(self, serve: Any, services: Any, client: Any) -> None:
        """Each gets the answer to its own request, whatever the order of the replies."""
        ems = Slow()
        asks = client(serve([ems]).url)
        slow = background(lambda: asks.post(ALL))
        assert ems.entered.wait(PATIENCE)
        fast = [background(lambda name=name: asks.post(ONE.replace("NAME", name))) for name in ("NE-1", "NE-2") * 5]
        for number, future in enumerate(fast):
            assert NAMES.findall(future.result(PATIENCE).text) == [f"NE-{1 + number % 2}"]
        assert not slow.done()
        ems.let_go.set()
        assert NAMES.findall(slow.result(PATIENCE).text) == ["NE-1", "NE-2", "NE-3"]


ASK_1X = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns="tmf854.v1"><s:Header>
 <header><activityName>getAllManagedElements{0}</activityName><msgName>{1}</msgName><msgType>REQUEST</msgType>
 <senderURI>os</senderURI><destinationURI>ems</destinationURI>
 <communicationPattern>MultipleBatchResponse</communicationPattern><communicationStyle>RPC</communicationStyle>
 <requestedBatchSize>5</requestedBatchSize>{2}</header></s:Header><s:Body><{1}/></s:Body></s:Envelope>"""
GONE = ASK_1X.format("Iterator", "getMeIterator", "<iteratorReferenceURI>it/1</iteratorReferenceURI>")
BARE = re.sub(r"<s:Header>.*</s:Header>", "", GONE, flags=re.DOTALL)


class TestRelease1:
    """Services of MTOSI 1.1: all that a client gets is in the form of 1.x, also what the endpoint says itself."""

    @pytest.fixture
    def services(self, services: Any) -> list[Any]:
        return [simulator.in_release1(one) for one in services]

    @pytest.mark.parametrize(
        ("data", "status", "kind"),
        [
            ("<s:Envelope", 400, ""),
            ("<a/>", 400, ""),
            (GONE, 500, "invalidInput"),
            (ASK_1X.format("", "getNothing", ""), 500, ""),
            (BARE, 500, None),
        ],
        ids=["cut", "no envelope", "no iterator", "no operation", "no header"],
    )
    @pytest.mark.parametrize("through", ["services", "profile"])
    def test_a_fault(
        self, connection: Connection, services: Any, client: Any, data: str, status: int, kind: str, through: str
    ) -> None:
        with ExitStack() as stack:
            source: Any = ByDispatcher(Dispatcher(services, sender_uri="ems"))
            if through == "profile":  # the gateway has no stubs
                stack.enter_context(Supplier(connection, QUEUE, services).start())
                profile = BindingProfile(header="1.x")
                requestor = mtosi.Requestor(connection, sender_uri="jms/G", profile=profile, temporary_reply=True)
                source = ByRequestor(stack.enter_context(requestor), QUEUE, Store(10_000))
            server = stack.enter_context(HttpServer(Endpoint(source)))
            got, answer = client(server.url).ask(data)
        assert got == status
        assert b"tmf854.v1" in answer.to_bytes()
        assert b"mtop" not in answer.to_bytes()
        assert header_text(answer.header, "msgType") == "ERROR"
        assert kind in (None, answer.fault.kind)

    @pytest.mark.parametrize("header", [None, header_class(MTOSI_1X)()], ids=["none", "an empty one"])
    def test_what_an_answer_lacks_is_filled(self, client: Any, header: Header | None) -> None:
        """A supplier beyond JMS leaves out what 1.x requires; the client gets a header that has it."""

        class Careless:
            async def replies(self, request: Request) -> Any:
                yield Envelope(header=header, body=RawXml(b'<r:getAllMDsResponse xmlns:r="tmf854.v1"/>'))

        with HttpServer(Endpoint(Careless())) as server:
            status, answer = client(server.url).ask(
                ASK_1X.replace("MultipleBatch", "Simple").format("", "getAllMDs", "")
            )
        assert status == 200
        assert answer.warnings == []
        assert answer.header.msg_name == "getAllMDsResponse"
        assert answer.header.msg_type is MessageTypeType.RESPONSE

    def test_batches_have_the_element_that_the_wsdl_says(self, serve: Any, services: Any, client: Any) -> None:
        asks = client(serve(services).url)
        answers = [asks.ask(ASK_1X.format("", "getAllManagedElements", ""))[1]]
        while uri := answers[-1].header.iterator_reference_uri:
            more = f"<iteratorReferenceURI>{uri}</iteratorReferenceURI>"
            answers.append(asks.ask(ASK_1X.format("Iterator", "getMeIterator", more))[1])
        assert len(answers) == ELEMENTS // 5
        assert {tag_of(one.body) for one in answers} == {"{tmf854.v1}getAllManagedElementsResponse"}
        assert {one.header.msg_name for one in answers} == {"getAllManagedElementsResponse"}
        assert [str(one.warnings) for one in answers if one.warnings] == []


def test_what_cannot_be_read_is_refused_in_the_form_of_2_0(serve: Any, services: Any, client: Any) -> None:
    status, answer = client(serve(services).url).ask("<a/>")
    assert (status, type(answer.header)) == (400, Header)
