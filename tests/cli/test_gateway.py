"""`mtosi-jms gateway` and `serve --http`, as processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx", reason="the extra http is not installed")

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


def test_logins(begin: Any, tmp_path: Path) -> None:
    (tmp_path / "logins").write_text("os:secret\n")
    _, line = begin("serve", "--http", "127.0.0.1:0", "--elements", "20", "--logins", str(tmp_path / "logins"))
    assert (
        httpx.post(url_in(line), content=ASK, headers={"Content-Type": "text/xml"}, trust_env=False).status_code == 401
    )
    assert elements(url_in(line), auth=("os", "secret")) == 20
    assert "<wsdl:definitions" in httpx.get(f"{url_in(line)}/?wsdl", auth=("os", "secret"), trust_env=False).text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gateway", "--url", "memory:"), "one of the arguments --to --forward is required"),
        (("gateway", "--url", "memory:", "--forward", "http://a"), "go together"),
        (("gateway", "--url", "memory:", "--to", "queue:a", "--listen", "here"), "HOST:PORT"),
        (("gateway", "--url", "memory:", "--to", "queue:a", "--topic", "x"), "CATEGORY=NAME"),
        (("gateway", "--url", "memory:", "--destination", "queue:a", "--forward", "ftp://a"), "http: or https:"),
        (("gateway", "--url", "memory:", "--to", "queue:a", "--logins", "no-such-file"), "no-such-file"),
        (("serve", "--http", "192.0.2.7:1"), "cannot listen"),
        (("serve",), "--http"),
    ],
)
def test_wrong_usage(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtosi_jms.cli import main

    monkeypatch.delenv("MTOSI_JMS_URL", raising=False)
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    assert code in (1, 2)
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
