"""The page of transports: what each can do, and what happens instead where it cannot.

Usage: python tests/transport/page.py [arguments of pytest, without -n: the outcomes are counted in this process]

Runs the contract of transports on the embedded provider and on real brokers, which it asks for their capabilities, and
writes docs/transports.md if all passed. The text for what is lacking is the docstring of its test.
"""

from __future__ import annotations

import ast
import runpy
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from mtosi_jms.broker import KINDS, BrokerProcess, start_on_free_ports
from mtosi_jms.transport import Capability, connect

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "transports.md"
CONTRACT = ROOT / "tests" / "transport" / "contract"
LACKING = CONTRACT / "test_lacking.py"
TITLES = {
    "memory": "`memory:`",
    "activemq": "ActiveMQ Classic, STOMP",
    "artemis": "Artemis, STOMP",
    "jvm-activemq": "ActiveMQ Classic, `jvm:`",
    "jvm-artemis": "Artemis, `jvm:`",
    "jvm-qpid": "Qpid JMS at Artemis, `jvm:`",
}
"""The transports by the names that their tests have, in the order of the page."""
PROTOCOLS = {"activemq": ["stomp", "openwire"], "artemis": ["stomp", "amqp", "openwire"]}
"""What each broker must offer for them."""

INTRODUCTION = """\
# Transports

This page lists which optional features (`connection.capabilities`) each transport has. All transports do everything
else. Codes such as C62 name a [line of the specification](conformance.md), or a decision of this project.

`python tests/transport/page.py` writes this page from a run of the contract of transports, `tests/transport/contract/`,
on the embedded provider and on real brokers: change the tests, not this page.
"""

Declared = Mapping[str, frozenset[Capability]]


@dataclass(frozen=True, slots=True)
class Instead:
    """What a test shows of a transport that lacks something.

    Attributes:
        test: its name.
        lacking: the capabilities.
        text: what happens.
    """

    test: str
    lacking: frozenset[Capability]
    text: str


@dataclass(slots=True)
class Outcomes:
    """A plug-in of pytest that counts what passed: by transport, by capability, by whether the transport has it."""

    passed: dict[tuple[str, Capability, bool], int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        """Called by pytest for each phase of each test."""
        report: pytest.TestReport = yield  # type: ignore[assignment, misc]
        callspec = getattr(item, "callspec", None)
        transport = callspec.params.get("provider") if callspec is not None else None
        if report.failed:
            self.failed.append(item.nodeid)
        elif report.passed and report.when == "call" and transport is not None:
            for marker, has in (("capability", True), ("without", False)):
                for one in {one for mark in item.iter_markers(marker) for one in mark.args}:
                    key = transport, one, has
                    self.passed[key] = self.passed.get(key, 0) + 1
        return report  # type: ignore[return-value]


def instead_of(path: Path = LACKING) -> list[Instead]:
    """What the tests marked `without` say in their docstrings."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and (lacking := frozenset(_without(node))):
            found.append(Instead(node.name, lacking, " ".join((ast.get_docstring(node) or "").split())))
    return found


def _without(node: ast.FunctionDef) -> Iterator[Capability]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.without":
            yield from (Capability[ast.unparse(argument).rpartition(".")[2]] for argument in decorator.args)


def render(declared: Declared, instead: Sequence[Instead]) -> str:
    """The page. `declared`: transport, one of `TITLES`, to its capabilities. `instead`: what happens where one is
    lacking."""
    lines = [INTRODUCTION, f"| capability | | {' | '.join(TITLES.values())} |", f"|---|---|{'---|' * len(TITLES)}"]
    lines += [
        f"| `{one.name}` | {one.value} | {' | '.join('yes' if one in declared[name] else 'no' for name in TITLES)} |"
        for one in Capability
    ]
    lines += ["", "## What happens instead", "", "| without | on | | test |", "|---|---|---|---|"]
    for one in Capability:
        on = "; ".join(title for name, title in TITLES.items() if one not in declared[name])
        lines += [f"| `{one.name}` | {on} | {it.text} | `{it.test}` |" for it in instead if on and one in it.lacking]
    return "\n".join([*lines, ""])


def unheld(declared: Declared, instead: Sequence[Instead], outcomes: Outcomes | None = None) -> list[str]:
    """Capabilities for which no test says that they are there, or what happens instead.

    Args:
        declared: transport to its capabilities.
        instead: what happens where one is lacking.
        outcomes: of a run; without one the tests that are written count.
    """
    written = {one for it in instead for one in it.lacking}
    problems = []
    for name, capabilities in declared.items():
        for one in Capability:
            has = one in capabilities
            held = has or one in written if outcomes is None else outcomes.passed.get((name, one, has), 0) > 0
            if not held:
                problems.append(f"{TITLES[name]} {'has' if has else 'lacks'} {one.name}, and no test shows it")
    return problems


def declared_live(folder: Path) -> dict[str, frozenset[Capability]]:
    """What connections to each transport say that they can do; the brokers are started for it."""
    with connect("memory:page-of-transports") as connection:
        declared = {"memory": connection.capabilities}
    for kind, protocols in PROTOCOLS.items():
        broker = start_on_free_ports(partial(KINDS[kind].start, folder / kind), protocols, "page", "of-run")
        try:
            declared |= declared_by(kind, broker)
        finally:
            broker.kill()
    return declared


def declared_by(kind: str, broker: BrokerProcess) -> dict[str, frozenset[Capability]]:
    """What connections to a broker say that they can do: over STOMP, and by each of its Java clients."""
    clients = runpy.run_path(str(Path(__file__).parent / "jvm" / "clients.py"))
    made = {kind: connect(broker.endpoints.url("stomp"))}
    made |= {
        f"jvm-{client}": clients["connect_by_java"](client, broker)
        for client, where in clients["BROKER"].items()
        if where == kind
    }
    declared = {}
    for name, connection in made.items():
        with connection:
            declared[name] = connection.capabilities
    return declared


def main(arguments: Sequence[str]) -> int:
    """Runs the contract and writes the page; 1, and no page, where anything does not pass, 2 for arguments in error."""
    outcomes = Outcomes()
    known = ["-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the package is imported already
    code = pytest.main([str(CONTRACT), "--rootdir", str(ROOT), "-m", "", *known, *arguments], plugins=[outcomes])
    if code == pytest.ExitCode.USAGE_ERROR:
        print(f"{PAGE} is left as it is; -n cannot be used: the outcomes are counted in this process", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        declared = declared_live(Path(folder))
    instead = instead_of()
    problems = outcomes.failed or unheld(declared, instead, outcomes)
    if code or problems:
        print("\n".join(problems), f"{PAGE} is left as it is", sep="\n", file=sys.stderr)
        return 1
    PAGE.write_text(render(declared, instead), encoding="utf-8")
    print(f"{PAGE} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
