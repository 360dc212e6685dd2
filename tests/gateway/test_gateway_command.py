"""`mtosi-jms gateway` and `serve --http`, as processes."""

from __future__ import annotations

import http.server
import queue
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import TransportError
from mtosi_jms.jms import JmsMessage
from mtosi_jms.simulator._command import SERVICES_1X

httpx = pytest.importorskip("httpx", reason="the extra http is not installed")

from mtosi_jms.gateway import HttpPeer  # noqa: E402 - it needs the extra

ASK = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"
 xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><s:Header><h:header><h:activityName>OP</h:activityName>
 <h:communicationPattern>MultipleBatchResponse</h:communicationPattern><h:communicationStyle>RPC</h:communicationStyle>
 <h:requestedBatchSize>8</h:requestedBatchSize>URI</h:header></s:Header><s:Body><m:OPRequest/></s:Body></s:Envelope>"""
URI = re.compile(r"<hdr:iteratorReferenceURI>([^<]*)<")


@pytest.fixture
def begin() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Starts the command; the process and its line that begins with ready."""
    with ExitStack() as stack:

        def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
            command = [sys.executable, "-m", "mtosi_jms", *arguments]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            told = []
            for line in process.stdout:
                told.append(line)
                if line.startswith("ready"):
                    return process, line
            raise AssertionError("".join(told))

        yield start


