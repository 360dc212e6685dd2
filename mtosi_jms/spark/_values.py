"""Simple types as Arrow columns: the Arrow type of each XSD type, and text or Python value to what the column stores.

| XSD | Arrow |
|---|---|
| all kinds of string, enumerations, QName, unions, time, duration, gYear and its like | string, as written |
| boolean | bool |
| byte, short, int and unsigned ones below 2^31 | int32 |
| long, unsignedInt | int64 |
| integer and other unbounded ones, unsignedLong | decimal128(38, 0) |
| decimal | decimal128(38, 18) |
| float, double | float64 |
| date | date32 |
| dateTime | timestamp in microseconds, UTC; a value without a zone is taken as UTC |
| base64Binary, hexBinary | binary |
| xsd:list | list |
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Final

import pyarrow as pa

from mtosi_jms.xmlbind import EnumType, ListType, SimpleType, XmlEnum

ITEM: Final = "element"
"""Name of the item field of lists, the one that Spark uses."""

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
    """A list the way Spark names it."""
    return pa.list_(pa.field(ITEM, item))


def arrow_type(simple: SimpleType) -> pa.DataType:
    """The Arrow type of a simple type."""
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
    """The stored value of each valid text, where there are few of them: booleans and enumerations."""
    if isinstance(simple, EnumType):
        return {str(member.value): str(member.value) for member in simple.cls}
    if simple.arrow == "boolean" and simple.facets is None:
        return _BOOLEANS
    return None


def storer(simple: SimpleType) -> Callable[[Any], Any]:
    """A function from the Python value of a simple type to what its column stores.

    It raises ValueError for a value that the column cannot hold.
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
    return _same


def _same(value: Any) -> Any:
    return value


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
    """The moment in UTC.

    Raises:
        ValueError: it lies outside the years 1 to 9999 once its zone is taken off.
    """
    if value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    try:
        return value.astimezone(dt.UTC)
    except OverflowError:
        raise ValueError("the column cannot hold it") from None


def from_text(simple: SimpleType) -> Callable[[str], Any]:
    """A function from text to what the column stores.

    It raises ValueError for anything that a reader would have to report: text that is not valid, an unknown
    enumeration value, a facet that does not hold.
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
