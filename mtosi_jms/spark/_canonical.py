"""Values of any Spark type brought into a form in which equal content is equal, and written as text.

Maps have no order: they are compared as their sorted entries, at any depth. Open content stands in a table twice, as
a map of its texts and, in `..._raw` beside it, as the XML that came; the XML differs by prefixes and blanks that mean
nothing, so that the map counts and the XML does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from pyspark.sql import Column

_UTC = {"timeZone": "UTC"}


def content_fields(kind: StructType) -> list[StructField]:
    """The fields of a struct without the XML of open content that stands beside its map."""
    maps = {field.name for field in kind if isinstance(field.dataType, MapType)}
    return [field for field in kind if not (field.name.endswith("_raw") and field.name.removesuffix("_raw") in maps)]


def comparable(value: Column, kind: DataType) -> Column:
    """A value in a form that Spark compares: maps as sorted entries."""
    return _rebuilt(value, kind, maps=False)


def text_of(value: Column, kind: DataType) -> Column:
    """A value as text: JSON for structs, lists and maps, keys of maps in order; null where it is null."""
    if isinstance(kind, StructType | ArrayType | MapType):
        return f.to_json(_rebuilt(value, kind, maps=True), _UTC)
    if isinstance(kind, BinaryType):
        return f.base64(value)
    if isinstance(kind, TimestampType | TimestampNTZType):
        return f.get_json_object(f.to_json(f.struct(value.alias("t")), _UTC), "$.t")
    return value.cast("string")


def _is_plain(kind: DataType) -> bool:
    """Whether Spark compares values of a type as they are."""
    if isinstance(kind, ArrayType):
        return _is_plain(kind.elementType)
    if isinstance(kind, StructType):
        return len(content_fields(kind)) == len(kind) and all(_is_plain(field.dataType) for field in kind)
    return not isinstance(kind, MapType)


def _rebuilt(value: Column, kind: DataType, *, maps: bool) -> Column:
    """A value with the maps in it sorted; as maps again, or as lists of their entries."""
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
