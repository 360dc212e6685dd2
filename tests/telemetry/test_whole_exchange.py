"""Spans and metrics of a whole exchange: three batches, a redelivery, a parked message; over memory and a broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.runtime import ConsumerRuntime, RuntimeRules
from mtosi_jms.service import RequestContext
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.telemetry import METRICS
from mtosi_jms.transport import Connection

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from mtosi_jms.telemetry.otel import PROPERTIES, OpenTelemetry

from ..waiting import PATIENCE, until


class Ems(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[Any]:
        yield from (ManagedElementType() for _ in range(3))


class Recorded:
    """A telemetry, and what its exporters got."""

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        meters = MeterProvider(metric_readers=[self._reader])
        self.telemetry = OpenTelemetry(tracer_provider=tracers, meter_provider=meters, **options)

    def spans(self, begin: str = "") -> list[ReadableSpan]:
        return [span for span in self._spans.get_finished_spans() if span.name.startswith(begin)]

    def metrics(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Name of each metric to the values by the labels; of histograms the number of measurements."""
        data = self._reader.get_metrics_data()
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for resource in data.resource_metrics if data is not None else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                series = found.setdefault(metric.name, {})
                for point in metric.data.data_points:
                    labels: Any = tuple(str(value) for value in (point.attributes or {}).values())
                    series[labels] = point.count if hasattr(point, "count") else point.value
        return found


@pytest.fixture(params=["memory", pytest.param("artemis", marks=pytest.mark.broker)])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "memory":
        return f"memory:{uuid.uuid4().hex}"
    endpoint: str = request.getfixturevalue("artemis").endpoints.url("stomp")
    return endpoint


def test_spans_and_metrics_of_a_whole_exchange(url: str) -> None:
    made, run = Recorded(), uuid.uuid4().hex[:8]
    ems, replies, work, dead = (f"queue:{name}.{run}" for name in ("EMS", "OS", "WORK", "DEAD"))
    with mtosi.connect(url, telemetry=made.telemetry) as connection:
        with (
            mtosi.Supplier(connection, ems, [Ems()]),
            mtosi.Requestor(connection, sender_uri=replies) as requestor,
        ):
            service = ManagedElementRetrieval(requestor, ems)
            assert len(list(service.get_all_managed_elements.batches(batch_size=1))) == 3
        redeliver_and_park(connection, work, dead)
        until(lambda: len(made.spans("process")) == 4)
        metrics = made.metrics()

    [request] = made.spans(f"request {ems}")
    [process] = made.spans(f"process {ems}")
    sent, received = made.spans(f"publish {replies}"), made.spans(f"receive {replies}")
    assert (request.kind, process.kind, received[0].kind) == (SpanKind.CLIENT, SpanKind.CONSUMER, SpanKind.CLIENT)
    assert sent[0].kind is SpanKind.PRODUCER
    assert request.end_time is not None
    assert all(request.end_time >= (span.end_time or 0) for span in received[:2]), "it lasts until the last reply"
    assert parents([process, *received]) == [request.context.span_id] * 4
    assert parents(sent) == [process.context.span_id] * 3
    assert len({span.context.trace_id for span in (request, process, *sent, *received)}) == 1
    assert [span.links[0].context.span_id for span in received] == [span.context.span_id for span in sent]
    facts = dict(process.attributes or {})
    assert facts["messaging.system"] == "jms"
    assert (facts["messaging.operation.name"], facts["messaging.operation.type"]) == ("process", "process")
    assert facts["mtosi.operation"] == "getAllManagedElements"
    assert "error.type" not in facts
    assert facts["mtosi.batches"] == 3

    # One message is handled at its second delivery; the other one fails twice, and is parked.
    attempts = made.spans(f"process {work}")
    assert [span.status.status_code for span in attempts] == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.ERROR]
    assert (attempts[0].attributes or {})["mtosi.redelivered"] is True
    assert (attempts[1].attributes or {})["error.type"] == "ValueError"
    assert len(made.spans(f"publish {dead}")) == 1

    operation = "getAllManagedElements"
    assert metrics["mtosi.batches"] == {("supplier", operation): 3, ("requestor", operation): 3}
    assert metrics["mtosi.exchanges.in_flight"] == {("supplier",): 0, ("requestor",): 0}
    assert metrics["mtosi.redeliveries"][(work,)] >= 1
    assert metrics["mtosi.parked"] == {(work,): 1}
    server = () if url.startswith("memory:") else ("127.0.0.1", url.rpartition(":")[2])
    assert metrics["messaging.client.sent.messages"] == {
        ("jms", "request", ems, *server): 1,
        ("jms", "publish", replies, *server): 3,
        ("jms", "publish", dead, *server): 1,
    }
    assert metrics["messaging.client.operation.duration"] == {
        ("jms", "request", ems, *server, operation): 1,
        ("jms", "publish", replies, *server, operation): 3,
        ("jms", "publish", dead, *server): 1,
    }
    assert metrics["messaging.process.duration"] == {
        ("jms", "process", ems, *server, operation): 1,
        ("jms", "process", work, *server): 1,
        ("jms", "process", work, "ValueError", *server): 2,
    }
    assert set(metrics) <= {metric.name for metric in METRICS}


