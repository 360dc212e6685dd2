"""Replaces references to groups and attribute groups by the content of the groups.

A few groups that refer to each other more than once can expand to more particles than memory holds. So the particles
and levels of one type are limited, and the particles of all types together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mtosi_codegen.findings import Findings
from mtosi_codegen.model import Model
from mtosi_codegen.undefined import undefined
from mtosi_codegen.xsd.model import (
    AnyAttribute,
    Attribute,
    AttributePart,
    ComplexType,
    Compositor,
    ElementUse,
    GroupUse,
    Particle,
    QName,
    SchemaSet,
)
from mtosi_jms.bounds import BOUNDS

MAX_PARTICLES: Final = BOUNDS.source_particles
MAX_LEVELS: Final = BOUNDS.source_levels
MAX_ALL_PARTICLES: Final = BOUNDS.source_all_particles


def run(model: Model) -> None:
    """Replace the references in every complex type. Content beyond the limits is left out, with a finding."""
    expander = _Expander(model.schema, model.findings)
    for component in all_complex_types(model.schema):
        component.content = expander.content(component)
        component.attributes = tuple(expander.attributes(component.attributes))


def all_complex_types(schema: SchemaSet) -> Iterator[ComplexType]:
    """Every complex type once, also anonymous ones inside other types and groups."""
    met: dict[ComplexType, None] = {}
    roots = [component for component in schema.types.values() if isinstance(component, ComplexType)]
    roots += [element.type for element in schema.elements.values() if isinstance(element.type, ComplexType)]
    particles = [group.content for group in schema.groups.values() if group.content is not None]
    queue: list[ComplexType] = [*roots, *(inner for particle in particles for inner in _inline(particle))]
    while queue:
        component = queue.pop(0)
        if component not in met:
            met[component] = None
            queue.extend(_inline(component.content) if component.content is not None else ())
    yield from met


def _inline(particle: Particle) -> Iterator[ComplexType]:
    if isinstance(particle, ElementUse) and isinstance(particle.type, ComplexType):
        yield particle.type
    elif isinstance(particle, Compositor):
        for item in particle.items:
            yield from _inline(item)


class _TooLargeError(Exception):
    """A content model exceeds the limits."""


class _Expander:
    def __init__(self, schema: SchemaSet, findings: Findings) -> None:
        self._schema = schema
        self._findings = findings
        self._used = 0
        self._left = 0

    def content(self, component: ComplexType) -> Particle | None:
        """The content model of a type without group references; None if it is empty or exceeds the limits."""
        if component.content is None:
            return None
        available = min(MAX_PARTICLES, MAX_ALL_PARTICLES - self._used)
        self._left = available
        try:
            return self.particle(component.content, (), 0)
        except _TooLargeError as error:
            message = f"type {component.name}" if component.name else "this type"
            message += f" has more than {error} once its groups are written out"
            repair = "not generated: content left out; what stands there is kept as XML"
            self._findings.add("too-large", *component.place, message, repair)
            return None
        finally:
            self._used += available - self._left

    def _count(self, level: int) -> None:
        self._left -= 1
        if level > MAX_LEVELS:
            raise _TooLargeError(f"{MAX_LEVELS} levels")
        if self._left < 0:
            raise _TooLargeError(f"{MAX_PARTICLES} particles")

    def particle(self, particle: Particle, path: tuple[QName, ...], level: int) -> Particle | None:
        """The particle without group references; None if nothing is left."""
        self._count(level)
        if isinstance(particle, Compositor):
            items = (self.particle(item, path, level + 1) for item in particle.items)
            return Compositor(particle.kind, particle.occurs, tuple(item for item in items if item is not None))
        if not isinstance(particle, GroupUse):
            return particle
        group = self._schema.groups.get(particle.name)
        if group is None or particle.name in path:
            rule = "cycle" if group else "group-unresolved"
            problem = f"{particle.name} contains itself" if group else undefined(particle.name, self._schema)
            self._findings.add(rule, *particle.place, f"group {problem}", "left out; what stands there is kept as XML")
            return None
        if group.content is None:
            return None
        inner = self.particle(group.content, (*path, particle.name), level)
        return Compositor("sequence", particle.occurs, (inner,)) if inner is not None else None

    def attributes(self, attributes: tuple[AttributePart, ...]) -> Iterator[Attribute | AnyAttribute]:
        """The attributes without group references; only the first of each name and of each kind of wildcard."""
        met: set[QName | str] = set()
        for attribute in self._flat(attributes):
            key = attribute.namespace if isinstance(attribute, AnyAttribute) else attribute.name
            if key not in met:
                met.add(key)
                yield attribute

    def _flat(self, attributes: tuple[AttributePart, ...]) -> Iterator[Attribute | AnyAttribute]:
        """The attributes in order. A group that was seen before is skipped: it would add nothing."""
        met: set[QName] = set()
        opened: list[tuple[QName | None, Iterator[AttributePart]]] = [(None, iter(attributes))]
        while opened:
            attribute = next(opened[-1][1], None)
            if attribute is None:
                opened.pop()
            elif isinstance(attribute, (Attribute, AnyAttribute)):
                if len(opened) == 1 or isinstance(attribute, AnyAttribute) or attribute.use != "prohibited":
                    yield attribute  # `prohibited` has no meaning in a group
            elif attribute.name in met and all(name != attribute.name for name, _ in opened):
                continue
            elif attribute.name in met or attribute.name not in self._schema.attribute_groups:
                rule = "cycle" if attribute.name in met else "group-unresolved"
                name = attribute.name
                problem = f"{name} contains itself" if name in met else undefined(name, self._schema)
                self._findings.add(
                    rule,
                    *attribute.place,
                    f"attribute group {problem}",
                    "left out; its attributes are kept as they come",
                )
            else:
                met.add(attribute.name)
                opened.append((attribute.name, iter(self._schema.attribute_groups[attribute.name].attributes)))
