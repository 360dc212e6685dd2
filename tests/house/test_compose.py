"""The compose file: loopback alone, no login in it, a pinned broker. Read as text: no YAML library is wanted for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtosi_jms.broker import KINDS
from mtosi_jms.transport import login

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compose.yaml"


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Without comments and empty lines."""
    return [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.strip() and line.strip()[0] != "#"]


def section(lines: list[str], key: str) -> list[str]:
    """What stands below a key, without its indentation."""
    at = next(number for number, line in enumerate(lines) if line.strip() == f"{key}:")
    depth = len(lines[at]) - len(lines[at].lstrip())
    below = []
    for line in lines[at + 1 :]:
        if len(line) - len(line.lstrip()) <= depth:
            break
        below.append(line.strip())
    return below


def test_its_form(lines: list[str]) -> None:
    assert [line for line in lines if not line.startswith(" ")] == ["name: mtosi-jms", "services:", "volumes:"]
    assert [line for line in lines if "\t" in line or (len(line) - len(line.lstrip())) % 2] == []
    assert all(line.count('"') % 2 == 0 for line in lines)


def test_every_port_is_one_of_loopback(lines: list[str]) -> None:
    ports = section(lines, "ports")
    assert [re.fullmatch(r'- "127\.0\.0\.1:(\d+):\1"', port) is not None for port in ports] == [True, True]
    assert not any("network_mode" in line or "expose" in line for line in lines)


def test_no_login_stands_in_it(lines: list[str]) -> None:
    environment = dict(line.split(": ", 1) for line in section(lines, "environment"))
    assert set(environment) == {login.USER, login.PASSWORD} <= set(login.VARIABLES)
    for name, value in environment.items():
        assert value == f'"${{{name}:?set {name}}}"'  # compose ends where the variable is absent or empty
    text = "\n".join(lines)
    assert re.findall(r"--(?:user|password) (\S+)", text) == [f'"$${login.USER}"', f'"$${login.PASSWORD}"']
    assert ":-" not in text


def test_the_broker_is_the_one_that_is_tested(lines: list[str]) -> None:
    (image,) = (line.strip() for line in lines if "image:" in line)
    assert image == f'image: "apache/activemq-artemis:{KINDS["artemis"].version}"'
    assert "--require-login" in " ".join(lines)


def test_it_can_be_found(root: Path) -> None:
    for page in ("README.md", "docs/stomp.md", "docs/security.md"):
        assert "compose.yaml" in (root / page).read_text(encoding="utf-8"), page
