"""From an lxml element to an object: the fast reader first, the lenient reader for everything that it cannot read.

The lenient reader keeps content that does not fit the schema, as a value if possible, otherwise as XML. It reports each
departure as a warning with path and line.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import DecodeError, ForbiddenXmlError
from mtosi_jms.masking import MASK
from mtosi_jms.namespaces import XSD, XSI, clark, split_clark
from mtosi_jms.xmlbind._arrange import OUT_OF_ORDER, held
from mtosi_jms.xmlbind._canonical import Scopes, attributes_of
from mtosi_jms.xmlbind._fast import NOT_PLAIN, read_fast
from mtosi_jms.xmlbind._issues import Issues, shown
from mtosi_jms.xmlbind._objects import XmlObject, find_element, find_simple, find_type
from mtosi_jms.xmlbind._plan import KEEP, OBJECT, STRING, Plan, Slot, Wildcard, plan_of
from mtosi_jms.xmlbind._registry import XSI_NIL, XSI_TYPE
from mtosi_jms.xmlbind._simpletypes import ListType, SimpleType
from mtosi_jms.xmlbind._table import ClassTable
from mtosi_jms.xmlbind._values import BLANKS, NIL, Anchor, Extras, Kept, Leaf, Nil, RawXml

_HAS_ATTRIBUTES: Final = etree.XPath("boolean(descendant-or-self::*/@*)")
_ANY_TYPE: Final = clark(XSD, "anyType")
_PATIENCE: Final = 3
_RETRY: Final = 32
_YES: Final = ("true", "1")
_NO: Final = ("false", "0")


def decode_root(
    element: etree._Element,
    cls: type[XmlObject] | None,
    issues: Issues,
    package: str | None = None,
    scopes: Scopes | None = None,
) -> Any:
    """Return the object of a root element.

    Args:
        cls: its class; None to find it by the name of the element. If no registered package has it, the result is
            `RawXml`.
        package: package that takes precedence over all others.
        scopes: of the document, if more than one of its elements is read.

    Raises:
        DecodeError: in strict mode, at the first warning; in any mode if elements are nested too deep.
    """
    try:
        return Reader(issues, bool(_HAS_ATTRIBUTES(element)), scopes).root(element, cls, package)
    except RecursionError:
        raise DecodeError("nested too deep", source=issues.source, line=element.sourceline) from None


def without_comments(element: etree._Element) -> etree._Element:
    """Return an element without comments and processing instructions, as our own parser gives it. Raises
    ForbiddenXmlError: the element contains entity references."""
    if next(element.iter(etree.Entity, etree.Comment, etree.PI), None) is None:
        return element
    if next(element.iter(etree.Entity), None) is not None:
        raise ForbiddenXmlError("entity references are not allowed", line=element.sourceline)
    steps = [
        node.getparent().index(node) for node in (element, *element.iterancestors()) if node.getparent() is not None
    ]
    twin = copy.deepcopy(element.getroottree()).getroot()  # the whole tree: ancestors declare prefixes
    for step in reversed(steps):
        twin = twin[step]
    etree.strip_tags(twin, etree.Comment, etree.PI)
    return twin


class Reader:
    __slots__ = ("_failures", "attributed", "issues", "scopes")

    def __init__(self, issues: Issues, attributed: bool = True, scopes: Scopes | None = None) -> None:
        self.issues = issues
        self.attributed = attributed
        self.scopes = Scopes() if scopes is None else scopes
        self._failures: dict[Plan, int] = {}

    def root(self, element: etree._Element, cls: type[XmlObject] | None, package: str | None = None) -> Any:
        if cls is None:
            cls = find_element(str(element.tag), package)
            if cls is None:
                return self.kept(element)
        table: ClassTable = cls.__xml__
        value = self.object(element, table, nillable=table.nillable)
        return self._named(value, element) if table.element is not None else value

    def kept(self, element: etree._Element) -> RawXml:
        return RawXml.from_element(element, self.scopes)

    def _named(self, value: Any, element: etree._Element) -> Any:
        """Add the name of the element to the extras of an object whose class is that of an xsi:type."""
        if isinstance(value, XmlObject) and value.__xml__.element is None:
            value.extras = value.extras or Extras()
            value.extras.element = str(element.tag)
        return value

    def free(self, element: etree._Element, root: str, *, skip: bool = False) -> XmlObject | RawXml:
        """Return an element of a wildcard or of mixed content: an object if its name is known, first by the package
        `root`, otherwise XML."""
        cls = None if skip else find_element(str(element.tag), root)
        if cls is None:
            return self.kept(element)
        value = self.root(element, cls)
        return self.kept(element) if isinstance(value, Nil) else value

    def child(self, child: etree._Element, slot: Slot) -> Any:
        """Return the value of a child that is an object or stays XML; None if it can only be kept as XML."""
        if slot.kind == KEEP:
            return self.kept(child)
        member = child.tag != slot.field.tag
        value = self.object(child, slot.target, nillable=slot.field.nillable and not member, block=slot.field.block)
        if isinstance(value, RawXml) or (member and isinstance(value, Nil)):
            return None
        return self._named(value, child) if member else value

    def object(self, element: etree._Element, table: ClassTable, *, nillable: bool, block: tuple[str, ...] = ()) -> Any:
        """Return the object of an element whose declared class is known; a Nil or RawXml if it is nil."""
        if element.keys() or table.abstract:
            return self._with_attributes(element, table, nillable=nillable, block=block)
        return self._plain(element, table)

    def _plain(self, element: etree._Element, table: ClassTable) -> Any:
        plan = plan_of(table)
        failures = self._failures.get(plan, 0)
        # A peer whose objects are odd makes all of them odd. After some failures the fast path is only tried sometimes.
        if not plan.able or (failures >= _PATIENCE and failures % _RETRY):
            self._failures[plan] = failures + 1
            return self._simple(element, plan) or self.slowly(element, table)
        before = len(self.issues.found)
        elements = element.iter()
        next(elements)
        try:
            value = read_fast(element, elements, plan, self)
            if next(elements, None) is None:
                self._failures[plan] = 0
                return value
        except NOT_PLAIN:
            pass
        self._failures[plan] = failures + 1
        del self.issues.found[before:]
        return self.slowly(element, table)

    def _simple(self, element: etree._Element, plan: Plan) -> Any:
        """Return the object of an element with simple content if the value of its text is known; otherwise None."""
        slot = plan.text
        if slot is None or len(element) or len(plan.required) > 1:
            return None
        value: Any = (element.text or "") if slot.kind == STRING else slot.target.known.get(element.text)
        return plan.cls(**{slot.name: value}) if value is not None else None

    def slowly(self, element: etree._Element, table: ClassTable, attributes: Iterable[tuple[str, str]] = ()) -> Any:
        """Return the object of an element, read by the slow path, with its attributes but for an xsi:type that gave the
        class."""
        return Keeper(element, plan_of(table), self).read(attributes)

    def _with_attributes(
        self, element: etree._Element, table: ClassTable, *, nillable: bool, block: tuple[str, ...]
    ) -> Any:
        """Return the object of an element with attributes: xsi:nil, xsi:type, or others."""
        attributes = dict(attributes_of(element))
        if XSI_NIL in attributes:
            if attributes[XSI_NIL].strip() in _YES:
                return self.nil(element, nillable=nillable)
            self.not_nil(element, attributes[XSI_NIL], nillable=nillable)
        if XSI_TYPE in attributes:
            text = attributes[XSI_TYPE]
            derived = self.derived(element, text, table, block)
            if derived is not None:
                table = derived
                attributes.pop(XSI_TYPE)
            else:
                attributes[XSI_TYPE] = self.scopes.qname(text, element) or text
        if not table.abstract:
            return self.slowly(element, table, attributes.items()) if attributes else self._plain(element, table)
        self.issues.add("abstract", f"{table.type_name or table.element} is abstract", element)
        value = self.slowly(element, table, attributes.items())
        value.extras = value.extras or Extras()
        value.extras.excused |= {"abstract"}
        return value

    def nil(self, element: etree._Element, *, nillable: bool) -> Nil | RawXml:
        """Return the value of an element with xsi:nil; XML if it has content anyway."""
        if not nillable:
            self.issues.add("nil", "xsi:nil on an element that is not nillable", element)
        if len(element) or (element.text or "").strip(BLANKS):
            self.issues.add("nil", "a nil element with content: kept as XML", element)
            return self.kept(element)
        others = dict(self.attributes_of(element, but=XSI_NIL))
        text = str(element.get(XSI_NIL))
        return Nil(others, text) if others or text != "true" else NIL

    def not_nil(self, element: etree._Element, text: str, *, nillable: bool) -> None:
        """Report an xsi:nil with a value that is not a boolean, or on an element that is not nillable.

        It is kept as an attribute.
        """
        if text.strip() not in _NO:
            self.issues.add("bad-value", f"xsi:nil {shown(text, element)}: not a boolean", element)
        elif not nillable:
            self.issues.add("nil", "xsi:nil on an element that is not nillable", element)

    def attributes_of(self, element: etree._Element, but: str = "") -> Iterable[tuple[str, str]]:
        """Yield the attributes of an element; the value of an xsi:type becomes a Clark name."""
        for name, text in attributes_of(element):
            if name == XSI_TYPE:
                yield name, self.scopes.qname(text, element) or text
            elif name != but:
                yield name, text

    def derived(
        self, element: etree._Element, text: str, table: ClassTable, block: tuple[str, ...] = ()
    ) -> ClassTable | None:
        """Return the table that an xsi:type names; None if it names the declared type or cannot be used."""
        name = self.scopes.qname(text, element)
        derived, wrong = None, "is not a name, or has an undeclared prefix"
        if name is not None:
            derived, wrong = named_type(name, table, block)
        if wrong:
            self.issues.add("xsi-type", f"xsi:type {shown(text, element)} {wrong}", element)
        return derived


def named_type(name: str, table: ClassTable, block: tuple[str, ...]) -> tuple[ClassTable | None, str]:
    """Return the table of the type that an xsi:type names, and what is wrong with that: nothing if it is empty.

    Args:
        block: derivations that the field does not allow.

    Returns:
        No table for the declared type, for one that only checks the text, and for what cannot be used.
    """
    declared, root = table.declared, table.module.root
    if name == declared.type_qname and declared.type_name:
        return None, ""
    if name == _ANY_TYPE or (declared.takes_text and find_simple(name, root) is not None):
        return None, ""
    found = find_type(name, root)
    derived: ClassTable | None = getattr(found, "__xml__", None)
    if derived is None:
        return None, "names no known type"
    if not declared.admits(derived):
        return None, f"is not derived from {declared.type_qname}"
    return derived, "is of a derivation that is blocked" if table.blocks(derived, block) else ""


_XSI_PREFIX: Final = f"{{{XSI}}}"
_MISSING: Final = object()


class Keeper:
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
        if self.kept is None:
            self.kept = Extras()
        return self.kept

    def read(self, attributes: Iterable[tuple[str, str]]) -> Any:
        self.bind_attributes(attributes)
        if self.plan.text is not None:
            self._simple_content(self.plan.text)
            if self.kept is not None and XSI_TYPE in self.kept.attributes:
                text = self.element.text or self.plan.text.target.default
                self._check_type(self.kept.attributes[XSI_TYPE], text, self.element)
        elif self.plan.mixed is not None:
            self._mixed_content(self.plan.mixed)
        else:
            self._children()
            self._check_content()
        for name in self.plan.required:
            if name not in self.values:
                self._absent(name)
        for name in self.plan.dropped:
            self.values.setdefault(name, None)
        return self.plan.cls(extras=self.kept, **self.values)

    def take(self, child: etree._Element) -> None:
        slot = self.plan.slots[str(child.tag)]
        if self._in_place(child, slot):
            self._bind(child, slot)

    def give(self, child: etree._Element, value: Any) -> None:
        slot = self.plan.slots[str(child.tag)]
        if self._in_place(child, slot):
            self._put(slot.name, value, many=slot.many)

    def so_far(self) -> Any:
        """Return the object with what was read so far; missing fields are None and not reported."""
        needed = (*self.plan.required, *self.plan.dropped)
        lacking = {name: None for name in needed if name not in self.values and name not in self.plan.lists}
        return self.plan.cls(extras=copy.deepcopy(self.kept), **self.values, **lacking)

    def _add(self, rule: str, message: str, element: etree._Element | None = None) -> None:
        self.reader.issues.add(rule, message, self.element if element is None else element)

    def bind_attributes(self, attributes: Iterable[tuple[str, str]]) -> None:
        """Bind or keep the attributes of the element. Its children may then be passed singly to `take` or `give`."""
        for tag, text in attributes:
            known = self.plan.attributes.get(tag)
            if known is None or not known.field.max:
                message = self.plan.unknown_attribute(tag)
                if message is not None:
                    self._add("unknown-attribute", message)
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
            if slot is not None and child.tag in self.plan.rivals and slot.order < self._last:
                slot = next((rival for rival in self.plan.rivals[child.tag] if rival.order >= self._last), slot)
            if slot is None or (self.plan.wildcards and self._is_wild(child, slot)):
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
        """Whether a child can be bound; if not, it is kept as XML."""
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
        """Return the value of a simple element; None if it can only be kept as XML."""
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
        for _, named in (pair for pair in attributes if pair[0] == XSI_TYPE):
            self._check_type(named, text or slot.target.default, child)
        unknown = [split_clark(tag)[1] for tag, _ in attributes if not tag.startswith(_XSI_PREFIX)]
        if unknown:
            self._add("unknown-attribute", f"unknown attribute {', '.join(unknown)} is kept", child)
        if not exact or attributes:
            done = self.values.get(slot.name)
            self.extras.leaves[slot.name, len(done) if isinstance(done, list) else 0] = Leaf(value, text, attributes)
        return value

    def _check_type(self, named: str, text: str, element: etree._Element) -> None:
        """Check that a text also fits the simple type that an xsi:type names."""
        kind = find_simple(named, self.plan.table.module.root)
        if kind is None or kind.qualified:
            return
        try:
            problem = kind.lenient(text)[1]
        except ValueError as error:
            problem = str(error)
        if problem:
            self._bad_value("value", text, f"{problem}, of the type that xsi:type names", element)

    def _convert(self, kind: SimpleType, text: str, element: etree._Element, what: str) -> tuple[Any, bool]:
        """Return the value of a text (_MISSING if it has none), and whether we would write it in the same way."""
        if kind.qualified:
            return self._names(kind, text, element, what)
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
        value = shown(text, element, what)
        self._add("bad-value", f"{what} {value}: {'it does not fit its type' if value == MASK else problem}", element)

    def _names(self, kind: SimpleType, text: str, element: etree._Element, what: str) -> tuple[Any, bool]:
        """Return the Clark name, or the list of Clark names, of a text with qualified names."""
        found = [self.reader.scopes.qname(word, element) for word in text.split()]
        names = [name for name in found if name is not None]
        if len(names) < len(found) or (len(found) != 1 and not isinstance(kind, ListType)):
            self._bad_value(what, text, "it is not a name, or its prefix is not declared: kept as it came", element)
            return _MISSING, False
        value: Any = names if isinstance(kind, ListType) else names[0]
        problem = kind.breach(value, " ".join(text.split()))
        if problem:
            self._bad_value(what, text, problem, element)
        return value, problem is None

    def _stray_text(self, text: str, previous: etree._Element | None) -> None:
        self._add("stray-text", f"text {shown(text.strip(BLANKS), self.element)} between elements is kept")
        text = text.strip(BLANKS)
        kept = self.extras.elements
        anchor = self._anchor()
        if kept and kept[-1].after == anchor and previous is not None and previous.tag == kept[-1].xml.tag:
            kept[-1] = Kept(kept[-1].xml, anchor, text)
        else:
            self.extras.texts[anchor] = self.extras.texts.get(anchor, "") + text

    def _foreign(self, child: etree._Element) -> None:
        """Read a child without a slot: for a wildcard, a late member of a substitution group, or unknown."""
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

    def _is_wild(self, child: etree._Element, slot: Slot) -> bool:
        """Whether a wildcard takes a child because its field already has a value."""
        namespace = split_clark(str(child.tag))[0]
        taken = not slot.many and slot.name in self.values
        return taken and any(wild.admits(namespace) for wild in self.plan.wildcards)

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
        if wild.process == "strict" and isinstance(value, RawXml) and not child.keys():
            local = split_clark(str(child.tag))[1]
            self._add("undeclared", f"element {local}, which no schema declares, where that is asked for", child)
        self._put(wild.name, value, many=True)

    def _keep(self, child: etree._Element) -> None:
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
        slots = self.plan.slots
        kept = self.kept.elements if self.kept else ()
        return sum(1 for item in kept if (slot := slots.get(item.xml.tag)) is not None and slot.name == name)

    def _absent(self, name: str) -> None:
        """Handle a required field without a value, because the document does not have it or it cannot be read."""
        field = self.plan.table.field(name)
        if not field.many:
            self.values[name] = None
        self._excuse(name)
        unreadable = field.kind == "attribute" and self.kept and field.tag in self.kept.attributes
        maybe = field.head and self.kept and self.kept.elements  # an unknown element may substitute for this one
        if field.kind == "text" or unreadable or maybe or self._kept_as(name):
            return  # the field is present, and its fault was already reported
        if field.kind == "any":
            self._add("missing-element", "an element that the wildcard requires is missing")
            return
        what = "attribute" if field.kind == "attribute" else "element"
        self._add(f"missing-{what}", f"required {what} {field.local} is missing")

    def _check_content(self) -> None:
        """Check the lengths of lists, and the content model if it is more than a sequence."""
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
            self._keep_order()
            whole = {name: count for name in self.plan.content if (count := counts.get(name, 0) + self._kept_as(name))}
            missing = any(name not in whole for name in self.plan.required if name in self.plan.content)
            if not missing and grammar.problem(whole) is not None:
                self._add("content", problem)
        elif not grammar.allows(self._order):
            if grammar.joins:
                self._add("order", "the elements are not in the schema's order: written as they came")
                self._excuse(OUT_OF_ORDER)
                self._keep_order()
            else:
                self._add("order", "the elements are not in the schema's order: written in it")
        elif self.plan.interleaved and (self._order != grammar.order(counts) or not grammar.decides(counts)):
            self._keep_order()

    def _keep_order(self) -> None:
        self.extras.order = tuple(self._order)
        self.extras.held = held(self._order, self.plan.given(self.values))
