"""The tables that `mtosi-jms topology` writes, read without Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mtosi_jms.console._topology import Found, element_of
from mtosi_jms.errors import ConfigError, MissingExtraError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("pyarrow", "tables") from error


def read_tables(folder: Path) -> Found:
    """The elements and links of a network, from the folders `nodes` and `edges`. Raises ConfigError: the folder has no
    such tables."""
    try:
        nodes = pq.read_table(folder / "nodes", columns=["id", "type", "known"])
        edges = pq.read_table(folder / "edges", columns=["src", "dst", "kind"], filters=[("kind", "=", "link")])
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ConfigError(f"{folder}: no topology as mtosi-jms topology writes it: {error}") from error
    elements: set[str] = set()
    objects: Counter[str] = Counter()
    for name, kind, known in zip(*(column.to_pylist() for column in nodes.columns), strict=True):
        objects[str(kind)] += bool(known)
        if kind == "ME" and known:
            elements.add(str(name))
    links: Counter[tuple[str, str]] = Counter()
    for source, target, _ in zip(*(column.to_pylist() for column in edges.columns), strict=True):
        first, second = element_of(str(source)), element_of(str(target))
        if first and second and first != second:
            links[min(first, second), max(first, second)] += 1
    return Found(elements, links, objects)
