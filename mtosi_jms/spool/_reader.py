"""Reads a spool: the entries in the order of arrival, and what a crash left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mtosi_jms.errors import SpoolError
from mtosi_jms.spool._entry import ENVELOPE, NAME, SIDECAR, UNFINISHED, SpoolEntry
from mtosi_jms.spool._files import reporting
from mtosi_jms.spool._sidecar import decode_sidecar


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file of a message that was never wholly written; its provider was never told that it had arrived.

    Attributes:
        path: the file.
        reason: what it is, in words.
    """

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a folder holds, as it was at one moment.

    Attributes:
        envelopes: the files of the entries, in the order of arrival.
        leftovers: half-written files; where a writer is at work, they may be what it is writing.
        others: files that are none of a spool's, hidden ones (`.x`, `_x`) left out.
    """

    envelopes: tuple[Path, ...]
    leftovers: tuple[Leftover, ...]
    others: tuple[Path, ...]


def scan(folder: str | os.PathLike[str]) -> Listing:
    """Lists a folder, without reading any file.

    Raises:
        SpoolError: the folder cannot be read.
    """
    base = Path(folder)
    with reporting(base), os.scandir(base) as found:
        names = sorted(item.name for item in found if item.is_file() and item.name[0] not in "._")
    present = frozenset(names)
    envelopes: list[Path] = []
    leftovers: list[Leftover] = []
    others: list[Path] = []
    for name in names:
        path = base / name
        if path.suffix == ENVELOPE:
            envelopes.append(path)
        elif reason := _left_over(path, present):
            leftovers.append(Leftover(path, reason))
        elif path.suffix != SIDECAR or path.stem + ENVELOPE not in present:
            others.append(path)
    return Listing(tuple(envelopes), tuple(leftovers), tuple(others))


def _left_over(path: Path, present: frozenset[str]) -> str:
    """Why a file is left over from a crash; empty where it is not."""
    if path.suffix == UNFINISHED and NAME.match(path.name):
        return "an envelope that was not written to its end"
    if path.suffix == SIDECAR and NAME.fullmatch(path.stem) and path.stem + ENVELOPE not in present:
        return "a sidecar whose envelope was not written"
    return ""


def entries(folder: str | os.PathLike[str], *, strict: bool = False) -> Iterator[SpoolEntry]:
    """Yields the entries of a folder in the order of arrival, one in memory at a time, and none of them with its body.

    An envelope is yielded whatever became of its sidecar: `facts` is None then, and `problem` says why.

    Args:
        folder: a spool, or any folder of envelopes (`*.xml`).
        strict: raise where a sidecar is missing or damaged.

    Raises:
        SpoolError: the folder cannot be read; with `strict`, a sidecar cannot.
    """
    for path in scan(folder).envelopes:
        yield open_entry(path, strict=strict)


def open_entry(path: str | os.PathLike[str], *, strict: bool = False) -> SpoolEntry:
    """The entry of one envelope file; its sidecar is read, its body is not.

    Raises:
        SpoolError: with `strict`, the sidecar is missing or damaged.
    """
    envelope = Path(path)
    named = NAME.fullmatch(envelope.name.removesuffix(ENVELOPE))
    arrival = int(named[1]) if named else None
    beside = envelope.with_suffix(SIDECAR)
    try:
        with reporting(beside):
            data = beside.read_bytes()
        sidecar = decode_sidecar(data, beside)
    except SpoolError as exc:
        if strict:
            raise
        return SpoolEntry(path=envelope, facts=None, received_ms=arrival, sha256=None, problem=str(exc))
    return SpoolEntry(path=envelope, facts=sidecar.facts, received_ms=sidecar.received_ms, sha256=sidecar.sha256)
