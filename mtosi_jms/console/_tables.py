"""The tables that `mtosi-jms topology` writes, read without Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mtosi_jms.console._alarms import element_of
from mtosi_jms.console._topology import Link, Network, link_of
from mtosi_jms.errors import MissingExtraError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("pyarrow", "tables") from error


def read_tables(folder: Path) -> Network:
    """The elements of a network, and the links and references between them, from the folders `nodes` and `edges`."""
    try:
        nodes = pq.read_table(folder / "nodes", columns=["id", "type", "known"])
        edges = pq.read_table(
            folder / "edges", columns=["src", "dst", "relationship"], filters=[("kind", "!=", "containment")]
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        problem = f"{folder}: no topology as mtosi-jms topology writes it: {error}"
        return Network(set(), Counter(), Counter(), problem=problem)
    elements: set[str] = set()
    objects: Counter[str] = Counter()
    for name, kind, known in zip(*(column.to_pylist() for column in nodes.columns), strict=True):
        objects[str(kind)] += bool(known)
        if kind == "ME" and known:
            elements.add(str(name))
    links: Counter[Link] = Counter()
    for source, target, layer in zip(*(column.to_pylist() for column in edges.columns), strict=True):
        if link := link_of(element_of(str(source)), element_of(str(target)), str(layer)):
            links[link] += 1
    return Network(elements, links, objects)
