"""A secret that can be looked for, and what to look in."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from mtosi_jms.cli import main
from mtosi_jms.transport import settings

MARK = "S3cr3t-Mark"


@dataclass
class Said:
    """What a command said, wherever it did.

    Attributes:
        code: exit code; None where it raised.
        texts: output, errors, log at level DEBUG, traceback.
    """

    code: int | None
    texts: dict[str, str] = field(default_factory=dict)

    def leaks(self) -> list[str]:
        """Where the secret stands."""
        return [where for where, text in self.texts.items() if MARK in text]


@pytest.fixture
def mark() -> str:
    """The secret."""
    return MARK


@pytest.fixture
def no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """No login in the environment."""
    for name in settings.VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def say(
    no_login: None,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Said]:
    """Runs a command as talkative as it can be: everything logged, and errors raised, with their tracebacks."""
    monkeypatch.setenv("MTOSI_JMS_DEBUG", "1")
    caplog.set_level(logging.DEBUG)

    def run(*words: str) -> Said:
        caplog.clear()
        raised = ""
        code: int | None = None
        try:
            code = main(list(words))
        except Exception as error:  # noqa: BLE001 - whatever it is, its text is looked at
            raised = "".join(traceback.format_exception(error))
        out, err = capsys.readouterr()
        return Said(code, {"output": out, "errors": err, "log": caplog.text, "traceback": raised})

    return run
