"""Renders the page from `templates/report.html.jinja`. All data is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.masking import without_login
from mtosi_jms.report._charts import LABEL, bars, duration, number, timeline
from mtosi_jms.report._graph import WIDTH, draw
from mtosi_jms.report._model import Graph, Report

try:
    import jinja2
except ImportError as error:
    raise MissingExtraError("jinja2", "cli") from error

_ROWS: Final = 500
_TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined,
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters.update(number=number, duration=duration, bars=bars, timeline=timeline, draw=draw, px="{:.1f}".format)
_TEMPLATES.globals.update(width=WIDTH, left=LABEL, most=_ROWS)


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
