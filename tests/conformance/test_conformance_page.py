"""The conformance page is fresh, and says of every line of the specifications which test holds it, or why none does."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def page() -> ModuleType:
    """The tool that writes the page; tests are not a package."""
    spec = importlib.util.spec_from_file_location("conformance_page", Path(__file__).with_name("page.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def markers(page: ModuleType) -> Any:
    """The markers of all tests."""
    return page.markers()


def test_every_obligation_has_a_test_or_a_reason(page: ModuleType, markers: Any) -> None:
    assert page.problems(page.documents(), markers) == []


def test_the_page_is_fresh(page: ModuleType, markers: Any) -> None:
    """After a change: python tests/conformance/page.py."""
    assert page.PAGE.read_text(encoding="utf-8") == page.render(page.documents(), markers)
    assert page.PEERS_PAGE.read_text(encoding="utf-8") == page.render_peers(page.documents(), markers)


def test_no_number_is_left_out(page: ModuleType) -> None:
    """Each series of ids counts on without a gap; letters after a number too."""
    series: dict[str, set[int]] = {}
    promises: set[str] = set()
    letters: dict[str, list[str]] = {}
    for document in page.documents():
        for identifier, one in document.obligations.items():
            found = re.fullmatch(r"((?:\d{3}-)?(?:[A-Z]+\d*\.|[A-Z]+|(?<=-)))(\d+)([a-z]?)", identifier)
            assert found is not None, identifier
            series.setdefault(found[1], set()).add(int(found[2]))
            promises |= {found[1]} if one.kind == "promise" else set()
            letters.setdefault(found[1] + found[2], []).append(found[3])
    assert {name: len(numbers) for name, numbers in series.items() if name not in promises} == {
        "R": 21, "O": 13, "P": 41, "T1.": 10, "T2.": 18, "T3.": 10, "T4.": 14, "F": 13, "W": 39, "C": 62,
        "A": 37, "AX": 7,
        "000-JE": 19, "000-EJ": 15, "000-Q": 7, "000-QO": 1, "000-A": 17, "000-B": 23, "000-T": 10, "000-C": 4,
        "000-X": 20, "003-": 10,
        "001-J": 13, "001-I": 22, "001-X": 4, "001-S": 14, "001-H": 9, "001-G": 3, "001-M": 25, "001-R": 5, "001-E": 14,
    }  # fmt: skip
    assert series.pop("000-QO") == {5}  # the fifth of the policies of order; the others ask for nothing
    assert all(numbers == set(range(1, len(numbers) + 1)) for numbers in series.values())
    assert all(found == [""] or found == list("abcdef"[: len(found)]) for found in letters.values())


PEERS = re.compile(r"tests/bridge/(contract/test_channels|test_\w*corba\w*|test_bridge_command)\.py::")


def test_a_third_of_the_lines_of_the_bridge_is_held_with_jacorb(page: ModuleType, markers: Any) -> None:
    """In these files JacORB takes part: its service, or its objects in a process of their own."""
    held = {identifier for identifier, tests in markers.tests.items() if any(map(PEERS.match, tests))}
    (bridge,) = (one for one in page.documents() if "000-JE1" in one.obligations)
    assert len(bridge.obligations) == 126
    assert len(held & set(bridge.obligations)) >= 42


def test_texts_are_short(page: ModuleType) -> None:
    lines = [one for document in page.documents() for one in document.obligations.values()]
    long = [one.id for one in lines if not 0 < len(one.text) <= 100 or len(one.happens) > 100]
    assert long == [one.id for one in lines if "|" in one.text + one.happens or not one.section] == []


SOURCE = """
import pytest

@pytest.mark.obligation("R1", "R2")
@pytest.mark.parametrize("x", [1])
def test_one(x): ...

@pytest.mark.endurance
@pytest.mark.obligation("R3")
class TestTwo:
    @pytest.mark.obligation("R1")
    def test_three(self): ...