def test_a_fault_is_the_error_of_both_ends_by_its_kind() -> None:
    made = Recorded()

    class Failing(Ems):
        def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[Any]:
            raise mtosi.MtosiFault("there is none", kind="entityNotFound")

    with (
        mtosi.connect("memory:whole-exchange-5", telemetry=made.telemetry) as connection,
        mtosi.Supplier(connection, "queue:EMS", [Failing()]),
        mtosi.Requestor(connection, sender_uri="queue:OS") as requestor,
        pytest.raises(mtosi.MtosiFault),
    ):
        ManagedElementRetrieval(requestor, "queue:EMS").get_all_managed_elements()
    until(lambda: len(made.spans("process")) == 1)
    for span in (*made.spans("request"), *made.spans("process")):
        assert span.status.status_code is StatusCode.ERROR
        assert (span.attributes or {})["error.type"] == "entityNotFound"
    for metric in ("messaging.client.operation.duration", "messaging.process.duration"):
        assert any("entityNotFound" in labels for labels in made.metrics()[metric])


def redeliver_and_park(connection: Connection, work: str, dead: str) -> None:
    """One message that is given back once and handled then, and one that no attempt can handle."""
    target = connection.names.lookup(work)
    with connection.session() as session:
        session.send(target, JmsMessage(body=b"fine"))
        consumer = session.consumer(target)
        connection.start()
        assert consumer.receive(PATIENCE) is not None
    handled: list[bytes] = []

    def handle(message: JmsMessage, context: Any) -> None:
        handled.append(message.body)
        if message.body == b"poison":
            raise ValueError("a text that may quote the message")

    rules = RuntimeRules(attempts=2, concurrency=1, retry=mtosi.transport.Backoff(0.001, 0.001, 0.0))
    with ConsumerRuntime(connection, work, handle, parking=dead, rules=rules) as runtime:
        until(lambda: runtime.health.handled == 1)
        with connection.session() as session:
            session.send(target, JmsMessage(body=b"poison"))
        until(lambda: runtime.health.parked == 1)
    assert handled == [b"fine", b"poison", b"poison"]


def parents(spans: list[ReadableSpan]) -> list[int]:
    return [span.parent.span_id for span in spans if span.parent is not None]


def test_no_spans_where_the_sample_leaves_them_out_and_the_peer_goes_by_that() -> None:
    made = Recorded(sample=0.0)
    seen: list[JmsMessage] = []

    class Looking(Ems):
        def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[Any]:
            seen.append(context.message)
            return super().get_all_managed_elements(request, context)

    with (
        mtosi.connect("memory:whole-exchange-1", telemetry=made.telemetry) as connection,
        mtosi.Supplier(connection, Queue("EMS"), [Looking()]),
        mtosi.Requestor(connection, sender_uri="queue:OS") as requestor,
    ):
        list(ManagedElementRetrieval(requestor, "queue:EMS").get_all_managed_elements.batches(batch_size=2))
    assert made.spans() == []
    assert made.metrics()["mtosi.batches"][("requestor", "getAllManagedElements")] == 2
    assert str(seen[0].properties[PROPERTIES[0]]).endswith("-00")


