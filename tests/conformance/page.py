"""The conformance page: which test holds which line of the specifications.

Usage: python tests/conformance/page.py

`obligations/` lists the lines, one file a document; tests name those that they hold with
`@pytest.mark.obligation("R3a")`, for a function, some of its parameters, a class or, as `pytestmark`, a file. The
markers are read from the sources: no test is imported or run. Writes docs/conformance.md, and docs/wrong-peers.md with
the promises, which say what happens too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
PEERS_PAGE = ROOT / "docs" / "wrong-peers.md"
TITLES = {
    "rule": "Rules",
    "recommendation": "Recommendations",
    "requirement": "Requirements",
    "prose": "Prose",
    "table": "Tables",
    "figure": "Figures",
    "wsdl": "WSDLs",
    "decision": "Decisions",
    "promise": "Promises",
}
"""The kinds of obligations, in the order of the page, and their headings."""

INTRODUCTION = """\
# Conformance

Written by `python tests/conformance/page.py` from `tests/conformance/obligations/` and the markers
`@pytest.mark.obligation("R3a")` in the tests: change those, not this page. The texts are this project's own short form.
*Section* is the specification's; of a decision it says what was open or at odds with itself. Each row links one test
that holds the line; the marker finds the others.
"""

PEERS_INTRODUCTION = """\
# What is checked when a peer is wrong

Written by `python tests/conformance/page.py` from `tests/conformance/obligations/5-peers.toml`: change that, not this
page. The SDK reads on with a warning that names the place, sets the thing aside by name, or raises a typed error.
"""


@dataclass(frozen=True, slots=True)
class Obligation:
    """One line of a specification.

    Attributes:
        id: as markers and comments in the code cite it.
        kind: a key of `TITLES`.
        section: where the document has it.
        text: what it asks for; of a promise, what departs from the rules.
        happens: of a promise, what the SDK does then.
        not_applicable: why no test holds it; empty where one does.
        pending: the work that brings its tests, or the rest of them; empty where all are there.
    """

    id: str
    kind: str
    section: str
    text: str
    happens: str = ""
    not_applicable: str = ""
    pending: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A specification.

    Attributes:
        title: its name.
        edition: which one.
        obligations: its lines, by id.
    """

    title: str
    edition: str
    obligations: Mapping[str, Obligation]


@dataclass(frozen=True, slots=True)
class Markers:
    """What the tests say.

    Attributes:
        tests: by id the tests that hold it, each as `path::name`.
        misplaced: `path:line` of each marker that counts for nothing, since it marks no test or names no plain texts.
        long: tests that `make test` leaves out.
    """

    tests: dict[str, list[str]] = field(default_factory=dict)
    misplaced: list[str] = field(default_factory=list)
    long: set[str] = field(default_factory=set)


def documents(folder: Path = ROOT / "tests" / "conformance" / "obligations") -> list[Document]:
    """The specifications, in the order of the names of their files."""
    return [_document(path) for path in sorted(folder.glob("*.toml"))]


def _document(path: Path) -> Document:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    title, edition, pending = content.pop("title"), content.pop("edition"), content.pop("pending", "")
    found: dict[str, Obligation] = {}
    for kind, lines in content.items():
        for identifier, line in lines.items():
            waits = "" if "not_applicable" in line else pending
            found[identifier] = Obligation(id=identifier, kind=kind, **{"pending": waits, **line})
    return Document(title, edition, found)


