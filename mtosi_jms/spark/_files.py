"""The files of a landing: a spool, a folder, a file or a glob; finding them, and opening them by path.

A folder is read recursively; its `*.xml` and `*.xml.gz` files are input, and `*.zip`, `*.tar`, `*.tar.gz` and `*.tgz`
for the former inside them, in any case of letters. Nothing else is: sidecars, acknowledgement logs and half-written
files of a spool have other endings or begin with a dot. A file that is named outright is input whatever it is called.
A document in an archive is a file of its own, called `ARCHIVE!/MEMBER`.

A reply of BulkResponse names a file (C18). Whoever writes into a landing chooses that name, so nothing is followed
unless the option `bulkFiles` says below which folders, and what is not followed is listed. A file that was followed
does not lead to others.
"""

from __future__ import annotations

import glob
import gzip
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast
from urllib.parse import unquote, urlsplit

from mtosi_jms.bulk import DEFAULT_BOUNDS, GZIP_MAGIC, SEPARATOR, Archive, BoundedStream, bulk_files, is_document_name
from mtosi_jms.errors import ArchiveError, ConfigError, FileLocationError, MalformedXmlError, MtosiError, SpoolError

CHUNK: Final = 64 * 1024
"""How much of a file is read at once where it is not read whole."""
_ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz")
_NOT_ALLOWED: Final = "names a file that is not read: the option bulkFiles does not allow any"


@dataclass(frozen=True, slots=True)
class Reject:
    """A file, or a folder, from which no message could be read; `line` is that of the fault, from 1.

    `file` is empty for a message that is in no file.
    """

    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{place}: {self.reason}" if place else self.reason


def unreadable(error: SpoolError, file: str) -> Reject:
    """The reject of a file that cannot be opened, or of an archive that is refused."""
    return Reject(file, None, error.reason if isinstance(error, ArchiveError) else f"cannot be read: {error.reason}")


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a landing: absolute paths, sorted, each once, with sizes in bytes; and what cannot be read."""

    files: tuple[tuple[str, int], ...]
    rejects: tuple[Reject, ...]


def find_files(paths: Iterable[str]) -> Found:
    """The files of a landing, given as folders, files, globs, or `file:` URLs of them.

    Raises:
        SpoolError: a path or glob that leads to nothing, or that cannot be read.
        ConfigError: a path on another file system; those are read by Spark itself and given to `parse_messages`.
    """
    files: dict[str, int] = {}
    rejects: list[Reject] = []
    for file in input_files(paths, rejects):
        files.update(_documents(file, rejects))
    return Found(tuple(sorted(files.items())), tuple(rejects))


def input_files(paths: Iterable[str], rejects: list[Reject]) -> Iterator[str]:
    """The files on disk of a landing, absolute, archives unopened; `rejects` takes folders that cannot be read.

    Raises:
        SpoolError, ConfigError: as `find_files`.
    """
    for path in paths:
        yield from _input(local_path(path), rejects)


def follow(
    replies: Iterable[tuple[str, str]], folders: Sequence[str], rejects: list[Reject]
) -> tuple[dict[str, int], list[Reject]]:
    """The documents in the files that replies of BulkResponse name, with sizes, and the replies that are not followed.

    Args:
        replies: path of each reply, and its fileLocationURI.
        folders: below which files may be read; where there is none, nothing is followed.
        rejects: takes replies whose file cannot be read, and files that cannot.
    """
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
            documents.update(_documents(str(file), rejects))
    return documents, []


def local_path(path: str) -> str:
    """A path of this machine, absolute; `file:` URLs are taken apart.

    Raises:
        ConfigError: a URL of another file system.
    """
    scheme, separator, _ = path.partition(":")
    if separator and scheme.lower() == "file":
        path = unquote(urlsplit(path).path)
    elif separator and "//" in path and len(scheme) > 1 and scheme.isalnum():
        raise ConfigError(
            f"{path}: only local files are read; on {scheme} use spark.read.format('binaryFile') and parse_messages()"
        )
    return os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow links and change the names of files


def _documents(path: str, rejects: list[Reject]) -> dict[str, int]:
    """The documents of a file with their sizes in bytes: the file itself, or what is in it if it is an archive."""
    try:
        size = Path(path).stat().st_size
        if is_document_name(path) or not os.path.isfile(path):  # noqa: PTH113
            return {path: size}
        with SHELF.archive(path) as archive:
            if not archive.is_archive:
                return {path: size}
            return {f"{path}{SEPARATOR}{name}": size for name, size in archive.members.items()}
    except SpoolError as error:
        rejects.append(unreadable(error, path))
    except OSError as error:
        rejects.append(Reject(path, None, f"cannot be read: {error.strerror or error}"))
    return {}


def _input(path: str, rejects: list[Reject]) -> Iterator[str]:
    if os.path.isdir(path):  # noqa: PTH112
        yield from _folder(path, rejects)
    elif os.path.exists(path):  # noqa: PTH110
        yield path
    else:
        yield from _matching(path, rejects)


def _matching(path: str, rejects: list[Reject]) -> Iterator[str]:
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []  # noqa: PTH207
    if not matches:
        raise SpoolError(path, "no such file or folder")
    for match in matches:
        if os.path.isdir(match):  # noqa: PTH112
            yield from _folder(match, rejects)
        elif _is_input_name(match):
            yield match


def _folder(path: str, rejects: list[Reject]) -> Iterator[str]:
    def failed(error: OSError) -> None:
        if str(error.filename) == path:
            raise SpoolError(path, error.strerror or str(error)) from error
        rejects.append(Reject(str(error.filename), None, f"cannot be read: {error.strerror}"))

    for folder, _, names in os.walk(path, onerror=failed):
        for name in names:
            if _is_input_name(name):
                yield os.path.join(folder, name)  # noqa: PTH118


def _is_input_name(path: str) -> bool:
    """Whether a file of this name is input when it is found in a folder."""
    name = Path(path).name
    return is_document_name(name) or (name.lower().endswith(_ARCHIVES) and not name.startswith("."))


def split_member(path: str) -> tuple[str, str]:
    """A path as archive and member; the member is empty for a file that is none."""
    archive, separator, member = path.partition(SEPARATOR)
    while separator and not os.path.exists(path):  # noqa: PTH110
        if os.path.isfile(archive):  # noqa: PTH113
            return archive, member
        more, separator, member = member.partition(SEPARATOR)
        archive += SEPARATOR + more
    return path, ""


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A landed file for reading, `FILE` or `ARCHIVE!/MEMBER`, decompressed where it is gzip, whatever its name.

    Raises:
        SpoolError: it cannot be read.
        ArchiveError: the archive is damaged or unsafe, or more comes out of it than is allowed, while it is read.
        MalformedXmlError: the compressed data is damaged or ends early.
    """
    file, member = split_member(path)
    try:
        if member:
            with SHELF.archive(file) as archive, archive.open(member) as stream:
                yield stream
            return
        with Path(file).open("rb") as raw:
            magic = raw.read(2)
            raw.seek(0)
            yield _unzipped(raw, path) if magic == GZIP_MAGIC else raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise MalformedXmlError(f"damaged gzip: {error}", source=path) from None
    except MtosiError:
        raise
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error


