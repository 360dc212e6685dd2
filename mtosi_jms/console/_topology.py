"""A network: managed elements and the links between them, read from a landing or from the tables of
`mtosi-jms topology`. The browser lays it out and draws it; the pages list it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.console._alarms import Worst, element_of
from mtosi_jms.errors import MtosiError
from mtosi_jms.inventory import Hit, Routes, find_objects, given_name, is_object, label_of, name_text
from mtosi_jms.namespaces import SOAP11, SOAP12, clark, split_clark
from mtosi_jms.spool import scan
from mtosi_jms.xmlbind import parse_xml, read_document

OCTETS: Final = BOUNDS.console_drawing_bytes
"""Most octets of a landing that are read for a network."""
_BODIES: Final = (clark(SOAP11, "Body"), clark(SOAP12, "Body"))
_ENDS: Final = ("aEnd", "zEnd")

Link = tuple[str, str, str]
"""The names of the elements at the ends, and the layer."""


class Neighbour(NamedTuple):
    """An element next to another. `layers`: the number of links to it by layer."""

    name: str
    layers: Mapping[str, int]


class Network:
    """Elements and the links between them.

    Args:
        links: how many links there are between two elements in a layer.
        objects: how many objects of each type were found.
        note: what was not read; empty if everything was read.
        problem: why there is no network; empty if there is one.
    """

    def __init__(
        self,
        elements: set[str],
        links: Counter[Link],
        objects: Counter[str],
        note: str = "",
        problem: str = "",
    ) -> None:
        around: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for (first, second, layer), number in links.items():
            around[first][second][layer] += number
            around[second][first][layer] += number
        self._around = around
        self._links = links
        self.degree = {name: sum(sum(layers.values()) for layers in others.values()) for name, others in around.items()}
        self.elements = sorted({*elements, *around}, key=lambda name: (-self.degree.get(name, 0), name))
        self.objects = objects
        self.note = note
        self.problem = problem

    @property
    def links(self) -> int:
        """How many links there are between different elements."""
        return sum(self._links.values())

    @property
    def layers(self) -> Counter[str]:
        """How many links each layer has."""
        found: Counter[str] = Counter()
        for (_, _, layer), number in self._links.items():
            found[layer] += number
        return found

    def find(self, text: str) -> list[str]:
        """The elements with a text in their names, those with the most links first."""
        folded = text.casefold()
        return [name for name in self.elements if folded in name.casefold()]

    def neighbours(self, name: str) -> list[Neighbour] | None:
        """The elements next to an element by name; None if there is no such element."""
        if name not in self._around and name not in self.elements:
            return None
        others: Mapping[str, Counter[str]] = self._around.get(name, {})
        return [Neighbour(other, dict(others[other])) for other in sorted(others)]

    @cached_property
    def map(self) -> bytes:
        """The network as JSON for the map: the elements with the most links, as far as it has room for them."""
        shown = {name: at for at, name in enumerate(self.elements[: BOUNDS.console_nodes])}
        layers = [name for name, _ in self.layers.most_common()]
        links = [
            (shown[first], shown[second], layers.index(layer), number)
            for (first, second, layer), number in self._links.most_common()
            if first in shown and second in shown
        ]
        document = {
            "elements": list(shown),
            "links": links[: BOUNDS.console_links],
            "layers": layers,
            "leftOut": len(self.elements) - len(shown),
            "linksLeftOut": max(len(links) - BOUNDS.console_links, 0),
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

    @cached_property
    def mark(self) -> str:
        """A text that differs if the map differs."""
        return hashlib.sha256(self.map).hexdigest()[:16]


def alarms_of(worst: Mapping[str, Worst]) -> bytes:
    """The active alarms of elements as JSON for the map."""
    return json.dumps(worst, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def read_landing(folder: Path) -> Network:
    """The network in the envelopes of a landing, up to the limit; unreadable envelopes are skipped."""
    elements: set[str] = set()
    links: Counter[Link] = Counter()
    objects: Counter[str] = Counter()
    routes, size = Routes(is_object), 0
    try:
        files = scan(folder).envelopes
    except (MtosiError, OSError) as error:
        return Network(elements, links, objects, problem=str(error))
    note = ""
    for number, path in enumerate(files):
        try:
            data = read_document(path)
            size += len(data)
            if size > OCTETS:
                note = f"The first {number:,} of {len(files):,} files were read, for there are many."
                break
            root = parse_xml(data, odd_prefixes=[])
        except (MtosiError, OSError):
            continue
        body = next((child for child in root if child.tag in _BODIES), None)
        for hit in () if body is None else find_objects(body, routes):
            _note(hit, elements, links, objects)
    return Network(elements, links, objects, note)


def _note(hit: Hit, elements: set[str], links: Counter[Link], objects: Counter[str]) -> None:
    kind = label_of(hit.table)
    objects[kind] += 1
    name = hit.name or (given_name(hit.element, hit.table) if hit.element is not None else "")
    if element := element_of(name):
        elements.add(element)
    if hit.element is None or kind != "TL":
        return
    layer = _layer_of(hit.element)
    sides: Sequence[list[str]] = [[element_of(one) for one in _names_at(hit.element, end)] for end in _ENDS]
    links.update(pair for first in sides[0] for second in sides[1] if (pair := link_of(first, second, layer)))


def link_of(first: str, second: str, layer: str) -> Link | None:
    """A link of two elements, which has no direction; None if they are the same, or one is missing."""
    return (min(first, second), max(first, second), layer) if first and second and first != second else None


def _layer_of(link: etree._Element) -> str:
    rate = next((one for one in link if isinstance(one.tag, str) and split_clark(one.tag)[1] == "layerRate"), None)
    text = "" if rate is None else "".join(map(str, rate.itertext())).strip()
    return text.removeprefix("LR_") or "link"


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
