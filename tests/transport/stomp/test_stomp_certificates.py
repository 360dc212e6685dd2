"""Client certificates that are missing, refused or cannot be read: errors that name the option."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import AuthenticationError, ConfigError, TransportError

PASSWORD = "of-the-key"


@pytest.fixture(scope="module")
def files(files: Path) -> Path:
    """A key with a password too, that with its certificate, and what is no certificate."""
    locked = f"ec -in client.key -aes256 -passout pass:{PASSWORD} -out locked.key"
    subprocess.run(["openssl", *locked.split()], cwd=files, check=True, capture_output=True)
    (files / "both.pem").write_bytes((files / "client.pem").read_bytes() + (files / "locked.key").read_bytes())
    (files / "text.pem").write_text("no certificate")
    return files


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def port(request: pytest.FixtureRequest, files: Path) -> Iterator[int]:
    """A server that wants certificates of `ca`, and answers CONNECT."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = request.param
    context.load_cert_chain(files / "broker.pem", files / "broker.key")
    context.load_verify_locations(files / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as client:
                    client.recv(4096)
                    client.sendall(b"CONNECTED\nversion:1.2\nserver:ActiveMQ/5.17\n\n\0")
                    while client.recv(4096):
                        pass
            except OSError:
                plain.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield listening.getsockname()[1]
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def connect(port: int, files: Path, **options: Any) -> Any:
    named = {name: str(files / value) if name.endswith("_file") else value for name, value in options.items()}
    return mtosi.connect(
        f"stomp+ssl://127.0.0.1:{port}", **{"ca_file": str(files / "ca.pem"), **named}, send_timeout=0.1
    )


def test_one_that_is_known_gets_in(port: int, files: Path) -> None:
    connect(port, files, cert_file="client.pem", key_file="client.key").close()
    connect(port, files, cert_file="client.pem", key_file="locked.key", key_password=PASSWORD).close()
    connect(port, files, cert_file="both.pem", key_password=PASSWORD).close()


@pytest.mark.parametrize("options", [{}, {"cert_file": "stranger.pem", "key_file": "stranger.key"}])
def test_one_that_is_missing_or_refused(port: int, files: Path, options: dict[str, str]) -> None:
    with pytest.raises(TransportError, match="cert_file"):
        connect(port, files, **options)


def test_a_refusal_that_is_told_is_one_of_the_login(files: Path) -> None:
    """Another attempt would help no more than with a wrong password."""
    from mtosi_jms.transport.stomp import Address, StompOptions
    from mtosi_jms.transport.stomp._link import unreachable

    for reason in ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE", "TLSV1_ALERT_UNKNOWN_CA"):
        told = ssl.SSLError(1, reason)
        told.reason = reason
        assert isinstance(unreachable(Address("host", 1), told, StompOptions()), AuthenticationError)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"cert_file": "client.pem", "key_file": "locked.key"}, "key_password: it is missing"),
        ({"cert_file": "both.pem"}, "key_password: it is missing"),
        ({"cert_file": "client.pem", "key_file": "locked.key", "key_password": "x"}, "key_password: it does not open"),
        ({"cert_file": "both.pem", "key_password": "x" * 5000}, "key_password: it does not open"),
        ({"cert_file": "client.pem", "key_file": "stranger.key"}, "key_file: the key in"),
        ({"cert_file": "client.pem", "key_file": "missing"}, "key_file: .*missing: No such file"),
        ({"cert_file": "missing", "key_file": "client.key"}, "cert_file: .*missing: No such file"),
        ({"cert_file": "client.pem"}, "cert_file: "),
        ({"cert_file": "text.pem", "key_file": "client.key"}, "cert_file"),
        ({"key_file": "client.key"}, "key_file: it needs cert_file"),
        ({"key_password": "x"}, "key_password: it needs cert_file"),
        ({"ca_file": "text.pem"}, "ca_file: "),
        ({"ca_file": "missing"}, "ca_file: .*missing: No such file"),
    ],
)
def test_files_that_cannot_be_used(files: Path, options: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=f"option .*{named}") as raised:
        connect(1, files, **options)
    assert "xxxx" not in str(raised.value)
