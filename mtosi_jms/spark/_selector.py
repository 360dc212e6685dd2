"""A message selector as a condition on rows, with the same three values: true, false, and null for unknown.

    rows.where(selector_column("MTOSI_msgType = 'RESPONSE' AND MTOSI_batchSequenceNumber > 1", rows))

The result of a comparison depends on the types of both sides, so the types of the columns must be known; they come from
the schema. A text column for a number or a boolean of Table 2 is read as a number or boolean, as R15 requires (C62).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import functions as f
from pyspark.sql import types as t

from mtosi_jms.binding.table2 import BY_PROPERTY, MAX_INTEGER, ROWS
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms.message import INT_MAX, INT_MIN, LONG_MIN, Long
from mtosi_jms.jms.selector import Selector, calculation, parse
from mtosi_jms.jms.selector.nodes import (
    Arithmetic,
    ArithmeticSign,
    Between,
    Comparison,
    ComparisonSign,
    Identifier,
    In,
    IsNull,
    Junction,
    Like,
    Literal,
    Node,
    Not,
    Pattern,
    Sign,
    SignWord,
)
from mtosi_jms.tables.columns import HEADER_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Columns: TypeAlias = Mapping[str, str] | Callable[[str], str | None]

PROPERTIES: Final = "properties"
"""The map or struct column with the values of names that have no column of their own."""

_COLUMNS: Final = {
    **HEADER_COLUMNS,
    "batchSequenceNumber": "batch_number",
    "batchSequenceEndOfReply": "end_of_reply",
}
PROPERTY_COLUMNS: Final[Mapping[str, str]] = {
    **{row.property: _COLUMNS[row.name] for row in ROWS if row.name in _COLUMNS},
    "MTOSI_objectName": "object_name_text",
    "MTOSI_probableCause": "cause",
    "MTOSI_nativeProbableCause": "native_probable_cause",
    "MTOSI_perceivedSeverity": "perceived_severity",
    "MTOSI_isEdgePointRelated": "is_edge_point_related",
    "MTOSI_rootCauseAlarmIndication": "root_cause_alarm_indication",
    "MTOSI_acknowledgeIndication": "acknowledge_indication",
}
"""Properties of Table 2 and Table 4, and the columns of messages, objects and alarms that hold the same."""

_MOST: Final = 5000


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
        ConfigError: an identifier without a column, a column of a type that no property has, or arithmetic that is too
            large for a query.
    """
    tree = (parse(selector) if isinstance(selector, str) else selector).tree
    if tree is None:
        return f.lit(True)
    schema = rows if isinstance(rows, t.StructType) else rows.schema
    return _Translator(_Names(schema, columns)).condition(tree)


class _Kind(enum.Enum):
    TEXT = "string"
    INT = "int"
    LONG = "bigint"
    DOUBLE = "double"
    BOOL = "boolean"
    UNLIKE = "like nothing"


_WHOLE: Final = frozenset({_Kind.INT, _Kind.LONG})
_NUMBERS: Final = _WHOLE | {_Kind.DOUBLE}
_TYPES: Final[tuple[tuple[tuple[type[t.DataType], ...], _Kind], ...]] = (
    ((t.StringType, t.VarcharType, t.CharType), _Kind.TEXT),
    ((t.ByteType, t.ShortType, t.IntegerType), _Kind.INT),
    ((t.LongType,), _Kind.LONG),
    ((t.FloatType, t.DoubleType), _Kind.DOUBLE),
    ((t.BooleanType,), _Kind.BOOL),
    ((t.NullType,), _Kind.UNLIKE),
)


@dataclass(frozen=True, slots=True)
class _Value:
    """An operand. Whole numbers are bigint columns, whatever their type in Java.

    Attributes:
        column: its value; for UNLIKE it only matters whether the value is null.
        size: number of parts of the column expression; a part that occurs several times counts each time.
    """

    kind: _Kind
    column: Column
    literal: int | float | None = None
    size: int = 1


