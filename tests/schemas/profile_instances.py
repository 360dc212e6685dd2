"""Instance documents made from a schema: the smallest, large ones and random ones, with an account of what they show.

A maker walks the model that the xmlschema library builds. It takes choices, substitution groups, derived types
(xsi:type), nil, enumerations, defaults, attributes and wildcards in turn, so that enough documents show every one of
them; `unseen` names what none has shown yet. The same seed gives the same documents.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from lxml import etree
from xmlschema import XMLSchema10
from xmlschema.validators import XsdAnyElement, XsdElement, XsdGroup

XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
XSD: Final = "http://www.w3.org/2001/XMLSchema"
FOREIGN: Final = "urn:example:vendor"
DEEPEST: Final = 14  # beyond this only what a type requires

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "string": ("NE-7", "", " two  words ", "Grüße & <more>", "局", "line\nbreak", "MD=EMS1/ME=a%2Fb"),
    "boolean": ("true", "false", "1", "0"),
    "dateTime": ("2024-02-29T23:59:59Z", "2024-01-01T00:00:00", "2024-06-30T12:00:00.123+05:30"),
    "date": ("2024-02-29", "2024-12-31Z", "2024-12-31-05:00"),
    "anyURI": ("jms/InventoryOS", "jms://aserver/mtosi/EmsOS", "", "urn:x:y"),
    "unsignedInt": ("0", "1", "4294967295", "007"),
    "float": ("-12.5", "0", "1e-9", "INF", "NaN"),
}


class Manner(Enum):
    """How much of what is optional a document shows."""

    MINIMAL = "minimal"
    MAXIMAL = "maximal"
    RANDOM = "random"


class InstanceMaker:
    """Makes documents of one schema; see the module's docstring."""

    def __init__(self, schema: XMLSchema10, seed: int) -> None:
        self.schema = schema
        self.maps = schema.maps
        self.roots = sorted(
            n for n, e in self.maps.elements.items() if not n.startswith(f"{{{XSD}}}") and e is not None
        )
        spaces = sorted({name[1:].partition("}")[0] for name in self.roots} | {FOREIGN})
        self.prefixes = {space: f"n{number}" for number, space in enumerate(spaces)}
        self.shown: set[str] = set()
        self._random = random.Random(seed)
        self._turns: Counter[str] = Counter()
        self._manner = Manner.MINIMAL

    def document(self, root: str, manner: Manner) -> etree._Element:
        """One document whose root is the global element of that Clark name."""
        self._manner = manner
        declaration = self.maps.elements[root]
        node = etree.Element(root, nsmap={**{p: s for s, p in self.prefixes.items()}, "xsi": XSI})
        self._build(node, declaration, "", 0)
        return node

    def _turn(self, what: str, choices: int) -> int:
        self._turns[what] += 1
        return (self._turns[what] - 1) % choices

    def _rolls(self, chance: float) -> bool:
        return self._random.random() < chance

    def _build(self, node: etree._Element, declaration: XsdElement, owner: str, depth: int) -> None:
        place = f"{owner}/{local(declaration.name)}"
        self.shown.add(place)
        kind = self._kind(declaration)
        if kind is not declaration.type:
            node.set(f"{{{XSI}}}type", f"{self.prefixes[namespace(kind.name)]}:{local(kind.name)}")
        inner = type_key(kind, place)
        if declaration.nillable and self._manner is not Manner.MINIMAL and self._turn(f"nil {place}", 5) == 4:
            node.set(f"{{{XSI}}}nil", "true")
            self.shown.add(f"{place} nil")
        elif declaration.default is not None and self._turn(f"default {place}", 4) == 3:
            self.shown.add(f"{place} default")
        else:
            self._fill(node, kind, inner, depth)
        self._attributes(node, kind, inner)

    def _kind(self, declaration: XsdElement) -> Any:
        kinds = concrete_types(self.maps, declaration.type)
        if declaration.type.is_simple() or (not declaration.type.abstract and not self._derives()):
            return declaration.type
        return kinds[self._turn(f"type {declaration.type.name}", len(kinds))] if kinds else declaration.type

    def _derives(self) -> bool:
        return self._manner is Manner.RANDOM and self._rolls(0.2)

    def _fill(self, node: etree._Element, kind: Any, owner: str, depth: int) -> None:
        if kind.is_simple():
            node.text = self._value(kind)
        elif kind.has_simple_content():
            node.text = self._value(kind.content)
        else:
            if kind.mixed and self._manner is not Manner.MINIMAL:
                node.text = "location = 'Rack 4'"
                self.shown.add(f"{owner} mixed")
            self._group(node, kind.content, owner, depth)

    def _value(self, kind: Any) -> str:
        if kind.enumeration:
            number = self._turn(f"enum {kind.name}", len(kind.enumeration))
            self.shown.add(f"{local(kind.name)} = {kind.enumeration[number]}")
            return str(kind.enumeration[number])
        while local(kind.name) not in VALUES or namespace(kind.name) != XSD:
            kind = kind.base_type
        forms = VALUES[local(kind.name)]
        return forms[0 if self._manner is Manner.MINIMAL else self._turn(f"value {kind.name}", len(forms))]

    def _attributes(self, node: etree._Element, kind: Any, owner: str) -> None:
        for name, attribute in ({} if kind.is_simple() else kind.attributes).items():
            if attribute.use == "required" or self._manner is Manner.MAXIMAL or self._random_includes(0.5):
                node.set(name, self._value(attribute.type))
                self.shown.add(f"{owner} @{name}")

    def _random_includes(self, chance: float) -> bool:
        return self._manner is Manner.RANDOM and self._rolls(chance)

    def _occurrences(self, particle: Any, depth: int) -> int:
        least, most = particle.min_occurs, particle.max_occurs
        if self._manner is Manner.MINIMAL or depth > DEEPEST:
            return int(least)
        limit = most if most is not None else max(least, 2)
        if self._manner is Manner.MAXIMAL:
            return int(limit if depth < 4 else max(least, min(limit, 1)))
        count = least
        while count < (most if most is not None else least + 3) and self._rolls(max(0.12, 0.8 - 0.08 * depth)):
            count += 1
        return int(count)

    def _group(self, node: etree._Element, group: XsdGroup, owner: str, depth: int) -> None:
        for _ in range(self._occurrences(group, depth)):
            members = list(group)
            if group.model == "choice" and members:
                members = [members[self._turn(f"choice {owner}", len(members))]]
            for member in members:
                if isinstance(member, XsdGroup):
                    self._group(node, member, owner, depth)
                    continue
                for _ in range(self._occurrences(member, depth)):
                    self._particle(node, member, owner, depth)

    def _particle(self, node: etree._Element, particle: Any, owner: str, depth: int) -> None:
        if isinstance(particle, XsdAnyElement):
            self._wildcard(node, particle, owner, depth)
            return
        members = substitutes(self.maps, particle)
        declaration = members[self._turn(f"substitute {particle.name}", len(members))]
        child = etree.SubElement(node, declaration.name)
        self._build(child, declaration, owner, depth + 1)

    def _wildcard(self, node: etree._Element, wildcard: XsdAnyElement, owner: str, depth: int) -> None:
        self.shown.add(f"{owner} any")
        spaces = [space for space in wildcard.namespace if not space.startswith("##")]
        if spaces:
            etree.SubElement(node, f"{{{spaces[0]}}}state").text = "enabled"
        elif self._manner is not Manner.MINIMAL and depth < 5 and self._turn("wildcard", 3) == 2:
            declaration = self.maps.elements[self.roots[self._turn("wildcard root", len(self.roots))]]
            self._build(etree.SubElement(node, declaration.name), declaration, "", depth + 6)
        else:
            outer = etree.SubElement(node, f"{{{FOREIGN}}}extension", size="2")
            etree.SubElement(outer, f"{{{FOREIGN}}}colour").text = "green"
            etree.SubElement(outer, "plain").text = "no namespace"

    def unseen(self) -> set[str]:
        """Elements, attributes, nils, defaults, wildcards and enumeration values that no document has shown yet."""
        places: set[str] = set()
        done: set[str] = set()
        for name in self.roots:
            self._visit(self.maps.elements[name], "", places, done)
        return places - self.shown

    def _visit(self, declaration: XsdElement, owner: str, places: set[str], done: set[str]) -> None:
        place = f"{owner}/{local(declaration.name)}"
        places.add(place)
        places.update([f"{place} nil"] if declaration.nillable else [])
        places.update([f"{place} default"] if declaration.default is not None else [])
        for kind in concrete_types(self.maps, declaration.type):
            key = type_key(kind, place)
            if key in done:
                continue
            done.add(key)
            places.update(value_places(kind))
            if kind.is_complex():
                places.update(f"{key} @{name}" for name in kind.attributes)
                places.update([f"{key} mixed"] if kind.mixed else [])
                for particle in particles(kind):
                    if isinstance(particle, XsdAnyElement):
                        places.add(f"{key} any")
                        continue
                    for member in substitutes(self.maps, particle):
                        self._visit(member, key, places, done)


