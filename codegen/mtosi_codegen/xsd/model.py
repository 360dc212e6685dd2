"""XML Schema components as the generator sees them. Names are qualified; what they refer to is not looked up yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from mtosi_jms.namespaces import clark

RANGES: Final = {
    "minInclusive": "minimum",
    "maxInclusive": "maximum",
    "minExclusive": "above",
    "maxExclusive": "below",
    "totalDigits": "digits",
    "fractionDigits": "fraction",
}
LENGTHS: Final = {
    "length": ("min_length", "max_length"),
    "minLength": ("min_length",),
    "maxLength": ("max_length",),
}
"""Facets, and the fields of `mtosi_jms.xmlbind.Facets` that they set. Others are not bounds."""


class QName(NamedTuple):
    """A qualified name; the namespace is empty if there is none."""

    namespace: str
    local: str

    def __str__(self) -> str:
        return clark(self.namespace, self.local)


class Place(NamedTuple):
    """The position of a component: file name as in reports, line from 1."""

    file: str
    line: int


class Occurs(NamedTuple):
    """How often a particle occurs; `maximum` None is unbounded."""

    minimum: int = 1
    maximum: int | None = 1


ONCE = Occurs()


class Given(NamedTuple):
    """A default or fixed value of a declaration."""

    kind: Literal["default", "fixed"]
    text: str

    def __str__(self) -> str:
        return f"{self.kind.capitalize()}: {self.text}."


@dataclass(slots=True, eq=False, repr=False)
class SimpleType:
    """A simple type, named or not.

    Attributes:
        name: None for an anonymous type, and for one that was redefined.
        base: the type that it restricts; None for a list or union.
        enumeration: its values with their documentation; None if it is not an enumeration.
        facets: other facets by XSD name; `pattern` holds all patterns of this derivation step.
        scope: namespaces by prefix, for values of an enumeration that are qualified names.
    """

    name: QName | None
    place: Place
    doc: str = ""
    base: QName | SimpleType | None = None
    item: QName | SimpleType | None = None
    members: tuple[QName | SimpleType, ...] = ()
    enumeration: tuple[tuple[str, str], ...] | None = None
    facets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scope: dict[str | None, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Attribute:
    """A declared or referenced attribute; a `type` of None means anySimpleType."""

    name: QName
    place: Place
    type: QName | SimpleType | None = None
    reference: bool = False
    use: Literal["optional", "required", "prohibited"] = "optional"
    value: Given | None = None
    doc: str = ""


@dataclass(slots=True, eq=False, repr=False)
class AnyAttribute:
    """xsd:anyAttribute; ##targetNamespace in `namespace` is replaced by the namespace itself."""

    place: Place
    namespace: str = "##any"


@dataclass(slots=True, eq=False, repr=False)
class AttributeGroup:
    """An attribute group: attributes, and references to other groups."""

    name: QName | None
    place: Place
    attributes: tuple[AttributePart, ...]


@dataclass(slots=True, eq=False, repr=False)
class AttributeGroupUse:
    """A reference to an attribute group."""

    name: QName
    place: Place


AttributePart = Attribute | AttributeGroupUse | AnyAttribute


@dataclass(slots=True, eq=False, repr=False)
class ElementUse:
    """An element in a content model: declared in place, or a reference to a global one.

    Attributes:
        name: its name on the wire.
        type: None for anyType, or for a reference.
        value: its fixed or default value.
    """

    name: QName
    place: Place
    occurs: Occurs
    type: QName | SimpleType | ComplexType | None = None
    reference: bool = False
    nillable: bool = False
    value: Given | None = None
    doc: str = ""
    block: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False, repr=False)
class Wildcard:
    """xsd:any."""

    place: Place
    occurs: Occurs
    namespace: str = "##any"
    process: str = "strict"
    doc: str = ""


@dataclass(slots=True, eq=False, repr=False)
class GroupUse:
    """A reference to a model group definition."""

    name: QName
    place: Place
    occurs: Occurs


@dataclass(slots=True, eq=False, repr=False)
class Compositor:
    """sequence, choice or all."""

    kind: Literal["sequence", "choice", "all"]
    occurs: Occurs
    items: tuple[Particle, ...]


Particle = ElementUse | Wildcard | GroupUse | Compositor


@dataclass(slots=True, eq=False, repr=False)
class Group:
    """A model group definition."""

    name: QName | None
    place: Place
    content: Compositor | None


@dataclass(slots=True, eq=False, repr=False)
class ComplexType:
    """A complex type, named or not.

    Attributes:
        name: None for an anonymous type, and for one that was redefined.
        derivation: empty if it derives from anyType.
        block: derivations that a type named by xsi:type must not use to replace this type.
        simple: the type that a simple content restricts or extends; own facets make an anonymous simple type.
        content: the content model; None for empty content.
    """

    name: QName | None
    place: Place
    doc: str = ""
    abstract: bool = False
    mixed: bool = False
    derivation: Literal["", "extension", "restriction"] = ""
    base: QName | None = None
    simple_content: bool = False
    simple: SimpleType | None = None
    content: Particle | None = None
    attributes: tuple[AttributePart, ...] = ()
    block: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False, repr=False)
class Element:
    """A global element declaration; a `type` of None means anyType, or the type of the substitution head.

    Attributes:
        block: what must not replace it: `extension` and `restriction` block types derived that way, `substitution`
            blocks the members of its group.
    """

    name: QName
    place: Place
    type: QName | SimpleType | ComplexType | None = None
    nillable: bool = False
    abstract: bool = False
    heads: tuple[QName, ...] = ()
    block: frozenset[str] = frozenset()
    value: Given | None = None
    doc: str = ""


Component = SimpleType | ComplexType | Element | Group | Attribute | AttributeGroup


@dataclass(slots=True, repr=False)
class SchemaSet:
    """All global components of the sources, by name; `rivals` keeps further definitions of a name for `dedupe`."""

    types: dict[QName, SimpleType | ComplexType] = field(default_factory=dict)
    elements: dict[QName, Element] = field(default_factory=dict)
    groups: dict[QName, Group] = field(default_factory=dict)
    attributes: dict[QName, Attribute] = field(default_factory=dict)
    attribute_groups: dict[QName, AttributeGroup] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    docs: dict[str, str] = field(default_factory=dict)

    def table(self, component: Component) -> dict[QName, Any]:
        """The table for a component of this kind, by name; simple and complex types share one table."""
        if isinstance(component, (SimpleType, ComplexType)):
            return self.types
        if isinstance(component, Element):
            return self.elements
        if isinstance(component, Group):
            return self.groups
        return self.attributes if isinstance(component, Attribute) else self.attribute_groups
