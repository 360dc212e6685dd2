"""The values of bound objects that are not Python's own: nil, kept XML, enumerations, and extras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import total_ordering
from math import isnan
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import ConfigError, MalformedXmlError
from mtosi_jms.masking import MASK, is_secret, shown_half_made
from mtosi_jms.xmlbind._canonical import Scopes, canonical
from mtosi_jms.xmlbind._parser import XmlLimits, make_parser, parse_xml

BLANKS: Final = " \t\r\n"
"""The white space of XML; further white space of Python is text in XML."""

_NO_BOUNDS: Final = XmlLimits(huge=True)


@dataclass(frozen=True, slots=True)
class Nil:
    """The value of an element with `xsi:nil="true"`: present, but without content. It is false in a condition.

    Attributes:
        attributes: texts of other attributes of the nil element, by Clark name.
        text: the text of xsi:nil, `true` or `1`.
    """

    attributes: Mapping[str, str] = field(default_factory=dict)
    text: str = field(default="true", compare=False)

    def __bool__(self) -> bool:
        return False

    @shown_half_made
    def __repr__(self) -> str:
        if not self.attributes:
            return "NIL"
        shown = (f"{name!r}: {MASK if is_secret(name) else repr(text)}" for name, text in self.attributes.items())
        return f"Nil({{{', '.join(shown)}}})"


NIL: Final = Nil()


@total_ordering
class RawXml:
    """An element that is kept as XML because no class is known for it; it is written as it was read.

    Two are equal if their exclusive canonical forms are. Instances are immutable and can be pickled.

    Attributes:
        xml: the element as self-contained UTF-8 XML.
    """

    __slots__ = ("tag", "xml")

    def __init__(self, xml: bytes) -> None:
        """Keep self-contained XML. Raises MalformedXmlError: `xml` is not a well-formed element."""
        element = parse_xml(xml)
        self.xml: bytes = canonical(element, Scopes())
        self.tag: str = str(element.tag)

    @classmethod
    def from_element(cls, element: etree._Element, scopes: Scopes | None = None) -> RawXml:
        """Keep an element of a parsed document, with all namespaces that it needs.

        Args:
            element: an element of any lxml parser; comments and processing instructions in it are left out.
            scopes: of its document, if more than one of its elements is kept.

        Raises:
            ConfigError: `element` is not an lxml element.
            MalformedXmlError: it is a comment or a processing instruction.
            ForbiddenXmlError: it contains entity references.
        """
        if not isinstance(element, etree._Element):
            raise ConfigError(f"an element that lxml parsed is needed, not {type(element).__name__}")
        if not isinstance(element.tag, str):
            raise MalformedXmlError("not an element", line=element.sourceline)
        raw = cls.__new__(cls)
        raw.tag = str(element.tag)
        raw.xml = canonical(element, Scopes() if scopes is None else scopes)
        return raw

    def element(self) -> etree._Element:
        """Return a new lxml element of this XML."""
        return etree.fromstring(self.xml, make_parser(_NO_BOUNDS))  # the bounds were checked when it was first parsed

    @property
    def text(self) -> str:
        """All character data of the element, joined."""
        return "".join(str(part) for part in self.element().itertext())

    def __eq__(self, other: object) -> bool:
        return self.xml == other.xml if isinstance(other, RawXml) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.xml < other.xml if isinstance(other, RawXml) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.xml)

    @shown_half_made
    def __repr__(self) -> str:
        return f"<RawXml {self.tag}, {len(self.xml)} bytes>"  # not the content: it may be a credential

    def __getstate__(self) -> tuple[str, bytes]:
        return self.tag, self.xml

    def __setstate__(self, state: tuple[str, bytes]) -> None:
        self.tag, self.xml = state


class XmlEnum(StrEnum):
    """Base of generated enumerations.

    A value that the schema does not list becomes an unregistered member: `cls("new-value")` is an instance of the
    class, compares by value, and has `is_known` false.
    """

    @classmethod
    def _missing_(cls, value: object) -> XmlEnum | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member

    @property
    def is_known(self) -> bool:
        """Whether the schema lists this value."""
        return self._value_ in type(self)._value2member_map_

    def __str__(self) -> str:
        return str(self._value_)

    def __format__(self, spec: str) -> str:
        return format(str(self._value_), spec)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value_!r})"

    __hash__ = str.__hash__  # the same, and sooner than Enum's


@dataclass(frozen=True, slots=True)
class Leaf:
    """The original text of a simple value, if it differs from the text that we would write.

    Attributes:
        value: the value that was read; the record is only used while the field still has this value.
        text: its text in the document.
        attributes: Clark name and text of attributes that the schema does not know; the value of an xsi:type is a Clark
            name.
    """

    value: Any = field(repr=False)  # it may be a credential
    text: str = field(repr=False)
    attributes: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def holds(self, value: Any) -> bool:
        """Whether the record belongs to a value. NaN counts as equal to itself."""
        if type(self.value) is not type(value):
            return False
        return bool(self.value == value) or (type(value) is float and isnan(value) and isnan(self.value))


Anchor = tuple[str, int] | None
"""A place in an object: after a field and its occurrence (from 0); None for the start."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An element that could not be bound, and its place.

    Attributes:
        after: the field and occurrence (from 0) before it; None at the start.
        tail: character data after it that the schema does not allow.
    """

    xml: RawXml
    after: Anchor = None
    tail: str = field(default="", repr=False)


@dataclass(slots=True, repr=False)
class Extras:
    """The content of an object that its typed fields cannot hold, kept so that nothing is lost.

    Its `repr` shows names only, because the values may be credentials.

    Attributes:
        elements: unknown or unreadable child elements, in document order.
        attributes: texts by Clark name: unknown or unreadable attributes, attributes that an xsd:anyAttribute admits,
            schema locations, and an xsi:type that did not give the class (its value is a Clark name).
        leaves: original lexical forms, by (field, occurrence).
        order: field names in document order, for content models in which a repeated group interleaves fields. A program
            may give it to say which values stand together.
        held: the names of `order`, each with the value that was read: where lists were edited, values stay together.
        texts: character data that the schema does not allow, by its place.
        excused: faults of the document that may be written again: names of fields that were missing, nil or occurred
            too often, and problems that the content model reported.
        element: Clark name of the element, if the class of the object is that of an xsi:type.
    """

    elements: list[Kept] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    leaves: dict[tuple[str, int], Leaf] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    texts: dict[Anchor, str] = field(default_factory=dict)
    excused: frozenset[str] = frozenset()
    element: str = ""
    held: tuple[tuple[str, Any], ...] = field(default=(), compare=False, repr=False)

    @shown_half_made
    def __repr__(self) -> str:
        held = ((part.name, getattr(self, part.name)) for part in fields(self) if part.repr)
        shown = (f"{name}={list(value) if isinstance(value, Mapping) else value!r}" for name, value in held if value)
        return f"Extras({', '.join(shown)})"

    @property
    def text(self) -> str:
        """All character data that the schema does not allow."""
        return "".join([*self.texts.values(), *(kept.tail for kept in self.elements)])
