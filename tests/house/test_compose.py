"""The compose file: loopback alone, no login in it, a pinned broker, and commands that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import KINDS
from mtosi_jms.cli import parser_for
from mtosi_jms.transport import settings

yaml = pytest.importorskip("yaml", reason="the documentation's tools have it")

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "compose.yaml").read_text(encoding="utf-8")
FILE: dict[str, Any] = yaml.safe_load(TEXT)
OURS = {name: service for name, service in FILE["services"].items() if name != "artemis"}


def test_every_port_is_one_of_loopback() -> None:
    ports = [port for service in FILE["services"].values() for port in service.get("ports", ())]
    assert [port for port in ports if not re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)] == []
    assert len(ports) == 3
    assert not any({"network_mode", "expose", "privileged"} & set(service) for service in FILE["services"].values())


def test_no_login_stands_in_it() -> None:
    for name, service in FILE["services"].items():
        given = dict(service["environment"])
        assert (given.pop(settings.URL, None) is not None) == (name in OURS)
        assert set(given) == {settings.USER, settings.PASSWORD}
        for variable, value in given.items():
            assert value == f"${{{variable}:?set {variable}}}"  # compose ends where the variable is absent or empty
    (create,) = FILE["services"]["artemis"]["command"]
    assert re.findall(r"--(?:user|password) (\S+)", create) == [f'"$${settings.USER}"', f'"$${settings.PASSWORD}"']
    assert ":-" not in TEXT
    assert FILE["secrets"] == {"console": {"environment": "MTOSI_CONSOLE_TOKEN"}}


def test_the_broker_is_the_one_that_is_tested() -> None:
    artemis = FILE["services"]["artemis"]
    assert artemis["image"] == f"apache/activemq-artemis:{KINDS['artemis'].version}"
    assert "--require-login" in artemis["command"][0]


@pytest.mark.parametrize("name", OURS)
def test_the_commands_are_there_in_an_image_of_this_checkout(name: str) -> None:
    service = OURS[name]
    assert (ROOT / "docs" / service["build"] / "Dockerfile").is_file()
    command = service["command"]
    args = parser_for(command[0]).parse_args(command)
    assert args.command == command[0]
    written = [volume.split(":")[1] for volume in service.get("volumes", ())]
    landing = getattr(args, "landing", None) or []
    assert [str(folder) for folder in (landing if isinstance(landing, list) else [landing])] == written


def test_what_containers_write_to_is_theirs() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    folders = {volume.split(":")[1] for service in OURS.values() for volume in service.get("volumes", ())}
    assert [folder for folder in folders if f"--owner=mtosi {folder}" not in dockerfile] == []
