"""Structured events of OMG's Notification Service as plain Python values; they need neither an ORB nor Java.

An `Any` has a TypeCode and a value. The kind of the TypeCode determines the Python type of the value:

| kind | value |
|---|---|
| null, void | None |
| boolean | bool |
| short, long, long long, their unsigned kinds, octet | int; an octet is 0 to 255 |
| float, double, long double | float |
| fixed | Decimal |
| char, wchar, string, wstring | str |
| sequence and array of octets | bytes |
| other sequences and arrays | tuple of values |
| struct, exception | tuple of its members' values, in the order of the TypeCode |
| union | `Union` |
| enum | the member's name |
| any | `Any` |
| TypeCode | `TypeCode` |
| object reference | `ObjectReference`, which nothing here follows |

An alias has the values of its target type. Valuetypes, abstract and native kinds carry state or code and have no value.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import EventError
from mtosi_jms.jms.message import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, Byte, Char, Float, Long, Short

__all__ = [
    "ANY_SEQ",
    "DEPTH",
    "NULL",
    "OCTET_SEQ",
    "PROPERTY",
    "PROPERTY_SEQ",
    "TYPE_NODES",
    "Any",
    "Member",
    "ObjectReference",
    "Property",
    "RefusedEvent",
    "StructuredEvent",
    "TCKind",
    "TypeCode",
    "Union",
    "Value",
    "any_of",
]

DEPTH: Final = BOUNDS.type_depth
"""Most levels of nested TypeCodes, and of nested values."""

TYPE_NODES: Final = BOUNDS.type_nodes
"""Most TypeCodes in one TypeCode, on all levels together."""


class TCKind(enum.Enum):
    """CORBA's kinds of TypeCodes, with their numbers on the wire."""

    null = 0
    void = 1
    short = 2
    long = 3
    ushort = 4
    ulong = 5
    float = 6
    double = 7
    boolean = 8
    char = 9
    octet = 10
    any = 11
    typecode = 12
    principal = 13
    objref = 14
    struct = 15
    union = 16
    enum = 17
    string = 18
    sequence = 19
    array = 20
    alias = 21
    except_ = 22
    longlong = 23
    ulonglong = 24
    longdouble = 25
    wchar = 26
    wstring = 27
    fixed = 28
    value = 29
    valuebox = 30
    native = 31
    abstract_interface = 32

    __hash__ = object.__hash__  # Enum's own hashes names, which is many times slower


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct, an exception, a union or an enumeration. `type`: its TypeCode, None for a member of an
    enumeration. `label`: the discriminator's value that selects it; None outside unions and for a union's default
    member."""

    name: str
    type: TypeCode | None = None
    label: str | int | bool | None = None


@dataclass(frozen=True, slots=True)
class TypeCode:
    """The type of a value.

    Attributes:
        repository_id: `IDL:...:1.0` of a type with a name, else empty.
        name: name of a type with a name, else empty.
        members: members of a struct, an exception, a union or an enumeration.
        content: the type of the elements of a sequence or array, or the target type of an alias.
        length: length of an array; bound of a string or sequence, 0 for none.
        discriminator: the type of a union's discriminator.
        default_index: index of a union's default member, -1: none.
        depth: levels of nested TypeCodes, including itself.
        nodes: number of TypeCodes in it, including itself.

    Raises:
        EventError: it is nested deeper than `DEPTH`, or has more than `TYPE_NODES` TypeCodes.
    """

    kind: TCKind
    repository_id: str = ""
    name: str = ""
    members: tuple[Member, ...] = ()
    content: TypeCode | None = None
    length: int = 0
    discriminator: TypeCode | None = None
    default_index: int = -1
    digits: int = 0
    scale: int = 0
    depth: int = field(init=False, repr=False, compare=False)
    nodes: int = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inner = [member.type for member in self.members if member.type is not None]
        inner += [one for one in (self.content, self.discriminator) if one is not None]
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "depth", 1 + max((one.depth for one in inner), default=0))
        object.__setattr__(self, "nodes", 1 + sum(one.nodes for one in inner) + len(self.members))
        if self.depth > DEPTH:
            raise EventError(f"a TypeCode is nested deeper than {DEPTH}")
        if self.nodes > TYPE_NODES:
            raise EventError(f"a TypeCode holds more than {TYPE_NODES} others")
        object.__setattr__(self, "_hash", hash(self._given()))

    def __hash__(self) -> int:
        return self._hash  # computed once: a TypeCode can be a large tree

    def __reduce__(self) -> tuple[type[TypeCode], tuple[object, ...]]:
        return type(self), self._given()

    def _given(self) -> tuple[object, ...]:
        return (
            *(self.kind, self.repository_id, self.name, self.members, self.content, self.length),
            *(self.discriminator, self.default_index, self.digits, self.scale),
        )

    @staticmethod
    def of(kind: TCKind) -> TypeCode:
        """The TypeCode of a kind without parameters, such as `long` or an unbounded `string`; always the same object.
        Raises EventError: the kind needs parameters, such as `struct`."""
        try:
            return _SIMPLE[kind]
        except KeyError:
            raise EventError(f"a TypeCode of {kind.name} needs more than its kind") from None

    @staticmethod
    def sequence(content: TypeCode, bound: int = 0) -> TypeCode:
        """The TypeCode of a sequence. `bound`: most elements, 0 for any number."""
        return TypeCode(TCKind.sequence, content=content, length=bound)

    @staticmethod
    def struct(repository_id: str, name: str, members: tuple[tuple[str, TypeCode], ...]) -> TypeCode:
        """The TypeCode of a struct."""
        return TypeCode(TCKind.struct, repository_id, name, tuple(Member(*one) for one in members))

    @staticmethod
    def alias(repository_id: str, name: str, content: TypeCode) -> TypeCode:
        """The TypeCode of a typedef."""
        return TypeCode(TCKind.alias, repository_id, name, content=content)

    @property
    def plain(self) -> TypeCode:
        """The type itself, behind all aliases."""
        found = self
        while found.kind is TCKind.alias and found.content is not None:
            found = found.content
        return found


_NEEDY: Final = frozenset(
    {TCKind.objref, TCKind.struct, TCKind.union, TCKind.enum, TCKind.sequence, TCKind.array, TCKind.alias}
    | {TCKind.except_, TCKind.fixed, TCKind.value, TCKind.valuebox, TCKind.native, TCKind.abstract_interface}
)
_SIMPLE: Final = {kind: TypeCode(kind) for kind in TCKind if kind not in _NEEDY}


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A reference to a CORBA object, as text; this module never follows it. `ior`: `IOR:...`, empty for the nil
    reference."""

    ior: str = ""


