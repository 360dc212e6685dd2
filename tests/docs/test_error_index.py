"""The index of errors names every class, each once, and says what to do."""

from __future__ import annotations

import re
from pathlib import Path

from mtosi_jms import errors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
NO_ADVICE = {"XmlError", "ExchangeError", "BridgeError", "BridgeNotFound"}
"""Classes whose subclasses say what to do, and one where nothing can be done."""


def test_every_class_has_a_section() -> None:
    assert sorted(name for name, _ in SECTIONS) == sorted({*errors.__all__} - {"MtosiError"})


def test_every_section_says_what_to_do() -> None:
    silent = {name for name, text in SECTIONS if "**What to do:**" not in " ".join(text.split())}
    assert silent == NO_ADVICE
