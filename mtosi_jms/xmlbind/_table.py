"""The tables of generated classes: fields, content model, names. Decoder and encoder work with them.

A table has what its class adds to the base class; `fields` joins it with the tables of the base classes. The forms for
the decoder (tag to field) and the encoder (field to tag) are compiled once, at first use, and never change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from mtosi_jms.masking import shown_half_made
from mtosi_jms.namespaces import clark
from mtosi_jms.xmlbind._grammar import Grammar, Group
from mtosi_jms.xmlbind._registry import prefix_for, resolve_class
from mtosi_jms.xmlbind._simpletypes import EnumType, Facets, GivenType, ListType, SimpleType, UnionType, compiled

Process = Literal["strict", "lax", "skip"]


class RawType:
    """Marker for content that stays XML: xsd:anyType and types that the generator could not resolve."""

    def __repr__(self) -> str:
        return "RAW"


RAW = RawType()


TypeRef: TypeAlias = str | SimpleType | RawType


@dataclass(slots=True, eq=False)
class Field:
    """One field of a generated class and its place in the XML.

    Attributes:
        local: XML local name; empty for wildcards, text and mixed content.
        type: simple type, path of a class, or RAW.
        kind: element, attribute, text (simple content), any (wildcard) or mixed.
        min, max: occurrence; max None is unbounded.
        ns: namespace, None for that of the owning module; the wildcard's constraint for `any`.
        head: whether elements of a substitution group may replace the element.
        members: paths of the classes of these elements.
        process: how elements of a wildcard are processed.
        block: the derivations, `extension` or `restriction`, that a type named by xsi:type may not have.
    """

    name: str
    local: str
    type: TypeRef
    kind: str = "element"
    min: int = 0
    max: int | None = 1
    ns: str | None = None
    nillable: bool = False
    head: bool = False
    members: tuple[str, ...] = ()
    process: Process = "lax"
    block: tuple[str, ...] = ()
    owner: Module | None = None

    @property
    def many(self) -> bool:
        return self.kind in ("any", "mixed") or self.max is None or self.max > 1

    @property
    def namespace(self) -> str:
        """The namespace of the element or attribute."""
        if self.ns is not None:
            return self.ns
        return self.owner.namespace if self.owner and self.kind == "element" else ""

    @property
    def tag(self) -> str:
        return clark(self.namespace, self.local)

    def simple(self) -> SimpleType | None:
        if not isinstance(self.type, SimpleType):
            return None
        self.type.bind(self._root)
        return self.type

    def table(self) -> ClassTable:
        table: ClassTable = resolve_class(str(self.type), self._root).__xml__
        return table

    def member_tables(self) -> list[ClassTable]:
        return [resolve_class(path, self._root).__xml__ for path in self.members]

    @property
    def refers(self) -> bool:
        """Whether the field refers to a global element of complex type, for which other elements may substitute."""
        return self.head or (self.kind == "element" and isinstance(self.type, str) and self.table().tag == self.tag)

    @property
    def _root(self) -> str:
        return self.owner.root if self.owner else ""


def E(  # noqa: N802 - short names keep the tables readable
    name: str,
    local: str,
    type_: TypeRef,
    *,
    min: int = 0,
    max: int | None = 1,
    ns: str | None = None,
    nillable: bool = False,
    head: bool = False,
    members: tuple[str, ...] = (),
    block: tuple[str, ...] = (),
) -> Field:
    """A child element."""
    return Field(name, local, type_, "element", min, max, ns, nillable, head, members, block=block)


def A(  # noqa: N802
    name: str, local: str, type_: TypeRef, *, required: bool = False, prohibited: bool = False, ns: str = ""
) -> Field:
    """An attribute; a prohibited one is an attribute of the base type that this type does not allow."""
    return Field(name, local, type_, "attribute", int(required), int(not prohibited), ns)


def TEXT(name: str, type_: TypeRef) -> Field:  # noqa: N802
    return Field(name, "", type_, "text", 1)


def ANY(  # noqa: N802
    name: str, *, namespace: str = "##any", min: int = 0, max: int | None = None, process: Process = "lax"
) -> Field:
    """A wildcard for elements."""
    return Field(name, "", RAW, "any", min, max, namespace, process=process)


def MIXED(name: str) -> Field:  # noqa: N802
    return Field(name, "", RAW, "mixed", 0, None)


enum = EnumType
"""The simple type of a generated enumeration."""
list_of = ListType
"""A list of a simple type."""


def union(*members: SimpleType) -> UnionType:
    """A union of simple types."""
    return UnionType(members)


class ContentOptions(TypedDict, total=False):
    """The options of the tables of both types and elements; see the attributes of `ClassTable`."""

    model: Group | None
    mixed: bool
    abstract: bool
    restricts: bool
    block: tuple[str, ...]
    any_attribute: tuple[str, ...]


class ClassTable:
    """The facts about the XML of one generated class.

    Attributes:
        abstract: whether only instances of derived types or of substitutes may be written.
        nillable: whether xsi:nil is allowed at the global element.
        substitutes: path of the class of the element that this element may replace.
        mixed: whether character data is allowed between the elements.
        restricts: whether the type restricts its base instead of extending it; its model then replaces that of the
            base.
        block: the derivations, `extension` or `restriction`, that a type named by xsi:type may not have.
        any_attribute: the namespaces that each xsd:anyAttribute admits, in the form of `ANY`; all of them must admit an
            attribute.
        plan, writing: the compiled forms for reading and for writing; None until `plan_of` and `write_plan` make them.
    """

    def __init__(
        self,
        module: Module,
        own: Sequence[Field],
        *,
        type_name: str = "",
        element: str | None = None,
        model: Group | None = None,
        mixed: bool = False,
        abstract: bool = False,
        nillable: bool = False,
        substitutes: str | None = None,
        restricts: bool = False,
        block: tuple[str, ...] = (),
        any_attribute: tuple[str, ...] = (),
    ) -> None:
        self.module = module
        self.any_attribute = any_attribute
        self.own = tuple(own)
        self.type_name = type_name
        self.element = element
        self.own_model = model
        self.mixed = mixed
        self.abstract = abstract
        self.nillable = nillable
        self.substitutes = substitutes
        self.restricts = restricts
        self.block = block
        self.cls: type[Any]
        self.plan: Any = None
        self.writing: Any = None
        for item in self.own:
            item.owner = module

    @shown_half_made
    def __repr__(self) -> str:
        return f"<table of {self.cls.__name__}>"

    @cached_property
    def base(self) -> ClassTable | None:
        for parent in self.cls.__mro__[1:]:
            if "__xml__" in parent.__dict__:
                table: ClassTable = parent.__dict__["__xml__"]
                return table
        return None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """All fields in schema order, those of the base classes first; a restricted field keeps its place."""
        inherited = list(self.base.fields) if self.base else []
        own = {item.name: item for item in self.own}
        merged = [own.pop(item.name, item) for item in inherited]
        return (*merged, *own.values())

    @cached_property
    def model(self) -> Group | None:
        """The content model if it is more than one sequence of different elements, otherwise None."""
        inherited = self.base.model if self.base and not self.restricts else None
        if inherited is None and self.own_model is None:
            return None
        if self.restricts and self.own_model:
            return self.own_model
        before = [inherited] if inherited else _content(self.base.fields if self.base else ())
        known = {item.name for item in self.base.fields} if self.base else set()
        own = [self.own_model] if self.own_model else [name for name in _content(self.own) if name not in known]
        return ("seq", 1, 1, (*before, *own))

    def drops(self, field: Field) -> bool:
        """Whether a restriction has removed a field of a base class from the content."""
        if field.kind == "mixed":
            return not self.has_text
        return field.kind in ("element", "any") and self.grammar is not None and field.name not in self.grammar.names

    @cached_property
    def has_text(self) -> bool:
        """Whether the content is mixed; a restriction says so itself, an extension has it from its base."""
        return self.mixed or (self.base is not None and not self.restricts and self.base.has_text)

    @cached_property
    def attribute_wildcards(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The attribute wildcards: target namespace and constraints of each type. One of them is enough to admit an
        attribute."""
        inherited = self.base.attribute_wildcards if self.base and not self.restricts else ()
        own = ((self.module.namespace, self.any_attribute),) if self.any_attribute else ()
        return (*inherited, *own)

    @cached_property
    def grammar(self) -> Grammar | None:
        """The compiled content model; None if there is none."""
        return Grammar(self.model) if self.model is not None else None

    @cached_property
    def declared(self) -> ClassTable:
        of_named_type = self.element is not None and not self.own and self.own_model is None and not self.mixed
        return self.base if of_named_type and self.base is not None else self

    @cached_property
    def tag(self) -> str | None:
        return clark(self.module.namespace, self.element) if self.element is not None else None

    @property
    def type_qname(self) -> str | None:
        """Clark name of the nearest named type; None if all are anonymous."""
        table: ClassTable | None = self
        while table is not None and not table.type_name:
            table = table.base
        return clark(table.module.namespace, table.type_name) if table is not None else None

    @property
    def any_type(self) -> bool:
        """Whether the type is xsd:anyType, which any other type may replace."""
        return self.mixed and self.any_attribute == ("##any",) and not self.type_name and len(self.fields) == 1

    def admits(self, derived: ClassTable) -> bool:
        """Whether xsi:type may name a type instead of this one: a derived type, or any type if this is anyType."""
        if derived.is_a(self) or self.any_type:
            return True
        simple = self.element is not None and self.base is None and self.own[:1] and self.own[0].kind == "text"
        return bool(simple) and any(item.kind == "text" for item in derived.fields)

    def blocks(self, derived: ClassTable, more: tuple[str, ...] = ()) -> bool:
        """Whether `block` forbids that a type replaces this type, or the type of this element."""
        declared = self.declared
        barred = {*self.block, *declared.block, *more}
        table: ClassTable | None = derived
        while barred and table is not None and table is not declared:
            if ("restriction" if table.restricts else "extension") in barred:
                return True
            table = table.base
        return False

    @property
    def takes_text(self) -> bool:
        """Whether xsi:type may name a simple type: the type has simple content or is anyType."""
        return self.any_type or any(item.kind == "text" for item in self.fields)

    def is_a(self, other: ClassTable) -> bool:
        """Whether this class is, or extends, the other's class."""
        return issubclass(self.cls, other.cls)

    def field(self, name: str) -> Field:
        """Return the field with a Python name."""
        for item in self.fields:
            if item.name == name:
                return item
        raise KeyError(name)


