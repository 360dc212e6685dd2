"""The files of a landing: finding them in spools, folders, files or globs, and opening them by path.

A folder is read recursively. Its input are `*.xml`, `*.xml.gz` and `*.xml.zst` files, and those inside `*.zip`,
`*.tar`, `*.tar.gz`, `*.tgz` and `*.tar.zst`, in upper or lower case. All other files are ignored: sidecars,
acknowledgement logs and half-written files of a spool have other endings or begin with a dot. A path that names a file
directly is input with any name. A document in an archive is a file of its own, called `ARCHIVE!/MEMBER`.

On a Hadoop file system Spark lists and reads the files (`_hadoop`). It lends each file to this module under its name;
everything else is the same.

A reply of BulkResponse names a file (C18). Anyone who writes into the landing can choose that name, so only files below
the folders of the option `bulkFiles` are followed, and the other replies are listed. A file that was followed does not
lead to further files.
"""

from __future__ import annotations

import glob
import io
import os
import re
import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast
from urllib.parse import unquote, urlsplit

from mtosi_jms.bulk import DEFAULT_BOUNDS, SEPARATOR, Archive, BoundedStream, bulk_files
from mtosi_jms.compression import ARCHIVES, DAMAGED, damages, decompress, is_document_name
from mtosi_jms.errors import (
    ArchiveError,
    ConfigError,
    FileLocationError,
    MalformedXmlError,
    MissingExtraError,
    MtosiError,
    SpoolError,
)

CHUNK: Final = 64 * 1024
"""Bytes that are read at once from a file that is not read as a whole."""
NOT_THERE: Final = "no such file or folder"
_NOT_ALLOWED: Final = "names a file that is not read: the option bulkFiles does not allow any"


@dataclass(frozen=True, slots=True)
class Reject:
    """A file or folder from which no message could be read; `line` is the line of the fault, from 1.

    `file` is empty for a message that is in no file.
    """

    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{place}: {self.reason}" if place else self.reason


def unreadable(error: SpoolError, file: str) -> Reject:
    """Return the reject of a file that cannot be opened, or of an archive that is refused."""
    return Reject(file, None, error.reason if isinstance(error, ArchiveError) else f"cannot be read: {error.reason}")


@dataclass(frozen=True, slots=True)
class Found:
    """The documents of a landing, as sorted absolute paths with sizes in bytes, each once, and what cannot be read."""

    files: tuple[tuple[str, int], ...]
    rejects: tuple[Reject, ...]


@dataclass(frozen=True, slots=True)
class Sieve:
    """The conditions on files that are input, from Spark's options for files.

    Attributes:
        name: a regular expression for the name of the file, made from `pathGlobFilter`.
        deep: whether folders inside folders are read.
        after, before: exclusive bounds of the time of the last change, in milliseconds since 1970.
    """

    name: re.Pattern[str] | None = None
    deep: bool = True
    after: int | None = None
    before: int | None = None

    def takes(self, path: str, time: int | None, *, named: bool) -> bool:
        """Whether a file is input.

        Args:
            path: of the file.
            time: of its last change in milliseconds; with None, this machine is asked if a bound needs it.
            named: whether a path of the landing names the file directly, so that it may have any ending.
        """
        name = path.rpartition("/")[2]
        if not (named or _is_input_name(name)) or (self.name is not None and not self.name.fullmatch(name)):
            return False
        if self.after is None and self.before is None:
            return True
        try:
            changed = os.stat(path).st_mtime_ns // 1_000_000 if time is None else time  # noqa: PTH116
        except OSError:
            return True  # opening the file will report the error
        return (self.after is None or changed > self.after) and (self.before is None or changed < self.before)


ALL_FILES: Final = Sieve()


def find_files(paths: Iterable[str], sieve: Sieve = ALL_FILES) -> Found:
    """Find the documents of a landing, given as folders, files, globs, or `file:` URLs of them.

    Raises:
        SpoolError: a path does not exist or cannot be read, or a glob matches nothing.
        ConfigError: a path on another file system.
    """
    files: dict[str, int] = {}
    rejects: list[Reject] = []
    for file in input_files(paths, rejects, sieve):
        files.update(documents_of(file, rejects))
    return Found(tuple(sorted(files.items())), tuple(rejects))


def input_files(paths: Iterable[str], rejects: list[Reject], sieve: Sieve = ALL_FILES) -> Iterator[str]:
    """Yield the absolute paths of the files of a landing, without opening archives.

    Args:
        paths: as `find_files` takes them.
        rejects: folders that cannot be read are added to it.
        sieve: conditions on the files.

    Raises:
        SpoolError, ConfigError: as `find_files`.
    """
    for path in paths:
        yield from _input(local_path(path), rejects, sieve)


