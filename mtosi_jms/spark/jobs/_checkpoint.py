"""The checkpoint of a landing: which of its documents are in the tables, and what later news must know of them.

`OUT/_report/checkpoint.parquet` has one row for each document; docs/design/lake.md says what is in it. It is replaced
together with the tables or after them, never before.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from mtosi_jms.errors import ConfigError, SpoolError, SpoolInUseError
from mtosi_jms.spark._files import Found, Reject, find_files, split_member
from mtosi_jms.spark._landing import Plan, PlannedFile

VERSION: Final = 1
CHECKPOINT: Final = "checkpoint.parquet"
READ: Final = "read"
MARKED: Final = "marked"
WAITING: Final = "waiting"
REJECTED: Final = "rejected"
_REMEMBERED: Final = 100_000
_CHUNK: Final = 1024 * 1024
_SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("time_ns", pa.int64()),
        ("sha256", pa.string()),
        ("state", pa.string()),
        ("kind", pa.string()),
        ("correlation_id", pa.string()),
        ("batch_number", pa.int64()),
        ("end_of_reply", pa.bool_()),
        ("body_tag", pa.string()),
        ("timestamp", pa.string()),
    ]
)
_MESSAGE: Final = ("kind", "correlation_id", "batch_number", "end_of_reply", "body_tag", "timestamp")


@dataclass(frozen=True, slots=True)
class Closing:
    """What ended many objects at once.

    Attributes:
        time: when.
        object_type: of a complete answer, the type of which it has all objects; else empty.
        name: of a deletion, the full name of the object that took along what is below; else empty.
        sequence: of a complete answer of this run, its key; a closing that is remembered has none.
    """

    time: dt.datetime
    object_type: str = ""
    name: str = ""
    sequence: str = ""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as it was when it was looked at: size in bytes, time of its last change, checksum."""

    size: int
    time_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a landing: its file, its state, and what its envelope says; nothing of a rejected one."""

    file: FileFacts
    state: str
    message: PlannedFile | None


@dataclass(frozen=True, slots=True)
class News:
    """What a landing has that a checkpoint does not.

    Attributes:
        found: the documents to read, and files that cannot be read.
        known: documents read before, by correlationId, as far as they are still there.
        recalled: the correlationIds of documents that wait no longer.
        changed: documents that were read and have changed since.
        files: each file of the landing as it is now.
    """

    found: Found
    known: Mapping[str, tuple[PlannedFile, ...]]
    recalled: frozenset[str]
    changed: tuple[Reject, ...]
    files: Mapping[str, FileFacts]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read."""
        return not (self.found.files or self.found.rejects or self.recalled)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the last run left it: its version, and the columns of which some change told."""

    version: str
    told: tuple[str, ...]


class Checkpoint:
    """What earlier runs have read of one landing into one set of tables.

    Attributes:
        documents: by path; of a document in an archive `ARCHIVE!/MEMBER`.
        closings: those that objects which turn up later must know, the oldest first.
        tables: by object type.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        """Load the checkpoint of a folder, or begin one.

        Args:
            folder: `OUT/_report`.
            identity: what the checkpoint belongs to: landing, object types and so on.

        Raises:
            ConfigError: it belongs to something else, or is of another version.
            SpoolError: it is damaged.
        """
        self._path = folder / CHECKPOINT
        self._identity = dict(identity)
        self.documents: dict[str, Document] = {}
        self.closings: tuple[Closing, ...] = ()
        self.tables: dict[str, Table] = {}
        self._stamp = self._now()
        if self._stamp is None:
            return
        try:
            table = parquet.read_table(self._path)
            metadata = json.loads((table.schema.metadata or {})[b"mtosi"])
            version = metadata["version"]
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise SpoolError(str(self._path), f"is a damaged checkpoint: {error}") from error
        if version != VERSION:
            raise ConfigError(
                f"{self._path}: a checkpoint of version {version}, this is {VERSION}: ingest into another folder"
            )
        for name, value in self._identity.items():
            if metadata["identity"].get(name) != value:
                was = metadata["identity"].get(name)
                raise ConfigError(
                    f"{self._path} is a checkpoint of {name} {was!r}, not {value!r}: choose another folder"
                )
        self.documents = {row["path"]: _document(row) for row in table.to_pylist()}
        self.closings = tuple(
            Closing(dt.datetime.fromisoformat(time), kind, name) for time, kind, name in metadata["closings"]
        )
        self.tables = {label: Table(version, tuple(told)) for label, (version, told) in metadata["tables"].items()}

    @property
    def exists(self) -> bool:
        """Whether there was one."""
        return self._stamp is not None

    def _now(self) -> tuple[int, int] | None:
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            return None
        return facts.st_ino, facts.st_mtime_ns

    def check_alone(self) -> None:
        """Check that no other job has replaced the checkpoint since it was loaded.

        Raises:
            SpoolInUseError: one has.
        """
        if self._now() != self._stamp:
            raise SpoolInUseError(str(self._path), "another job has replaced the checkpoint meanwhile: try again")

    def look(self, paths: Iterable[str], *, since_last: bool, wait: bool) -> News:
        """Compare a landing with the checkpoint.

        Args:
            paths: of the landing.
            since_last: whether what was read is left out; by default all is new.
            wait: whether incomplete sequences go on waiting.

        Raises:
            SpoolError: the landing does not exist or cannot be read, or nothing is in it any more.
        """
        listed = find_files(paths)
        if self.documents and not listed.files and not listed.rejects:
            raise SpoolError(", ".join(paths), "the landing is empty, and was not: see that it is there and mounted")
        paths_of_files = sorted({split_member(path)[0] for path, _ in listed.files})
        rejected_files = [reject.file for reject in listed.rejects if Path(reject.file).is_file()]
        known = self._facts_of_files() if since_last else {}
        with ThreadPoolExecutor(4) as pool:
            looked = pool.map(lambda path: (path, _facts(path, known.get(path))), (*paths_of_files, *rejected_files))
            files = dict(looked)
        fresh: list[tuple[str, int]] = []
        changed: list[Reject] = []
        for path, size in listed.files:
            before = self.documents.get(path) if since_last else None
            now = files[split_member(path)[0]]
            if before is None or (before.state == REJECTED and before.file.sha256 != now.sha256):
                fresh.append((path, size))
            elif before.state != REJECTED and before.file.sha256 != now.sha256:
                changed.append(Reject(path, None, "has changed since it was read, and is not read again"))
        again = (
            {path for path, document in self.documents.items() if document.state == REJECTED} if since_last else set()
        )
        rejects = tuple(
            reject
            for reject in listed.rejects
            if reject.file not in again or files[reject.file].sha256 != self.documents[reject.file].file.sha256
        )
        there = {path for path, _ in listed.files}
        messages, recalled = self._known(there if since_last else frozenset(), wait=wait)
        return News(Found(tuple(fresh), rejects), messages, recalled, tuple(changed), files)

    def _facts_of_files(self) -> dict[str, FileFacts]:
        return {split_member(path)[0]: document.file for path, document in self.documents.items()}

    def _known(
        self, there: Collection[str], *, wait: bool
    ) -> tuple[dict[str, tuple[PlannedFile, ...]], frozenset[str]]:
        messages: dict[str, list[PlannedFile]] = {}
        recalled: set[str] = set()
        for path, document in self.documents.items():
            message = document.message
            if path in there and message is not None and message.correlation_id is not None:
                messages.setdefault(message.correlation_id, []).append(message)
                if document.state == WAITING and not wait:
                    recalled.add(message.correlation_id)
        return {key: tuple(files) for key, files in messages.items()}, frozenset(recalled)

    def advance(
        self, news: News, plan: Plan, rejects: Iterable[Reject], closings: Iterable[Closing], *, wait: bool
    ) -> Checkpoint:
        """The checkpoint after a run: what was read is added, what is gone from the landing forgotten."""
        after = Checkpoint.__new__(Checkpoint)
        after._path, after._identity, after._stamp = self._path, self._identity, self._stamp
        documents = {path: document for path, document in self.documents.items() if split_member(path)[0] in news.files}
        for file in plan.files:
            state = READ if file.complete is not False else WAITING if wait else MARKED
            for path in (file.path, *file.duplicates):
                if (facts := news.files.get(split_member(path)[0])) is not None:
                    message = replace(file, path=path, duplicates=(), complete=None)
                    documents[path] = Document(facts, state, message)
        for reject in rejects:
            if reject in news.changed:
                continue  # stays as it was read
            if (facts := news.files.get(split_member(reject.file)[0])) is not None and reject.file:
                documents[reject.file] = Document(facts, REJECTED, None)
        after.documents = documents
        after.tables = dict(self.tables)
        remembered = {replace(closing, sequence="") for closing in (*self.closings, *closings)}
        after.closings = tuple(sorted(remembered, key=lambda one: (one.time, one.object_type, one.name))[-_REMEMBERED:])
        return after

    def save(self, folder: Path) -> None:
        """Write the checkpoint into a folder that will be moved in place."""
        metadata = {
            "version": VERSION,
            "identity": self._identity,
            "closings": [(one.time.isoformat(), one.object_type, one.name) for one in self.closings],
            "tables": {label: (table.version, table.told) for label, table in self.tables.items()},
        }
        table = pa.Table.from_pylist([_row(path, found) for path, found in sorted(self.documents.items())], _SCHEMA)
        parquet.write_table(table.replace_schema_metadata({"mtosi": json.dumps(metadata)}), folder / CHECKPOINT)

    @property
    def waiting(self) -> int:
        """How many responses wait for the rest of their sequences."""
        return sum(document.state == WAITING for document in self.documents.values())


