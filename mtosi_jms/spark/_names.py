"""Full names in columns: which columns hold them, and how they are written as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXTS = "array<string>"
_ESCAPES = (("%", "%25"), ("/", "%2F"), ("=", "%3D"))


def names_type(kind: Any) -> int:
    """What a column of a Spark type holds: 1 a full name in its steps, 2 a list of such names, 0 anything else."""
    if not isinstance(kind, StructType) or len(kind) != 1 or not isinstance(kind[0].dataType, ArrayType):
        return 0
    inner = kind[0].dataType.elementType
    if kind[0].name == "rdn" and isinstance(inner, StructType) and inner.names == ["type", "value"]:
        return 1
    return 2 if names_type(inner) == 1 else 0


def names_in(table: DataFrame, *columns: str) -> Column:
    """The full names in some columns of names, as one list of texts; empty where there are none."""
    return f.concat(f.array().cast(_TEXTS), *(_names(table, column) for column in columns))


def name_text(name: Column) -> Column:
    """A full name as text, written as `name_text` is; null where it has no step."""

    def step(rdn: Column) -> Column:
        return f.concat(_escaped(rdn["type"]), f.lit("="), _escaped(rdn["value"]))

    return f.when(f.size(name["rdn"]) > 0, f.array_join(f.transform(name["rdn"], step), "/"))


def last_step(name: Column) -> tuple[Column, Column]:
    """The type and the value of the last step of a full name given as text."""
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
