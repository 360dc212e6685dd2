"""serve, request, publish, subscribe and replay as a user runs them: processes of their own on a real broker."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from mtosi_jms.broker import BrokerProcess
from mtosi_jms.cli import main
from mtosi_jms.simulator import Network
from mtosi_jms.spool import entries
from mtosi_jms.xmlbind import encode

pytestmark = pytest.mark.broker
PATIENCE = 180
_numbers = itertools.count(1)

Started = subprocess.Popen[str]
Run = Callable[..., tuple[int, str, str]]


class Shell:
    """Runs commands against one broker.

    Attributes:
        address: the broker's URL without login.
        url: the same with it, where it can have one.
        by_java: whether that is one of `jvm:`.
    """

    def __init__(self, broker: BrokerProcess, java_url: str = "") -> None:
        self.endpoints = broker.endpoints
        self.url = java_url or broker.endpoints.url("stomp")
        self.address = java_url or f"stomp://127.0.0.1:{broker.endpoints.ports['stomp']}"
        self.by_java = bool(java_url)
        self._started: list[Started] = []

    def start(self, *words: str) -> Started:
        command = [sys.executable, "-m", "mtosi_jms", *words, "--url", self.url]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture(
    params=["artemis", *(pytest.param(one, marks=pytest.mark.endurance) for one in ("activemq", "jvm-artemis"))]
)
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    broker = request.getfixturevalue(request.param.removeprefix("jvm-"))
    url = ""
    if request.param.startswith("jvm-"):
        url = request.getfixturevalue("java_url")("artemis", broker.endpoints)
        monkeypatch.setenv("MTOSI_JMS_USER", broker.endpoints.user)
        monkeypatch.setenv("MTOSI_JMS_PASSWORD", broker.endpoints.password)
    made = Shell(broker, url)
    yield made
    made.close()


@pytest.fixture
def run(shell: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process."""

    def call(*words: str, url: str | None = None, **environment: str) -> tuple[int, str, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        code = main([*words, "--url", url or shell.url])
        out, err = capsys.readouterr()
        assert shell.endpoints.password not in out + err
        return code, out, err

    return call


@pytest.fixture
def name() -> str:
    return f"commands.{os.getpid()}.{next(_numbers)}"


def line_with(stream: IO[str] | None, word: str) -> str:
    """The next line that begins with a word; the end of the stream fails."""
    assert stream is not None
    seen = []
    for line in stream:
        seen.append(line)
        if line.startswith(word):
            return line
    pytest.fail(f"no line with {word!r}: {''.join(seen)}")


def ended(process: Started, number: int) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err
    return process.returncode, out, err


@pytest.fixture
def serving(shell: Shell, name: str) -> Iterator[str]:
    """A supplier with 25 elements; the name of its queue."""
    process = shell.start("serve", "--destination", f"queue:{name}", "--elements", "25")
    assert line_with(process.stdout, "ready").startswith(f"ready: queue:{name}")
    yield f"queue:{name}"
    assert ended(process, signal.SIGTERM)[0] == 0


def test_both_patterns_of_answer(run: Run, serving: str, tmp_path: Path) -> None:
    one = run("request", "getManagedElement", "--to", serving, "--set", "meRef=MD=EMS1/ME=NE-7")
    assert one[0] == 0, one[2]
    assert "MD" in one[1]
    assert "NE-7" in one[1]
    words = ("--batch-size", "10", "--landing", str(tmp_path / "landing"), "--json", "--timeout", "120")
    code, out, err = run("request", "ManagedElementRetrieval.getAllManagedElements", "--to", serving, *words)
    assert code == 0, err
    replies = [json.loads(line) for line in out.splitlines()]
    assert [reply["batch_sequence_number"] for reply in replies] == [1, 2, 3]
    assert [reply["end_of_reply"] for reply in replies] == [False, False, True]
    assert [reply["objects"][0]["count"] for reply in replies] == [10, 10, 5]
    assert len(list(entries(tmp_path / "landing", strict=True))) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.endurance)])
