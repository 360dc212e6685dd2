"""Tables that are made from others in SQL: by DuckDB in this process, or by Spark; a text that both understand.

Names of columns that a user's table may have are never in the text, because the two quote them differently. Conditions
on rows (`where`) and tables as JSON or CSV are here, too.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import parquet

from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError
from mtosi_jms.report import Report
from mtosi_jms.tables.job import CSV, PARQUET, Job, JobResult, Staging, disk_errors, staging

if TYPE_CHECKING:
    from pyarrow import RecordBatch, RecordBatchReader, Schema

__all__ = ["ROW", "Batches", "Sql", "SqlJob", "as_text"]


ROW: Final = "mtosi_row"
"""The alias under which `Sql.row` and `Sql.json` find the row of a table."""
MEMORY: Final = "400MB"
"""What DuckDB may hold for a job; it spills more into the staging folder."""
_ROWS: Final = 10_000
_PARQUET: Final = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))

T = TypeVar("T")
Batches = Callable[[Iterable["RecordBatch"]], Iterator["RecordBatch"]]
"""Makes rows of a table into rows of another one."""


class Sql(Protocol[T]):
    """An engine for tables of type `T`. `row`: in SQL: the row called `ROW` as a struct. `json`: in SQL: the same as a
    text, which differs if and only if a value does."""

    row: str
    json: str

    def schema(self, table: T) -> Schema: ...

    def select(self, table: T, columns: Sequence[str], **constants: str) -> T:
        """Return some columns of a table, and others that have one value in all rows."""
        ...

    def sql(self, text: str, **tables: T) -> T:
        """Return what a query gives. Tables are in its text as `{name}`."""
        ...

    def each(self, table: T, make: Batches, schema: Schema) -> T:
        """Return the rows, of this schema, that a function makes of those of a table."""
        ...

    def rows(self, table: T) -> Sequence[Any]:
        """Return the rows of a small table as tuples."""
        ...


class SqlJob(Job, ABC, Generic[T]):
    """A job that makes its tables in SQL. `sql`: the engine, while the job works."""

    sql: Sql[T]

    def convert(self, paths: Sequence[Path]) -> None:
        """Replace Parquet files by the same rows in the format of the job."""
        for path in paths:
            with disk_errors(path):
                as_text(path, self._format)

    def finish(self, staged: Staging, result: JobResult, page: Report, tables: Sequence[str] | None = None) -> None:
        """Write the tables in the format of the job, then the report, and replace the earlier result."""
        if self._format != PARQUET:
            folders = [folder for pattern in self._tables for folder in staged.folder.glob(pattern)]
            self.convert([path for folder in folders for path in sorted(folder.rglob("*.parquet"))])
        super().finish(staged, result, page, tables)

    @abstractmethod
    def write(self, table: T, folder: Path, *, filtered: bool = True, like: T | None = None) -> T:
        """Write a table as Parquet, and return it as it was written. `filtered`: whether to write only the rows for
        which the condition of the job holds. `like`: a written table with the same columns, for names in nested types
        that an engine may change."""


class DuckDb:
    """`Sql` by DuckDB; a table is the name of a view. `connection`: of DuckDB. `scratch`: a folder for tables that are
    needed meanwhile."""

    row: str = ROW
    json: str = f"to_json({ROW})"

    def __init__(self, connection: Any, scratch: Path) -> None:
        self._connection = connection
        self._scratch = scratch
        self._schemas: dict[str, Schema] = {}
        self._count = 0

    def parquet(self, folder: Path) -> str:
        """Return a Parquet table."""
        name = self._name()
        table = ds.dataset(folder, format=_PARQUET, partitioning="hive")
        self._schemas[name] = table.schema
        self._connection.register(name, table)
        return name

    def schema(self, table: str) -> Schema:
        return self._schemas.get(table) or self.reader(f"{table} LIMIT 0").schema

    def select(self, table: str, columns: Sequence[str], **constants: str) -> str:
        quoted = ['"{}"'.format(name.replace('"', '""')) for name in columns]
        quoted += ["'{}' AS {}".format(value.replace("'", "''"), name) for name, value in constants.items()]
        return self._view(f"SELECT {', '.join(quoted)} FROM {table}")  # noqa: S608 - quoted

    def sql(self, text: str, **tables: str) -> str:
        return self._view(text.format(**tables))

    def each(self, table: str, make: Batches, schema: Schema) -> str:
        folder = self._scratch / self._name()
        write_batches(make(self.reader(table)), schema, folder)
        return self.parquet(folder)

    def rows(self, table: str) -> Sequence[Any]:
        rows: Sequence[Any] = self._connection.sql(f"FROM {table}").fetchall()
        return rows

    def reader(self, table: str) -> RecordBatchReader:
        """Read a table batch by batch."""
        query = self._connection.sql(f"FROM {table}")
        # The method was renamed in DuckDB 1.5.
        read = getattr(query, "to_arrow_reader", None) or query.fetch_arrow_reader
        reader: RecordBatchReader = read(_ROWS)
        return reader

    def _view(self, text: str) -> str:
        name = self._name()
        self._connection.execute(f"CREATE TEMP VIEW {name} AS {text}")
        return name

    def _name(self) -> str:
        self._count += 1
        return f"mtosi_{self._count}"


def write_batches(rows: Iterable[RecordBatch], schema: Schema, folder: Path) -> None:
    """Write a Parquet table of one file into a new folder."""
    folder.mkdir(parents=True)
    with disk_errors(folder), parquet.ParquetWriter(folder / "part-0.parquet", schema) as file:
        for batch in _readable(rows):
            file.write(batch)


def _readable(rows: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Yield rows; what Arrow and DuckDB raise while they are read is no error of the disk that they are written to."""
    try:
        yield from rows
    except (OSError, pa.ArrowException) as error:
        raise MtosiError(f"tables cannot be read: {' '.join(str(error).split())}") from error


