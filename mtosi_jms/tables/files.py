"""The files of a landing: finding them in spools, folders, files or globs, and opening them by path.

A file system is a `Files`: it lists, says the state of a file, and opens it. `files_of` knows which one a path is on.

A folder is read recursively. Its input are `*.xml`, `*.xml.gz` and `*.xml.zst` files, and those inside `*.zip`,
`*.tar`, `*.tar.gz`, `*.tgz` and `*.tar.zst`, in upper or lower case. All other files are ignored: sidecars,
acknowledgement logs and half-written files of a spool have other endings or begin with a dot. A path that names a file
directly is input with any name. A document in an archive is a file of its own, called `ARCHIVE!/MEMBER`.

Links are followed. A folder is read once, by the path that has no link in it if there is one, so links that lead in a
circle end. Globs are those of Hadoop: `*`, `?`, `[a-z]`, `[^a]`, `{one,other}`; on this machine `**` stands for any
folders. What is named like input and is no file, or has a name that is not UTF-8, is rejected by its name.

A URL is that of a file on another file system, which fsspec lists and reads (`_file_systems`).

A reply of BulkResponse names a file (C18). Anyone who writes into the landing can choose that name, so only files below
the folders of the option `bulkFiles` are followed, and the other replies are listed. A file that was followed does not
lead to further files.
"""

from __future__ import annotations

import errno
import glob
import io
import os
import shutil
import stat
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count, groupby
from pathlib import Path
from typing import IO, Final, cast
from urllib.parse import unquote, urlsplit

from mtosi_jms.bulk import DEFAULT_BOUNDS, SEPARATOR, Archive, BoundedStream, bulk_files, spool_errors
from mtosi_jms.compression import (
    DAMAGED,
    NOT_REGULAR,
    damages,
    decompress,
    is_document_name,
    open_file,
    scheme_of,
)
from mtosi_jms.errors import (
    ArchiveError,
    ConfigError,
    FileLocationError,
    MalformedXmlError,
    MissingExtraError,
    MtosiError,
    SpoolError,
)
from mtosi_jms.tables import _file_systems
from mtosi_jms.tables._file_systems import NOT_THERE, REMOTE, Files, FileState, Reject, Rejects, Sieve, expanded

__all__ = [
    "SHELF",
    "FileState",
    "Files",
    "Reject",
    "archive",
    "disk_file",
    "follow",
    "list_files",
    "local_path",
    "placed",
    "remove",
    "state_of",
    "unreadable",
]

CHUNK: Final = 64 * 1024
"""Bytes that are read at once from a file that is not read as a whole."""
_NOT_UTF8: Final = "its name is not UTF-8; rename it"
_NOT_ALLOWED: Final = "names a file that is not read: the option bulkFiles does not allow any"


def unreadable(error: SpoolError, file: str) -> Reject:
    """Return the reject of a file that cannot be opened, or of an archive that is refused."""
    return Reject(file, None, error.reason if isinstance(error, ArchiveError) else f"cannot be read: {error.reason}")


ALL_FILES: Final = Sieve()


def list_files(paths: Sequence[str], rejects: list[Reject], sieve: Sieve = ALL_FILES) -> Iterator[FileState]:
    """Yield the files of a landing on one or more file systems, as `Files.list` does. Raises SpoolError: as
    `Files.list`; ConfigError: a path on a file system that fsspec does not know, or lacks a library for."""
    for files, some in groupby(map(placed, paths), files_of):
        yield from files.list(some, rejects, sieve)


def follow(
    replies: Iterable[tuple[str, str]], folders: Sequence[str], rejects: list[Reject]
) -> tuple[dict[str, int], list[Reject]]:
    """Return the documents in the files that replies of BulkResponse name, with sizes, and the replies not followed.
    `replies`: path of each reply, and its fileLocationURI. `folders`: files below these folders may be read; without
    folders no reply is followed. `rejects`: replies and files that cannot be read are added to it."""
    if not folders:
        return {}, [Reject(path, None, _NOT_ALLOWED) for path, _ in replies]
    documents: dict[str, int] = {}
    for path, uri in replies:
        try:
            files = bulk_files(uri, folders)
        except (FileLocationError, OSError) as error:
            rejects.append(Reject(path, None, str(error)))
            continue
        for file in files:
            documents.update(documents_of(str(file), rejects))
    return documents, []


