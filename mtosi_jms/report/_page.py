"""Renders the page from `templates/report.html.jinja`, with the data of its charts. All data is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.masking import without_login
from mtosi_jms.report._graph import WIDTH, draw
from mtosi_jms.report._model import Graph, Report

try:
    import jinja2
except ImportError as error:
    raise MissingExtraError("jinja2", "cli") from error


def number(value: float) -> str:
    """A number for people, as all commands and pages write it: `12,000`."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A duration for people: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, with its length in percent of the longest bar."""

    name: str
    value: float
    share: float


def bars(values: Mapping[str, float], most: int = 12) -> list[Bar]:
    """Bars, one per value. `most`: most bars; further values are summed up in one bar."""
    items = list(values.items())
    if len(items) > most:
        rest = items[most - 1 :]
        items = [*items[: most - 1], (f"{len(rest)} others", sum(value for _, value in rest))]
    largest = max((value for _, value in items), default=0) or 1
    return [Bar(name, value, value / largest * 100) for name, value in items]


_ROWS: Final = 500
_TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined,
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters.update(number=number, duration=duration, bars=bars, draw=draw, px="{:.1f}".format)
_TEMPLATES.globals.update(width=WIDTH, most=_ROWS)


def render(report: Report) -> str:
    """The report as one self-contained HTML page; passwords in URLs are masked."""
    worst = sorted(report.sequences, key=lambda line: (line.complete, not line.conflicts))
    return without_login(_TEMPLATES.get_template("report.html.jinja").render(report=report, sequences=worst))


class Picture:
    """A graph as inline SVG; Jupyter shows it as the result of a cell. `html`: the drawing and its caption, with their
    styles for light and dark mode."""

    def __init__(self, graph: Graph) -> None:
        self.html: Final = _TEMPLATES.get_template("picture.html.jinja").render(graph=graph)

    def _repr_html_(self) -> str:
        return self.html


def write_report(report: Report, path: str | Path) -> None:
    """Write the page to a file. Raises OSError: the file cannot be written."""
    Path(path).write_bytes(render(report).encode("utf-8", "backslashreplace"))
