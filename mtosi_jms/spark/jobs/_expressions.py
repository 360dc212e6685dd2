"""Spark columns made from other columns: full names as text, and values of any type in a comparable form.

Maps have no order, so they are compared as sorted entries, at any depth. A table has open content twice: as a map of
texts, and as the received XML in a column `..._raw`. The XML may differ in prefixes and white space without meaning, so
only the map is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXTS: Final = "array<string>"
_ESCAPES: Final = (("%", "%25"), ("/", "%2F"), ("=", "%3D"))
_UTC: Final = {"timeZone": "UTC"}


def names_type(kind: Any) -> int:
    """Tell what a column of a Spark type holds: 1 for a full name as its steps, 2 for a list of such names, else 0."""
    if not isinstance(kind, StructType) or len(kind) != 1 or not isinstance(kind[0].dataType, ArrayType):
        return 0
    inner = kind[0].dataType.elementType
    if kind[0].name == "rdn" and isinstance(inner, StructType) and inner.names == ["type", "value"]:
        return 1
    return 2 if names_type(inner) == 1 else 0


def names_in(table: DataFrame, *columns: str) -> Column:
    """Return the full names in some columns of names as one list of texts, which may be empty."""
    return f.concat(f.array().cast(_TEXTS), *(_names(table, column) for column in columns))


def name_text(name: Column) -> Column:
    """Return a full name as text, as in the column `name_text`; null if it has no step."""

    def step(rdn: Column) -> Column:
        return f.concat(_escaped(rdn["type"]), f.lit("="), _escaped(rdn["value"]))

    return f.when(f.size(name["rdn"]) > 0, f.array_join(f.transform(name["rdn"], step), "/"))


def last_step(name: Column) -> tuple[Column, Column]:
    """Return the type and the value of the last step of a full name that is given as text."""
    parts = f.split(f.substring_index(name, "/", -1), "=")
    return _unescaped(f.get(parts, f.lit(0))), _unescaped(f.get(parts, f.lit(1)))


def _names(table: DataFrame, column: str) -> Column:
    kind: Any = table.schema[column].dataType
    if names_type(kind) == 1:
        made = f.array(name_text(table[column]))
    else:
        made = f.transform(table[column].getField(kind[0].name), name_text)
    return f.coalesce(f.filter(made, lambda name: name.isNotNull()), f.array().cast(_TEXTS))


def _escaped(part: Column) -> Column:
    text = f.coalesce(part, f.lit(""))
    for character, written in _ESCAPES:
        text = f.replace(text, f.lit(character), f.lit(written))
    return text


def _unescaped(text: Column) -> Column:
    for character, written in reversed(_ESCAPES):
        text = f.replace(text, f.lit(written), f.lit(character))
    return text


def content_fields(kind: StructType) -> list[StructField]:
    """Return the fields of a struct, without the `..._raw` columns that hold the XML of open content."""
    maps = {field.name for field in kind if isinstance(field.dataType, MapType)}
    return [field for field in kind if not (field.name.endswith("_raw") and field.name.removesuffix("_raw") in maps)]


def comparable(value: Column, kind: DataType) -> Column:
    """Return a value in a form that Spark can compare, with maps as sorted entries."""
    return _rebuilt(value, kind, maps=False)


def text_of(value: Column, kind: DataType) -> Column:
    """Return a value as text: JSON for structs, lists and maps, with sorted map keys; null stays null."""
    if isinstance(kind, StructType | ArrayType | MapType):
        return f.to_json(_rebuilt(value, kind, maps=True), _UTC)
    if isinstance(kind, BinaryType):
        return f.base64(value)
    if isinstance(kind, TimestampType | TimestampNTZType):
        return f.get_json_object(f.to_json(f.struct(value.alias("t")), _UTC), "$.t")
    return value.cast("string")


def _is_plain(kind: DataType) -> bool:
    """Whether Spark can compare values of a type as they are."""
    if isinstance(kind, ArrayType):
        return _is_plain(kind.elementType)
    if isinstance(kind, StructType):
        return len(content_fields(kind)) == len(kind) and all(_is_plain(field.dataType) for field in kind)
    return not isinstance(kind, MapType)


def _rebuilt(value: Column, kind: DataType, *, maps: bool) -> Column:
    """Return a value with its maps sorted; with `maps` they stay maps, otherwise they become lists of entries."""
    if _is_plain(kind):
        return value
    if isinstance(kind, MapType):
        entries = f.array_sort(f.transform(f.map_entries(value), lambda entry: _entry(entry, kind, maps=maps)))
        return f.map_from_entries(entries) if maps else entries
    if isinstance(kind, ArrayType):
        return f.transform(value, lambda item: _rebuilt(item, kind.elementType, maps=maps))
    assert isinstance(kind, StructType)  # noqa: S101 - what is not plain is one of these
    fields = [
        _rebuilt(value.getField(field.name), field.dataType, maps=maps).alias(field.name)
        for field in content_fields(kind)
    ]
    return f.when(value.isNotNull(), f.struct(*fields)) if fields else value.isNotNull()


def _entry(entry: Column, kind: MapType, *, maps: bool) -> Column:
    inner = _rebuilt(entry.getField("value"), kind.valueType, maps=maps)
    return f.struct(entry.getField("key").alias("key"), inner.alias("value"))
