"""The leaves of the column builders: simple values, values the reader makes itself, XML and open content."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import pyarrow as pa
from lxml import etree

from mtosi_jms.namespaces import XSI, clark
from mtosi_jms.spark._raw import Extension, extension_of, xml_text
from mtosi_jms.spark._values import arrow_type, codes, from_text, storer
from mtosi_jms.xmlbind import BLANKS, Nil, SimpleType, find_element

NIL: Final = clark(XSI, "nil")
NILS: Final = ("true", "1")


Elements = Iterator[etree._Element]


def pass_over(element: etree._Element, inside: Elements) -> None:
    """Take the elements inside one from the iterator and do nothing with them."""
    if len(element):
        count = sum(1 for _ in element.iter()) - 1
        deque(islice(inside, count), maxlen=0)


class Odd(Exception):
    """An object holds something that the fast path does not settle."""


class Column(Protocol):
    """What all builders offer."""

    type: pa.DataType

    def take(self, element: etree._Element, row: int, inside: Elements) -> None:
        """Put an element's content at a row.

        Args:
            inside: an iterator that gives the elements inside this one next; it takes all of them from there.

        Raises:
            Odd: there is more to say about it than a column can.
        """

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        """Put a decoded value at a row.

        Args:
            element: the element that it came from, where it is at hand.
            notes: takes a sentence about each value that the column cannot hold; it is null then.
        """

    def truncate(self, row: int) -> None:
        """Forget this row and all behind it."""

    def finish(self, rows: int) -> pa.Array:
        """The column as an array of so many rows; the builder is empty again."""


class Leaf:
    """A simple value."""

    __slots__ = ("codes", "convert", "nillable", "store", "type", "values")

    def __init__(self, simple: SimpleType, *, nillable: bool = False) -> None:
        self.type = arrow_type(simple)
        self.values: list[Any] = []
        self.nillable = nillable
        self.codes: Mapping[str, Any] | None = codes(simple)
        self.convert = from_text(simple)
        self.store = storer(simple)

    def take(self, element: etree._Element, row: int, inside: Elements) -> None:
        text = element.text
        if text is None or element.keys() or len(element):
            self.add(self.read(element), row)
            return
        value = self.codes.get(text) if self.codes else None
        self.add(self.read_text(text) if value is None else value, row)

    def read(self, element: etree._Element) -> Any:
        """The stored value of an element of simple type; None for nil.

        Raises:
            Odd: attributes, child elements, or text that needs a warning.
        """
        if element.keys():
            nil = self.nillable and len(element.keys()) == 1 and element.get(NIL) in NILS
            if nil and not len(element) and not element.text:
                return None
            raise Odd
        if len(element):
            raise Odd
        return self.read_text(str(element.text or ""))

    def read_text(self, text: str) -> Any:
        """The stored value of a text.

        Raises:
            Odd: text that needs a warning.
        """
        try:
            return self.convert(text)
        except (ValueError, OverflowError, ArithmeticError):
            raise Odd from None

    def add(self, value: Any, row: int) -> None:
        """Store a value at a row."""
        values = self.values
        gap = row - len(values)
        if gap > 0:
            values.extend([None] * gap)
        values.append(value)

    def extend(self, values: Sequence[Any], row: int) -> None:
        """Store values at neighbouring rows, from one on."""
        gap = row - len(self.values)
        if gap > 0:
            self.values.extend([None] * gap)
        self.values.extend(values)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        if value is None or isinstance(value, Nil):
            return
        try:
            self.add(self.store(value), row)
        except (ValueError, OverflowError, ArithmeticError) as error:
            notes.append(f"{str(value)[:60]!r} is left out of its column: {error}")

    def truncate(self, row: int) -> None:
        del self.values[row:]

    def finish(self, rows: int) -> pa.Array:
        values = self.values
        values.extend([None] * (rows - len(values)))
        self.values = []
        return pa.array(values, type=self.type)


class Given:
    """Values that the reader makes itself: Python values of an Arrow type.

    Attributes:
        blank: what stands in rows that get no value.
    """

    __slots__ = ("blank", "type", "values")

    def __init__(self, type_: pa.DataType, blank: Any = None) -> None:
        self.type = type_
        self.blank = blank
        self.values: list[Any] = []

    def add(self, value: Any, row: int) -> None:
        """Store a value at a row."""
        values = self.values
        gap = row - len(values)
        if gap > 0:
            values.extend([self.blank] * gap)
        values.append(value)

    def extend(self, values: Sequence[Any], row: int) -> None:
        """Store values at neighbouring rows, from one on."""
        gap = row - len(self.values)
        if gap > 0:
            self.values.extend([self.blank] * gap)
        self.values.extend(values)

    def truncate(self, row: int) -> None:
        """Forget this row and all behind it."""
        del self.values[row:]

    def finish(self, rows: int) -> pa.Array:
        """The column as an array of so many rows; the builder is empty again."""
        values = self.values
        values.extend([self.blank] * (rows - len(values)))
        self.values = []
        return pa.array(values, type=self.type)


class Xml(Given):
    """An element kept as XML text: content without a schema, or a type that holds itself."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(pa.string())

    def take(self, element: etree._Element, row: int, inside: Elements) -> None:
        """Keep an element; one of a known class may have warnings, which decoding finds.

        Raises:
            Odd: the element is of a known class.
        """
        if find_element(str(element.tag)) is not None:
            raise Odd
        self.add(xml_text(element), row)
        pass_over(element, inside)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        """Keep what was decoded, from the element itself where it is at hand."""
        if value is not None and not isinstance(value, Nil):
            self.add(xml_text(value if element is None else element), row)


class Present(Given):
    """An element whose type has no content: whether it is there."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(pa.bool_())

    def take(self, element: etree._Element, row: int, inside: Elements) -> None:
        """Note an empty element.

        Raises:
            Odd: it is not empty.
        """
        if element.keys() or len(element) or (element.text or "").strip(BLANKS):
            raise Odd
        self.add(True, row)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        """Note an object."""
        if value is not None and not isinstance(value, Nil):
            self.add(True, row)


class Extensions(Given):
    """Open content, such as vendorExtensions, as a map of its texts.

    Attributes:
        raw: the column beside it: the XML as it came.
    """

    __slots__ = ("raw",)

    def __init__(self) -> None:
        super().__init__(pa.map_(pa.string(), pa.string()))
        self.raw = Given(pa.string())

    def take(self, element: etree._Element, row: int, inside: Elements) -> None:
        """Keep open content; elements of a known class may have warnings, which decoding finds.

        Raises:
            Odd: attributes, text, or an element of a known class.
        """
        if element.keys() or (element.text or "").strip(BLANKS):
            raise Odd
        for child in element:
            if (child.tail or "").strip(BLANKS) or find_element(str(child.tag)) is not None:
                raise Odd
        self._keep(extension_of(element), row)
        pass_over(element, inside)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        """Keep what was decoded, from the element itself where it is at hand."""
        if value is not None and not isinstance(value, Nil):
            self._keep(extension_of(value if element is None else element), row)

    def _keep(self, extension: Extension, row: int) -> None:
        self.add(extension.texts, row)
        self.raw.add(extension.xml, row)

    def truncate(self, row: int) -> None:
        """Forget this row and all behind it."""
        super().truncate(row)
        self.raw.truncate(row)


class Skip:
    """Takes the place of a builder that nobody asked for."""

    def take(self, element: etree._Element, row: int, inside: Elements) -> None:
        """Pass over the element."""
        pass_over(element, inside)


SKIP: Final = Skip()