class LocalJob(SqlJob[str]):
    """One run of a job that makes its tables by DuckDB."""

    sql: DuckDb

    @contextmanager
    def working(self) -> Iterator[Staging]:
        """Provide a staging folder, and `sql`. Raises MissingExtraError: DuckDB is not installed; MtosiError: DuckDB
        fails; the text is one line."""
        duckdb = duckdb_library()
        with staging(self.out) as staged:
            scratch = staged.folder / "scratch"
            scratch.mkdir()
            settings: Any = {"memory_limit": MEMORY, "temp_directory": str(scratch / "spill")}
            try:
                with duckdb.connect(config=settings) as connection:
                    self.sql = DuckDb(connection, scratch)
                    yield staged
            except (duckdb.Error, pa.ArrowException) as error:
                raise MtosiError(f"DuckDB: {' '.join(str(error).split())}") from error

    def write(self, table: str, folder: Path, *, filtered: bool = True, like: str | None = None) -> str:
        schema = self.sql.schema(like or table)
        rows = (pa.Table.from_batches([batch]).cast(schema).to_batches() for batch in self.sql.reader(table))
        condition = Condition(self._where if filtered else "")
        write_batches(condition.each(chain.from_iterable(rows), schema), schema, folder)
        return self.sql.parquet(folder)


_NUMBER: Final = "mtosi_number"


def duckdb_library() -> Any:
    """Return DuckDB. Raises MissingExtraError: it is not installed."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("duckdb", "tables") from error
    return duckdb


class Condition:
    """Selects rows of tables. `text`: in the SQL of DuckDB; empty for all rows."""

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


_FORMULA: Final = re.compile(r"(?=\s*[=+\-@]|[\t\r\n])")
"""A spreadsheet runs a text that begins like this; after an apostrophe it is text."""


def as_text(path: Path, format: str) -> None:
    """Replace a Parquet file by the same rows as `json`, an object a line without nulls, or `csv` with a header."""
    with parquet.ParquetFile(path) as file, path.with_suffix(f".{format}").open("w", encoding="utf-8") as text:
        if format == CSV:
            text.write(",".join(map(_cell, file.schema_arrow.names)) + "\n")
        for batch in file.iter_batches(batch_size=1_000):
            for row in pa.Table.from_batches([batch]).to_pylist(maps_as_pydicts="lossy"):
                text.write((",".join(map(_cell, row.values())) if format == CSV else _json(row)) + "\n")
    path.unlink()


def _cell(value: Any) -> str:
    if isinstance(value, list | dict):
        value = _json(value)
    elif not isinstance(value, str):
        return "" if value is None else str(_plain(value)).lower() if isinstance(value, bool) else str(_plain(value))
    text = f"'{value}" if _FORMULA.match(value) else value
    return '"{}"'.format(text.replace('"', '""'))


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(held) for name, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_plain(held) for held in value]
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