def _unzipped(raw: IO[bytes], path: str) -> IO[bytes]:
    unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    most = DEFAULT_BOUNDS.allowed(os.fstat(raw.fileno()).st_size)
    return cast("IO[bytes]", BoundedStream(unpacked, path, most))


def read_whole(path: str, limit: int) -> bytes | None:
    """All bytes of a file, as `opened` gives them; None if they are more than `limit`."""
    with opened(path) as stream:
        data = stream.read(limit + 1)
    return None if len(data) > limit else data


@dataclass(slots=True)
class _Kept:
    archive: Archive
    readers: int = 0


class ArchiveShelf:
    """Open archives by file; threads may share it.

    An archive that was opened stays open for the next of its members while somebody holds the shelf: the table of
    contents is read once, and a TAR inside GZIP unpacked once, for each reading of a partition and not for each
    member. One archive at most is kept that is not being read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int, int], _Kept] = {}
        self._holders = 0

    def __len__(self) -> int:
        """How many archives are open."""
        return len(self._kept)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts the archive that was read last stays open."""
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
        """A file as an archive, open.

        Raises:
            ArchiveError: damaged, unsafe or too large.
            SpoolError: it cannot be read.
        """
        key = _identity(path)
        with self._lock:
            self._clear(key)
            if key not in self._kept:
                self._kept[key] = _Kept(Archive(path))
            kept = self._kept[key]
            kept.readers += 1
        try:
            yield kept.archive
        finally:
            with self._lock:
                kept.readers -= 1
                self._clear(key)

    def _clear(self, but: tuple[str, int, int] | None) -> None:
        for key, kept in list(self._kept.items()):
            if not kept.readers and not (self._holders and key == but):
                del self._kept[key]
                kept.archive.close()


SHELF: Final = ArchiveShelf()


def _identity(path: str) -> tuple[str, int, int]:
    """A file as it is now: one that was replaced is another."""
    try:
        facts = Path(path).stat()
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error
    return path, facts.st_mtime_ns, facts.st_ino