def follow(
    replies: Iterable[tuple[str, str]], folders: Sequence[str], rejects: list[Reject]
) -> tuple[dict[str, int], list[Reject]]:
    """Return the documents in the files that replies of BulkResponse name, with sizes, and the replies not followed.

    Args:
        replies: path of each reply, and its fileLocationURI.
        folders: files below these folders may be read; without folders no reply is followed.
        rejects: replies and files that cannot be read are added to it.
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
            documents.update(documents_of(str(file), rejects))
    return documents, []


def local_path(path: str) -> str:
    """Return a path or a `file:` URL as an absolute path of this machine.

    Raises:
        ConfigError: a URL of another file system.
    """
    if scheme_of(path) == "file":
        path = unquote(urlsplit(path).path)
    elif scheme_of(path):
        raise ConfigError(
            f"{path}: only local files are read here; read_landing(), stream_landing() and ingest read others"
        )
    return os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow links and change the names of files


def placed(path: str) -> str:
    """Return an absolute path for a path of this machine; a URL of another file system is returned unchanged."""
    return path if scheme_of(path) not in ("", "file") else local_path(path)


def scheme_of(path: str) -> str:
    """Return the scheme of a URL in lower case; empty for a path of this machine."""
    scheme, separator, _ = path.partition(":")
    is_url = separator and (scheme.lower() == "file" or ("//" in path and len(scheme) > 1 and scheme.isalnum()))
    return scheme.lower() if is_url else ""


def documents_of(path: str, rejects: list[Reject]) -> dict[str, int]:
    """Return the documents of a file with their sizes in bytes: the file itself, or the members of an archive."""
    try:
        lent = _LENT.get(path)
        size = Path(path).stat().st_size if lent is None else lent.size
        if is_document_name(path) or not (lent or os.path.isfile(path)):  # noqa: PTH113
            return {path: size}
        with SHELF.archive(path) as archive:
            if not archive.is_archive:
                return {path: size}
            return {f"{path}{SEPARATOR}{name}": size for name, size in archive.members.items()}
    except SpoolError as error:
        rejects.append(unreadable(error, path))
    except MissingExtraError as error:
        rejects.append(Reject(path, None, f"cannot be read: {error}"))
    except OSError as error:
        rejects.append(Reject(path, None, f"cannot be read: {error.strerror or error}"))
    return {}


def _input(path: str, rejects: list[Reject], sieve: Sieve) -> Iterator[str]:
    if os.path.isdir(path):  # noqa: PTH112
        yield from _folder(path, rejects, sieve)
    elif os.path.exists(path):  # noqa: PTH110
        if sieve.takes(path, None, named=True):
            yield path
    else:
        yield from _matching(path, rejects, sieve)


def _matching(path: str, rejects: list[Reject], sieve: Sieve) -> Iterator[str]:
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []  # noqa: PTH207
    if not matches:
        raise SpoolError(path, NOT_THERE)
    for match in matches:
        if os.path.isdir(match):  # noqa: PTH112
            yield from _folder(match, rejects, sieve)
        elif sieve.takes(match, None, named=False):
            yield match


def _folder(path: str, rejects: list[Reject], sieve: Sieve) -> Iterator[str]:
    def failed(error: OSError) -> None:
        if str(error.filename) == path:
            raise SpoolError(path, error.strerror or str(error)) from error
        rejects.append(Reject(str(error.filename), None, f"cannot be read: {error.strerror}"))

    for folder, folders, names in os.walk(path, onerror=failed):
        if not sieve.deep:
            folders.clear()
        for name in names:
            file = os.path.join(folder, name)  # noqa: PTH118
            if sieve.takes(file, None, named=False):
                yield file


def _is_input_name(name: str) -> bool:
    """Whether a file with this name is input if it is found in a folder."""
    return is_document_name(name) or (name.lower().endswith(ARCHIVES) and not name.startswith("."))


def split_member(path: str) -> tuple[str, str]:
    """Split a path into archive and member; the member is empty if the path is a file that is not in an archive."""
    archive, separator, member = path.partition(SEPARATOR)
    while separator and path not in _LENT and not os.path.exists(path):  # noqa: PTH110
        if archive in _LENT or os.path.isfile(archive):  # noqa: PTH113
            return archive, member
        more, separator, member = member.partition(SEPARATOR)
        archive += SEPARATOR + more
    return path, ""


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

    Raises:
        SpoolError: the document cannot be read, or not without a library that is missing.
        ArchiveError: the archive is damaged or unsafe, or its content is larger than allowed.
        MalformedXmlError: the compressed data is damaged or ends early.
    """
    file, member = split_member(path)
    try:
        if member:
            with SHELF.archive(file) as archive, archive.open(member) as stream:
                yield stream
            return
        with raw_bytes(file) as raw:
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


@dataclass(frozen=True, slots=True)
class Lent:
    """The content of a file that Spark has read: its bytes, a copy on this machine, or why it cannot be read."""

    size: int
    content: bytes | Path | SpoolError


_LENT: Final[dict[str, Lent]] = {}


@contextmanager
def lent(path: str, content: Lent) -> Iterator[None]:
    """Make lent content readable under a path while the block runs. For Spark workers, which have one thread."""
    _LENT[path] = content
    try:
        yield
    finally:
        del _LENT[path]


def _on_disk(path: str) -> str:
    """Return the file of this machine that has the content of a path.

    Raises:
        SpoolError: Spark could not read the file that it lends.
    """
    found = _LENT.get(path)
    if found is None:
        return path
    if isinstance(found.content, SpoolError):
        raise found.content
    return str(found.content)


def raw_bytes(path: str) -> IO[bytes]:
    """Open a file for reading, without decompression.

    Raises:
        SpoolError: Spark could not read the file that it lends.
        OSError: the file cannot be opened.
    """
    found = _LENT.get(path)
    if found is not None and isinstance(found.content, bytes):
        return io.BytesIO(found.content)
    return Path(_on_disk(path)).open("rb")


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
        self._kept: dict[tuple[str, int, int], _Kept] = {}
        self._holders = 0

    def __len__(self) -> int:
        """How many archives are open."""
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
        """Open a file as an archive, or use the open one.

        Raises:
            ArchiveError: the archive is damaged, unsafe or too large.
            SpoolError: the file cannot be read.
        """
        key = _identity(path)
        with self._lock:
            self._clear(key)
            if key not in self._kept:
                self._kept[key] = _Kept(Archive(_on_disk(path)))
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
    """Return a key for a file in its present state; a replaced or changed file has another key."""
    try:
        facts = Path(_on_disk(path)).stat()
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error
    return path, facts.st_mtime_ns, facts.st_ino
