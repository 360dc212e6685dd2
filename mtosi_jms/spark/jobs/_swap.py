"""Tables that are replaced all together or not at all, whenever the job is killed.

A job makes its tables and its report in a folder of its own inside OUT, and puts them in place at the end:

    OUT/_lock              held by the job that works on OUT; a second one is refused
    OUT/_staging-XXXX/     what the job makes; gone after it, or with the next job
    OUT/_swap.json         the journal of a swap that was begun

1. All that was made is synced. Until then a killed job has changed nothing.
2. The journal is written aside, synced, and renamed into OUT: from here on the new tables hold.
3. Each table changes places with the one before, in one step where the system can (`renameat2` of Linux). The files of
   the report follow.
4. The folders are synced, the journal is removed, and only then what was there before.

Whoever finds a journal finishes the swap first: each job before it looks at its OUT, each reader of a snapshot before
it lists the tables. Every step can be done again. A table is in place if it has the inode that the journal names.

Tables of Delta and Iceberg are replaced by Spark, one commit each. The journal then says only that this was begun, and
readers refuse the folder until an ingest has committed all tables.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from mtosi_jms.errors import SpoolError, SpoolInUseError

REPORT: Final = "_report"
_LOCK: Final = "_lock"
_STAGING: Final = "_staging"
_JOURNAL: Final = "_swap.json"
_OLD: Final = "_old"
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.02
_NO_SYNC: Final = (errno.EINVAL, errno.ENOTSUP)
"""What file systems say that have nothing to sync of a folder, as those over a network."""
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


class Staging:
    """What a job makes before it takes the place of what was there.

    Attributes:
        folder: where the tables are made, under the names that they will have.
    """

    def __init__(self, out: Path, folder: Path) -> None:
        self.folder = folder
        self._out = out
        (folder / REPORT).mkdir()

    def report(self, name: str, text: str) -> None:
        """Add a file of the report."""
        with _as_spool_error(self.folder):
            (self.folder / REPORT / name).write_bytes(text.encode("utf-8", "backslashreplace"))

    def report_json(self, name: str, document: dict[str, Any]) -> None:
        """Add a JSON document of the report."""
        self.report(name, json.dumps(document, indent=2) + "\n")

    def begin_commits(self, tables: int) -> None:
        """Note in the journal that so many tables are committed by Spark, one after the other, until `swap`.

        A single table needs no note.
        """
        if tables > 1:
            with _as_spool_error(self._out):
                self._journal({"lake": True})

    def swap(self, tables: Sequence[str]) -> None:
        """Put all that was made in the place of what was there.

        Args:
            tables: glob patterns of the tables that the job owns; those that it did not make again are removed.

        Raises:
            SpoolError: the disk or the rights do not allow it. Once the journal is there the next command finishes.
        """
        with _as_spool_error(self._out):
            made = sorted(path.name for pattern in tables for path in self.folder.glob(pattern))
            gone = sorted({path.name for pattern in tables for path in self._out.glob(pattern)} - set(made))
            reports = sorted(path.name for path in (self.folder / REPORT).iterdir())
            for name in (*made, REPORT):
                _sync_tree(self.folder / name)
            inodes = {name: _inode(self.folder / name) for name in made}
            self._journal({"staging": self.folder.name, "tables": inodes, "gone": gone, "reports": reports})
            _finish(self._out)

    def _journal(self, document: dict[str, Any]) -> None:
        draft = self.folder / _JOURNAL
        draft.write_text(json.dumps(document), encoding="utf-8")
        for path in (draft, self.folder, self._out):
            _sync(path)
        draft.replace(self._out / _JOURNAL)
        _sync(self._out)


@contextmanager
def staging(out: Path, *, lake: bool = False) -> Iterator[Staging]:
    """A place to make tables; OUT belongs to this job until the block ends.

    With `lake` an interrupted replacement of tables that Spark commits is no obstacle.

    Raises:
        SpoolInUseError: another job works on `out`.
        SpoolError: it cannot be written, or the swap of a job that was killed cannot be finished.
    """
    out = out.absolute()
    with _as_spool_error(out):
        out.mkdir(parents=True, exist_ok=True)
    with _locked(out):
        with _as_spool_error(out):
            _finish(out, lake=lake)
            for left in out.glob(f"{_STAGING}*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = (
                out / f"{_STAGING}-{uuid.uuid4().hex[:8]}"
            )  # what a killed job started may still write into its own
            folder.mkdir()
            staged = Staging(out, folder)
        try:
            yield staged
        finally:
            if not os.path.lexists(out / _JOURNAL):
                shutil.rmtree(folder, ignore_errors=True)


def recover(out: Path, *, lake: bool = False) -> None:
    """Finish the swap of a job that was killed in it; wait for one that is at work in it. `out` need not exist.

    Raises:
        SpoolInUseError: a job does not come to the end of its swap.
        SpoolError: the swap cannot be finished, or tables were committed in part.
    """
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(out / _JOURNAL):
        try:
            with _locked(out), _as_spool_error(out):
                _finish(out, lake=lake)
            return
        except SpoolInUseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        except SpoolError as error:
            text = f"a job was killed while it replaced the tables, and that cannot be finished: {error}"
            raise SpoolError(str(out), text) from error


def _finish(out: Path, *, lake: bool = False) -> None:
    """Do what the journal says that is not done yet; nothing where there is no journal."""
    plan = _plan(out)
    if plan is None or (lake and "lake" in plan):
        return
    if "lake" in plan:
        raise SpoolError(str(out), "tables were committed in part, and may not belong together: ingest again")
    staged = out / plan["staging"]
    old = staged / _OLD
    old.mkdir(exist_ok=True)
    for name in plan["gone"]:
        if os.path.lexists(out / name):
            (out / name).rename(old / name)
    for name, inode in plan["tables"].items():
        _place(staged / name, out / name, old / name, inode)
    (out / REPORT).mkdir(exist_ok=True)
    for name in plan["reports"]:
        if (staged / REPORT / name).exists():
            (staged / REPORT / name).replace(out / REPORT / name)
    for folder in (out / REPORT, old, staged, out):
        _sync(folder)
    (out / _JOURNAL).unlink()
    _sync(out)
    shutil.rmtree(staged, ignore_errors=True)


def _plan(out: Path) -> dict[str, Any] | None:
    """The content of the journal, None if there is no journal."""
    try:
        plan: dict[str, Any] = json.loads((out / _JOURNAL).read_text(encoding="utf-8"))
        names = [] if "lake" in plan else [plan["staging"], *plan["tables"], *plan["gone"], *plan["reports"]]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SpoolError(str(out / _JOURNAL), f"is damaged, so that the swap cannot be finished: {error}") from error
    strange = [name for name in names if Path(name).name != name]
    if strange:
        raise SpoolError(str(out / _JOURNAL), f"is damaged: {strange[0]!r} is no name of a table")
    return plan


def _place(new: Path, place: Path, old: Path, inode: int) -> None:
    """Let a table take the place of the one before, unless it has."""
    if _inode(place) == inode:
        return
    if _inode(new) != inode:
        raise SpoolError(str(new), f"is not the folder that {_JOURNAL} means, so that the swap cannot be finished")
    if os.path.lexists(place):
        if _exchange(new, place):
            return
        place.rename(old)
    new.rename(place)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; false where that cannot be done."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return None


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Locks a folder against other jobs; the system releases the lock when the process ends."""
    with _as_spool_error(out):
        handle = _acquire(out / _LOCK)
    try:
        yield
    finally:
        with suppress(OSError):
            (out / _LOCK).unlink()
        os.close(handle)


def _acquire(path: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if isinstance(error, BlockingIOError):
                raise SpoolInUseError(str(path.parent), "another job works on it: wait for its end") from None
            raise
        if os.fstat(handle).st_ino == _inode(path):
            return handle
        os.close(handle)  # its holder removed it at its end: it locks nobody out


@contextmanager
def _as_spool_error(path: Path) -> Iterator[None]:
    """Turns an error of the operating system into a SpoolError."""
    try:
        yield
    except SpoolError:
        raise
    except OSError as error:
        raise SpoolError(str(error.filename or path), error.strerror or str(error)) from error


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)
