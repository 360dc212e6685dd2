"""The source `mtosi`: landed envelopes as rows, in batches and in streams, with Spark's Python Data Source API.

    spark.dataSource.register(InventorySource)
    spark.read.format("mtosi").option("objectType", "ME").load("landing/")

Planning (`partitions`, `latestOffset`, `commit`) runs in a Python process of the driver, which lives as long as a
stream. Each partition has the paths of some files and a few facts about each; a worker opens one file at a time.
Offsets of a stream are positions in an index; see docs/design/streams.md.
"""

from __future__ import annotations

import importlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError, SpoolError

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema
except ImportError as error:
    raise MissingExtraError("pyspark 4.0 or later", "spark") from error

from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark._known import StreamIndex
from mtosi_jms.spark._workers import error_first
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import SHELF, FileState, Reject, archive, disk_file, list_files, local_path, placed, remove
from mtosi_jms.tables.landing import (
    PlannedFile,
    Scanned,
    changed,
    look,
    partition,
    plan_scanned,
    plan_to_read,
    readable,
    scanned_path,
)
from mtosi_jms.tables.options import (
    Mode,
    OnIncomplete,
    SourceOptions,
    is_of_catalog,
    names_landing,
    own_options,
    whole_number,
)
from mtosi_jms.tables.reader import reader_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

try:  # since 4.2 Spark passes start and limit of a batch
    _admission: Any = importlib.import_module("pyspark.sql.streaming.datasource")
except ModuleNotFoundError:
    _admission = None

_log = logging.getLogger(__package__)
_CARRIED: Final = "mtosi.options"

MOST_FILES: Final = "maxFilesPerTrigger"
CLEAN: Final = ("off", "delete", "archive")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The options of a stream, in addition to those of `SourceOptions`.

    Attributes:
        index: file of the index; empty if not given.
        most: the largest number of files or messages in a batch; None for all.
        clean: what happens to files after their batch: off, delete or archive.
        archive: folder for `archive`.
        keeps_changed: whether a file that has changed is a reject instead of an error.
        patience: seconds to wait for an index that another process has open.
    """

    index: str = ""
    most: int | None = None
    clean: str = "off"
    archive: str = ""
    keeps_changed: bool = False
    patience: float = 10.0

    @classmethod
    def names(cls, most: str = MOST_FILES) -> frozenset[str]:
        return frozenset(("index", most, "cleanSource", "sourceArchiveDir", "onChanged", "indexTimeout"))

    @classmethod
    def parse(cls, given: Mapping[str, str], *, most: str = MOST_FILES, clean: str = "off") -> StreamOptions:
        limit = given.get(most.lower(), "")
        cleaning = given.get("cleansource", clean).lower()
        if cleaning not in CLEAN:
            raise ConfigError(f"cleanSource is {cleaning!r}; there are {', '.join(CLEAN)}")
        archive = given.get("sourcearchivedir", "")
        if bool(archive) != (cleaning == "archive"):
            raise ConfigError("cleanSource archive and sourceArchiveDir belong together")
        changed = given.get("onchanged", "fail").lower()
        if changed not in ("fail", "reject"):
            raise ConfigError(f"onChanged is {changed!r}; there are fail and reject")
        return cls(
            index=local_path(given["index"], "the option index") if given.get("index") else "",
            most=whole_number(most, limit) if limit else None,
            clean=cleaning,
            archive=placed(archive) if archive else "",
            keeps_changed=changed == "reject",
            patience=seconds("indexTimeout", given.get("indextimeout", "10")),
        )


def seconds(name: str, text: str) -> float:
    """Return the value of an option that is a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise ConfigError(f"{name} is {text!r}; it must be a number of seconds, 0 or more")
    return value


def check_streamable(settings: SourceOptions, options: StreamOptions) -> None:
    """Check that the options of a load and of a stream are possible for a stream."""
    if settings.on_incomplete is not OnIncomplete.WARN:
        raise ConfigError(
            "onIncomplete of a stream can only be warn: a later batch may complete a sequence, and rows left out of an "
            "earlier one would be lost"
        )
    if settings.bulk_files:
        raise ConfigError("bulkFiles is not for streams")
    archive = Path(options.archive) if options.archive else None
    if archive is not None and any(archive.is_relative_to(placed(path)) for path in settings.paths):
        raise ConfigError(f"sourceArchiveDir {options.archive} is in the landing: its files would be read again")


