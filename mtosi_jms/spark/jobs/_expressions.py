"""Spark columns in a form that Spark can compare, at any depth.

Maps have no order, so they are compared as sorted entries. A table has open content twice: as a map of texts, and as
the received XML in a column `..._raw`. The XML may differ in prefixes and white space without meaning, so only the map
is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import Column


def comparable(value: Column, kind: DataType) -> Column:
    """Return a value in a form that Spark can compare, with maps as sorted entries."""
    if _is_plain(kind):
        return value
    if isinstance(kind, MapType):
        return f.array_sort(f.transform(f.map_entries(value), lambda entry: _entry(entry, kind)))
    if isinstance(kind, ArrayType):
        return f.transform(value, lambda item: comparable(item, kind.elementType))
    assert isinstance(kind, StructType)  # noqa: S101 - what is not plain is one of these
    fields = [
        comparable(value.getField(field.name), field.dataType).alias(field.name) for field in _content_fields(kind)
    ]
    return f.when(value.isNotNull(), f.struct(*fields)) if fields else value.isNotNull()


def _content_fields(kind: StructType) -> list[StructField]:
    """Return the fields of a struct, without the `..._raw` columns that hold the XML of open content."""
    raw = {f"{field.name}_raw" for field in kind if isinstance(field.dataType, MapType)}
    return [field for field in kind if field.name not in raw]


def _is_plain(kind: DataType) -> bool:
    """Whether Spark can compare values of a type as they are."""
    if isinstance(kind, ArrayType):
        return _is_plain(kind.elementType)
    if isinstance(kind, StructType):
        return len(_content_fields(kind)) == len(kind) and all(_is_plain(field.dataType) for field in kind)
    return not isinstance(kind, MapType)


def _entry(entry: Column, kind: MapType) -> Column:
    inner = comparable(entry.getField("value"), kind.valueType)
    return f.struct(entry.getField("key").alias("key"), inner.alias("value"))