def placed(path: str) -> str:
    """Return an absolute path for a path of this machine; a URL of another file system is returned unchanged. Raises
    ConfigError: a name that is not UTF-8."""
    return path if scheme_of(path) not in ("", "file") else local_path(path, "a landing")


def local_path(path: str, what: str) -> str:
    """Return a path as `folder_here` does, absolute. Raises ConfigError: as `folder_here`."""
    return os.path.abspath(folder_here(path, what))  # noqa: PTH100 - Path.resolve would follow links and change the names of files


def folder_here(path: str | os.PathLike[str], what: str) -> Path:
    """Return a path, or a `file:` URL of it, of what must be on this machine's file systems. Raises ConfigError: it is
    elsewhere; the text says `what` it is."""
    text = os.fspath(path)
    scheme = scheme_of(text)
    if scheme not in ("", "file"):
        raise ConfigError(f"{text}: {what} must be on a file system of this machine; {scheme}: is none")
    if not is_utf8(text):
        raise ConfigError(f"{_shown(text)}: {_NOT_UTF8}")
    return Path(unquote(urlsplit(text).path) if scheme else text)


def documents_of(path: str, rejects: list[Reject]) -> dict[str, int]:
    """Return the documents of a file with their sizes in bytes: the file itself, or the members of an archive."""
    try:
        if is_document_name(path):
            return {path: files_of(path).stat(path).size}
        with SHELF.archive(path) as archive:
            if not archive.is_archive:
                return {path: files_of(path).stat(path).size}
            members = {f"{path}{SEPARATOR}{name}": size for name, size in sorted(archive.members.items())}
            rejects.extend(_misnamed(name) for name in members if not is_utf8(name))
            return {name: size for name, size in members.items() if is_utf8(name)}
    except SpoolError as error:
        rejects.append(unreadable(error, path))
    except MissingExtraError as error:
        rejects.append(Reject(path, None, f"cannot be read: {error}"))
    except OSError as error:
        rejects.append(_unlisted(path, error))
    return {}


def _unlisted(path: str, error: OSError) -> Reject:
    return Reject(path, None, f"cannot be read: {error.strerror or error}")


class _LocalFiles:
    def list(self, paths: Iterable[str], rejects: Rejects, sieve: Sieve) -> Iterator[FileState]:
        walk = _Walk(rejects, sieve)
        for path in paths:
            yield from walk.input(path)

    def stat(self, path: str) -> FileState:
        facts = os.stat(path)  # noqa: PTH116 - a landing has many files
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return FileState(path, facts.st_size, facts.st_mtime_ns, None, facts.st_ctime_ns)

    def open(self, path: str) -> IO[bytes]:
        return open_file(path)


