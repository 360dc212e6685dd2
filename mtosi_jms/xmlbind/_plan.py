"""The plans of the decoder: the table of a class, compiled once into dictionaries from tags to slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

from lxml import etree

from mtosi_jms.errors import EncodeError
from mtosi_jms.namespaces import XML, XMLNS, XSI, clark, split_clark
from mtosi_jms.xmlbind._canonical import declaration
from mtosi_jms.xmlbind._objects import XmlObject
from mtosi_jms.xmlbind._registry import known_prefix, qualified
from mtosi_jms.xmlbind._table import RAW, ClassTable, Field
from mtosi_jms.xmlbind._values import Anchor, Extras, Kept, Leaf, RawXml

STRING: Final = 0
LEAF: Final = 1
OBJECT: Final = 2
KEEP: Final = 3
ANY: Final = 4


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
        able: whether the content is a sequence of known elements, so that the fast path can read it. The class may also
            have a wildcard: its elements are unknown to the fast path, so objects with such elements are read by the
            slow path. Every resource has a wildcard for the ITU's states, which hardly any document uses.
        fast: for the fast path, by Clark name: field, code, position, the position that the next element must exceed
            (for a list one less than its own), target. None until the class is first read by it.
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
        self.interleaved = table.grammar is not None and table.grammar.interleaved
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
        self.able = self._is_plain()
        self.fast: dict[Any, tuple[str, int, int, int, Any]] | None = None
        self._free_attributes = tuple(
            tuple(Wildcard("", admitted, "lax", None, target=target) for admitted in constraints)
            for target, constraints in table.attribute_wildcards
        )

    def _is_plain(self) -> bool:
        free = {wild.name for wild in self.wildcards}
        counted = any(name not in free for name, _, _ in self.bounded)
        known = bool(self.slots) or not free
        return self.ordered and known and not counted and self.mixed is None and self.text is None

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
    kind, target = kind_of(field)
    return Slot(field.name, kind, field.many, order, target, field)


def kind_of(field: Field) -> tuple[int, Any]:
    """Return the kind of a field, and its SimpleType or ClassTable."""
    if field.type is RAW:
        return KEEP, None
    simple = field.simple()
    if simple is not None:
        return (STRING if simple.plain else LEAF), simple
    return OBJECT, field.table()


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


def plan_of(table: ClassTable) -> Plan:
    """Return the compiled plan of a table; it is made at first use."""
    if table.plan is None:
        table.plan = Plan(table)
    made: Plan = table.plan
    return made


_MOST_CACHED: Final = 256
_declarations: dict[tuple[frozenset[WritePlan], frozenset[str], frozenset[str]], str] = {}
"""A cache of declarations, by the classes and the namespaces that need them."""


class Names:
    """The namespaces that a text needs.

    Attributes:
        namespaces: namespaces of single names.
        plans: the plans of the written classes; the namespaces of all their names are needed.
    """

    def __init__(self) -> None:
        self.namespaces: set[str] = set()
        self.plans: set[WritePlan] = set()
        self._prefixes: dict[str, str] = {}

    def declarations(self, but: frozenset[str] = frozenset()) -> str:
        """Return `xmlns:` attributes for the namespaces, in the order of their prefixes."""
        key = (frozenset(self.plans), frozenset(self.namespaces), but)
        text = _declarations.get(key)
        if text is None:
            needed = self.namespaces.union(*(plan.namespaces for plan in self.plans)) - but - {XML, ""}
            pairs = sorted((self._prefix(namespace), namespace) for namespace in needed)
            text = "".join(declaration(prefix, namespace) for prefix, namespace in pairs)
            if not self._prefixes:
                if len(_declarations) >= _MOST_CACHED:
                    _declarations.clear()
                _declarations[key] = text
        return text

    def _prefix(self, namespace: str) -> str:
        """Return the prefix of a namespace: that of the process, otherwise one for this text only.

        Namespaces that are in no schema come from peers. If the process remembered them, peers could fill its memory.
        """
        prefix = known_prefix(namespace) or self._prefixes.get(namespace)
        if prefix is None:
            prefix = self._prefixes[namespace] = f"_{len(self._prefixes) + 1}"
        return prefix

    def qualified(self, tag: str) -> str:
        """Return a Clark name as it is written, and note its namespace. Raises EncodeError: it is not a name that a
        parser would accept."""
        namespace, local = _checked(tag)
        if not namespace:
            return local
        self.namespaces.add(namespace)
        return f"{self._prefix(namespace)}:{local}"


@lru_cache(1024)
def _checked(tag: Any) -> tuple[str, str]:
    """Return namespace and local name of a Clark name, after a check."""
    if not isinstance(tag, str):
        raise EncodeError(f"a name is text, not {type(tag).__name__}")
    try:
        etree.Element(tag)
    except ValueError:
        raise EncodeError(f"{tag[:60]!r} is not an XML name, or its namespace is not a URI") from None
    namespace, local = split_clark(tag)
    if namespace == XMLNS:
        raise EncodeError("namespaces are declared by the encoder alone")
    return namespace, local


_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\t\n\r")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Out(NamedTuple):
    """How a field is written, with finished tags.

    Attributes:
        kind: that of a slot, or ANY (wildcard).
        tag: name as it is written; empty for wildcards.
        target: SimpleType, ClassTable or Wildcard.
    """

    name: str
    kind: int
    many: bool
    required: bool
    tag: str
    start: str
    end: str
    target: Any
    field: Field


class WritePlan:
    """The compiled table of one class, for writing.

    Attributes:
        text: the field of simple content; None if there is none.
        mixed: the name of the field of mixed content; None if there is none.
        barred: the name of such a field of a base class whose restriction allows no text; None if there is none.
    """

    def __init__(self, table: ClassTable) -> None:
        self.table = table
        self.reading: Plan = plan_of(table)
        wildcards = {wild.name: wild for wild in self.reading.wildcards}
        content = [item for item in table.fields if item.kind in ("element", "any")]
        self.outs = tuple(_out(replace(item, min=0) if table.drops(item) else item, wildcards) for item in content)
        self.by_name = {out.name: out for out in self.outs}
        self.attributes = tuple(_out(item) for item in table.fields if item.kind == "attribute")
        self.text = next((_out(item) for item in table.fields if item.kind == "text"), None)
        self.mixed = self.reading.mixed
        self.barred = next((item.name for item in table.fields if item.kind == "mixed" and table.drops(item)), None)
        self.get = _getter([out.name for out in self.outs])
        spaces = {item.namespace for item in table.fields if item.kind in ("element", "attribute") and item.namespace}
        self.namespaces = frozenset(spaces)


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda obj: (get(obj),)


def _out(field: Field, wildcards: dict[str, Wildcard] | None = None) -> Out:
    tag = qualified(field.namespace, field.local) if field.kind in ("element", "attribute") else ""
    kind, target = (ANY, (wildcards or {}).get(field.name)) if field.kind == "any" else kind_of(field)
    return Out(field.name, kind, field.many, field.min > 0, tag, f"<{tag}>", f"</{tag}>", target, field)


def write_plan(table: ClassTable) -> WritePlan:
    if table.writing is None:
        table.writing = WritePlan(table)
    made: WritePlan = table.writing
    return made


def escape_text(text: str) -> str:
    """Return escaped character data."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    if "\r" in text:
        text = text.replace("\r", "&#13;")
    return text


