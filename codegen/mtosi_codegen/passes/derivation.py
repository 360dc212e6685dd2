"""Derived types: a class keeps the fields of its base and overrides one only where the derived type is narrower."""

from __future__ import annotations

from mtosi_codegen.model import (
    ClassDef,
    EnumValue,
    FacetValue,
    Field,
    Model,
    ModelGroup,
    ModelItem,
    ObjectValue,
    Value,
)
from mtosi_codegen.passes.values import builtin_of, is_text
from mtosi_codegen.undefined import undefined
from mtosi_codegen.xsd.model import ComplexType, Element, QName


def run(model: Model) -> None:
    """Determine own and inherited fields, bases first."""
    done: set[ClassDef] = set()
    for cls in model.classes:
        for ancestor in reversed(list(cls.lineage())):
            if ancestor not in done:
                done.add(ancestor)
                if ancestor.base is None:
                    ancestor.fields = [field for field in ancestor.fields if not field.prohibited]
                else:
                    _settle(model, ancestor)


def _settle(model: Model, cls: ClassDef) -> None:
    inherited = {field.key: field for field in cls.inherited()}
    replaced: dict[Field, Field] = {}
    kept: list[Field] = []
    for field in cls.fields:
        known = inherited.get(field.key)
        if known is None or known.prohibited:
            kept.extend([] if field.prohibited else [field])
            continue
        if not cls.restricts and field.kind == "element":
            message = f"element {field.xml.local!r} is in the base type already"
            repair = "one field for both; what it cannot hold is kept as XML"
            model.findings.add("repeated-in-extension", *field.place, message, repair)
        if field.kind != "any" and (field.prohibited or _narrower(field, known)):
            field.overrides = known
            kept.append(field)
        else:
            replaced[field] = known
    cls.fields = kept
    if cls.model is not None:
        cls.model = _mapped(cls.model, replaced)
        if cls.restricts and _same_content(cls, cls.model):
            cls.model = None


def _narrower(field: Field, known: Field) -> bool:
    """Whether a field is narrower than the inherited one, in a way that an annotation can express."""
    if field.many or known.many:
        return False
    if field.minimum < known.minimum:
        return False
    if _differs(field.type, known.type):
        return _fits(field.type, known.type)
    return field.minimum > known.minimum


def _differs(new: Value, old: Value) -> bool:
    return new != old


def _fits(new: Value, old: Value) -> bool:
    """Whether each value of the new type is, in Python, one of the old type."""
    if isinstance(new, ObjectValue) and isinstance(old, ObjectValue):
        return old.cls in new.cls.lineage()
    if isinstance(new, EnumValue):
        return is_text(old) and not isinstance(old, EnumValue)
    if isinstance(new, FacetValue) or isinstance(old, FacetValue):
        return bool(builtin_of(new)) and builtin_of(new) == builtin_of(old) and not isinstance(old, EnumValue)
    return False


def _mapped(group: ModelGroup, replaced: dict[Field, Field]) -> ModelGroup:
    items: list[ModelGroup | ModelItem] = []
    for item in group.items:
        if isinstance(item, ModelGroup):
            items.append(_mapped(item, replaced))
        else:
            items.append(ModelItem(replaced.get(item.field, item.field), item.minimum, item.maximum))
    return ModelGroup(group.kind, group.minimum, group.maximum, tuple(items))


def _same_content(cls: ClassDef, group: ModelGroup) -> bool:
    """Whether the content of a restriction is exactly the fields of the class, in order."""
    plain = group.kind == "seq" and (group.minimum, group.maximum) == (1, 1)
    fields = [item.field for item in group.items if isinstance(item, ModelItem)]
    content = [field for field in cls.all_fields() if field.kind in {"element", "any"}]
    base_is_plain = all(ancestor.model is None for ancestor in list(cls.lineage())[1:])
    same = all(
        (item.minimum, item.maximum) == (item.field.minimum, item.field.maximum)
        for item in group.items
        if isinstance(item, ModelItem)
    )
    return plain and base_is_plain and len(fields) == len(group.items) and fields == content and same


def substitution(model: Model) -> None:
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


def simple_elements(model: Model) -> None:
    """Replace the type of such fields."""
    for cls in model.classes:
        for field in cls.fields:
            if field.reference and not field.head and isinstance(field.type, ObjectValue):
                target = field.type.cls
                own = target.fields[0] if len(target.fields) == 1 else None
                if target.source is None and target.base is None and own is not None and own.kind == "text":
                    field.type = own.type
