"""Filters of Spark's that decide about whole files, so that files without rows that could pass are never read.

What all rows of a message have in common is known when the landing is planned: the sequence, its completeness, the
header, the file, and of MESSAGE rows also kind, body element and size. A filter on such a column decides about a file.
It stays a filter of Spark's all the same: each row that is read is asked again, so nothing here can let a row through,
and a filter that is not understood just reads more.

`object_type` is no such column: a message may hold objects where its schema foresees none. Use the option `objectType`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.inventory.objects import ALL, MESSAGE, class_for
from mtosi_jms.spark.envelope import HEADER_COLUMNS
from mtosi_jms.spark.options import Mode, SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from mtosi_jms.spark.landing import PlannedFile

_OF_FILES: Final[Mapping[str, type]] = {
    "correlation_id": str,
    "batch_number": int,
    "end_of_reply": bool,
    "complete": bool,
    "source_file": str,
    **dict.fromkeys(HEADER_COLUMNS.values(), str),
}
_OF_MESSAGES: Final[Mapping[str, type]] = {"kind": str, "body_element": str, "size": int}
_FIELDS: Final = {column: field for field, column in HEADER_COLUMNS.items()}

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": operator.contains,
}
_ORDER: Final = frozenset({"GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"})
_OF_TEXT: Final = frozenset({"StringStartsWith", "StringEndsWith", "StringContains"})


@dataclass(frozen=True, slots=True)
class FileFilter:
    """What is asked of the rows of a file, all of it at once.

    Attributes:
        tests: our name of a column, and what Spark asks of it.
        keeps_rejects: a file that turns out to be damaged becomes a row in which all but the file is null.
    """

    tests: tuple[tuple[str, Filter], ...] = ()
    keeps_rejects: bool = False

    @property
    def wants_headers(self) -> bool:
        """Whether `needs` has use for headers."""
        return any(column in _FIELDS for column, _ in self.tests)

    def needs(self, file: PlannedFile, header: Mapping[str, str] | None) -> bool:
        """Whether rows of a file could pass.

        Args:
            file: the file.
            header: its header's fields by XML name; None where they are not at hand, so that they decide nothing.
        """
        if self.keeps_rejects and all(
            passes(test, file.path if column == "source_file" else None) for column, test in self.tests
        ):
            return True
        return all(
            (column in _FIELDS and header is None) or passes(test, _value(column, file, header or {}))
            for column, test in self.tests
        )


def file_filter(filters: Sequence[Filter], options: SourceOptions, columns: Sequence[str]) -> FileFilter:
    """Those of Spark's filters that decide about files.

    Args:
        filters: all must hold.
        options: in mode FAILFAST every file is read, and nothing decides.
        columns: of the rows.
    """
    if options.mode is Mode.FAILFAST:
        return FileFilter()
    known = _known(options.object_types)
    tests: list[tuple[str, Filter]] = []
    for asked in filters:
        path = _path(asked)
        column = known.get(path[0]) if len(path) == 1 else None
        if column is not None and _decides(asked, {**_OF_FILES, **_OF_MESSAGES}[column]):
            tests.append((column, asked))
    keeps = options.mode is Mode.PERMISSIVE and options.corrupt_column in columns
    return FileFilter(tuple(tests), keeps)


def _known(object_types: tuple[str, ...]) -> dict[str, str]:
    """Our columns that decide, by the names under which rows have them."""
    if object_types == (MESSAGE,):
        return {name: name for name in (*_OF_FILES, *_OF_MESSAGES)}
    from mtosi_jms.spark.columns import Struct
    from mtosi_jms.spark.rows import shown_names

    one = len(object_types) == 1 and object_types != (ALL,)
    fields = [field.name for field in Struct(class_for(object_types[0])).type] if one else []
    return {shown: own for own, shown in shown_names(fields).items() if own in _OF_FILES}


def _path(asked: Any) -> tuple[str, ...]:
    """The column that a filter asks about; empty for a filter of a kind that is not known."""
    name = type(asked).__name__
    if name == "Not":
        return _path(asked.child)
    known = name in _COMPARE or name in ("EqualNullSafe", "In", "IsNull", "IsNotNull")
    return tuple(asked.attribute) if known else ()


def _decides(asked: Any, kind: type) -> bool:
    """Whether Python compares here as Spark does: values of the column's own type, an order of numbers only."""
    name = type(asked).__name__
    if name == "Not":
        return _decides(asked.child, kind)
    if name in ("IsNull", "IsNotNull"):
        return True
    if (name in _ORDER and kind is not int) or (name in _OF_TEXT and kind is not str):
        return False
    values = asked.value if name == "In" else (asked.value,)
    return all(value is None or type(value) is kind for value in values)


def passes(asked: Any, value: Any) -> bool:
    """Whether a value passes a filter that decides; an unknown verdict, which null brings about, does not."""
    return _verdict(asked, value) is True


def _verdict(asked: Any, value: Any) -> bool | None:
    """SQL's three-valued verdict."""
    name = type(asked).__name__
    if name == "Not":
        inner = _verdict(asked.child, value)
        return None if inner is None else not inner
    if name in ("IsNull", "IsNotNull"):
        return (value is None) == (name == "IsNull")
    if name == "EqualNullSafe":
        return bool(value == asked.value)
    if value is None or (name != "In" and asked.value is None):
        return None
    if name == "In":
        return True if value in asked.value else None if None in asked.value else False
    return bool(_COMPARE[name](value, asked.value))


def _value(column: str, file: PlannedFile, header: Mapping[str, str]) -> Any:
    """What all rows of a file have in a column."""
    field = _FIELDS.get(column)
    if field is not None:
        return header.get(field)
    if column == "source_file":
        return file.path
    if column == "body_element":
        return file.body_tag or None
    return getattr(file, column)
