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
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from mtosi_jms.errors import ArchiveError, ConfigError, ExchangeError, MalformedXmlError, SpoolError, XmlError
from mtosi_jms.spark._bulk import NOT_FURTHER, follow
from mtosi_jms.spark._digest import body_digest, file_digest
from mtosi_jms.spark._discover import Reject, find_files
from mtosi_jms.spark._envelope import BULK_RESPONSE, FAULT, RESPONSE, EnvelopeFacts
from mtosi_jms.spark._landed import ends_early, scan_head, verify
from mtosi_jms.spark._packed import SHELF
from mtosi_jms.spark.options import OnIncomplete, SourceOptions, Verify
from mtosi_jms.spark.sequences import Receipt, ReplySequence, reckon, sequence_key, time_of, time_text

_SMALL: Final = 1024 * 1024
_LARGE: Final = 512 * 1024 * 1024
_TIMES: Final = ("first_time", "last_time")
_PLAIN: Final = ("empty", "damaged gzip", "no element")


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


@dataclass(frozen=True, slots=True)
class Landing:
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
        document = {
            "files": [asdict(file) for file in self.files],
            "rejects": [asdict(reject) for reject in self.rejects],
            "sequences": [_sequence_json(sequence) for sequence in self.sequences],
            "counts": self.counts,
            "unfollowed": [asdict(reject) for reject in self.unfollowed],
        }
        Path(path).write_text(json.dumps(document), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Landing:
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


def _sequence(item: dict[str, object]) -> ReplySequence:
    lists = {name: tuple(value) for name, value in item.items() if isinstance(value, list)}
    times = {name: time_of(str(item[name])) for name in _TIMES if item.get(name) is not None}
    return ReplySequence(**{**item, **lists, **times})  # type: ignore[arg-type]


def _sequence_json(found: ReplySequence) -> dict[str, object]:
    return {**asdict(found), "first_time": time_text(found.first_time), "last_time": time_text(found.last_time)}


def plan_landing(options: SourceOptions) -> Landing:
    """Look at a landing.

    Args:
        options: what is asked for; with `correlationId` the plan knows of nothing else but rejects.

    Raises:
        SpoolError: the landing does not exist or cannot be read.
        ConfigError: a path on another file system, a damaged plan file.
    """
    if options.plan_file:
        return Landing.load(options.plan_file)
    with SHELF.held():
        return _look(options)


def _look(options: SourceOptions) -> Landing:
    found = find_files(options.paths)
    rejects = list(found.rejects)
    scan = _Scan(options, rejects)
    scan.add(found.files)
    named, scan.named = scan.named, []
    more, unfollowed = follow(named, options.bulk_files, rejects)
    known = dict(found.files)
    scan.add(sorted((path, size) for path, size in more.items() if path not in known))
    unfollowed += [Reject(path, None, NOT_FURTHER) for path, _ in scan.named]
    scanned = scan.files
    kept, receipts = _without_duplicates(scanned, rejects, options.whole_file_bytes)
    sequences = tuple(reckon(receipts))
    complete = {sequence_key(found.correlation_id, found.source or ""): found.complete for found in sequences}
    marked = [_marked(file, complete) for file in kept]
    bad = {reject.file for reject in rejects}
    counts = Counter(file.kind for file in scanned if file.path not in bad)
    rejects.sort(key=lambda reject: reject.file)
    return Landing(tuple(marked), tuple(rejects), sequences, dict(counts), tuple(unfollowed))


class _Scan:
    """Looks at the head and the end of files.

    Attributes:
        files: what was found.
        named: replies of BulkResponse among them, and their fileLocationURI.
    """

    def __init__(self, options: SourceOptions, rejects: list[Reject]) -> None:
        self.files: list[PlannedFile] = []
        self.named: list[tuple[str, str]] = []
        self._options = options
        self._rejects = rejects

    def add(self, files: Iterable[tuple[str, int]]) -> None:
        """Look at files, given with their sizes in bytes."""
        for path, size in files:
            try:
                self._file(path, size)
            except (XmlError, SpoolError) as error:
                self._rejects.append(reject_of(error, path))

    def _file(self, path: str, size: int) -> None:
        options, facts = self._options, scan_head(path)
        if not options.asks_for(facts.correlation_id):
            return
        if options.verify is Verify.FULL or not options.reads(facts.kind):
            verify(path, options.whole_file_bytes)
        self.files.append(_planned(path, size, facts))
        if facts.kind == BULK_RESPONSE:
            self.named.append((path, facts.header["fileLocationURI"]))


def reject_of(error: XmlError | SpoolError, path: str, data: bytes | None = None) -> Reject:
    """A typed error as an entry of the list of rejects.

    Args:
        error: what is wrong.
        path: the file; empty for a message that is in no file.
        data: the message that is in no file.
    """
    if isinstance(error, ArchiveError):
        return Reject(path, None, error.reason)
    if isinstance(error, SpoolError):
        return Reject(path, None, f"cannot be read: {error.reason}")
    text = error.message
    if isinstance(error, MalformedXmlError) and not text.startswith(_PLAIN):
        early = ends_early(path if data is None else data)
        text = f"ends early (truncated): {text}" if early else f"not well-formed: {text}"
    return Reject(path, error.line, text)


def _planned(path: str, size: int, facts: EnvelopeFacts) -> PlannedFile:
    return PlannedFile(
        path,
        size,
        facts.kind,
        facts.correlation_id,
        facts.batch_number,
        facts.end_of_reply,
        facts.body_tag,
        timestamp=facts.header.get("timestamp"),
    )


def _without_duplicates(
    scanned: Sequence[PlannedFile], rejects: list[Reject], whole_file_bytes: int
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
    for group in groups.values():
        for digest, copies in _by_body(group, rejects, whole_file_bytes).items():
            first = replace(copies[0], duplicates=tuple(copy.path for copy in copies[1:]))
            kept.append(first)
            receipts.append(_receipt(first, digest))
    kept.sort(key=lambda file: file.path)
    return kept, [receipt for receipt in receipts if receipt is not None]


def _by_body(group: list[PlannedFile], rejects: list[Reject], whole_file_bytes: int) -> dict[str, list[PlannedFile]]:
    """The files of one key by what their bodies say; a file that turns out to be damaged is rejected."""
    if len(group) == 1:
        return {group[0].path: group}
    bodies: dict[str, list[PlannedFile]] = {}
    known: dict[str, str] = {}
    for file in group:
        try:
            raw = file_digest(file.path)
            body = known.get(raw) or body_digest(file.path, whole_file_bytes)
        except (XmlError, SpoolError) as error:
            rejects.append(reject_of(error, file.path))
            continue
        known[raw] = body
        bodies.setdefault(body, []).append(file)
    return bodies


def _receipt(file: PlannedFile, digest: str) -> Receipt | None:
    if file.kind not in (RESPONSE, FAULT):
        return None
    return Receipt(
        file.correlation_id,
        file.batch_number,
        file.end_of_reply,
        digest,
        file.path,
        1 + len(file.duplicates),
        file.kind == FAULT,
        time_of(file.timestamp),
    )


def _marked(file: PlannedFile, complete: dict[tuple[str | None, str | None], bool]) -> PlannedFile:
    if file.kind != RESPONSE:
        return file
    return replace(file, complete=complete[sequence_key(file.correlation_id, file.path)])


def check_complete(sequences: Iterable[ReplySequence]) -> None:
    """What `onIncomplete=fail` asks for.

    Raises:
        ExchangeError: some sequence is incomplete; the text names each, and what it lacks.
    """
    lacking = [found for found in sequences if not found.complete]
    if lacking:
        shown = "; ".join(describe(found) for found in lacking[:10])
        more = f"; and {len(lacking) - 10} more" if len(lacking) > 10 else ""
        raise ExchangeError(f"{len(lacking)} incomplete sequences: {shown}{more}")


def describe(found: ReplySequence) -> str:
    """One sequence and what it lacks, for people."""
    name = repr(found.correlation_id) if found.correlation_id is not None else found.source or "without correlationId"
    wants: list[str] = []
    if found.missing_count:
        numbers = ", ".join(map(str, found.missing[:10]))
        wants.append(f"missing {numbers}{', ...' if found.missing_count > 10 else ''}")
    if found.expected is None:
        wants.append("the end of the reply never came")
    if found.unexpected:
        wants.append(f"numbers beyond the end: {', '.join(map(str, found.unexpected[:10]))}")
    if found.faults:
        wants.append("ended by a fault")
    return f"{name} {', '.join(wants) or 'complete'}"


def readable(landing: Landing, options: SourceOptions) -> list[PlannedFile]:
    """The files that the options leave to be read.

    Raises:
        ExchangeError: `onIncomplete=fail` and some sequence is incomplete.
    """
    if options.on_incomplete is OnIncomplete.FAIL:
        check_complete(found for found in landing.sequences if options.asks_for(found.correlation_id))
    files = [file for file in landing.files if options.asks_for(file.correlation_id)]
    if options.on_incomplete is OnIncomplete.FILTER:
        return [file for file in files if file.complete is not False]
    return files


def partition(files: Sequence[PlannedFile], most: int | None) -> list[tuple[PlannedFile, ...]]:
    """Files dealt out to partitions of about equal size, the same way every time.

    Args:
        files: what to read.
        most: most partitions; None for twice the processors of this machine, and more only where a partition would
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
