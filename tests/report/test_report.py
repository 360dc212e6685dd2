"""The report page: what it shows, that it needs nothing else, and that data cannot become markup."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mtosi_jms.report import (
    GRAPH_NODES,
    Fact,
    Graph,
    GraphEdge,
    GraphNode,
    Picture,
    RejectLine,
    Report,
    SequenceLine,
    Table,
    duration,
    number,
    render,
    write_report,
)

MADE = dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)
VOID = {"meta", "line", "rect", "circle", "path", "br"}


class Checker(HTMLParser):
    """Collects text, and sees that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def parsed(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture
def full() -> Report:
    return Report(
        title="Inventory",
        subtitle="from a to b",
        made=MADE,
        facts=[Fact("elements", "12"), Fact("complete", "no", "bad")],
        graph=Graph([GraphNode("ME=a", "a"), GraphNode("ME=b", "b", known=False)], [GraphEdge("ME=a", "ME=b")], "Two."),
        charts={
            "Objects by type": {"ME": 12000, "EQ": 0},
            "Objects by manufacturer": {f"V{index}": index for index in range(20)},
            "One": {"only": 7},
        },
        tables=[Table("Sample", ("name", "rows", "known", "at", "note"), [("row", 3456, True, MADE, None)])],
        links={"the summary": "summary.json"},
        steps={"Go on": "mtosi-jms diff a b"},
        sequences=[
            SequenceLine("fine", 2, 2),
            SequenceLine("gap", 3, 5, [2, 4], 2, 1, 0, complete=False),
            SequenceLine("long", 1, 5000, list(range(2, 1002)), 4999, complete=False),
            SequenceLine("open", 1, None, complete=False),
        ],
        rejects=[RejectLine("a.xml", 7, "not SOAP"), RejectLine("b.xml", None, "cannot be read")],
        seconds={"plan": 0.02, "read": 3.0},
        notes=["rows are marked"],
    )


def test_page_shows_every_part(full: Report) -> None:
    text = " ".join(parsed(render(full)).texts)
    for part in (
        "Inventory", "from a to b", "2026-01-02 03:04:05 UTC", "elements", "12,000", "Objects by type",
        "Objects by manufacturer", "9 others", "Ledger of sequences", "2, 4", "(4,999)",
        "the end", "unknown", "\u2717 incomplete",
        "\u2713 complete", "Rejected", "a.xml", "not SOAP", "20 ms", "3.0 s", "rows are marked",
        "Network", "Two.", "only: 7", "Sample",
        "3,456", "yes", "2026-01-02T03:04:05Z", "summary.json", "mtosi-jms diff a b",
    ):  # fmt: skip
        assert part in text, part


def test_page_needs_nothing_else_and_has_incomplete_sequences_first(full: Report) -> None:
    page = render(full)
    assert page.index(">gap<") < page.index(">fine<")
    assert "<script" not in page
    assert not re.search(r"""src\s*=|url\(|@import""", page)
    assert re.findall(r'href="([^"]*)"', page) == ["summary.json"], "files beside it only"
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) == {"http://www.w3.org/2000/svg"}


def test_empty_report_has_no_sections() -> None:
    checker = parsed(render(Report(title="Nothing")))
    assert "section" not in checker.tags
    assert "svg" not in checker.tags


def test_data_stays_data() -> None:
    evil = "<img src=x onerror=alert(1)>\"'&"
    page = render(
        Report(
            title=evil,
            subtitle=evil,
            facts=[Fact(evil, evil)],
            graph=Graph([GraphNode(evil, evil), GraphNode("b", evil)], [GraphEdge(evil, "b")], evil),
            charts={evil: {evil: 1}, "several": {evil: 2, "b": 1}},
            tables=[Table(evil, (evil,), [(evil,)])],
            links={evil: "javascript:alert(1)"},
            steps={evil: evil},
            sequences=[SequenceLine(evil, 1, 1)],
            rejects=[RejectLine(evil, 1, evil)],
            seconds={evil: 1.0},
            notes=[evil],
        )
    )
    assert "img" not in parsed(page).tags
    assert 'href="javascript:' not in page


def test_long_tables_are_cut_and_say_so() -> None:
    rejects = [RejectLine(f"{index}.xml", 1, "x") for index in range(700)]
    page = render(Report(title="t", rejects=rejects))
    assert page.count("<tr>") == 501
    assert "The first 500 of 700." in page


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0004, "0 ms"), (0.25, "250 ms"), (3.44, "3.4 s"), (125.2, "2 min 5 s")]
)
def test_durations_and_numbers(seconds: float, text: str) -> None:
    assert (duration(seconds), number(1234567)) == (text, "1,234,567")


def test_bars_scale_to_the_largest() -> None:
    chart = render(Report(title="c", charts={"c": {"a": 100, "b": 50, "none": 0}}))
    assert re.findall(r'<rect width="([\d.]+)"', chart) == ["100.00", "50.00", "0.00"]


def placed(page: str) -> list[tuple[float, float]]:
    found = re.findall(r'<circle class="node[^"]*" cx="([\d.]+)" cy="([\d.]+)"', page)
    return [(float(x), float(y)) for x, y in found]


@pytest.mark.parametrize("count", [1, 2, 40, 400])
def test_a_graph_is_bounded_and_drawn_the_same_way_each_time(count: int) -> None:
    nodes = [GraphNode(f"ME={number}", f"element {number}", size=number) for number in range(count)]
    edges = [GraphEdge(f"ME={number}", f"ME={(number + 1) % count}") for number in range(count)]
    page = Picture(Graph(nodes, edges, "A ring."))._repr_html_()
    assert page == Picture(Graph(nodes[::-1], edges, "A ring.")).html
    spots = placed(page)
    assert len(set(spots)) == len(spots) == min(count, GRAPH_NODES)
    assert all(0 < x < 720 and 0 < y < 480 for x, y in spots)
    assert ("The 150 largest are drawn, 250 are not." in page) is (count == 400)
    assert "<script" not in page


def test_an_edge_without_an_end_is_left_out() -> None:
    page = Picture(Graph([GraphNode("a", "a")], [GraphEdge("a", "nowhere")])).html
    assert '<line class="edge"' not in page


def test_without_jinja2_the_error_names_the_extra() -> None:
    program = "import sys; sys.modules['jinja2'] = None; from mtosi_jms.cli import main; sys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "jinja2 is not installed: pip install 'mtosi-jms[cli]'" in done.stderr


def test_write_report_takes_any_text(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    write_report(Report(title="bad \udcff name"), target)
    assert "bad \\udcff name" in target.read_text(encoding="utf-8")
