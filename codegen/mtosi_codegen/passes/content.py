"""Turns content models into fields, one for each element name of a type, and keeps a model where fields do not suffice.

The occurrence of a field is what the whole content allows: an element in one alternative of a choice is optional; an
element that occurs twice in a sequence, or in a repeated group, is a list.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtosi_codegen.model import RAW, ClassDef, Field, Model, ModelGroup, ModelItem, ObjectValue, Value
from mtosi_codegen.passes.values import ANY_SIMPLE, Values, given
from mtosi_codegen.undefined import undefined
from mtosi_codegen.xsd.model import (
    ONCE,
    AnyAttribute,
    Attribute,
    ComplexType,
    Compositor,
    ElementUse,
    GroupUse,
    Occurs,
    Particle,
    QName,
    Wildcard,
)
from mtosi_jms.namespaces import XML

Leaf = ElementUse | Wildcard
_KINDS = {"sequence": "seq", "choice": "choice", "all": "all"}
_XML_ATTRIBUTES = {"lang": "language", "space": "NCName", "base": "anyURI", "id": "ID"}


def run(model: Model) -> None:
    """Give every class its own fields and content model."""
    builder = _Builder(model)
    for cls in model.classes:
        if cls.source is not None:
            builder.fill(cls, cls.source)
        elif cls.mixed and not any(field.kind == "mixed" for field in cls.fields):
            cls.fields.append(Field("mixed", QName("", ""), RAW, cls.place, 0, None, name="content"))


class _Builder:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._values = Values(model)

    def fill(self, cls: ClassDef, source: ComplexType) -> None:
        """Set the fields and content model of a class that has its own complex type."""
        if cls.mixed and not any(base.mixed for base in list(cls.lineage())[1:]):
            cls.fields.append(Field("mixed", QName("", ""), RAW, cls.place, 0, None, name="content"))
        content = simplified(source.content) if not cls.is_mixed else None
        made: dict[tuple[str, str, str], Field] = {}
        if content is not None:
            counts = occurrences(content)
            for leaf in leaves(content):
                field = self._field(cls, leaf, counts[key_of(leaf)])
                made.setdefault(field.key, field)
        cls.fields.extend(made.values())
        if content is not None and (not is_plain(content) or cls.restricts):
            cls.model = _group(content, made)
        elif cls.restricts and not cls.mixed and not source.simple_content:
            cls.model = ModelGroup("seq", 1, 1, ())
        cls.fields.extend(self._attributes(cls, source))
        cls.any_attribute = tuple(item.namespace for item in source.attributes if isinstance(item, AnyAttribute))

    def _field(self, cls: ClassDef, leaf: Leaf, occurs: Occurs) -> Field:
        if isinstance(leaf, Wildcard):
            field = Field("any", QName("", ""), RAW, leaf.place, occurs.minimum, occurs.maximum, doc=leaf.doc)
            field.namespaces, field.process = leaf.namespace, leaf.process
            return field
        value = self._element_value(leaf) if leaf.reference else given(self._declared(cls, leaf), leaf.value)
        doc = "\n\n".join(text for text in (leaf.doc, str(leaf.value or "")) if text)
        field = Field("element", leaf.name, value, leaf.place, occurs.minimum, occurs.maximum, doc=doc)
        declaration = self._model.schema.elements.get(leaf.name) if leaf.reference else None
        field.nillable = declaration.nillable if declaration else leaf.nillable
        field.reference = leaf.reference
        field.block = leaf.block & {"extension", "restriction"} if isinstance(value, ObjectValue) else frozenset()
        return field

    def _declared(self, cls: ClassDef, leaf: ElementUse) -> Value:
        return self._values.of(leaf.type, leaf.place, cls.namespace, (*cls.path, leaf.name.local))

    def _element_value(self, leaf: ElementUse) -> Value:
        cls = self._model.elements.get(leaf.name)
        if cls is None:
            message = f"element {undefined(leaf.name, self._model.schema)}"
            self._model.findings.add("element-unresolved", *leaf.place, message, "typed as raw XML")
            return RAW
        return ObjectValue(cls)

    def _attributes(self, cls: ClassDef, source: ComplexType) -> Iterator[Field]:
        for attribute in source.attributes:
            if isinstance(attribute, Attribute):
                value = self._attribute_value(cls, attribute)
                doc = "\n\n".join(text for text in (attribute.doc, str(attribute.value or "")) if text)
                least, most = int(attribute.use == "required"), int(attribute.use != "prohibited")
                yield Field("attribute", attribute.name, value, attribute.place, least, most, doc=doc)

    def _attribute_value(self, cls: ClassDef, attribute: Attribute) -> Value:
        path = (*cls.path, attribute.name.local)
        if not attribute.reference:
            value = self._values.text(attribute.type, attribute.place, cls.namespace, path)
            return given(value, attribute.value, attribute=True)
        declared = self._model.schema.attributes.get(attribute.name)
        if declared is not None:
            namespace = declared.name.namespace
            value = self._values.text(declared.type, declared.place, namespace, (declared.name.local,))
            return given(value, attribute.value or declared.value, attribute=True)
        if attribute.name.namespace == XML and attribute.name.local in _XML_ATTRIBUTES:
            builtin = QName("http://www.w3.org/2001/XMLSchema", _XML_ATTRIBUTES[attribute.name.local])
            return self._values.named(builtin, attribute.place)
        message = f"attribute {undefined(attribute.name, self._model.schema)}"
        self._model.findings.add("attribute-unresolved", *attribute.place, message, "typed as text")
        return ANY_SIMPLE


def key_of(leaf: Leaf) -> tuple[str, str, str]:
    """The key that distinguishes a field from the others of its type."""
    if isinstance(leaf, Wildcard):
        return "any", leaf.namespace, ""
    return "element", *leaf.name


def simplified(particle: Particle | None) -> Particle | None:
    """The particle without redundant groups: empty groups, groups of one, sequences inside sequences."""
    if particle is None or isinstance(particle, GroupUse) or particle.occurs.maximum == 0:
        return None
    if not isinstance(particle, Compositor):
        return particle
    items = [item for item in (simplified(item) for item in particle.items) if item is not None]
    if not items:
        return None
    kind = "sequence" if len(items) == 1 else particle.kind
    flat: list[Particle] = []
    for item in items:
        same = isinstance(item, Compositor) and item.kind == kind and item.occurs == ONCE and kind != "all"
        flat.extend(item.items if same and isinstance(item, Compositor) else [item])
    if len(flat) == 1 and (joined := _joined(particle.occurs, flat[0])) is not None:
        return joined
    return Compositor(kind, particle.occurs, tuple(flat))


def _joined(outer: Occurs, item: Particle) -> Particle | None:
    """Replace a group of one by its item; None if the multiplied occurrences would have gaps."""
    inner = item.occurs
    no_holes = inner.minimum <= 1 and (inner.maximum is None or inner == Occurs(0, 1))
    if no_holes or ONCE in (inner, outer):
        return _with_occurs(item, _times(outer, inner))
    return None


def _times(outer: Occurs, inner: Occurs) -> Occurs:
    most = None if outer.maximum is None or inner.maximum is None else outer.maximum * inner.maximum
    return Occurs(outer.minimum * inner.minimum, most)


def _with_occurs(particle: Particle, occurs: Occurs) -> Particle:
    if isinstance(particle, Compositor):
        return Compositor(particle.kind, occurs, particle.items)
    if isinstance(particle, Wildcard):
        return Wildcard(particle.place, occurs, particle.namespace, particle.process, particle.doc)
    if isinstance(particle, GroupUse):
        return GroupUse(particle.name, particle.place, occurs)
    return ElementUse(
        particle.name, particle.place, occurs, particle.type, particle.reference, particle.nillable, particle.value,
        particle.doc, particle.block,
    )  # fmt: skip


def leaves(particle: Particle) -> Iterator[Leaf]:
    """The elements and wildcards of a content model, in order."""
    if isinstance(particle, Compositor):
        for item in particle.items:
            yield from leaves(item)
    elif not isinstance(particle, GroupUse):
        yield particle


def occurrences(particle: Particle) -> dict[tuple[str, str, str], Occurs]:
    """How often each element may occur in the whole content model."""
    if not isinstance(particle, Compositor):
        return {} if isinstance(particle, GroupUse) else {key_of(particle): particle.occurs}
    parts = [occurrences(item) for item in particle.items]
    total: dict[tuple[str, str, str], Occurs] = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        found = [part.get(key, Occurs(0, 0)) for part in parts]
        if particle.kind == "choice":
            most = [occurs.maximum for occurs in found]
            high = None if None in most else max(number for number in most if number is not None)
            total[key] = Occurs(min(occurs.minimum for occurs in found), high)
        else:
            most = [occurs.maximum for occurs in found]
            high = None if None in most else sum(number for number in most if number is not None)
            total[key] = Occurs(sum(occurs.minimum for occurs in found), high)
    return {key: _times(particle.occurs, occurs) for key, occurs in total.items()}


def is_plain(particle: Particle) -> bool:
    """Whether a content model is one sequence of different elements, or a single element."""
    if not isinstance(particle, Compositor):
        return True
    items = [item for item in particle.items if isinstance(item, (ElementUse, Wildcard))]
    keys = [key_of(item) for item in items]
    alike = particle.kind == "sequence" and particle.occurs == ONCE and len(items) == len(particle.items)
    return alike and len(set(keys)) == len(keys)


def _group(particle: Particle, fields: dict[tuple[str, str, str], Field]) -> ModelGroup:
    if not isinstance(particle, Compositor):
        return ModelGroup("seq", 1, 1, tuple(_item(particle, fields)))
    items = tuple(part for item in particle.items for part in _item(item, fields))
    kind = _KINDS[particle.kind]
    return ModelGroup(kind, *particle.occurs, items)  # type: ignore[arg-type]


def _item(particle: Particle, fields: dict[tuple[str, str, str], Field]) -> Iterator[ModelGroup | ModelItem]:
    if isinstance(particle, Compositor):
        yield _group(particle, fields)
    elif not isinstance(particle, GroupUse):
        yield ModelItem(fields[key_of(particle)], *particle.occurs)
