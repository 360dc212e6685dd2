"""Secrets planted in more than 300 places appear in nothing that anybody sees: every output is kept, and searched."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import re
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.errors import MtosiError
from mtosi_jms.jms import JmsMessage, NamingContext, Queue
from mtosi_jms.runtime import ConsumerRuntime, RuntimeRules
from mtosi_jms.service import CallOptions, RequestContext
from mtosi_jms.spool import DurableLanding, Inbox, Outbox
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.telemetry import JsonFormatter, LineFormatter, Metrics, Monitor

_SECRET = re.compile(r"hush\d{4}x")
_TO = re.compile(rb"<hdr:destinationURI>.*?</hdr:destinationURI>")
_WORDS = ("password", "PASSWORD", "dbPasswd", "clientSecret", "credential", "authToken", "security", "MTOSI_security")
_ENVELOPE = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
 xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1" xmlns:v="urn:vendor"><s:Header><h:header>
 <h:activityName>getAllManagedElements</h:activityName><h:msgName>getAllManagedElementsRequest</h:msgName>
 <h:msgType>REQUEST</h:msgType><h:senderURI>stomp://os:SECRET@host/OS</h:senderURI><h:destinationURI>EMS</h:destinationURI>
 <h:correlationId>PLAIN</h:correlationId><h:security>SECRET</h:security><h:securityType>SECRET</h:securityType>
 <h:communicationPattern>SimpleResponse</h:communicationPattern><h:communicationStyle>MSG</h:communicationStyle>
 <h:vendorExtensions><v:userPassword>SECRET</v:userPassword><v:login authToken="SECRET"/></h:vendorExtensions>
 </h:header></s:Header><s:Body>BODY</s:Body></s:Envelope>"""


