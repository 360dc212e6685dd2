"""Makes instances of elements from the components of xmlschema: the smallest, the largest, random ones.

An instance grows in breadth, with a budget of elements. While the budget lasts, each element takes optional content
too; after that it takes only what it must. So recursion ends, and the content near the root is complete.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from lxml import etree
from xmlschema.validators import (
    XsdAnyAttribute,
    XsdAnyElement,
    XsdAttribute,
    XsdAttributeGroup,
    XsdElement,
    XsdGroup,
    XsdSimpleType,
)

from mtosi_codegen.proof.oracle import ANY_TYPE, Oracle, XsdType
from mtosi_codegen.proof.values import Texts
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import XSI, split_clark

Particle: TypeAlias = XsdElement | XsdAnyElement | XsdGroup
Kind = Literal["least", "greatest", "random"]

_SPEND: Final[dict[str, int]] = {"least": 0, "greatest": 400, "random": 120}
_LIMIT: Final = 20_000
_REPEATS: Final = 2
_ROOTS: Final = 5
_FOREIGN: Final = "urn:mtosi-codegen:sample"
_INFINITE: Final = 1 << 30
_XSI_TYPE: Final = f"{{{XSI}}}type"

T = TypeVar("T")


class Stock:
    """Data that all makers of one model share: texts of its simple types, heights of its types."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.texts = Texts()
        self.heights = Heights(oracle)


