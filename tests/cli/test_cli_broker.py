"""`mtosi-jms broker`: up, status, down on a real broker; what is said where it cannot be had."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import (
    KINDS,
    BrokerProcess,
    Endpoints,
    find_java,
    free_ports,
    start_broker,
    start_on_free_ports,
    stop_broker,
)
from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import connect


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    made = tmp_path / "a broker"
    yield made
    stop_broker(made)


@pytest.mark.broker
@pytest.mark.parametrize(
    ("kind", "protocols", "name"),
    [
        ("activemq", {"stomp", "openwire", "mqtt"}, "ActiveMQ Classic"),
        pytest.param("artemis", {"stomp", "amqp", "openwire", "mqtt"}, "ActiveMQ Artemis", marks=pytest.mark.endurance),
    ],
)
def test_up_status_down(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    kind: str,
    protocols: set[str],
    name: str,
) -> None:
    request.getfixturevalue(kind)  # it can be had
    assert main(["broker", "status", "--dir", str(folder)]) == 1
    assert main(["broker", "up", "--dir", str(folder), "--kind", kind, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["running"] is True
    assert name in facts["broker"]
    assert set(facts["urls"]) == {*protocols, "jvm"}
    assert all("127.0.0.1" in url for url in facts["urls"].values())
    with connect(facts["urls"]["stomp"]) as connection:
        session = connection.session()
        session.send(Queue("kept"), JmsMessage(body=b"<kept/>", delivery_mode=2))  # type: ignore[arg-type]
    assert main(["broker", "up", "--dir", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pid"] == facts["pid"], "a second up finds the first"
    assert main(["broker", "status", "--dir", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert facts["urls"]["stomp"] in shown
    assert set(facts["for_other_programs"]) == protocols - {"stomp"}
    mine, others = shown.split("addresses for other programs:")
    assert facts["urls"]["stomp"] in mine
    assert all(facts["urls"][protocol] in others for protocol in facts["for_other_programs"])
    login, place = facts["urls"]["stomp"].removeprefix("stomp://").split("@")
    user, password = login.split(":")
    (folder / "login.txt").write_text(password)
    as_options = (f"stomp://{place}", "--user", user, "--password-file", str(folder / "login.txt"))
    for given in ((facts["urls"]["stomp"],), as_options):
        assert main(["doctor", "--url", *given, "--json"]) == 0
        told = capsys.readouterr().out
        assert "ActiveMQ" in told
        assert password not in told
    places = ("service.json", "etc/users.properties", "activemq.xml")
    secret_files = [file for file in (folder / place for place in places) if file.is_file()]
    assert [oct(file.stat().st_mode & 0o077) for file in secret_files] == ["0o0", "0o0"]
    other = next(one for one in KINDS if one != kind)
    assert main(["broker", "up", "--dir", str(folder), "--kind", other]) == 1
    assert "--dir" in capsys.readouterr().err
    assert main(["broker", "down", "--dir", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"running": False, "ended": True}
    assert main(["broker", "down", "--dir", str(folder)]) == 0
    again = start_broker(folder).endpoints
    assert again.url("stomp") == facts["urls"]["stomp"]
    assert set(again.ports) == protocols


def test_another_process_of_the_same_number_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    ports = dict.fromkeys(KINDS["artemis"].protocols, 1)
    state = {"kind": "artemis", "pid": os.getpid(), "user": "u", "password": "p", "ports": ports}
    (folder / "service.json").write_text(json.dumps(state))
    assert not stop_broker(folder)


@pytest.mark.parametrize("state", ["{", '{"kind": "artemis", "pid": 1, "user": "u", "password": "p", "ports": {}}'])
def test_a_state_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str], state: str) -> None:
    folder.mkdir()
    (folder / "service.json").write_text(state)
    assert main(["broker", "status", "--dir", str(folder)]) == 1
    assert "service.json" in capsys.readouterr().err
    (folder / "service.json").unlink()


def test_a_broker_that_ends_tells_why(tmp_path: Path) -> None:
    endpoints = Endpoints({"stomp": free_ports(1)[0]}, "u", "p")
    broken = BrokerProcess(["sh", "-c", "echo out of order; exit 3"], tmp_path, endpoints)
    with pytest.raises(TransportError, match="out of order"):
        broken.wait_until_ready()


@pytest.mark.broker
@pytest.mark.parametrize("kind", ["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def test_a_taken_port_is_told_and_others_are_tried(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(kind)  # it can be had
    made: list[BrokerProcess] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = Endpoints({"stomp": other.getsockname()[1]}, "u", "p")

        def unlucky_at_first(endpoints: Endpoints) -> BrokerProcess:
            made.append(KINDS[kind].start(tmp_path, endpoints if made else taken))
            return made[-1]

        broker = start_on_free_ports(unlucky_at_first, ["stomp"], "u", "p")
    try:
        assert [one.port_was_taken() for one in made] == [True, False]
        socket.create_connection(("127.0.0.1", broker.endpoints.ports["stomp"]), 10).close()
    finally:
        for one in made:
            one.stop()


def test_ports_are_none_of_outgoing_connections() -> None:
    """From 32768 on a system takes those of connections: a broker's would collide with them now and then."""
    found = free_ports(20)
    assert len(set(found)) == 20
    assert max(found) < 32_768


def test_one_that_only_listens_is_not_ready(tmp_path: Path) -> None:
    """Somebody else may have the port."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        endpoints = Endpoints({"stomp": other.getsockname()[1]}, "u", "p")
        broken = BrokerProcess(["sh", "-c", "exit 3"], tmp_path, endpoints, ready=["started"])
        with pytest.raises(TransportError, match="ended"):
            broken.wait_until_ready()


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not run"):
        BrokerProcess([str(tmp_path / "java")], tmp_path, Endpoints({}, "u", "p"))


def test_the_password_is_not_shown() -> None:
    assert "s3cret" not in repr(Endpoints({"stomp": 1}, "u", "s3cret"))


def test_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="JDK 17"):
        find_java()
