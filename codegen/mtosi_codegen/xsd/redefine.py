"""xsd:redefine and xsd:override: definitions that replace those in another schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from mtosi_codegen.findings import Findings
from mtosi_codegen.xsd.model import (
    AttributeGroup,
    AttributeGroupUse,
    AttributePart,
    ComplexType,
    Component,
    Compositor,
    Group,
    GroupUse,
    Particle,
    QName,
    SchemaSet,
    SimpleType,
)


@dataclass(frozen=True, slots=True)
class Replacement:
    """A definition inside xsd:redefine or xsd:override; the former may refer to the definition that it replaces."""

    component: Component
    redefines: bool


def replace(schema: SchemaSet, replacements: Iterable[Replacement], findings: Findings) -> None:
    """Replace definitions by others. A redefined definition stays, under a name that no document can use.

    Args:
        schema: all other components.
        replacements: the new definitions; those in schemas that are redefined or overridden themselves come first.
    """
    for replacement in replacements:
        component, name = replacement.component, replacement.component.name
        table = schema.table(component)
        if name is None:
            continue
        old = table.get(name)
        if old is None:
            message = f"{name} is redefined or overridden, but not defined"
            repair = "taken as a definition" if replacement.redefines else "left out"
            findings.add("redefine-undefined", *component.place, message, repair)
            if not replacement.redefines:
                continue
        elif replacement.redefines:
            hidden = next(fresh for fresh in _hidden(name) if fresh not in table)
            if _refers(component, name, hidden):
                old.name = None
                table[hidden] = old
        table[name] = component


def _hidden(name: QName) -> Iterator[QName]:
    """Names for a redefined definition. They contain a colon, which no name in XML Schema does."""
    yield QName(name.namespace, f"{name.local}:redefined")
    yield from (QName(name.namespace, f"{name.local}:redefined{number}") for number in count(2))


def _refers(component: Component, name: QName, hidden: QName) -> bool:
    """Change references to the definition's own name to the hidden name; return whether there were any."""
    if isinstance(component, SimpleType):
        if component.base != name:
            return False
        component.base = hidden
        return True
    if isinstance(component, ComplexType):
        if component.base != name:
            return False
        component.base = hidden
        if component.simple is not None and component.simple.base == name:
            component.simple.base = hidden
        return True
    if isinstance(component, Group):
        content = _content(component.content, name, hidden)
        changed = content is not component.content
        component.content = content if isinstance(content, Compositor) else None
        return changed
    if isinstance(component, AttributeGroup):
        attributes = tuple(_attribute(part, name, hidden) for part in component.attributes)
        changed = any(new is not old for new, old in zip(attributes, component.attributes, strict=True))
        component.attributes = attributes
        return changed
    return False


def _content(particle: Particle | None, name: QName, hidden: QName) -> Particle | None:
    if isinstance(particle, GroupUse) and particle.name == name:
        return GroupUse(hidden, particle.place, particle.occurs)
    if not isinstance(particle, Compositor):
        return particle
    items = tuple(item for old in particle.items if (item := _content(old, name, hidden)) is not None)
    same = all(new is old for new, old in zip(items, particle.items, strict=True))
    return particle if same else Compositor(particle.kind, particle.occurs, items)


def _attribute(part: AttributePart, name: QName, hidden: QName) -> AttributePart:
    same = isinstance(part, AttributeGroupUse) and part.name == name
    return AttributeGroupUse(hidden, part.place) if same else part
