"""What the tests of the STOMP transport share: both brokers, a way to them that can be cut, brokers to be killed."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess, Endpoints
from mtosi_jms.errors import TransportError, UnknownOutcomeError
from mtosi_jms.jms import DeliveryMode, JmsMessage, NamingContext, Queue
from mtosi_jms.transport.stomp import StompConnection, connect

from .proxy import Proxy

HERE = Path(__file__).parent
OF_BOTH = {"test_stomp_java", "test_stomp_selectors", "test_stomp_traps"}
"""What brokers do otherwise; of the rest `make endurance` has Artemis too, and the contract has it here."""
_numbers = itertools.count(1)
PROXY_ATTEMPTS = 7
"""One more than Artemis has threads that serve connections on two cores."""
UNANSWERED = 8.0
"""Seconds after which a connection is taken to get no answer; less than the connect time-out."""


LONG = 60.0
"""Seconds after which what should have come, or ended, is taken to hang."""


def persistent(number: int = 0) -> JmsMessage:
    """A numbered message that is stored."""
    return JmsMessage(body=b"<n>%d</n>" % number, delivery_mode=DeliveryMode.PERSISTENT)


def take(consumer: Any) -> bytes:
    """The body of the next message, which must come."""
    delivery = consumer.receive(LONG)
    assert delivery is not None
    delivery.acknowledge()
    body: bytes = delivery.message.body
    return body


def everything(consumer: Any, least: int, quiet: float = 0.4) -> list[bytes]:
    """What comes, each acknowledged: as many as must come, however slowly, and what comes soon after them; there is no
    telling of nothing but by waiting."""
    taken: list[bytes] = []
    while (delivery := consumer.receive(LONG if len(taken) < least else quiet)) is not None:
        delivery.acknowledge()
        taken.append(delivery.message.body)
    return taken


def send_surely(session: Any, queue: Queue, message: JmsMessage) -> None:
    """What an application does that can bear a message twice."""
    for _ in range(20):
        with suppress(UnknownOutcomeError):
            session.send(queue, message)
            return
    pytest.fail("twenty connections were lost")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Most of what these tests hold is the client's: of the brokers `make test` has one for it."""
    for item in items:
        if not item.path.is_relative_to(HERE) or not hasattr(item, "callspec"):
            continue
        is_cut = {"proxy", "make_proxy"} & set(item.fixturenames)  # type: ignore[attr-defined]
        if item.callspec.params.get("broker") == "artemis" and (is_cut or item.path.stem not in OF_BOTH):
            item.add_marker(pytest.mark.endurance)


@pytest.fixture(params=["activemq", "artemis"])
def broker(request: pytest.FixtureRequest) -> BrokerProcess:
    """Each broker in turn, one for all tests."""
    found: BrokerProcess = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities, a broker's certificate (127.0.0.1) and a client's of one, a client's of the other, with keys."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    folder = tmp_path_factory.mktemp("files")

    def run(text: str) -> None:
        subprocess.run(["openssl", *text.split()], cwd=folder, check=True, capture_output=True)

    (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n")
    make = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj"
    for name in ("ca", "other"):
        signs = "-x509 -days 2 -addext keyUsage=keyCertSign,cRLSign"
        run(f"{make} /CN={name} {signs} -keyout {name}.key -out {name}.pem")
    for name, by in (("broker", "ca"), ("client", "ca"), ("stranger", "other")):
        run(f"{make} /CN={name} -keyout {name}.key -out {name}.csr")
        sign = f"x509 -req -days 2 -in {name}.csr -CA {by}.pem -CAkey {by}.key -CAcreateserial -out {name}.pem"
        run(f"{sign} -extfile san" if name == "broker" else sign)
    return folder


@pytest.fixture
def open_stomp() -> Iterator[Callable[..., StompConnection]]:
    """Opens connections by URL, started, and closes them at the end."""
    made: list[StompConnection] = []

    def open_one(url: str, **options: Any) -> StompConnection:
        connection = connect(url, NamingContext(), options)
        made.append(connection)
        connection.start()
        return connection

    yield open_one
    for connection in made:
        connection.close()


@pytest.fixture
def proxy(broker: BrokerProcess) -> Iterator[Proxy]:
    """A way to the broker that can be cut."""
    made = Proxy(broker.endpoints.ports["stomp"])
    yield made
    made.close()


@pytest.fixture
def by_proxy(broker: BrokerProcess, proxy: Proxy, open_stomp: Any) -> Callable[..., StompConnection]:
    """Opens connections to the broker by way of the proxy.

    A connection that Artemis gives to a thread of its own that is locked up gets no answer; the next one gets another.
    """

    def open_one(**options: Any) -> StompConnection:
        url, attempts = f"stomp://127.0.0.1:{proxy.port}", 0
        while True:
            attempts += 1
            unanswered = threading.Event()

            def give_up(unanswered: threading.Event = unanswered) -> None:
                unanswered.set()
                proxy.cut()

            watchdog = threading.Timer(UNANSWERED, give_up)
            watchdog.start()
            try:
                made: StompConnection = open_stomp(
                    url, user=broker.endpoints.user, password=broker.endpoints.password, **options
                )
                return made
            except TransportError:
                if not unanswered.is_set() or attempts == PROXY_ATTEMPTS:
                    raise
            finally:
                watchdog.cancel()

    return open_one


@pytest.fixture(params=["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def own_broker(request: pytest.FixtureRequest, start_broker: Any, tmp_path: Path) -> Callable[[], BrokerProcess]:
    """Starts a broker of the test's own; called again it starts the same one, with what is in its store."""
    known: list[Endpoints] = []

    def start() -> BrokerProcess:
        options = {"endpoints": known[0]} if known else {"protocols": ["stomp"]}
        process: BrokerProcess = start_broker(request.param, tmp_path / "broker", **options)
        known.append(process.endpoints)
        return process

    return start


@pytest.fixture
def queue() -> Queue:
    """A queue that no other test uses."""
    return Queue(f"stomp.queue.{next(_numbers)}")