class _Names:
    """Finds the columns with the values of identifiers."""

    def __init__(self, schema: t.StructType, columns: Columns | None) -> None:
        self._schema = schema
        self._columns = columns

    def value(self, name: str) -> _Value:
        column, kind = self._found(name)
        row = BY_PROPERTY.get(name)
        if row is None or row.kind is str:
            pass
        elif row.kind is int and kind in (_Kind.TEXT, _Kind.LONG):
            number = f.trim(column).try_cast("bigint") if kind is _Kind.TEXT else column
            return _Value(_Kind.INT, f.when(number.between(0, MAX_INTEGER), number))
        elif row.kind is bool and kind is _Kind.TEXT:
            text = f.lower(f.trim(column))
            return _Value(_Kind.BOOL, f.when(text.isin("true", "1"), True).when(text.isin("false", "0"), False))
        return _Value(
            kind, column.cast(_Kind.LONG.value if kind in _WHOLE else kind.value) if kind in _NUMBERS else column
        )

    def _found(self, name: str) -> tuple[Column, _Kind]:
        path = self._path(name)
        column: Column | None = None
        at: t.DataType = self._schema
        for step in path:
            if isinstance(at, t.StructType) and step in at.names:
                at = at[step].dataType
                column = f.col(f"`{step.replace('`', '``')}`") if column is None else column.getField(step)
            elif isinstance(at, t.MapType) and column is not None:
                at, column = at.valueType, f.try_element_at(column, f.lit(step))
            else:
                raise ConfigError(f"{name}: there is no column {'.'.join(path)}")
        kind = next((kind for types, kind in _TYPES if isinstance(at, types)), None)
        if kind is None or column is None:
            raise ConfigError(f"{name}: the column {'.'.join(path)} is {at.simpleString()}, which no property is")
        return column, kind

    def _path(self, name: str) -> Sequence[str]:
        """Return the path from the row to the value."""
        given = self._columns
        column = given(name) if callable(given) else given.get(name) if given is not None else None
        if column is not None:
            return [column] if column in self._schema.names else column.split(".")
        for own in (name, PROPERTY_COLUMNS.get(name)):
            if own in self._schema.names:
                return [str(own)]
        if PROPERTIES in self._schema.names:
            return [PROPERTIES, name]
        raise ConfigError(f"{name}: no column is known to hold it; name one in `columns`, or leave it out")


class _Translator:
    def __init__(self, names: _Names) -> None:
        self._names = names

    def condition(self, node: Node) -> Column:
        match node:
            case Junction(word, terms):
                return _joined(word, [self.condition(term) for term in terms])
            case Not(operand):
                return ~self.condition(operand)
            case Comparison(sign, left, right):
                return _compared(sign, self.value(left), self.value(right))
            case Between():
                return self._between(node)
            case Like() | In() | IsNull():
                return self._predicate(node)
            case _:
                value = self.value(node)
                return value.column if value.kind is _Kind.BOOL else _unlike(value)

    def value(self, node: Node) -> _Value:
        match node:
            case Identifier(name):
                return self._names.value(name)
            case Literal(literal):
                return _literal(literal)
            case Sign(sign, operand):
                return _signed(sign, self.value(operand))
            case Arithmetic(sign, left, right):
                return _calculated(sign, self.value(left), self.value(right))
            case _:
                return _Value(_Kind.BOOL, self.condition(node))

    def _between(self, node: Between) -> Column:
        operand, low, high = self.value(node.operand), self.value(node.low), self.value(node.high)
        if node.negated:
            return _compared("<", operand, low) | _compared(">", operand, high)
        return _compared(">=", operand, low) & _compared("<=", operand, high)

    def _predicate(self, node: Like | In | IsNull) -> Column:
        value = self._names.value(node.identifier.name)
        if isinstance(node, IsNull):
            found = value.column.isNull()
        elif value.kind is not _Kind.TEXT:
            found = _unlike(value)
        elif isinstance(node, Like):
            found = value.column.like(_pattern(node.pattern))
        else:
            found = value.column.isin(list(node.values))
        return ~found if node.negated else found


def _unlike(*values: _Value) -> Column:
    """Return false, or null if one of the values is null."""
    return functools.reduce(lambda one, other: one | other, (value.column.isNull() for value in values)) & f.lit(
        None
    ).cast("boolean")


def _joined(word: str, terms: list[Column]) -> Column:
    """Join terms in a balanced tree, so that thousands of terms do not make an expression thousands of levels deep."""
    while len(terms) > 1:
        pairs = [terms[at : at + 2] for at in range(0, len(terms), 2)]
        terms = [
            pair[0] if len(pair) == 1 else pair[0] & pair[1] if word == "AND" else pair[0] | pair[1] for pair in pairs
        ]
    return terms[0]


def _pattern(pattern: Pattern) -> str:
    """Return the pattern with Spark's escape character."""
    return "%".join(
        "".join("_" if one is None else f"\\{one}" if one in "%_\\" else one for one in segment)
        for segment in pattern.segments()
    )