def _content(fields: Sequence[Field]) -> list[str]:
    return [item.name for item in fields if item.kind in ("element", "any")]


class Module:
    """One generated module of types; paths are relative to the package `root`."""

    def __init__(self, name: str, namespace: str, *, prefix: str, root: str) -> None:
        self.name = name
        self.namespace = namespace
        self.prefix = prefix_for(namespace, prefix) if namespace else ""
        self.root = root

    def complex_type(
        self, name: str | None, fields: Sequence[Field] = (), **options: Unpack[ContentOptions]
    ) -> ClassTable:
        """Return the table of a complex type; `name` is None for an anonymous type."""
        return ClassTable(self, fields, type_name=name or "", **options)

    def element(
        self,
        name: str,
        fields: Sequence[Field] = (),
        *,
        nillable: bool = False,
        substitutes: str | None = None,
        **options: Unpack[ContentOptions],
    ) -> ClassTable:
        """Return the table of a global element, with fields of its own or derived from its named type."""
        return ClassTable(self, fields, element=name, nillable=nillable, substitutes=substitutes, **options)


def simple(base: SimpleType, **facets: Any) -> SimpleType:
    """Return a restricted simple type. The facets are `name` and the attributes of `Facets`, with patterns as strings;
    also the texts `default` and `fixed` of the declaration of an element or attribute."""
    given = facets.pop("default", None), facets.pop("fixed", None)
    if given != (None, None):
        return GivenType(simple(base, **facets) if facets else base, *given)
    name = facets.pop("name", base.name)
    if "pattern" in facets:
        facets["patterns"] = (facets.pop("pattern"),)
    for pattern in facets.get("patterns", ()):
        compiled(pattern)
    if "values" in facets:
        facets["values"] = frozenset(facets["values"])
    return base.restrict(name, Facets(**facets))
