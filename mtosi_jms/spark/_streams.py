"""Streams of files: `readStream.format("mtosi")`. Offsets are positions in an index; see docs/design/streams.md.

`latestOffset`, `partitions` and `commit` run in one Python process of the driver, which lives as long as the query.
`read` runs on the workers.
"""

from __future__ import annotations

import importlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark._known import StreamIndex
from mtosi_jms.tables.files import SHELF, FileState, Reject, archive, disk_file, list_files, local_path, placed, remove
from mtosi_jms.tables.landing import (
    PlannedFile,
    Scanned,
    changed,
    look,
    partition,
    plan_scanned,
    readable,
    scanned_path,
)
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions, whole_number
from mtosi_jms.tables.reader import reader_for

_log = logging.getLogger(__package__)

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
        """The names of all options."""
        return frozenset(("index", most, "cleanSource", "sourceArchiveDir", "onChanged", "indexTimeout"))

    @classmethod
    def parse(cls, given: Mapping[str, str], *, most: str = MOST_FILES, clean: str = "off") -> StreamOptions:
        """Return the options of a stream."""
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


@dataclass
class StreamPartition(InputPartition):
    """The files that one task reads, their states when the stream first saw them, and rejects of planning."""

    files: tuple[PlannedFile, ...]
    seen: tuple[FileState, ...] = ()
    rejects: tuple[Reject, ...] = ()


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
        """Return the state that a worker needs, without the index."""
        return {**self.__dict__, "_index": None}

    @abstractmethod
    def open_index(self) -> StreamIndex:
        """Open the index; make it if it does not exist."""

    @abstractmethod
    def look(self, index: StreamIndex) -> None:
        """Give positions to new files."""

    @property
    def index(self) -> StreamIndex:
        """The index, which is opened at the first use."""
        if self._index is None:
            self._index = self.open_index()
        return self._index

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a query without a checkpoint begins: after the files that were trimmed."""
        return self.index.offset(self.index.trimmed)

    def newest(self, start: int | None, most: int | None) -> int:
        """Look for new files, and return the last position of a batch of at most `most` files after `start`, by default
        after the last planned batch."""
        index = self.index
        if self._end is None:
            self.look(index)
        end = index.last if self._end is None else self._end
        if start is None:
            start = index.trimmed if self._planned is None else self._planned
        return end if most is None else max(start, min(end, start + most))

    def available(self) -> int:
        """Look for new files, and return the last position."""
        self.look(self.index)
        return self.index.last

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch."""
        return self.index.offset(self.newest(None, self.options.most))

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
        made: list[InputPartition] = []
        for hand in partition(planned, self.settings.partitions):
            on_disk = dict.fromkeys(disk_file(file.path, seen) for file in hand)
            made.append(StreamPartition(hand, tuple(seen[path] for path in on_disk if path is not None)))
        if rejects and self.settings.mode is Mode.PERMISSIVE and self.settings.corrupt_column is not None:
            made.append(StreamPartition((), (), tuple(rejects)))
        return made

    def _plan(self, files: Sequence[FileState], first: int, last: int) -> tuple[list[Reject], list[PlannedFile]]:
        """Return the rejects of a batch, and the messages to read, each once in the whole stream."""
        earlier = self.index.earlier(first)
        settings = replace(self.settings, from_zero=self.index.from_zero)
        with SHELF.held():
            scanned: list[Scanned] = []
            for looked in look(files, settings):
                scanned += looked.scanned if not looked.error else [self.lost(looked.path, looked.error)]
            plan = plan_scanned(scanned, settings, earlier)
        new = {scanned_path(each) for each in scanned}
        # The plan also has messages of earlier batches, because their sequences need them. They and their copies are
        # not read again.
        kept = [file for file in plan.files if earlier.returned.isdisjoint((file.path, *file.duplicates))]
        self.index.keep(first, last, [replace(file, complete=None) for file in kept])
        for reply in plan.unfollowed:
            _log.warning("not followed %s", reply)
        wanted = readable(replace(plan, files=tuple(kept)), self.settings)
        return [reject for reject in plan.rejects if reject.file in new], wanted

    def lost(self, path: str, what: str) -> Reject:
        """Return the reject of a file that has changed or is gone."""
        if not self.options.keeps_changed:
            raise file_changed(path, what)
        return Reject(path, None, what)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition as Arrow batches."""
        if not isinstance(partition, StreamPartition):
            return
        load_stubs(self.settings.stubs)
        _check(partition.seen)
        yield from reader_for(self.settings, self._schema).read(partition.files, partition.rejects)
        _check(partition.seen)

    def commit(self, end: dict[str, Any]) -> None:
        """Remove or archive the files of finished batches, if the options say so."""
        last = self.index.position(end)
        start = self.index.trimmed
        if self.options.clean == "off" or last <= start:
            return
        for file in self.index.files(start, last):
            self.clean(file.path)
        self.index.trim(last)

    def clean(self, path: str) -> None:
        """Remove or archive a file, if it still exists."""
        if self.options.clean == "delete":
            remove(path)
        else:
            archive(path, self.options.archive)

    def stop(self) -> None:
        """Close the index."""
        if self._index is not None:
            self._index.close()
            self._index = None


class LandingStream(FileStream):
    """A stream of the files of a landing."""

    def open_index(self) -> StreamIndex:
        """Open the index that the option `index` names."""
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
        added = index.add(list_files(self.settings.paths, rejects, self.settings.sieve))
        for reject in rejects:
            _log.warning("rejected %s", reject)
        for path in added.changed:
            if not self.options.keeps_changed:
                raise file_changed(path, "has changed since the stream has listed it")
            _log.warning("%s has changed since the stream has listed it; it is not read again", path)


def file_changed(path: str, what: str) -> SpoolError:
    """Return the error about a file that has changed or is gone."""
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


def admitted(kind: type[FileStream]) -> type[FileStream]:
    """Return the class of stream for this version of PySpark: since 4.2 Spark passes start and limit of a batch."""
    try:
        admission: Any = importlib.import_module("pyspark.sql.streaming.datasource")
    except ModuleNotFoundError:
        return kind
    return _with_limits(kind, admission)


def _with_limits(kind: type[FileStream], admission: Any) -> type[FileStream]:
    base: Any = kind

    class Admitted(base):  # type: ignore[misc]
        """A stream that gets start and limit of each batch, and supports AvailableNow in several batches."""

        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
            most = limit.max_files if isinstance(limit, admission.ReadMaxFiles) else None
            return dict(self.index.offset(self.newest(self.index.position(start), most)))

        def getDefaultReadLimit(self) -> Any:  # noqa: N802
            most = self.options.most
            return admission.ReadAllAvailable() if most is None else admission.ReadMaxFiles(most)

        def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
            return dict(self.index.offset(self.index.last))

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._end = self.available()

    register: Callable[[type], object] = admission.SupportsTriggerAvailableNow.register
    register(Admitted)
    made: type[FileStream] = Admitted
    return made
