"""Forms that do not come, or not to their end: a status, and no traceback."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

pytest.importorskip("jinja2", reason="the extra console is not installed")

import httpx

from mtosi_jms.console import Console, Traffic
from mtosi_jms.gateway import HttpOptions, HttpServer

BEGUN = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken="


@pytest.fixture
def server() -> Iterator[HttpServer]:
    console = Console(Traffic(), tokens={"somebody": "0123456789abcdef"})
    console.options = HttpOptions(read_timeout=0.3)
    with HttpServer(console) as made:
        yield made


def connected(server: HttpServer) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


@pytest.mark.obligation("SEC9")
def test_a_form_that_does_not_come(server: HttpServer) -> None:
    with connected(server) as raw:
        raw.sendall(BEGUN)
        assert raw.recv(1_000).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_goes_in_the_middle(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    with connected(server) as raw:
        raw.sendall(BEGUN)
    assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


@pytest.mark.parametrize("host", ["127.0.0.1:80/static/", "[::1]:1/login?", "localhost:80@x/static/"])
def test_a_path_in_the_host_opens_no_page(server: HttpServer, host: str) -> None:
    assert httpx.get(f"{server.url}/messages", headers={"Host": host}, timeout=60).status_code == 421
