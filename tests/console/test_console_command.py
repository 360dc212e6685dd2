"""`mtosi-jms console`: what it takes and refuses, and that it ends in order."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main, parser_for
from mtosi_jms.cli.running import Stop
from mtosi_jms.console._command import serve
from mtosi_jms.jms import JmsMessage, Queue

FORM_KEY = re.compile(r'name="form_key" value="([^"]+)"')


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=60) as found:
        yield found


def test_it_serves_and_ends(outbox: Path, client: httpx.Client) -> None:
    command = [sys.executable, "-m", "mtosi_jms", "console", "--spool", str(outbox), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready: http://127.0.0.1:"), line
        page = client.get(line.split()[1] + "/dead-letters/spool/0").text
        assert "dead-1" in page
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("console", "nothing to watch"),
        ("console --watch topic:A", "need --url"),
        ("console --dead-letters queue:A", "need --url"),
        ("console --landing DIR --listen 0.0.0.0:0", "it needs --tokens"),
        ("console --landing DIR --listen example.org:80", "it needs --tokens"),
    ],
)
@pytest.mark.obligation("SEC26")
def test_wrong_usage(
    words: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MTOSI_JMS_URL", raising=False)
    assert main(shlex.split(words)) == 2
    assert says in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--landing", "--spool"):
        assert main(["console", option, str(tmp_path / "gone"), "--listen", "127.0.0.1:0"]) == 1
        assert "gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    "provider", ["memory", *(pytest.param(name, marks=pytest.mark.broker) for name in ("activemq", "artemis"))]
)
def test_a_dead_letter_is_moved_from_queue_to_queue(
    tmp_path: Path,
    background: Any,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    provider: str,
) -> None:
    """With the record, and by the ways, of `mtosi-jms queue move`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = "memory:console-command"
    if provider != "memory":
        url = request.getfixturevalue(provider).endpoints.url("stomp")
    dead, alive = Queue(f"console-{provider}-DLQ"), Queue(f"console-{provider}-EMS")
    told: list[str] = []
    monkeypatch.setattr("mtosi_jms.cli.terminal.ready", told.append)
    words = ["--url", url, "--dead-letters", str(dead), "--interval", "0.05", "--listen", "127.0.0.1:0"]
    args = parser_for("console").parse_args(["console", *words, "--allow-actions"])
    parked = {"MTOSIX_originalDestination": str(alive), "MTOSIX_parkedReason": "DecodeError"}
    with mtosi.connect(url) as connection, connection.session() as session, Stop() as stop:
        for _ in range(2):
            session.send(dead, JmsMessage(body=b"<a/>", properties=parked))
        sent = list(session.headers(dead))
        running = background(lambda: serve(args, stop))
        try:
            while not told:
                assert not running.done(), running.result()
            base = told[0].split()[1]
            place, page = f"{base}/dead-letters/queue/0", ""
            while str(sent[1].message_id) not in page:
                page = client.get(place).text
            form = {"form_key": FORM_KEY.search(page)[1], "action": "move", "key": str(sent[1].message_id)}  # type: ignore[index]
            for to in (str(alive), "topic:T"):
                answer = client.post(place, data=form)
                confirmed = {**form, "do": "confirm", "ticket": answer.headers["location"].partition("=")[2], "to": to}
                assert client.post(f"{base}/dead-letters", data=confirmed).status_code == 303
                form["key"] = str(sent[0].message_id)
            page = ""
            while "a topic keeps no messages" not in page:
                page = client.get(f"{base}/dead-letters").text
            assert [one.message_id for one in session.headers(dead)] == [sent[0].message_id]
            (moved,) = session.headers(alive)
            assert moved.properties["MTOSIX_parkedReason"] == "DecodeError"
        finally:
            stop.set()
        assert running.result(60) == 0
    assert len(list((tmp_path / "mtosi-jms" / "queue").glob("*/*.xml"))) == 1
