"""Reads schema elements into components: interprets attributes, resolves prefixes, repairs and reports defects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, cast

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.qnames import QNameReader
from mtosi_codegen.xsd.model import (
    LENGTHS,
    RANGES,
    AnyAttribute,
    Attribute,
    AttributeGroup,
    AttributeGroupUse,
    AttributePart,
    ComplexType,
    Component,
    Compositor,
    Element,
    ElementUse,
    Given,
    Group,
    GroupUse,
    Occurs,
    Particle,
    Place,
    QName,
    SimpleType,
    Wildcard,
)
from mtosi_codegen.xsd.redefine import Replacement
from mtosi_codegen.xsd.soap_encoding import fill_array, is_array
from mtosi_jms import xmlbind
from mtosi_jms.namespaces import XSD

_FACETS: Final = frozenset({"pattern", "whiteSpace", *RANGES, *LENGTHS})
# A count beyond the limit is treated as unbounded: no document holds so many elements.
_COUNT: Final = re.compile(r"\+?([0-9]+)")
_MOST: Final = 999_999_999
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SHOWN: Final = 40
_GLOBAL: Final = frozenset({"complexType", "simpleType", "element", "group", "attribute", "attributeGroup"})
_NEWER: Final = {
    "assert": "not checked",
    "assertion": "not checked",
    "alternative": "the declared type counts; what does not fit it is kept as XML",
    "openContent": "what it lets in is kept as XML",
    "defaultOpenContent": "what it lets in is kept as XML",
    "explicitTimezone": "not checked",
}
_NEWER_ATTRIBUTES: Final = {
    "defaultAttributes": "left out; the attributes are kept as they come",
    "notNamespace": "not checked",
    "notQName": "not checked",
}
"""Elements and attributes of XML Schema 1.1, and how each is handled."""
_NEWER_TAGS: Final = tuple(f"{{{XSD}}}{name}" for name in (*_NEWER, "any", "anyAttribute"))
_PARTICLES: Final = frozenset({"element", "any", "group", "sequence", "choice", "all"})
_ANY_TYPE: Final = QName(XSD, "anyType")


def local_of(element: etree._Element) -> str:
    """The local name of a schema element, empty for anything outside the schema namespace."""
    tag = str(element.tag)
    return tag[len(XSD) + 2 :] if tag.startswith(f"{{{XSD}}}") else ""


def children(element: etree._Element) -> Iterator[tuple[str, etree._Element]]:
    """The schema children of an element with their local names, without annotations."""
    for child in element.iterchildren():
        local = local_of(child)
        if local and local != "annotation":
            yield local, child


def documentation(element: etree._Element) -> str:
    """The documentation of a component as plain text, without markup; paragraphs stay separate."""
    paragraphs: list[str] = []
    for text in element.iterfind(f"{{{XSD}}}annotation/{{{XSD}}}documentation"):
        paragraphs.extend(plain(text))
    return "\n\n".join(paragraphs)


_BLOCKS: Final = frozenset({"p", "li", "ul", "ol", "table", "tr", "div", "br", "h1", "h2", "h3"})


def plain(element: etree._Element) -> list[str]:
    """The paragraphs of marked-up text, with runs of blanks joined."""
    pieces: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        block = isinstance(node.tag, str) and etree.QName(node).localname.lower() in _BLOCKS
        pieces.append("\0" if block else "")
        pieces.append((node.text if event == "start" else node.tail if node is not element else "") or "")
    texts = (" ".join(text.split()) for text in "".join(pieces).split("\0"))
    return [text for text in texts if text and text != "."]


class SchemaReader:
    """Reads the components of one schema element.

    Args:
        aliases: the right namespace for each namespace that the file names by mistake.
    """

    def __init__(
        self,
        element: etree._Element,
        namespace: str,
        file: str,
        findings: Findings,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._schema = element
        self._namespace = namespace
        self._file = file
        self._findings = findings
        chameleon = bool(namespace) and not (element.get("targetNamespace") or "").strip()
        self._names = QNameReader(file, findings, namespace if chameleon else "", aliases)
        self._qualified = element.get("elementFormDefault") == "qualified"
        self._qualified_attributes = element.get("attributeFormDefault") == "qualified"

    def components(self) -> Iterator[Component]:
        """The global components, in document order."""
        self._report_newer()
        for child in self._defined(self._schema):
            yield self._component(child)

    def replacements(self) -> Iterator[Replacement]:
        """The components inside xsd:redefine and xsd:override, in document order."""
        for local, child in children(self._schema):
            if local in {"redefine", "override"}:
                for inner in self._defined(child):
                    yield Replacement(self._component(inner), redefines=local == "redefine")

    def _defined(self, element: etree._Element) -> Iterator[etree._Element]:
        """The definitions in a schema, or in an xsd:redefine or xsd:override."""
        return (child for local, child in children(element) if local in _GLOBAL and self._has_name(child))

    def _component(self, child: etree._Element) -> Component:
        readers: dict[str, Callable[[etree._Element, QName], Component]] = {
            "complexType": self._complex_type,
            "simpleType": self._simple_type,
            "element": self._element,
            "group": lambda child, name: Group(name, self._place(child), self._group_content(child)),
            "attribute": self._attribute,
            "attributeGroup": lambda child, name: AttributeGroup(name, self._place(child), self._attributes(child)),
        }
        return readers[local_of(child)](child, self._own_name(child))

    def _report_newer(self) -> None:
        """Report what only XML Schema 1.1 has."""
        for element in (self._schema, *self._schema.iter(*_NEWER_TAGS)):
            local = local_of(element)
            for name in [local] if local in _NEWER else [name for name in _NEWER_ATTRIBUTES if name in element.attrib]:
                repair = _NEWER.get(name) or _NEWER_ATTRIBUTES[name]
                message = f"{name} is of XML Schema 1.1"
                self._findings.add("xsd-1.1", self._file, element.sourceline, message, repair)

    def _place(self, element: etree._Element) -> Place:
        return Place(self._file, element.sourceline or 0)

    def _own_name(self, element: etree._Element) -> QName:
        return QName(self._namespace, self._names.name(element))

    def _has_name(self, element: etree._Element) -> bool:
        """Whether a definition has a valid name; a definition without one is left out."""
        name = element.get("name")
        sound = name is not None and (_PLAIN_NAME.fullmatch(name) or xmlbind.NCNAME.lenient(name)[1] is None)
        if not sound:
            shown = "without a name" if name is None else f"with the name {name[:_SHOWN]!r}, which XML does not allow"
            self._unsupported(element, f"{local_of(element)} {shown}")
        return bool(sound)

    def _unsupported(self, element: etree._Element, message: str) -> None:
        self._findings.add("xsd-unsupported", self._file, element.sourceline, message, "left out")

    def _block(self, element: etree._Element) -> frozenset[str]:
        text = element.get("block", self._schema.get("blockDefault", "")).split()
        return frozenset({"extension", "restriction", "substitution"} if "#all" in text else text)

    def _value(self, element: etree._Element) -> Given | None:
        if (fixed := element.get("fixed")) is not None:
            return Given("fixed", fixed)
        default = element.get("default")
        return Given("default", default) if default is not None else None

    # Elements

    def _element(self, element: etree._Element, name: QName) -> Element:
        heads = (element.get("substitutionGroup") or "").split()
        return Element(
            name,
            self._place(element),
            self._element_type(element),
            nillable=_is_true(element.get("nillable")),
            abstract=_is_true(element.get("abstract")),
            heads=tuple(self._names.resolve(head, element) for head in heads),
            block=self._block(element),
            value=self._value(element),
            doc=documentation(element),
        )

    def _element_type(self, element: etree._Element) -> QName | SimpleType | ComplexType | None:
        if element.get("type") is not None:
            return self._names.qname(element, "type")
        for local, child in children(element):
            if local == "complexType":
                return self._complex_type(child, None)
            if local == "simpleType":
                return self._simple_type(child, None)
        return None

    def _element_use(self, element: etree._Element) -> ElementUse:
        reference = element.get("ref") is not None
        if reference:
            name = self._names.qname(element, "ref")
        else:
            form = element.get("form") or ("qualified" if self._qualified else "unqualified")
            name = QName(self._namespace if form == "qualified" else "", self._names.name(element))
        return ElementUse(
            name,
            self._place(element),
            self._occurs(element),
            None if reference else self._element_type(element),
            reference=reference,
            nillable=_is_true(element.get("nillable")),
            value=self._value(element),
            doc=documentation(element),
            block=frozenset() if reference else self._block(element),
        )

    # Particles

    def _occurs(self, element: etree._Element) -> Occurs:
        low, high = (element.get("minOccurs") or "1").strip(), (element.get("maxOccurs") or "1").strip()
        least, most = _COUNT.fullmatch(low), _COUNT.fullmatch(high)
        if least and (most or high == "unbounded"):
            number = _number(most[1]) if most else _MOST + 1
            return Occurs(min(_number(least[1]), _MOST), number if number <= _MOST else None)
        shown = f"minOccurs {low[:_SHOWN]!r} or maxOccurs {high[:_SHOWN]!r}"
        self._unsupported(element, f"{shown} is not a number")
        return Occurs()

    def _particle(self, local: str, element: etree._Element) -> Particle:
        if local == "element":
            return self._element_use(element)
        if local == "group":
            return GroupUse(self._names.qname(element, "ref"), self._place(element), self._occurs(element))
        if local == "any":
            namespace = " ".join((element.get("namespace") or "##any").split())
            process = (element.get("processContents") or "strict").strip()
            doc = documentation(element)
            return Wildcard(self._place(element), self._occurs(element), namespace, process, doc)
        kind = cast('Literal["sequence", "choice", "all"]', local)
        return Compositor(kind, self._occurs(element), tuple(self._particles(element)))

    def _particles(self, element: etree._Element) -> Iterator[Particle]:
        for local, child in children(element):
            if local in _PARTICLES and (local != "element" or child.get("ref") is not None or self._has_name(child)):
                yield self._particle(local, child)

    def _content(self, element: etree._Element) -> Particle | None:
        return next(self._particles(element), None)

    def _group_content(self, element: etree._Element) -> Compositor | None:
        content = self._content(element)
        return content if isinstance(content, Compositor) else None

    # Attributes

    def _attribute(self, element: etree._Element, name: QName, *, reference: bool = False) -> Attribute:
        use = (element.get("use") or "optional").strip()
        simple = [self._simple_type(child, None) for local, child in children(element) if local == "simpleType"]
        type_: QName | SimpleType | None = simple[0] if simple else None
        if element.get("type") is not None:
            type_ = self._names.qname(element, "type")
        return Attribute(
            name,
            self._place(element),
            type_,
            reference=reference,
            use=cast('Literal["optional", "required", "prohibited"]', use),
            value=self._value(element),
            doc=documentation(element),
        )

    def _any_attribute(self, element: etree._Element) -> AnyAttribute:
        own = self._namespace or "##local"
        words = (element.get("namespace") or "##any").split()
        namespaces = " ".join(own if word == "##targetNamespace" else word for word in words)
        return AnyAttribute(self._place(element), namespaces)

    def _attributes(self, element: etree._Element) -> tuple[AttributePart, ...]:
        found: list[AttributePart] = []
        for local, child in children(element):
            if local == "attributeGroup":
                found.append(AttributeGroupUse(self._names.qname(child, "ref"), self._place(child)))
            elif local == "anyAttribute":
                found.append(self._any_attribute(child))
            elif local == "attribute" and child.get("ref") is not None:
                found.append(self._attribute(child, self._names.qname(child, "ref"), reference=True))
            elif local == "attribute" and self._has_name(child):
                form = child.get("form") or ("qualified" if self._qualified_attributes else "unqualified")
                namespace = self._namespace if form == "qualified" else ""
                found.append(self._attribute(child, QName(namespace, self._names.name(child))))
        return tuple(found)

    # Types

    def _complex_type(self, element: etree._Element, name: QName | None) -> ComplexType:
        found = ComplexType(name, self._place(element), documentation(element))
        found.abstract = _is_true(element.get("abstract"))
        found.mixed = _is_true(element.get("mixed"))
        found.block = self._block(element)
        body = element
        for local, child in children(element):
            if local in {"simpleContent", "complexContent"}:
                found.mixed = _is_true(child.get("mixed")) if child.get("mixed") else found.mixed
                found.simple_content = local == "simpleContent"
                body = self._derivation(child, found)
        found.content = None if found.simple_content else self._content(body)
        found.attributes = self._attributes(body)
        if not found.simple_content and self._extends_any_type(body):
            found.mixed = True
            found.attributes += (AnyAttribute(self._place(body), "##any"),)
        if is_array(found.base):
            fill_array(found, body, self._names, self._findings)
        return found

    def _extends_any_type(self, body: etree._Element) -> bool:
        """Whether a body is an extension of anyType: its content is any, mixed, and it may have any attribute."""
        return body.tag == f"{{{XSD}}}extension" and self._names.qname(body, "base") == _ANY_TYPE

    def _derivation(self, content: etree._Element, found: ComplexType) -> etree._Element:
        for local, child in children(content):
            if local not in {"extension", "restriction"}:
                continue
            base = self._names.qname(child, "base") if child.get("base") else _ANY_TYPE
            if base != _ANY_TYPE:
                found.derivation = cast('Literal["extension", "restriction"]', local)
                found.base = base
            if found.simple_content and local == "restriction":
                found.simple = self._restriction(child, SimpleType(None, self._place(child)))
            return child
        return content

    def _simple_type(self, element: etree._Element, name: QName | None) -> SimpleType:
        found = SimpleType(name, self._place(element), documentation(element))
        for local, child in children(element):
            inner = [self._simple_type(node, None) for kind, node in children(child) if kind == "simpleType"]
            if local == "restriction":
                self._restriction(child, found)
            elif local == "list":
                found.item = self._names.qname(child, "itemType") if child.get("itemType") else next(iter(inner), None)
            elif local == "union":
                named = [self._names.resolve(text, child) for text in (child.get("memberTypes") or "").split()]
                found.members = (*named, *inner)
        return found

    def _restriction(self, element: etree._Element, found: SimpleType) -> SimpleType:
        inner = [self._simple_type(node, None) for kind, node in children(element) if kind == "simpleType"]
        found.base = inner[0] if inner else self._names.qname(element, "base") if element.get("base") else None
        values: list[tuple[str, str]] = []
        for local, child in children(element):
            value = child.get("value") or ""
            if local == "enumeration":
                values.append((value, documentation(child)))
                self._check_blanks(child, value)
            elif local in _FACETS:
                found.facets[local] = (*found.facets.get(local, ()), value)
        found.enumeration = tuple(dict(values).items()) if values else None
        found.scope = dict(element.nsmap) if values else {}
        return found

    def _check_blanks(self, element: etree._Element, value: str) -> None:
        if value != value.strip():
            message = f"enumeration value {value!r} has blanks around it"
            repair = "kept as it is: the blank belongs to the value"
            self._findings.add("value-blanks", self._file, element.sourceline, message, repair)


def _number(digits: str) -> int:
    """The number of some digits, at most the limit plus one: Python refuses thousands of digits."""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(_MOST)) else _MOST + 1


def _is_true(text: str | None) -> bool:
    return (text or "").strip() in {"true", "1"}