def _literal(value: str | float) -> _Value:
    if isinstance(value, str):
        return _Value(_Kind.TEXT, f.lit(value))
    if isinstance(value, bool):
        return _Value(_Kind.BOOL, f.lit(value))
    if isinstance(value, int):
        wide = isinstance(value, Long) or not INT_MIN <= value <= INT_MAX
        return _Value(_Kind.LONG if wide else _Kind.INT, f.lit(int(value)).cast("bigint"), value)
    return _Value(_Kind.DOUBLE, f.lit(value), value)


_SIGNS: Final[dict[ComparisonSign, Callable[[Column, Column], Column]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _compared(sign: ComparisonSign, left: _Value, right: _Value) -> Column:
    compare = _SIGNS[sign]
    if left.kind in _NUMBERS and right.kind in _NUMBERS:
        if left.kind is not _Kind.DOUBLE and right.kind is not _Kind.DOUBLE:
            return compare(left.column, right.column)
        return _compared_doubles(sign, left, right)
    if left.kind is right.kind and left.kind in (_Kind.TEXT, _Kind.BOOL) and sign in ("=", "<>"):
        return compare(left.column, right.column)
    return _unlike(left, right)


def _compared_doubles(sign: ComparisonSign, left: _Value, right: _Value) -> Column:
    """Compare as Java does: NaN equals nothing. For Spark, NaN equals itself and is larger than all other values."""
    verdict = _SIGNS[sign](left.column.cast("double"), right.column.cast("double"))
    doubtful = [f.isnan(one.column) for one in (left, right) if one.kind is _Kind.DOUBLE and one.literal is None]
    if not doubtful:
        return verdict
    unlike = _unlike(left, right)
    return f.when(_joined("OR", doubtful), ~unlike if sign == "<>" else unlike).otherwise(verdict)


def _signed(sign: SignWord, value: _Value) -> _Value:
    if value.kind not in _NUMBERS:
        return _Value(_Kind.UNLIKE, value.column)
    if sign == "+":
        return value
    if value.kind is _Kind.DOUBLE:  # keeps the sign of zero, which 0 - x would lose
        return _Value(_Kind.DOUBLE, -value.column, size=value.size)
    return _calculated("-", _literal(0), value)


def _calculated(sign: ArithmeticSign, left: _Value, right: _Value) -> _Value:
    if not {left.kind, right.kind} <= _NUMBERS:
        return _Value(_Kind.UNLIKE, ~_unlike(left, right))
    if left.literal is not None and right.literal is not None:
        return _folded(sign, left, right)
    copies = 4 if sign == "/" else 1
    size = left.size + copies * right.size
    if size > _MOST:
        raise ConfigError("arithmetic with so many divisions in each other is too much for a query")
    if _Kind.DOUBLE in (left.kind, right.kind):
        return _Value(_Kind.DOUBLE, _double_result(sign, left, right), size=size)
    kind = _Kind.LONG if _Kind.LONG in (left.kind, right.kind) else _Kind.INT
    return _Value(kind, _whole_result(sign, left, right, kind), size=size)


def _folded(sign: str, left: _Value, right: _Value) -> _Value:
    value = calculation(sign)(left.literal, right.literal)
    return _Value(_Kind.INT, f.lit(None).cast("bigint")) if value is None else _literal(value)


_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}


def _double_result(sign: str, left: _Value, right: _Value) -> Column:
    first, second = left.column.cast("double"), right.column.cast("double")
    if sign != "/":
        result: Column = _OPERATIONS[sign](first, second)
        return result
    if right.literal:
        return first / second
    # Division by zero gives infinity, with the signs of both, or NaN. Spark would raise an error or give null.
    infinite = f.when(second.cast("string").startswith("-"), float("-inf")).otherwise(float("inf"))
    return f.when(second == 0.0, first * infinite).otherwise(first / f.nullif(second, f.lit(0.0)))


def _whole_result(sign: str, left: _Value, right: _Value, kind: _Kind) -> Column:
    """Return a result that wraps around at 32 or 64 bits. A wider type computes it, since Spark raises on overflow."""
    width = "bigint" if kind is _Kind.INT else "decimal(38,0)"
    first, second = left.column.cast(width), right.column.cast(width)
    if sign == "/":
        result = f.call_function("div", first, f.nullif(second, f.lit(0).cast(width)))
    else:
        result = _OPERATIONS[sign](first, second)
    if kind is _Kind.INT:
        return result.bitwiseAND(f.lit(2**32 - 1)).bitwiseXOR(f.lit(2**31)) - f.lit(2**31)
    if sign == "/":  # only one quotient does not fit, and Spark cuts it to 64 bits
        return result.cast("bigint")
    shift = f.lit(Decimal(-LONG_MIN))
    return (f.pmod(result + shift, f.lit(Decimal(2**64))) - shift).cast("bigint")
