"""The checkpoint of a landing: which documents are in the tables, and what later runs must know of these documents.

`OUT/_report/checkpoint.sqlite` has one row for each file and each document; docs/design/lake.md explains it. It changes
after the tables, never before. *News* is what a landing has and the checkpoint does not.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.inventory import ALL
from mtosi_jms.spark._known import KnownFiles, facts_text, message_of
from mtosi_jms.tables.envelope import RESPONSE
from mtosi_jms.tables.files import FileState, Reject, disk_file, list_files, placed
from mtosi_jms.tables.ingest import CHECKPOINT
from mtosi_jms.tables.job import PARQUET
from mtosi_jms.tables.landing import (
    Plan,
    PlannedFile,
    Scanned,
    look,
    plan_scanned,
    scanned_path,
    senders_from_zero,
)
from mtosi_jms.tables.options import OnIncomplete, SourceOptions

READ: Final = "read"
UNWRITTEN: Final = "unwritten"
MARKED: Final = "marked"
WAITING: Final = "waiting"
STUCK: Final = "stuck"
REJECTED: Final = "rejected"
_REMEMBERED: Final = 100_000
_LEFT_OUT: Final = "state IN ('waiting', 'stuck')"
_LANDING: Final = "landing"
_TYPES: Final = "object types"


@dataclass(frozen=True, slots=True)
class Closing:
    """A deletion or a complete answer, which may end many objects at once.

    Attributes:
        time: from when on the objects are gone.
        object_type: of a complete answer; objects of this type that it does not have are gone.
        name: of the deleted object; all objects below it are deleted, too.
        sequence: of a complete answer that this run read: the key of its sequence.
    """

    time: dt.datetime
    object_type: str = ""
    name: str = ""
    sequence: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """What a landing has and its checkpoint does not.

    Attributes:
        rejects: folders and files that cannot be listed.
        scanned: the messages and rejects of new documents.
        known: gives the documents with a correlationId that an earlier run read and that are still there.
        recalled: the correlationIds of documents that waited for the rest of their sequences, and now have to be
            written as they are.
        changed: documents that an earlier run read and that have changed since.
    """

    rejects: tuple[Reject, ...]
    scanned: tuple[Scanned, ...]
    known: Callable[[str], Iterable[PlannedFile]]
    recalled: frozenset[str]
    changed: tuple[Reject, ...]

    @property
    def empty(self) -> bool:
        return not (self.scanned or self.rejects or self.recalled)

    def plan(self, options: SourceOptions) -> Plan:
        """Return the plan of the news. Its rejects include files that cannot be listed and `changed` documents."""
        plan = plan_scanned(chain(self.rejects, self.scanned), options, self.known, self.recalled)
        return replace(plan, rejects=(*plan.rejects, *self.changed))


class Table(NamedTuple):
    """A table as the last run left it: its version, and the columns that attribute changes have set."""

    version: str
    changed_columns: Sequence[str]


class Checkpoint(KnownFiles):
    """What earlier runs have read from one landing into one set of tables.

    Attributes:
        exists: whether the folder had a checkpoint when this one was loaded.
        closings: the oldest first; they also end objects that a later run finds in older messages.
        tables: by object type.
        unwritten: the time of the last response of `unwritten_files`; None if there is none.

    Raises:
        ConfigError: the checkpoint is of something else, or of an earlier version.
        MtosiError: as `KnownFiles`.
    """

    def __init__(self, folder: Path, source: SourceOptions, identity: Mapping[str, Any]) -> None:
        self._place = folder / CHECKPOINT
        self.exists = self._place.exists()
        self._paths = source.paths
        self._roots = _roots(source.paths)
        self._identity = {_LANDING: list(source.paths), _TYPES: list(source.object_types), **identity}
        super().__init__(self._place, "checkpoint", json.dumps(self._identity), patience=0, make=False)
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def _load(self) -> None:
        with self._reporting():
            meta = dict(self._database.execute("SELECT name, value FROM meta"))
        try:
            self._of = {_LANDING: [], _TYPES: [], **json.loads(meta["of"])}
            closings = json.loads(meta.get("closings", "[]"))
            self.closings = tuple(Closing(dt.datetime.fromisoformat(time), *what) for time, *what in closings)
            until = json.loads(meta.get("unwritten", "null"))
            self.unwritten = until and dt.datetime.fromisoformat(until)
            tables = json.loads(meta.get("tables", "{}")).items()
            self.tables = {label: Table(version, names) for label, (version, names) in tables}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SpoolError(str(self._place), f"the checkpoint is damaged: {error!r}") from error
        for name, value in self._identity.items():
            was = self._of.get(name)
            if was != value and name != _LANDING and not (name == _TYPES and self._may_add(was or ())):
                raise ConfigError(
                    f"{self._place} is a checkpoint of {name} {was!r}, not {value!r}: choose another folder"
                )
        self.has_more_types = self._of[_TYPES] != self._identity[_TYPES]

    def _may_add(self, before: Sequence[str]) -> bool:
        """Whether the object types are those before and more; plain Parquet cannot take a document a second time."""
        now = self._identity[_TYPES]
        return self._identity["format"] != PARQUET and (set(before) < set(now) or now == [ALL])

    def relative(self, path: str) -> str:
        """Return the path of a file within the landing, so that it stays the same if the landing is moved."""
        return next((path.removeprefix(root) for root in self._roots if path.startswith(root)), path)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.state(path) is not None

    def state(self, path: str) -> FileState | None:
        """Return the present state of a file of the landing; None if there is none."""
        query = "SELECT place, size, modified_ns, key, changed_ns FROM listed WHERE path = ?"
        with self._reporting():
            found = self._database.execute(query, (self.relative(path),)).fetchone()
        return None if found is None or found[0] != path else FileState(*found)

    def look(self, options: SourceOptions, *, since_last: bool) -> News:
        """Compare a landing with the checkpoint. Only files that are new or have changed are read.

        Raises:
            SpoolError: the landing cannot be read, or is empty and was not.
            ConfigError: the checkpoint is of another landing.
        """
        rejects: list[Reject] = []
        count = self.list(list_files(options.paths, rejects, options.sieve), self.relative)
        self._check_landing(count, rejects)
        anew = not since_last or self.has_more_types
        differs = "f.position IS NULL OR (l.size, l.modified_ns) <> (f.size, f.modified_ns)"
        with self._reporting():
            self._database.execute("DROP TABLE IF EXISTS temp.unread")
            self._database.execute(
                "CREATE TEMP TABLE unread AS SELECT place, l.size, l.modified_ns, l.key, changed_ns FROM listed l "  # noqa: S608 - a constant
                f"LEFT JOIN file f USING (path) WHERE {'1' if anew else differs} ORDER BY place"
            )
        fresh: list[Scanned] = []
        changed: list[Reject] = []
        absent: set[str] = set()
        for looked in look(self._unread(), options, whole=True):
            if looked.error:
                raise SpoolError(looked.path, looked.error)
            known = {} if anew else self._documents(looked.path)
            before_file = len(changed)
            for each in looked.scanned:
                path = scanned_path(each)
                state, sha256 = known.pop(path.removeprefix(looked.path), (REJECTED, ""))
                if sha256 == looked.sha256:
                    continue
                if state == REJECTED:
                    fresh.append(each)
                else:
                    changed.append(Reject(path, None, "has changed since it was read, and is not read again"))
                    absent.add(path)
            absent.update(looked.path + member for member in known)
            with self._reporting():
                self._database.execute(
                    "UPDATE listed SET sha256 = ?, stale = ? WHERE path = ?",
                    (looked.sha256, len(changed) > before_file, self.relative(looked.path)),
                )
        recalled = frozenset[str]()
        if not anew and options.on_incomplete is not OnIncomplete.FILTER:
            waiting = self._there("correlation_id, place || d.path", f"{_LEFT_OUT} AND correlation_id IS NOT NULL")
            recalled = frozenset(key for key, path in waiting if path not in absent)

        def find(correlation_id: str) -> list[PlannedFile]:
            if anew:
                return []
            found = self._there("facts, place || d.path", "facts IS NOT NULL AND correlation_id = ?", correlation_id)
            return [message_of(facts, path=path) for facts, path in found if path not in absent]

        return News(tuple(rejects), tuple(fresh), find, recalled, tuple(changed))

    def _check_landing(self, count: int, rejects: Sequence[Reject]) -> None:
        shown = ", ".join(self._paths)
        with self._reporting():
            knows = self._database.execute("SELECT 1 FROM file LIMIT 1").fetchone()
            common = "SELECT 1 FROM file f JOIN listed l ON l.path = f.path AND l.size = f.size LIMIT 1"
            is_same = self._of[_LANDING] == self._identity[_LANDING] or self._database.execute(common).fetchone()
        if knows and not count and not rejects:
            raise SpoolError(shown, "the landing is empty, and was not: see that it is there and mounted")
        if knows and not is_same:
            was = ", ".join(self._of[_LANDING])
            raise ConfigError(
                f"{self._place} is a checkpoint of the landing {was}, and {shown} has none of its files: "
                "choose another folder"
            )

    def _unread(self) -> Iterator[FileState]:
        with self._reporting():
            yield from (FileState(*row) for row in self._database.execute("SELECT * FROM temp.unread ORDER BY rowid"))

    def _documents(self, path: str) -> dict[str, tuple[str, str]]:
        query = "SELECT d.path, state, sha256 FROM document d JOIN file f USING (position) WHERE f.path = ?"
        with self._reporting():
            rows = self._database.execute(query, (self.relative(path),))
            return {member: (state, sha256) for member, state, sha256 in rows}

    def _there(self, columns: str, condition: str, *values: object) -> list[tuple[Any, ...]]:
        joined = "document d JOIN file f USING (position) JOIN listed l ON l.path = f.path"
        with self._reporting():
            query = f"SELECT {columns} FROM {joined} WHERE {condition} ORDER BY d.position, d.path"  # noqa: S608 - constants
            return self._database.execute(query, values).fetchall()

    def unwritten_files(self) -> Iterator[PlannedFile]:
        """Yield the responses that are still there of loads in which some objects were as the tables had them."""
        for facts, path in self._there("facts, place || d.path", f"state = '{UNWRITTEN}'"):
            yield message_of(facts, path=path, complete=True, modified_ns=None)  # its mount may have moved

    def check_unchanged(self) -> None:
        """Check that no file has changed while it was read. A file may have been deleted since."""
        for now in list_files(self._paths, []):
            seen = self.state(now.path)
            if seen is not None and (seen.size, seen.modified_ns) != (now.size, now.modified_ns):
                raise SpoolError(now.path, "has changed while it was read; nothing was written: ingest again")

    def save(
        self,
        folder: Path,
        news: News,
        plan: Plan,
        rejects: Iterable[Reject],
        closings: Iterable[Closing],
        tables: dict[str, Table],
        unwritten: dt.datetime | None,
        *,
        wait: bool,
    ) -> None:
        """Write what a run has read, and forget the documents whose files are gone. A first checkpoint goes into a
        staged folder; one that is there changes with `finish`. `unwritten`: the time of the run's last response, if
        some of its objects were not written."""
        until = max(filter(None, (unwritten, self.unwritten)), default=None)
        remembered = {replace(closing, sequence="") for closing in (*self.closings, *closings)}
        newest = sorted(remembered, key=lambda one: (one.time, one.object_type, one.name))[-_REMEMBERED:]
        meta = {
            "of": self._identity,
            "from_zero": sorted(self.from_zero | senders_from_zero(plan.files)),
            "closings": [(one.time.isoformat(), one.object_type, one.name) for one in newest],
            "unwritten": until and until.isoformat(),
            "tables": tables,
        }
        with self._reporting():
            self._database.execute("BEGIN")
            self._keep_files()
            self._keep_documents(self._found(news, plan, rejects, UNWRITTEN if unwritten else READ, wait=wait))
            texts = ((name, json.dumps(value)) for name, value in meta.items())
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", texts)
        if not self.exists:
            self.finish()
            with self._reporting():
                self._database.execute("VACUUM INTO ?", (str(folder / CHECKPOINT),))

    def finish(self) -> None:
        """Commit what `save` has written."""
        if self._database.in_transaction:
            with self._reporting():
                self._database.execute("COMMIT")

    def _keep_files(self) -> None:
        gone = "path NOT IN (SELECT path FROM listed)"
        for statement in (
            f"DELETE FROM document WHERE position IN (SELECT position FROM file WHERE {gone})",  # noqa: S608
            f"DELETE FROM file WHERE {gone}",  # noqa: S608 - a constant
            # A file with a document that has changed stays as it was known, so that the next run tells it again.
            (
                "INSERT INTO file (path, size, modified_ns) SELECT path, size, modified_ns FROM listed "
                "WHERE sha256 IS NOT NULL AND NOT stale "
                "ON CONFLICT (path) DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns"
            ),
        ):
            self._database.execute(statement)

    def _found(
        self, news: News, plan: Plan, rejects: Iterable[Reject], read: str, *, wait: bool
    ) -> Iterator[tuple[str, str, PlannedFile | None]]:
        """Yield path, state and message of each document of a run."""
        stuck = {found.correlation_id for found in plan.sequences if found.is_stuck}
        for file in plan.files:
            left_out = STUCK if file.correlation_id in stuck else WAITING
            whole = read if file.kind == RESPONSE else READ
            state = whole if file.complete is not False else left_out if wait else MARKED
            for path in (file.path, *file.duplicates):
                found = state if path == file.path or state != UNWRITTEN else READ
                yield path, found, replace(file, path=path, duplicates=(), complete=None)
        changed = {*news.changed}
        for reject in rejects:
            if reject not in changed:  # the entry of the run that read it stays
                yield reject.file, REJECTED, None

    def _keep_documents(self, found: Iterable[tuple[str, str, PlannedFile | None]]) -> None:
        statement = (
            "INSERT INTO document SELECT position, ?, ?, sha256, ?, ? FROM file JOIN listed USING (path) "
            "WHERE path = ? ON CONFLICT (position, path) DO UPDATE SET state = excluded.state, facts = excluded.facts, "
            "correlation_id = excluded.correlation_id, sha256 = coalesce(excluded.sha256, sha256)"
        )
        for path, state, message in found:
            if (file := disk_file(path, self)) is not None:
                facts = (None, None) if message is None else (message.correlation_id, facts_text(message))
                self._database.execute(statement, (path.removeprefix(file), state, *facts, self.relative(file)))

    def left_out(self) -> dict[str, Any]:
        """Return how many responses wait for the rest of their sequences, and how many of them wait for ever, because
        their sequences cannot become complete."""
        query = f"SELECT state, count(*) FROM document WHERE {_LEFT_OUT} GROUP BY state"  # noqa: S608 - constants
        with self._reporting():
            counts = dict(self._database.execute(query).fetchall())
        return {"waiting": sum(counts.values()), "stuck": counts.get(STUCK, 0)}


def _roots(paths: Collection[str]) -> tuple[str, ...]:
    """Return with what the paths of the files of a landing begin; nothing if it has several paths."""
    if len(paths) != 1:
        return ()
    (path,) = map(placed, paths)
    plain = re.split(r"[*?\[{]", path)[0]
    folder = plain[: plain.rfind("/") + 1]
    return (folder,) if plain != path else (f"{path.rstrip('/')}/", folder)
