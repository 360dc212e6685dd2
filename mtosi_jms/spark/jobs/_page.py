"""The network as a graph, for the page of a topology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql import functions as f

from mtosi_jms.report import GRAPH_NODES, Graph, GraphEdge, GraphNode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_ELEMENT: Final = "^(?:[^/]*/)*?ME=[^/]*"
_DOMAIN: Final = "^[^/]*"


def network_graph(nodes: DataFrame, edges: DataFrame) -> Graph:
    """Return a graph of a network that is small enough for a page.

    Its nodes are managed elements, and its edges are the links and references between objects in them. If there are too
    many elements, or none, its nodes are management domains. If there are too many domains, or only one, its nodes are
    object types, and its edges are all relationships.
    """
    elements = _groups(nodes, _ELEMENT)
    why = (
        f"More than {GRAPH_NODES} managed elements are too many to draw" if elements else "There is no managed element"
    )
    if 0 < len(elements) <= GRAPH_NODES:
        caption = "Each circle is a managed element; a line is a link or a reference between two of them."
        return _graph(elements, _ends(edges, _ELEMENT), caption)
    domains = _groups(nodes, _DOMAIN)
    if 1 < len(domains) <= GRAPH_NODES:
        caption = f"{why}: each circle is a management domain; a line is a link or a reference."
        return _graph(domains, _ends(edges, _DOMAIN), caption)
    return _type_graph(nodes, edges, f"{why}: each circle is an object type; a line is any relationship.")


def _type_graph(nodes: DataFrame, edges: DataFrame, caption: str) -> Graph:
    types = nodes.groupBy(f.col("type").alias("id")).agg(f.count("*").alias("size"), f.max("known").alias("known"))
    ends = edges
    for end, name in (("src", "a"), ("dst", "z")):
        ends = ends.join(nodes.select(f.col("id").alias(end), f.col("type").alias(name)), end)
    found = types.collect()
    return _graph(found, ends.select("a", "z"), caption)


def _groups(nodes: DataFrame, pattern: str) -> list[Row]:
    """Group nodes by the part of their names that a pattern finds, and count them; at most one more than is drawn."""
    parts = nodes.select(
        _beginning("id", pattern).alias("id"),
        (f.col("known") & (f.col("id") == _beginning("id", pattern))).alias("known"),
    )
    counted = parts.where("id != ''").groupBy("id").agg(f.count("*").alias("size"), f.max("known").alias("known"))
    return counted.limit(GRAPH_NODES + 1).collect()


def _ends(edges: DataFrame, pattern: str) -> DataFrame:
    drawn = edges.where("kind != 'containment'")
    return drawn.select(_beginning("src", pattern).alias("a"), _beginning("dst", pattern).alias("z"))


def _beginning(column: str, pattern: str) -> Column:
    return f.regexp_extract(f.col(column), pattern, 0)


def _graph(groups: Sequence[Row], ends: DataFrame, caption: str) -> Graph:
    """Return a graph of groups; an edge between two groups has the number of `ends` between them."""
    between = ends.where("a != z and a != '' and z != ''")
    pairs = between.select(f.least("a", "z").alias("a"), f.greatest("a", "z").alias("z")).groupBy("a", "z").count()
    lines = [GraphEdge(row["a"], row["z"], row["count"]) for row in pairs.orderBy("a", "z").collect()]
    nodes = [GraphNode(row["id"], _label(row["id"]), row["size"], row["known"]) for row in groups]
    return Graph(sorted(nodes, key=lambda node: node.id), lines, caption)


def _label(name: str) -> str:
    """Return the value of the last step of a name."""
    return unquote(name.rpartition("/")[2].partition("=")[2]) or name
