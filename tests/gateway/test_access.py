"""Logins and tokens over HTTP: who comes in, how often somebody may guess, and what the log says."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from mtosi_jms import simulator
from mtosi_jms.cli import main
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import Access, ByDispatcher, Endpoint, HttpOptions, HttpServer, Throttled

from .conftest import ONE, TEXT

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
