"""Conditions in SQL on rows, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from mtosi_jms.errors import ConfigError, MissingExtraError

_NUMBER: Final = "mtosi_number"


def duckdb_library() -> Any:
    """Return DuckDB. Raises MissingExtraError: it is not installed."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("duckdb", "tables") from error
    return duckdb


class Condition:
    """Selects rows of tables.

    Args:
        text: in the SQL of DuckDB; empty for all rows.
    """

    def __init__(self, text: str) -> None:
        """Prepare to select. Raises MissingExtraError: there is a text, and DuckDB is not installed."""
        self._text = text
        self._connection = duckdb_library().connect(config={"enable_external_access": "false"}) if text else None

    def check(self, schema: pa.Schema) -> None:
        """Check that it fits the columns. Raises ConfigError: it does not."""
        if self._text:
            ((_, kind, *_),) = self._rows(pa.Table.from_pylist([], schema), "DESCRIBE SELECT ({})")
            if kind != "BOOLEAN":
                raise ConfigError(f"where {self._text!r}: it is a {kind}, not true or false")

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return those of some rows for which it holds. Raises ConfigError: it does not fit."""
        if not self._text:
            return rows
        numbers = pa.array(range(rows.num_rows), pa.int64())
        numbered = pa.Table.from_batches([rows]).append_column(_NUMBER, numbers)
        kept = self._rows(numbered, f"SELECT {_NUMBER}", " WHERE ({}) ORDER BY 1")
        return rows.take(pa.array([number for (number,) in kept], pa.int64()))

    def each(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield batches with the rows for which it holds. Raises ConfigError: it does not fit."""
        self.check(schema)
        yield from map(self.of, batches)

    def _rows(self, table: pa.Table, select: str, where: str = "") -> list[tuple[Any, ...]]:
        connection: Any = self._connection
        condition = f"{self._text}\n"  # the text may end in a comment
        try:
            connection.register("mtosi_rows", table)
            query = f"{select.format(condition)} FROM mtosi_rows{where.format(condition)}"
            rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        except duckdb_library().Error as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise ConfigError(f"where {self._text!r}: {reason}") from error
        return rows