def test_events_go_from_publish_to_subscribe(shell: Shell, run: Run, name: str, tmp_path: Path, number: int) -> None:
    listener = shell.start("subscribe", "--topic", f"topic:{name}", "--json", "--landing", str(tmp_path / "landing"))
    line_with(listener.stderr, "ready")
    files = []
    for place, event in enumerate(Network(elements=5).events(4)):
        path = tmp_path / f"event-{place}.xml"
        path.write_bytes(encode(event))
        files.append(str(path))
    code, out, err = run("publish", *files, "--topic", f"topic:{name}", "--persistent")
    assert (code, len(out.splitlines())) == (0, 4), err
    assert listener.stdout is not None
    heard = [json.loads(listener.stdout.readline()) for _ in files]
    assert [event["notification_id"] for event in heard] == [f"EMS1-{number}" for number in range(1, 5)]
    assert all(event["properties"]["MTOSI_EventType"] == event["event"] for event in heard)
    assert ended(listener, number)[0] == 0
    landed = [entry.facts for entry in entries(tmp_path / "landing", strict=True)]

    again = shell.start("subscribe", "--topic", f"topic:{name}", "--json", "--count", "4", "--timeout", "120")
    line_with(again.stderr, "ready")
    code, out, err = run("replay", str(tmp_path / "landing"), "--to", f"topic:{name}")
    assert (code, len(out.splitlines())) == (0, 4), err
    out, err = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, err
    repeated = [json.loads(line) for line in out.splitlines()]
    assert [event["notification_id"] for event in repeated] == [event["notification_id"] for event in heard]
    ids = [event["properties"]["MTOSIX_messageId"] for event in repeated]
    assert len(set(ids)) == 4
    assert ids == [facts.properties["MTOSIX_messageId"] for facts in landed if facts is not None]


def test_a_selector_and_a_durable_subscription(run: Run, name: str, tmp_path: Path) -> None:
    words = ("--topic", f"topic:{name}", "--durable", name, "--selector", "MTOSI_objectType = 'ME'", "--timeout")
    assert run("subscribe", *words, "1")[0] == 0
    for place, event in enumerate(Network(elements=5).events(12)):
        (tmp_path / f"event-{place:02}.xml").write_bytes(encode(event))
    files = sorted(str(path) for path in tmp_path.glob("event-*.xml"))
    code, out, err = run("publish", *files, "--topic", f"topic:{name}", "--json")
    assert code == 0, err
    sent = [json.loads(line) for line in out.splitlines()]
    wanted = sum(message["properties"].get("MTOSI_objectType") == "ME" for message in sent)
    assert 0 < wanted < 12
    code, out, err = run("subscribe", *words, "120", "--count", str(wanted), "--json")
    assert (code, len(out.splitlines())) == (0, wanted), err
    code, out, err = run("subscribe", *words, "1", "--json")
    assert (code, out) == (0, ""), err


def test_a_replayed_request_is_answered_again(run: Run, serving: str, name: str, tmp_path: Path) -> None:
    """Landed replies into a queue of their own, with their properties; an envelope without side car likewise."""
    words = ("--to", serving, "--batch-size", "10", "--landing", str(tmp_path), "--timeout", "120")
    assert run("request", "getAllManagedElements", *words)[0] == 0
    for side_car in tmp_path.glob("*.json"):
        side_car.unlink()
        break
    code, out, err = run("replay", str(tmp_path), "--to", f"queue:{name}.again", "--json", "--rate", "50")
    assert code == 0, err
    assert [json.loads(line)["batchSequenceNumber"] for line in out.splitlines()] == [1, 2, 3]


@pytest.mark.parametrize("way", ["file", "environment", "url"])
def test_ways_to_log_in(shell: Shell, run: Run, name: str, tmp_path: Path, way: str) -> None:
    secret = tmp_path / "password"
    secret.write_text(f"{shell.endpoints.password}\n", encoding="utf-8")
    words = ["subscribe", "--topic", f"topic:{name}", "--timeout", "0"]
    if way == "file":
        words += ["--user", shell.endpoints.user, "--password-file", str(secret)]
        assert run(*words, url=shell.address)[0] == 0
    elif way == "environment":
        login = {"MTOSI_JMS_USER": shell.endpoints.user, "MTOSI_JMS_PASSWORD": shell.endpoints.password}
        assert run(*words, url=shell.address, **login)[0] == 0
    elif not shell.by_java:  # there the URL has no login
        login = {"MTOSI_JMS_USER": "nobody", "MTOSI_JMS_PASSWORD": "nothing"}
        assert run(*words, **login)[0] == 0
