"""The model of a generated package: modules with classes and their fields, enumerations, faults and services.

The passes fill it in; the renderer only reads it. Objects refer to each other directly and compare by identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mtosi_codegen.findings import Finding, Findings
from mtosi_codegen.xsd.model import ComplexType, Place, QName, SchemaSet, SimpleType


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in simple type by its XSD name."""

    name: str


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A generated enumeration."""

    enum: EnumClass


@dataclass(frozen=True, slots=True)
class ListValue:
    """xsd:list."""

    item: Value


@dataclass(frozen=True, slots=True)
class UnionValue:
    """xsd:union."""

    members: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A restricted simple type.

    Attributes:
        facets: values by the facet's name in the run-time library, spelled as in XSD; all patterns must match.
    """

    base: Value
    facets: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """An object of a generated class."""

    cls: ClassDef


@dataclass(frozen=True, slots=True)
class RawValue:
    """Content that stays XML."""


Value = Builtin | EnumValue | ListValue | UnionValue | FacetValue | ObjectValue | RawValue
RAW = RawValue()


@dataclass(slots=True, eq=False, repr=False)
class EnumClass:
    """An enumeration.

    Attributes:
        type_name: local name of the XSD type, empty for an anonymous one.
        values: each value with its documentation.
        members: member name by value; filled by `names`.
    """

    namespace: str
    path: tuple[str, ...]
    type_name: str
    values: tuple[tuple[str, str], ...]
    place: Place
    doc: str = ""
    name: str = ""
    module: TypeModule = field(default_factory=lambda: _UNPLACED)
    members: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Field:
    """A field of a class.

    Attributes:
        xml: name on the wire; a wildcard has an empty local part.
        namespaces: namespace constraint of a wildcard.
        head: whether it is the head of a substitution group; `members` are the known members of the group.
        name: Python name; filled by `names`.
        overrides: the field of a base class that this field narrows.
    """

    kind: Literal["element", "attribute", "text", "any", "mixed"]
    xml: QName
    type: Value
    place: Place
    minimum: int = 1
    maximum: int | None = 1
    nillable: bool = False
    reference: bool = False
    head: bool = False
    members: tuple[ClassDef, ...] = ()
    namespaces: str = "##any"
    process: str = "lax"
    doc: str = ""
    block: frozenset[str] = frozenset()
    name: str = ""
    overrides: Field | None = None

    @property
    def many(self) -> bool:
        """Whether the field is a list."""
        return self.kind in {"any", "mixed"} or self.maximum is None or self.maximum > 1

    @property
    def prohibited(self) -> bool:
        """Whether the field only prohibits an attribute of the base type."""
        return self.kind == "attribute" and self.maximum == 0

    @property
    def key(self) -> tuple[str, str, str]:
        """The key that distinguishes the field from the others of its class."""
        return self.kind, *(self.xml if self.kind != "any" else QName(self.namespaces, ""))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelGroup:
    """A group in a content model that is not just one sequence of different elements."""

    kind: Literal["seq", "choice", "all"]
    minimum: int
    maximum: int | None
    items: tuple[ModelGroup | ModelItem, ...]

    def fields(self) -> Iterator[Field]:
        """The fields in the group, in order; a field may occur more than once."""
        for item in self.items:
            if isinstance(item, ModelGroup):
                yield from item.fields()
            else:
                yield item.field


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelItem:
    """A field in a content model, with its occurrence in one round of its group."""

    field: Field
    minimum: int
    maximum: int | None


@dataclass(slots=True, eq=False, repr=False)
class ClassDef:
    """A class for a complex type, named or not, or for a global element.

    Attributes:
        xml: name of the type or element; for an anonymous type, the name of its element.
        path: XML names from which its own name is made.
        source: the complex type whose content it has; None for an element of a named or simple type.
        model: content model; None where the fields alone describe it.
        any_attribute: namespaces that each attribute wildcard admits; an attribute must satisfy all of them.
        block: derivations that a type named by xsi:type must not use to replace this type.
        substitutes: the element class that this element class may replace.
    """

    kind: Literal["type", "element", "anonymous"]
    xml: QName
    path: tuple[str, ...]
    place: Place
    namespace: str
    doc: str = ""
    source: ComplexType | None = None
    base: ClassDef | None = None
    fields: list[Field] = field(default_factory=list)
    model: ModelGroup | None = None
    any_attribute: tuple[str, ...] = ()
    restricts: bool = False
    mixed: bool = False
    abstract: bool = False
    nillable: bool = False
    block: frozenset[str] = frozenset()
    substitutes: ClassDef | None = None
    mixin: str = ""
    name: str = ""
    module: TypeModule = field(default_factory=lambda: _UNPLACED)

    def lineage(self) -> Iterator[ClassDef]:
        """The class and its bases, nearest first."""
        cls: ClassDef | None = self
        while cls is not None:
            yield cls
            cls = cls.base

    @property
    def is_mixed(self) -> bool:
        """Whether the content is mixed; a restriction says so itself, an extension has it from its base."""
        return self.mixed or (self.base is not None and not self.restricts and self.base.is_mixed)

    def inherited(self) -> list[Field]:
        """The fields of the bases in schema order; a narrowed field keeps the position of the field it narrows."""
        return list(self.base.all_fields()) if self.base else []

    def all_fields(self) -> list[Field]:
        """All fields in schema order."""
        own = {item.overrides: item for item in self.fields if item.overrides is not None}
        merged = [own.get(item, item) for item in self.inherited()]
        return merged + [item for item in self.fields if item.overrides is None]


