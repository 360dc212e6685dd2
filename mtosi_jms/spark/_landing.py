"""The plan of a landing: what each file is, which are duplicates, which sequences are complete, what is rejected.

Planning reads the head and the end of each file that will be read later, and the whole of those only that will not
(requests, faults) or whose key (kind, correlationId, batchSequenceNumber) another file has too. It holds a few small
facts for each file and nothing of its content. Files are taken in the order of their paths, so that of several copies
always the same one is kept, wherever partitions lie.
"""

from __future__ import annotations

import heapq
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from mtosi_jms.errors import ConfigError, SpoolError, XmlError
from mtosi_jms.spark._digest import body_digest, file_digest
from mtosi_jms.spark._envelope import BULK_RESPONSE, FAULT, RESPONSE, reject_of, scan_head, verify
from mtosi_jms.spark._files import SHELF, Found, Reject, documents_of, find_files, follow
from mtosi_jms.spark._options import OnIncomplete, SourceOptions, Verify
from mtosi_jms.spark._sequences import (
    Receipt,
    ReplySequence,
    check_complete,
    reckon,
    sequence_key,
    time_of,
    time_text,
)

_SMALL: Final = 1024 * 1024
_LARGE: Final = 512 * 1024 * 1024
_NOT_FURTHER: Final = "names a file that is not read: it was in such a file itself"


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One message of a landing.

    Attributes:
        path: absolute path, of a document in an archive `ARCHIVE!/MEMBER`.
        size: bytes on disk, of a document in an archive bytes in it.
        kind: response, request, fault, notification or bulk response.
        correlation_id, batch_number, end_of_reply: see `EnvelopeFacts`.
        body_tag: Clark name of the first element of the body.
        complete: whether the sequence of the message is complete; None for what belongs to none.
        duplicates: files that hold the same message and are left out.
        timestamp: that of the header as text, None where it is absent.
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


