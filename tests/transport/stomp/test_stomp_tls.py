"""TLS to real brokers: certificates are checked both ways, and what is wrong is told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess, KeyStores
from mtosi_jms.errors import TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import AckMode

pytestmark = pytest.mark.broker
SECRET = "of-the-stores"


@pytest.fixture(scope="module")
def stores(files: Path) -> KeyStores:
    """What the broker shows, and the authority of the clients that it takes."""
    if shutil.which("keytool") is None:
        pytest.skip("no keytool to make stores with")
    trust = f"-alias ca -file ca.pem -keystore trust.p12 -storetype PKCS12 -storepass {SECRET}"
    for command in (
        f"openssl pkcs12 -export -in broker.pem -inkey broker.key -out broker.p12 -passout pass:{SECRET}",
        f"keytool -importcert -noprompt {trust}",
    ):
        subprocess.run(command.split(), cwd=files, check=True, capture_output=True)
    return KeyStores(files / "broker.p12", files / "trust.p12", SECRET)


@pytest.fixture(scope="module", params=["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def tls_broker(request: pytest.FixtureRequest, stores: KeyStores, start_module_broker: Any) -> BrokerProcess:
    made: BrokerProcess = start_module_broker(request.param, protocols=["stomp+ssl"], tls=stores)
    return made


@pytest.fixture
def known(files: Path) -> dict[str, str]:
    """Options that get in."""
    names = {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client.key"}
    return {option: str(files / name) for option, name in names.items()}


@pytest.mark.endurance
def test_many_messages_both_ways(tls_broker: BrokerProcess, open_stomp: Any, known: Any, queue: Queue) -> None:
    """A backlog, acknowledged and answered while it comes in: with stomp.py's own socket this stops for good."""
    connection = open_stomp(tls_broker.endpoints.url("stomp+ssl"), **known)
    session, answers = connection.session(AckMode.AUTO), Queue(f"{queue.name}.answers")
    for number in range(500):
        session.send(queue, JmsMessage(body=b"%d" % number))
    consumer = session.consumer(queue)
    for number in range(500):
        assert consumer.receive(30).message.body == b"%d" % number
        session.send(answers, JmsMessage(body=b"y" * 2_000))
    replies = session.consumer(answers)
    assert all(replies.receive(30) is not None for _ in range(500))


@pytest.fixture
def by_tls(tls_broker: BrokerProcess, make_proxy: Any, open_stomp: Any, known: Any) -> Callable[..., tuple[Any, Any]]:
    """Opens a connection that ends with its loss; with it the proxy by which it goes."""

    def open_one(**options: Any) -> tuple[Any, Any]:
        proxy = make_proxy(tls_broker.endpoints.ports["stomp+ssl"])
        url = f"stomp+ssl://{tls_broker.endpoints.user}:{tls_broker.endpoints.password}@127.0.0.1:{proxy.port}"
        return proxy, open_stomp(url, reconnect=False, **options, **known)

    return open_one


def test_a_lost_connection_is_noticed(by_tls: Any, queue: Queue) -> None:
    proxy, connection = by_tls()
    consumer = connection.session().consumer(queue)
    proxy.cut()
    with pytest.raises(TransportError, match="lost"):
        consumer.receive(30)


def test_a_listener_that_sends(tls_broker: BrokerProcess, open_stomp: Any, known: Any, queue: Queue) -> None:
    """It answers and acknowledges a backlog while more comes in: one that reads where it writes stops for good."""
    connection = open_stomp(tls_broker.endpoints.url("stomp+ssl"), **known)
    sender, session, answers = connection.session(), connection.session(), Queue(f"{queue.name}.answers")
    for number in range(300):
        sender.send(queue, JmsMessage(body=b"%d" % number))

    def on_message(delivery: Any) -> None:
        session.send(answers, JmsMessage(body=delivery.message.body + b"y" * 2_000))
        delivery.acknowledge()

    session.consumer(queue).listen(on_message)
    replies = connection.session(AckMode.AUTO).consumer(answers)
    large = Queue(f"{queue.name}.large")
    sender.send(large, JmsMessage(body=b"x" * 3_000_000))
    assert sender.consumer(large).receive(30).message.body == b"x" * 3_000_000
    assert [int(replies.receive(30).message.body.rstrip(b"y")) for _ in range(300)] == list(range(300))


@pytest.mark.obligation("SEC29")
def test_a_broker_that_stands_still(by_tls: Any, queue: Queue) -> None:
    """Its connection stays open: the signs of life are what shows it, over TLS as well."""

    def wait_on() -> None:
        proxy, connection = by_tls(heart_beat=0.5)
        consumer = connection.session().consumer(queue)
        proxy.stall(to_broker=True, to_client=True)
        consumer.receive(30)

    with pytest.raises(TransportError, match="no sign of life"):
        wait_on()


@pytest.mark.obligation("SEC28")
def test_an_authority_that_is_not_ours(tls_broker: BrokerProcess, open_stomp: Any, known: Any, files: Path) -> None:
    with pytest.raises(TransportError, match=r"certificate is refused.*ca_file"):
        open_stomp(tls_broker.endpoints.url("stomp+ssl"), **known | {"ca_file": str(files / "other.pem")})


@pytest.mark.obligation("SEC28")
def test_a_certificate_of_another_host(tls_broker: BrokerProcess, open_stomp: Any, known: Any) -> None:
    with pytest.raises(TransportError, match="made out to this host"):
        open_stomp(tls_broker.endpoints.url("stomp+ssl").replace("127.0.0.1", "localhost"), **known)


@pytest.mark.obligation("SEC28")
def test_no_client_certificate(tls_broker: BrokerProcess, open_stomp: Any, files: Path) -> None:
    """TLS 1.3 tells it late: there is a deadline all the same."""
    with pytest.raises(TransportError):
        open_stomp(tls_broker.endpoints.url("stomp+ssl"), ca_file=files / "ca.pem", connect_timeout=5)


@pytest.mark.obligation("SEC28")
def test_no_tls_where_it_is_wanted(tls_broker: BrokerProcess, open_stomp: Any) -> None:
    url = tls_broker.endpoints.url("stomp+ssl").replace("stomp+ssl:", "stomp:")
    with pytest.raises(TransportError):
        open_stomp(url, connect_timeout=1)
