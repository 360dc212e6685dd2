"""What Java clients bring that no wire of text can, and how a connection by one fails and comes back."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    LoginRefusedError,
    NamingError,
    TransportError,
    UnknownOutcomeError,
)
from mtosi_jms.jms import DeliveryMode, FrozenMap, JmsMessage, JmsUri, NamingContext, Queue, Topic
from mtosi_jms.transport import AckMode, Connection, connect
from mtosi_jms.transport.jvm import _messages as messages

from .clients import BROKER, FACTORY, address_of, connect_by_java, jars_of, jndi_properties

pytest.importorskip("jpype", reason="JPype is not installed")
pytestmark = pytest.mark.broker


LONG: Any = pytest.mark.endurance


@pytest.fixture(params=["activemq", "artemis", pytest.param("qpid", marks=LONG)])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def open_jvm(kind: str, request: pytest.FixtureRequest) -> Any:
    """Opens connections to the session's broker, started; they are closed with the test."""
    opened: list[Connection] = []

    def open_one(broker: BrokerProcess | None = None, url: str = "jvm:ConnectionFactory", **options: Any) -> Connection:
        made = connect_by_java(kind, broker or request.getfixturevalue(BROKER[kind]), url, **options)
        opened.append(made)
        made.start()
        return made

    yield open_one
    for one in opened:
        one.close()


