"""Group and attribute group references give way to what they refer to."""

from __future__ import annotations

from collections.abc import Iterator

from mtosi_codegen.findings import Findings
from mtosi_codegen.model import Model
from mtosi_codegen.xsd.model import (
    Attribute,
    AttributeGroupUse,
    ComplexType,
    Compositor,
    ElementUse,
    GroupUse,
    Particle,
    QName,
    SchemaSet,
)


def run(model: Model) -> None:
    """Replace the references in every complex type."""
    expander = _Expander(model.schema, model.findings)
    for component in all_complex_types(model.schema):
        component.content = expander.particle(component.content, ()) if component.content is not None else None
        component.attributes = tuple(expander.attributes(component.attributes, ()))


def all_complex_types(schema: SchemaSet) -> Iterator[ComplexType]:
    """Every complex type, the anonymous ones inside others and inside groups too; each once."""
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


class _Expander:
    def __init__(self, schema: SchemaSet, findings: Findings) -> None:
        self._schema = schema
        self._findings = findings

    def particle(self, particle: Particle, path: tuple[QName, ...]) -> Particle | None:
        """The particle without group references; None where nothing is left."""
        if isinstance(particle, Compositor):
            items = (self.particle(item, path) for item in particle.items)
            return Compositor(particle.kind, particle.occurs, tuple(item for item in items if item is not None))
        if not isinstance(particle, GroupUse):
            return particle
        group = self._schema.groups.get(particle.name)
        if group is None or particle.name in path:
            rule = "cycle" if group else "group-unresolved"
            message = f"group {particle.name} " + ("contains itself" if group else "is not defined")
            self._findings.add(rule, *particle.place, message, "left out; what stands there is kept as XML")
            return None
        if group.content is None:
            return None
        inner = self.particle(group.content, (*path, particle.name))
        return Compositor("sequence", particle.occurs, (inner,)) if inner is not None else None

    def attributes(
        self, attributes: tuple[Attribute | AttributeGroupUse, ...], path: tuple[QName, ...]
    ) -> Iterator[Attribute]:
        """The attributes without group references; the first of each name."""
        met: set[QName] = set()
        for attribute in self._flat(attributes, path):
            if attribute.name not in met:
                met.add(attribute.name)
                yield attribute

    def _flat(
        self, attributes: tuple[Attribute | AttributeGroupUse, ...], path: tuple[QName, ...]
    ) -> Iterator[Attribute]:
        for attribute in attributes:
            if isinstance(attribute, Attribute):
                yield attribute
                continue
            group = self._schema.attribute_groups.get(attribute.name)
            if group is None or attribute.name in path:
                rule = "cycle" if group else "group-unresolved"
                message = f"attribute group {attribute.name} " + ("contains itself" if group else "is not defined")
                self._findings.add(rule, *attribute.place, message, "left out; its attributes are kept as they come")
            else:
                yield from self._flat(group.attributes, (*path, attribute.name))