class InventorySource(DataSource):
    """Inventory objects or messages from landed MTOSI envelopes; the options are those of `SourceOptions`.

    For a table in a catalog Spark passes the options when it asks for the columns, but only the columns when it reads
    the table. So the metadata of the first column carries the options. Filters of Spark are not pushed down to this
    source, because Spark would keep the filter of one DataFrame for all others that come from the same `load`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = own_options(options)
        streamed = {name.lower() for name in StreamOptions.names()}
        self._given = {name: value for name, value in given.items() if name not in streamed}
        self._of_stream = {name: value for name, value in given.items() if name in streamed}
        self._in_catalog = is_of_catalog(options)
        if names_landing(self._given):
            SourceOptions.parse(self._given)

    @classmethod
    def name(cls) -> str:
        return "mtosi"

    def schema(self) -> StructType:
        """Return the columns of the object types, and the column of corrupt records if an option names it."""
        schema = from_arrow_schema(full_schema(SourceOptions.parse(self._given)))
        if self._in_catalog:
            schema[0].metadata[_CARRIED] = json.dumps(self._given)
        return schema

    def reader(self, schema: StructType) -> InventoryReader:
        if self._of_stream:
            raise ConfigError(f"the option {next(iter(self._of_stream))!r} is for readStream")
        carried = next((field.metadata[_CARRIED] for field in schema if _CARRIED in field.metadata), "{}")
        settings = SourceOptions.parse({**json.loads(carried), **self._given})
        return InventoryReader(settings, narrowed(full_schema(settings), schema))

    def streamReader(self, schema: StructType) -> FileStream:  # noqa: N802
        settings, options = SourceOptions.parse(self._given), StreamOptions.parse(self._of_stream)
        check_streamable(settings, options)
        return LandingStream(settings, options, narrowed(full_schema(settings), schema))


def stream_landing(
    spark: SparkSession, path: str | Sequence[str], object_type: str = "ME", **options: str
) -> DataFrame:
    """Return a stream of the rows of a landing: `readStream.format("mtosi")`, for several paths too.

    Args:
        spark: a session; the function registers the source with it.
        path: a folder, a file or a glob, or a URL such as `s3://bucket/landing`, or several of them.
        object_type: as the option `objectType` of the source.
        options: the other options of the source and of its streams.

    Raises:
        ConfigError: an option that does not fit.
    """
    given = {**options, "paths": json.dumps([path] if isinstance(path, str) else list(path)), "objectType": object_type}
    source = InventorySource(given)
    source.streamReader(source.schema())  # its errors are typed; Spark's, which come later, are not
    spark.dataSource.register(InventorySource)
    return spark.readStream.format(InventorySource.name()).options(**given).load()


def narrowed(full: pa.Schema, schema: StructType) -> pa.Schema:
    """Return the columns of a Spark schema as Arrow fields. Raises ConfigError: one is missing or of another type."""
    types = {field.name: field.dataType for field in from_arrow_schema(full)}
    fields = []
    for field in schema:
        known = types.get(field.name)
        if known is None:
            raise ConfigError(f"the schema asks for {field.name!r}; there are {', '.join(types)}")
        if known != field.dataType:
            wanted, actual = field.dataType.simpleString(), known.simpleString()
            raise ConfigError(f"the schema asks for {field.name} as {wanted}; it is {actual}")
        fields.append(pa.field(field.name, full.field(field.name).type, nullable=field.nullable))
    return pa.schema(fields)


@dataclass
class FilesPartition(InputPartition):
    """The files that one task reads one after the other, rejects of planning, and in a stream the states of the files
    when it first saw them."""

    files: tuple[PlannedFile, ...]
    rejects: tuple[Reject, ...] = ()
    seen: tuple[FileState, ...] = ()

    def rows(self, settings: SourceOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with error_first():
            load_stubs(settings.stubs)
            yield from reader_for(settings, schema).read(self.files, self.rejects)


def _partitions(
    files: Sequence[PlannedFile], rejects: Sequence[Reject], settings: SourceOptions
) -> list[FilesPartition]:
    made = [FilesPartition(part) for part in partition(files, settings.partitions)]
    if rejects and settings.mode is Mode.PERMISSIVE and settings.corrupt_column is not None:
        made.append(FilesPartition((), tuple(rejects)))
    return made


class InventoryReader(DataSourceReader):
    """Plans on the driver, reads on the workers."""

    def __init__(self, settings: SourceOptions, schema: pa.Schema) -> None:
        self._settings = settings
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        with error_first():
            plan = plan_to_read(self._settings)
            return list(_partitions(readable(plan, self._settings), plan.rejects, self._settings))

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        # Without partitions Spark has one of its own read.
        if isinstance(partition, FilesPartition):
            yield from partition.rows(self._settings, self._schema)


class FileStream(DataSourceStreamReader, ABC):
    """Plans batches of files on the driver, and reads them on the workers."""

    def __init__(self, settings: SourceOptions, options: StreamOptions, schema: pa.Schema) -> None:
        self.options = options
        self.settings = settings
        self._schema = schema
        self._index: StreamIndex | None = None
        self._planned: int | None = None
        self._end: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": None}

    @abstractmethod
    def open_index(self) -> StreamIndex:
        """Open the index; make it if it does not exist."""

    @abstractmethod
    def look(self, index: StreamIndex) -> None:
        """Give positions to new files."""

    @property
    def index(self) -> StreamIndex:
        if self._index is None:
            self._index = self.open_index()
        return self._index

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a query without a checkpoint begins: after the files that were trimmed."""
        return self.index.offset(self.index.trimmed)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Look for new files, and return the end of a batch after `start`, by default after the last planned batch."""
        index, most = self.index, self.options.most
        if limit is not None:
            most = limit.max_files if isinstance(limit, _admission.ReadMaxFiles) else None
        if self._end is None:
            self.look(index)
        end = index.last if self._end is None else self._end
        first = index.trimmed if self._planned is None else self._planned
        if start is not None:
            first = index.position(start)
        return index.offset(end if most is None else max(first, min(end, first + most)))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        most = self.options.most
        return _admission.ReadAllAvailable() if most is None else _admission.ReadMaxFiles(most)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self.index.offset(self.index.last)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query, which may have several batches."""
        self.look(self.index)
        self._end = self.index.last

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the files between two offsets, and distribute them to partitions; always the same files."""
        first, last = self.index.position(start), self.index.position(end)
        self._planned = last
        if first == last:
            return []
        load_stubs(self.settings.stubs)
        files = self.index.files(first, last)
        rejects, planned = self._plan(files, first, last)
        for reject in rejects:
            _log.warning("rejected %s", reject)
        if rejects and self.settings.mode is Mode.FAILFAST:
            raise MtosiError(str(rejects[0]))
        seen = {file.path: file for file in files}
        made = _partitions(planned, rejects, self.settings)
        for part in made:
            on_disk = dict.fromkeys(disk_file(file.path, seen) for file in part.files)
            part.seen = tuple(seen[path] for path in on_disk if path is not None)
        return list(made)

    def _plan(self, files: Sequence[FileState], first: int, last: int) -> tuple[list[Reject], list[PlannedFile]]:
        """Return the rejects of a batch, and the messages to read, each once in the whole stream."""
        settings = replace(self.settings, from_zero=self.index.from_zero)
        with SHELF.held():
            scanned: list[Scanned] = []
            for looked in look(files, settings):
                scanned += looked.scanned if not looked.error else [self.lost(looked.path, looked.error)]
            new = {scanned_path(each) for each in scanned}
            plan = plan_scanned(scanned, settings, partial(self._earlier, first, new))
        # The plan also has messages of earlier batches, because their sequences need them. They and their copies are
        # not read again.
        kept = [file for file in plan.files if new.issuperset((file.path, *file.duplicates))]
        self.index.keep(first, last, [replace(file, complete=None) for file in kept])
        for reply in plan.unfollowed:
            _log.warning("not followed %s", reply)
        wanted = readable(replace(plan, files=tuple(kept)), self.settings)
        return [reject for reject in plan.rejects if reject.file in new], wanted

    def _earlier(self, first: int, new: Collection[str], correlation_id: str) -> list[PlannedFile]:
        """Return the messages of earlier batches; a new file may have the name of one that was removed."""
        found = self.index.earlier(first, correlation_id)
        return [replace(file, path=f"{file.path} (removed)") if file.path in new else file for file in found]

    def lost(self, path: str, what: str) -> Reject:
        if not self.options.keeps_changed:
            raise file_changed(path, what)
        return Reject(path, None, what)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, FilesPartition):
            return
        _check(partition.seen)
        yield from partition.rows(self.settings, self._schema)
        _check(partition.seen)

    def commit(self, end: dict[str, Any]) -> None:
        last = self.index.position(end)
        start = self.index.trimmed
        if self.options.clean == "off" or last <= start:
            return
        for file in self.index.files(start, last):
            self.clean(file.path)
        self.index.trim(last)

    def clean(self, path: str) -> None:
        if self.options.clean == "delete":
            remove(path)
        else:
            archive(path, self.options.archive)

    def stop(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


if _admission is not None:
    _admission.SupportsTriggerAvailableNow.register(FileStream)


class LandingStream(FileStream):
    """A stream of the files of a landing."""

    def open_index(self) -> StreamIndex:
        if not self.options.index:
            raise ConfigError(
                "a stream needs option('index', FILE): a file for this query alone, beside its checkpoint, that the "
                "driver can write; it remembers which files were read"
            )
        paths = sorted(map(placed, self.settings.paths))
        Path(self.options.index).parent.mkdir(parents=True, exist_ok=True)
        return StreamIndex(self.options.index, json.dumps(paths), patience=self.options.patience)

    def look(self, index: StreamIndex) -> None:
        """Give positions to new files, the oldest first."""
        rejects: list[Reject] = []
        altered, _ = index.add(list_files(self.settings.paths, rejects, self.settings.sieve))
        for reject in rejects:
            _log.warning("rejected %s", reject)
        for path in altered:
            if not self.options.keeps_changed:
                raise file_changed(path, "has changed since the stream has listed it")
            _log.warning("%s has changed since the stream has listed it; it is not read again", path)


def file_changed(path: str, what: str) -> SpoolError:
    return SpoolError(
        path,
        f"{what}. Write files elsewhere and move them into the landing, new content under a new name; "
        "with onChanged=reject the stream goes on without it",
    )


def _check(files: Iterable[FileState]) -> None:
    for file in files:
        what = changed(file)
        if what:
            raise file_changed(file.path, what)