class TestFailures:
    """Of the brokers and clients `make test` has one for each test, ActiveMQ where it will do: it starts fast."""

    @pytest.fixture(params=["activemq", pytest.param("artemis", marks=LONG), pytest.param("qpid", marks=LONG)])
    def kind(self, request: pytest.FixtureRequest) -> str:
        found: str = request.param
        return found

    @pytest.fixture
    def restart(self, kind: str, start_broker: Any, tmp_path: Path) -> Any:
        """A broker of the test's own, and what kills it and starts it again with its data."""
        folder = tmp_path / "broker"
        first = start_broker(BROKER[kind], folder, protocols=["amqp"] if kind == "qpid" else ["openwire"])

        def again(current: BrokerProcess) -> BrokerProcess:
            current.kill()
            made: BrokerProcess = start_broker(BROKER[kind], folder, endpoints=current.endpoints)
            return made

        return first, again

    def test_a_killed_broker_loses_nothing_that_was_confirmed(
        self, open_jvm: Any, restart: Any, queue: Queue, topic: Topic
    ) -> None:
        broker, again = restart
        connection = open_jvm(broker)
        session = connection.session()
        consumer, gap = session.consumer(queue), []
        consumer.on_interrupted = gap.append
        for number in range(3):
            session.send(queue, JmsMessage(body=b"<n>%d</n>" % number, delivery_mode=DeliveryMode.PERSISTENT))
        held = consumer.receive(30)
        again(broker)
        sender = connection.session()
        sender.send(queue, JmsMessage(body=b"<n>3</n>", delivery_mode=DeliveryMode.PERSISTENT), timeout=60)
        bodies = []
        while len(set(bodies)) < 4:
            delivery = consumer.receive(60)
            delivery.acknowledge()
            bodies.append(delivery.message.body)
        assert sorted(set(bodies)) == [b"<n>%d</n>" % number for number in range(4)]
        assert len(gap) == 1
        with pytest.raises((TransportError, IllegalStateError)):
            held.acknowledge()

    @pytest.mark.parametrize(
        ("kind", "listens"),
        [("activemq", False), ("artemis", False), ("artemis", True), ("qpid", False)],
    )
    @LONG
    def test_who_sends_asynchronously_is_told_of_a_killed_broker(
        self, kind: str, listens: bool, open_jvm: Any, restart: Any, queue: Queue
    ) -> None:
        """Each send has one outcome, and what was confirmed is there when the broker is back; Artemis' client has two
        ways."""
        broker, again = restart
        address = f"{address_of(kind, broker)}?confirmationWindowSize=1048576" if listens else address_of(kind, broker)
        connection = open_jvm(broker, names=NamingContext.from_properties(jndi_properties(kind, address)))
        session = connection.session()
        sent: dict[bytes, Any] = {}
        refused: list[TransportError] = []
        killing = threading.Thread(target=again, args=(broker,))
        for number in range(400):
            body = b"<n>%d</n>" % number
            try:
                sent[body] = session.send_async(queue, JmsMessage(body=body, delivery_mode=DeliveryMode.PERSISTENT))
            except TransportError as error:
                refused.append(error)
            if number == 20:
                sent[b"<n>0</n>"].result(60)
                killing.start()
        killing.join()
        told = {body: future.exception(90) for body, future in sent.items()}
        failed = [error for error in told.values() if error is not None]
        assert all(isinstance(error, TransportError) for error in failed)
        assert failed or refused, "the kill was felt"
        session.send(queue, JmsMessage(body=b"<last/>", delivery_mode=DeliveryMode.PERSISTENT), timeout=60)
        consumer, bodies = session.consumer(queue), [b""]
        while bodies[-1] != b"<last/>":
            delivery = consumer.receive(60)
            delivery.acknowledge()
            bodies.append(delivery.message.body)
        assert {body for body, error in told.items() if error is None} <= set(bodies)

    @pytest.fixture
    def way(self, kind: str, make_proxy: Any, request: pytest.FixtureRequest) -> Any:
        """A way to the session's broker that can be cut, and what stands for the broker there."""
        there = request.getfixturevalue(BROKER[kind]).endpoints
        proxy = make_proxy(there.ports["amqp" if kind == "qpid" else "openwire"], listen_in=False)
        return proxy, SimpleNamespace(endpoints=replace(there, ports=dict.fromkeys(there.ports, proxy.port)))

    def test_a_transaction_on_a_lost_connection_is_rolled_back(self, open_jvm: Any, way: Any, queue: Queue) -> None:
        proxy, broker = way
        connection = open_jvm(broker)
        session = connection.session(transacted=True)
        session.send(queue, JmsMessage(body=b"<lost/>", delivery_mode=DeliveryMode.PERSISTENT))
        proxy.cut()
        with pytest.raises((TransportError, UnknownOutcomeError)):
            session.commit()
        session.send(queue, JmsMessage(body=b"<kept/>", delivery_mode=DeliveryMode.PERSISTENT), timeout=60)
        session.commit()
        consumer = connection.session(AckMode.AUTO).consumer(queue)
        assert consumer.receive(30).message.body == b"<kept/>"
        assert consumer.receive(0.2) is None

    def test_a_broker_that_is_gone_ends_a_send_in_time(self, open_jvm: Any, way: Any, queue: Queue) -> None:
        proxy, broker = way
        session = open_jvm(broker).session()
        proxy.refuse()
        proxy.cut()
        for _ in range(3):
            with pytest.raises(TransportError):
                session.send(queue, JmsMessage(delivery_mode=DeliveryMode.PERSISTENT), timeout=0.3)

    @pytest.mark.parametrize(
        "kind", [pytest.param("activemq", marks=LONG), "artemis", pytest.param("qpid", marks=LONG)]
    )
    def test_a_broker_that_stands_still_ends_calls_in_time(self, open_jvm: Any, way: Any, queue: Queue) -> None:
        """What was sent meanwhile may have arrived or not; what is sent when it goes on again does."""
        proxy, broker = way
        connection = open_jvm(broker, send_timeout=1.0, close_timeout=1.0)
        session, other = connection.session(), connection.session(transacted=True)
        consumer = session.consumer(queue)
        persistent = DeliveryMode.PERSISTENT
        session.send(queue, JmsMessage(body=b"<1/>", delivery_mode=persistent), timeout=60)
        other.send(queue, JmsMessage(body=b"<2/>", delivery_mode=persistent), timeout=60)
        proxy.stall(to_broker=True, to_client=True)
        try:
            with pytest.raises(UnknownOutcomeError) as caught:
                session.send(queue, JmsMessage(body=b"<3/>", delivery_mode=persistent))
            assert [message.body for message in caught.value.messages] == [b"<3/>"]
            with pytest.raises(UnknownOutcomeError) as caught:
                other.commit()
            assert [message.body for message in caught.value.messages] == [b"<2/>"]
        finally:
            proxy.flow()
        session.send(queue, JmsMessage(body=b"<4/>", delivery_mode=persistent), timeout=60)
        found = set()
        while b"<4/>" not in found:
            delivery = consumer.receive(60)
            delivery.acknowledge()
            found.add(delivery.message.body)
        assert {b"<1/>", b"<4/>"} <= found <= {b"<1/>", b"<2/>", b"<3/>", b"<4/>"}

    def test_without_reconnecting_readers_are_told(self, open_jvm: Any, way: Any, queue: Queue) -> None:
        proxy, broker = way
        consumer = open_jvm(broker, reconnect=False).session().consumer(queue)
        proxy.cut()
        with pytest.raises(TransportError):
            consumer.receive(60)


def test_a_jms_uri_says_it_all(kind: str, open_jvm: Any, queue: Queue, request: pytest.FixtureRequest) -> None:
    where = address_of(kind, request.getfixturevalue(BROKER[kind]))
    parameters = {
        "jndiConnectionFactoryName": "ConnectionFactory",
        "jndiInitialContextFactory": FACTORY[kind],
        "jndiURL": where,
    }
    uri = JmsUri("jndi", "Somewhere", FrozenMap(parameters))
    connection = open_jvm(url=str(uri), names=None)
    assert connection.session().send(queue, JmsMessage()).message_id is not None


