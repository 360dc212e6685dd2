"""A message selector as a condition on rows, with the same three values: true, false, and null for unknown.

    rows.where(selector_column("MTOSI_msgType = 'RESPONSE' AND MTOSI_batchSequenceNumber > 1", rows))

Spark's workers evaluate the selector itself, so rows are asked as messages are. A text column for a number or a boolean
of Table 2 is read as a number or boolean, as R15 requires (C62).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import functions as f
from pyspark.sql import types as t

from mtosi_jms.binding.table2 import restore, row_of
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import Long
from mtosi_jms.jms.selector import Selector, parse
from mtosi_jms.tables.columns import HEADER_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Columns: TypeAlias = Mapping[str, str] | Callable[[str], str | None]

PROPERTIES: Final = "properties"
"""The map or struct column with the values of names that have no column of their own."""

PROPERTY_COLUMNS: Final[Mapping[str, str]] = {
    **{f"MTOSI_{field}": column for field, column in HEADER_COLUMNS.items()},
    "MTOSI_batchSequenceNumber": "batch_number",
    "MTOSI_batchSequenceEndOfReply": "end_of_reply",
    "MTOSI_objectName": "object_name_text",
    "MTOSI_probableCause": "cause",
    "MTOSI_nativeProbableCause": "native_probable_cause",
    "MTOSI_perceivedSeverity": "perceived_severity",
    "MTOSI_isEdgePointRelated": "is_edge_point_related",
    "MTOSI_rootCauseAlarmIndication": "root_cause_alarm_indication",
    "MTOSI_acknowledgeIndication": "acknowledge_indication",
}
"""Properties of Table 2 and Table 4, and the columns of messages, objects and alarms that hold the same."""

_TEXTS: Final = (t.StringType, t.VarcharType, t.CharType)
_OTHERS: Final = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.BooleanType)


def selector_column(selector: Selector | str, rows: DataFrame | t.StructType, columns: Columns | None = None) -> Column:
    """Return a selector as a boolean column.

    Args:
        selector: a parsed selector, or its text.
        columns: a mapping or a function from an identifier to the column with its value; `struct.field` and `map.key`
            are allowed. If it gives None, the value is taken from the first of these that exists: a column with the
            name of the identifier; the column of messages, objects or alarms for this property; a key or field of a
            column `properties`.

    Returns:
        True, false or null for each row, as `Selector.matches` gives True, False or None for the properties of the row.
        Text that is not the number or boolean that Table 2 requires is null.

    Raises:
        SelectorError: the text is not a selector.
        ConfigError: an identifier without a column, or a column of a type that no property has.
    """
    parsed = parse(selector) if isinstance(selector, str) else selector
    schema = rows if isinstance(rows, t.StructType) else rows.schema
    names = sorted(parsed.identifiers)
    found = [_found(name, _path(name, schema, columns), schema) for name in names]
    if not found:
        return f.lit(parsed.matches({})).cast("boolean")
    longs = frozenset(name for name, (_, kind) in zip(names, found, strict=True) if isinstance(kind, t.LongType))
    verdict = f.udf(_Verdict(parsed, tuple(names), longs), "boolean", useArrow=False)
    return verdict(*(column for column, _ in found))


def _found(name: str, path: Sequence[str], schema: t.StructType) -> tuple[Column, t.DataType]:
    column: Column | None = None
    at: t.DataType = schema
    for step in path:
        if isinstance(at, t.StructType) and step in at.names:
            at = at[step].dataType
            column = f.col(f"`{step.replace('`', '``')}`") if column is None else column.getField(step)
        elif isinstance(at, t.MapType) and column is not None:
            at, column = at.valueType, f.try_element_at(column, f.lit(step))
        else:
            raise ConfigError(f"{name}: there is no column {'.'.join(path)}")
    if column is None or isinstance(at, t.NullType):
        return f.lit(None).cast("string"), at
    if not isinstance(at, (*_TEXTS, *_OTHERS)):
        raise ConfigError(f"{name}: the column {'.'.join(path)} is {at.simpleString()}, which no property is")
    return column, at


def _path(name: str, schema: t.StructType, columns: Columns | None) -> Sequence[str]:
    column = columns(name) if callable(columns) else columns.get(name) if columns is not None else None
    if column is not None:
        return [column] if column in schema.names else column.split(".")
    for own in (name, PROPERTY_COLUMNS.get(name)):
        if own in schema.names:
            return [str(own)]
    if PROPERTIES in schema.names:
        return [PROPERTIES, name]
    raise ConfigError(f"{name}: no column is known to hold it; name one in `columns`, or leave it out")


@dataclass(frozen=True)
class _Verdict:
    """Evaluates a selector for the values of its identifiers; `longs` are those of 64 bits."""

    selector: Selector
    names: tuple[str, ...]
    longs: frozenset[str]

    def __call__(self, *values: Any) -> bool | None:
        return self.selector.matches(
            {name: self._property(name, value) for name, value in zip(self.names, values, strict=True)}
        )

    def _property(self, name: str, value: Any) -> Any:
        row = row_of(name)
        if value is not None and row is not None and row.kind is not str:
            value = restore(name, str(value) if name in self.longs else value)
            return value if type(value) is row.kind else None
        return Long(value) if name in self.longs and value is not None else value
