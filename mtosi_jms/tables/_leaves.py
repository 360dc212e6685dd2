"""The leaves of the column builders: simple values, XML that stays XML, and open content.

| XSD | Arrow |
|---|---|
| all string types, enumerations, QName, unions, time, duration, gYear and similar types | string, as written |
| boolean | bool |
| byte, short, int, and unsigned types below 2^31 | int32 |
| long, unsignedInt | int64 |
| integer and other unbounded types, unsignedLong | decimal128(38, 0) |
| decimal | decimal128(38, 18) |
| float, double | float64 |
| date | date32 |
| dateTime | timestamp in microseconds, UTC; a value without a zone is taken as UTC |
| base64Binary, hexBinary | binary |
| xsd:list | list |

Open content becomes a map of texts. Its keys are paths of local names below the open element, repeated names numbered
from 2 (`meExt/att1`, `meExt/att1[2]`, `meExt/@unit`). Names lose their namespaces there; the XML beside the map has
them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Final, Protocol

import pyarrow as pa
from lxml import etree

from mtosi_jms.namespaces import XSI, clark, split_clark
from mtosi_jms.xmlbind import (
    BLANKS,
    EnumType,
    ListType,
    RawXml,
    SimpleType,
    XmlEnum,
    XmlObject,
    find_element,
    to_element,
)

NIL: Final = clark(XSI, "nil")
NILS: Final = ("true", "1")

ITEM: Final = "element"
"""Name of the item field of lists, as Spark names it."""

_TYPES: Final = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
    "binary": pa.binary(),
}
_WHOLE: Final = pa.decimal128(38, 0)
_FRACTION: Final = pa.decimal128(38, 18)
_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}


def list_type(item: pa.DataType) -> pa.DataType:
    """Return a list type with Spark's name for its items."""
    return pa.list_(pa.field(ITEM, item))


def arrow_type(simple: SimpleType) -> pa.DataType:
    """Return the Arrow type of a simple type."""
    if isinstance(simple, ListType):
        return list_type(arrow_type(simple.item))
    if simple.arrow == "decimal":
        return _WHOLE if _is_whole(simple) else _FRACTION
    return _TYPES.get(simple.arrow, _TYPES["string"])


def _is_whole(simple: SimpleType) -> bool:
    try:
        return isinstance(simple.lenient("1")[0], int)
    except ValueError:
        return False


def codes(simple: SimpleType) -> Mapping[str, Any] | None:
    """Return the stored value of each valid text of a boolean or an enumeration; None for other types."""
    if isinstance(simple, EnumType):
        return {str(member.value): str(member.value) for member in simple.cls}
    if simple.arrow == "boolean" and simple.facets is None:
        return _BOOLEANS
    return None


def storer(simple: SimpleType) -> Callable[[Any], Any]:
    """Return a function from the Python value of a simple type to the value that its column stores.

    The function raises ValueError for a value that the column cannot hold.
    """
    if isinstance(simple, ListType):
        item = storer(simple.item)
        return lambda values: [item(value) for value in values]
    kind = arrow_type(simple)
    if kind == pa.string():
        return lambda value: _text(simple, value)
    if kind in (_WHOLE, _FRACTION):
        return lambda value: _decimal(value, kind.scale)
    if kind == _TYPES["timestamp"]:
        return _timestamp
    return lambda value: value


def _text(simple: SimpleType, value: Any) -> str:
    if isinstance(value, XmlEnum):
        return str(value.value)
    if isinstance(value, str):
        return value
    try:
        return simple.format(value)
    except (TypeError, ValueError):
        return str(value)


def _decimal(value: Any, scale: int) -> Decimal:
    with localcontext(prec=80):
        number = Decimal(value)
        try:
            stored = number.quantize(Decimal(1).scaleb(-scale))
        except InvalidOperation:
            raise ValueError("the column cannot hold it") from None
        if stored != number or len(stored.as_tuple().digits) > 38:
            raise ValueError(f"the column holds 38 digits, {scale} of them after the point")
    return stored


def _timestamp(value: dt.datetime) -> dt.datetime:
    """Return a time in UTC. Raises ValueError: it is outside the years 1 to 9999."""
    if value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    try:
        return value.astimezone(dt.UTC)
    except OverflowError:
        raise ValueError("the column cannot hold it") from None


def from_text(simple: SimpleType) -> Callable[[str], Any]:
    """Return a function from text to the value that the column stores.

    The function raises ValueError for text that a reader has to report: invalid text, an unknown enumeration value, a
    violated facet.
    """
    store = storer(simple)

    def convert(text: str) -> Any:
        try:
            return store(simple.exact(text))
        except ValueError:
            value, problem = simple.lenient(text)
        if problem is not None:
            raise ValueError(problem)
        return store(value)

    return convert


def xml_text(value: Any) -> str:
    """Return an element, kept XML or an object of the class of an element as self-contained XML text."""
    if isinstance(value, etree._Element):
        return RawXml.from_element(value).xml.decode()
    if isinstance(value, RawXml):
        return value.xml.decode()
    if isinstance(value, XmlObject) and value.__xml__.element is not None:
        return RawXml.from_element(to_element(value)).xml.decode()
    return str(value)