def markers(folder: Path = ROOT / "tests") -> Markers:
    """The markers of all tests below a folder."""
    found = Markers()
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(folder.parent).as_posix()
        counted = set()
        marks = list(_marks(tree, name))
        found.long.update(test for test, mark in marks if "pytest.mark.endurance" in map(ast.unparse, _plain(mark)))
        for test, marker in ((test, call) for test, mark in marks for call in _calls(mark)):
            ids = [one.value for one in marker.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(ids) == len(marker.args) and ids:
                counted.add(marker)
                for identifier in ids:
                    found.tests.setdefault(identifier, []).append(test)
        found.misplaced.extend(f"{name}:{call.lineno}" for call in _calls(tree) if call not in counted)
    once = {identifier: list(dict.fromkeys(tests)) for identifier, tests in found.tests.items()}
    return Markers(once, found.misplaced, found.long)


def _marks(parent: ast.AST, name: str) -> Iterator[tuple[str, ast.expr]]:
    """The marks in a module or class with what they mark: a test, its parameters counting for it, a class, a file."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{name}::{node.name}"
            if node.name.startswith(("test", "Test")):
                yield from ((inside, decorator) for decorator in node.decorator_list)
            if isinstance(node, ast.ClassDef):
                yield from _marks(node, inside)
        elif isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]:
            yield name, node.value


def _plain(mark: ast.expr) -> Sequence[ast.expr]:
    """The marks of a whole test, class or file, not of some of its parameters."""
    return mark.elts if isinstance(mark, ast.List) else [mark]


def _calls(parent: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(parent) if isinstance(node, ast.Call) and _is_marker(node))


def _is_marker(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "obligation"
    return named and ast.unparse(call.func) == "pytest.mark.obligation"


def problems(known: Sequence[Document], found: Markers) -> list[str]:
    """What must not be: each line names the id or the place, and what is wrong."""
    told = [f"{place}: a marker marks a test, and names ids as plain texts" for place in found.misplaced]
    obligations = [one for document in known for one in document.obligations.values()]
    ids = [one.id for one in obligations]
    told += [f"{identifier}: in two documents" for identifier in sorted({one for one in ids if ids.count(one) > 1})]
    for identifier in sorted(set(found.tests) - set(ids)):
        told.append(f"{identifier}: no obligation has this id; {', '.join(found.tests[identifier])}")
    for one in obligations:
        held = one.id in found.tests
        if (one.kind == "promise") != bool(one.happens):
            told.append(f"{one.id}: a promise, and nothing else, says what happens")
        if one.kind not in TITLES:
            told.append(f"{one.id}: {one.kind} is not a kind of obligation")
        if one.not_applicable and (held or one.pending):
            told.append(f"{one.id}: not applicable, and yet there is a test, or one is to come")
        if not (one.not_applicable or held or one.pending):
            told.append(f"{one.id}: no test holds it ({one.text})")
        if held and all(any(test.startswith(long) for long in found.long) for test in found.tests[one.id]):
            told.append(f"{one.id}: only tests that take long hold it")
    return told


def render(known: Sequence[Document], found: Markers) -> str:
    """The page of all obligations; of the promises it has the count and the link to their own page."""
    parts = [INTRODUCTION]
    anchors: set[str] = set()
    for document in known:
        lines = list(document.obligations.values())
        parts.append(f"## {document.title}\n\n{document.edition}. {_summary(lines, found)}\n")
        for kind, title in TITLES.items():
            chosen = [one for one in lines if one.kind == kind]
            if chosen and kind == "promise":
                parts.append("Each promise and its tests: [when a peer is wrong](wrong-peers.md).\n")
            elif chosen:
                head = "|id|section|obligation|test|\n|---|---|---|---|\n"
                rows = [_row(one, (one.section, one.text), found, anchors) for one in chosen]
                parts.append(f"### {title}\n\n{head}" + "".join(rows))
    return "\n".join(parts)


def _summary(lines: Sequence[Obligation], found: Markers) -> str:
    waiting = [one for one in lines if one.pending]
    without = [one for one in lines if one.not_applicable]
    held = len(lines) - len(waiting) - len(without)
    tests = {test for one in lines for test in found.tests.get(one.id, [])}
    said = f"{len(lines)} lines: {held} held by tests, {len(without)} not applicable, {len(waiting)} to come"
    return f"{said}; {len(tests)} tests hold at least one."


def _row(one: Obligation, cells: Sequence[str], found: Markers, anchors: set[str]) -> str:
    """A row: the id with its anchors, what the caller says, and the state: a test, or why there is none."""
    tests = found.tests.get(one.id, [])
    state = [_link(test) for test in tests[:1]]
    if one.not_applicable:
        state.append(f"not applicable: {one.not_applicable}")
    if one.pending:
        state.append(f"to come with: {one.pending}")
    names = [name for name in dict.fromkeys((one.id.lower(), one.id.lower().rstrip("abcdef"))) if name not in anchors]
    anchors.update(names)
    place = "".join(f'<a id="{name}"></a>' for name in names)
    return f"|{place}{'|'.join((one.id, *cells, ' '.join(state) or 'nothing yet'))}|\n"


def render_peers(known: Sequence[Document], found: Markers) -> str:
    """The page of the promises: a table for each section, in the order in which the sections come first."""
    tables: dict[str, list[str]] = {}
    anchors: set[str] = set()
    for one in (one for document in known for one in document.obligations.values() if one.happens):
        tables.setdefault(one.section, []).append(_row(one, (one.text, one.happens), found, anchors))
    head = "|id|what is wrong|what happens|test|\n|---|---|---|---|\n"
    return "\n".join([PEERS_INTRODUCTION, *(f"## {title}\n\n{head}{''.join(rows)}" for title, rows in tables.items())])


def _link(test: str) -> str:
    """A test by its own name; the link says in which file it is."""
    path, _, name = test.partition("::")
    return f"[{name.rpartition('::')[2] or Path(path).name}](../{path})"


def main() -> int:
    """Write the pages; 1 where something must not be."""
    known, found = documents(), markers()
    PAGE.write_text(render(known, found), encoding="utf-8")
    PEERS_PAGE.write_text(render_peers(known, found), encoding="utf-8")
    told = problems(known, found)
    for line in told:
        print(line, file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