ASK_1X = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns="tmf854.v1"><s:Header>
 <header tmf854Version="1.1"><activityName>getAllManagedElements{0}</activityName><msgName>{1}</msgName>
 <msgType>REQUEST</msgType><senderURI>os</senderURI><destinationURI>ems</destinationURI>
 <communicationPattern>MultipleBatchResponse</communicationPattern><communicationStyle>RPC</communicationStyle>
 <requestedBatchSize>8</requestedBatchSize>{2}</header></s:Header><s:Body><{1}/></s:Body></s:Envelope>"""


def elements(url: str, **options: Any) -> int:
    """How many elements come, in batches of 8."""
    with httpx.Client(timeout=60, trust_env=False, headers={"Content-Type": "text/xml"}, **options) as client:
        text = client.post(url, content=ASK.replace("OP", "getAllManagedElements").replace("URI", "")).text
        count = 0
        while True:
            count += len(set(re.findall(r"nam:value>(NE-\d+)<", text)))
            uri = URI.search(text)
            if uri is None:
                return count
            more = f"<h:iteratorReferenceURI>{uri[1]}</h:iteratorReferenceURI>"
            text = client.post(url, content=ASK.replace("OP", "getManagedElementsIterator").replace("URI", more)).text


def url_in(line: str) -> str:
    return next(word for word in line.split() if word.startswith("http"))


def test_services_over_http_through_a_broker_and_back(
    begin: Any, activemq: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTOSI_JMS_URL", activemq.endpoints.url("stomp"))
    served, line = begin("serve", "--http", "127.0.0.1:0", "--elements", "20")
    forwarding, _ = begin("gateway", "--destination", "queue:gateway.commands", "--forward", url_in(line))
    front, line = begin("gateway", "--to", "queue:gateway.commands", "--listen", "127.0.0.1:0")
    assert elements(url_in(line)) == 20
    wsdl = httpx.get(f"{url_in(line)}/?wsdl", trust_env=False)
    assert wsdl.status_code == 405, "the gateway was given no WSDL"
    for process in (front, forwarding, served):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stdout.read()


def test_a_gateway_whose_broker_is_lost_is_not_ready(begin: Any, activemq: Any, make_proxy: Any) -> None:
    where, pause = activemq.endpoints, threading.Event()
    proxy = make_proxy(where.ports["stomp"])
    url = f"stomp://{where.user}:{where.password}@127.0.0.1:{proxy.port}"
    _, line = begin("gateway", "--url", url, "--to", "queue:gateway.lost", "--listen", "127.0.0.1:0")

    def becomes(status: int) -> bool:
        for _ in range(1_000):
            if httpx.get(f"{url_in(line)}/readyz", trust_env=False).status_code == status:
                return True
            pause.wait(0.05)
        return False

    assert becomes(200)
    proxy.refuse()
    proxy.cut()
    assert becomes(503)
    proxy.refuse(False)
    assert becomes(200)


def test_services_of_mtosi_1_1_over_http(begin: Any) -> None:
    _, line = begin("serve", "--http", "127.0.0.1:0", "--elements", "20", "--release", "1.1")
    found: list[str] = []
    with httpx.Client(base_url=url_in(line), timeout=60, trust_env=False, headers={"Content-Type": "text/xml"}) as http:
        for name in SERVICES_1X:
            wsdl = http.get(f"/{name}?wsdl").text
            assert f'name="{name}"' in wsdl
            assert "tmf854.v1" in wsdl
            schema = re.search(r'schemaLocation="([^"]*)"', wsdl)
            assert schema is not None
            assert http.get(schema[1]).text.count('targetNamespace="tmf854.v1"') == 1
        asked = ("", "getAllManagedElements", "")
        for _ in range(3):
            answer = http.post("/", content=ASK_1X.format(*asked)).text
            assert "<tmf854:header" in answer
            found += re.findall(r"meNm>(NE-\d+)<", answer)
            uri = re.search(r"iteratorReferenceURI>([^<]*)<", answer)
            more = f"<iteratorReferenceURI>{uri[1] if uri else ''}</iteratorReferenceURI>"
            asked = ("Iterator", "getMeIterator", more)
        refused = http.post("/", content=ASK_1X.format("", "getAllPTPs", ""))
    assert uri is None
    assert found == [f"NE-{number}" for number in range(1, 21)]
    assert refused.status_code == 500
    assert "no operation here takes getAllPTPs" in refused.text


def test_a_login_and_a_token_over_https(begin: Any, certificates: Any, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("a-token-of-some-length\n")
    (tmp_path / "logins").write_text("os:long-secret\n")
    file, key = certificates("ours")
    options = ("--tls-certificate", file, "--tls-key", key, "--elements", "20")
    known = ("--tokens", str(tmp_path / "tokens"), "--logins", str(tmp_path / "logins"))
    _, line = begin("serve", "--http", "127.0.0.1:0", *options, *known)
    assert url_in(line).startswith("https://")
    asked = ASK.replace("OP", "getAllManagedElements").replace("URI", "").encode()
    for login, status in (({}, 401), ({"token": "a-token-of-some-length"}, 200), ({"login": ("os", "no")}, 401)):
        with HttpPeer(url_in(line), ca=file, **login) as peer:
            assert peer.post(asked, "")[0] == status
    with HttpPeer(url_in(line)) as wary, pytest.raises(TransportError, match="CERTIFICATE_VERIFY_FAILED"):
        wary.post(asked, "")
    trusted: dict[str, Any] = {"auth": ("os", "long-secret"), "verify": ssl.create_default_context(cafile=file)}
    assert elements(url_in(line), **trusted) == 20
    assert "<wsdl:definitions" in httpx.get(f"{url_in(line)}/?wsdl", trust_env=False, **trusted).text


def test_a_topic_is_posted_in_its_order(
    begin: Any, activemq: Any, certificates: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTPS with a login; what is refused comes again, and before what is behind it."""
    asked: queue.Queue[tuple[str, bytes]] = queue.Queue()
    answers = iter([500, 503, 202, 204, 200])

    class Consumer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.put((self.headers["Authorization"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(next(answers))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing is to be said."""

    file, key = certificates("ours")
    (tmp_path / "password").write_text("secret\n")
    login = ("--peer-ca", file, "--peer-user", "os", "--peer-password-file", str(tmp_path / "password"))
    url = activemq.endpoints.url("stomp")
    monkeypatch.setenv("MTOSI_JMS_URL", url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Consumer) as server, mtosi.connect(url) as connection:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        where = ("--forward", f"https://127.0.0.1:{server.server_port}/", "--parking", "queue:gateway.parked")
        posting, _ = begin("gateway", "--destination", "topic:gateway.posted", *where, *login)
        session = connection.session()
        for number in range(3):
            session.send("topic:gateway.posted", JmsMessage(body=f"<event>{number}</event>".encode()))
        came = [asked.get(timeout=60) for _ in range(5)]
        posting.send_signal(signal.SIGTERM)
        assert posting.wait(60) == 0
        server.shutdown()
    assert [body[-9:-8] for _, body in came] == [b"0", b"0", b"0", b"1", b"2"]
    assert {login for login, _ in came} == {"Basic b3M6c2VjcmV0"}


def test_a_topic_wants_a_queue_for_what_is_not_taken(activemq: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the provider does not say which is its own."""
    from mtosi_jms.cli import main

    url = activemq.endpoints.url("stomp")
    topic = ("--destination", "topic:gateway.posted", "--forward", "http://127.0.0.1:9/")
    assert main(("gateway", "--url", url, *topic)) == 1
    told = capsys.readouterr()
    assert "say where to park messages" in told.err
    assert "ready" not in told.out