def escape_attribute(text: str) -> str:
    text = escape_text(text)
    return text.replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def has_forbidden(data: bytes) -> bool:
    if len(data.translate(None, _CONTROLS)) != len(data):
        return True
    return 0xEF in data and (b"\xef\xbf\xbe" in data or b"\xef\xbf\xbf" in data)


def forbidden_character(text: str) -> str | None:
    """Return the first character that XML does not allow, in the form `U+0000`; None if there is none."""
    match = _FORBIDDEN.search(text)
    return f"U+{ord(match.group()):04X}" if match else None


def forbidden_place(value: Any, path: str = "") -> str | None:
    """Return the path of the first text in an object, list or text with a character that XML forbids; else None."""
    if isinstance(value, str):
        return path if _FORBIDDEN.search(value) else None
    if isinstance(value, (list, tuple)):
        places = (forbidden_place(item, f"{path}[{index}]") for index, item in enumerate(value))
    elif isinstance(value, XmlObject):
        names = [field.name for field in value.__xml__.fields]
        places = (forbidden_place(getattr(value, name), f"{path}.{name}" if path else name) for name in names)
    else:
        return None
    return next((place for place in places if place is not None), None)


class Between:
    """The elements and texts that were kept between the values of an object, by their places."""

    def __init__(self, extras: Extras) -> None:
        self._texts = dict(extras.texts)
        self._kept: dict[Anchor, list[Kept]] = {}
        for item in extras.elements:
            self._kept.setdefault(item.after, []).append(item)

    def after(self, anchor: Anchor) -> Iterator[str]:
        """Yield the pieces at a place; each piece is yielded once."""
        if text := self._texts.pop(anchor, ""):
            yield escape_text(text)
        for item in self._kept.pop(anchor, ()):
            yield item.xml.xml.decode("utf-8") + escape_text(item.tail)

    def rest(self) -> Iterator[str]:
        """Yield the pieces whose places no longer exist."""
        for anchor in [*self._texts, *self._kept]:
            yield from self.after(anchor)


