"""Landings on object stores and other machines (S3, HDFS, GCS, ...), by fsspec.

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
from functools import cache
from itertools import count
from typing import IO, Any, Final, cast
from urllib.parse import urlsplit

from mtosi_jms.compression import NOT_REGULAR
from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError, SpoolError
from mtosi_jms.tables._file_systems import NOT_THERE, FileState, Reject, Rejects, Sieve, expanded

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
    """Lists one path of a landing."""

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
    """Return the file system of a bucket, by pyarrow."""
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
