"""The plan of a landing: what each file is, which files are duplicates or rejects, which sequences are complete.

Planning reads only the head and the end of a file that will be read later. It reads a whole file if nothing else will
(requests, faults), or if another file has the same key (kind, correlationId, batchSequenceNumber). It keeps a few small
facts about each file and none of its content. Files are ordered by path, so among several copies it always keeps the
same one, however the files are partitioned.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Final, TypeVar

from mtosi_jms.bulk import spool_errors
from mtosi_jms.compression import is_document_name
from mtosi_jms.errors import MtosiError, SpoolError, XmlError
from mtosi_jms.inventory import MESSAGE
from mtosi_jms.patterns import Standing, standing_of
from mtosi_jms.tables.envelope import (
    BULK_RESPONSE,
    FAULT,
    RESPONSE,
    body_digest,
    check_size,
    file_digest,
    reject_of,
    scan_head,
    verify,
)
from mtosi_jms.tables.files import (
    SHELF,
    FileState,
    Reject,
    documents_of,
    files_of,
    follow,
    list_files,
    state_of,
    unreadable,
)
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions, Verify
from mtosi_jms.tables.sequences import (
    Receipt,
    ReplySequence,
    check_complete,
    reckon,
    sequence_key,
    time_of,
)

__all__ = [
    "Digested",
    "Plan",
    "PlannedFile",
    "Scanned",
    "changed",
    "checksum",
    "log",
    "look",
    "partition",
    "plan_landing",
    "plan_scanned",
    "plan_to_read",
    "read_digests",
    "readable",
    "scan_path",
    "scanned_path",
    "senders_from_zero",
    "settle",
]

_log = logging.getLogger(__package__)
_AT_ONCE: Final = 8
_WINDOW: Final = 512
_CHUNK: Final = 1024 * 1024
_SMALL: Final = 1024 * 1024
_LARGE: Final = 512 * 1024 * 1024
CHANGED: Final = "has changed since the landing was planned"
_NOT_FURTHER: Final = "names a file that is not read: it was in such a file itself"


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One message of a landing.

    Attributes:
        path: absolute path; `ARCHIVE!/MEMBER` for a document in an archive.
        size: bytes on disk; for a document in an archive, bytes in the archive.
        kind: response, request, fault, notification or bulk response.
        correlation_id, batch_number, end_of_reply: see `EnvelopeFacts`.
        body_tag: Clark name of the first element of the body.
        complete: whether the sequence of the message is complete; None if it belongs to no sequence.
        duplicates: other files with the same message, which are left out.
        timestamp: the timestamp of the header as text; None if absent.
        modified_ns: when its file, or the archive, was last changed, in nanoseconds since 1970; None if unknown.
        changed_ns: `FileState.changed_ns` of it then.
        mark: of its beginning, see `mark_of`; empty if unknown.
        sender: senderURI of the header; None if absent.
    """

    path: str
    size: int
    kind: str
    correlation_id: str | None
    batch_number: int | None
    end_of_reply: bool | None
    body_tag: str
    complete: bool | None = None
    duplicates: tuple[str, ...] = ()
    timestamp: str | None = None
    modified_ns: int | None = None
    changed_ns: int | None = None
    mark: str = ""
    sender: str | None = None

    def check(self) -> None:
        """Check that the file is what it was when it was planned. Raises SpoolError: it has changed, is gone, or cannot
        be read."""
        if self.modified_ns is not None:
            now = state_of(self.path)
            is_touched = self.changed_ns not in (None, now.changed_ns)
            is_resized = now.path == self.path and now.size != self.size
            if is_touched or is_resized or now.modified_ns != self.modified_ns:
                raise SpoolError(self.path, CHANGED)

    def check_mark(self, mark: str) -> None:
        """Check that the document has the mark that it had when it was planned. Raises SpoolError: it has another
        one."""
        if self.mark and mark != self.mark:
            raise SpoolError(self.path, CHANGED)


