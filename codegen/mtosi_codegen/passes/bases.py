"""Base classes: the base of a complex type, and the type of a global element."""

from __future__ import annotations

from typing import Final

from mtosi_codegen.model import RAW, ClassDef, Field, Model, ObjectValue
from mtosi_codegen.passes.values import Values, given
from mtosi_codegen.undefined import undefined
from mtosi_codegen.xsd.model import ComplexType, Element, QName, SimpleType
from mtosi_jms.namespaces import TMF854

MAX_BASES: Final = 100
_NAMES: Final = {
    "NamingAttributeType": ("/fmw/xsd/nam/v1", "DistinguishedNameMixin"),
    "NamingAttributes_T": (TMF854, "NamingAttributesMixin"),
}
"""The types of MTOSI's names: the end of their namespace, and what their class derives from."""


def run(model: Model) -> None:
    """Link each class to its base; elements and simple contents get their `value` field."""
    values = Values(model)
    for cls in model.classes:
        if cls.source is not None:
            _derive(model, values, cls, cls.source)
        else:
            _element(model, values, cls, model.schema.elements[cls.xml])
        if cls.kind == "type" and cls.xml.local in _NAMES:
            namespace, mixin = _NAMES[cls.xml.local]
            cls.mixin = mixin * cls.namespace.endswith(namespace)
    depths: dict[ClassDef, int] = {}
    for cls in model.classes:
        _settle_depth(model, cls, depths)


def _derive(model: Model, values: Values, cls: ClassDef, source: ComplexType) -> None:
    base = model.schema.types.get(source.base) if source.base is not None else None
    if isinstance(base, ComplexType) and source.base is not None:
        cls.base = model.types[source.base]
        cls.restricts = source.derivation == "restriction"
        narrowed = source.simple if source.simple is not None and (source.simple.facets or _narrows(source)) else None
        if source.simple_content and narrowed is not None:
            narrowed.base = narrowed.base if isinstance(narrowed.base, SimpleType) else _text_base(model, source.base)
            cls.fields.append(_text(cls, values, narrowed))
    elif source.simple_content:
        cls.fields.append(_text(cls, values, source.simple or source.base))
    elif source.base is not None:
        message = "base type " + (f"{source.base} is simple" if base else undefined(source.base, model.schema))
        model.findings.add("base-unresolved", *source.place, message, "derived from nothing; the rest is kept as XML")


def _narrows(source: ComplexType) -> bool:
    return source.simple is not None and (
        source.simple.enumeration is not None or isinstance(source.simple.base, SimpleType)
    )


def _text_base(model: Model, name: QName | None) -> QName | SimpleType | None:
    """The simple type at the bottom of a chain of complex types with simple content."""
    met: set[QName] = set()
    while name is not None and name not in met:
        met.add(name)
        component = model.schema.types.get(name)
        if not isinstance(component, ComplexType):
            return name
        name = component.base
    return None


def _text(cls: ClassDef, values: Values, type_: QName | SimpleType | None) -> Field:
    value = values.text(type_, cls.place, cls.namespace, (*cls.path, "Value"))
    return Field("text", QName("", ""), value, cls.place, name="value")


def _element(model: Model, values: Values, cls: ClassDef, element: Element) -> None:
    type_, declared = element.type, element.value
    met = {element.name}
    while type_ is None and element.heads and element.heads[0] in model.schema.elements:
        element = model.schema.elements[element.heads[0]]
        if element.name in met:
            break
        met.add(element.name)
        type_ = element.type
    if isinstance(type_, ComplexType):
        cls.base = model.elements[element.name]
        return
    value = given(values.of(type_, element.place, cls.namespace, cls.path), declared)
    if isinstance(value, ObjectValue):
        cls.base = value.cls
        cls.abstract = cls.abstract or value.cls.abstract
    elif isinstance(type_, (QName, SimpleType)) and value is not RAW:
        cls.fields.append(Field("text", QName("", ""), value, cls.place, name="value"))
    if not cls.fields and cls.base is None:
        cls.mixed = True
        cls.any_attribute = ("##any",)


def _settle_depth(model: Model, cls: ClassDef, depths: dict[ClassDef, int]) -> None:
    """Count the bases of a class; a chain of bases that is circular or too long is cut."""
    chain: dict[ClassDef, None] = {}
    ancestor: ClassDef | None = cls
    while ancestor is not None and ancestor not in depths and ancestor not in chain:
        chain[ancestor] = None
        ancestor = ancestor.base
    if ancestor in chain:
        last = next(reversed(chain))
        message = f"type {cls.xml} is derived from itself"
        model.findings.add("cycle", *last.place, message, "derived from nothing")
        last.base = ancestor = None
    depth = depths[ancestor] if ancestor is not None else -1
    for derived in reversed(chain):
        depth += 1
        if depth > MAX_BASES:
            message = f"{derived.kind} {derived.xml} has more than {MAX_BASES} base types"
            repair = "not generated: derived from nothing; what its base adds is kept as XML"
            model.findings.add("too-large", *derived.place, message, repair)
            derived.base, depth = None, 0
            derived.restricts = False
            derived.mixed = derived.mixed or derived.source is None
        depths[derived] = depth
