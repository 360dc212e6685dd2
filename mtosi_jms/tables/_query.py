"""SQL over the tables of a landing or of an ingest, by DuckDB, without Java.

The tables are views that read when the query does. The query itself may read no file and change none.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds

from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.inventory import MESSAGE, OBJECT_TYPES, class_for, load_stubs
from mtosi_jms.tables._read import read
from mtosi_jms.tables.files import folder_here, is_utf8
from mtosi_jms.tables.job import PARQUET, PREFIX, REPORT, format_of, recover
from mtosi_jms.tables.sql import duckdb_library

MEMORY: Final = "1GB"
"""What a query may hold in memory; it spills more into a temporary folder, up to `SPILL`."""
SPILL: Final = "20GB"
_WORD: Final = re.compile(r'"((?:[^"]|"")+)"|(\w+)')
_PLACE: Final = re.compile(r"^(LINE (\d+): )(.*)\n( *)\^", re.MULTILINE)
_UNKNOWN: Final = re.compile(r"Table with name \S+ does not exist!")
_LEDGER: Final = "LEDGER"
_REJECTS: Final = "REJECTS"


@dataclass(frozen=True)
class Answer:
    """The result of a query. `notes`: what to know about the landing: rejected files, incomplete sequences."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    notes: tuple[str, ...] = ()


@contextmanager
def query(source: str | Path, sql: str, *, stubs: Sequence[str] = (), memory: str = MEMORY) -> Iterator[Answer]:
    """Run one query over the tables of a landing, or of the folder that an ingest or another job has written.

    Args:
        source: the landing, or the folder with tables of Parquet: `objectType=X` of an ingest, `alarms` and `latest`,
            `nodes` and `edges`.
        sql: a SELECT in the SQL of DuckDB. Tables are object types (`ME`, `"nra.alm:AlarmType"`); a landing also has
            `MESSAGE`, `LEDGER` and `REJECTS`. Only the tables that it names are made.
        stubs: generated packages, for a landing with classes of one's own.
        memory: what the query may hold, as `512MB`; it spills the rest to a temporary folder.

    Raises MissingExtraError: DuckDB is not installed; ConfigError: the SQL is wrong, with its place, or asks for what a
    query may not do; MtosiError: a table cannot be read, or the query needs more memory and disk than it may have.
    """
    duckdb = duckdb_library()
    if not is_utf8(sql):
        raise ConfigError("SQL: the query is not UTF-8")
    made = _made(source)
    views, notes = _of_folder(made, _named(sql)) if made else _of_landing(source, _named(sql), stubs)
    with tempfile.TemporaryDirectory(prefix="mtosi-query-") as spill, duckdb.connect() as connection:
        try:
            for name, value in {
                "memory_limit": memory,
                "temp_directory": spill,
                "max_temp_directory_size": SPILL,
                "python_enable_replacements": False,
                "enable_external_access": False,
            }.items():
                connection.execute(f"SET {name} = {value!r}")
            for name, view in views.items():
                connection.register(name, view)
            connection.execute("SET lock_configuration = true")
            done: Any = connection.execute(sql)  # None where the text has no statement
            if done is None or not done.description:
                raise ConfigError("SQL: that is no query")
            yield Answer(tuple(column[0] for column in done.description), _rows(done), notes)
        except duckdb.Error as error:
            told = next((view.error for view in views.values() if getattr(view, "error", None)), None)
            if told is not None:
                raise told from error
            kind = MtosiError if isinstance(error, duckdb.OutOfMemoryException | duckdb.IOException) else ConfigError
            text = _plain(str(error), sql)
            if unknown := _UNKNOWN.search(text):  # DuckDB goes on with names of its own tables that are like it
                text = f"{text[: unknown.end()]} {_tables_of(made)}"
            raise kind(f"SQL: {text}") from error


def _rows(done: Any) -> Iterator[tuple[Any, ...]]:
    while rows := done.fetchmany(1_000):
        yield from rows


def _plain(text: str, sql: str) -> str:
    """Return an error of DuckDB in one line, with its place in the query."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    shown = " ".join(line for line in lines if not line.startswith("LINE ") and line.strip("^"))
    place = _PLACE.search(text)
    if place is None:
        return shown
    before, line, excerpt, marks = place.groups()
    column = len(marks) - len(before)
    whole = sql.splitlines()[int(line) - 1] if int(line) <= len(sql.splitlines()) else ""
    column += max(whole.find(excerpt.strip(".")), 0) - 3 * excerpt.startswith("...")
    return f"line {line}, column {column + 1}: {shown}"


def _named(sql: str) -> set[str]:
    """Return all words of a query, and what it has in quotes: the tables that it may mean."""
    return {quoted.replace('""', '"') or word for quoted, word in _WORD.findall(sql)}


def _tables_of(made: Iterable[str]) -> str:
    if made:
        return f"The tables are {', '.join(sorted(made))}"
    names = ", ".join((*OBJECT_TYPES, MESSAGE, _LEDGER, _REJECTS))
    return f"The tables of a landing are {names}; mtosi-jms alarms, topology and diff write others"


def _made(source: str | Path) -> dict[str, Path]:
    """Return the folders of the tables that ingest or another job has written, by their names; none: a landing."""
    if scheme_of(str(source)) not in ("", "file"):
        return {}
    folder = folder_here(source, "what query reads")
    recover(folder)
    tables = {path.name.removeprefix(PREFIX): path for path in folder.glob(f"{PREFIX}*")}
    if not tables and (folder / REPORT).is_dir():  # of another job: alarms, topology, diff
        tables = {path.parent.name: path.parent for path in folder.glob("[!_]*/*.parquet")}
    return tables


def _of_folder(tables: Mapping[str, Path], named: set[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    meant = {name: tables[name] for name in tables if name in named or name in {word.upper() for word in named}}
    for path in meant.values():
        if format_of(path) != PARQUET:
            raise ConfigError(f"{path} is a table of {format_of(path)}: query reads Parquet; Spark reads the others")
    return {name: ds.dataset(path, format="parquet", partitioning="hive") for name, path in meant.items()}, ()


def _of_landing(source: str | Path, named: set[str], stubs: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    load_stubs(stubs)
    words = {word.upper() for word in named}
    types: list[str] = [name for name in (*OBJECT_TYPES, MESSAGE) if name in words]
    types += sorted(name for name in named if ":" in name and _is_class(name))
    # A query sees all of its rows or none, so damage is looked for before it begins.
    first = read(source, types[0] if types else MESSAGE, verify="full", stubs=",".join(stubs))
    tables = [first, *(first.of_type(name) for name in types[1:])] if types else []
    views: dict[str, Any] = dict(zip(types, tables, strict=True))
    views |= {name: table for name, table in ((_LEDGER, first.ledger), (_REJECTS, first.rejects)) if name in words}
    incomplete = sum(not complete for complete in first.ledger.column("complete").to_pylist())
    counts = {"rejected files: SELECT * FROM REJECTS": first.rejects.num_rows}
    counts["incomplete sequences: SELECT * FROM LEDGER WHERE NOT complete"] = incomplete
    return views, tuple(f"{count:,} {what}" for what, count in counts.items() if count)


def _is_class(name: str) -> bool:
    try:
        class_for(name)
    except ConfigError:
        return False  # a text with a colon
    return True
