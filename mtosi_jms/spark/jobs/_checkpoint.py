"""The checkpoint of a landing: which documents are in the tables, and what later runs must know of these documents.

`OUT/_report/checkpoint.parquet` has one row for each document; docs/design/lake.md explains it. It is replaced together
with the tables or after them, never before. *News* is what a landing has and the checkpoint does not.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from mtosi_jms.errors import ConfigError, SpoolError, SpoolInUseError
from mtosi_jms.tables.files import FileState, Reject, disk_file
from mtosi_jms.tables.ingest import CHECKPOINT
from mtosi_jms.tables.landing import Landing, Plan, PlannedFile, Scanned, look, scanned_path, senders_from_zero
from mtosi_jms.tables.options import OnIncomplete, SourceOptions

VERSION: Final = 1
READ: Final = "read"
MARKED: Final = "marked"
WAITING: Final = "waiting"
STUCK: Final = "stuck"
REJECTED: Final = "rejected"
_REMEMBERED: Final = 100_000
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
        ("sender", pa.string()),
    ]
)
_MESSAGE: Final = ("kind", "correlation_id", "batch_number", "end_of_reply", "body_tag", "timestamp", "sender")


@dataclass(frozen=True, slots=True)
class Closing:
    """A deletion or a complete answer, which may end many objects at once.

    Attributes:
        time: from when on the objects are gone.
        object_type: for a complete answer: the object type; objects of this type that it does not have are gone.
            Otherwise empty.
        name: for a deletion: the full name of the deleted object. All objects below it are deleted, too. Otherwise
            empty.
        sequence: for a complete answer that this run read: the key of its sequence. Empty in a saved closing.
    """

    time: dt.datetime
    object_type: str = ""
    name: str = ""
    sequence: str = ""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The state of a file when it was read: size in bytes, time of its last change in nanoseconds, checksum."""

    size: int
    time_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a landing: its file, its state, and facts from its envelope (None if it was rejected)."""

    file: FileFacts
    state: str
    message: PlannedFile | None


@dataclass(frozen=True, slots=True)
class News:
    """What a landing has and its checkpoint does not.

    Attributes:
        listing: the landing as it is now.
        scanned: the messages and rejects of new documents.
        known: by correlationId, documents that an earlier run read and that are still there.
        recalled: the correlationIds of documents that waited for the rest of their sequences, and now have to be
            written as they are.
        changed: documents that an earlier run read and that have changed since.
        files: the current state of each file of the landing, by path.
    """

    listing: Landing
    scanned: tuple[Scanned, ...]
    known: Mapping[str, tuple[PlannedFile, ...]]
    recalled: frozenset[str]
    changed: tuple[Reject, ...]
    files: Mapping[str, FileFacts]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read."""
        return not (self.scanned or self.listing.rejects or self.recalled)

    def facts_of(self, path: str) -> FileFacts | None:
        """Return the state of the file that a document is in; None if the landing has no such file."""
        file = disk_file(path, self.files)
        return None if file is None else self.files[file]

    def again(self, options: SourceOptions) -> News:
        """Return the same news after another look at the documents, with other options."""
        fresh = {scanned_path(each) for each in self.scanned}
        paths = dict.fromkeys(disk_file(path, self.files) for path in fresh)
        files = [self.listing.files[path] for path in paths if path is not None]
        found = [*look(files, options)]
        for looked in found:
            if looked.error:
                raise SpoolError(looked.path, looked.error)
        scanned = (each for file in found for each in file.scanned)
        return replace(self, scanned=tuple(each for each in scanned if scanned_path(each) in fresh))

    def plan(self, options: SourceOptions) -> Plan:
        """Return the plan of the news. Its rejects include files that cannot be listed and `changed` documents."""
        plan = self.listing.plan(self.scanned, options, self.known, self.recalled)
        return replace(plan, rejects=(*plan.rejects, *self.changed))


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the last run left it: its version, and the columns that attribute changes have set."""

    version: str
    changed_columns: tuple[str, ...]


class Checkpoint:
    """What earlier runs have read from one landing into one set of tables.

    Attributes:
        documents: by path; the path of a document in an archive is `ARCHIVE!/MEMBER`.
        closings: the oldest first; they also end objects that a later run finds in older messages.
        from_zero: the senders of which a batch 0 was seen (C23).
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        """Load the checkpoint of a folder, or begin a new one."""
        self._path = folder / CHECKPOINT
        self._identity = dict(identity)
        self.documents: dict[str, Document] = {}
        self.closings: tuple[Closing, ...] = ()
        self.from_zero: frozenset[str] = frozenset()
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
        try:
            self.documents = {row["path"]: _document(row) for row in table.to_pylist()}
            self.closings = tuple(
                Closing(dt.datetime.fromisoformat(time), kind, name) for time, kind, name in metadata["closings"]
            )
            self.from_zero = frozenset(metadata["from_zero"])
            tables = metadata["tables"].items()
            self.tables = {label: Table(version, tuple(names)) for label, (version, names) in tables}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SpoolError(str(self._path), f"is a damaged checkpoint: {error!r}") from error

    @property
    def exists(self) -> bool:
        """Whether the folder had a checkpoint when this one was loaded."""
        return self._stamp is not None

    def _now(self) -> tuple[int, int] | None:
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            return None
        return facts.st_ino, facts.st_mtime_ns

    def check_alone(self) -> None:
        """Check that no other job has replaced the checkpoint since it was loaded."""
        if self._now() != self._stamp:
            raise SpoolInUseError(str(self._path), "another job has replaced the checkpoint meanwhile: try again")

    def look(self, listing: Landing, options: SourceOptions, *, since_last: bool) -> News:
        """Compare a landing with the checkpoint. Only files that are new or have changed are read."""
        if self.documents and not listing.files and not listing.rejects:
            shown = ", ".join(options.paths)
            raise SpoolError(shown, "the landing is empty, and was not: see that it is there and mounted")
        documents = self.documents if since_last else {}
        inside: dict[str, list[str]] = {}
        for path in documents:
            if (file := disk_file(path, listing.files)) is not None:
                inside.setdefault(file, []).append(path)
        files = {
            file: facts
            for file, paths in inside.items()
            if (facts := _unchanged([documents[path].file for path in paths], listing.files[file])) is not None
        }
        there = {path for file in files for path in inside[file]}
        fresh: list[Scanned] = []
        changed: list[Reject] = []
        unread = [listing.files[path] for path in sorted(set(listing.files) - set(files))]
        for looked in look(unread, options, whole=True):
            if looked.error:
                raise SpoolError(looked.path, looked.error)
            seen = listing.files[looked.path]
            files[looked.path] = FileFacts(seen.size, seen.modified_ns, looked.sha256)
            for each in looked.scanned:
                path = scanned_path(each)
                there.add(path)
                before = documents.get(path)
                if before is None or (before.state == REJECTED and before.file.sha256 != looked.sha256):
                    fresh.append(each)
                elif before.file.sha256 != looked.sha256:
                    changed.append(Reject(path, None, "has changed since it was read, and is not read again"))
        messages, recalled = self._known(there if since_last else frozenset(), options)
        return News(listing, tuple(fresh), messages, recalled, tuple(changed), files)

    def _known(
        self, there: Collection[str], options: SourceOptions
    ) -> tuple[dict[str, tuple[PlannedFile, ...]], frozenset[str]]:
        messages: dict[str, list[PlannedFile]] = {}
        recalled: set[str] = set()
        wait = options.on_incomplete is OnIncomplete.FILTER
        for path, document in self.documents.items():
            message = document.message
            if path in there and message is not None and message.correlation_id is not None:
                messages.setdefault(message.correlation_id, []).append(message)
                if document.state in (WAITING, STUCK) and not wait:
                    recalled.add(message.correlation_id)
        return {key: tuple(files) for key, files in messages.items()}, frozenset(recalled)

    def advance(
        self, news: News, plan: Plan, rejects: Iterable[Reject], closings: Iterable[Closing], *, wait: bool
    ) -> Checkpoint:
        """Return the checkpoint after a run, with the documents that it read and without those that are gone."""
        after = Checkpoint.__new__(Checkpoint)
        after._path, after._identity, after._stamp = self._path, self._identity, self._stamp
        documents: dict[str, Document] = {}
        for path, document in self.documents.items():
            if (facts := news.facts_of(path)) is not None:
                same = facts.sha256 == document.file.sha256  # its time may be another one
                documents[path] = replace(document, file=facts) if same else document
        stuck = {found.correlation_id for found in plan.sequences if found.is_stuck}
        for file in plan.files:
            left_out = STUCK if file.correlation_id in stuck else WAITING
            state = READ if file.complete is not False else left_out if wait else MARKED
            for path in (file.path, *file.duplicates):
                if (facts := news.facts_of(path)) is not None:
                    message = replace(file, path=path, duplicates=(), complete=None)
                    documents[path] = Document(facts, state, message)
        for reject in rejects:
            if reject in news.changed:
                continue  # keep the entry of the run that read it
            if (facts := news.facts_of(reject.file)) is not None:
                documents[reject.file] = Document(facts, REJECTED, None)
        after.documents = documents
        after.from_zero = self.from_zero | senders_from_zero(plan.files)
        after.tables = dict(self.tables)
        remembered = {replace(closing, sequence="") for closing in (*self.closings, *closings)}
        after.closings = tuple(sorted(remembered, key=lambda one: (one.time, one.object_type, one.name))[-_REMEMBERED:])
        return after

    def save(self, folder: Path) -> None:
        """Write the checkpoint into a staged folder."""
        metadata = {
            "version": VERSION,
            "identity": self._identity,
            "from_zero": sorted(self.from_zero),
            "closings": [(one.time.isoformat(), one.object_type, one.name) for one in self.closings],
            "tables": {label: (table.version, table.changed_columns) for label, table in self.tables.items()},
        }
        table = pa.Table.from_pylist([_row(path, found) for path, found in sorted(self.documents.items())], _SCHEMA)
        parquet.write_table(table.replace_schema_metadata({"mtosi": json.dumps(metadata)}), folder / CHECKPOINT)

    @property
    def waiting(self) -> int:
        """How many responses wait for the rest of their sequences."""
        return sum(document.state in (WAITING, STUCK) for document in self.documents.values())

    @property
    def stuck(self) -> int:
        """How many of them wait for ever, because their sequences cannot become complete."""
        return sum(document.state == STUCK for document in self.documents.values())