class TestAtFault:
    @pytest.mark.parametrize(
        ("changes", "error", "said"),
        [
            pytest.param(
                {"password": "wrong-s3cret"},
                LoginRefusedError,
                r"JMS.*(password is invalid|AMQ229031: Unable to validate user|failed to authenticate)",
                marks=pytest.mark.obligation("001-I20"),
            ),
            ({"classpath": []}, ConfigError, r"classpath has no class .*classpath=\[\.\.\.\]"),
            ({"classpath": "/no/such.jar"}, ConfigError, "/no/such.jar: no such file or folder"),
            ({"names": None}, ConfigError, r"say nothing of java\.naming\.factory\.initial"),
            ({"url": "jvm:"}, ConfigError, "names no connection factory"),
            ({"url": "jvm:dynamicQueues/x"}, ConfigError, "is not a connection factory"),
            ({"url": "jvm:Nobody"}, NamingError, "Nobody"),
            ({"prefetch": 5}, ConfigError, "takes no option prefetch"),
            ({"classpath": [7]}, ConfigError, "option classpath"),
            ({"jms_version": "1.0"}, ConfigError, "JMS version"),
        ],
        ids=str,
    )
    def test_what_is_wrong_is_said(
        self, open_jvm: Any, changes: dict[str, Any], error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said) as caught:
            open_jvm(**changes)
        assert "wrong-s3cret" not in str(caught.value)

    def test_a_host_that_does_not_answer(self, kind: str) -> None:
        """It accepts the connection, and says nothing."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            where = address_of(kind, SimpleNamespace(endpoints=SimpleNamespace(ports=_Any(silent.getsockname()[1]))))
            names = NamingContext.from_properties(jndi_properties(kind, where))
            with pytest.raises(TransportError, match="no connection within"):
                connect("jvm:ConnectionFactory", names=names, classpath=jars_of(kind), connect_timeout=0.5)

    def test_a_jar_of_the_other_api(self, java: Any) -> None:
        """Qpid's client is of javax.jms."""
        jars = [jar for jar in jars_of("qpid") if "jms-api" not in jar]
        jars += [str(jar) for jar in java.jars("jakarta.jms:jakarta.jms-api:3.1.0")]
        names = NamingContext.from_properties(jndi_properties("qpid", "amqp://127.0.0.1:1"))
        with pytest.raises(
            ConfigError, match=r"javax/jms/\w+.*the client needs its own of javax\.jms and jakarta\.jms"
        ):
            connect("jvm:ConnectionFactory", names=names, classpath=jars)

    def test_no_java(self, tmp_path: Path) -> None:
        library = tmp_path / "lib" / "server" / "libjvm.so"
        library.parent.mkdir(parents=True)
        library.write_text("no library")
        code = (
            "import mtosi_jms\ntry:\n    mtosi_jms.connect('jvm:CF')\nexcept mtosi_jms.errors.ConfigError as error:\n"
        )
        code += "    print(error)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"JAVA_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith("Java does not start: ")
        assert "JAVA_HOME" in done.stdout

    def test_nobody_listens_there(self, kind: str) -> None:
        names = NamingContext.from_properties(
            jndi_properties(kind, "amqp://127.0.0.1:1" if kind == "qpid" else "tcp://127.0.0.1:1")
        )
        with pytest.raises(TransportError, match=r"(?i)connect"):
            connect("jvm:ConnectionFactory", names=names, classpath=jars_of(kind), connect_timeout=20)


class _Any(dict[str, int]):
    """One port, whatever the protocol."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    def __missing__(self, protocol: str) -> int:
        return self._port


def test_credentials_are_shown_nowhere(
    kind: str, open_jvm: Any, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a right one nor a wrong one: in no log, repr, error, list of processes or property of Java's."""
    import jpype

    broker, wrong = request.getfixturevalue(BROKER[kind]), "wrong-s3cret"
    with caplog.at_level(logging.DEBUG):
        connection = open_jvm()
        connection.session().send(Queue("jvm.credentials"), JmsMessage())
        with pytest.raises(LoginRefusedError) as caught:
            open_jvm(password=wrong)
        connection.close()
    shown = [caplog.text, repr(connection), repr(connection.options), str(caught.value), repr(caught.value)]
    shown += ["".join(traceback.format_exception(caught.value))]
    shown += [process.read_text(errors="replace") for process in [Path("/proc/self/cmdline")] if process.exists()]
    shown += [str(jpype.JClass("java.lang.System").getProperties())]
    assert [text for text in shown if broker.endpoints.password in text or wrong in text] == []


