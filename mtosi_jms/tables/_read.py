"""`read`: a landing as one Arrow table. Rows, columns and options are those of the Spark source `mtosi`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.tables.columns import LEDGER, folder_values, full_schema, schema_of, values_of
from mtosi_jms.tables.files import Reject
from mtosi_jms.tables.landing import PlannedFile, log, plan_to_read, readable
from mtosi_jms.tables.options import Mode, SourceOptions, Verify
from mtosi_jms.tables.reader import check_readable, reader_for

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.compute as pc
    from pyarrow import RecordBatch, RecordBatchReader, Schema, Table

Landing = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A spool, a folder, a file or a glob, or several of them."""

Values = tuple[tuple[str, "str | None"], ...]
"""Columns that come from folders, with their values."""

REJECTS: Final = pa.schema([("file", pa.string()), ("line", pa.int64()), ("reason", pa.string())])


def read(
    landing: Landing,
    object_type: str = "ME",
    *,
    filter: pc.Expression | None = None,
    allow_empty: bool = False,
    **options: object,
) -> LandingTable:
    """Plan a landing, and return its table. Rows are read when they are asked for.

    Args:
        landing: a spool, a folder of envelopes, a file or a glob, or several of these.
        object_type: as the option `objectType` of the Spark source.
        filter: a condition on the columns of the table; rows for which it is not true are left out. Files in folders
            that it excludes (`folderColumns`) are not read.
        allow_empty: whether a landing without a readable message is a table without rows; by default it is an error.
        options: those of the Spark source, as text or as Python values: `onIncomplete="fail"`, `columns=["name_text"]`,
            `folderColumns=["day"]`, `recursiveFileLookup=False`. Case and underscores do not count: `on_incomplete` is
            the same.

    Raises:
        ConfigError: an option, a column or an object type that does not exist, or a value that does not fit.
        SpoolError: the landing does not exist or cannot be read, or has no readable message.
        ExchangeError: `onIncomplete=fail`, and a sequence is incomplete.
        MtosiError: `mode=FAILFAST`, and a file is rejected.
    """
    return LandingTable(_settings(landing, object_type, options), filter, allow_empty=allow_empty)


def _settings(landing: Landing, object_type: str, options: dict[str, object]) -> SourceOptions:
    paths = [landing] if isinstance(landing, str | os.PathLike) else landing
    known = {name.lower(): name for name in SourceOptions.names()}
    given = {"paths": json.dumps([os.fspath(path) for path in paths]), "objectType": object_type}
    for name, value in options.items():
        plain = known.get(name.replace("_", "").lower(), name)
        if plain in ("path", "paths", "objectType"):
            raise ConfigError(f"{name} is an argument of read(), and no option")
        if value is not None:
            given[plain] = _text(plain, value)
    return SourceOptions.parse(given)


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        texts = [os.fspath(each) if isinstance(each, os.PathLike) else str(each) for each in value]
        return json.dumps(texts) if name == "bulkFiles" else ",".join(texts)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


