"""docs/bridge.md: its matrix, and the lines that it begins with, from an element manager or a channel to a topic."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from mtosi_jms.bridge.admin import CONSISTENCY
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.cli import main

from ..processes import Program, command
from .ems import PASSWORD, Ems

PAGE = (Path(__file__).parents[2] / "docs" / "bridge.md").read_text(encoding="utf-8")
FIRST, SECOND = re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
(ALARM,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def words_of(block: str, command: str) -> list[str]:
    """The words of the one line of a block with a command."""
    (line,) = re.findall(rf"^\$ mtosi-jms ({command} .*)$", block.replace("\\\n", ""), re.MULTILINE)
    return shlex.split(line.rstrip(" &"))


def replaced(words: list[str], **others: object) -> list[str]:
    """The words with other values of options."""
    return [
        str(others.get(before.lstrip("-").replace("-", "_"), word))
        for before, word in zip(["", *words], words)  # noqa: B905
    ]


def test_ten_lines() -> None:
    assert len(FIRST.splitlines()) == 10


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.endurance
def test_from_an_element_manager_to_a_table(
    naming: int,
    ems_command: list[str],
    channel_ior: Path,
    artemis: BrokerProcess,
    commands: list[Program],
    in_session: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first lines, and then the second ones with the same subscriber; the table is of what both have landed."""
    landing, alarm = tmp_path / "landing", tmp_path / "alarm.json"
    monkeypatch.setenv("MTOSI_JMS_URL", artemis.endpoints.url("stomp"))
    topic, password = f"topic:FAULT.{os.getpid()}", tmp_path / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    bridge = words_of(FIRST, "bridge")
    service = f"corbaloc::127.0.0.1:{naming}/NameService"
    with Ems(ems_command, tmp_path / "ems.ior", channel_ior, (bridge[bridge.index("--ems") + 1], service)):
        commands.append(command(*replaced(words_of(FIRST, "subscribe"), topic=topic, landing=landing)))
        commands[0].await_line("ready")
        here = {"from": f"corbaname::127.0.0.1:{naming}", "password_file": password, "listen": "127.0.0.1", "to": topic}
        publish = words_of(SECOND, "channel publish")
        second = replaced(words_of(SECOND, "bridge"), **{"from": channel_ior}, to=topic)
        for number, words in (("4711", replaced(bridge, **here)), ("4712", second)):
            commands.append(command(*words, "--json"))
            commands[-1].await_line("ready")
            alarm.write_text(ALARM.replace("4711", number), encoding="utf-8")
            assert main([*publish[:2], str(alarm), *replaced(publish[3:], at=channel_ior)]) == 0
            assert commands[0].process.stdout is not None
            assert f"NE-1 MAJOR {number}" in commands[0].process.stdout.readline()
            assert json.loads(commands[-1].end()) == {"forwarded": 1, "left_out": 0, "losses": 0}
        commands[0].end()
    words = words_of(FIRST, "alarms")
    capsys.readouterr()
    assert main([words[0], str(landing), *replaced(words[2:], out=tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["severities"] == {"MAJOR": 2}


@pytest.mark.obligation("000-B6")
def test_the_matrix_of_what_is_supported() -> None:
    told = {
        (f"{source} to {sink}", one, other)
        for source, sink, ones, others in re.findall(
            r"^\| (channel|JMS) \| (channel|JMS) \| ([A-Z or]+) \| ([A-Z or]+) \|$", PAGE, re.MULTILINE
        )
        for one in ones.split(" or ")
        for other in others.split(" or ")
    }
    assert told == {(way, one.value, other.value) for (way, one, other), there in CONSISTENCY.items() if there}
