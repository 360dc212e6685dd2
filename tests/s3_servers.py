"""A server of S3 on loopback, S3Proxy. Its jar comes from Maven."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from mtosi_jms.broker import free_ports

from .java_tools import JavaTools

PATIENCE = 120.0
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-Xmx384m")
KEY, SECRET = "tester", "very-secret-1234"
REGION = "us-east-1"


@dataclass(frozen=True)
class Server:
    """A file system with a landing.

    Attributes:
        url: of the landing.
        environment: what those who read it are told; it is secret.
        put: adds a file of this machine to the landing, under a name.
    """

    url: str
    put: Callable[[Path, str], None]
    environment: dict[str, str] = field(default_factory=dict)


@contextmanager
def s3_server(java: JavaTools, folder: Path, landing: Path) -> Iterator[Server]:
    """S3Proxy with a copy of a landing in memory; it checks signatures."""
    proxy = java.jars("org.gaul:s3proxy:2.6.0")
    [port] = free_ports(1)
    said = {
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.endpoint": f"http://127.0.0.1:{port}",
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "s3proxy.ignore-unknown-headers": "true",  # of checksums
        "jclouds.provider": "transient-nio2",
        "jclouds.identity": "",
        "jclouds.credential": "",
    }
    properties, quiet = folder / "s3proxy.properties", folder / "logback.xml"
    properties.write_text("".join(f"{name}={value}\n" for name, value in said.items()))
    quiet.write_text('<configuration><root level="OFF"/></configuration>')
    command = [*JAVA, f"-Dlogback.configurationFile={quiet}", "-cp", os.pathsep.join(map(str, proxy))]
    with _running([*command, "org.gaul.s3proxy.Main", "--properties", str(properties)], folder, lambda: _listens(port)):
        _put(port, "/bucket")

        def put(file: Path, name: str) -> None:
            _put(port, f"/bucket/landing/{quote(name)}", file.read_bytes())

        for file in sorted(path for path in landing.rglob("*") if path.is_file()):
            put(file, str(file.relative_to(landing)))
        endpoint = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_MAX_ATTEMPTS": "1",
        }
        secret = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        yield Server("s3a://bucket/landing", put, {**endpoint, **secret})


@contextmanager
def _running(command: list[str], folder: Path, is_ready: Callable[[], bool]) -> Iterator[None]:
    """A process of the block's that is ready."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait(process, is_ready, folder / "server.log")
        yield
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if is_ready():
            return
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    pytest.fail(f"it did not start: {log.read_text(errors='replace')[-2000:]}")


def _listens(port: int) -> bool:
    """Whether something listens on a port of loopback."""
    with socket.socket() as asked:
        asked.settimeout(1)
        return not asked.connect_ex(("127.0.0.1", port))


def _put(port: int, path: str, body: bytes = b"") -> None:
    """PUT into S3, signed (AWS Signature Version 4)."""
    now = datetime.now(UTC)
    date, stamp = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    heads = {"host": f"127.0.0.1:{port}", "x-amz-content-sha256": digest, "x-amz-date": stamp}
    names = ";".join(heads)
    request = "\n".join(["PUT", path, "", *(f"{name}:{value}" for name, value in heads.items()), "", names, digest])
    scope = f"{date}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    sign = hmac.new(key, text.encode(), "sha256").hexdigest()
    heads["Authorization"] = f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={sign}"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("PUT", path, body, heads)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    assert answer.status == 200, said