def check_unchanged(news: News) -> None:
    """Check that no file has changed while it was read.

    Raises:
        SpoolError: one has; the text names it.
    """
    for path, facts in news.files.items():
        try:
            now = Path(path).stat()
        except OSError:
            continue  # what was read to its end may go
        if (now.st_size, now.st_mtime_ns) != (facts.size, facts.time_ns):
            raise SpoolError(path, "has changed while it was read; nothing was written: ingest again")


def _facts(path: str, known: FileFacts | None) -> FileFacts:
    """A file as it is now; one of the same size and time is taken as unchanged."""
    try:
        found = Path(path).stat()
        if known is not None and (known.size, known.time_ns) == (found.st_size, found.st_mtime_ns):
            return known
        digest = hashlib.sha256()
        with Path(path).open("rb") as stream:
            while data := stream.read(_CHUNK):
                digest.update(data)
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error
    return FileFacts(found.st_size, found.st_mtime_ns, digest.hexdigest())


def _document(row: Mapping[str, Any]) -> Document:
    file = FileFacts(row["size"], row["time_ns"], row["sha256"])
    if row["kind"] is None:
        return Document(file, row["state"], None)
    facts = {name: row[name] for name in _MESSAGE}
    return Document(file, row["state"], PlannedFile(path=row["path"], size=row["size"], **facts))


def _row(path: str, document: Document) -> dict[str, Any]:
    file, message = document.file, document.message
    row = {"path": path, "size": file.size, "time_ns": file.time_ns, "sha256": file.sha256, "state": document.state}
    return row | ({} if message is None else {name: getattr(message, name) for name in _MESSAGE})
