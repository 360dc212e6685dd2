"""`mtosi-jms doctor`: each check in good and bad health."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import _doctor as doctor
from mtosi_jms.cli import main
from mtosi_jms.cli._doctor import Check
from mtosi_jms.errors import SchemaError
from mtosi_jms.transport import PROVIDERS


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stubs and Java as they should be, so that the verdict depends on what the test changes."""
    monkeypatch.setattr(doctor, "check_stubs", lambda: Check("stubs", "ok", "1 modules"))
    monkeypatch.setattr(doctor, "check_java", lambda: Check("java", "ok", "17"))


def test_the_extras_are_those_of_the_distribution(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        extra: {re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0] for line in lines}
        for extra, lines in project["optional-dependencies"].items()
        if extra != "all"
    }
    known = {extra: {distribution for _, distribution in what} for extra, (_, what) in doctor.EXTRAS.items()}
    assert known.pop("test") <= declared.pop("test")
    assert known == declared


def test_schemes_are_those_that_have_a_transport() -> None:
    assert {"memory", "jvm", *doctor.SCHEMES} == set(PROVIDERS)


@pytest.mark.usefixtures("healthy")
def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True
    assert all(set(check) == {"name", "status", "detail", "fix"} for check in answer["checks"])
    names = [check["name"] for check in answer["checks"]]
    always = {"python", "lxml", "core", "schemas", "stubs", "java", "spark version", "configuration"}
    assert always | set(doctor.EXTRAS) == set(names)


@pytest.mark.parametrize(
    ("wish", "name", "reason"),
    [
        ("python", "python", "MTOSI_JMS_CORE asks for it"),
        ("rust", None, "MTOSI_JMS_CORE is python or native, not 'rust'"),
    ],
)
def test_the_core_is_told_with_its_reason(wish: str, name: str | None, reason: str) -> None:
    environment = {**os.environ, "MTOSI_JMS_CORE": wish}
    command = [sys.executable, "-c", "from mtosi_jms.cli import main; main()", "doctor", "--json"]
    answer = json.loads(subprocess.run(command, env=environment, capture_output=True, text=True).stdout)
    assert answer["core"] == name
    (check,) = (check for check in answer["checks"] if check["name"] == "core")
    assert check["status"] == ("fault" if name is None else "ok")
    assert reason in check["detail"]
    assert answer.get("core_reason", reason) == reason


@pytest.mark.usefixtures("healthy")
def test_lines_carry_the_fix(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stomp", None)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith("--") and "stomp.py" in line]
    assert line.endswith("pip install 'mtosi-jms[stomp]'")


@pytest.mark.usefixtures("healthy")
def test_what_is_needed_and_broken_makes_it_fail(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise SchemaError("no XSD file in this folder", file="xsd")

    monkeypatch.setattr(doctor.SchemaSet, "load", broken)
    assert main(["doctor", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    (schemas,) = [check for check in answer["checks"] if check["name"] == "schemas"]
    assert schemas["status"] == "fault"
    assert schemas["fix"]


def test_an_old_python_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_python().status == "ok"
    monkeypatch.setattr(doctor, "PYTHON_MINIMUM", (9, 0))
    assert doctor.check_python().status == "fault"


def test_stubs_that_do_not_import_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mtosi_jms.stubs", None)
    check = doctor.check_stubs()
    assert check.status == "fault"
    assert "mtosi_jms.stubs" in check.detail


def test_a_library_tells_its_version() -> None:
    check = doctor.check_extra("test")
    assert check.status == "ok"
    assert re.search(r"pytest \d", check.detail)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "ok"),
        ('Picked up JAVA_TOOL_OPTIONS: x\nopenjdk version "21" 2023-09-19', "ok"),
        ('java version "1.8.0_292"', "missing"),
        ("no idea", "missing"),
    ],
)
def test_java_is_asked_for_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, status: str) -> None:
    """JAVA_HOME counts before PATH."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\nprintf '%s' '{said}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check = doctor.check_java()
    assert check.status == status
    assert str(java) in check.detail
    assert bool(check.fix) is (status != "ok")


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", "")
    check = doctor.check_java()
    assert (check.status, "JAVA_HOME" in check.fix) == ("missing", True)


@pytest.mark.parametrize(("version", "status"), [("4.3.0", "ok"), ("3.5.1", "missing"), ("", "missing")])
def test_spark_has_to_be_new_enough(monkeypatch: pytest.MonkeyPatch, version: str, status: str) -> None:
    def installed(distribution: str) -> str:
        if not version:
            raise metadata.PackageNotFoundError(distribution)
        return version

    monkeypatch.setattr(metadata, "version", installed)
    assert doctor.check_spark().status == status


def test_memory_needs_no_broker() -> None:
    assert [check.status for check in doctor.check_broker("memory:")] == ["ok"]


def test_a_broker_that_listens_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stomp")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        checks = doctor.check_broker(f"stomp://oss:secret@127.0.0.1:{port}?connect_timeout=0.2")
    states = [(check.name, check.status) for check in checks]
    assert states == [("transport", "ok"), ("broker", "ok"), ("login", "fault")], "it listens, and speaks no STOMP"
    assert f"127.0.0.1:{port}" in checks[1].detail
    assert "secret" not in str(checks)


def test_the_environment_names_the_broker(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MTOSI_JMS_URL", "memory:")
    assert main(["doctor"]) == 0
    assert "memory: is built in" in capsys.readouterr().out
    monkeypatch.setenv("MTOSI_JMS_URL", "")
    assert main(["doctor"]) == 0
    assert "memory:" not in capsys.readouterr().out


def test_every_host_of_a_failover_url_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: tuple[str, int], timeout: float) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setitem(sys.modules, "stomp", None)
    checks = doctor.check_broker("failover:(stomp://u:p@one:1,stomp+ssl://two)?randomize=false")
    assert [check.detail for check in checks if check.name == "broker"] == [
        "stomp://one:1: Connection refused",
        "stomp+ssl://two:61612: Connection refused",
    ]
    assert all(check.status == "fault" and check.fix for check in checks)
    assert "stomp.py" not in checks[0].detail
    assert "mtosi-jms[stomp]" in checks[0].fix


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "tcp", "ssl", "jms", "mqtt", "http"])
def test_a_scheme_without_transport_is_told_and_not_tried(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setattr(socket, "create_connection", None)
    (check,) = doctor.check_broker(f"{scheme}://oss:secret@broker:5672")
    assert (check.name, check.status, check.detail) == (
        "transport",
        "fault",
        f"{scheme}: is served by no transport",
    )
    assert "stomp+ssl:" in check.fix
    assert "secret" not in str(check)


@pytest.mark.parametrize("url", ["", "broker", "tcp:/broker", "tcp://host:99999", "other://host"])
def test_a_url_without_a_usable_address_is_a_fault(url: str) -> None:
    check = doctor.check_broker(url)[-1]
    assert check.status == "fault"
    assert check.fix
