"""How much a packed file may become when it is unpacked, and the streams that see to it."""

from __future__ import annotations

import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from mtosi_jms.errors import ArchiveError, MtosiError

CHUNK: Final = 64 * 1024
_AT_ONCE: Final = 64 * 1024 * 1024

_DAMAGE: Final = (
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,  # a recursion without end among them
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the standard library raises at a damaged archive, wherever it notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackBounds:
    """Bounds on what a packed file may become.

    Attributes:
        max_bytes: most bytes that all of a file may become.
        max_ratio: most bytes that a packed byte may become, once more than `free_bytes` came of them. Inventory in XML
            is packed to a twentieth or a fiftieth; deflate can pack zeros to a thousandth.
        free_bytes: what may come of any file whatever its ratio.
        max_members: most members of an archive.
    """

    max_bytes: int = 64 * 1024**3
    max_ratio: int = 200
    free_bytes: int = 64 * 1024**2
    max_members: int = 100_000

    def allowed(self, packed: int) -> int:
        """Most bytes that may come of so many packed ones."""
        return min(self.max_bytes, max(self.free_bytes, self.max_ratio * packed))


DEFAULT_BOUNDS: Final = UnpackBounds()


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Turns what the standard library raises at a damaged archive into an `ArchiveError` that names it."""
    try:
        yield
    except MtosiError:
        raise
    except _DAMAGE as error:
        text = str(error) or type(error).__name__
        raise ArchiveError(path, f"damaged archive: {text}") from None


class BoundedStream(io.RawIOBase):
    """What comes out of a packed file, up to a bound.

    Args:
        stream: gives the unpacked bytes.
        name: for errors, and what parsers are told.
        most: bytes that may come.
    """

    def __init__(self, stream: IO[bytes], name: str, most: int) -> None:
        self._stream = stream
        self._left = most
        self._most = most
        self.name = name

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes, `size` at most; all that are left where that is negative or None.

        Raises:
            ArchiveError: more comes than is allowed.
        """
        wanted = self._left + 1 if size is None or size < 0 else min(size, self._left + 1)
        data = self._stream.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError(self.name, f"unpacks to more than {self._most} bytes, too many for its size")
        return data

    def close(self) -> None:
        """Close what it reads from too."""
        if not self.closed:
            self._stream.close()
        super().close()


class CarefulFile(io.RawIOBase):
    """A file for the archive modules, which read in one piece whatever length a header names, and go wherever it leads.

    Args:
        stream: the file.
        name: for errors.
        most_reads: how often may be read from it, None for any number: headers that lead back never end.
    """

    def __init__(self, stream: IO[bytes], name: str, most_reads: int | None = None) -> None:
        self._stream = stream
        self._name = name
        self._most_reads = most_reads
        self._reads = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """As any file."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """As any file."""
        return self._stream.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        """As any file.

        Raises:
            ArchiveError: more than 64 MiB at once, or too often.
        """
        self._reads += 1
        if self._most_reads is not None and self._reads > self._most_reads:
            raise ArchiveError(self._name, "damaged archive: headers without end")
        wanted = _AT_ONCE + 1 if size is None or size < 0 else min(size, _AT_ONCE + 1)
        parts: list[bytes] = []
        while wanted > 0 and (part := self._stream.read(min(wanted, CHUNK))):  # no large buffer for nothing
            parts.append(part)
            wanted -= len(part)
        data = b"".join(parts)
        if len(data) > _AT_ONCE:
            raise ArchiveError(self._name, "damaged archive: a header or table of contents of more than 64 MiB")
        return data
