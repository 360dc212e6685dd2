"""`mtosi-jms jvm fetch`: the Java clients of providers, and how a class path finds them. A script plays Maven."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import find_client
from mtosi_jms.transport import connect

PLAYED = """\
for argument in "$@"; do case "$argument" in -DoutputDirectory=*) out="${argument#*=}";; esac; done
mkdir -p "$out"
cp pom.xml "$ASKED"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mtosi-jms"


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Plays Maven: its script continues with some lines. Returns the file that has what it was asked for."""

    def play(lines: str) -> Path:
        program, asked = tmp_path / "mvn", tmp_path / "asked.xml"
        program.write_text(f"#!/bin/sh\n{PLAYED}{lines}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setenv("ASKED", str(asked))
        return asked

    return play


def fetched(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["jvm", "fetch", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("activemq", "--version", "6.1.6"), "activemq 6.1.6: no hashes are known of its jars, only of 5.17.6"),
        (("activemq", "--version", "../6", "--unpinned"), "'../6' is not a version"),
    ],
)
def test_a_version_at_fault(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = fetched(capsys, *arguments)
    assert code == 1
    assert said in err


def test_a_version_without_hashes_is_shown(maven: Any, capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    asked = maven('echo one >"$out/activemq-client-6.1.6.jar"')
    code, out, _ = fetched(capsys, "activemq", "--version", "6.1.6", "--unpinned", "--json")
    digest = hashlib.sha256(b"one\n").hexdigest()
    jar = cache / "client-activemq-6.1.6" / "activemq-client-6.1.6.jar"
    assert code == 0
    assert json.loads(out) == {
        "kind": "activemq",
        "title": "ActiveMQ Classic",
        "version": "6.1.6",
        "pinned": False,
        "licences": ["Apache License 2.0", "MIT License (SLF4J)"],
        "jars": {str(jar): digest},
        "classpath": "activemq-6.1.6",
    }
    assert "<exclusion>" not in asked.read_text()  # what it depends on comes with it
    assert find_client("activemq-6.1.6") == [jar]
    code, out, _ = fetched(capsys, "activemq", "--version", "6.1.6", "--unpinned")
    assert f"nothing of this version is pinned; its SHA-256:\n{digest}  activemq-client-6.1.6.jar" in out
    assert out.endswith(f'classpath="activemq-6.1.6") uses them; Java takes this class path:\n{jar}\n')


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("qpid", "mtosi-jms jvm fetch qpid fetches them"),
        ("artemis-2.40.0", "mtosi-jms jvm fetch artemis --version 2.40.0 --unpinned fetches them"),
    ],
)
def test_what_was_not_fetched_is_told_with_the_command(name: str, command: str) -> None:
    pytest.importorskip("jpype", reason="JPype is not installed")
    with pytest.raises(ConfigError, match=command):
        connect("jvm:ConnectionFactory", classpath=name)
