"""From an lxml element to an object: by the fast path where nothing is odd, by the slow path otherwise.

Whatever does not fit the schema is kept (as a value where one can be made, as XML otherwise) and reported as a warning
with path and line.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import DecodeError, ForbiddenXmlError
from mtosi_jms.xmlbind._lenient import Keeper
from mtosi_jms.xmlbind.fast import NOT_PLAIN, FastPlan, fast_plan, read_fast
from mtosi_jms.xmlbind.issues import Issues, shown
from mtosi_jms.xmlbind.plan import KEEP, STRING, Slot, plan_of
from mtosi_jms.xmlbind.registry import XSI_NIL, XSI_TYPE, find_element, find_type
from mtosi_jms.xmlbind.scopes import Scopes, attributes_of
from mtosi_jms.xmlbind.table import ClassTable
from mtosi_jms.xmlbind.values import BLANKS, NIL, Extras, Nil, RawXml, XmlObject

_HAS_ATTRIBUTES: Final = etree.XPath("boolean(descendant-or-self::*/@*)")
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
    """The object of an element that stands for itself.

    Args:
        element: the root.
        cls: its class; None to find it by the element's name, `RawXml` if no registered package knows it.
        issues: takes the warnings.
        package: package to look in before all others.
        scopes: of the document, where more than one element of it is read.

    Raises:
        DecodeError: in strict mode, at the first warning; always where the nesting is too deep to follow.
    """
    try:
        return Reader(issues, bool(_HAS_ATTRIBUTES(element)), scopes).root(element, cls, package)
    except RecursionError:
        raise DecodeError("nested too deep", source=issues.source, line=element.sourceline) from None


def without_comments(element: etree._Element) -> etree._Element:
    """An element as our own parser gives it: comments and processing instructions left out.

    Args:
        element: an element of any lxml parser; not changed.

    Returns:
        The element itself, or a copy without them.

    Raises:
        ForbiddenXmlError: it holds entity references.
    """
    if next(element.iter(etree.Entity, etree.Comment, etree.PI), None) is None:
        return element
    if next(element.iter(etree.Entity), None) is not None:
        raise ForbiddenXmlError("entity references are not allowed", line=element.sourceline)
    steps = [
        node.getparent().index(node) for node in (element, *element.iterancestors()) if node.getparent() is not None
    ]
    twin = copy.deepcopy(element.getroottree()).getroot()  # all of it: what stands outside declares prefixes
    for step in reversed(steps):
        twin = twin[step]
    etree.strip_tags(twin, etree.Comment, etree.PI)
    return twin


class Reader:
    """Reads the objects of one document.

    Attributes:
        issues: takes the warnings.
        attributed: whether any element that is read may have attributes.
        scopes: the namespaces in scope.
    """

    __slots__ = ("_failures", "attributed", "issues", "scopes")

    def __init__(self, issues: Issues, attributed: bool = True, scopes: Scopes | None = None) -> None:
        self.issues = issues
        self.attributed = attributed
        self.scopes = Scopes() if scopes is None else scopes
        self._failures: dict[FastPlan, int] = {}

    def root(self, element: etree._Element, cls: type[XmlObject] | None, package: str | None = None) -> Any:
        """The object of an element that stands for itself."""
        if cls is None:
            cls = find_element(str(element.tag), package)
            if cls is None:
                return self.kept(element)
        table: ClassTable = cls.__xml__
        value = self.object(element, table, nillable=False)
        return self._named(value, element) if table.element is not None else value

    def kept(self, element: etree._Element) -> RawXml:
        """An element that stays XML."""
        return RawXml.from_element(element, self.scopes)

    def _named(self, value: Any, element: etree._Element) -> Any:
        """The object with its element's name beside it, where the class that an xsi:type named does not say it."""
        if isinstance(value, XmlObject) and value.__xml__.element is None:
            value.extras = value.extras or Extras()
            value.extras.element = str(element.tag)
        return value

    def free(self, element: etree._Element, root: str, *, skip: bool = False) -> XmlObject | RawXml:
        """What stands where any element may: an object if its name is known, XML otherwise.

        Args:
            element: the element.
            root: package to look in before all others.
            skip: leave it as XML in any case.
        """
        cls = None if skip else find_element(str(element.tag), root)
        if cls is None:
            return self.kept(element)
        value = self.root(element, cls)
        return self.kept(element) if isinstance(value, Nil) else value

    def child(self, child: etree._Element, slot: Slot) -> Any:
        """The value of a child that is an object or stays XML; None if it can only be kept as XML."""
        if slot.kind == KEEP:
            return self.kept(child)
        member = slot.field.head and child.tag != slot.field.tag
        value = self.object(child, slot.target, nillable=slot.field.nillable and not member)
        if isinstance(value, RawXml) or (member and isinstance(value, Nil)):
            return None
        return self._named(value, child) if member else value

    def object(self, element: etree._Element, table: ClassTable, *, nillable: bool) -> Any:
        """The object of an element whose declared class is known; NIL or RawXml where it is nil."""
        if element.keys() or table.abstract:
            return self._with_attributes(element, table, nillable=nillable)
        return self._plain(element, table)

    def _plain(self, element: etree._Element, table: ClassTable) -> Any:
        plan = fast_plan(table)
        failures = self._failures.get(plan, 0)
        # Peers that are odd are odd in every object: after some failures only every so often one is tried again.
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

    def _simple(self, element: etree._Element, plan: FastPlan) -> Any:
        """The object of an element of simple content, where its text is known; None otherwise."""
        slot = plan.plan.text
        if slot is None or len(element) or len(plan.required) > 1:
            return None
        value: Any = (element.text or "") if slot.kind == STRING else slot.target.known.get(element.text)
        return plan.cls(**{slot.name: value}) if value is not None else None

    def slowly(self, element: etree._Element, table: ClassTable, attributes: Iterable[tuple[str, str]] = ()) -> Any:
        """The object of an element by the slow path.

        Args:
            element: the element.
            table: the table of its class.
            attributes: its attributes, without xsi:nil and without an xsi:type that was obeyed.
        """
        return Keeper(element, plan_of(table), self).read(attributes)

    def _with_attributes(self, element: etree._Element, table: ClassTable, *, nillable: bool) -> Any:
        """The object of an element with attributes: nil, a type of its own, or plain attributes."""
        attributes = dict(attributes_of(element))
        if XSI_NIL in attributes:
            if attributes[XSI_NIL].strip() in _YES:
                return self.nil(element, nillable=nillable)
            self.not_nil(element, attributes[XSI_NIL], nillable=nillable)
        if XSI_TYPE in attributes:
            text = attributes[XSI_TYPE]
            derived = self.derived(element, text, table)
            if derived is not None:
                table = derived
                attributes.pop(XSI_TYPE)
            else:
                attributes[XSI_TYPE] = self.qname(text, element) or text
        if not table.abstract:
            return self.slowly(element, table, attributes.items()) if attributes else self._plain(element, table)
        self.issues.add("abstract", f"{table.type_name or table.element} is abstract", element)
        value = self.slowly(element, table, attributes.items())
        value.extras = value.extras or Extras()
        value.extras.excused |= {"abstract"}
        return value

    def nil(self, element: etree._Element, *, nillable: bool) -> Nil | RawXml:
        """The value of an element with xsi:nil; XML where it has content all the same."""
        if not nillable:
            self.issues.add("nil", "xsi:nil on an element that is not nillable", element)
        if len(element) or (element.text or "").strip(BLANKS):
            self.issues.add("nil", "a nil element with content: kept as XML", element)
            return self.kept(element)
        others = dict(self.attributes_of(element, but=XSI_NIL))
        text = str(element.get(XSI_NIL))
        return Nil(others, text) if others or text != "true" else NIL

    def not_nil(self, element: etree._Element, text: str, *, nillable: bool) -> None:
        """Report an xsi:nil that is not true, where it should not be or is no boolean; it is kept as an attribute."""
        if text.strip() not in _NO:
            self.issues.add("bad-value", f"xsi:nil {shown(text, element)}: not a boolean", element)
        elif not nillable:
            self.issues.add("nil", "xsi:nil on an element that is not nillable", element)

    def attributes_of(self, element: etree._Element, but: str = "") -> Iterable[tuple[str, str]]:
        """The attributes of an element, an xsi:type as a Clark name."""
        for name, text in attributes_of(element):
            if name == XSI_TYPE:
                yield name, self.qname(text, element) or text
            elif name != but:
                yield name, text

    def derived(self, element: etree._Element, text: str, table: ClassTable) -> ClassTable | None:
        """The table that an xsi:type names; None where it cannot be obeyed, or says what is known.

        Args:
            element: the element that has it.
            text: its value.
            table: the declared one.
        """
        name = self.qname(text, element)
        if name is None:
            self.issues.add("xsi-type", f"xsi:type {shown(text, element)} has an undeclared prefix", element)
            return None
        found = find_type(name, table.module.root)
        declared = table.declared
        if name == declared.type_qname and declared.type_name:
            return None
        if found is None or not hasattr(found, "__xml__"):
            self.issues.add("xsi-type", f"xsi:type {shown(text, element)} names no known type", element)
            return None
        derived: ClassTable = found.__xml__
        if not derived.is_a(declared):
            self.issues.add(
                "xsi-type", f"xsi:type {shown(text, element)} is not derived from {declared.type_qname}", element
            )
            return None
        return derived

    def qname(self, text: str, element: etree._Element) -> str | None:
        """The Clark name that a qualified name means in the scope of an element; None if its prefix is not declared."""
        return self.scopes.qname(text, element)
