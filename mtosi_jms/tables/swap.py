"""The swap of old tables for new ones: all are replaced or none, even if the job is killed.

    OUT/_lock              locked by the job that works on OUT; a second job is refused
    OUT/_staging-XXXX/     what the job makes; removed at its end, or by the next job
    OUT/_swap.json         the journal of a swap that has begun

docs/design/spark.md explains the steps; each can be repeated. A table is in place if it has the inode that the journal
names. Tables of Delta and Iceberg are committed by Spark: their journal only says that the commits have begun, and
which tables are new: the next ingest removes their folders if their first commit was not done.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

from mtosi_jms.errors import SpoolError, SpoolInUseError
from mtosi_jms.files import FileLock, sync
from mtosi_jms.tables.formats import is_committed

__all__ = ["REPORT", "Staging", "recover", "staging"]

REPORT: Final = "_report"
_LOCK: Final = "_lock"
_STAGING: Final = "_staging"
_JOURNAL: Final = "_swap.json"
_OLD: Final = "_old"
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.02
_NO_SYNC: Final = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems, such as network file systems, that cannot sync a folder."""
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


class Staging:
    """The tables and the report of a job, before they replace the earlier ones.

    Attributes:
        folder: the staging folder; the tables in it have their final names.
    """

    def __init__(self, out: Path, folder: Path) -> None:
        self.folder = folder
        self._out = out
        (folder / REPORT).mkdir()

    def report(self, name: str, *text: str, lines: Iterable[str] = ()) -> None:
        """Add a file of the report."""
        path = self.folder / REPORT / name
        with _as_spool_error(path), path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.writelines(chain(text, lines))

    def report_json(self, name: str, document: dict[str, Any]) -> None:
        """Add a JSON document of the report."""
        self.report(name, json.dumps(document, indent=2) + "\n")

    def begin_commits(self, tables: int, new: Sequence[str]) -> None:
        """Note in the journal that Spark commits tables one after the other; `swap` ends this.

        Args:
            tables: their number; a single table that is there already needs no note.
            new: names of the folders of tables that are not there yet.
        """
        if tables > 1 or new:
            with _as_spool_error(self._out):
                self._journal({"lake": True, "new": list(new)})

    def swap(self, tables: Sequence[str]) -> None:
        """Replace the earlier tables and files of the report by the staged ones.

        Args:
            tables: glob patterns of the tables that the job owns; tables that it did not make again are removed.

        Raises:
            SpoolError: an error of the disk or missing rights. If the journal is already in OUT, the next command
                finishes the swap.
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
def staging(out: Path, *, lake: bool = False, dry_run: bool = False) -> Iterator[Staging]:
    """Lock OUT until the block ends, and provide a staging folder in it.

    Args:
        out: the folder; made if it does not exist.
        lake: whether to accept that an earlier job has committed only some of its tables of Delta or Iceberg.
        dry_run: whether to remove `out` at the end if it is empty.

    Raises:
        SpoolInUseError: another job works on `out`.
        SpoolError: `out` cannot be written, or the swap of a killed job cannot be finished.
    """
    out = out.absolute()
    with _as_spool_error(out):
        out.mkdir(parents=True, exist_ok=True)
    with _locked(out, dry_run=dry_run):
        with _as_spool_error(out):
            _finish(out, lake=lake)
            for left in out.glob(f"{_STAGING}*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = (
                out / f"{_STAGING}-{uuid.uuid4().hex[:8]}"
            )  # a new name: processes that a killed job started may still write into its staging folder
            folder.mkdir()
            staged = Staging(out, folder)
        try:
            yield staged
        finally:
            if not os.path.lexists(out / _JOURNAL):
                shutil.rmtree(folder, ignore_errors=True)


def recover(out: Path, *, lake: bool = False) -> bool:
    """Finish the swap of a killed job, or wait for the end of a swap that a running job does.

    Args:
        out: the folder; it need not exist.
        lake: whether to accept that an earlier job has committed only some of its tables of Delta or Iceberg.

    Returns:
        Whether an earlier job has committed only some of its tables.

    Raises:
        SpoolInUseError: a running job does not finish its swap in time.
        SpoolError: the swap cannot be finished, or only some tables were committed.
    """
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(out / _JOURNAL):
        try:
            with _locked(out), _as_spool_error(out):
                _finish(out, lake=lake)
            return os.path.lexists(out / _JOURNAL)
        except SpoolInUseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        except SpoolError as error:
            text = f"a job was killed while it replaced the tables, and that cannot be finished: {error}"
            raise SpoolError(str(out), text) from error
    return False


def _finish(out: Path, *, lake: bool = False) -> None:
    """Do the steps of the journal that are not done yet; nothing if there is no journal."""
    plan = _plan(out)
    if plan is None:
        return
    if lake and "lake" in plan:
        for name in plan["new"]:
            if (out / name).exists() and not is_committed(out / name):
                shutil.rmtree(out / name)
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
    """Return the content of the journal; None if there is no journal."""
    try:
        plan: dict[str, Any] = json.loads((out / _JOURNAL).read_text(encoding="utf-8"))
        names = plan["new"] if "lake" in plan else [plan["staging"], *plan["tables"], *plan["gone"], *plan["reports"]]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SpoolError(str(out / _JOURNAL), f"is damaged, so that the swap cannot be finished: {error}") from error
    wrong = [name for name in names if Path(name).name != name]
    if wrong:
        raise SpoolError(str(out / _JOURNAL), f"is damaged: {wrong[0]!r} is not a name of a table")
    return plan


def _place(new: Path, place: Path, old: Path, inode: int) -> None:
    """Replace the old table by the new one, unless that is already done."""
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
    """Let two folders change places in one step; false if the system cannot do that."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):  # the last is Windows'
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return None


@contextmanager
def _locked(out: Path, *, dry_run: bool = False) -> Iterator[None]:
    """Lock a folder against other jobs; the system releases the lock when the process ends."""
    with FileLock(out / _LOCK) as lock:
        with _as_spool_error(out):
            if not lock.take():
                raise SpoolInUseError(str(out), "another job works on it: wait for its end")
        try:
            yield
        finally:
            with suppress(OSError):
                (out / _LOCK).unlink()
                if dry_run:
                    out.rmdir()  # if it is empty


@contextmanager
def _as_spool_error(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a SpoolError."""
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
    try:
        sync(path)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
