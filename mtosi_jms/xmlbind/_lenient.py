"""The slow path of reading: one object of which something has to be kept, reported, or looked at more closely."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from lxml import etree

from mtosi_jms.masking import MASK
from mtosi_jms.namespaces import XSI, split_clark
from mtosi_jms.xmlbind.issues import shown
from mtosi_jms.xmlbind.plan import OBJECT, STRING, Plan, Slot, Wildcard
from mtosi_jms.xmlbind.registry import XSI_NIL, find_element
from mtosi_jms.xmlbind.simpletypes import QNameType, SimpleType
from mtosi_jms.xmlbind.values import BLANKS, Anchor, Extras, Kept, Leaf, Nil

if TYPE_CHECKING:
    from mtosi_jms.xmlbind.decoder import Reader

_XSI_PREFIX: Final = f"{{{XSI}}}"
_MISSING: Final = object()


class Keeper:
    """Reads one element whose class is settled.

    Attributes:
        values: what was bound, by field.
        kept: what else there was, None where there was nothing.
    """

    __slots__ = ("_before", "_last", "_order", "element", "kept", "plan", "reader", "values")

    def __init__(self, element: etree._Element, plan: Plan, reader: Reader) -> None:
        self.element = element
        self.plan = plan
        self.reader = reader
        self.values: dict[str, Any] = {}
        self.kept: Extras | None = None
        self._before = ""
        self._last = -1
        self._order: list[str] = []

    @property
    def extras(self) -> Extras:
        """What is kept, made at first need."""
        if self.kept is None:
            self.kept = Extras()
        return self.kept

    def read(self, attributes: Iterable[tuple[str, str]]) -> Any:
        """The object.

        Args:
            attributes: those of the element that have to be bound or kept.
        """
        self._attributes(attributes)
        if self.plan.text is not None:
            self._simple_content(self.plan.text)
        elif self.plan.mixed is not None:
            self._mixed_content(self.plan.mixed)
        else:
            self._children()
            self._check_content()
        for name in self.plan.required:
            if name not in self.values:
                self._absent(name)
        return self.plan.cls(extras=self.kept, **self.values)

    def begin(self, attributes: Iterable[tuple[str, str]]) -> None:
        """Read the attributes of an element whose children come one by one, by `take` and `give`."""
        self._attributes(attributes)

    def take(self, child: etree._Element) -> None:
        """Read one child that the class has a field for."""
        slot = self.plan.slots[str(child.tag)]
        if self._in_place(child, slot):
            self._bind(child, slot)

    def give(self, child: etree._Element, value: Any) -> None:
        """Take the value of a child that was read already."""
        slot = self.plan.slots[str(child.tag)]
        if self._in_place(child, slot):
            self._put(slot.name, value, many=slot.many)

    def so_far(self) -> Any:
        """The object with what was read of it until now: what is missing is None and not reported."""
        lacking = {name: None for name in self.plan.required if name not in self.values and name not in self.plan.lists}
        return self.plan.cls(extras=copy.deepcopy(self.kept), **self.values, **lacking)

    def _add(self, rule: str, message: str, element: etree._Element | None = None) -> None:
        self.reader.issues.add(rule, message, self.element if element is None else element)

    def _attributes(self, attributes: Iterable[tuple[str, str]]) -> None:
        for tag, text in attributes:
            known = self.plan.attributes.get(tag)
            if known is None:
                namespace, local = split_clark(tag)
                if namespace != XSI and not self.plan.admits_attribute(namespace):
                    self._add("unknown-attribute", f"unknown attribute {local} is kept")
                self.extras.attributes[tag] = text
                continue
            value, exact = self._convert(known.target, text, self.element, f"attribute {known.field.local}")
            if value is _MISSING:
                self.extras.attributes[tag] = text
                continue
            self.values[known.name] = value
            if not exact:
                self.extras.leaves[known.name, 0] = Leaf(value, text)

    def _simple_content(self, slot: Slot) -> None:
        first = text = self.element.text or ""
        for child in self.element:
            self._add("unknown-element", f"unknown element {split_clark(str(child.tag))[1]} is kept as XML", child)
            self.extras.elements.append(Kept(self.reader.kept(child), None, child.tail or ""))
            text += child.tail or ""
        value, exact = self._convert(slot.target, text, self.element, "content")
        if value is _MISSING:
            self.extras.texts[None] = first
            return
        self.values[slot.name] = value
        if not exact or first != text:
            self.extras.leaves[slot.name, 0] = Leaf(value, first)

    def _mixed_content(self, name: str) -> None:
        content: list[Any] = [self.element.text] if self.element.text else []
        for child in self.element:
            content.append(self.reader.free(child, self.plan.table.module.root))
            if child.tail:
                content.append(child.tail)
        self.values[name] = content

    def _children(self) -> None:
        slots = self.plan.slots
        previous: etree._Element | None = None
        tail = self.element.text
        for child in self.element:
            if tail is not None and tail.strip(BLANKS):
                self._stray_text(tail, previous)
            tail = child.tail
            previous = child
            slot = slots.get(child.tag)
            if slot is None:
                self._foreign(child)
            elif self._in_place(child, slot):
                self._bind(child, slot)
        if tail is not None and tail.strip(BLANKS):
            self._stray_text(tail, previous)

    def _bind(self, child: etree._Element, slot: Slot) -> None:
        name, kind, many, _, target, _ = slot
        value: Any = None
        if kind < OBJECT and not child.keys() and not len(child):
            value = (child.text or "") if kind == STRING else target.known.get(child.text)
        if value is None:
            value = self.reader.child(child, slot) if kind >= OBJECT else self._leaf(child, slot)
            if value is None:
                self._keep(child)
                return
            if isinstance(value, Nil) and not slot.field.nillable:
                self._excuse(name)
        self._put(name, value, many=many)

    def _put(self, name: str, value: Any, *, many: bool) -> None:
        if many:
            self.values.setdefault(name, []).append(value)
        else:
            self.values[name] = value
        self._before = name
        self._order.append(name)

    def _in_place(self, child: etree._Element, slot: Slot) -> bool:
        """Whether a child may be bound where it stands; if not it was kept as XML."""
        if not slot.many and slot.name in self.values:
            self._add("repeated", "more than one where one is allowed: kept as XML", child)
            self._keep(child)
            return False
        in_order = slot.order > self._last or (slot.many and slot.order == self._last)
        if self.plan.ordered and not in_order:
            self._add("order", "out of the schema's order: written in its place", child)
        self._last = slot.order
        return True

    def _leaf(self, child: etree._Element, slot: Slot) -> Any:
        """The value of a simple element: converted, nil, empty, oddly written; None if it can only be kept as XML."""
        nil = child.get(XSI_NIL)
        if nil is not None and nil.strip() in ("true", "1"):
            value = self.reader.nil(child, nillable=slot.field.nillable)
            return value if isinstance(value, Nil) else None
        if nil is not None:
            self.reader.not_nil(child, nil, nillable=slot.field.nillable)
        if len(child):
            self._add("bad-value", "elements where a simple value is expected: kept as XML", child)
            return None
        text = child.text or ""
        value, exact = self._convert(slot.target, text, child, "value")
        if value is _MISSING:
            return None
        attributes = tuple(self.reader.attributes_of(child))
        unknown = [split_clark(tag)[1] for tag, _ in attributes if not tag.startswith(_XSI_PREFIX)]
        if unknown:
            self._add("unknown-attribute", f"unknown attribute {', '.join(unknown)} is kept", child)
        if not exact or attributes:
            done = self.values.get(slot.name)
            self.extras.leaves[slot.name, len(done) if isinstance(done, list) else 0] = Leaf(value, text, attributes)
        return value

    def _convert(self, kind: SimpleType, text: str, element: etree._Element, what: str) -> tuple[Any, bool]:
        """The value of a text, and whether we would write it the same way; _MISSING where none can be made."""
        if isinstance(kind, QNameType):
            return self._qname(kind, text, element, what)
        try:
            return kind.exact(text), True
        except ValueError:
            pass
        try:
            value, problem = kind.lenient(text)
        except ValueError as error:
            self._bad_value(what, text, f"{error}: kept as it came", element)
            return _MISSING, False
        if problem:
            self._bad_value(what, text, problem, element)
        return value, False

    def _bad_value(self, what: str, text: str, problem: str, element: etree._Element) -> None:
        told = shown(text, element, what)
        self._add("bad-value", f"{what} {told}: {'it does not fit its type' if told == MASK else problem}", element)

    def _qname(self, kind: QNameType, text: str, element: etree._Element, what: str) -> tuple[Any, bool]:
        name = self.reader.qname(text, element)
        if name is None:
            self._bad_value(what, text, "its prefix is not declared: kept as it came", element)
            return _MISSING, False
        problem = kind.lenient(text)[1]
        if problem:
            self._bad_value(what, text, problem, element)
        return name, problem is None

    def _stray_text(self, text: str, previous: etree._Element | None) -> None:
        """Character data between elements."""
        self._add("stray-text", f"text {shown(text.strip(BLANKS), self.element)} between elements is kept")
        text = text.strip(BLANKS)
        kept = self.extras.elements
        anchor = self._anchor()
        if kept and kept[-1].after == anchor and previous is not None and previous.tag == kept[-1].xml.tag:
            kept[-1] = Kept(kept[-1].xml, anchor, text)
        else:
            self.extras.texts[anchor] = self.extras.texts.get(anchor, "") + text

    def _foreign(self, child: etree._Element) -> None:
        """A child without a slot: a wildcard's, a late member of a substitution group, or unknown."""
        tag = str(child.tag)
        namespace, local = split_clark(tag)
        wildcards = [wild for wild in self.plan.wildcards if wild.admits(namespace)]
        if wildcards:
            self._wild(child, wildcards)
            return
        cls = find_element(tag, self.plan.table.module.root)
        head = self.plan.head_for(cls) if cls is not None else None
        if cls is not None and head is not None:
            late = head._replace(target=cls.__xml__)
            if self._in_place(child, late):
                self._bind(child, late)
            return
        self._add("unknown-element", f"unknown element {local} is kept as XML", child)
        self._keep(child)

    def _wild(self, child: etree._Element, wildcards: list[Wildcard]) -> None:
        free = [wild for wild in wildcards if wild.limit is None or len(self.values.get(wild.name, ())) < wild.limit]
        if not free:
            self._add("repeated", "more elements than the wildcard takes: kept as XML", child)
            self._keep(child)
            return
        wild = next((wild for wild in free if wild.order >= self._last), free[0])
        if self.plan.ordered and wild.order < self._last:
            self._add("order", "out of the schema's order: written in its place", child)
        self._last = wild.order
        value = self.reader.free(child, self.plan.table.module.root, skip=wild.process == "skip")
        self._put(wild.name, value, many=True)

    def _keep(self, child: etree._Element) -> None:
        """Keep a child as XML, after the value that was bound before it."""
        self.extras.elements.append(Kept(self.reader.kept(child), self._anchor()))

    def _anchor(self) -> Anchor:
        if not self._before:
            return None
        held = self.values[self._before]
        many = isinstance(held, list) and self._before in self.plan.lists
        return self._before, len(held) - 1 if many else 0

    def _excuse(self, *reasons: str) -> None:
        self.extras.excused |= set(reasons)

    def _kept_as(self, name: str) -> int:
        """How many elements of a field were kept as XML."""
        slots = self.plan.slots
        kept = self.kept.elements if self.kept else ()
        return sum(1 for item in kept if (slot := slots.get(item.xml.tag)) is not None and slot.name == name)

    def _absent(self, name: str) -> None:
        """A required field that the document does not have, or not in a form that can be read."""
        field = self.plan.table.field(name)
        if not field.many:
            self.values[name] = None
        self._excuse(name)
        unreadable = field.kind == "attribute" and self.kept and field.tag in self.kept.attributes
        maybe = field.head and self.kept and self.kept.elements  # an unknown element may substitute for this one
        if field.kind == "text" or unreadable or maybe or self._kept_as(name):
            return  # present: what is wrong with it was reported
        if field.kind == "any":
            self._add("missing-element", "an element that the wildcard requires is missing")
            return
        what = "attribute" if field.kind == "attribute" else "element"
        self._add(f"missing-{what}", f"required {what} {field.local} is missing")

    def _check_content(self) -> None:
        """Occurrence of lists, and the content model where it is more than a sequence."""
        for name, least, most in self.plan.bounded:
            held = len(self.values.get(name, ()))
            count = held + self._kept_as(name)
            if held and (held < least or (most is not None and held > most)):
                self._excuse(name)
            if most is not None and count > most:
                self._add("repeated", f"{count} of {self.plan.table.field(name).local or 'any'}, {most} are allowed")
            elif 0 < count < least:
                message = f"{count} of {self.plan.table.field(name).local or 'any'}, {least} are required"
                self._add("missing-element", message)
        if self.plan.grammar is not None:
            self._check_model()

    def _check_model(self) -> None:
        grammar = self.plan.grammar
        if grammar is None:
            return
        counts = self.plan.counts(self.values)
        problem = grammar.problem(counts)
        if problem is not None:
            self._excuse(problem)
            self.extras.order = tuple(self._order)
            whole = {name: count for name in self.plan.content if (count := counts.get(name, 0) + self._kept_as(name))}
            missing = any(name not in whole for name in self.plan.required if name in self.plan.content)
            if not missing and grammar.problem(whole) is not None:
                self._add("content", problem)
        elif not grammar.allows(self._order):
            self._add("order", "the elements are not in the schema's order: written in it")
        elif self.plan.interleaved and self._order != grammar.order(counts):
            self.extras.order = tuple(self._order)
