"""`mtosi-jms broker`: up, status, down on a real Artemis; what is said where it cannot be had."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import artemis, process, service
from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import connect


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    made = tmp_path / "a broker"
    yield made
    service.down(made)


@pytest.mark.broker
def test_up_status_down(folder: Path, capsys: pytest.CaptureFixture[str], artemis: Any) -> None:
    del artemis  # it can be had
    assert main(["broker", "status", "--dir", str(folder)]) == 1
    assert main(["broker", "up", "--dir", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["running"] is True
    assert set(facts["urls"]) == {"stomp", "amqp", "openwire"}
    assert all("127.0.0.1" in url for url in facts["urls"].values())
    with connect(facts["urls"]["stomp"]) as connection:
        session = connection.session()
        session.send(Queue("kept"), JmsMessage(body=b"<kept/>", delivery_mode=2))  # type: ignore[arg-type]
    assert main(["broker", "up", "--dir", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pid"] == facts["pid"], "a second up finds the first"
    assert main(["broker", "status", "--dir", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert facts["urls"]["stomp"] in shown
    assert main(["doctor", "--url", facts["urls"]["stomp"], "--json"]) == 0
    told = capsys.readouterr().out
    assert "ActiveMQ Artemis" in told
    assert facts["urls"]["stomp"].split(":")[2].split("@")[0] not in told
    secret_files = [folder / "service.json", *(folder / "etc").glob("users.properties")]
    assert [oct(file.stat().st_mode & 0o077) for file in secret_files] == ["0o0", "0o0"]
    assert main(["broker", "down", "--dir", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"running": False, "ended": True}
    assert main(["broker", "down", "--dir", str(folder)]) == 0
    assert service.up(folder).endpoints.password in facts["urls"]["stomp"]


def test_another_process_of_the_same_number_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    state = {"pid": os.getpid(), "user": "u", "password": "p", "ports": {"stomp": 1}}
    (folder / "service.json").write_text(json.dumps(state))
    assert not service.down(folder)


def test_a_state_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    (folder / "service.json").write_text("{")
    assert main(["broker", "status", "--dir", str(folder)]) == 1
    assert "service.json" in capsys.readouterr().err
    (folder / "service.json").unlink()


class TestWhereItCannotBeHad:
    @pytest.fixture(autouse=True)
    def _empty_cache(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def test_without_maven(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(artemis.shutil, "which", lambda name: None)
        with pytest.raises(ConfigError, match="apt-get install activemq"):
            artemis.distribution()

    @pytest.mark.parametrize(
        ("script", "said"), [("exit 1", "no reason"), ("echo '[ERROR] no route'; exit 1", "no route")]
    )
    def test_where_it_is_not_reached(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, said: str
    ) -> None:
        self.fake_maven(monkeypatch, tmp_path, script)
        with pytest.raises(ConfigError, match=said) as caught:
            artemis.distribution()
        assert "apt-get install activemq" in str(caught.value)

    def test_another_file_is_not_used(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        write = f"echo x > ${{word#*=}}/{artemis.NAME}-bin.zip"
        script = f'for word in "$@"; do case $word in -DoutputDirectory=*) {write};; esac; done'
        self.fake_maven(monkeypatch, tmp_path, script)
        with pytest.raises(ConfigError, match="another one"):
            artemis.distribution()

    def fake_maven(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
        maven = tmp_path / "mvn"
        maven.write_text(f"#!/bin/sh\n{script}\n")
        maven.chmod(0o755)
        monkeypatch.setattr(artemis.shutil, "which", lambda name: str(maven))


def test_a_broker_that_ends_tells_why(tmp_path: Path) -> None:
    endpoints = process.Endpoints({"stomp": process.free_ports(1)[0]}, "u", "p")
    broken = process.BrokerProcess(["sh", "-c", "echo out of order; exit 3"], tmp_path, endpoints)
    with pytest.raises(TransportError, match="out of order"):
        broken.wait_until_ready()


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not run"):
        process.BrokerProcess([str(tmp_path / "java")], tmp_path, process.Endpoints({}, "u", "p"))


def test_the_password_is_not_shown() -> None:
    assert "s3cret" not in repr(process.Endpoints({"stomp": 1}, "u", "s3cret"))


def test_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(process.shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="Java 17"):
        process.find_java()