def local(name: str | None) -> str:
    return (name or "").rpartition("}")[2]


def namespace(name: str | None) -> str:
    return (name or "")[1:].partition("}")[0]


def type_key(kind: Any, place: str) -> str:
    return str(kind.name) if kind.name else place


def value_places(kind: Any) -> Iterator[str]:
    """What the values of a type must show: each of its enumeration's."""
    simple = kind if kind.is_simple() else kind.content if kind.has_simple_content() else None
    if simple is not None and simple.enumeration:
        yield from (f"{local(simple.name)} = {value}" for value in simple.enumeration)


def particles(kind: Any) -> Iterator[Any]:
    """The elements and wildcards of a complex type's content, at any depth of its groups."""
    waiting = [kind.content] if isinstance(kind.content, XsdGroup) else []
    while waiting:
        for member in waiting.pop():
            if isinstance(member, XsdGroup):
                waiting.append(member)
            else:
                yield member


def concrete_types(maps: Any, kind: Any) -> list[Any]:
    """The types that may stand where `kind` is declared: itself and all that derive from it, without abstract ones."""
    if kind.is_simple() or kind.name is None or namespace(kind.name) == XSD:
        return [kind]
    found = [t for t in maps.types.values() if t.is_complex() and not t.abstract and derives(t, kind)]
    return sorted(found, key=lambda t: (t is not kind, t.name))


def derives(kind: Any, base: Any) -> bool:
    while kind is not None and kind is not base:
        kind = kind.base_type if kind.base_type is not kind else None
    return kind is base


def substitutes(maps: Any, particle: XsdElement) -> list[XsdElement]:
    """The elements that may stand where a particle is declared: its own and, for a head, all of its group."""
    found: dict[str, XsdElement] = {particle.name: particle}
    waiting = [particle.name] if particle.ref is not None else []
    while waiting:
        for member in maps.substitution_groups.get(waiting.pop(), ()):
            if member.name not in found:
                found[member.name] = member
                waiting.append(member.name)
    return [found[name] for name in sorted(found)]
