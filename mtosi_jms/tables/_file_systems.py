"""The file systems of landings: what is input, and those of other machines (S3, HDFS, GCS, ...), by fsspec.

Without `s3fs` pyarrow reads S3, with the same settings of the environment.
"""

from __future__ import annotations

import datetime as dt
import errno
import glob
import io
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import IO, Any, Final, NamedTuple, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

from mtosi_jms.compression import ARCHIVES, NOT_REGULAR, is_document_name
from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError, SpoolError

NOT_THERE: Final = "no such file or folder"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


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


Rejects: TypeAlias = list[Reject]
"""What is rejected; who finds more adds it."""


class FileState(NamedTuple):
    """The state of a file. `path`: absolute, or the URL of a file on another file system. `size`: bytes. `modified_ns`:
    when its content was last changed, in nanoseconds since 1970; whoever copies a file may set it. `key`: identifies
    the message in it; None if nothing does. `changed_ns`: when anything of it was last changed; nobody can set that.
    Windows: when it was made. None if the file system does not say."""

    path: str
    size: int
    modified_ns: int
    key: str | None = None
    changed_ns: int | None = None


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

    def takes_name(self, path: str, *, named: bool) -> bool:
        """Whether the name of a file is that of input. `path`: of the file. `named`: whether a path of the landing
        names the file directly, so that it may have any ending."""
        name = path.rpartition("/")[2]
        is_archive = name.lower().endswith(ARCHIVES) and not name.startswith(".")
        return (named or is_archive or is_document_name(name)) and (
            self.name is None or bool(self.name.fullmatch(name))
        )

    def takes_time(self, time: int) -> bool:
        """Whether a file with this time of its last change, in milliseconds since 1970, is input."""
        return (self.after is None or time > self.after) and (self.before is None or time < self.before)


