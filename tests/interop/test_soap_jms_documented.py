"""docs/soap-jms.md: its Java is what runs, and its tables are what the binding does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtosi_jms.binding import BindingProfile


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "soap-jms.md").read_text(encoding="utf-8")


def test_the_java_on_the_page_is_what_the_tests_run(page: str, root: Path) -> None:
    program = (root / "tests" / "interop" / "CxfPeer.java").read_text(encoding="utf-8")
    blocks = re.findall(r"```java\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        assert re.sub("^", " " * 8, block.rstrip(), flags=re.MULTILINE) in program


def test_the_page_names_every_choice(page: str) -> None:
    named = re.findall(r'^\| `"(\w+)"`', page, re.MULTILINE)
    assert [BindingProfile(soap_jms=one).soap_jms for one in named] == ["wsdl", "w3c", "off"]  # type: ignore[arg-type]


def test_the_page_names_every_fault(page: str, root: Path) -> None:
    """Those that the tests provoke: each stands there first in a case."""
    tests = (root / "tests" / "exchange" / "test_soap_jms.py").read_text(encoding="utf-8")
    named = page.partition("## Faults")[2].partition("```")[0]
    codes = set(re.findall(r"^\| `(\w+)`", named, re.MULTILINE))
    assert len(codes) == 10
    assert {code for code in codes if f'("{code}", ' not in tests} == set()