@dataclass(slots=True, eq=False, repr=False)
class FaultDef:
    """An exception class for one kind of fault.

    Attributes:
        element: local name of the element that identifies the kind.
    """

    namespace: str
    element: str
    detail: ClassDef
    doc: str = ""
    name: str = ""
    module: TypeModule = field(default_factory=lambda: _UNPLACED)


@dataclass(slots=True, eq=False, repr=False)
class TypeModule:
    """One module of types.

    Attributes:
        path: dotted path below the package.
        home: path of the module that holds the classes; differs from `path` only where modules had to be merged.
        simple: named simple types without a class; xsi:type may name them.
    """

    path: str
    namespace: str
    prefix: str
    doc: str = ""
    home: str = ""
    enums: list[EnumClass] = field(default_factory=list)
    classes: list[ClassDef] = field(default_factory=list)
    faults: list[FaultDef] = field(default_factory=list)
    simple: dict[str, Value] = field(default_factory=dict)

    @property
    def alias(self) -> str:
        """The name under which other modules import it."""
        return "_" + self.path.replace(".", "_")


_UNPLACED: TypeModule = TypeModule("", "", "")


@dataclass(slots=True, eq=False, repr=False)
class Operation:
    """One operation of a service, with its binding, port type and messages joined.

    Attributes:
        request, response, fault: the body elements; None where there is none.
        fault_elements: all elements that faults carry; the first is `fault`.
        fault_kinds: the names of what they can hold.
        bound_name: its name in the binding.
        headers: the elements of header parts, but the MTOSI header.
    """

    name: str
    place: Place
    mep: Literal["request-response", "one-way"]
    request: QName
    response: QName | None
    fault: QName | None
    request_message: str
    response_message: str
    fault_message: str
    fault_elements: tuple[QName, ...] = ()
    headers: tuple[QName, ...] = ()
    bound_name: str = ""
    action: str = ""
    doc: str = ""
    python_name: str = ""
    request_class: ClassDef | None = None
    response_class: ClassDef | None = None
    fault_class: ClassDef | None = None
    fault_kinds: list[str] = field(default_factory=list)
    header_classes: list[ClassDef] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Service:
    """One SOAP binding with its operations, or a port type without a binding. Each becomes one service class.

    Attributes:
        binding: name of the binding; for a port type without a binding, the port type's name.
        wsdl: file that contains the binding.
        files: all files that the WSDL reaches, for its findings.
        delivery: options of calls that the WSDL sets, by name.
        uncalled: operations left out because the service sends the first message.
        module: dotted module path; filled by `names`, as is `class_name`.
    """

    name: str
    binding: str
    wsdl: str
    namespace: str
    port_type: str
    transport: str
    address: str
    place: Place
    operations: list[Operation]
    files: tuple[str, ...] = ()
    failed: list[str] = field(default_factory=list)
    uncalled: list[str] = field(default_factory=list)
    doc: str = ""
    soap_version: str = "1.1"
    delivery: dict[str, object] = field(default_factory=dict)
    module: str = ""
    class_name: str = ""
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class Model:
    """All data that passes from reading to rendering."""

    schema: SchemaSet
    services: list[Service]
    findings: Findings
    only_operations: bool = False
    classes: list[ClassDef] = field(default_factory=list)
    enums: list[EnumClass] = field(default_factory=list)
    faults: list[FaultDef] = field(default_factory=list)
    modules: list[TypeModule] = field(default_factory=list)
    types: dict[QName, ClassDef] = field(default_factory=dict)
    elements: dict[QName, ClassDef] = field(default_factory=dict)
    anonymous: dict[ComplexType, ClassDef] = field(default_factory=dict)
    values: dict[QName | SimpleType, Value] = field(default_factory=dict)
    homes: dict[ClassDef, str] = field(default_factory=dict)