PROGRAM = """
import os, sys
from mtosi_jms.jms import JmsMessage, NamingContext, Queue
from mtosi_jms.transport import connect
names, user, password, *jars = sys.argv[1:]
connection = connect(
    "jvm:ConnectionFactory", names=NamingContext.from_properties(names), classpath=jars, user=user, password=password
)
connection.start()
session = connection.session()
consumer = session.consumer(Queue("jvm.programs"))
"""


INTERRUPTED = """
import signal
import mtosi_jms.transport.jvm
from mtosi_jms.errors import MtosiError
from mtosi_jms.transport import connect

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
seen = 0
while True:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01 * 1.3**seen)
        try:
            connect("jvm:Nobody")
        except MtosiError:
            signal.setitimer(signal.ITIMER_REAL, 0)
            break
    except KeyboardInterrupt:  # also where it comes after the error
        seen += 1
print("interrupted" if seen else "too fast")
print("started")
"""
"""Begins to connect again and again, until Java runs and says that there is no such factory."""


@pytest.mark.parametrize("kind", ["activemq", *(pytest.param(one, marks=LONG) for one in ("artemis", "qpid"))])
class TestProcesses:
    """What a program of its own sees, by whichever client: it ends, it is interrupted, it forks."""

    @pytest.fixture
    def run(self, kind: str, request: pytest.FixtureRequest) -> Iterator[Any]:
        there = request.getfixturevalue(BROKER[kind])
        login = [there.endpoints.user, there.endpoints.password]
        arguments = [jndi_properties(kind, address_of(kind, there)), *login, *jars_of(kind)]

        with ExitStack() as started:

            def start(code: str, before: str = "") -> subprocess.Popen[str]:
                command = [sys.executable, "-c", before + PROGRAM + code, *arguments]
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                started.enter_context(process)
                started.callback(process.kill)
                return process

            yield start

    def test_interrupted_while_java_starts_and_ended_without_closing(self, run: Any) -> None:
        process = run("consumer.listen(print)\nprint('ready')", before=INTERRUPTED)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "interrupted\nstarted\nready\n"), err

    def test_a_forked_child_is_refused_and_an_interrupt_ends_a_receive(self, run: Any) -> None:
        process = run(
            """
pid = os.fork()
if pid == 0:
    try:
        session.send(Queue("jvm.programs"), JmsMessage())
    except Exception as error:
        print(type(error).__name__, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print('ready', flush=True)
consumer.receive()
"""
        )
        assert process.stdout.readline() == f"{IllegalStateError.__name__}\n"
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGINT, err
        assert "KeyboardInterrupt" in err


def test_what_came_before_a_loss_is_handed_out_before_it_is_told(
    artemis: BrokerProcess, java_url: Any, make_proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost while a message of a subscription that keeps nothing is being read."""
    topic, told = Topic("jvm.before.the.loss"), []
    proxy = make_proxy(artemis.endpoints.ports["openwire"])
    url = java_url("artemis", artemis.endpoints, port=proxy.port)
    with (
        connect(url, user=artemis.endpoints.user, password=artemis.endpoints.password) as connection,
        connect_by_java("artemis", artemis) as other,
    ):
        consumer = connection.session().consumer(topic)
        consumer.on_interrupted = told.append
        connection.start()
        read = messages.Messages.read

        def cut(self: Any, *args: Any) -> Any:
            found = read(self, *args)
            monkeypatch.undo()
            proxy.refuse()
            proxy.cut()
            assert proxy.refused.acquire(timeout=60), "the loss is known: a new connection was tried"
            proxy.refuse(False)
            return found

        monkeypatch.setattr(messages.Messages, "read", cut)
        other.session().send(topic, JmsMessage(body=b"before"))
        received = consumer.receive(60)
        assert received is not None
        assert (received.message.body, told) == (b"before", [])
        for _ in range(600):
            assert consumer.receive(0.1) is None
            if told:
                break
        assert len(told) == 1


def test_threads_leave_no_java_thread_behind(open_jvm: Any, queue: Queue) -> None:
    import jpype

    connection = open_jvm()

    def send() -> None:
        with connection.session() as session:
            session.send(queue, JmsMessage())

    def java_threads() -> int:
        return int(jpype.JClass("java.lang.management.ManagementFactory").getThreadMXBean().getThreadCount())

    for _ in range(3):
        send()
    before = java_threads()
    for _ in range(20):
        thread = threading.Thread(target=send)
        thread.start()
        thread.join()
    assert java_threads() <= before + 5


def test_importing_starts_no_machine() -> None:
    code = "import mtosi_jms, sys; import mtosi_jms.transport.jvm; sys.exit('jpype' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ)).returncode == 0