Scanned = tuple[PlannedFile, "str | None"] | Reject | None
"""The result of `scan`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned landing.

    Attributes:
        files: the messages to read, each once, ordered by path.
        rejects: files that cannot be read as a message, ordered by path.
        sequences: the ledger.
        counts: number of messages of each kind, duplicates included.
        unfollowed: replies of BulkResponse whose files are not read, and why.
    """

    files: tuple[PlannedFile, ...]
    rejects: tuple[Reject, ...]
    sequences: tuple[ReplySequence, ...]
    counts: dict[str, int]
    unfollowed: tuple[Reject, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """A file that was looked at: its messages and rejects. `sha256`: of its bytes, without decompression; empty if
    nobody asked for it. `error`: why the file cannot be read, or that it has changed since it was listed; otherwise
    empty."""

    path: str
    scanned: tuple[Scanned, ...] = ()
    sha256: str = ""
    error: str = ""


Found = TypeVar("Found")
Digested = tuple["PlannedFile", "str | Reject"]
"""A message and the `body_digest` of it, or a reject if that is impossible."""


def changed(file: FileState) -> str:
    """Say what has happened to a file since it was listed; empty if nothing."""
    try:
        now = state_of(file.path)
    except SpoolError as error:
        return f"is gone, or cannot be read, since it was listed: {error.reason}"
    same = (now.path, now.size, now.modified_ns) == (file.path, file.size, file.modified_ns)
    return "" if same else "has changed since it was listed"


def plan_landing(options: SourceOptions) -> Plan:
    """Plan a landing. With the option `correlationId` the plan has only messages with this id, and all rejects. Raises
    SpoolError: the landing does not exist or cannot be read; ConfigError: a path on a file system that fsspec does not
    know, or lacks a library for."""
    rejects: list[Reject] = []
    listed = {file.path: file for file in list_files(options.paths, rejects, options.sieve)}
    files = (listed.pop(path) for path in sorted(listed))  # a plan needs more room than a list
    scan = partial(_scanned, options=options)
    scanned = map(scan, files) if options.is_local else _each(scan, files)
    return plan_scanned(chain(rejects, chain.from_iterable(scanned)), options)


def look(files: Iterable[FileState], options: SourceOptions, *, whole: bool = False) -> Iterator[Scan]:
    """Look at listed files; with `whole` read them to their ends, for their checksums."""
    with SHELF.held():
        yield from _each(partial(_look, options=options, whole=whole), files)


def _look(file: FileState, options: SourceOptions, *, whole: bool) -> Scan:
    try:
        sha256, error = checksum(file.path) if whole else "", changed(file)
    except SpoolError as found:
        sha256, error = "", found.reason
    return Scan(file.path, () if error else _scanned(file, options), sha256, error)


def _scanned(file: FileState, options: SourceOptions) -> tuple[Scanned, ...]:
    return tuple(scan_file(file, options))


def _each(work: Callable[[FileState], Found], files: Iterable[FileState]) -> Iterator[Found]:
    """Yield what a function makes of each file, in order, several at once while disk or network answers."""
    waiting = iter(files)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while some := list(islice(waiting, _WINDOW)):
            yield from pool.map(work, some)


def plan_to_read(options: SourceOptions) -> Plan:
    """Plan a landing, and log what is rejected or not followed. Raises MtosiError: as `plan_landing`; in mode FAILFAST,
    a file is rejected."""
    plan = plan_landing(options)
    for reject in plan.rejects:
        log(reject)
    for reply in plan.unfollowed:
        log(reply, "not followed")
    if plan.rejects and options.mode is Mode.FAILFAST:
        raise MtosiError(str(plan.rejects[0]))
    return plan


def log(reject: Reject, what: str = "rejected") -> None:
    """Log as a warning what was not read."""
    _log.warning("%s %s", what, reject)


@SHELF.held()
def plan_scanned(
    scanned: Iterable[Scanned],
    options: SourceOptions,
    known: Callable[[str], Iterable[PlannedFile]] = lambda _: (),
    recalled: Iterable[str] = (),
) -> Plan:
    """Make the plan of scanned documents. `scanned`: results of `scan`, and further rejects. `known`: gives the
    messages of earlier plans with a correlationId, which are in the plan if a new message has it. `recalled`:
    correlationIds whose known messages are in the plan in any case."""
    rejects: list[Reject] = []
    files, replies = _parted(scanned, rejects)
    named, unfollowed = follow(replies, options.bulk_files, rejects)
    looked_at = {file.path for file in files} | {reject.file for reject in rejects}
    more = (scan(path, size, options) for path, size in sorted(named.items()) if path not in looked_at)
    followed, deeper = _parted(more, rejects)
    unfollowed += [Reject(path, None, _NOT_FURTHER) for path, _ in deeper]
    files += followed
    correlation_ids = {file.correlation_id for file in files} | set(recalled)
    files += [file for key in correlation_ids if key is not None for file in known(key)]
    files.sort(key=lambda file: file.path)
    digests = partial(read_digests, whole_file_bytes=options.whole_file_bytes)
    kept, sequences = settle(files, rejects, digests, options)
    bad = {reject.file for reject in rejects}
    counts = Counter(file.kind for file in files if file.path not in bad)
    rejects.sort(key=lambda reject: reject.file)
    return Plan(tuple(kept), tuple(rejects), tuple(sequences), dict(counts), tuple(unfollowed))


def _parted(scanned: Iterable[Scanned], rejects: list[Reject]) -> tuple[list[PlannedFile], list[tuple[str, str]]]:
    """Split scanned documents into messages and replies of BulkResponse (path and fileLocationURI).

    Rejects are added to `rejects`.
    """
    found: list[PlannedFile] = []
    replies: list[tuple[str, str]] = []
    for each in scanned:
        if isinstance(each, Reject):
            rejects.append(each)
        elif each is not None:
            file, named = each
            found.append(file)
            replies += [(file.path, named)] if named is not None else []
    return found, replies


def scanned_path(scanned: Scanned) -> str:
    """Return the path of a scanned document; empty for a message that the options do not ask for."""
    return scanned.file if isinstance(scanned, Reject) else scanned[0].path if scanned is not None else ""


def scan_file(file: FileState, options: SourceOptions) -> Iterator[Scanned]:
    """Scan each document of a listed file; yield the messages that the options ask for, and rejects."""
    rejects: list[Reject] = []
    documents = {file.path: file.size} if is_document_name(file.path) else documents_of(file.path, rejects)
    scanned = (scan(path, size, options, file) for path, size in documents.items())
    yield from (each for each in scanned if each is not None)
    yield from rejects


def scan_path(path: str, options: SourceOptions) -> Iterator[Scanned]:
    """Scan each document of a file in its present state, as `scan_file` does."""
    try:
        file = state_of(path)
    except SpoolError as error:
        yield unreadable(error, path)
        return
    yield from scan_file(file, options)


def checksum(path: str) -> str:
    """Return the SHA-256 of the bytes of a file, without decompression. Raises SpoolError: the file cannot be read."""
    with spool_errors(path), files_of(path).open(path) as stream:
        digest = hashlib.sha256()
        while data := stream.read(_CHUNK):
            digest.update(data)
        return digest.hexdigest()


def scan(path: str, size: int, options: SourceOptions, state: FileState | None = None) -> Scanned:
    """Read the head and the end of a file, or the whole file if the options or its kind require that. `state`: of its
    file, as it was listed; by default its present state.

    Returns:
        The message, with the file that it names if it is a reply of BulkResponse; or a reject; or None for a message
        that the options do not ask for.
    """
    try:
        state = state or state_of(path)
        facts = scan_head(path)
        if not options.asks_for(facts.correlation_id):
            return None
        if options.object_types != (MESSAGE,):
            check_size(facts, path, options.whole_file_bytes)
        if options.verify is Verify.FULL or not options.reads(facts.kind):
            verify(path, options.whole_file_bytes)
    except (XmlError, SpoolError) as error:
        return reject_of(error, path)
    file = PlannedFile(
        path,
        size,
        facts.kind,
        facts.correlation_id,
        facts.batch_number,
        facts.end_of_reply,
        facts.body_tag,
        timestamp=facts.header.get("timestamp"),
        modified_ns=state.modified_ns,
        changed_ns=state.changed_ns,
        mark=facts.mark,
        sender=facts.header.get("senderURI"),
    )
    return file, facts.header["fileLocationURI"] if facts.kind == BULK_RESPONSE else None


Digests = Callable[[Sequence[PlannedFile]], Iterable[Digested]]
"""Computes the `body_digest` of files that share their key with another file, or a reject if that is impossible."""


def settle(
    scanned: Iterable[PlannedFile], rejects: list[Reject], digests: Digests, options: SourceOptions
) -> tuple[list[PlannedFile], list[ReplySequence]]:
    """Remove copies of messages, and find out which sequences are complete.

    Any number of correlationIds may be settled at a time: of the others only `options.from_zero` has to be known.
    `scanned`: the messages, ordered by path. `rejects`: files that turn out to be damaged are added to it. `digests`:
    computes digests to find copies.

    Returns the messages to read, ordered by path, and the ledger.
    """
    kept, receipts = _without_duplicates(scanned, rejects, digests)
    sequences = reckon(receipts, options.first_batch, options.from_zero)
    complete = {sequence_key(found.correlation_id, found.source or ""): found.complete for found in sequences}
    for position, file in enumerate(kept):
        if file.kind == RESPONSE:
            kept[position] = replace(file, complete=complete[sequence_key(file.correlation_id, file.path)])
    return kept, sequences


def _without_duplicates(
    scanned: Iterable[PlannedFile], rejects: list[Reject], digests: Digests
) -> tuple[list[PlannedFile], list[Receipt]]:
    """Return the files to read without duplicates, and what the ledger needs to know about all files."""
    groups: dict[tuple[str, str | None, int | None], list[PlannedFile]] = {}
    kept: list[PlannedFile] = []
    for file in scanned:
        if file.correlation_id is None:
            kept.append(file)
        else:
            groups.setdefault((file.kind, file.correlation_id, file.batch_number), []).append(file)
    receipts = [_receipt(file, file.path) for file in kept]
    several = [file for group in groups.values() if len(group) > 1 for file in group]
    bodies = {file.path: body for file, body in digests(several)} if several else {}
    for group in groups.values():
        for (digest, _), copies in _by_body(group, rejects, bodies).items():
            first = replace(copies[0], duplicates=tuple(copy.path for copy in copies[1:]))
            kept.append(first)
            receipts.append(_receipt(first, digest))
    kept.sort(key=lambda file: file.path)
    return kept, [receipt for receipt in receipts if receipt is not None]


def _by_body(
    group: list[PlannedFile], rejects: list[Reject], digests: Mapping[str, str | Reject]
) -> dict[tuple[str, Standing], list[PlannedFile]]:
    """Group the files of one key by the digests of their bodies and their end marks; a damaged file is added to
    `rejects`."""
    copies: dict[tuple[str, Standing], list[PlannedFile]] = {}
    for file in group:
        body = digests[file.path] if len(group) > 1 else file.path
        if isinstance(body, Reject):
            rejects.append(body)
        else:
            copies.setdefault((body, standing_of(file.batch_number, file.end_of_reply)), []).append(file)
    return copies


def read_digests(files: Sequence[PlannedFile], whole_file_bytes: int) -> Iterator[Digested]:
    """Compute `Digests` from files; among files with the same bytes only one is parsed."""
    known: dict[str, str] = {}
    for file in files:
        try:
            raw = file_digest(file.path)
            body = known.get(raw) or body_digest(file.path, whole_file_bytes)
        except (XmlError, SpoolError) as error:
            yield file, reject_of(error, file.path)
            continue
        known[raw] = body
        yield file, body


def _receipt(file: PlannedFile, digest: str) -> Receipt | None:
    if file.kind not in (RESPONSE, FAULT):
        return None
    key = (file.correlation_id, file.batch_number, file.end_of_reply)
    copies = 1 + len(file.duplicates)
    time, sender = time_of(file.timestamp), file.sender or ""
    return Receipt(*key, digest, file.path, copies, file.kind == FAULT, time, sender)


def senders_from_zero(files: Iterable[PlannedFile]) -> frozenset[str]:
    """Return the senders of which a batch 0 is among the messages: they count from 0 (C23)."""
    return frozenset(file.sender or "" for file in files if file.batch_number == 0 and file.kind == RESPONSE)


def readable(plan: Plan, options: SourceOptions) -> list[PlannedFile]:
    """Return the files that have to be read with these options. Raises ExchangeError: `onIncomplete=fail` and a
    sequence is incomplete."""
    if options.on_incomplete is OnIncomplete.FAIL:
        check_complete(found for found in plan.sequences if options.asks_for(found.correlation_id))
    files = [file for file in plan.files if options.asks_for(file.correlation_id)]
    if options.on_incomplete is OnIncomplete.FILTER:
        return [file for file in files if file.complete is not False]
    return files


def partition(files: Sequence[PlannedFile], most: int | None) -> list[tuple[PlannedFile, ...]]:
    """Distribute files to partitions of about equal size, always in the same way.

    There are at most `most` partitions. By default there are two for each processor of this machine, fewer if a
    partition would have less than 1 MB, more if one would have more than 512 MB.
    """
    total = sum(file.size for file in files)
    wanted = most or max(min(2 * (os.cpu_count() or 1), math.ceil(total / _SMALL)), math.ceil(total / _LARGE))
    count = max(1, min(wanted, len(files)))
    heap = [(0, number) for number in range(count)]
    hands: list[list[PlannedFile]] = [[] for _ in range(count)]
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        load, number = heapq.heappop(heap)
        hands[number].append(file)
        heapq.heappush(heap, (load + file.size, number))
    return [tuple(sorted(hand, key=lambda file: file.path)) for hand in hands if hand]