def test_what_a_peer_writes_into_the_property_does_no_harm() -> None:
    made = Recorded()
    with (
        mtosi.connect("memory:whole-exchange-2", telemetry=made.telemetry) as connection,
        connection.session() as session,
        ConsumerRuntime(connection, "queue:IN", lambda message, context: None, parking="queue:DEAD") as runtime,
    ):
        for value in ("", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "ff-1-1-01", 7):
            session.send(Queue("IN"), JmsMessage(properties={"traceparent": value, "tracestate": "\x00=,,"}))
        until(lambda: runtime.health.handled == 5)
    assert [span.parent for span in made.spans("process")] == [None] * 5


A, B = "a" * 32, "b" * 16


@pytest.mark.parametrize(
    ("said", "parent"),
    [
        (f"00-{A}-{B}-01", int(B, 16)),
        (f"cc-{A}-{B}-01-more", int(B, 16)),  # a later version
        (f"ff-{A}-{B}-01", None),
        (f"00-{'0' * 32}-{B}-01", None),
        (f"00-{A}-{'0' * 16}-01", None),
        (f"00-{A.upper()}-{B}-01", None),
        (f"00-{A}-{B}-01\n", None),
        (7, None),
    ],
)
def test_the_peers_span_is_the_parent_where_it_is_one_of_w3c(said: str | int, parent: int | None) -> None:
    made = Recorded()
    with made.telemetry.process(JmsMessage(properties={"traceparent": said, "tracestate": "x=1"}), Queue("IN")):
        pass
    (span,) = made.spans()
    assert (span.parent and span.parent.span_id) == parent
    assert span.context.trace_state.get("x") == (parent and "1")


def test_metrics_alone_leave_messages_as_they_are() -> None:
    telemetry = OpenTelemetry(tracer_provider=trace.NoOpTracerProvider())
    message = JmsMessage()
    assert telemetry.publish(message, Queue("OUT")).message is message
    with telemetry.process(message, Queue("IN")):
        assert not trace.get_current_span().get_span_context().is_valid


def test_coroutines_have_the_span_of_their_message() -> None:
    made, seen = Recorded(), []

    class Asynchronous(ManagedElementRetrieval.Supplier):
        async def get_all_managed_elements(self, request: Any, context: RequestContext) -> Any:
            seen.append(trace.get_current_span().get_span_context().span_id)
            yield ManagedElementType()

    async def ask() -> None:
        async with (
            mtosi.connect("memory:whole-exchange-3", telemetry=made.telemetry) as connection,
            mtosi.Supplier(connection, Queue("EMS"), [Asynchronous()]).aio,
        ):
            service = ManagedElementRetrieval(mtosi.Requestor(connection, sender_uri="queue:OS"), "queue:EMS")
            async for _ in service.aio.get_all_managed_elements.batches(batch_size=1):
                pass

    asyncio.run(ask())
    [process] = made.spans("process")
    assert seen == [process.context.span_id]
    assert parents(made.spans("receive")) == [made.spans("request queue:EMS")[0].context.span_id]


def test_what_a_handler_sends_for_a_message_without_spans_has_none_either() -> None:
    made = Recorded()
    unsampled = "00-" + "1" * 32 + "-" + "2" * 16 + "-00"
    with (
        mtosi.connect("memory:whole-exchange-4", telemetry=made.telemetry) as connection,
        mtosi.Supplier(connection, "queue:EMS", [Ems()]),
        connection.session() as session,
    ):
        replies = session.temporary_queue()
        consumer = session.consumer(replies)
        connection.start()
        session.send(Queue("EMS"), JmsMessage(body=b"no XML", reply_to=replies, properties={"traceparent": unsampled}))
        assert consumer.receive(PATIENCE) is not None
    assert made.spans() == []
    assert made.metrics()["mtosi.rejects"] == {("queue:EMS",): 1}
