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
KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256"


def _files(name: str, kind: str) -> list[str]:
    return ["-keyout", f"{name}.key", "-out", f"{name}.{kind}"]


class Certificates:
    """An authority, the broker's certificate for 127.0.0.1, a client's, and another authority that signed neither."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("ca", "other"):
            make = f"req -x509 {KEY} -nodes -days 2 -subj /CN={name} -addext keyUsage=keyCertSign,cRLSign"
            self._openssl(*make.split(), *_files(name, "pem"))
        (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n")
        for name, extra in (("broker", ["-extfile", "san"]), ("client", [])):
            self._openssl(
                *f"req {KEY} -nodes -subj /CN={name}".split(),
                *_files(name, "csr"),
            )
            sign = f"x509 -req -days 2 -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem".split()
            self._openssl(*sign, *extra)
        store = f"pkcs12 -export -in broker.pem -inkey broker.key -out broker.p12 -passout pass:{SECRET}".split()
        self._openssl(*store)
        trust = "keytool -importcert -noprompt -alias ca -file ca.pem -keystore trust.p12 -storetype PKCS12 -storepass"
        subprocess.run([*trust.split(), SECRET], cwd=folder, check=True, capture_output=True)
        self.stores = KeyStores(folder / "broker.p12", folder / "trust.p12", SECRET)

    def __call__(self, name: str) -> str:
        return str(self.folder / name)

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    missing = [tool for tool in ("openssl", "keytool") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} to make certificates with")
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def tls_broker(request: pytest.FixtureRequest, certificates: Certificates, start_module_broker: Any) -> BrokerProcess:
    made: BrokerProcess = start_module_broker(request.param, protocols=["stomp+ssl"], tls=certificates.stores)
    return made


@pytest.fixture
def known(certificates: Certificates) -> dict[str, str]:
    """Options that get in."""
    return {
        "ca_file": certificates("ca.pem"),
        "cert_file": certificates("client.pem"),
        "key_file": certificates("client.key"),
    }


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
def test_an_authority_that_is_not_ours(
    tls_broker: BrokerProcess, open_stomp: Any, known: Any, certificates: Any
) -> None:
    with pytest.raises(TransportError, match=r"certificate is refused.*ca_file"):
        open_stomp(tls_broker.endpoints.url("stomp+ssl"), **known | {"ca_file": certificates("other.pem")})


@pytest.mark.obligation("SEC28")
def test_a_certificate_of_another_host(tls_broker: BrokerProcess, open_stomp: Any, known: Any) -> None:
    with pytest.raises(TransportError, match="made out to this host"):
        open_stomp(tls_broker.endpoints.url("stomp+ssl").replace("127.0.0.1", "localhost"), **known)


@pytest.mark.obligation("SEC28")
def test_no_client_certificate(tls_broker: BrokerProcess, open_stomp: Any, certificates: Any) -> None:
    """TLS 1.3 tells it late: there is a deadline all the same."""
    with pytest.raises(TransportError):
        open_stomp(tls_broker.endpoints.url("stomp+ssl"), ca_file=certificates("ca.pem"), connect_timeout=5)


@pytest.mark.obligation("SEC28")
def test_no_tls_where_it_is_wanted(tls_broker: BrokerProcess, open_stomp: Any) -> None:
    url = tls_broker.endpoints.url("stomp+ssl").replace("stomp+ssl:", "stomp:")
    with pytest.raises(TransportError):
        open_stomp(url, connect_timeout=1)
