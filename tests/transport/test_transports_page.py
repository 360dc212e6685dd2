"""docs/transports.md is what a run of the contract writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mtosi_jms.transport import ALL_CAPABILITIES, Capability, connect

from .page import PAGE, Outcomes, declared_by, instead_of, render, unheld


@pytest.mark.broker
def test_the_page_is_fresh(request: pytest.FixtureRequest) -> None:
    """What the transports are asked, and what the tests say: `make test` runs them."""
    pytest.importorskip("jpype", reason="JPype is not installed")
    with connect("memory:fresh-page") as connection:
        declared = {"memory": connection.capabilities}
    for kind in ("activemq", "artemis"):
        declared |= declared_by(kind, request.getfixturevalue(kind))
    instead = instead_of()
    assert unheld(declared, instead) == []
    assert PAGE.read_text(encoding="utf-8") == render(declared, instead), "run python tests/transport/page.py"


def test_what_no_test_shows_is_told() -> None:
    declared = {"memory": ALL_CAPABILITIES - {Capability.BROWSE}, "artemis": ALL_CAPABILITIES}
    outcomes = Outcomes()
    for one in Capability:
        outcomes.passed["artemis", one, True] = 1
        outcomes.passed["memory", one, one is not Capability.DURABLE] = 1
    assert unheld(declared, [], outcomes) == [
        "`memory:` lacks BROWSE, and no test shows it",
        "`memory:` has DURABLE, and no test shows it",
    ]
    assert unheld(declared, []) == ["`memory:` lacks BROWSE, and no test shows it"]


@pytest.mark.parametrize(
    "option",
    ["-n3", *(pytest.param(one, marks=pytest.mark.endurance) for one in ("--numprocesses=auto", "--dist=load"))],
)
def test_several_processes_are_refused_at_once(root: Path, option: str) -> None:
    """Their outcomes would not be counted."""
    before = PAGE.stat().st_mtime_ns
    script = root / "tests" / "transport" / "page.py"
    done = subprocess.run([sys.executable, str(script), option], capture_output=True, text=True)
    assert done.returncode == 2
    assert "-n cannot be used" in done.stderr
    assert PAGE.stat().st_mtime_ns == before


def test_every_text_is_of_a_test_that_says_what_happens() -> None:
    found = instead_of()
    assert len(found) > 10
    assert [one.test for one in found if len(one.text) < 20] == []


def told(outcomes: Outcomes, transport: str, result: str, **marks: Capability) -> None:
    """What pytest tells of one phase of one test."""
    item: Any = SimpleNamespace(
        nodeid=f"test[{transport}]",
        callspec=SimpleNamespace(params={"provider": transport}),
        iter_markers=lambda name: [SimpleNamespace(args=(marks[name],))] if name in marks else [],
    )
    report = SimpleNamespace(failed=result == "failed", passed=result == "passed", when="call")
    hook = outcomes.pytest_runtest_makereport(item)
    next(hook)
    with pytest.raises(StopIteration):
        hook.send(report)  # type: ignore[attr-defined]


def test_the_run_counts_by_transport_and_capability() -> None:
    outcomes = Outcomes()
    told(outcomes, "memory", "passed", capability=Capability.BROWSE)
    told(outcomes, "memory", "passed", capability=Capability.BROWSE)
    told(outcomes, "artemis", "skipped", capability=Capability.BROWSE)
    told(outcomes, "artemis", "passed", without=Capability.BROWSE)
    told(outcomes, "activemq", "failed", without=Capability.BROWSE)
    assert outcomes.passed == {("memory", Capability.BROWSE, True): 2, ("artemis", Capability.BROWSE, False): 1}
    assert outcomes.failed == ["test[activemq]"]