@dataclass(frozen=True, slots=True)
class Union:
    """The value of a union. `value`: the member's value; None if the discriminator selects no member."""

    discriminator: str | int | bool
    value: Value = None


@dataclass(frozen=True, slots=True)
class Any:
    """A value with its type. `value`: a value of that type; it is checked only when it is encoded."""

    type: TypeCode
    value: Value = None


Value: TypeAlias = (
    "bool | int | float | Decimal | str | bytes | tuple[Value, ...] | Union | Any | TypeCode | ObjectReference | None"
)
"""The values that an `Any` can hold."""

NULL: Final = Any(TypeCode.of(TCKind.null))
"""The Any that holds nothing."""

OCTET_SEQ: Final = TypeCode.sequence(TypeCode.of(TCKind.octet))
"""A sequence of octets."""

ANY_SEQ: Final = TypeCode.sequence(TypeCode.of(TCKind.any))
"""A sequence of Anys (`CORBA::AnySeq`)."""


def _notification(name: str, content: TypeCode) -> TypeCode:
    return TypeCode.alias(f"IDL:omg.org/CosNotification/{name}:1.0", name, content)


_NAME: Final = _notification("PropertyName", _notification("Istring", TypeCode.of(TCKind.string)))
_VALUE: Final = _notification("PropertyValue", TypeCode.of(TCKind.any))
PROPERTY: Final = TypeCode.struct(
    "IDL:omg.org/CosNotification/Property:1.0", "Property", (("name", _NAME), ("value", _VALUE))
)
"""`CosNotification::Property`."""