def check_unchanged(news: News, now: Landing) -> None:
    """Check that no file has changed while it was read. A file may have been deleted since."""
    for path, facts in news.files.items():
        seen = now.files.get(path)
        if seen is not None and (seen.size, seen.modified_ns) != (facts.size, facts.time_ns):
            raise SpoolError(path, "has changed while it was read; nothing was written: ingest again")


def _unchanged(known: Sequence[FileFacts], seen: FileState) -> FileFacts | None:
    """Return the known state of a file if it still has the same size and time, otherwise None."""
    same = [facts for facts in known if (facts.size, facts.time_ns) == (seen.size, seen.modified_ns)]
    return same[0] if same and len({facts.sha256 for facts in known}) == 1 else None


def _document(row: Mapping[str, Any]) -> Document:
    file = FileFacts(row["size"], row["time_ns"], row["sha256"])
    if row["kind"] is None:
        return Document(file, row["state"], None)
    facts: dict[str, Any] = {name: row[name] for name in _MESSAGE} | {"modified_ns": file.time_ns}
    return Document(file, row["state"], PlannedFile(path=row["path"], size=row["size"], **facts))


def _row(path: str, document: Document) -> dict[str, Any]:
    file, message = document.file, document.message
    row = {"path": path, "size": file.size, "time_ns": file.time_ns, "sha256": file.sha256, "state": document.state}
    return row | ({} if message is None else {name: getattr(message, name) for name in _MESSAGE})