class _Walk:
    """Finds the files that are input in and below some paths; what cannot be read is added to `rejects`."""

    def __init__(self, rejects: list[Reject], sieve: Sieve) -> None:
        self._rejects = rejects
        self._sieve = sieve
        self._read: set[tuple[int, int]] = set()

    def input(self, path: str) -> Iterator[FileState]:
        """Yield the input in a folder, a file or a glob; paths are absolute."""
        if os.path.isdir(path):  # noqa: PTH112
            yield from self._folder(path)
        elif os.path.exists(path):  # noqa: PTH110
            if not os.path.isfile(path):  # noqa: PTH113
                raise SpoolError(path, NOT_REGULAR)
            yield from self._file(path, named=True)
        else:
            yield from self._matching(path)

    def _matching(self, path: str) -> Iterator[FileState]:
        patterns = filter(glob.has_magic, expanded(path))
        found = {match for each in patterns for match in glob.iglob(each, recursive=True, include_hidden=True)}  # noqa: PTH207
        if not found:
            raise SpoolError(path, NOT_THERE)
        for match in sorted(found):
            if os.path.isdir(match):  # noqa: PTH112
                yield from self._folder(match)
            else:
                yield from self._file(match)

    def _folder(self, path: str) -> Iterator[FileState]:
        folders, links = [path], list[str]()
        while folders or links:
            folder = folders.pop() if folders else links.pop()
            if not is_utf8(folder):
                self._rejects.append(_misnamed(folder))
                continue
            try:
                facts = os.stat(folder)  # noqa: PTH116
                if (facts.st_dev, facts.st_ino) in self._read:
                    continue
                self._read.add((facts.st_dev, facts.st_ino))
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if not _holds(entry.is_dir):
                            yield from self._file(entry.path, named=self._may_hide_a_folder(entry))
                        elif self._sieve.deep:
                            (links if entry.is_symlink() else folders).append(entry.path)
            except OSError as error:
                if folder == path:
                    raise SpoolError(path, error.strerror or str(error)) from error
                self._rejects.append(_unlisted(folder, error))
            if not folders:
                links.sort(reverse=True)

    def _may_hide_a_folder(self, entry: os.DirEntry[str]) -> bool:
        """Whether an entry is a link that leads nowhere, perhaps to a folder that is not mounted."""
        is_lost = entry.is_symlink() and not os.path.exists(entry.path)  # noqa: PTH110
        return is_lost and self._sieve.deep and not entry.name.startswith(".")

    def _file(self, path: str, *, named: bool = False) -> Iterator[FileState]:
        if not self._sieve.takes_name(path, named=named):
            return
        if not is_utf8(path):
            self._rejects.append(_misnamed(path))
            return
        try:
            facts = os.stat(path)  # noqa: PTH116
            if not stat.S_ISREG(facts.st_mode):
                raise OSError(errno.EINVAL, NOT_REGULAR)
        except OSError as error:
            self._rejects.append(_unlisted(path, error))
            return
        if self._sieve.takes_time(facts.st_mtime_ns // 1_000_000):
            yield FileState(path, facts.st_size, facts.st_mtime_ns, None, facts.st_ctime_ns)


def _holds(asked: Callable[[], bool]) -> bool:
    """Return what a question about an entry of a folder gives; false for a link that leads nowhere."""
    try:
        return asked()
    except OSError:
        return False


def is_utf8(path: str) -> bool:
    """Whether a path can be written as UTF-8, as Arrow and Java have to."""
    try:
        return path.isascii() or bool(path.encode())
    except UnicodeEncodeError:
        return False


def _shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _misnamed(path: str) -> Reject:
    return Reject(_shown(path), None, f"cannot be read: {_NOT_UTF8}")


def split_member(path: str) -> tuple[str, str]:
    """Split a path into archive and member; the member is empty if the path is a file that is not in an archive."""
    archive, separator, member = path.partition(SEPARATOR)
    while separator and not _is_file(path):
        if _is_file(archive):
            return archive, member
        more, separator, member = member.partition(SEPARATOR)
        archive += SEPARATOR + more
    return path, ""


def _is_file(path: str) -> bool:
    try:
        return bool(files_of(path).stat(path))
    except (OSError, SpoolError):
        return False


def disk_file(path: str, files: Container[str]) -> str | None:
    """Return the one of some files that a document is in: itself or an archive. No file system is asked."""
    if path in files:
        return path
    parts = path.split(SEPARATOR)
    names = (SEPARATOR.join(parts[:end]) for end in range(1, len(parts)))
    return next((name for name in names if name in files), None)


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a document, `FILE` or `ARCHIVE!/MEMBER`, for reading; compressed data is decompressed whatever the name is.
    Raises SpoolError: the document cannot be read, or not without a library that is missing; ArchiveError: the archive
    is damaged or unsafe, or its content is larger than allowed; MalformedXmlError: the compressed data is damaged or
    ends early."""
    file, member = split_member(path)
    try:
        if member:
            with SHELF.archive(file) as archive, archive.open(member) as stream:
                yield stream
            return
        with files_of(file).open(file) as raw:
            most = DEFAULT_BOUNDS.allowed(raw.seek(0, io.SEEK_END))
            raw.seek(0)
            data = decompress(raw)
            yield raw if data is raw else cast("IO[bytes]", BoundedStream(data, path, most))
    except damages() as error:
        raise MalformedXmlError(f"{DAMAGED}: {error}", source=path) from None
    except MissingExtraError as error:
        raise SpoolError(path, str(error)) from error
    except MtosiError:
        raise
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error


_LOCAL: Final = _LocalFiles()


def files_of(path: str) -> Files:
    """Return the file system of a file, by its absolute path or URL: of other machines it is that of fsspec."""
    if scheme_of(path):
        return REMOTE
    return _LOCAL


def remove(path: str) -> None:
    """Remove a file, if it is still there. Raises SpoolError: it cannot be removed."""
    if scheme_of(path):
        _file_systems.remove(path)
        return
    with spool_errors(path):
        Path(path).unlink(missing_ok=True)


def archive(path: str, folder: str) -> None:
    """Move a file, if it is still there, to its own path below a folder, under a name that is free there. Raises
    SpoolError: it cannot be moved."""
    if scheme_of(path) or scheme_of(folder):
        _file_systems.archive(path, folder)
        return
    with spool_errors(path):
        if Path(path).exists():
            target = Path(folder) / path.lstrip(os.sep)
            target.parent.mkdir(parents=True, exist_ok=True)
            names = (target.with_name(f"{number}-{target.name}") for number in count(2))
            shutil.move(path, next(each for each in chain((target,), names) if not each.exists()))


def state_of(path: str) -> FileState:
    """Return the state of the file that a document is in: itself or an archive. Raises SpoolError: there is no such
    file."""
    with spool_errors(path):
        try:
            return files_of(path).stat(path)
        except (FileNotFoundError, NotADirectoryError):
            archive, member = split_member(path)
            if not member:
                raise
            return files_of(archive).stat(archive)


def read_whole(path: str, limit: int) -> bytes | None:
    """Return all bytes of a file, as `opened` gives them; None if there are more than `limit`."""
    with opened(path) as stream:
        data = stream.read(limit + 1)
    return None if len(data) > limit else data


@dataclass(slots=True)
class _Kept:
    archive: Archive
    readers: int = 0


class ArchiveShelf:
    """A cache of open archives; threads may share it.

    While `held` runs, the archive that was read last stays open for its next member. So its table of contents is read
    once for a partition, not once for each member, and a TAR inside GZIP is unpacked once. At most one archive is kept
    open that nobody reads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[FileState, _Kept] = {}
        self._holders = 0

    def __len__(self) -> int:
        return len(self._kept)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the archive that was read last open while the block runs."""
        with self._lock:
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                self._clear(None)

    @contextmanager
    def archive(self, path: str) -> Iterator[Archive]:
        """Open a file as an archive, or use the open one. Raises ArchiveError: the archive is damaged, unsafe or too
        large; SpoolError: the file cannot be read."""
        key = state_of(path)
        with self._lock:
            self._clear(key)
            if key not in self._kept:
                self._kept[key] = _Kept(Archive(path, file=files_of(path).open(path)))
            kept = self._kept[key]
            kept.readers += 1
        try:
            yield kept.archive
        finally:
            with self._lock:
                kept.readers -= 1
                self._clear(key)

    def _clear(self, but: FileState | None) -> None:
        for key, kept in list(self._kept.items()):
            if not kept.readers and not (self._holders and key == but):
                del self._kept[key]
                kept.archive.close()


SHELF: Final = ArchiveShelf()
