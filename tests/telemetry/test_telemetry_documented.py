"""docs/telemetry.md: its code runs, its command lines are taken; other tests here hold its tables."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from mtosi_jms.cli import COMMANDS, parser_for

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LONG = {"serve", "subscribe", "gateway", "bridge", "replay", "console"}
PROVIDER = LONG | {"request", "publish", "queue"}


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "telemetry.md").read_text(encoding="utf-8")


def test_its_code_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("opentelemetry", reason="the extra otel is not installed")
    log = logging.getLogger("mtosi_jms")
    before = list(log.handlers), log.level
    try:
        for number, block in enumerate(BLOCK.findall(page), 1):
            exec(compile(block, f"telemetry.md block {number}", "exec"), {})
    finally:
        log.handlers[:], level = before
        log.setLevel(level)
    assert capsys.readouterr().out.startswith("http://127.0.0.1:")


def test_commands_have_the_options_that_the_page_says(page: str) -> None:
    for command in COMMANDS:
        text = _help(command)
        assert ("--monitor HOST:PORT" in text) is (command in LONG), command
        for option in ("--log-level", "--log-json", "--wire"):
            assert (option in text) is (command in PROVIDER), f"{command} {option}"
    [line] = [line for line in page.splitlines() if line.startswith("| `--monitor HOST:PORT` |")]
    assert set(re.findall(r"`(\w+)`", line.split("|")[2])) == LONG


def _help(command: str) -> str:
    subparsers = next(action for action in parser_for(command)._actions if action.dest == "command")
    choices = subparsers.choices
    assert isinstance(choices, dict)
    text: str = choices[command].format_help()
    return text
