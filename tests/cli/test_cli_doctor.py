"""`mtosi-jms doctor`: each check in good and bad health."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from mtosi_jms.cli import _doctor as doctor
from mtosi_jms.cli import main
from mtosi_jms.cli._doctor import Check
from mtosi_jms.errors import SchemaError
from mtosi_jms.registry import registered_module
from mtosi_jms.xmlbind import Core


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stubs and Java as they should be, so that the verdict depends on what the test changes."""
    monkeypatch.setattr(doctor, "check_stubs", lambda: Check("stubs", "ok", "1 modules"))
    monkeypatch.setattr("mtosi_jms.broker._doctor.check", lambda: Check("java", "ok", "17"))


def test_the_extras_are_those_that_pip_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(map(Requirement, metadata.requires("mtosi-jms") or ()))
    names = {name for name in metadata.metadata("mtosi-jms").get_all("Provides-Extra", ()) if name != "all"}
    for platform, version in itertools.product(("linux", "win32"), ((3, 11), (3, 13), (3, 14))):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(sys, "version_info", version)
        here = {"sys_platform": platform, "python_version": "{}.{}".format(*version)}
        assert doctor.extras() == {
            name: {
                one.name: next((each.version for each in one.specifier if each.operator == ">="), "")
                for one in lines
                if one.marker and one.marker.evaluate({**here, "extra": name})
            }
            for name in names
        }
    assert doctor.extras()["zstd"] == {}, "Python 3.14 has it"


@pytest.mark.usefixtures("healthy")
def test_without_an_installation_the_extras_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", none)
    (check,) = (check for check in doctor.all_checks() if check.name == "extras")
    assert (check.status, bool(check.fix)) == ("missing", True)


def test_every_error_names_an_extra_that_is_there(root: Path) -> None:
    files = itertools.chain((root / "mtosi_jms").rglob("*.py"), (root / "codegen").rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in files]
    named = {name for text in texts for name in re.findall(r'MissingExtraError\([^)]*, "(\w+)"\)', text)}
    assert len(named) > 5
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert named <= project["optional-dependencies"].keys()


@pytest.mark.usefixtures("healthy")
def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True
    assert all(set(check) == {"name", "status", "detail", "fix"} for check in answer["checks"])
    names = [check["name"] for check in answer["checks"]]
    always = {"python", "lxml", "core", "schemas", "stubs", "java", "configuration"}
    assert always | doctor.extras().keys() == set(names)


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
    assert check["status"] == ("fault" if name is None else "missing")
    assert ("slower" in check["detail"]) is (name == "python")
    assert "unset MTOSI_JMS_CORE" in check["fix"]
    assert reason in check["detail"]
    assert answer.get("core_reason", reason) == reason


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="there is none for this Python")
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({}, "--no-binary mtosi-jms mtosi-jms"),
        ({"url": "file:///a%20b/c", "dir_info": {}}, "'/a b/c'"),
        ({"url": "file:///a", "dir_info": {"editable": True}}, "--editable /a"),
        ({"url": "file:///a/mtosi_jms-1-py3-none-any.whl", "archive_info": {}}, "--no-binary mtosi-jms mtosi-jms"),
        ({"url": "https://u:secret@host/a", "vcs_info": {}}, "--no-binary mtosi-jms mtosi-jms"),
    ],
)
def test_the_python_core_is_told_with_the_line_that_mends_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, object], words: str
) -> None:
    monkeypatch.delenv("MTOSI_JMS_CORE", raising=False)
    monkeypatch.setattr(doctor, "core", lambda: Core("python", "this installation has no native core"))
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name: json.dumps(source))
    rust = tomllib.loads((root / "native" / "Cargo.toml").read_text(encoding="utf-8"))["package"]["rust-version"]
    mend = f"install Rust (cargo {rust} or later) and run pip install --force-reinstall --no-deps {words}"
    check = doctor.check_core()
    assert check[:3] == ("core", "missing", "python, slower than native: this installation has no native core")
    assert check.fix == f"{mend}, or take a wheel for this platform"


