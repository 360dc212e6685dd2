"""SOAP over HTTPS, logins and tokens: which certificates are trusted, who comes in, how often somebody may guess, and
what the log says."""

from __future__ import annotations

import base64
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from mtosi_jms import simulator
from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, MtosiFault, TransportError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import Access, ByDispatcher, Endpoint, HttpOptions, HttpPeer, HttpServer, Throttled
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.transport import Connection

from .conftest import ONE, TEXT, Certificate, forwarded, http_peer, respond

KNOWN = ONE.replace("NAME", "NE-1")


@pytest.fixture(scope="module")
def ours(certificates: Any) -> Certificate:
    return certificates("ours")


@pytest.fixture(scope="module")
def others(certificates: Any) -> Certificate:
    return certificates("others")


@pytest.fixture
def server(services: Any, ours: Certificate) -> Iterator[HttpServer]:
    """Services over HTTPS, for one user and one token."""
    options = HttpOptions(logins={"os": "secret"}, tokens=frozenset({"tok"}))
    endpoint = Endpoint(ByDispatcher(Dispatcher(services)), options)
    with HttpServer(endpoint, certificate=ours.file, key=ours.key) as made:
        assert made.url.startswith("https://")
        yield made


@pytest.mark.parametrize("login", [{"login": ("os", "secret")}, {"token": "tok"}])
def test_a_certificate_that_is_trusted(
    server: HttpServer, ours: Certificate, connection: Connection, login: dict[str, Any]
) -> None:
    with forwarded(connection, server.url, ca=ours.file, **login) as stub:
        assert len(list(stub.get_all_managed_elements.batches(batch_size=30))) == 3
        assert str(stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3")).me.name) == "MD=EMS1/ME=NE-3"


def test_an_iterator_stays_below_https(server: HttpServer, ours: Certificate, client: Any, official: Any) -> None:
    asks = client(server.url, verify=ssl.create_default_context(cafile=ours.file), auth=("os", "secret"))
    _, first = asks.ask(official("6-1").replace(">500<", ">30<"))
    assert first.header.iterator_reference_uri.startswith(f"{server.url}/iterator/")


@pytest.mark.parametrize("given", ["others", None])
def test_a_certificate_that_is_not_trusted(server: HttpServer, others: Certificate, given: str | None) -> None:
    with HttpPeer(server.url, ca=given and others.file, login=("os", "secret")) as peer:
        with pytest.raises(TransportError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            peer.post(KNOWN.encode(), "")
        assert "secret" not in str(caught.value)


def test_a_certificate_of_another_address(services: Any, certificates: Any) -> None:
    elsewhere = certificates("elsewhere", "192.0.2.1")
    with (
        HttpServer(Endpoint(ByDispatcher(Dispatcher(services))), certificate=elsewhere.file, key=elsewhere.key) as made,
        HttpPeer(made.url, ca=elsewhere.file) as peer,
        pytest.raises(TransportError, match="IP address mismatch"),
    ):
        peer.post(KNOWN.encode(), "")


def test_a_requestor_hears_of_it_as_a_fault(server: HttpServer, others: Certificate, connection: Connection) -> None:
    with (
        forwarded(connection, server.url, ca=others.file) as stub,
        pytest.raises(MtosiFault, match="did not answer as it should"),
    ):
        stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3"))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_tls_at_one_end_alone(server: HttpServer, ours: Certificate, services: Any, scheme: str) -> None:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)))) as plain:
        there = plain.url if scheme == "https" else server.url
        url = f"{scheme}://{there.partition('://')[2]}"
        with HttpPeer(url, ca=ours.file) as peer, pytest.raises(TransportError):
            peer.post(KNOWN.encode(), "")


@pytest.mark.parametrize("shown", [True, False])
def test_a_peer_that_asks_for_our_certificate(ours: Certificate, others: Certificate, shown: bool) -> None:
    """Whoever listens trusts `others` alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ours.file, ours.key)
    context.load_verify_locations(others.file)
    context.verify_mode = ssl.CERT_REQUIRED
    own = {"certificate": others.file, "key": others.key} if shown else {}
    with (
        http_peer(lambda handler: respond(handler, 202), context) as url,
        HttpPeer(url, ca=ours.file, timeout=30, **own) as peer,
    ):
        if shown:
            assert peer.post(b"<a/>", "") == (202, b"")
        else:
            with pytest.raises(TransportError):
                peer.post(b"<a/>", "")


class TestFiles:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"certificate": "no-such-file"}, "no-such-file"),
            ({"key": "no-such-file"}, "certificate"),
            ({"certificate": "README.md"}, "README.md"),
        ],
    )
    def test_those_at_fault(self, given: dict[str, str], said: str, root: Path) -> None:
        given = {one: str(root / file) if file == "README.md" else file for one, file in given.items()}
        with pytest.raises(ConfigError, match=said):
            HttpServer(Endpoint(ByDispatcher(Dispatcher([]))), **given)
        with pytest.raises(ConfigError, match=said):
            HttpPeer("https://localhost/", **given)

    @pytest.mark.parametrize("file", ["no-such-file", "README.md"])
    def test_no_certificates_to_trust(self, root: Path, file: str) -> None:
        with pytest.raises(ConfigError, match=f"ca: .*{file}"):
            HttpPeer("https://localhost/", ca=str(root / file))

    def test_the_key_of_another(self, ours: Certificate, others: Certificate) -> None:
        with pytest.raises(ConfigError, match="ours"):
            HttpServer(Endpoint(ByDispatcher(Dispatcher([]))), certificate=ours.file, key=others.key)

    def test_a_key_with_a_password(self, certificates: Any) -> None:
        """Nobody is asked for it."""
        locked = certificates("locked", "127.0.0.1", "-passout", "pass:sesame")
        with pytest.raises(ConfigError, match="locked"):
            HttpServer(Endpoint(ByDispatcher(Dispatcher([]))), certificate=locked.file, key=locked.key)


@pytest.mark.obligation("SEC10")
@pytest.mark.parametrize(
    "said", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"], ids=["nothing", "half", "HTTP"]
)
def test_handshakes_that_do_not_end_count_and_are_closed(services: Any, ours: Certificate, said: bytes) -> None:
    options = HttpOptions(connections=10, read_timeout=1.0)
    made = HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), options), certificate=ours.file, key=ours.key)
    host, _, port = made.url.removeprefix("https://").partition(":")
    with made, ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((host, int(port)), timeout=60)) for _ in range(60)]
        for one in opened:
            one.sendall(said)
        with HttpPeer(made.url, ca=ours.file) as peer:
            assert peer.post(KNOWN.encode(), "any")[0] == 200
        for one in opened:
            with suppress(ConnectionError):
                while one.recv(1_000):
                    pass
        with HttpPeer(made.url, ca=ours.file) as another:  # the first one's connection may just be closed too
            assert another.post(KNOWN.encode(), "any")[0] == 200


HERE, THERE = "192.0.2.1", "192.0.2.2"
HASHED = "$2b$04$" + "x" * 53


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("authorization", "who"),
    [
        (basic("os", "right"), "os"), (basic("os", "wrong"), None), (basic("none", ""), None), (basic("os", ""), None),
        ("Bearer first", "ems"), ("bearer  first", "ems"), ("Bearer second", None), ("Basic ?", None), ("", None),
        ("Digest right", None), ("Basic " + base64.b64encode(b"\xff").decode(), None),
    ],
)  # fmt: skip
def test_who_comes_in(authorization: str, who: str | None) -> None:
    access = Access({"os": "right"}, {"ems": "first"})
    assert not access.is_open
    assert access.by_header(HERE, authorization) == who


def test_without_logins_nobody_needs_one() -> None:
    assert Access().is_open
    assert list(Access(tokens=["a", "b"]).names) == ["token 1", "token 2"]


def test_a_hash_of_bcrypt_is_a_login() -> None:
    bcrypt = pytest.importorskip("bcrypt", reason="bcrypt is not installed")
    access = Access({"os": bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode(), "broken": HASHED})
    assert [access.by_header(HERE, basic("os", word)) for word in ("right", "right", "wrong")] == ["os", "os", None]
    assert access.by_header(HERE, basic("broken", "x")) is None
    assert access.by_header(HERE, basic("broken", HASHED)) is None


@pytest.mark.obligation("SEC8")
def test_guesses_wait_longer_and_longer(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    access = Access({"os": "right"}, {"ems": "first"}, clock=lambda: now[0])
    pauses = []
    for _ in range(14):
        try:
            assert access.by_header(HERE, basic("os\n", "wrong")) is None
        except Throttled as error:
            pauses.append(error.seconds)
            with pytest.raises(Throttled):
                access.by_header(HERE, basic("os", "right"))  # who guesses does not learn that this one was right
            assert access.by_token(THERE, "first") == "ems"
            now[0] += error.seconds
            access.by_token(HERE, "second")
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lines[0] == rf"a login of 'os\n' from {HERE} was refused, the 1. in a row"
    assert "right" not in caplog.text
    now[0] += 1_000
    assert access.by_header(HERE, basic("os", "right")) == "os"


@pytest.mark.obligation("SEC8")
def test_a_client_that_guesses_is_told_to_wait() -> None:
    services = [simulator.ManagedElementEms(simulator.Network(elements=5, seed=1))]
    options = HttpOptions(logins={"os": "right"})
    data = ONE.replace("NAME", "NE-1")
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), options)) as server:
        statuses = [
            httpx.post(server.url, content=data, headers=TEXT, auth=("os", "no"), verify=False).status_code
            for _ in range(6)
        ]
        last = httpx.post(server.url, content=data, headers=TEXT, auth=("os", "no"), verify=False)
    assert statuses == [401] * 6
    assert (last.status_code, last.headers["retry-after"]) == (429, "1")


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--tokens", "short\n", "line 1: a token needs 16 characters or more"),
        ("--tokens", "ems a-token-of-some-length\nshort\n", "line 2: a token needs 16 characters or more"),
        ("--logins", "os:short\n", "line 1: a password needs 8 characters or more"),
    ],
)
@pytest.mark.obligation("SEC8")
def test_what_can_be_guessed_is_refused(tmp_path: Path, option: str, text: str, said: str, capsys: Any) -> None:
    (tmp_path / "file").write_text(text)
    assert main(["serve", "--http", "127.0.0.1:0", option, str(tmp_path / "file")]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.obligation("SEC25")
def test_a_file_that_others_may_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("a-token-of-some-length\n")
    (tmp_path / "taken").chmod(0o644)
    arguments = ["serve", "--http", "192.0.2.7:1", "--tokens", str(tmp_path / "taken")]
    assert main(arguments) == 1  # nobody can listen there
    assert f"{tmp_path / 'taken'}: others may read it: chmod 600" in capsys.readouterr().err
