"""Draws a network: managed elements and the links between them, limited to a readable number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import MtosiError
from mtosi_jms.inventory import Hit, Routes, find_objects, given_name, is_object, label_of, name_text
from mtosi_jms.namespaces import SOAP11, SOAP12, clark, split_clark
from mtosi_jms.report import lay_out
from mtosi_jms.xmlbind import parse_xml, read_document

NODES: Final = 120
"""Most elements in a drawing; those with the most links are chosen."""
EDGES: Final = 600
OCTETS: Final = BOUNDS.console_drawing_bytes
"""Most octets of a landing that are read for a drawing."""
WIDTH: Final = 1000
HEIGHT: Final = 640
_MARGIN: Final = 40
_BODIES: Final = (clark(SOAP11, "Body"), clark(SOAP12, "Body"))
_ENDS: Final = ("aEnd", "zEnd")


class Node(NamedTuple):
    """A managed element or its container: full name, last part of the name, number of links, position."""

    name: str
    label: str
    kind: str
    links: int
    x: float
    y: float


class Edge(NamedTuple):
    """A line between two nodes, with its ends. `links` is the number of links, 0 if one node contains the other."""

    first: str
    second: str
    links: int
    x1: float
    y1: float
    x2: float
    y2: float


class Graph(NamedTuple):
    """A drawing.

    Attributes:
        nodes: its nodes, those with the most links first.
        objects: how many objects of each type were found.
        left_out: number of elements for which there is no room.
        note: what was not read; empty if everything was read.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    objects: dict[str, int]
    left_out: int
    note: str


class Found(NamedTuple):
    """The names of elements, links as pairs of the names of their ends, and how many objects of each type there are."""

    elements: set[str]
    links: Counter[tuple[str, str]]
    objects: Counter[str]
    note: str = ""


def read_landing(files: Sequence[Path]) -> Found:
    """The elements and links in the envelopes of a landing, up to the limit; unreadable envelopes are skipped."""
    found = Found(set(), Counter(), Counter())
    routes, size = Routes(is_object), 0
    for number, path in enumerate(files):
        try:
            data = read_document(path)
            size += len(data)
            if size > OCTETS:
                return found._replace(
                    note=f"The first {number:,} of {len(files):,} files were read, for there are many."
                )
            root = parse_xml(data, odd_prefixes=[])
        except (MtosiError, OSError):
            continue
        body = next((child for child in root if child.tag in _BODIES), None)
        for hit in () if body is None else find_objects(body, routes):
            _note(hit, found)
    return found


def _note(hit: Hit, found: Found) -> None:
    kind = label_of(hit.table)
    found.objects[kind] += 1
    name = hit.name or (given_name(hit.element, hit.table) if hit.element is not None else "")
    if element := element_of(name):
        found.elements.add(element)
    if hit.element is None or kind != "TL":
        return
    sides = [[element_of(one) for one in _names_at(hit.element, end)] for end in _ENDS]
    for first in sides[0]:
        for second in sides[1]:
            if first and second and first != second:
                found.links[min(first, second), max(first, second)] += 1


def element_of(name: str) -> str:
    """The name of the managed element in an object's name, as `MD=EMS1/ME=NE-7`; empty if there is none."""
    steps = name.split("/")
    at = next((at for at, step in enumerate(steps) if step.startswith("ME=")), None)
    return "" if at is None else "/".join(steps[: at + 1])


def _names_at(element: etree._Element, end: str) -> Iterator[str]:
    """The object names in the children whose element names begin with `end`."""
    for child in element:
        if not isinstance(child.tag, str) or not split_clark(str(child.tag))[1].startswith(end):
            continue
        for each in child.iter():
            if isinstance(each.tag, str) and len(each) and all(_is_step(part) for part in each):
                yield name_text(each)


def _is_step(element: etree._Element) -> bool:
    return {split_clark(str(part.tag))[1] for part in element if isinstance(part.tag, str)} >= {"type", "value"}


def graph_of(found: Found) -> Graph:
    """The drawing of elements and links. Without links, elements are placed around the domain that contains them."""
    degree: Counter[str] = Counter()
    for (first, second), number in found.links.items():
        degree[first] += number
        degree[second] += number
    names = sorted({*found.elements, *degree}, key=lambda name: (-degree[name], name))
    shown = names[:NODES]
    lines: dict[tuple[str, str], int] = {
        pair: number for pair, number in found.links.most_common() if pair[0] in shown and pair[1] in shown
    }
    kinds = dict.fromkeys(shown, "element")
    if not found.links:
        for name in shown:
            around = name.rpartition("/")[0]
            if around:
                kinds[around] = "domain"
                lines[around, name] = 0
    lines = dict(list(lines.items())[:EDGES])
    at = {name: number for number, name in enumerate(kinds)}
    ends = [(at[first], at[second]) for first, second in lines]
    spots = lay_out(len(kinds), ends, (WIDTH, HEIGHT), (_MARGIN, _MARGIN))
    places = {name: (round(x, 1), round(y, 1)) for name, (x, y) in zip(kinds, spots, strict=True)}
    nodes = tuple(
        Node(name, name.rpartition("=")[2], kind, degree[name], *places[name]) for name, kind in kinds.items()
    )
    edges = tuple(Edge(*pair, number, *places[pair[0]], *places[pair[1]]) for pair, number in lines.items())
    return Graph(nodes, edges, dict(found.objects), len(names) - len(shown), found.note)
