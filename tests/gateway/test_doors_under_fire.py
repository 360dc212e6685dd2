"""All doors over HTTP at once under whatever clients may send: documented statuses, bounded memory, health in time."""

from __future__ import annotations

import gzip
import http.server
import json
import os
import random
import re
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="the extra console is not installed")

from mtosi_jms.errors import MtosiError
from mtosi_jms.gateway import HttpPeer

from ..processes import Program
from .test_gateway_fuzz import DOCUMENTED, PIECES, SEEDS

SECONDS = float(os.environ.get("MTOSI_DOORS_SECONDS", "600"))
"""Of the long form."""
MOST_MEMORY = 400
"""Megabytes that the doors' process may have: its libraries, and the bounds of its options."""
IN_TIME = 200
QUIET = 60
"""Milliseconds of /healthz: in the fire, and before it on a machine that does nothing else."""
STATUSES = {
    "gateway": DOCUMENTED,
    "endpoint": DOCUMENTED,
    "console": {200, 303, 304, 400, 403, 404, 405, 408, 421, 429, 503},
    "monitor": {200, 400, 404, 408, 414, 421, 431, 501, 503, 505},
}
METHODS = (
    [b"POST"] * 6 + [b"GET"] * 4 + [b"HEAD", b"PUT", b"OPTIONS", b"TRACE", b"CONNECT", b"PRI", b"post", b"\xff", b""]
)
PATHS = [
    b"/", b"/health", b"/ready", b"/x?wsdl", b"/metrics", b"/messages?q=%00%ff", b"/dead-letters", b"/login",
    b"/logout", b"/exchange?key=" + b"k" * 9_000, b"/message/99999999999999999999", b"/landing/-1",
    b"/static/../../etc/passwd",
    b"/%2e%2e/%2e%2e/etc/passwd", b"//evil/", b"*", b"http://evil.example/", b"/\xff", b"/a b",
    b"/?" + b"a=b&" * 3_000,
    b"/topology", b"/notifications?category=%F0%9F", b"/static/%00", b"",
]  # fmt: skip
VERSIONS = [b"HTTP/1.1"] * 8 + [b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.2", b"HTTP/9", b"http/1.1", b""]
FIELDS = [
    b"Host: localhost", b"Host: evil.example", b"Host: [::1", b"Host:", b"Content-Length: 5", b"Content-Length: -1",
    b"Content-Length: 99999999999999999999", b"Content-Length: 5, 6", b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: xchunked", b"Transfer-Encoding:\tchunked",
    b"Content-Encoding: gzip", b"Content-Encoding: br", b"Content-Encoding: gzip, gzip", b"Expect: 100-continue",
    b"Expect: x", b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQ", b"Connection: close",
    b"Cookie: " + b"a=b; " * 900, b"Cookie: mtosi-console-=\xff; \"", b"X: " + b"y" * 70_000,
    b"x: y\r\n" * 500 + b"z: z",
    b"SOAPAction: \xff", b"Authorization: Basic !!!", b"Authorization: Bearer " + b"x" * 5_000, b"X-Console: live",
    b"Origin: http://evil", b"Sec-Fetch-Site: cross-site", b"If-None-Match: *", b"Accept: text/html", b" folded",
    b"no colon", b"\0: \0", b"Range: bytes=0-1", b"Trailer: x", b"X-Forwarded-For: 1.2.3.4",
]  # fmt: skip
TYPES = [
    b"text/xml", b"text/xml", b"text/xml", b"text/xml; charset=utf-16", b"text/xml; charset=cp500",
    b"text/xml; charset=\xff", b"text/xml; charset=utf-7", b"application/soap+xml; action=x",
    b"application/x-www-form-urlencoded", b"", b";;;=",
]  # fmt: skip
FORM = b"form_key=x&token=y&action=move&at=0&key=%00&to=/%0d%0a"


class Clients:
    """Clients that send anything to the doors, for some time. `urls`: of the doors, by name. `seconds`: how long.
    `seed`: of what they send."""

    def __init__(self, urls: dict[str, str], seconds: float, seed: int) -> None:
        self._urls = urls
        self._end = time.monotonic() + seconds
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=self._work, args=(seed + number,)) for number in range(4)]

    def run(self) -> None:
        """Sends until the time is over."""
        for one in self._threads:
            one.start()
        for one in self._threads:
            one.join()

    def _work(self, seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < self._end and not self.wrong:
            door = chance.choice(list(self._urls))
            sent = request(chance)
            answer = _told(self._urls[door], sent, chance)
            for status in re.findall(rb"(?:^|\n)HTTP/1\.[01] (\d+)", answer):
                self.statuses[door, int(status)] += 1
                if int(status) not in STATUSES[door] | {100}:
                    self.wrong.append(f"{door}: {status!r} for {sent[:300]!r}")
            if b"Traceback" in answer:
                self.wrong.append(f"{door}: a traceback for {sent[:300]!r}")


def request(chance: random.Random) -> bytes:
    """A request, or what looks like one."""
    if chance.random() < 0.05:
        return chance.randbytes(chance.randrange(1, 3_000))
    body = _body(chance)
    fields = chance.sample(FIELDS, chance.choice([0, 0, 0, 1, 1, 2, 3, 5]))
    in_order = chance.random() < 0.7
    if in_order:
        fields += [b"Host: 127.0.0.1", b"Content-Type: " + chance.choice(TYPES)]
    if chance.random() < 0.2:
        body = gzip.compress(body)
        fields.append(b"Content-Encoding: gzip")
    if chance.random() < 0.4:
        fields.append(b"Transfer-Encoding: chunked")
        body = _chunked(chance, body)
    elif in_order:
        fields.append(b"Content-Length: %d" % (len(body) + chance.choice([0] * 9 + [-1, 1, 10**6])))
    line = b" ".join((chance.choice(METHODS), chance.choice(PATHS), chance.choice(VERSIONS)))
    if in_order:
        line = b"POST /login HTTP/1.1" if FORM[:9] == body[:9] else b"POST / HTTP/1.1"
    if chance.random() < 0.2:
        line = b"GET " + chance.choice(PATHS) + b" HTTP/1.1"
    return b"\r\n".join([line, *fields, b"", b""]) + body


def _body(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.1:
        return chance.choice([FORM, FORM * 2_000, b"form_key=" + b"%41" * 30_000])
    if kind < 0.15:  # larger than allowed, in one way or the other
        return chance.choice([b"<a>" + b" " * 2**23, b"<a/>" * 10**6, b"<a " + b"b='' " * 10**6, b"<a>" * 10**6])
    data = chance.choice(SEEDS)
    for _ in range(chance.randrange(4)):
        at, upto = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        data = data[:at] + chance.choice([*PIECES, chance.randbytes(3)]) + data[chance.choice([at, upto]) :]
        data = data[: 2**20]
        if not data:
            data = b"<"
    if chance.random() < 0.15:
        codec = chance.choice(["utf-16", "utf-16-be", "utf-32", "cp500", "latin-1"])
        data = data.decode("latin-1").encode(codec, "replace")
    return data


def _chunked(chance: random.Random, body: bytes) -> bytes:
    size = chance.choice([1, 7, 100, 4_096, 2**20])
    parts = [body[at : at + size] for at in range(0, min(len(body), 3_000 * size), size)]
    end = chance.choice(
        [b"0\r\n\r\n"] * 5 + [b"", b"0\r\n", b"x\r\n", b"-1\r\n\r\n", b"0\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"]
    )
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + end


def _told(url: str, data: bytes, chance: random.Random) -> bytes:
    """What comes back; some clients hang up at once, some read nothing, and some send slowly."""
    host, _, port = url.removeprefix("http://").partition(":")
    found = b""
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=1.0) as raw:
        how = chance.random()
        if how < 0.1:
            data = data[: chance.randrange(len(data))]
        raw.sendall(data)
        if how < 0.2:
            return b""
        if how < 0.7:
            raw.shutdown(socket.SHUT_WR)
        while part := raw.recv(65_536):
            found += part
    return found


def peak(pid: int) -> int:
    """Megabytes that a process has had at most."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize("seconds", [2.0, pytest.param(SECONDS, marks=pytest.mark.endurance)])
def test_doors(seconds: float) -> None:
    seed = 1 if seconds == 2.0 else random.randrange(2**31)
    script = [sys.executable, Path(__file__).with_name("doors_process.py")]
    with tempfile.TemporaryFile("w+") as log, Program(script, stderr=log) as doors:
        urls = json.loads(doors.line())
        with Program([*script, "probe", *urls.values()]) as prober:

            def longest() -> int:
                prober.say("")
                return int(prober.line())

            longest()
            threading.Event().wait(min(seconds, 10.0) / 2)  # what the machine does without us
            before = longest()
            clients = Clients(urls, seconds, seed)
            clients.run()
            slowest, memory = longest(), peak(doors.process.pid)
        assert doors.process.poll() is None
        assert doors.process.stdin is not None
        doors.process.stdin.close()
        doors.process.wait(60)
        log.seek(0)
        logged = log.readlines()
    print(f"seed {seed}: {sum(clients.statuses.values())} answers, {memory} MB, /healthz {slowest} ms, {before} before")
    print(sorted(clients.statuses.items()))
    assert not clients.wrong, (seed, clients.wrong)
    # What a client sends and the supplier cannot take or answer is told there as an error.
    told = re.compile("Traceback|ERROR(?!.*(a request is refused[:,] |a reply has nowhere to go))")
    assert not [line for line in logged if told.search(line)], (seed, logged[-60:])
    assert memory < MOST_MEMORY
    if seconds > 2.0 and before < QUIET:
        assert slowest < IN_TIME
    assert {door for door, _ in clients.statuses} == set(STATUSES)


ANSWER_FIELDS = [
    b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 99999999999", b"Transfer-Encoding: chunked",
    b"Content-Encoding: gzip", b"Content-Encoding: br", b"Content-Type: text/xml; charset=\xff", b"no colon",
    b"Content-Type: text/xml; charset=utf-16", b"Location: http://evil/", b"X: " + b"y" * 200_000, b"Set-Cookie: \xff",
    b"x: y\r\n" * 5_000 + b"z: z", b"\0: x", b"Connection: close", b"Upgrade: h2c", b" folded",
]  # fmt: skip
LINES = [b"HTTP/1.1 %d OK" % status for status in (200, 500, 100, 101, 199, 204, 301, 304, 401, 999, 600, 0)]
LINES += [
    b"HTTP/1.1 200",
    b"HTTP/2 200 OK",
    b"",
    b"HTTP/1.1 abc OK",
    b"HTTP/1.1 200 \xff\0",
    b"<html>",
    b"HTTP/0.9 200 OK",
]


@pytest.mark.parametrize("seconds", [1.0, pytest.param(SECONDS / 10, marks=pytest.mark.endurance)])
def test_a_peer_that_answers_anything(seconds: float) -> None:
    """A status and content, or an error of ours."""
    chance = random.Random(1)

    class Answers(http.server.BaseHTTPRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(65_536)
                body = _body(chance)
                if chance.random() < 0.3:
                    body = gzip.compress(body)
                if chance.random() < 0.3:
                    body = _chunked(chance, body)
                fields = chance.sample(ANSWER_FIELDS, chance.randrange(4))
                self.request.sendall(b"\r\n".join([chance.choice(LINES), *fields, b"", b""]) + body)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as served:
        served.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        results: Counter[str] = Counter()
        try:
            url = f"http://127.0.0.1:{served.server_port}/"
            with HttpPeer(url, timeout=2.0, largest=2**21, elements=20_000) as peer:
                end = time.monotonic() + seconds
                while time.monotonic() < end or results.total() < 100:  # which has both, on a slow machine too
                    try:
                        results[str(peer.post(SEEDS[0], "any")[0])] += 1
                    except MtosiError as error:
                        results[type(error).__name__] += 1
        finally:
            served.shutdown()
            thread.join()
    assert results["TransportError"], results
    assert results["200"], results
