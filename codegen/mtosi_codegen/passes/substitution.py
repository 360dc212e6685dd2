"""Substitution groups: heads get their members, also members in schemas that nothing imports."""

from __future__ import annotations

from mtosi_codegen.model import ClassDef, Model, ObjectValue
from mtosi_codegen.undefined import undefined
from mtosi_codegen.xsd.model import ComplexType, Element, QName


def run(model: Model) -> None:
    """Link members to heads, and add to each field that refers to a head the elements that may replace it."""
    direct: dict[QName, list[QName]] = {}
    for name, element in model.schema.elements.items():
        for head in element.heads:
            if head in model.elements and _is_blocked(model, element, model.schema.elements[head]):
                continue
            if head in model.elements and head != name:
                direct.setdefault(head, []).append(name)
                cls = model.elements[name]
                cls.substitutes = cls.substitutes or model.elements[head]
            elif head != name:
                message = f"substitution head {undefined(head, model.schema)}"
                model.findings.add("element-unresolved", *element.place, message, "the element substitutes for nothing")
    for cls in model.classes:
        for field in cls.fields:
            if field.reference and isinstance(field.type, ObjectValue) and field.xml in direct:
                field.head = True
                field.members = tuple(_members(model, direct, field.xml))


def _is_blocked(model: Model, member: Element, head: Element) -> bool:
    """Whether a head blocks an element as a substitute: it blocks all, or types with such a derivation."""
    if "substitution" in head.block:
        return True
    type_ = member.type
    met: set[object] = set()
    while head.block and type_ is not None and type_ != head.type and type_ not in met:
        met.add(type_)
        component = model.schema.types.get(type_) if isinstance(type_, QName) else type_
        method = component.derivation if isinstance(component, ComplexType) else "restriction"
        if method in head.block:
            return True
        type_ = component.base if component is not None else None
    return False


def _members(model: Model, direct: dict[QName, list[QName]], head: QName) -> list[ClassDef]:
    """All elements that may replace a head, directly or not, without abstract ones; sorted by name."""
    met: set[QName] = set()
    queue = [head]
    while queue:
        fresh = [name for name in direct.get(queue.pop(), ()) if name not in met and name != head]
        met.update(fresh)
        queue.extend(fresh)
    return [model.elements[name] for name in sorted(met) if not model.schema.elements[name].abstract]