Scanned = tuple[PlannedFile, "str | None"] | Reject | None
"""What `scan` gives."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned landing.

    Attributes:
        files: the messages to read, each once, by path.
        rejects: what cannot be read as a message, by path.
        sequences: the ledger.
        counts: how many messages of each kind lie there, duplicates included.
        unfollowed: replies of BulkResponse whose files are not read, and why.
    """

    files: tuple[PlannedFile, ...]
    rejects: tuple[Reject, ...]
    sequences: tuple[ReplySequence, ...]
    counts: dict[str, int]
    unfollowed: tuple[Reject, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, for the option `planFile`."""
        Path(path).write_text(json.dumps(asdict(self), default=time_text), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan that `save` wrote.

        Raises:
            ConfigError: there is none, or it is damaged.
        """
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls(
                tuple(PlannedFile(**{**item, "duplicates": tuple(item["duplicates"])}) for item in document["files"]),
                tuple(Reject(**item) for item in document["rejects"]),
                tuple(_sequence(item) for item in document["sequences"]),
                dict(document["counts"]),
                tuple(Reject(**item) for item in document["unfollowed"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"planFile {path}: {error}") from error


def _sequence(item: dict[str, Any]) -> ReplySequence:
    lists = {name: tuple(value) for name, value in item.items() if isinstance(value, list)}
    times = {name: time_of(item[name]) for name in ("first_time", "last_time")}
    return ReplySequence(**{**item, **lists, **times})


def plan_landing(
    options: SourceOptions, found: Found | None = None, known: Mapping[str, Sequence[PlannedFile]] | None = None
) -> Plan:
    """Look at a landing; with the option `correlationId` the plan knows of nothing else but rejects.

    Args:
        options: of the load.
        found: the files to look at, by default all of the landing.
        known: as `plan_scanned`.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
        ConfigError: a path on another file system, a damaged plan file.
    """
    if options.plan_file:
        return Plan.load(options.plan_file)
    with SHELF.held():
        found = find_files(options.paths, options.sieve) if found is None else found
        scanned = (scan(path, size, options) for path, size in found.files)
        return plan_scanned(chain(found.rejects, scanned), options, known)


def plan_scanned(
    scanned: Iterable[Scanned],
    options: SourceOptions,
    known: Mapping[str, Sequence[PlannedFile]] | None = None,
    recalled: Iterable[str] = (),
    digests: Digests | None = None,
) -> Plan:
    """The plan of documents that were looked at.

    Args:
        scanned: what `scan` gave, and further rejects.
        options: of the load.
        known: messages that an earlier plan has looked at, by correlationId: they come along with any other message of
            their sequence.
        recalled: correlationIds whose known messages come along in any case.
        digests: tells copies; by default out of the files of this machine.
    """
    rejects: list[Reject] = []
    files, replies = _parted(scanned, rejects)
    named, unfollowed = follow(replies, options.bulk_files, rejects)
    looked_at = {file.path for file in files} | {reject.file for reject in rejects}
    more = (scan(path, size, options) for path, size in sorted(named.items()) if path not in looked_at)
    followed, deeper = _parted(more, rejects)
    unfollowed += [Reject(path, None, _NOT_FURTHER) for path, _ in deeper]
    files += followed
    asked = {file.correlation_id for file in files} | set(recalled)
    files += [file for key in asked if key is not None for file in (known or {}).get(key, ())]
    files.sort(key=lambda file: file.path)
    kept, sequences = settle(files, rejects, digests or (lambda copies: read_digests(copies, options.whole_file_bytes)))
    bad = {reject.file for reject in rejects}
    counts = Counter(file.kind for file in files if file.path not in bad)
    rejects.sort(key=lambda reject: reject.file)
    return Plan(tuple(kept), tuple(rejects), tuple(sequences), dict(counts), tuple(unfollowed))


def _parted(scanned: Iterable[Scanned], rejects: list[Reject]) -> tuple[list[PlannedFile], list[tuple[str, str]]]:
    """The messages, and the path and the fileLocationURI of each reply of BulkResponse; `rejects` takes the others."""
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
    """The document that was looked at; empty for one that is not asked for."""
    return scanned.file if isinstance(scanned, Reject) else scanned[0].path if scanned is not None else ""


def scan_file(path: str, options: SourceOptions) -> Iterator[Scanned]:
    """Look at each document of a file that is asked for, as `scan`; what cannot be opened is a reject."""
    rejects: list[Reject] = []
    scanned = (scan(document, size, options) for document, size in documents_of(path, rejects).items())
    yield from (each for each in scanned if each is not None)
    yield from rejects


def scan(path: str, size: int, options: SourceOptions) -> Scanned:
    """Look at the head and the end of a file, and where that is asked for at all of it.

    Returns:
        The message, and the file that it names if it is a reply of BulkResponse; why it is none; or None for a message
        that the options do not ask for.
    """
    try:
        facts = scan_head(path)
        if not options.asks_for(facts.correlation_id):
            return None
        if options.verify is Verify.FULL or not options.reads(facts.kind):
            verify(path, options.whole_file_bytes)
    except (XmlError, SpoolError) as error:
        return reject_of(error, path)
    key = (facts.correlation_id, facts.batch_number, facts.end_of_reply)
    file = PlannedFile(path, size, facts.kind, *key, facts.body_tag, timestamp=facts.header.get("timestamp"))
    return file, facts.header["fileLocationURI"] if facts.kind == BULK_RESPONSE else None


Digests = Callable[[Sequence[PlannedFile]], Iterable[tuple[PlannedFile, "str | Reject"]]]
"""What the bodies of files say (`body_digest`) whose key another file has too, or why it cannot be told."""


def settle(
    scanned: Iterable[PlannedFile], rejects: list[Reject], digests: Digests
) -> tuple[list[PlannedFile], list[ReplySequence]]:
    """Part messages from their copies, and reckon which sequences are complete.

    Messages of different correlationIds have nothing to do with each other, so this may be done for some at a time.

    Args:
        scanned: the messages by path.
        rejects: takes files that turn out to be damaged.
        digests: tells copies.

    Returns:
        The messages to read by path, and the ledger.
    """
    kept, receipts = _without_duplicates(scanned, rejects, digests)
    sequences = reckon(receipts)
    complete = {sequence_key(found.correlation_id, found.source or ""): found.complete for found in sequences}
    for position, file in enumerate(kept):
        if file.kind == RESPONSE:
            kept[position] = replace(file, complete=complete[sequence_key(file.correlation_id, file.path)])
    return kept, sequences


def _without_duplicates(
    scanned: Iterable[PlannedFile], rejects: list[Reject], digests: Digests
) -> tuple[list[PlannedFile], list[Receipt]]:
    """The files to read, and what the ledger needs to know of all of them."""
    groups: dict[tuple[str, str | None, int | None], list[PlannedFile]] = {}
    kept: list[PlannedFile] = []
    for file in scanned:
        if file.correlation_id is None:
            kept.append(file)
        else:
            groups.setdefault((file.kind, file.correlation_id, file.batch_number), []).append(file)
    receipts = [_receipt(file, file.path) for file in kept]
    several = [file for group in groups.values() if len(group) > 1 for file in group]
    told = {file.path: body for file, body in digests(several)} if several else {}
    for group in groups.values():
        for digest, copies in _by_body(group, rejects, told).items():
            first = replace(copies[0], duplicates=tuple(copy.path for copy in copies[1:]))
            kept.append(first)
            receipts.append(_receipt(first, digest))
    kept.sort(key=lambda file: file.path)
    return kept, [receipt for receipt in receipts if receipt is not None]


def _by_body(
    group: list[PlannedFile], rejects: list[Reject], told: Mapping[str, str | Reject]
) -> dict[str, list[PlannedFile]]:
    """The files of one key by what their bodies say; a file that turns out to be damaged is rejected."""
    if len(group) == 1:
        return {group[0].path: group}
    bodies: dict[str, list[PlannedFile]] = {}
    for file in group:
        body = told[file.path]
        if isinstance(body, Reject):
            rejects.append(body)
        else:
            bodies.setdefault(body, []).append(file)
    return bodies


def read_digests(files: Sequence[PlannedFile], whole_file_bytes: int) -> Iterator[tuple[PlannedFile, str | Reject]]:
    """`Digests` out of the files; of those that are the same to the byte only one is parsed."""
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
    return Receipt(*key, digest, file.path, copies, file.kind == FAULT, time_of(file.timestamp))


def readable(plan: Plan, options: SourceOptions) -> list[PlannedFile]:
    """The files that the options leave to be read.

    Raises:
        ExchangeError: `onIncomplete=fail` and some sequence is incomplete.
    """
    if options.on_incomplete is OnIncomplete.FAIL:
        check_complete(found for found in plan.sequences if options.asks_for(found.correlation_id))
    files = [file for file in plan.files if options.asks_for(file.correlation_id)]
    if options.on_incomplete is OnIncomplete.FILTER:
        return [file for file in files if file.complete is not False]
    return files


def partition(files: Sequence[PlannedFile], most: int | None) -> list[tuple[PlannedFile, ...]]:
    """Files dealt out to partitions of about equal size, the same way every time.

    There are at most `most`: by default twice the processors of this machine, and more only where a partition would
    exceed 512 MB. A partition holds no less than 1 MB while there are others.
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