WITHOUT_NATIVE = """
import json, sys
sys.modules["mtosi_jms.xmlbind._core"] = None
from mtosi_jms.cli import main
for words in json.loads(sys.argv[1]):
    main(words)
    print("end", file=sys.stderr)
"""


@pytest.mark.parametrize("asked_for", [False, True])
def test_commands_say_once_that_the_core_is_the_slower_one(tmp_path: Path, asked_for: bool) -> None:
    empty = str(tmp_path)
    ingest = ["ingest", empty, "--out", f"{empty}/out"]
    heavy = [["demo", "--url", "other:"], ingest, ["serve", "--url", "other:", "--destination", "queue:A"]]
    command = [sys.executable, "-c", WITHOUT_NATIVE, json.dumps([*heavy, ["--quiet", *ingest], ["map", empty]])]
    environment = {**os.environ, "MTOSI_JMS_CORE": "python" if asked_for else ""}
    told = subprocess.run(command, env=environment, capture_output=True, text=True).stderr.split("end\n")
    notes = [[line for line in part.splitlines() if "slower" in line] for part in told[:5]]
    assert [len(found) for found in notes] == ([0] * 5 if asked_for else [1, 1, 1, 0, 0])
    assert all(part.startswith("note: ") for part in told[:3]) is not asked_for


def installed(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    """Have these distributions, and none else of our extras'."""
    true_version = metadata.version

    def version(name: str) -> str:
        if name in {*versions, "mtosi-jms", "lxml"}:
            return versions.get(name) or true_version(name)
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)


@pytest.mark.usefixtures("healthy")
def test_lines_carry_the_fix(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, {})
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith("--") and "no stomp-py" in line]
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


@pytest.mark.parametrize(
    ("version", "status", "detail"),
    [
        ("9.0", "ok", "stomp-py 9.0"),
        ("10.1.dev2", "ok", "stomp-py 10.1.dev2"),
        ("of the vendor", "ok", "stomp-py of the vendor"),
        ("8.1.2", "missing", "stomp-py 8.1.2 is older than 9.0"),
        ("", "missing", "no stomp-py"),
    ],
)
def test_a_library_tells_its_version(monkeypatch: pytest.MonkeyPatch, version: str, status: str, detail: str) -> None:
    installed(monkeypatch, {"stomp-py": version} if version else {})
    fix = "pip install 'mtosi-jms[stomp]'" if status == "missing" else ""
    assert doctor.check_extra("stomp") == Check("stomp", status, detail, fix)  # type: ignore[arg-type]


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
    check = registered_module("doctor", "java").check()
    assert check.status == status
    assert str(java) in check.detail
    assert bool(check.fix) is (status != "ok")


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", "")
    check = registered_module("doctor", "java").check()
    assert (check.status, "JAVA_HOME" in check.fix) == ("missing", True)


def test_a_broker_that_does_not_answer_is_a_fault_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("stomp")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert main(["doctor", "--url", f"stomp://oss:secret@{address}?connect_timeout=0.2", "--json"]) == 1
    out, err = capsys.readouterr()
    (check,) = (check for check in json.loads(out)["checks"] if check["name"] == "broker")
    assert (check["status"], address in check["detail"], bool(check["fix"])) == ("fault", True, True)
    assert "secret" not in out + err


def test_the_environment_names_the_broker(
    healthy: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for url, told in (("memory:", 1), ("", 0)):
        monkeypatch.setenv("MTOSI_JMS_URL", url)
        assert main(["doctor"]) == 0
        assert capsys.readouterr().out.count("ok  broker ") == told


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("amqp://oss:secret@broker:5672", "scheme 'amqp' is not supported"),
        ("broker", "a URL without a scheme"),
        ("stomp://host:99999", "the URL cannot be read"),
        ("failover:(stomp://u:secret@127.0.0.1:1,stomp://127.0.0.1:2)", "Connection refused"),
    ],
)
def test_a_url_that_leads_nowhere_is_a_fault(url: str, said: str) -> None:
    check = doctor.check_broker(url, {})
    assert check.status == "fault"
    assert said in check.detail
    assert "secret" not in str(check)
