"""From an lxml element to an object: one dictionary look-up a child, the constructor called once with everything.

The good path raises nothing and asks nothing twice. Whatever does not fit leaves it for the functions below, which
keep it (as a value where one can be made, as XML otherwise) and add a warning with path and line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from lxml import etree

from mtosi_jms.namespaces import XSI, clark, split_clark
from mtosi_jms.xmlbind.issues import Issues
from mtosi_jms.xmlbind.plan import KEEP, LEAF, OBJECT, STRING, Plan, Slot, Wildcard, plan_of
from mtosi_jms.xmlbind.registry import XSI_NIL, XSI_TYPE, find_element, find_type
from mtosi_jms.xmlbind.simpletypes import SimpleType
from mtosi_jms.xmlbind.table import ClassTable, Field
from mtosi_jms.xmlbind.values import NIL, Extras, Kept, Leaf, Nil, RawXml, XmlObject

_XSI_PREFIX: Final = f"{{{XSI}}}"
_MISSING: Final = object()


def decode_root(
    element: etree._Element, cls: type[XmlObject] | None, issues: Issues, package: str | None = None
) -> Any:
    """The object of an element that stands for itself.

    Args:
        element: the root.
        cls: its class; None to find it by the element's name, `RawXml` if no registered package knows it.
        issues: takes the warnings.
        package: package to look in before all others.

    Raises:
        DecodeError: in strict mode, at the first warning.
    """
    if cls is None:
        cls = find_element(str(element.tag), package)
        if cls is None:
            return RawXml.from_element(element)
    table = cls.__xml__
    elements = element.iter(etree.Element)
    next(elements)
    if element.keys() or table.abstract:
        return _with_attributes(element, elements, table, issues, nillable=False)
    return _decode_object(element, elements, table, issues)


def _decode_object(
    element: etree._Element,
    elements: Iterator[etree._Element],
    table: ClassTable,
    issues: Issues,
    attributes: Iterable[tuple[str, str]] = (),
) -> Any:
    """The object of an element whose class is settled.

    Args:
        element: the element.
        elements: all elements that follow it in the document; those inside it are taken from here.
        table: the table of its class.
        issues: takes the warnings.
        attributes: the element's attributes, without xsi:nil and without an xsi:type that was obeyed.
    """
    plan: Plan = table.plan or plan_of(table)
    values: dict[str, Any] = {}
    keeper: _Keeper | None = None
    if attributes:
        keeper = _Keeper(element, elements, plan, values, issues)
        keeper.attributes(attributes)
    if plan.text is not None:
        known = plan.text.target.known.get(element.text)
        if known is not None and not len(element):
            values[plan.text.name] = known
        else:
            keeper = keeper or _Keeper(element, elements, plan, values, issues)
            keeper.simple_content(plan.text)
    elif plan.mixed is not None:
        values[plan.mixed] = _mixed_content(element, plan, issues)
        _skip(element, elements)
    else:
        keeper = _children(element, elements, plan, values, keeper, issues)
    for name in plan.required:
        if name not in values:
            keeper = keeper or _Keeper(element, elements, plan, values, issues)
            keeper.absent(name)
    if keeper is None or keeper.kept is None:
        return plan.cls(**values)
    return plan.cls(extras=keeper.kept, **values)


# One loop on purpose: every call in it would be paid for each element of an inventory. It takes its children from one
# iterator over the whole document, which costs a fifth of an iterator for each element.
def _children(  # noqa: C901, PLR0912, PLR0915
    element: etree._Element,
    elements: Iterator[etree._Element],
    plan: Plan,
    values: dict[str, Any],
    keeper: _Keeper | None,
    issues: Issues,
) -> _Keeper | None:
    """Bind the children of an element; returns the keeper if anything had to be kept."""
    get = plan.slots.get
    last = -1
    name = ""
    seen: list[str] = []
    text = element.text
    if text is not None and not text.isspace():
        keeper = keeper or _Keeper(element, elements, plan, values, issues)
        keeper.stray_text(text)
    for child in islice(elements, len(element)):
        tail = child.tail
        if tail is not None and not tail.isspace():
            keeper = keeper or _Keeper(element, elements, plan, values, issues)
            keeper.stray_text(tail)
        slot = get(child.tag)
        if slot is None:
            keeper = keeper or _Keeper(element, elements, plan, values, issues)
            name = keeper.foreign(child, name)
            continue
        before = name
        name, kind, many, order, target, _ = slot
        if order <= last and not (many and order == last):
            keeper = keeper or _Keeper(element, elements, plan, values, issues)
            if not keeper.late(child, slot, before):
                continue
        last = order
        if kind == OBJECT and not child.keys() and not target.abstract:
            value = _decode_object(child, elements, target, issues)
        else:
            value = child.text
            if kind == STRING and value is not None and not child.keys() and not len(child):
                pass
            elif kind == LEAF and (leaf := target.known.get(value)) is not None and not child.keys() and not len(child):
                value = leaf
            else:
                keeper = keeper or _Keeper(element, elements, plan, values, issues)
                value = keeper.read(child, slot, before)
                if value is _MISSING:
                    name = before
                    continue
        if not many:
            values[name] = value
        elif name in values:
            values[name].append(value)
        else:
            values[name] = [value]
        if plan.interleaved:
            seen.append(name)
    if plan.interleaved and seen != plan.default_order(values):
        keeper = keeper or _Keeper(element, elements, plan, values, issues)
        keeper.extras.order = tuple(seen)
    return keeper


def _skip(element: etree._Element, elements: Iterator[etree._Element]) -> None:
    """Take from the iterator what lies inside an element that was read in another way."""
    if len(element):
        inside = sum(1 for _ in element.iter(etree.Element)) - 1
        deque(islice(elements, inside), maxlen=0)


def _with_attributes(
    element: etree._Element,
    elements: Iterator[etree._Element],
    table: ClassTable,
    issues: Issues,
    *,
    nillable: bool,
) -> Any:
    """The object of an element with attributes: nil, a type of its own, or plain attributes."""
    attributes = dict(element.items())
    if attributes.get(XSI_NIL, "").strip() in ("true", "1"):
        _skip(element, elements)
        return _nil(element, attributes, issues, nillable)
    if attributes.get(XSI_NIL, "").strip() in ("false", "0"):
        issues.add("nil", "xsi:nil is false: the same as absent", element)
        attributes.pop(XSI_NIL)
    type_text = attributes.get(XSI_TYPE)
    if type_text is not None:
        derived = _typed(element, type_text, table, issues)
        if derived is not None and derived is not table:
            table = derived
            attributes.pop(XSI_TYPE)
    if table.abstract:
        issues.add("abstract", f"{table.type_name or table.element} is abstract", element)
    return _decode_object(element, elements, table, issues, attributes.items())


def _nil(element: etree._Element, attributes: dict[str, str], issues: Issues, nillable: bool) -> Any:
    attributes.pop(XSI_NIL)
    if not nillable:
        issues.add("nil", "xsi:nil on an element that is not nillable", element)
    if len(element) or (element.text or "").strip():
        issues.add("nil", "a nil element with content: kept as XML", element)
        return RawXml.from_element(element)
    return Nil(attributes) if attributes else NIL


def _typed(element: etree._Element, text: str, table: ClassTable, issues: Issues) -> ClassTable | None:
    """The table that an xsi:type names, None where it cannot be obeyed."""
    prefix, _, local = text.strip().rpartition(":")
    namespace = element.nsmap.get(prefix or None)
    if prefix and namespace is None:
        issues.add("xsi-type", f"xsi:type {text!r} has an undeclared prefix", element)
        return None
    found = find_type(clark(namespace or "", local), table.module.root)
    if found is None or not hasattr(found, "__xml__"):
        issues.add("xsi-type", f"xsi:type {text!r} names no known type", element)
        return None
    derived: ClassTable = found.__xml__
    if not derived.is_a(table) and derived.type_qname != table.type_qname:
        issues.add("xsi-type", f"xsi:type {text!r} is not derived from {table.type_qname}", element)
        return None
    return derived if derived.is_a(table) else None


def _mixed_content(element: etree._Element, plan: Plan, issues: Issues) -> list[Any]:
    content: list[Any] = [element.text] if element.text else []
    for child in element:
        cls = find_element(str(child.tag), plan.table.module.root)
        content.append(decode_root(child, cls, issues) if cls else RawXml.from_element(child))
        if child.tail:
            content.append(child.tail)
    return content


class _Keeper:
    """The slow path of one object: what does not fit is kept and reported here."""

    __slots__ = ("element", "elements", "issues", "kept", "plan", "values")

    def __init__(
        self,
        element: etree._Element,
        elements: Iterator[etree._Element],
        plan: Plan,
        values: dict[str, Any],
        issues: Issues,
    ) -> None:
        self.element = element
        self.elements = elements
        self.plan = plan
        self.values = values
        self.issues = issues
        self.kept: Extras | None = None

    @property
    def extras(self) -> Extras:
        """What is kept, made at first need."""
        if self.kept is None:
            self.kept = Extras()
        return self.kept

    def attributes(self, attributes: Iterable[tuple[str, str]]) -> None:
        """Bind the attributes that the class knows and keep the others."""
        for tag, text in attributes:
            known = self.plan.attributes.get(tag)
            if known is None:
                if not tag.startswith(_XSI_PREFIX) and not self.plan.any_attribute:
                    message = f"unknown attribute {split_clark(tag)[1]} is kept"
                    self.issues.add("unknown-attribute", message, self.element)
                self.extras.attributes[tag] = text
                continue
            value, exact = self.simple(known.target, text, self.element, f"attribute {known.field.local}")
            if value is _MISSING:
                self.extras.attributes[tag] = text
                continue
            self.values[known.name] = value
            if not exact:
                self.extras.leaves[known.name, 0] = Leaf(value, text)

    def simple_content(self, slot: Slot) -> None:
        """Bind the text of an element whose content is simple."""
        text = self.element.text or ""
        for child in islice(self.elements, len(self.element)):
            text += child.tail or ""
            self.foreign(child, "")
        value, exact = self.simple(slot.target, text, self.element, "content")
        if value is _MISSING:
            self.extras.text = text
            return
        self.values[slot.name] = value
        if not exact:
            self.extras.leaves[slot.name, 0] = Leaf(value, text)

    def read(self, child: etree._Element, slot: Slot, before: str) -> Any:
        """The value of a child that is not on the fast path; _MISSING if it was kept as XML instead."""
        if slot.kind == KEEP:
            _skip(child, self.elements)
            return RawXml.from_element(child)
        if slot.kind == OBJECT:
            value = _with_attributes(child, self.elements, slot.target, self.issues, nillable=slot.field.nillable)
            return self.keep(child, before) if type(value) is RawXml else value
        _skip(child, self.elements)
        return self._leaf(child, slot, before)

    def _leaf(self, child: etree._Element, slot: Slot, before: str) -> Any:
        """The value of a simple element: converted, nil, empty, oddly written, wrong, or with too much in it."""
        if child.get(XSI_NIL, "").strip() in ("true", "1"):
            value = _nil(child, dict(child.items()), self.issues, slot.field.nillable)
            return value if isinstance(value, Nil) else self.keep(child, before)
        if len(child):
            self.issues.add("bad-value", "elements where a simple value is expected: kept as XML", child)
            return self.keep(child, before)
        text = child.text or ""
        value, exact = self.simple(slot.target, text, child, "value")
        if value is _MISSING:
            return self.keep(child, before)
        attributes = tuple(child.items())
        unknown = [split_clark(tag)[1] for tag, _ in attributes if not tag.startswith(_XSI_PREFIX)]
        if unknown:
            self.issues.add("unknown-attribute", f"unknown attribute {', '.join(unknown)} is kept", child)
        if not exact or attributes:
            done = self.values.get(slot.name)
            self.extras.leaves[slot.name, len(done) if isinstance(done, list) else 0] = Leaf(value, text, attributes)
        return value

    def simple(self, kind: SimpleType, text: str, element: etree._Element, what: str) -> tuple[Any, bool]:
        """The value of a text, and whether we would write it the same way; _MISSING where none can be made."""
        try:
            return kind.exact(text), True
        except ValueError:
            pass
        try:
            value, problem = kind.lenient(text)
        except (ValueError, OverflowError, ArithmeticError) as error:
            self.issues.add("bad-value", f"{what} {text[:60]!r}: {error}: kept as it came", element)
            return _MISSING, False
        if problem:
            self.issues.add("bad-value", f"{what} {text[:60]!r}: {problem}", element)
        return value, False

    def stray_text(self, text: str) -> None:
        """Character data between elements."""
        self.issues.add("stray-text", f"text {text.strip()[:60]!r} between elements is kept", self.element)
        self.extras.text += text.strip()

    def foreign(self, child: etree._Element, before: str) -> str:
        """A child without a slot: a wildcard's, a late member of a substitution group, or unknown.

        Returns:
            The name of the field that was filled last.
        """
        _skip(child, self.elements)
        tag = str(child.tag)
        root = self.plan.table.module.root
        for wild in self.plan.wildcards:
            if wild.admits(split_clark(tag)[0], self.plan.table.module.namespace):
                return self._wild(child, wild, before)
        cls = find_element(tag, root)
        head = self.plan.head_for(cls) if cls is not None else None
        if cls is not None and head is not None:
            value = decode_root(child, cls, self.issues)
            if head.many:
                self.values.setdefault(head.name, []).append(value)
            else:
                self.values[head.name] = value
            return head.name
        self.issues.add("unknown-element", f"unknown element {split_clark(tag)[1]} is kept as XML", child)
        self.keep(child, before)
        return before

    def _wild(self, child: etree._Element, wild: Wildcard, before: str) -> str:
        bucket = self.values.setdefault(wild.name, [])
        if wild.limit is not None and len(bucket) >= wild.limit:
            self.issues.add("repeated", "more elements than the wildcard takes: kept as XML", child)
            self.keep(child, before)
            return before
        cls = None if wild.process == "skip" else find_element(str(child.tag), self.plan.table.module.root)
        bucket.append(decode_root(child, cls, self.issues) if cls else RawXml.from_element(child))
        return wild.name

    def keep(self, child: etree._Element, before: str) -> Any:
        """Keep a child as XML, after the value that was bound before it."""
        after = None
        if before:
            held = self.values.get(before)
            after = (before, len(held) - 1 if isinstance(held, list) else 0)
        self.extras.elements.append(Kept(RawXml.from_element(child), after))
        return _MISSING

    def late(self, child: etree._Element, slot: Slot, before: str) -> bool:
        """Whether a child that comes late may be bound all the same; if not it is kept as XML."""
        if not slot.many and slot.name in self.values:
            self.issues.add("repeated", "more than one where one is allowed: kept as XML", child)
            _skip(child, self.elements)
            self.keep(child, before)
            return False
        if self.plan.ordered:
            self.issues.add("order", "out of the schema's order", child)
        return True

    def absent(self, name: str) -> None:
        """A required field that the document does not have."""
        field: Field = self.plan.table.field(name)
        self.values[name] = None
        if any(split_clark(kept.xml.tag)[1] == field.local for kept in (self.kept.elements if self.kept else ())):
            return  # present, but unreadable: that was reported
        if field.kind == "text":
            return
        what = "attribute" if field.kind == "attribute" else "element"
        self.issues.add(f"missing-{what}", f"required {what} {field.local} is missing", self.element)
