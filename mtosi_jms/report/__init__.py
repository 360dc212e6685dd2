"""`report.html`: one self-contained page on what an exchange or a job brought.

No script, no network, no fonts from elsewhere; charts are inline SVG. Light and dark follow the reader's system.
Everything that comes from data is escaped. What it looks like is in `templates/`, by Jinja2: of the extras `cli` and
`spark`.
"""

from __future__ import annotations

from mtosi_jms.report._charts import duration, number
from mtosi_jms.report._graph import GRAPH_NODES
from mtosi_jms.report._model import (
    Event,
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
from mtosi_jms.report._page import Picture, render, write_report

__all__ = [
    "GRAPH_NODES",
    "Event",
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
