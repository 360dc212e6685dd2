"""The plans of the decoder: the table of a class, compiled once into dictionaries from tags to slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mtosi_jms.namespaces import XSI, clark, split_clark
from mtosi_jms.xmlbind._grammar import Group, is_group, names_of
from mtosi_jms.xmlbind._objects import XmlObject
from mtosi_jms.xmlbind._table import RAW, ClassTable, Field

STRING: Final = 0
LEAF: Final = 1
OBJECT: Final = 2
KEEP: Final = 3


class Slot(NamedTuple):
    """The place of a child element or attribute in an object.

    Attributes:
        kind: STRING (text as it is), LEAF (simple type), OBJECT (class), KEEP (raw XML).
        target: SimpleType or ClassTable.
    """

    name: str
    kind: int
    many: bool
    order: int
    target: Any
    field: Field


@dataclass(frozen=True, slots=True)
class Wildcard:
    """An xsd:any of a class: which namespaces and how many elements it admits, and how they are processed."""

    name: str
    namespaces: str
    process: str
    limit: int | None
    order: int = 0
    target: str = ""

    def admits(self, namespace: str, target: str | None = None) -> bool:
        """Whether the wildcard, in a schema of a target namespace (by default its own), admits an element of a
        namespace."""
        if self.namespaces == "##any":
            return True
        own = self.target if target is None else target
        if self.namespaces == "##other":
            return namespace not in (own, "")
        named = self.namespaces.split()
        return (
            namespace in named
            or (not namespace and "##local" in named)
            or (namespace == own and "##targetNamespace" in named)
        )


class Plan:
    """The compiled table of one class.

    Attributes:
        rivals: further slots of children that several fields admit, by Clark name.
        content: names of the fields for child elements.
        dropped: names of fields that a base class requires and a restriction removes.
        lists: names of fields of `content` that are lists.
        ordered: whether the content is one sequence, so that numbers are enough to check the order.
        interleaved: whether a repeated group has several fields, so that the document order must be kept.
    """

    def __init__(self, table: ClassTable) -> None:
        self.table = table
        self.cls: type[XmlObject] = table.cls
        self.slots: dict[str, Slot] = {}
        self.rivals: dict[str, list[Slot]] = {}
        self.attributes: dict[str, Slot] = {}
        self.text: Slot | None = None
        self.mixed: str | None = None
        self.wildcards: list[Wildcard] = []
        self.heads: list[Slot] = []
        self.ordered = table.model is None
        self.interleaved = table.model is not None and _interleaves(table.model)
        dropped = [field for field in table.fields if table.drops(field)]
        for order, field in enumerate(table.fields):
            if field not in dropped:
                self._add(field, order if self.ordered else 0)
        for field in dropped:  # its elements are too many, unless another field takes them
            if field.kind == "element":
                self._add(field, 0)
        self.content = tuple(field.name for field in table.fields if field.kind in ("element", "any"))
        self.required = tuple(field.name for field in table.fields if field.min and not table.drops(field))
        self.dropped = tuple(field.name for field in dropped if field.min and not field.many)
        lists = [field for field in table.fields if field.many and field.kind in ("element", "any")]
        self.lists = frozenset(field.name for field in lists)
        bounds = [(field.name, 0 if table.drops(field) else field.min, field.max) for field in lists]
        self.bounded = tuple(bound for bound in bounds if bound[1] > 1 or bound[2] is not None)
        self.grammar = table.grammar
        self._free_attributes = tuple(
            tuple(Wildcard("", admitted, "lax", None, target=target) for admitted in constraints)
            for target, constraints in table.attribute_wildcards
        )

    def unknown_attribute(self, tag: str) -> str | None:
        """Return the warning about an attribute without a field; None if the element may have the attribute."""
        namespace, local = split_clark(tag)
        if tag in self.attributes:
            return f"attribute {local} is prohibited: kept as it came"
        admitted = any(all(wild.admits(namespace) for wild in wildcards) for wildcards in self._free_attributes)
        return None if namespace == XSI or admitted else f"unknown attribute {local} is kept"

    def _add(self, field: Field, order: int) -> None:
        if field.kind == "any":
            limit = field.max
            target = field.owner.namespace if field.owner else ""
            self.wildcards.append(Wildcard(field.name, field.ns or "##any", field.process, limit, order, target))
        elif field.kind == "mixed":
            self.mixed = field.name
        elif field.kind == "attribute":
            self.attributes[field.tag] = _slot(field, order)
        elif field.kind == "text":
            self.text = _slot(field, order)
        else:
            self._add_element(field, order)

    def _add_element(self, field: Field, order: int) -> None:
        slot = _slot(field, order)
        self._offer(field.tag, slot)
        if field.refers:
            self.heads.append(slot)
        for member in field.member_tables():
            tag = clark(member.module.namespace, member.element or "")
            self._offer(tag, slot._replace(kind=OBJECT, target=member))

    def _offer(self, tag: str, slot: Slot) -> None:
        """Assign children with a name to a slot; if another slot already has them, the slot becomes its rival."""
        if self.slots.setdefault(tag, slot) is not slot:
            self.rivals.setdefault(tag, []).append(slot)

    def given(self, values: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
        """Return the values of each field of the content that has any; None is no value."""
        held = ((name, values.get(name)) for name in self.content)
        lists = {name: value if name in self.lists else (value,) for name, value in held if value is not None}
        return {name: value for name, value in lists.items() if value}

    def counts(self, values: Mapping[str, Any]) -> dict[str, int]:
        """Return the number of values of each field of the content that has any; the argument is that of `given`."""
        return {name: len(value) for name, value in self.given(values).items()}

    def head_for(self, cls: type[XmlObject]) -> Slot | None:
        """Return the slot of the substitution head that an element may replace, if the generator did not know it."""
        for slot in self.heads:
            if slot.kind == OBJECT and substitutes(cls.__xml__, slot.field.tag):
                return slot
        return None


def _slot(field: Field, order: int) -> Slot:
    if field.type is RAW:
        return Slot(field.name, KEEP, field.many, order, None, field)
    simple = field.simple()
    if simple is not None:
        return Slot(field.name, STRING if simple.plain else LEAF, field.many, order, simple, field)
    return Slot(field.name, OBJECT, field.many, order, field.table(), field)


def substitutes(table: ClassTable, head: str) -> bool:
    """Whether a chain of substitution groups leads from an element to a head, given by name."""
    seen: set[str] = set()
    current: ClassTable | None = table
    while current is not None and current.substitutes and current.substitutes not in seen:
        seen.add(current.substitutes)
        current = Field("", "", current.substitutes, owner=current.module).table()
        if current.tag == head:
            return True
    return False


def _interleaves(group: Group, repeated: bool = False) -> bool:
    """Whether a repeated group of the model has more than one field, or a field occurs twice in the model."""
    kind, _, most, items = group
    repeated = repeated or kind == "all" or most is None or most > 1
    names = list(names_of(group))
    if len(names) != len(set(names)) or (repeated and len(names) > 1):
        return True
    return any(_interleaves(item, repeated) for item in items if is_group(item))


def plan_of(table: ClassTable) -> Plan:
    """Return the compiled plan of a table; it is made at first use."""
    if table.plan is None:
        table.plan = Plan(table)
    made: Plan = table.plan
    return made
