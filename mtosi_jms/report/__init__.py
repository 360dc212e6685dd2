"""`report.html`: one self-contained page on what an exchange or a job brought.

It uses no script, no network and no external fonts; charts are inline SVG. Light and dark mode follow the reader's
system. All data is escaped. The templates in `templates/` need Jinja2, which the extras `cli` and `spark` install.
"""

from __future__ import annotations

from mtosi_jms.report._graph import GRAPH_NODES
from mtosi_jms.report._model import (
    Fact,
    Graph,
    GraphEdge,
    GraphNode,
    RejectLine,
    Report,
    SequenceLine,
    Table,
    Tone,
)
from mtosi_jms.report._page import Picture, duration, number, render, write_report

__all__ = [
    "GRAPH_NODES",
    "Fact",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "Picture",
    "RejectLine",
    "Report",
    "SequenceLine",
    "Table",
    "Tone",
    "duration",
    "number",
    "render",
    "write_report",
]