def texts_of(element: etree._Element, skip: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """Return all texts below an element as (path, text) pairs, without children whose local name is in `skip`."""
    texts = _Texts()
    texts.attributes(element, "")
    for child in element:
        if split_clark(str(child.tag))[1] not in skip:
            texts.add(child, "")
    return list(texts.found.items())


class _Texts:
    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._seen: dict[str, int] = {}

    def add(self, element: etree._Element, above: str) -> None:
        path = above + split_clark(str(element.tag))[1]
        number = self._seen[path] = self._seen.get(path, 0) + 1
        if number > 1:
            path = f"{path}[{number}]"
        self.attributes(element, f"{path}/")
        text = str(element.text or "")
        if not len(element):
            self.found[path] = text
            return
        if text.strip():
            self.found[path] = text.strip()
        for child in element:
            self.add(child, f"{path}/")

    def attributes(self, element: etree._Element, above: str) -> None:
        for name, value in element.items():
            self.found.setdefault(f"{above}@{split_clark(str(name))[1]}", str(value))


class Odd(Exception):
    """An object has content that the fast path cannot handle; the lenient reader then decodes it."""


class Builder(Protocol):
    """The methods of all builders of columns."""

    type: pa.DataType

    def take(self, element: etree._Element, row: int) -> None:
        """Store the content of an element at a row. Raises Odd: it needs a warning, or does not fit the column."""

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        """Store a decoded value at a row; `notes` gets a sentence about each value that the column cannot hold."""

    def truncate(self, row: int) -> None:
        """Remove this row and all later rows."""

    def finish(self, rows: int) -> pa.Array:
        """Return the column as an array with this number of rows, and empty the builder."""


class Values:
    """Python values of an Arrow type by row; rows without a value are null."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        self.values: list[Any] = []

    def add(self, value: Any, row: int) -> None:
        """Store a value at a row."""
        values = self.values
        gap = row - len(values)
        if gap > 0:
            values.extend([None] * gap)
        values.append(value)

    def truncate(self, row: int) -> None:
        del self.values[row:]

    def finish(self, rows: int) -> pa.Array:
        values = self.values
        values.extend([None] * (rows - len(values)))
        self.values = []
        return pa.array(values, type=self.type)


class Leaf(Values):
    """A simple value."""

    def __init__(self, simple: SimpleType, *, nillable: bool = False) -> None:
        super().__init__(arrow_type(simple))
        self.simple = simple
        self.nillable = nillable
        self.codes: Mapping[str, Any] | None = codes(simple)
        self.convert = from_text(simple)
        self.store = storer(simple)

    def take(self, element: etree._Element, row: int) -> None:
        text = element.text
        if text is None or element.keys() or len(element):
            self.add(self.read(element), row)
        else:
            self.add_text(text, row)

    def add_text(self, text: str, row: int) -> None:
        """Store the value of a text at a row."""
        value = self.codes.get(text) if self.codes else None
        self.add(self.read_text(text) if value is None else value, row)

    def read(self, element: etree._Element) -> Any:
        """Return the stored value of a simple element; None for nil. Raises Odd: attributes, children, odd text."""
        if element.keys():
            nil = self.nillable and len(element.keys()) == 1 and element.get(NIL) in NILS
            if nil and not len(element) and not element.text:
                return None
            raise Odd
        if len(element):
            raise Odd
        return self.read_text(str(element.text or ""))

    def read_text(self, text: str) -> Any:
        """Return the stored value of a text. Raises Odd: text that needs a warning."""
        try:
            return self.convert(text)
        except (ValueError, OverflowError, ArithmeticError):
            raise Odd from None

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        try:
            self.add(self.store(value), row)
        except (ValueError, OverflowError, ArithmeticError) as error:
            notes.append(f"{str(value)[:60]!r} is left out of its column: {error}")


class Xml(Values):
    """An element kept as XML text: content without a schema, or a recursive type."""

    def __init__(self) -> None:
        super().__init__(pa.string())

    def take(self, element: etree._Element, row: int) -> None:
        if find_element(str(element.tag)) is not None:
            raise Odd  # an element of a known class is decoded, because that finds the warnings
        self.add(xml_text(element), row)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        self.add(xml_text(value if element is None else element), row)


class Present(Values):
    """An element whose type has no content; the column says whether it is present."""

    def __init__(self) -> None:
        super().__init__(pa.bool_())

    def take(self, element: etree._Element, row: int) -> None:
        if element.keys() or len(element) or (element.text or "").strip(BLANKS):
            raise Odd
        self.add(True, row)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        self.add(True, row)


class Extensions(Values):
    """Open content, such as vendorExtensions, as a map of its texts. `raw`: the second column, with the XML as
    received."""

    def __init__(self) -> None:
        super().__init__(pa.map_(pa.string(), pa.string()))
        self.raw = Values(pa.string())

    def take(self, element: etree._Element, row: int) -> None:
        if element.keys() or (element.text or "").strip(BLANKS):
            raise Odd
        for child in element:
            if (child.tail or "").strip(BLANKS) or find_element(str(child.tag)) is not None:
                raise Odd
        self._keep(list(element), row)

    def put(self, value: Any, row: int, element: etree._Element | None, notes: list[str]) -> None:
        if element is not None:
            self._keep(list(element), row)
        else:
            lists = [getattr(value, field.name) for field in value.__xml__.fields]
            items = [item for held in lists if isinstance(held, list) for item in held]
            self._keep([item.element() if isinstance(item, RawXml) else to_element(item) for item in items], row)

    def _keep(self, children: Sequence[etree._Element], row: int) -> None:
        texts = _Texts()
        for child in children:
            texts.add(child, "")
        self.add(list(texts.found.items()), row)
        self.raw.add("".join(xml_text(child) for child in children), row)

    def truncate(self, row: int) -> None:
        super().truncate(row)
        self.raw.truncate(row)


class Skip:
    """Replaces the builder of a column that is not needed."""

    def take(self, element: etree._Element, row: int) -> None: ...


SKIP: Final = Skip()
