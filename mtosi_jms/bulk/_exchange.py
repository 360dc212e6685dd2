"""A BulkResponse exchange: its terms, where its file may be (C18), how the file is written, and the reply.

The peer chooses the fileLocationURI, so it is not trusted: only `file:` is accepted, no other host, no `..`, and the
file must be inside an allowed folder after symbolic links are resolved. The check and the opening are two steps: do not
allow a folder in which the peer can make links.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import time
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Generic, Self, TypeAlias, TypeVar
from urllib.parse import unquote_to_bytes, urlsplit

from mtosi_jms.bulk._archive import DEFAULT_BOUNDS, Archive, Document, UnpackBounds, spool_errors
from mtosi_jms.errors import ConfigError, FileLocationError
from mtosi_jms.files import sync
from mtosi_jms.soap import Envelope
from mtosi_jms.xmlbind import XmlObject, iter_decode


class Compression(StrEnum):
    """The values of compressionType that the SDK can write; VENDOR_EXT and MINOR_EXT are passed through only."""

    NO_COMPRESSION = "NO_COMPRESSION"
    GZIP = "GZIP"


class Packing(StrEnum):
    """The values of packingType that the SDK can write; VENDOR_EXT and MINOR_EXT are passed through only."""

    NO_PACKING = "NO_PACKING"
    ZIP = "ZIP"
    TAR = "TAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkTerms:
    """The header fields of a BulkResponse request. `file_location_uri`: fileLocationURI: the file to write.
    `batch_size`: requestedBatchSize: most objects in one document of the file; None or 0: all in one."""

    file_location_uri: str
    compression: Compression = Compression.NO_COMPRESSION
    packing: Packing = Packing.NO_PACKING
    batch_size: int | None = None

    @classmethod
    def of(cls, file_location_uri: str, compression: str, packing: str, batch_size: int | None = None) -> Self:
        """Make terms from the texts of a header or a call. Raises ConfigError: no location, an unknown compression or
        packing, or a negative size."""
        if not file_location_uri.strip():
            raise ConfigError("BulkResponse needs a file_location_uri")
        if compression not in list(Compression):
            raise ConfigError(f"compression is {compression!r}; it must be one of {', '.join(Compression)}")
        if packing not in list(Packing):
            raise ConfigError(f"packing is {packing!r}; it must be one of {', '.join(Packing)}")
        if batch_size is not None and batch_size < 0:
            raise ConfigError(f"batch_size must not be negative: {batch_size}")
        return cls(
            file_location_uri=file_location_uri,
            compression=Compression(compression),
            packing=Packing(packing),
            batch_size=batch_size,
        )


Folders: TypeAlias = str | Path | Iterable[str | Path]
"""One folder or several."""


def bulk_files(uri: str, allowed: Folders) -> list[Path]:
    """The files that a reply's fileLocationURI names.

    By its schema the field holds "the base name of the file(s)". So if no file has this name, it means all files whose
    names begin with it, followed by a dot, hyphen or underscore: `inventory` also means `inventory-1.xml.gz`.
    `allowed`: folders below which files may be read. Returns sorted paths of regular files, without symbolic links; at
    least one. Raises FileLocationError: another scheme or host, a path outside the allowed folders, no such file, no
    regular file.
    """
    path = _local_path(uri)
    folders = _real(allowed)
    real = _inside(path, folders)
    with _reaching(path):
        if real.exists():
            return [_regular(real)]
        names = sorted(os.listdir(real.parent))  # noqa: PTH208 - names of any bytes, as the system has them
        begins = tuple(path.name + mark for mark in ".-_")
        found = [_regular(_inside(real.parent / name, folders)) for name in names if name.startswith(begins)]
    if not found:
        raise FileLocationError("no such file", scheme="file", path=str(path))
    return found


def new_file(uri: str, allowed: Folders) -> Path:
    """The file that a request's fileLocationURI asks a supplier to write. `allowed`: folders below which files may be
    written. Returns a path in an existing folder; the folder's path has no symbolic links. The file itself may exist.
    Raises FileLocationError: another scheme or host, a path outside the allowed folders, or no such folder."""
    path = _local_path(uri)
    folder = _inside(path.parent, _real(allowed), itself=True)
    with _reaching(path):
        if not folder.is_dir():
            raise FileLocationError("no such folder", scheme="file", path=str(path.parent))
        if (folder / path.name).is_dir():
            raise FileLocationError("a folder", scheme="file", path=str(path))
    return folder / path.name


@contextmanager
def _reaching(path: Path) -> Iterator[None]:
    """Turns an error of the operating system, such as a path that is too long, into a FileLocationError."""
    try:
        yield
    except OSError as error:
        raise FileLocationError(f"cannot be read: {error.strerror}", scheme="file", path=str(path)) from None


def _local_path(uri: str) -> Path:
    scheme, separator, _ = uri.strip().partition(":")
    scheme = scheme.lower() if separator and scheme.isascii() and "/" not in scheme else ""
    if scheme != "file":
        raise FileLocationError(f"only file: URIs are followed, not {scheme or 'relative ones'}", scheme=scheme)
    try:
        parts = urlsplit(uri.strip())
        text = unquote_to_bytes(parts.path).decode()
    except ValueError:
        raise FileLocationError("not a well-formed file: URI", scheme=scheme) from None
    if parts.netloc.lower() not in ("", "localhost"):
        raise FileLocationError("names another host", scheme=scheme)
    if parts.query or parts.fragment or not text.startswith("/") or text.endswith("/"):
        raise FileLocationError("must name a file by an absolute path and nothing else", scheme=scheme)
    if any(ord(character) < 32 or character == "\x7f" for character in text):
        raise FileLocationError("control characters in the path", scheme=scheme)
    if {".", ".."} & set(text.split("/")):
        raise FileLocationError("a path with . or .. in it", scheme=scheme, path=text)
    return Path(text)


def _real(allowed: Folders) -> list[Path]:
    given = [allowed] if isinstance(allowed, str | Path) else list(allowed)
    return [Path(os.path.realpath(folder)) for folder in given]


def _inside(path: Path, folders: list[Path], *, itself: bool = False) -> Path:
    real = Path(os.path.realpath(path))
    for folder in folders:
        if folder in real.parents or (itself and real == folder):
            return real
    raise FileLocationError("outside the folders that are allowed", scheme="file", path=str(path))


def _regular(path: Path) -> Path:
    if not stat.S_ISREG(path.stat().st_mode):
        raise FileLocationError("not a regular file", scheme="file", path=str(path))
    return path


class BulkFile:
    """A file to which documents are added; a context manager.

    It is written under a temporary name in the same folder. If the block ends without an error, it is renamed and
    replaces a file of that name; otherwise it is removed. Only one document is in memory at a time.

    | | NO_COMPRESSION | GZIP |
    |---|---|---|
    | NO_PACKING | the document | the document, gzip |
    | ZIP | plain members | members compressed by gzip, `.xml.gz` |
    | TAR | plain members | the archive compressed by gzip, `.tar.gz` |

    `packing`: how to pack; without packing the file can hold only one document. Raises SpoolError: the file cannot be
    written.
    """

    def __init__(
        self,
        path: str | Path,
        compression: Compression = Compression.NO_COMPRESSION,
        packing: Packing = Packing.NO_PACKING,
    ) -> None:
        self.path = Path(path)
        self.documents = 0
        self._gzip = compression is Compression.GZIP
        self._packing = packing
        self._part = self.path.with_name(f".mtosi-{uuid.uuid4().hex}.part")
        self._stack = ExitStack()
        self._out: Any = None

    def __enter__(self) -> Self:
        with spool_errors(self.path):
            self._file: IO[bytes] = self._stack.enter_context(self._part.open("xb"))
            with ExitStack() as failing:
                failing.callback(self._discard)
                self._out = self._stack.enter_context(self._opened())
                failing.pop_all()
        return self

    def _opened(self) -> Any:
        if self._packing is Packing.ZIP:
            return zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
        if self._packing is Packing.TAR:
            return tarfile.open(fileobj=self._file, mode="w|gz" if self._gzip else "w|")
        return gzip.GzipFile(filename="", fileobj=self._file, mode="wb") if self._gzip else ExitStack()

    def add(self, document: bytes) -> None:
        """Add a document; in an archive its name is 000001.xml and so on. Raises ConfigError: it is a second document,
        and the file is not packed; SpoolError: it cannot be written."""
        self.documents += 1
        name = f"{self.documents:06}.xml"
        with spool_errors(self.path):
            if self._packing is Packing.ZIP:
                info = zipfile.ZipInfo(f"{name}.gz" if self._gzip else name, time.gmtime()[:6])
                info.external_attr = 0o644 << 16
                self._out.writestr(info, gzip.compress(document) if self._gzip else document)
            elif self._packing is Packing.TAR:
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(document), int(time.time())
                self._out.addfile(member, io.BytesIO(document))
            elif self.documents > 1:
                raise ConfigError("without packing a file holds one document")
            else:
                (self._out if self._gzip else self._file).write(document)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._discard()
            return
        with spool_errors(self.path), ExitStack() as failing:
            failing.callback(self._discard)
            self._out.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._stack.close()
            self._part.replace(self.path)
            failing.pop_all()
        with spool_errors(self.path):
            sync(self.path.parent)

    def _discard(self) -> None:
        with suppress(OSError, ValueError, tarfile.TarError):
            self._stack.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


Response = TypeVar("Response")
T = TypeVar("T", bound=XmlObject)


@dataclass(frozen=True, kw_only=True)
class BulkReply(Generic[Response]):
    """The reply to a BulkResponse request (C18). Experimental.

    The files are read on demand, and only below folders that the caller allows, since the peer chooses the names. Their
    bytes show how they are packed.

    Attributes:
        file_location_uri: the reply's fileLocationURI, or else the request's.
        compression: compressionType as text, the reply's or else the request's.
        packing: packingType as text, the reply's or else the request's.
    """

    response: Response
    envelope: Envelope
    file_location_uri: str
    compression: str
    packing: str

    def files(self, *, allowed: Folders) -> list[Path]:
        """The files that the reply names; see `bulk_files`. `allowed`: folders below which files may be read. Raises
        FileLocationError: no `file:` URI, another host, a path outside these folders, or no such file."""
        return bulk_files(self.file_location_uri, allowed)

    def documents(self, *, allowed: Folders, bounds: UnpackBounds = DEFAULT_BOUNDS) -> Iterator[Document]:
        """The documents in the files, unpacked, one open at a time. `bounds`: limits on what each file may unpack to.
        Raises FileLocationError: as for `files`; ArchiveError: a file is damaged, unsafe or too large; SpoolError: a
        file cannot be read."""
        for path in self.files(allowed=allowed):
            with Archive(path, bounds) as archive:
                yield from archive.documents()

    def objects(
        self,
        cls: type[T] | tuple[type[T], ...],
        *,
        allowed: Folders,
        strict: bool = False,
        bounds: UnpackBounds = DEFAULT_BOUNDS,
    ) -> Iterator[T]:
        """The objects of one or more classes in all documents, in constant memory; see `iter_decode`. `cls`: class of
        the objects, or a tuple of classes. `strict`: whether to raise at the first error against the schema. Raises As
        `documents`, and `XmlError` for a document that cannot be read; objects before it are yielded first."""
        for document in self.documents(allowed=allowed, bounds=bounds):
            yield from iter_decode(document.stream, cls, strict=strict)
