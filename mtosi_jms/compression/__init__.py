"""Files: compressed ones (gzip, Zstandard, recognized by their first octets), names of documents, archives and URLs."""

from __future__ import annotations

import errno
import gzip
import importlib
import io
import os
import re
import stat
import sys
import zlib
from typing import IO, Any, Final, cast

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import MissingExtraError

__all__ = [
    "ARCHIVES",
    "COMPRESSED",
    "DAMAGED",
    "DOCUMENTS",
    "DOCUMENT_NAMES",
    "NOT_REGULAR",
    "ZSTD",
    "damages",
    "decompress",
    "is_document_name",
    "open_file",
    "read_file",
    "scheme_of",
]

DOCUMENTS: Final = (".xml", ".xml.gz", ".xml.zst")
"""The names of documents in folders and archives end so, in upper or lower case."""
DOCUMENT_NAMES: Final = ", ".join(f"*{suffix}" for suffix in DOCUMENTS)
"""The same as text, for messages."""
ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst")
"""The names of archives in folders end so, in upper or lower case."""
COMPRESSED: Final = (".gz", ".tgz", ".zip", ".zst")
"""The names of files that are smaller than what is in them end so."""
DAMAGED: Final = "damaged compressed data"
"""What the text of an error about one of `damages` begins with."""
ZSTD: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
"""The module for Zstandard: Python's own from 3.14 on, before that of the extra `zstd`."""

NOT_REGULAR: Final = "a named pipe, socket or device, not a file"

_GZIP: Final = b"\x1f\x8b"
_ZSTANDARD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
"""The beginnings of a frame with data, and of a skippable frame."""
_HEAD: Final = 4
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_DESCRIPTORS: Final = ("/dev/fd/", "/proc/")
"""Names of files that this process has open already, which may be pipes: `/dev/stdin`, or what a shell passes."""


def decompress(stream: IO[bytes]) -> IO[bytes]:
    """Return a stream of the decompressed data; the stream itself if its first octets show no known compression.

    Several gzip members or Zstandard frames are read as one, skippable frames are skipped. Memory is bounded: a frame
    of Zstandard whose window is larger than 128 MiB counts as damaged, as libzstd has it.

    Args:
        stream: a file at its beginning, buffered or seekable. Closing the result leaves it open.

    Raises:
        MissingExtraError: the data is Zstandard, and this Python lacks the library.
        one of `damages`: when the result is read, if the data is damaged or ends early.
    """
    if isinstance(stream, io.BufferedReader):  # a pipe cannot seek
        head = stream.peek(_HEAD)[:_HEAD]
    else:
        head = stream.read(_HEAD)
        stream.seek(0)
    if head.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    if _ZSTANDARD.match(head):
        return cast("IO[bytes]", _zstd().ZstdFile(stream))
    return stream


def open_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file to read it as it is. Other than files are refused at once, because to read them may never end. Raises
    OSError: the file cannot be opened, or is a named pipe, a socket or a device."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # else a pipe waits until somebody writes into it

    stream = io.BufferedReader(io.FileIO(path, "r", opener=opener))
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        if not os.path.realpath(path).startswith(_DESCRIPTORS):
            stream.close()
            raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
        if hasattr(os, "set_blocking"):  # Windows opened it as it stays
            os.set_blocking(stream.fileno(), True)
    return stream


def read_file(path: str | os.PathLike[str], most: int = BOUNDS.settings_bytes) -> bytes:
    """Read a whole file as it is: settings, names or the like, or what has a bound of its own.

    Args:
        most: bytes that it may have; a larger one is refused before memory is full.

    Raises:
        OSError: as for `open_file`, or the file is larger.
    """
    with open_file(path) as stream:
        is_large = os.fstat(stream.fileno()).st_size > most
        data = b"" if is_large else stream.read(most + 1)
    if is_large or len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
    return data


def damages() -> tuple[type[Exception], ...]:
    """The exceptions that reading compressed data raises if the data is damaged or ends early; for `except`."""
    zstd = sys.modules.get(ZSTD)
    return EOFError, gzip.BadGzipFile, zlib.error, *([zstd.ZstdError] if zstd is not None else [])


def _zstd() -> Any:
    try:
        return importlib.import_module(ZSTD)
    except ImportError as error:
        raise MissingExtraError(ZSTD, "zstd") from error


def scheme_of(path: str | os.PathLike[str]) -> str:
    """Return the scheme of a URL (also of one that was a `Path`: `s3a:/x`) in lower case; empty for a path."""
    text = os.fspath(path)
    found = _SCHEME.match(text)
    return found[1].lower() if found else "file" if text.lower().startswith("file:") else ""


def is_document_name(path: str) -> bool:
    """Whether a file of this name in a folder or archive is a document."""
    name = path.rpartition("/")[2]
    return name.lower().endswith(DOCUMENTS) and not name.startswith(".")