@pytest.mark.parametrize("x", [1, *(pytest.param(n, marks=pytest.mark.obligation("R4", "R5")) for n in (2, 3))])
async def test_four(x): ...
"""
FILE = "import pytest\npytestmark = [pytest.mark.slow, pytest.mark.obligation('R6', 'R1')]\n"


def test_markers_of_functions_parameters_classes_and_files(page: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_b.py").write_text(FILE)
    (tmp_path / "tests" / "test_a.py").write_text(SOURCE)
    (tmp_path / "tests" / "helper.py").write_text(SOURCE)
    found = page.markers(tmp_path / "tests")
    one, two, four = (f"tests/test_a.py::{name}" for name in ("test_one", "TestTwo", "test_four"))
    assert found.tests == {
        "R1": [one, f"{two}::test_three", "tests/test_b.py"],
        "R2": [one],
        "R3": [two],
        "R4": [four],
        "R5": [four],
        "R6": ["tests/test_b.py"],
    }
    assert found.misplaced == []
    assert found.long == {two}


@pytest.mark.parametrize(
    "source",
    [
        'CASES = [pytest.param(1, marks=pytest.mark.obligation("R1"))]',
        '@pytest.mark.obligation("R1")\ndef helper(): ...',
        "@pytest.mark.obligation(*IDS)\ndef test_one(): ...",
        "@pytest.mark.obligation(1)\ndef test_one(): ...",
        "@pytest.mark.obligation()\ndef test_one(): ...",
    ],
)
def test_a_marker_that_would_count_for_nothing_is_told(page: ModuleType, tmp_path: Path, source: str) -> None:
    (tmp_path / "test_a.py").write_text(f"\n{source}\n")
    found = page.markers(tmp_path)
    assert found.tests == {}
    assert [place.rpartition(":")[0] for place in found.misplaced] == [f"{tmp_path.name}/test_a.py"]
    assert len(page.problems([], found)) == 1


def test_what_must_not_be_is_told(page: ModuleType) -> None:
    line = page.Obligation("R1", "rule", "1", "text")
    held, none = page.Markers({"R1": ["a::b"]}), page.Markers()

    def told(found: object, *lines: object) -> list[str]:
        return list(page.problems([page.Document("t", "e", {one.id: one}) for one in lines], found))  # type: ignore[attr-defined]

    absent, waiting = dataclasses.replace(line, not_applicable="why"), dataclasses.replace(line, pending="work")
    assert told(held, line) == told(none, absent) == told(none, waiting) == told(held, waiting) == []
    assert "no test holds it" in told(none, line)[0]
    assert "not applicable, and yet" in told(held, absent)[0]
    assert "not applicable, and yet" in told(none, dataclasses.replace(absent, pending="work"))[0]
    assert "no obligation has this id; a::b" in told(held)[0]
    assert "only tests that take long" in told(dataclasses.replace(held, long={"a::b"}), line)[0]
    assert told(page.Markers({"R1": ["a::b", "a::c"]}, long={"a::b"}), line) == []
    assert "in two documents" in told(held, line, line)[0]
    promise = dataclasses.replace(line, kind="promise", happens="error")
    assert told(held, promise) == []
    for wrong in (dataclasses.replace(promise, happens=""), dataclasses.replace(line, happens="error")):
        assert "says what happens" in told(held, wrong)[0]
    assert "law is not a kind" in told(held, dataclasses.replace(line, kind="law"))[0]


def test_a_row_says_who_holds_it(page: ModuleType) -> None:
    lines = {
        "R1": page.Obligation("R1", "rule", "3.1", "one"),
        "R2": page.Obligation("R2", "rule", "3.2", "two", not_applicable="why not"),
        "R3": page.Obligation("R3", "rule", "3.3", "three", pending="more work"),
    }
    found = page.Markers({"R1": [f"tests/a/test_{n}.py::test_x" for n in range(5)]})
    text = page.render([page.Document("Title", "Edition", lines)], found)
    assert "## Title\n\nEdition. 3 lines: 1 held by tests, 1 not applicable, 1 to come; 5 tests hold" in text
    assert '\n|<a id="r1"></a>R1|3.1|one|[test_x](../tests/a/test_0.py)|\n' in text
    assert "R2|3.2|two|not applicable: why not|" in text
    assert "R3|3.3|three|to come with: more work|" in text


def test_the_page_of_the_promises_has_a_table_for_each_section(page: ModuleType) -> None:
    lines = {
        f"P{n}": page.Obligation(f"P{n}", "promise", section, f"text {n}", happens=f"error {n}")
        for n, section in enumerate(["Replies", "Files", "Replies"])
    }
    tests = page.Markers({"P0": ["tests/test_a.py::TestA::test_y"], "P2": ["tests/test_b.py"]})
    text = page.render_peers([page.Document("Title", "Edition", lines)], tests)
    replies, _, files = text.partition("## Replies\n")[2].partition("## Files\n")
    assert [line for line in replies.splitlines() if "text" in line] == [
        '|<a id="p0"></a>P0|text 0|error 0|[test_y](../tests/test_a.py)|',
        '|<a id="p2"></a>P2|text 2|error 2|[test_b.py](../tests/test_b.py)|',
    ]
    assert "P1|text 1|error 1|" in files
    listed = page.render([page.Document("Title", "Edition", lines)], tests)
    assert "wrong-peers.md" in listed
    assert "text 1" not in listed
