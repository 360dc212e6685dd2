"""SQL functions for envelopes in any column, from Kafka, a Delta table or files, in batches and in streams.

    register_functions(spark)
    spark.sql("SELECT m.offset, o.name_text FROM messages m, LATERAL mtosi_objects(m.value, 'ME') o")

| function | gives |
|---|---|
| `mtosi_header(body)` | a struct with the fields of the header; null if `body` is not an envelope |
| `mtosi_error(body)` | why `body` is not an envelope, as `line: reason`; null for an envelope |
| `mtosi_objects(body, type[, columns])` | a table with the rows that `parse_messages` gives |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from mtosi_jms.errors import ConfigError, XmlError
from mtosi_jms.spark._first_line import error_first
from mtosi_jms.spark._frames import envelope_bytes
from mtosi_jms.tables.columns import HEADER, MESSAGES, SEQUENCE, Message, full_schema
from mtosi_jms.tables.envelope import envelope_facts, reject_of
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.reader import reader_for
from mtosi_jms.xmlbind import parse_xml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Body = str | bytes | bytearray | None
"""A value of a column of envelopes."""

_PREFIX: Final = "header_"
_SHOWN: Final = (*MESSAGES[:2], *(column for column in SEQUENCE if column.name != "complete"), *HEADER)
_HEADER: Final = pa.struct([(column.name.removeprefix(_PREFIX), column.type) for column in _SHOWN])


def register_functions(spark: SparkSession) -> None:
    """Register `mtosi_header`, `mtosi_error` and `mtosi_objects`. Raises ConfigError: PySpark is too old."""
    make = getattr(f, "arrow_udf", None)
    if make is None:
        raise ConfigError("register_functions() requires PySpark 4.1 or later")
    header = StructType(from_arrow_schema(pa.schema(list(_HEADER))).fields)
    spark.udf.register("mtosi_header", make(header_of, header))
    spark.udf.register("mtosi_error", make(error_of, "string"))
    spark.udtf.register("mtosi_objects", f.udtf(Objects, useArrow=True))  # type: ignore[arg-type]


def header_of(bodies: pa.Array) -> pa.Array:
    """Compute `mtosi_header` for a batch."""
    return pa.array(map(_header, bodies.to_pylist()), type=_HEADER)


def _header(body: Body) -> dict[str, Any] | None:
    try:
        message = Message(envelope_facts(parse_xml(envelope_bytes(body))))
    except XmlError:
        return None
    return {column.name.removeprefix(_PREFIX): column.value(message) for column in _SHOWN}


def error_of(bodies: pa.Array) -> pa.Array:
    """Compute `mtosi_error` for a batch."""
    return pa.array(map(_error, bodies.to_pylist()), type=pa.string())


def _error(body: Body) -> str | None:
    data = envelope_bytes(body)
    try:
        envelope_facts(parse_xml(data))
    except XmlError as error:
        return str(reject_of(error, "", data))
    return None


@dataclass
class Analyzed(AnalyzeResult):
    """The columns of a call of `mtosi_objects`, and the options for reading its rows."""

    given: dict[str, str] = field(default_factory=dict)


class Objects:
    """The table function `mtosi_objects`. Its columns depend on `type` and `columns`, so both must be literals."""

    def __init__(self, analyzed: Analyzed) -> None:
        options = SourceOptions.parse(analyzed.given)
        self._reader = reader_for(options, full_schema(options))

    @staticmethod
    def analyze(body: AnalyzeArgument, type: AnalyzeArgument, columns: AnalyzeArgument | None = None) -> Analyzed:
        """Return the columns of a call. Raises ConfigError: a type, a column or an argument is wrong."""
        with error_first():
            return _analyzed(type, columns)

    def eval(self, body: Body, type: str, columns: str | None = None) -> Iterator[tuple[Any, ...]]:
        try:
            self._reader.message(envelope_bytes(body))
        except XmlError:
            return
        if self._reader.rows:
            for row in self._reader.flush().to_pylist(maps_as_pydicts="lossy"):
                yield tuple(row.values())


def _literal(name: str, argument: AnalyzeArgument) -> str:
    if not argument.isConstantExpression or not isinstance(argument.value, str):
        raise ConfigError(f"mtosi_objects: {name} must be a literal text, as 'ME'")
    return argument.value


def _analyzed(type: AnalyzeArgument, columns: AnalyzeArgument | None) -> Analyzed:
    given = {"path": "-", "mode": "DROPMALFORMED", "objectType": _literal("type", type)}
    if columns is not None:
        given["columns"] = _literal("columns", columns)
    return Analyzed(from_arrow_schema(full_schema(SourceOptions.parse(given))), given=given)