class Field:
    """Plants secrets, and keeps what is seen."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.planted = 0
        self.seen: list[tuple[str, str]] = []

    def secret(self) -> str:
        """Another one."""
        self.planted += 1
        return f"hush{next(self._numbers):04d}x"

    def filled(self, text: str) -> str:
        """A text with another one at each place."""
        return re.sub("SECRET", lambda _: self.secret(), text)

    def see(self, where: str, text: object) -> None:
        """Something that somebody sees."""
        self.seen.append((where, str(text)))

    @contextlib.contextmanager
    def raising(self, where: str) -> Iterator[None]:
        """What the block raises is seen with its whole traceback."""
        try:
            yield
        except MtosiError as error:
            self.see(where, "".join(traceback.format_exception(error)) + repr(error))

    def found(self) -> list[str]:
        """Where secrets were seen."""
        return [f"{where}: {_around(text)}" for where, text in self.seen if _SECRET.search(text)]


def _around(text: str) -> str:
    found = _SECRET.search(text)
    at = found.start() if found is not None else 0
    return repr(text[max(at - 150, 0) : at + 40])


@pytest.fixture
def field() -> Iterator[Field]:
    """A field whose log, all of it, is seen in each form that ships."""
    field = Field()

    class Seen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            field.see(f"log {record.name}", JsonFormatter().format(record))
            field.see(f"log {record.name}", LineFormatter().format(record))
            field.see(f"log {record.name}", LineFormatter(tracebacks=False).format(record))

    handler, root = Seen(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield field
    finally:
        root.setLevel(before)
        root.removeHandler(handler)


@pytest.fixture
def command(field: Field, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a command here; what it prints is seen, and with MTOSI_JMS_DEBUG its traceback."""
    monkeypatch.setenv("MTOSI_JMS_DEBUG", "1")

    def run(*arguments: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(arguments)
            except Exception as error:  # noqa: BLE001 - a traceback is what is looked at
                field.see(f"traceback {arguments[0]}", "".join(traceback.format_exception(error)))
        field.see(f"output {arguments[0]}", out.getvalue() + err.getvalue())

    return run


URLS = (
    "stomp://os:SECRET@127.0.0.1:1",
    "stomp://os:SECRET@127.0.0.1:1/path?connect_timeout=0.1",
    "stomp+ssl://os:SECRET@127.0.0.1:1",
    "STOMP://os:SECRET@127.0.0.1:1",
    "stomp://:SECRET@127.0.0.1:1",
    "stomp://os:SECRET@127.0.0.1:99999",
    "stomp://os:SECRET@127.0.0.1:port",
    "stomp://os:SECRET@",
    "stomp://os:SECRET@[::1",
    "stomp://127.0.0.1:1?password=SECRET",
    "stomp://127.0.0.1:1?user=os&password=SECRET&heartbeat=x",
    "stomp://os:SECRET@127.0.0.1:1?reconnect=maybe",
    "failover:(stomp://os:SECRET@127.0.0.1:1,stomp://os:SECRET@127.0.0.1:1)",
    "failover://stomp://os:SECRET@127.0.0.1:1",
    "failover:(stomp://os:SECRET@127.0.0.1:1",
    "failover:(amqp://os:SECRET@127.0.0.1:1)",
    "amqp://os:SECRET@127.0.0.1:1",
    "os:SECRET@127.0.0.1:1",
    "memory://os:SECRET@host",
    "memory:?password=SECRET",
    "jms:jndi:Name?jndiConnectionFactoryName=none&jndi-java.naming.security.credentials=SECRET",
    "jms:queue:Q?password=SECRET",
    "tcp://os:SECRET@127.0.0.1:1",
    "http://os:SECRET@127.0.0.1:1/",
)


def test_urls(field: Field, command: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "1.xml").write_text(_ENVELOPE.replace("SECRET", "x").replace("BODY", ""))
    for url in URLS:
        with field.raising("connect"):
            field.see("repr", repr(mtosi.connect(field.filled(url), connect_timeout=0.2)))
        with field.raising("destination"):
            mtosi.connect("memory:").session().send(field.filled(url), JmsMessage())
        with field.raising("names"):
            field.see("repr", repr(NamingContext.of({"x": field.filled(url)})))
        with field.raising("requestor"):
            field.see("repr", repr(mtosi.Requestor(mtosi.connect("memory:"), sender_uri=field.filled(url))))
        if "127.0.0.1:1" in url and "port" not in url:
            command("doctor", "--url", field.filled(url))
            command("queue", "list", "--url", field.filled(url))
        command(
            "replay", str(tmp_path), "--to", "queue:Q", "--url", field.filled(url), "--wire", "--log-level", "debug"
        )
    assert field.found() == []
    assert field.planted > 100


def test_files_and_environment(
    field: Field, command: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, names = tmp_path / "secret", tmp_path / "jndi.properties"
    for word in ("stomp://127.0.0.1:1", "stomp+ssl://127.0.0.1:1", "failover:(stomp://127.0.0.1:1)"):
        secret.write_text(field.secret() + "\n")
        command("queue", "list", "--url", word, "--user", "os", "--password-file", str(secret))
        with field.raising("password_file"):
            mtosi.connect(word, password_file=str(secret), connect_timeout=0.2)
        with field.raising("password"):
            mtosi.connect(word, password=field.secret(), connect_timeout=0.2)
        names.write_text(
            field.filled(
                f"connectionfactory.CF={word.replace('//', '//os:SECRET@')}\nqueue.Q=jms.queue.Q\n"
                "java.naming.security.credentials=SECRET\n"
            )
        )
        command("queue", "list", "--url", "jndi:CF", "--names", str(names))
        with field.raising("factory"):
            mtosi.connect("jndi:CF", names=str(names), connect_timeout=0.2)
        with field.raising("factory"):
            mtosi.connect("jndi:NONE", names=str(names))
        field.see("repr", repr(NamingContext.of(str(names))))
    secret.write_bytes(field.secret().encode() + b"\xff\xfe\n")
    with field.raising("password_file"):
        mtosi.connect("stomp://127.0.0.1:1", password_file=str(secret))
    for listed in (field.secret(), f"os:{field.secret()}\n{field.secret()}"):
        secret.write_text(listed)
        command("serve", "--http", "256.0.0.1:0", "--elements", "1", "--logins", str(secret))
        command("serve", "--http", "256.0.0.1:0", "--elements", "1", "--tokens", str(secret))
    for variable in ("MTOSI_JMS_PASSWORD", "MTOSI_JMS_URL", "MTOSI_JMS_USER", "MTOSI_JMS_PASSWORD_FILE"):
        hidden = field.secret() if variable == "MTOSI_JMS_PASSWORD" else f"stomp://os:{field.secret()}@127.0.0.1:1"
        monkeypatch.setenv(variable, hidden)
        command("doctor")
        command("doctor", "--json")
        command("queue", "list", "--url", "stomp://127.0.0.1:1")
        command("queue", "--help")
        monkeypatch.delenv(variable)
    assert field.found() == []


class Ems(ManagedElementRetrieval.Supplier):
    def __init__(self, field: Field) -> None:
        self._field = field

    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[Any]:
        yield ManagedElementType()
        raise ValueError(self._field.filled("cannot reach http://os:SECRET@ems/ or ?password=SECRET"))


def test_messages(field: Field, tmp_path: Path) -> None:
    telemetry, spans, text = _recorded()
    with (
        mtosi.connect("memory:", telemetry=telemetry) as connection,
        Outbox(tmp_path / "out") as outbox,
        Inbox(tmp_path / "in") as inbox,
        DurableLanding(tmp_path / "landing") as landing,
        mtosi.Supplier(connection, "queue:EMS", [Ems(field)]),
        mtosi.Requestor(connection, sender_uri="queue:OS", landing=landing) as requestor,
        mtosi.Publisher(connection, {"Fault": "topic:T"}, sender_uri="queue:OS", outbox=outbox),
        mtosi.Subscriber(connection, "topic:T", inbox=inbox, timeout=0.01, on_error=lambda error: None) as subscriber,
        connection.session() as session,
        Monitor(metrics=telemetry.prometheus, why_not_ready=lambda: None) as monitor,
    ):
        service = ManagedElementRetrieval(requestor, "queue:EMS")
        for _ in range(3):
            options = CallOptions(header={"security": field.secret(), "security_type": field.secret()})
            with field.raising("fault"):
                list(service.get_all_managed_elements.batches(batch_size=1, options=options))
        replies = session.temporary_queue()
        answers = session.consumer(replies)
        bodies = (
            "",
            "<m:nothingRequest/>",
            "<m:getAllManagedElementsRequest><m:password>SECRET</m:password>",
            "<a><b>",
        )
        for body in bodies:
            for word in _WORDS:
                document = field.filled(_ENVELOPE.replace("BODY", body)).encode()
                properties = {
                    word: field.secret(),
                    "MTOSI_correlationId": "other",
                    "url": field.filled("x://u:SECRET@h"),
                }
                message = JmsMessage(body=document, properties=properties, reply_to=replies)
                session.send(Queue("EMS"), message)
                answer = answers.receive(60)
                assert answer is not None
                field.see("answer", _TO.sub(b"", answer.message.body))  # goes where the request came from
                session.send(connection.names.lookup("topic:T"), message)
                session.send(Queue("OS"), message)
                outbox.put(message, Queue("LATER"))
                field.see("repr", repr(message))
        for _ in subscriber:
            pass
        _park(field, connection)
        for page in ("healthz", "readyz", "metrics"):
            with urllib.request.urlopen(f"{monitor.url}/{page}", timeout=60) as got:
                field.see(f"page /{page}", got.read())
        field.see("repr", [connection, requestor, subscriber, telemetry, session])
    for span in spans():
        field.see("span", span)
    field.see("metrics", text())
    assert field.found() == []
    assert field.planted > 200


def _recorded() -> tuple[Metrics, Callable[[], list[str]], Callable[[], str]]:
    """A telemetry, its spans and its metrics as text; without spans where the extra is not installed."""
    try:
        from mtosi_jms.telemetry.otel import OpenTelemetry
    except MtosiError:
        metrics = Metrics()
        return metrics, list, lambda: metrics.prometheus().decode()
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, reader, tracers = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = OpenTelemetry(tracer_provider=tracers, meter_provider=MeterProvider(metric_readers=[reader]))
    return (
        telemetry,
        lambda: [span.to_json() for span in exporter.get_finished_spans()],
        lambda: str(reader.get_metrics_data()),
    )


def _park(field: Field, connection: mtosi.transport.Connection) -> None:
    """Messages that no attempt can handle; the text of each error has a secret."""

    def fail(message: JmsMessage, context: Any) -> None:
        raise ValueError(field.secret())

    with (
        connection.session() as session,
        ConsumerRuntime(connection, "queue:WORK", fail, parking="queue:DEAD", rules=RuntimeRules(attempts=1)),
    ):
        for word in _WORDS:
            session.send(
                Queue("WORK"),
                JmsMessage(body=f"<p:{word}>{field.secret()}".encode(), properties={word: field.secret()}),
            )
        dead = session.consumer(Queue("DEAD"))
        for _ in _WORDS:
            parked = dead.receive(60)
            assert parked is not None
            field.see("reason", parked.message.properties["MTOSIX_parkedReason"])


def test_documents(field: Field, command: Callable[..., None], tmp_path: Path) -> None:
    """What commands say of documents at fault, and of headers."""
    for number, body in enumerate(("", "<m:getAllManagedElementsRequest/>", "<a>", "<a:b/>")):
        file = tmp_path / f"{number}.xml"
        file.write_text(field.filled(_ENVELOPE.replace("BODY", body)))
        for arguments in (("inspect",), ("inspect", "--json"), ("map",), ("map", "--json"), ("validate",)):
            command(*arguments, str(file))
    report = pytest.importorskip("mtosi_jms.report")
    texts = [field.filled(url) for url in URLS if "//os:" in url]
    field.see(
        "report",
        report.render(
            report.Report(
                title=texts[0],
                notes=texts,
                facts=[report.Fact(text, text) for text in texts],
                rejects=[report.RejectLine(text, None, text) for text in texts],
                sequences=[report.SequenceLine(text, 1, 1) for text in texts],
            )
        ),
    )
    assert field.found() == []


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc here")
def test_process_titles(field: Field) -> None:
    """A command that waits: its title, and what it prints until it ends."""
    for url in (f"memory://os:{field.secret()}@host", f"failover:(memory://os:{field.secret()}@host)"):
        words = [
            "serve",
            "--url",
            url,
            "--destination",
            "queue:Q",
            "--elements",
            "1",
            "--wire",
            "--monitor",
            "127.0.0.1:0",
        ]
        with subprocess.Popen(
            [sys.executable, "-m", "mtosi_jms", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            told = ""
            for line in process.stdout:
                told += line
                if line.startswith("ready"):
                    field.see("process title", Path(f"/proc/{process.pid}/cmdline").read_bytes())
                    break
            process.terminate()
            field.see("output", told + process.communicate(timeout=60)[0])
    assert field.found() == []