class Maker:
    """Makes instances.

    Args:
        kind: `least` takes only required content, and the lowest alternatives; `greatest` takes everything, lists
            twice, alternatives in turn; `random` chooses at random.

    Attributes:
        fresh: how many alternatives were taken for the first time; callers make instances until it stops growing.
    """

    def __init__(self, stock: Stock, kind: Kind, seed: int = 0) -> None:
        self._oracle = stock.oracle
        self.kind = kind
        self._rng = random.Random(seed)
        self._texts = stock.texts
        self._heights = stock.heights
        self._turns: dict[Hashable, int] = {}
        self._ids = itertools.count(1)
        self._left = 0
        self._made = 0
        self.fresh = 0

    def make(self, declaration: XsdElement) -> etree._Element:
        """Make an instance of a global element. Raises SchemaError: there is no instance, or no value of a simple type
        in it was found."""
        self._left, self._made = _SPEND[self.kind], 0
        root = etree.Element(declaration.name, nsmap={"xsi": XSI, **self._oracle.prefixes})
        queue = deque([(root, declaration)])
        while queue:
            node, element = queue.popleft()
            self._made += 1
            self._left -= 1
            if self._made > _LIMIT:
                raise SchemaError(f"an instance of {declaration.name} has more than {_LIMIT} elements")
            queue.extend(self._fill(node, element))
        types = [str(node.get(_XSI_TYPE)).partition(":")[0] for node in root.iter("*") if node.get(_XSI_TYPE)]
        etree.cleanup_namespaces(root, keep_ns_prefixes=types)
        return root

    # Choices

    @property
    def _rich(self) -> bool:
        """Whether to take optional content."""
        if self._left <= 0:
            return False
        return self.kind == "greatest" or (
            self.kind == "random" and self._rng.random() < (0.9 if self._made < _ROOTS else 0.6)
        )

    def _one_of(self, key: Hashable, options: Sequence[T], heights: Sequence[int]) -> T:
        """One of several alternatives: in turn or at random; the lowest once the budget is spent."""
        best = min(heights)
        if best >= _INFINITE:
            raise SchemaError("a type contains itself without end")
        if self._left <= 0:
            return options[heights.index(best)]
        able = [option for option, height in zip(options, heights, strict=True) if height < _INFINITE]
        if self.kind == "random":
            return self._rng.choice(able)
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        self.fresh += turn < len(able) and len(able) > 1
        return able[turn % len(able)]

    def _times(self, low: int, high: int | None) -> int:
        """How often a particle occurs: within its bounds, and only a few times."""
        most = max(low, _REPEATS) if high is None else min(high, max(low, _REPEATS))
        if most <= low or not self._rich:
            return low
        return self._rng.randint(max(low, 1), most) if self.kind == "random" else most

    # Elements

    def _fill(self, node: etree._Element, element: XsdElement) -> Iterator[tuple[etree._Element, XsdElement]]:
        """Give an element its type, attributes and content; yield its children, which are still empty."""
        chosen = self._type_of(node, element)
        if element.nillable and self._takes_nil(element):
            node.set(f"{{{XSI}}}nil", "true")
            self._set_attributes(node, getattr(chosen, "attributes", None))
            return
        if isinstance(chosen, XsdSimpleType):
            node.text = self._value(element, chosen)
            return
        self._set_attributes(node, chosen.attributes)
        if isinstance(chosen.content, XsdSimpleType):
            node.text = self._value(element, chosen.content)
        elif chosen.name == ANY_TYPE:
            node.text = "anything"
        elif element.fixed is not None:
            node.text = element.fixed
        else:
            yield from self._content(node, chosen.content)
            if chosen.mixed and self.kind != "least":
                node.text = "mixed "
                for child in node:
                    child.tail = " more "

    def _value(self, declaration: XsdElement | XsdAttribute, simple: XsdSimpleType) -> str:
        if declaration.fixed is not None:
            return str(declaration.fixed)
        if simple.is_key():
            return f"id{next(self._ids)}"
        texts = self._texts.of(simple)
        if self.kind == "least":
            return texts[0]
        turn = self._turns.get(simple, self._rng.randrange(len(texts)))
        self._turns[simple] = turn + 1
        return texts[turn % len(texts)]

    def _takes_nil(self, element: XsdElement) -> bool:
        if self.kind == "least" or self._left <= 0:
            return False
        return (
            self._rng.random() < 0.15
            if self.kind == "random"
            else self._one_of((element.name, id(element), "nil"), (False, True), (0, 0))
        )

    def _type_of(self, node: etree._Element, element: XsdElement) -> XsdType:
        """The type of an element, declared or derived. A derived type is named by xsi:type.

        An element of simple type keeps its type: stubs hold its bare value, without attributes of a derived type.
        """
        declared = element.type
        if declared.is_simple():
            return declared
        options = [declared, *(one for one in self._oracle.derived(declared) if not one.is_blocked(element))]
        able = [one for one in options if not getattr(one, "abstract", False)]
        if not able:
            raise SchemaError(f"element {element.name} has an abstract type that nothing is derived from")
        if len(able) > 1 and able[0] is declared and not self._rich:
            return declared
        chosen = self._one_of((declared.name, "type"), able, [self._heights.of_type(one) for one in able])
        if chosen is not declared:
            namespace, local = split_clark(str(chosen.name))
            prefix = next(known for known, space in node.nsmap.items() if space == namespace) if namespace else ""
            node.set(_XSI_TYPE, f"{prefix}:{local}" if prefix else local)
        return chosen

    def _set_attributes(self, node: etree._Element, attributes: XsdAttributeGroup | None) -> None:
        for name, attribute in sorted((attributes or {}).items(), key=lambda pair: pair[0] or ""):
            if isinstance(attribute, XsdAnyAttribute):
                if self._rich and (namespace := _allowed(attribute)) is not None:
                    node.set(f"{{{namespace}}}sample" if namespace else "sample", "any")
            elif (name is not None and attribute.use == "required") or (attribute.use != "prohibited" and self._rich):
                node.set(name, self._value(attribute, attribute.type))

    # Content

    def _content(self, node: etree._Element, group: XsdGroup) -> Iterator[tuple[etree._Element, XsdElement]]:
        for particle in self._particles(group):
            if isinstance(particle, XsdAnyElement):
                self._add_any(node, particle)
            else:
                yield self._add(node, particle)

    def _particles(self, particle: Particle) -> Iterator[XsdElement | XsdAnyElement]:
        """The elements and wildcards of one instance of a content model, in order."""
        for _ in range(self._times(particle.min_occurs, particle.max_occurs)):
            if not isinstance(particle, XsdGroup):
                yield particle
                continue
            items = [item for item in particle if item.max_occurs != 0]
            if particle.model == "choice" and items:
                heights = [self._heights.of_particle(item) for item in items]
                chosen = self._one_of((id(particle), "choice"), items, heights)
                yield from self._taken(chosen)
                continue
            if particle.model == "all" and self.kind == "random":
                self._rng.shuffle(items)
            for item in items:
                yield from self._particles(item)

    def _taken(self, item: Particle) -> Iterator[XsdElement | XsdAnyElement]:
        """The instance of an alternative; while the budget lasts, an element or wildcard occurs at least once."""
        found = list(self._particles(item))
        if not found and self._left > 0 and not isinstance(item, XsdGroup):
            found = [item]
        yield from found

    def _add(self, node: etree._Element, element: XsdElement) -> tuple[etree._Element, XsdElement]:
        members = self._oracle.substitutes(element)
        if members and "substitution" not in (element.block or ""):
            options = [one for one in (element, *members) if not one.abstract]
            if not options:
                raise SchemaError(f"element {element.name} is abstract, and nothing may take its place")
            heights = [self._heights.of_element(one) for one in options]
            element = self._one_of((element.name, "substitute"), options, heights)
        return etree.SubElement(node, element.name), element

    def _add_any(self, node: etree._Element, wildcard: XsdAnyElement) -> None:
        namespace = _allowed(wildcard)
        if wildcard.process_contents != "strict" and namespace is not None:
            child = etree.SubElement(node, f"{{{namespace}}}sample" if namespace else "sample")
            child.text = "any"
            return
        for name, element in sorted(self._oracle.maps.elements.items()):
            if (
                isinstance(element.type, XsdSimpleType)
                and not element.abstract
                and wildcard.is_namespace_allowed(split_clark(name)[0])
            ):
                etree.SubElement(node, name).text = self._value(element, element.type)
                return
        raise SchemaError(f"no element is found for a wildcard of {wildcard.namespace}")