PROPERTY_SEQ: Final = _notification("PropertySeq", TypeCode.sequence(PROPERTY))
"""`CosNotification::PropertySeq`."""


@dataclass(frozen=True, slots=True)
class Property:
    """A name and a value, in the header or the filterable data of an event."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class StructuredEvent:
    """`CosNotification::StructuredEvent`.

    Attributes:
        domain_name: in the fixed header: who defined the type, for example `telecom`; empty for events from JMS.
        type_name: in the fixed header: the type within the domain.
        event_name: in the fixed header: name of this event; nothing interprets it.
        variable_header: optional header fields: quality of service of this event.
        filterable_data: names and values that filters use.
        remainder_of_body: the rest.
    """

    domain_name: str = ""
    type_name: str = ""
    event_name: str = ""
    variable_header: tuple[Property, ...] = ()
    filterable_data: tuple[Property, ...] = ()
    remainder_of_body: Any = NULL

    def get(self, name: str) -> Any | None:
        """A value of the filterable data, the first of that name; None if there is none."""
        return _found(self.filterable_data, name)

    def header(self, name: str) -> Any | None:
        """A value of the variable header, the first of that name; None if there is none."""
        return _found(self.variable_header, name)


@dataclass(frozen=True, slots=True)
class RefusedEvent(StructuredEvent):
    """The readable parts of an event that cannot be decoded. `error`: why it cannot be decoded, and where."""

    error: EventError = field(default_factory=lambda: EventError("it cannot be decoded"), compare=False)


def _found(properties: tuple[Property, ...], name: str) -> Any | None:
    return next((one.value for one in properties if one.name == name), None)


def any_of(value: bool | float | str | bytes | None) -> Any:
    """A Java value as an Any, by the standard mapping of Java to IDL (000-JE12).

    Args:
        value: None becomes null, bool boolean, `Byte` octet, `Short` short, int long, `Long` long long, `Float` float,
            float double, bytes a sequence of octets, str string and `Char` char, or wstring and wchar where Latin-1
            cannot hold it.

    Raises:
        EventError: the value has another type, or is out of the range of its type.
    """
    if value is None:
        return NULL
    if isinstance(value, str):
        latin = value.isascii() or max(value) <= "\xff"
        if isinstance(value, Char):
            return Any(_CHAR if latin else _WCHAR, str(value))
        return Any(_STRING if latin else _WSTRING, value)
    if isinstance(value, bytes):
        return Any(OCTET_SEQ, value)
    kind = type(value)
    found = _BY_CLASS.get(kind)
    if found is None:
        raise EventError(f"{kind.__name__} is not a Java value that has an IDL type")
    bounds = _RANGES.get(kind)
    if bounds is None:
        return Any(found, float(value) if isinstance(value, Float) else value)
    if not bounds[0] <= value <= bounds[1]:
        raise EventError(f"{value} is out of the range of an IDL {found.kind.name}")
    return Any(found, int(value) & 0xFF if isinstance(value, Byte) else int(value))


_STRING: Final = TypeCode.of(TCKind.string)
_WSTRING: Final = TypeCode.of(TCKind.wstring)
_CHAR: Final = TypeCode.of(TCKind.char)
_WCHAR: Final = TypeCode.of(TCKind.wchar)
_BY_CLASS: Final[dict[type, TypeCode]] = {
    bool: TypeCode.of(TCKind.boolean),
    Byte: TypeCode.of(TCKind.octet),
    Short: TypeCode.of(TCKind.short),
    int: TypeCode.of(TCKind.long),
    Long: TypeCode.of(TCKind.longlong),
    Float: TypeCode.of(TCKind.float),
    float: TypeCode.of(TCKind.double),
}
_RANGES: Final[dict[type, tuple[int, int]]] = {
    Byte: (-128, 127),
    Short: (-32768, 32767),
    int: (INT_MIN, INT_MAX),
    Long: (LONG_MIN, LONG_MAX),
}
