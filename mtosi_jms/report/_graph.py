"""Lays out graphs by forces that push nodes apart and pull neighbours together; the result is always the same.

Nodes start on a circle in the order of their names, so a ring stays a ring; nothing is random. Labels are placed one
after the other, first those of nodes with many edges, where they cover neither a label nor a node. A label without room
is left out: the tooltip of its node has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mtosi_jms.report._model import Graph, GraphNode

GRAPH_NODES: Final = 150
"""Most nodes that are drawn."""
WIDTH: Final = 720
_HEIGHT: Final = 480
_MARGIN: Final = 36
_ROUNDS: Final = 120
_RADIUS: Final = (4.0, 16.0)
_LABEL: Final = 24
_LETTER: Final = 6.6
_LINE: Final = 14
_LEAST: Final = 1e-6

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Dot:
    """A node at its position. `text` is its label if there is room for one, anchored at `text_x`, `text_y`."""

    node: GraphNode
    x: float
    y: float
    radius: float
    text: str = ""
    text_x: float = 0
    text_y: float = 0
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Line:
    """An edge between two positions, and its thickness."""

    a: Dot
    z: Dot
    count: int
    width: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph laid out in a picture of a height; `left_out` is the number of nodes that are not drawn."""

    height: float
    dots: list[Dot]
    lines: list[Line]
    left_out: int


def draw(graph: Graph) -> Drawing:
    nodes = sorted(sorted(graph.nodes, key=lambda node: (-node.size, node.id))[:GRAPH_NODES], key=lambda node: node.id)
    index = {node.id: number for number, node in enumerate(nodes)}
    edges = [(index[edge.a], index[edge.z], edge.count) for edge in graph.edges if {edge.a, edge.z} <= index.keys()]
    height = _HEIGHT if len(nodes) > 6 else 260
    places = _lay_out(len(nodes), [(a, z) for a, z, _ in edges], height)
    largest = max((node.size for node in nodes), default=1)
    dots = _labelled(nodes, places, [_radius(node.size, largest, len(nodes)) for node in nodes], edges, height)
    thickest = max((count for _, _, count in edges), default=1)
    lines = [Line(dots[a], dots[z], count, 1 + 3 * (count - 1) / max(1, thickest - 1)) for a, z, count in edges]
    return Drawing(height, dots, lines, len(graph.nodes) - len(nodes))


def _radius(size: int, largest: int, nodes: int) -> float:
    least, most = _RADIUS if nodes <= 40 else (3.5, 9.0)
    if largest <= 1:
        return least + 2 if nodes <= 40 else least
    return least + (most - least) * math.sqrt(size / largest)


def _lay_out(count: int, edges: Sequence[tuple[int, int]], height: float) -> list[Point]:
    """Positions of nodes in the picture: those with an edge are close together, others apart."""
    places = _places(count, edges)
    xs = _stretched([x for x, _ in places], WIDTH, 2 * _MARGIN)
    return list(zip(xs, _stretched([y for _, y in places], height, _MARGIN), strict=True))


def _places(count: int, edges: Sequence[tuple[int, int]]) -> list[Point]:
    """Positions at which nodes come to rest in a plane of about one by one (Fruchterman and Reingold)."""
    if count == 1:
        return [(0.0, 0.0)]
    turn = 2 * math.pi / max(1, count)
    xs = [math.cos(turn * number) / 2 for number in range(count)]
    ys = [math.sin(turn * number) / 2 for number in range(count)]
    near = math.sqrt(1 / max(1, count))
    for step in range(_ROUNDS):
        heat = 0.1 * (1 - step / _ROUNDS)
        # Pull a little towards the middle, or unconnected parts drift apart.
        pushes = [[-0.3 * near * x * count**0.5, -0.3 * near * y * count**0.5] for x, y in zip(xs, ys, strict=True)]
        _push(xs, ys, pushes, near)
        for a, z in edges:
            dx, dy = xs[a] - xs[z], ys[a] - ys[z]
            pull = math.hypot(dx, dy) / near
            for node, sign in ((a, -1), (z, 1)):
                pushes[node][0] += sign * dx * pull
                pushes[node][1] += sign * dy * pull
        for node, (dx, dy) in enumerate(pushes):
            length = math.hypot(dx, dy)
            if length > _LEAST:
                xs[node] += dx / length * min(length, heat)
                ys[node] += dy / length * min(length, heat)
    return list(zip(xs, ys, strict=True))


def _push(xs: Sequence[float], ys: Sequence[float], pushes: list[list[float]], near: float) -> None:
    square = near * near
    for one in range(len(xs)):
        x, y, own = xs[one], ys[one], pushes[one]
        for other in range(one):
            dx, dy = x - xs[other], y - ys[other]
            force = square / max(dx * dx + dy * dy, _LEAST)
            own[0] += dx * force
            own[1] += dy * force
            pushes[other][0] -= dx * force
            pushes[other][1] -= dy * force


def _stretched(values: Sequence[float], room: float, margin: float) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high - low < 0.01:
        return [room / 2 for _ in values]
    return [margin + (value - low) / (high - low) * (room - 2 * margin) for value in values]


def _labelled(
    nodes: Sequence[GraphNode],
    places: Sequence[Point],
    radii: Sequence[float],
    edges: Iterable[tuple[int, int, int]],
    height: float,
) -> list[Dot]:
    degrees = [0] * len(nodes)
    for a, z, _ in edges:
        degrees[a] += 1
        degrees[z] += 1
    taken: list[Box] = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(places, radii, strict=True)]
    dots: dict[int, Dot] = {}
    for number in sorted(range(len(nodes)), key=lambda number: (-nodes[number].size, -degrees[number], number)):
        node, (x, y), radius = nodes[number], places[number], radii[number]
        text = node.label if len(node.label) <= _LABEL else node.label[: _LABEL - 1] + "…"
        dot = Dot(node, x, y, radius)
        for anchor, (text_x, text_y), box in _spots(x, y, radius, len(text) * _LETTER):
            if _is_free(box, taken, height):
                taken.append(box)
                dot = Dot(node, x, y, radius, text, text_x, text_y, anchor)
                break
        dots[number] = dot
    return [dots[number] for number in range(len(nodes))]


def _spots(x: float, y: float, radius: float, width: float) -> Iterable[tuple[str, Point, Box]]:
    """Possible positions of a label: below, above, right, left."""
    gap, half = radius + 3, _LINE / 2
    for side in (1, -1):
        middle = y + side * (gap + half)
        yield "middle", (x, middle), (x - width / 2, middle - half, x + width / 2, middle + half)
    yield "start", (x + gap, y), (x + gap, y - half, x + gap + width, y + half)
    yield "end", (x - gap, y), (x - gap - width, y - half, x - gap, y + half)


def _is_free(box: Box, taken: Iterable[Box], height: float) -> bool:
    left, top, right, bottom = box
    if left < 0 or top < 0 or right > WIDTH or bottom > height:
        return False
    return not any(left < r and right > x and top < b and bottom > t for x, t, r, b in taken)