class Heights:
    """The depth of the smallest instance of a component. An infinitely recursive component has no instance."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._known: dict[object, int] = {}
        self._open: set[object] = set()
        self._cut = False

    def of_type(self, xsd_type: XsdType) -> int:
        """The height of a type's content."""
        if isinstance(xsd_type, XsdSimpleType) or isinstance(xsd_type.content, XsdSimpleType):
            return 0
        if xsd_type.name == ANY_TYPE:
            return 0
        if xsd_type in self._known:
            return self._known[xsd_type]
        if xsd_type in self._open:
            self._cut = True
            return _INFINITE
        before, self._cut = self._cut, False
        self._open.add(xsd_type)
        height = self.of_particle(xsd_type.content)
        self._open.discard(xsd_type)
        if height < _INFINITE or not self._cut or not self._open:
            self._known[xsd_type] = height
        self._cut = self._cut or before
        return height

    def of_element(self, element: XsdElement) -> int:
        """The height of an element, with the lowest type that it may have."""
        types = [element.type, *self._oracle.derived(element.type)]
        able = [self.of_type(one) for one in types if not getattr(one, "abstract", False)]
        return min(_INFINITE, 1 + min(able, default=_INFINITE))

    def of_particle(self, particle: Particle) -> int:
        """The height of what a particle requires."""
        if particle.min_occurs == 0:
            return 0
        if isinstance(particle, XsdAnyElement):
            return 1
        if isinstance(particle, XsdElement):
            options = [one for one in (particle, *self._oracle.substitutes(particle)) if not one.abstract]
            return min((self.of_element(one) for one in options), default=_INFINITE)
        parts = [self.of_particle(item) for item in particle if item.max_occurs != 0]
        return (min if particle.model == "choice" else max)(parts, default=0)


def _allowed(wildcard: XsdAnyElement | XsdAnyAttribute) -> str | None:
    """A namespace that a wildcard admits, if possible one without definitions."""
    for namespace in (_FOREIGN, *sorted(wildcard.namespace)):
        if not namespace.startswith("##") and wildcard.is_namespace_allowed(namespace):
            return namespace
    return None
