"""A class for each complex type, named or not, and for each global element."""

from __future__ import annotations

from typing import Literal

from mtosi_codegen.model import ClassDef, Model
from mtosi_codegen.xsd.model import ComplexType, Compositor, Element, ElementUse, Particle, QName


def run(model: Model) -> None:
    """Make the classes, without bases and fields for now. Types inside a group are named after the group."""
    for name, group in model.schema.groups.items():
        _inside(model, group.content, name.namespace, (name.local,))
    for name, component in model.schema.types.items():
        if isinstance(component, ComplexType):
            kind: Literal["type", "anonymous"] = "type" if name == component.name else "anonymous"
            model.types[name] = _add(model, ClassDef(
                kind, name, (name.local,), component.place, name.namespace, component.doc, source=component,
                abstract=component.abstract, mixed=component.mixed, block=_derivations(component.block),
            ))  # fmt: skip
            _inside(model, component.content, name.namespace, (name.local,))
    for name, element in model.schema.elements.items():
        model.elements[name] = _add(model, _element_class(element))
        if isinstance(element.type, ComplexType):
            _inside(model, element.type.content, name.namespace, (name.local,))


def _add(model: Model, cls: ClassDef) -> ClassDef:
    model.classes.append(cls)
    return cls


def _element_class(element: Element) -> ClassDef:
    name = element.name
    source = element.type if isinstance(element.type, ComplexType) else None
    doc = "\n\n".join(text for text in (element.doc, source.doc if source else "", str(element.value or "")) if text)
    cls = ClassDef("element", name, (name.local,), element.place, name.namespace, doc, source=source)
    cls.abstract = element.abstract
    cls.nillable = element.nillable
    cls.block = _derivations(element.block | (source.block if source else frozenset()))
    cls.mixed = source.mixed if source else False
    return cls


def _derivations(block: frozenset[str]) -> frozenset[str]:
    return block & {"extension", "restriction"}


def _inside(model: Model, particle: Particle | None, namespace: str, path: tuple[str, ...]) -> None:
    """Add classes for the anonymous types in a content model, named after the elements that lead to them."""
    if isinstance(particle, Compositor):
        for item in particle.items:
            _inside(model, item, namespace, path)
    elif isinstance(particle, ElementUse) and isinstance(particle.type, ComplexType):
        inner = particle.type
        if inner in model.anonymous:
            return
        path = (*path, particle.name.local)
        doc = "\n\n".join(text for text in (particle.doc, inner.doc) if text)
        xml = QName(namespace, particle.name.local)
        cls = ClassDef("anonymous", xml, path, inner.place, namespace, doc, source=inner, mixed=inner.mixed)
        model.anonymous[inner] = _add(model, cls)
        _inside(model, inner.content, namespace, path)
