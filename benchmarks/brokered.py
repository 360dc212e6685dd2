"""This SDK compared with bare stomp.py over real brokers, in turns in one run; each role is a process of its own.

Both sides send the same frames. This SDK has two lines: the roles as users write them, and the transport alone, which
gets finished messages, as bare stomp.py does. If there is a JDK, a Java program with the broker's own client does the
same work.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import java
from measure import Comparison, Side, SkippedError, compare
from messaging import WANTED, header, sent
from network import batch, managed_element
from roles import Role

from mtosi_jms.broker import KINDS, BrokerProcess, Endpoints, free_ports
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.transport._session_core import ConsumerSpec
from mtosi_jms.transport.stomp._dialect import ActiveMQ, Artemis, Dialect
from mtosi_jms.transport.stomp._messages import outgoing

BARE = "bare stomp.py"
JAVA = "plain Java"
TRANSPORT = "the transport alone"
MILLION = 1_000_000
ELEMENTS = 432
"""Managed elements of a batch: nearly 500 kB of XML."""
STARTERS: dict[str, tuple[Any, type[Dialect]]] = {
    "activemq": (KINDS["activemq"].start, ActiveMQ),
    "artemis": (KINDS["artemis"].start, Artemis),
}


def activemq_request(*, quick: bool) -> Comparison:
    """A hundred requests in flight."""
    return _requests("activemq", quick)


def activemq_batches(*, quick: bool) -> Comparison:
    """Large partial answers."""
    return _batches("activemq", quick)


def activemq_stream(*, quick: bool) -> Comparison:
    """Small persistent messages in transactions."""
    return _stream("activemq", quick)


def artemis_request(*, quick: bool) -> Comparison:
    """A hundred requests in flight."""
    return _requests("artemis", quick)


def artemis_batches(*, quick: bool) -> Comparison:
    """Large partial answers."""
    return _batches("artemis", quick)


def artemis_stream(*, quick: bool) -> Comparison:
    """Small persistent messages in transactions."""
    return _stream("artemis", quick)


def _requests(name: str, quick: bool) -> Comparison:
    with running(name) as (broker, dialect):
        plan = _Plan(broker, dialect)
        response = GetManagedElementResponse(me=managed_element(7))
        plan.request(header("getManagedElement", "REQUEST"), GetManagedElementRequest(me_ref=WANTED))
        plan.answer(header("getManagedElement", "RESPONSE"), response)
        found = _Rounds(broker, "request", plan, 200 if quick else 2_000)
        found.side("threads", "sdk threads")
        found.side("asyncio", "sdk asyncio")
        if plan.facts["jvm"]:
            found.side("jvm:, threads", "sdk threads jvm")
            found.side("jvm:, asyncio", "sdk asyncio jvm")
        found.side(TRANSPORT, "sdk transport")
        title = f"SimpleResponse over {dialect.provider}, 100 in flight"
        return found.compare(f"{name}-request-100", title, "round trips", quick)


def _batches(name: str, quick: bool) -> Comparison:
    count = 2 if quick else 10
    with running(name) as (broker, dialect):
        plan = _Plan(broker, dialect, batch=ELEMENTS, batches=count)
        plan.request(header("getAllManagedElements", "REQUEST"), GetManagedElementRequest(me_ref=WANTED))
        for number in range(1, count + 1):
            head = header("getAllManagedElements", "RESPONSE", number=number, last=number == count)
            plan.answer(head, batch((number - 1) * ELEMENTS + 1, ELEMENTS))
        size = sum(len(answer["body"].encode()) for answer in plan.facts["answers"])
        found = _Rounds(broker, "batches", plan, 1 if quick else 5)
        found.side("handed over", "sdk lazily")
        found.side("every leaf read", "sdk leaves")
        if plan.facts["jvm"]:
            found.side("jvm:, handed over", "sdk lazily jvm")
        found.side(TRANSPORT, "sdk transport")
        title = f"MultipleBatchResponse over {dialect.provider}, batches of {size / count / 1000:,.0f} kB"
        megabytes = size * found.amount / MILLION
        return found.compare(f"{name}-batches", title, "batches", quick, megabytes)


def _stream(name: str, quick: bool) -> Comparison:
    with running(name) as (broker, dialect):
        plan = _Plan(broker, dialect, transaction=100)
        plan.message(b"x" * 1_000)
        found = _Rounds(broker, "stream", plan, 400 if quick else 5_000)
        found.side("sessions", "sdk transport")
        if plan.facts["jvm"]:
            found.side("jvm:", "sdk transport jvm")
        title = f"persistent messages of 1 kB over {dialect.provider}, 100 in a transaction"
        return found.compare(f"{name}-stream", title, "messages", quick)


@contextmanager
def running(name: str) -> Iterator[tuple[BrokerProcess, Dialect]]:
    """Start a broker on loopback, and return it with its dialect of STOMP.

    Raises:
        SkippedError: the broker is not available.
    """
    start, dialect = STARTERS[name]
    stomp, openwire = free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        try:
            endpoints = Endpoints({"stomp": stomp, "openwire": openwire}, "bench", "for-loopback")
            broker = start(Path(folder), endpoints)
        except ConfigError as error:
            raise SkippedError(str(error)) from error
        try:
            broker.wait_until_ready()
            yield broker, dialect("")
        finally:
            broker.kill()


class _Plan:
    """The facts for both sides: the address of the broker, and the frames to exchange.

    Args:
        broker: the broker.
        dialect: of the broker.
        facts: further facts.
    """

    def __init__(self, broker: BrokerProcess, dialect: Dialect, **facts: Any) -> None:
        self._dialect = dialect
        self.facts: dict[str, Any] = {
            "port": broker.endpoints.ports["stomp"],
            **_java_facts(dialect, broker.endpoints),
            "user": broker.endpoints.user,
            "password": broker.endpoints.password,
            "subscribing": dialect.subscribing(ConsumerSpec(Queue("ANY")), 500),
            "transacted_receive": isinstance(dialect, ActiveMQ),
            "answers": [],
            "batch": 0,
            "batches": 0,
            **facts,
        }

    def request(self, head: Any, body: Any) -> None:
        """Set the request."""
        self.facts["request"] = self._frame(sent(head, body))

    def answer(self, head: Any, body: Any) -> None:
        """Add one of the answers."""
        self.facts["answers"].append(self._frame(sent(head, body)))

    def message(self, body: bytes) -> None:
        """Set the PERSISTENT message that has no answer."""
        message = JmsMessage(body=body, delivery_mode=DeliveryMode.PERSISTENT)
        self.facts["message"] = self._frame(message)

    def between(self, name: str) -> dict[str, Any]:
        """Return the plan with queues for one pair of roles."""
        queue, replies = Queue(f"BENCH.{name}.EMS"), Queue(f"BENCH.{name}.OS")
        plan = {
            **self.facts,
            "queue": self._dialect.address(queue),
            "replies": self._dialect.address(replies),
            "queue_name": queue.name,
            "replies_name": replies.name,
        }
        if request := plan.get("request"):
            headers = {**request["headers"], "reply-to": self._dialect.reply_address(replies)}
            plan["request"] = {**request, "headers": headers}
        return plan

    def _frame(self, message: JmsMessage) -> dict[str, Any]:
        stamped = message.stamped(Queue("ANY"), message_id=None, timestamp_ms=int(time.time() * 1000))
        headers, body = outgoing(self._dialect, "", stamped, None)
        del headers["destination"]
        return {"headers": headers, "body": body.decode(), "properties": dict(message.properties)}


def _java_facts(dialect: Dialect, endpoints: Endpoints) -> dict[str, str]:
    """Return the facts for the Java client of the same broker; without `jvm` if JPype is not installed."""
    kind = "activemq" if isinstance(dialect, ActiveMQ) else "artemis"
    factory, address = KINDS[kind].jndi_factory, f"tcp://127.0.0.1:{endpoints.ports['openwire']}"
    query = {"classpath": kind, "jndiInitialContextFactory": factory, "jndiURL": address}
    url = f"jvm:ConnectionFactory?{urlencode(query)}" if find_spec("jpype") else ""
    return {"jvm": url, "client": kind, "jndi_factory": factory, "jndi_url": address}


class _Pair:
    """Two roles of one side, and the processor time that they use."""

    def __init__(self, stack: ExitStack, broker: BrokerProcess, scenario: str, plan: _Plan, module: str) -> None:
        facts = plan.between(module.replace(" ", "."))
        self.answerer = Role(module, scenario, facts, answers=True)
        stack.callback(self.answerer.close)
        self.asker = Role(module, scenario, facts, answers=False)
        stack.callback(self.asker.close)
        for role in (self.answerer, self.asker):
            role.answer()  # it is ready
        self._broker = broker
        self.used: list[tuple[float, float, float]] = []

    def run(self, amount: int) -> int:
        """One round."""
        before = self._cpu()
        for role in (self.answerer, self.asker):
            role.tell(f"run {amount}")
        done = int(self.asker.answer())
        self.answerer.answer()
        self.used.append(tuple((b - a) / done * MILLION for a, b in zip(before, self._cpu(), strict=True)))  # type: ignore[arg-type]
        return done

    def _cpu(self) -> tuple[float, float, float]:
        return self.asker.cpu(), self.answerer.cpu(), _cpu_of(self._broker.pid)

    def note(self, name: str) -> str:
        """Return the processor time of one exchange or message in microseconds, the median of the rounds."""
        asks, answers, broker = (statistics.median(column) for column in zip(*self.used[1:], strict=True))
        return f"{name}: {asks:,.0f} µs of processor who begins, {answers:,.0f} who answers, {broker:,.0f} the broker"


class _Rounds:
    """The sides of one benchmark."""

    def __init__(self, broker: BrokerProcess, scenario: str, plan: _Plan, amount: int) -> None:
        self.amount = amount
        self._broker, self._scenario, self._plan = broker, scenario, plan
        self._modules: list[tuple[str, str]] = []

    def side(self, name: str, module: str) -> None:
        """One more line of ours."""
        self._modules.append((name, module))

    def compare(self, name: str, title: str, unit: str, quick: bool, megabytes: float = 0.0) -> Comparison:
        """Run all sides in turns."""
        peers, missing = [(BARE, "bare"), (JAVA, "java")], ""
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            try:
                self._plan.facts |= {"folder": folder, "java": java.compiled(self._plan.facts["client"], Path(folder))}
            except SkippedError as why:
                del peers[1]
                missing = f"no line of {JAVA}: {why}"
            pairs = {
                line: _Pair(stack, self._broker, self._scenario, self._plan, module)
                for line, module in [*self._modules, *peers]
            }
            sides = [
                Side(line, "peer" if line in dict(peers) else "ours", lambda pair=pair: pair.run(self.amount))  # type: ignore[misc]
                for line, pair in pairs.items()
            ]
            found = compare(name, title, unit, sides, rounds=2 if quick else 7, megabytes=megabytes)
        bare = next(line for line in found.lines if line.name == BARE)
        for line in found.lines:
            share = statistics.median(b / a for a, b in zip(line.seconds, bare.seconds, strict=True))
            of_bare = "" if line is bare else f"{share:.2f} of bare stomp.py; "
            found.notes.append(of_bare + pairs[line.name].note(line.name))
        found.notes += [missing] if missing else []
        return found


def _cpu_of(pid: int) -> float:
    """Return the processor time of another process in seconds; 0 if the system does not give it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