class Files(Protocol):
    """A file system that landings are on."""

    def list(self, paths: Iterable[str], rejects: Rejects, sieve: Sieve) -> Iterator[FileState]:
        """Yield the files of a landing, without opening archives; a file may come twice if `paths` overlap. `paths`:
        folders, files and globs. `rejects`: folders and files that cannot be listed are added to it. `sieve`:
        conditions on the files.

        Raises SpoolError: a path does not exist or cannot be read, or a glob matches nothing.
        """

    def stat(self, path: str) -> FileState:
        """Return the present state of a file. Raises OSError, SpoolError: it is not there or cannot be read."""

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading, without decompression. The stream is seekable. Raises OSError, SpoolError: the file
        cannot be opened."""


def expanded(pattern: str) -> list[str]:
    """Return a glob of Hadoop as globs of Python: `{one,other}` becomes several, `[^a]` becomes `[!a]`."""
    patterns = [pattern.replace("[^", "[!")]
    while found := _BRACES.search(patterns[0]):
        patterns = [each.replace(found[0], word) for each in patterns for word in found[1].split(",")]
    return patterns


_BLOCK: Final = 1024 * 1024
"""Bytes that are asked for at once; a file of no more is read whole."""
_ONE_SLASH: Final = re.compile(r"^([a-z][a-z0-9+.-]*):/(?!/)", re.IGNORECASE)
_OTHERWISE: Final = "; Spark reads what only its Hadoop knows: spark.read.format('binaryFile') and parse_messages()"
_TIMES: Final = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
"""What file systems call the time of the last change."""


class RemoteFiles:
    """The file systems that fsspec knows. A path is a URL, and so are the names of the files in it."""

    def list(self, paths: Iterable[str], rejects: Rejects, sieve: Sieve) -> Iterator[FileState]:
        for path in paths:
            yield from _Listing(path, rejects, sieve).files()

    def stat(self, path: str) -> FileState:
        system, name = _system(path)
        with _as_spool_error(path):
            facts = system.info(name)
        if facts["type"] != "file":
            raise SpoolError(path, NOT_REGULAR)
        return _state(path, facts)

    def open(self, path: str) -> IO[bytes]:
        size = self.stat(path).size
        system, name = _system(path)
        with _as_spool_error(path):
            if size <= _BLOCK:
                return io.BytesIO(system.cat_file(name))
            stream = system.open(name, "rb", block_size=_BLOCK)
            if not stream.seekable():
                raise SpoolError(path, "its file system cannot read from the middle of a file: copy it to this machine")
            return io.BufferedReader(cast("io.RawIOBase", _Stream(path, stream)))


def remove(path: str) -> None:
    """Remove a file, if it is still there. Raises SpoolError: it cannot be removed."""
    system, name = _system(path)
    with suppress(FileNotFoundError), _as_spool_error(path):
        system.rm_file(name)


def archive(path: str, folder: str) -> None:
    """Move a file, if it is still there, to its own path below a folder. Raises SpoolError: it cannot be moved."""
    source, name = _system(path)
    place, root = _system(folder)
    with _as_spool_error(path):
        if not source.exists(name):
            return
    with _as_spool_error(folder):
        parent, _, own = urlsplit(_url(path)).path.rpartition("/")
        into = f"{root.rstrip('/')}/{parent.strip('/')}"
        names = (f"{into}/{f'{number}-' if number > 1 else ''}{own}" for number in count(1))
        target = next(each for each in names if not place.exists(each))
        place.makedirs(into, exist_ok=True)
        with source.open(name, "rb") as old, place.open(target, "wb") as new:
            shutil.copyfileobj(old, new)
    remove(path)


class _Listing:
    def __init__(self, path: str, rejects: Rejects, sieve: Sieve) -> None:
        self._path = path
        self._rejects = rejects
        self._sieve = sieve
        self._system, self._name = _system(path)
        self._before = _url(path).rstrip("/").removesuffix(self._name)

    def files(self) -> Iterator[FileState]:
        """Yield the input in a folder, a file or a glob."""
        with _as_spool_error(self._path):
            try:
                facts = self._system.info(self._name)
            except FileNotFoundError:
                facts = None
        if facts is not None and facts["type"] == "file":
            yield from self._file(facts, named=True)
        elif facts is not None:
            yield from self._folder(self._name)
        else:
            yield from self._matching()

    def _matching(self) -> Iterator[FileState]:
        found: dict[str, Any] = {}
        with _as_spool_error(self._path):
            for pattern in filter(glob.has_magic, expanded(self._name)):
                found.update(self._system.glob(pattern, detail=True))
        if not found:
            raise SpoolError(self._path, NOT_THERE)
        for name, facts in sorted(found.items()):
            yield from self._folder(name) if facts["type"] == "directory" else self._file(facts)

    def _folder(self, top: str) -> Iterator[FileState]:
        folders = [top]
        while folders:
            folder = folders.pop()
            try:
                with _as_spool_error(self._url(folder)):
                    entries = self._system.ls(folder, detail=True)
            except OSError as error:
                reason = error.reason if isinstance(error, SpoolError) else NOT_THERE
                if folder == top:
                    raise SpoolError(self._url(folder), reason) from error
                self._rejects.append(Reject(self._url(folder), None, f"cannot be read: {reason}"))
                continue
            for facts in entries:
                if facts["name"].rstrip("/") == folder.rstrip("/"):
                    continue  # the mark of an empty folder in an object store
                if facts["type"] != "directory":
                    yield from self._file(facts)
                elif self._sieve.deep:
                    folders.append(facts["name"])

    def _file(self, facts: Mapping[str, Any], *, named: bool = False) -> Iterator[FileState]:
        path = self._url(facts["name"])
        if not self._sieve.takes_name(path, named=named):
            return
        if facts["type"] != "file":
            self._rejects.append(Reject(path, None, f"cannot be read: {NOT_REGULAR}"))
            return
        state = _state(path, facts)
        if (self._sieve.after, self._sieve.before) != (None, None) and not state.modified_ns:
            raise ConfigError(f"{path}: its file system has no times: leave out modifiedAfter and modifiedBefore")
        if self._sieve.takes_time(state.modified_ns // 1_000_000):
            yield state

    def _url(self, name: str) -> str:
        return self._before + name


def _url(path: str) -> str:
    """Return a URL as it was before it was a `Path`."""
    return _ONE_SLASH.sub(r"\1://", path)


def _system(path: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the name of the file there."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError("fsspec", "tables") from error

    url = _url(path)
    if _has_password(url):
        raise ConfigError(f"{url.partition('://')[0]}: a URL of a landing has no password: leave it to the environment")
    try:
        with _as_spool_error(path):
            try:
                system, name = url_to_fs(url, use_listings_cache=False)
            except ImportError:
                scheme, _, name = url.partition("://")
                if scheme.lower() not in ("s3", "s3a"):
                    raise
                system = _s3(name.partition("/")[0])
    except SpoolError as error:
        if isinstance(error.__cause__, ImportError | ValueError | TypeError):
            raise ConfigError(f"{path}: {error.reason}{_OTHERWISE}") from error.__cause__
        raise
    return system, str(name)


@cache
def _s3(bucket: str) -> Any:
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import FileSystem

    return ArrowFSWrapper(FileSystem.from_uri(f"s3://{bucket}")[0])


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        return False


def _state(path: str, facts: Mapping[str, Any]) -> FileState:
    time = next((facts[name] for name in _TIMES if facts.get(name) is not None), None)
    return FileState(path, int(facts.get("size") or 0), _nanoseconds(time))


def _nanoseconds(time: Any) -> int:
    """Return a time as nanoseconds since 1970, in whole microseconds as a float may have them; 0 if it is none."""
    if isinstance(time, str):
        try:
            time = dt.datetime.fromisoformat(time)
        except ValueError:
            return 0
    if isinstance(time, dt.datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
        return (zoned - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) * 1000
    return round(time * 1_000_000) * 1000 if isinstance(time, int | float) else 0


@contextmanager
def _as_spool_error(path: str) -> Iterator[None]:
    """Turn errors, which each library has of its own, into SpoolErrors, except FileNotFoundError."""
    try:
        yield
    except MtosiError:
        raise
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, NOT_THERE, path) from error
    except Exception as error:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SpoolError(path, text.splitlines()[0]) from error


class _Stream(io.RawIOBase):
    """A file of a file system, whose errors are SpoolErrors."""

    def __init__(self, path: str, stream: IO[bytes]) -> None:
        self._path = path
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _as_spool_error(self._path):
            data = self._stream.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _as_spool_error(self._path):
            return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            super().close()


REMOTE: Final = RemoteFiles()