def is_text(value: Any) -> bool:
    """Whether a value is text, with characters that XML allows only."""
    return isinstance(value, str) and _FORBIDDEN.search(value) is None


def extras_of(obj: XmlObject) -> Extras | None:
    """Return the extras of an object after a check, because the program may have changed them. Raises EncodeError: the
    extras cannot be written."""
    extras = obj.extras
    if extras is None:
        return None
    if not isinstance(extras, Extras):
        raise EncodeError(f"Extras are needed, not {type(extras).__name__}", "extras")
    for name, fits in _FITTING.items():
        if not fits(getattr(extras, name)):
            raise EncodeError(f"not what {name} of Extras may hold, or a character that XML does not allow", "extras")
    return extras


def _is_kept(item: Any) -> bool:
    if not isinstance(item, Kept):
        return False
    xml: Any = item.xml
    return isinstance(xml, RawXml) and is_text(item.tail) and _is_anchor(item.after)


def _is_anchor(anchor: Any) -> bool:
    return anchor is None or (isinstance(anchor, tuple) and list(map(type, anchor)) == [str, int])


def _is_held(pair: Any) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)


def _is_leaf(leaf: Any) -> bool:
    if not isinstance(leaf, Leaf) or not is_text(leaf.text):
        return False
    pairs: Any = leaf.attributes
    return isinstance(pairs, (list, tuple)) and all(map(_is_pair, pairs))


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, (list, tuple)) and len(pair) == 2 and is_text(pair[0])


_FITTING: Final[dict[str, Callable[[Any], bool]]] = {
    "elements": lambda value: isinstance(value, (list, tuple)) and all(map(_is_kept, value)),
    "attributes": lambda value: isinstance(value, Mapping),
    "leaves": lambda value: isinstance(value, Mapping) and all(map(_is_leaf, value.values())),
    "order": lambda value: isinstance(value, (list, tuple)) and all(map(is_text, value)),
    "held": lambda value: isinstance(value, (list, tuple)) and all(map(_is_held, value)),
    "texts": lambda value: isinstance(value, Mapping) and all(map(is_text, value.values())),
    "excused": lambda value: isinstance(value, AbstractSet),
    "element": lambda value: isinstance(value, str),
}
"""Checks of the parts of `Extras`; names and values of attributes are checked when they are written."""


def is_excused(obj: XmlObject, reason: str) -> bool:
    """Whether an object was read with a fault and may be written with it."""
    extras = extras_of(obj)
    return extras is not None and reason in extras.excused


def check_list(out: Out, value: Any, *, excused: bool = False) -> None:
    """Check that a value is a list with a number of items that its field allows. Raises EncodeError: it is not."""
    if not isinstance(value, (list, tuple)):
        raise EncodeError(f"a list is needed, not {type(value).__name__}", out.name)
    least, most = out.field.min, out.field.max
    if (len(value) < least or (most is not None and len(value) > most)) and not excused:
        raise EncodeError(f"{len(value)} where {least} to {'many' if most is None else most} are needed", out.name)
