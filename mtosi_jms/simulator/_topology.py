"""Computes the links of a network from numbers, so a network of any size needs no table of links.

All elements form a circle. A link goes from an element to the element that is a stride further on. The ring has a
stride of one; a mesh has further strides, which the seed chooses. A link of stride number k starts at port 2k of an
element and ends at port 2k + 1 of the other, so no port has two links.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Shape: TypeAlias = Literal["none", "ring", "mesh"]
"""How the elements are linked: not at all; in one ring; in a ring with chords."""

SHAPES: Final = ("none", "ring", "mesh")
_CHORDS: Final = 2
"""Most strides besides the ring: an element of a mesh has up to six links."""


class End(NamedTuple):
    """An end of a link: number of the element and of its port, both from 0."""

    element: int
    port: int


class Span(NamedTuple):
    """A link by its ends; its number is its index, from 0, among all links that the network ever had."""

    number: int
    a: End
    z: End


@dataclass(frozen=True, slots=True)
class Circle:
    """All links of a network. `strides`: strides of its links, that of the ring first."""

    elements: int
    strides: tuple[int, ...]

    @property
    def links(self) -> int:
        """The number of links. Two elements have one link, not one in each direction."""
        return 1 if self.elements == 2 and self.strides else self.elements * len(self.strides)

    def span(self, number: int) -> Span:
        """A link by its number."""
        element, k = divmod(number, len(self.strides))
        other = (element + self.strides[k]) % self.elements
        return Span(number, End(element, 2 * k), End(other, 2 * k + 1))

    def starting_at(self, element: int) -> Iterator[Span]:
        """The links whose A end is at an element."""
        count = len(self.strides)
        return (self.span(number) for number in range(element * count, min((element + 1) * count, self.links)))

    def touching(self, element: int) -> Iterator[Span]:
        """The links that have an end at an element, each once."""
        yield from self.starting_at(element)
        for k, stride in enumerate(self.strides):
            number = (element - stride) % self.elements * len(self.strides) + k
            if number < self.links:
                yield self.span(number)

    def has_link(self, end: End) -> bool:
        """Whether a link starts or ends at a port."""
        return any(end in (span.a, span.z) for span in self.touching(end.element))


def circle(shape: str, elements: int, ports: int, seed: int) -> Circle:
    """The links of a network. `shape`: none, ring or mesh. `ports`: number of ports of each element; a stride takes two
    of them."""
    if shape == "none" or elements < 2 or ports < 2:
        return Circle(elements, ())
    # A chord across half the circle would give each link twice; one to the neighbour would repeat the ring.
    possible = range(2, (elements + 1) // 2)
    wanted = min(_CHORDS, ports // 2 - 1, len(possible)) if shape == "mesh" else 0
    chords = random.Random(f"{seed}/links").sample(possible, wanted)
    return Circle(elements, (1, *sorted(chords)))