class LandingTable:
    """A table of a landing: planned when it is made, read as often as its rows are asked for.

    It has `__arrow_c_stream__`, so whatever takes Arrow streams takes it as it is: `polars.DataFrame(table)`,
    `duckdb.sql("FROM table")`.

    Attributes:
        schema: its columns.
        error: what ended the last reading too early; libraries that read its stream raise errors of their own.
    """

    def __init__(
        self, options: SourceOptions, filter: pc.Expression | None = None, *, allow_empty: bool = False
    ) -> None:
        self._options = options
        self._filter = filter
        self.schema: Schema = full_schema(options)
        self.error: MtosiError | None = None
        self._late: list[Reject] = []
        self._unread: list[Reject] = []
        self._plan = plan_to_read(options)
        self._files = self._readable()
        if not (allow_empty or self._shows_rejects):
            check_readable(self._plan, options)

    @property
    def _shows_rejects(self) -> bool:
        return self._options.corrupt_column is not None and self._options.mode is Mode.PERMISSIVE

    @property
    def ledger(self) -> Table:
        """One row for each sequence, with the columns of `mtosi_jms.spark.ledger`."""
        return pa.Table.from_pylist([values_of(LEDGER, one) for one in self._plan.sequences], schema_of(LEDGER))

    @property
    def rejects(self) -> Table:
        """The rejected files: `file`, `line`, `reason`.

        With the object type ALL it has also, once the rows are read, what objects are in a file that no stub has a
        class for. A file that is damaged in the middle is found when it is read, or at once with `verify="full"`.
        """
        known = {reject.file for reject in self._plan.rejects}
        late = (reject for reject in self._late if reject.file not in known)
        return pa.Table.from_pylist([asdict(reject) for reject in (*self._plan.rejects, *late, *self._unread)], REJECTS)

    def of_type(self, object_type: str) -> LandingTable:
        """Return the table of another object type from the same plan. Raises ConfigError: there is no such type."""
        other = copy(self)
        other._options = replace(self._options, object_types=(object_type,))
        other.schema = full_schema(other._options)
        return other

    def batches(self) -> RecordBatchReader:
        """Return the rows batch by batch; at most a batch and a file are in memory.

        If a file turns out to be damaged while it is read, it gives no row, a warning is logged, and `complete` of the
        rows before it is what planning knew.

        Raises, while it is read:
            SpoolError: a file cannot be read, or has changed since it was planned.
            ConfigError: `filter` does not fit the columns.
            MtosiError: with `mode=FAILFAST`, a file turns out to be damaged.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._read())

    def _read(self) -> Iterator[RecordBatch]:
        reader = reader_for(self._options, self.schema)
        self.error = None
        try:
            for batch in reader.read(self._files, self._plan.rejects if self._shows_rejects else ()):
                with _checking_filter():
                    kept = batch if self._filter is None else batch.filter(self._filter)
                yield kept
        except MtosiError as error:
            self.error = error
            raise
        self._late = reader.rejected
        self._unread = reader.unread
        for reject in reader.rejected:
            log(reject)
        for count, first in reader.warnings.values():
            log(first, f"warning in {count} messages, first")
        for missing in reader.unread:
            log(missing, "not read")

    def _readable(self) -> Sequence[PlannedFile]:
        """Return the files to read: without those in folders whose values the filter excludes."""
        files, columns = readable(self._plan, self._options), self._options.folder_columns
        if self._filter is None or not columns:
            return files
        values = [tuple(folder_values(file.path, columns).items()) for file in files]
        fitting = _fitting(self._filter, self.schema, tuple(dict.fromkeys(values)))
        return [file for file, of_folders in zip(files, values, strict=True) if of_folders in fitting]

    def to_arrow(self) -> Table:
        """Read all rows. If a file turns out to be damaged, the landing is planned again with `verify=full` and read
        again, so that `complete` is right in every row. Raises MtosiError: as `batches`, or files change while they are
        read."""
        for _ in range(2):
            found = list(self._read())
            if not self._late:
                return pa.Table.from_batches(found, self.schema)
            self._options = replace(self._options, verify=Verify.FULL)
            self._plan = plan_to_read(self._options)
            self._files = self._readable()
        raise MtosiError(f"{', '.join(self._options.paths)}: files change while they are read")

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Read all rows into pandas; `options` are those of `pyarrow.Table.to_pandas`. Raises ConfigError: pandas is
        not installed; MtosiError: as `to_arrow`."""
        table = self.to_arrow()
        try:
            return table.to_pandas(**options)
        except ImportError as error:
            raise _missing("pandas") from error

    def to_polars(self) -> pl.DataFrame:
        """Read all rows into Polars. Raises ConfigError: Polars is not installed; MtosiError: as `to_arrow`."""
        try:
            import polars as pl
        except ImportError as error:
            raise _missing("polars") from error
        frame: pl.DataFrame = pl.DataFrame(self.to_arrow())
        return frame

    def to_duckdb(self, connection: Any, name: str) -> None:
        """Register the table with a DuckDB connection, which reads it batch by batch for each query."""
        connection.register(name, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.batches().__arrow_c_stream__(requested_schema)


def _fitting(filter: pc.Expression, schema: Schema, groups: Sequence[Values]) -> set[Values]:
    """Return the values of folders, by column, in which a row may pass a filter. Raises ConfigError: as `read`."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    def known(values: Values) -> pc.Expression:
        facts = (pc.field(name).is_null() if value is None else pc.field(name) == value for name, value in values)
        return reduce(and_, facts)

    by_path = {str(number): values for number, values in enumerate(groups)}
    dataset = ds.FileSystemDataset.from_paths(  # one for each group; no file is opened
        list(by_path), schema, ds.ParquetFileFormat(), LocalFileSystem(), [known(values) for values in groups]
    )
    with _checking_filter():
        return {by_path[fragment.path] for fragment in dataset.get_fragments(filter)}


@contextmanager
def _checking_filter() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, TypeError) as error:
        raise ConfigError(f"filter: {str(error).splitlines()[0]}") from error


def _missing(library: str) -> ConfigError:
    return ConfigError(f"{library} is not installed: pip install {library}")
