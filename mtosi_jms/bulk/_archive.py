"""Reads packed files: plain, GZIP, Zstandard, ZIP, TAR, and the latter two compressed. The bytes show what a file is.

A whole archive is refused if any member has an unsafe name, is a link or a device, is encrypted, differs from the
directory of a ZIP archive, or is too large. No file is created under a name from the archive. Members are read one at a
time as streams. Compressed archives can only be read from the beginning, so they are unpacked once into an anonymous
temporary file.

ZIP archives hold all facts twice, in the directory at the end and in a header before each member: both must agree.

Some readers follow the directory, others the headers, so an archive in which they differ holds different documents for
different readers; a single flipped bit can hide a member. The members must fill the file from its first byte to the
directory, in any order, without gaps and overlaps.
"""

from __future__ import annotations

import io
import lzma
import stat
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.closing import Closeable
from mtosi_jms.compression import DOCUMENT_NAMES, damages, decompress, is_document_name, open_file
from mtosi_jms.errors import ArchiveError, MtosiError, SpoolError

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_END: Final = struct.Struct("<4s4H2IH")
_END_64: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64: Final = struct.Struct("<4sIQI")
_DESCRIPTORS: Final = {form.size: form for form in (struct.Struct("<3I"), struct.Struct("<I2Q"))}
_DESCRIPTOR_MARK: Final = b"PK\x07\x08"
_DIRECTORY_ENTRY: Final = 46
_LENGTHS_AT: Final = 28
_LENGTHS: Final = struct.Struct("<3H")
"""Lengths of name, extra fields and comment of a directory entry."""
_SIZES_64: Final = struct.Struct("<2H2Q")
_SIZES_64_ID: Final = 1
_NOT_HERE: Final = 0xFFFFFFFF
_NOT_HERE_16: Final = 0xFFFF
_SIZES_FOLLOW: Final = 0x8
_UTF_8: Final = 0x800


class _Facts(NamedTuple):
    """The facts about a member that the archive holds twice."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int


def check_headers(archive: zipfile.ZipFile, file: IO[bytes], path: str) -> None:
    """Checks that the directory of an archive and the headers of its members agree. Raises ArchiveError: they do not
    agree, or bytes belong to no member or to two; struct.error, LookupError: a header ends early."""
    members = sorted(archive.infolist(), key=lambda info: info.header_offset)
    _check_end(archive, file, path)
    at = 0
    ends = [*(info.header_offset for info in members), archive.start_dir]
    for info, end in zip(members, ends[1:], strict=True):
        member = f"member {info.orig_filename!r}: the archive's directory"
        if info.header_offset != at:
            raise ArchiveError(path, f"{member} leaves bytes before it, or puts it inside another one")
        after = _check_member(info, file, end)
        if after is None or info.filename != info.orig_filename:
            raise ArchiveError(path, f"{member} and its own header differ")
        at = after
    if at != archive.start_dir:
        raise ArchiveError(path, "bytes before its directory that no member has")


def _check_member(info: zipfile.ZipInfo, file: IO[bytes], end: int) -> int | None:
    """The end of a member; None if it does not match the directory. `end`: the beginning of the next member, or of the
    directory."""
    file.seek(info.header_offset)
    mark, _, flags, method, _, _, crc, packed, size, named, more = _LOCAL.unpack(file.read(_LOCAL.size))
    name, extra = file.read(named), file.read(more)
    if _NOT_HERE in (packed, size):
        size, packed = _sizes_64(extra, size, packed)
    listed = _directory_facts(info)
    if flags & _SIZES_FOLLOW:  # facts that were unknown when the header was written are 0 there
        crc, packed, size = crc or listed.crc, packed or listed.packed, size or listed.size
    stored = info.compress_type != zipfile.ZIP_STORED or packed == size
    if mark != b"PK\x03\x04" or _Facts(name, flags, method, crc, packed, size) != listed or not stored:
        return None
    after: int = info.header_offset + _LOCAL.size + named + more + packed
    if not flags & _SIZES_FOLLOW:
        return after
    file.seek(after)
    descriptor = file.read(min(max(end - after, 0), 64)).removeprefix(_DESCRIPTOR_MARK)
    form = _DESCRIPTORS.get(len(descriptor))
    return end if form is not None and form.unpack(descriptor) == listed[3:] else None


def _directory_facts(info: zipfile.ZipInfo) -> _Facts:
    name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF_8 else "cp437")
    return _Facts(name, info.flag_bits, info.compress_type, info.CRC, info.compress_size, info.file_size)


def _sizes_64(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    """The sizes of a member of more than four gigabytes, from the extra field for them."""
    while len(extra) >= _SIZES_64.size:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == _SIZES_64_ID:
            _, _, size, packed = _SIZES_64.unpack_from(extra)
            break
        extra = extra[4 + length :]
    return size, packed


def _check_end(archive: zipfile.ZipFile, file: IO[bytes], path: str) -> None:
    """Checks that the end record has the right number, size and position of the entries, and ends the file."""
    at = file.seek(0, io.SEEK_END) - _END.size - len(archive.comment)
    file.seek(max(at, 0))
    mark, disk, first_disk, here, number, size, start, comment = _END.unpack(file.read(_END.size))
    end = at
    if _NOT_HERE_16 in (here, number) or _NOT_HERE in (size, start):
        end, here, number, size, start = _end_64(file, at, (here, number, size, start))
    entries = len(archive.infolist())
    found: Any = (mark, disk, first_disk, here, number, start, comment)
    expected = (b"PK\x05\x06", 0, 0, entries, entries, archive.start_dir, len(archive.comment))
    at = start
    for _ in range(entries if found == expected else 0):
        file.seek(at + _LENGTHS_AT)
        at += _DIRECTORY_ENTRY + sum(_LENGTHS.unpack(file.read(_LENGTHS.size)))
    if found != expected or not at == start + size == end:
        raise ArchiveError(path, "the end of the archive does not say what its directory has")


def _end_64(file: IO[bytes], at: int, values: tuple[int, int, int, int]) -> tuple[int, int, int, int, int]:
    """The 64-bit end record of a large archive: where it begins, and the values in it. `at`: where the plain end record
    begins."""
    if at < _LOCATOR_64.size + _END_64.size:
        return at, *values
    file.seek(at - _LOCATOR_64.size)
    mark, _, place, _ = _LOCATOR_64.unpack(file.read(_LOCATOR_64.size))
    if mark != b"PK\x06\x07":
        return at, *values
    file.seek(place)
    mark, _, _, _, _, _, here, number, size, start = _END_64.unpack(file.read(_END_64.size))
    return (place if mark == b"PK\x06\x06" else -1), here, number, size, start


SEPARATOR: Final = "!/"
"""Separates the path of an archive from the name of a member: `/landing/a.zip!/1.xml`."""

_ZIP_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MAGIC: Final = b"ustar"
_TAR_MAGIC_AT: Final = 257
_HEAD: Final = 512
_ENCRYPTED: Final = 0x1
_READS_A_MEMBER: Final = 10
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK: Final = 64 * 1024
_AT_ONCE: Final = BOUNDS.archive_read

_DAMAGE: Final = (
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,  # RecursionError among them
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
)
"""The exceptions that the standard library raises for damaged archives, besides those for damaged compressed data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackBounds:
    """Limits on what a packed file may unpack to.

    Attributes:
        max_bytes: most bytes that a file may unpack to.
        max_ratio: most bytes for each packed byte, beyond `free_bytes`. XML inventory shrinks to a twentieth or a
            fiftieth, to a 130th if it is very regular and Zstandard takes its time; deflate can shrink zeros to a
            thousandth, Zstandard to a ten-thousandth.
        free_bytes: bytes that any file may unpack to, whatever its ratio.
        max_members: most members of an archive.
    """

    max_bytes: int = BOUNDS.unpacked_bytes
    max_ratio: int = BOUNDS.unpacked_ratio
    free_bytes: int = BOUNDS.unpacked_free
    max_members: int = BOUNDS.archive_members

    def allowed(self, packed: int) -> int:
        """The most bytes to which this many packed bytes may unpack."""
        return min(self.max_bytes, max(self.free_bytes, self.max_ratio * packed))


DEFAULT_BOUNDS: Final = UnpackBounds()


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Turns the standard library's errors for a damaged archive into an `ArchiveError` that names the archive."""
    try:
        yield
    except MtosiError:
        raise
    except _DAMAGE + damages() as error:
        text = str(error) or type(error).__name__
        raise ArchiveError(path, f"damaged archive: {text}") from None


@contextmanager
def spool_errors(path: str | Path) -> Iterator[None]:
    """Turns an error of the operating system into a SpoolError that names a file."""
    try:
        yield
    except MtosiError:
        raise
    except OSError as error:
        raise SpoolError(str(path), error.strerror or str(error)) from error


class _Readable(io.RawIOBase):
    def readable(self) -> bool:
        return True


class BoundedStream(_Readable):
    """The unpacked bytes of a file, up to a limit. `name`: name for errors and parsers. `most`: most bytes that may be
    read."""

    def __init__(self, stream: IO[bytes], name: str, most: int) -> None:
        self._stream = stream
        self._left = most
        self._most = most
        self.name = name

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes, at most `size`; all remaining bytes if `size` is negative or None. Raises ArchiveError: there
        are more bytes than allowed."""
        wanted = self._left + 1 if size is None or size < 0 else min(size, self._left + 1)
        data = self._stream.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError(self.name, f"unpacks to more than {self._most} bytes, too many for its size")
        return data

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class CarefulFile(_Readable):
    """Protects zipfile and tarfile, which trust any length and position in a header. `most_reads`: most reads, None for
    any number: headers that point back could cause endless reads."""

    def __init__(self, stream: IO[bytes], name: str, most_reads: int | None = None) -> None:
        self._stream = stream
        self._name = name
        self._most_reads = most_reads
        self._reads = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file does; ArchiveError for more than 64 MiB at once, or for too many reads."""
        self._reads += 1
        if self._most_reads is not None and self._reads > self._most_reads:
            raise ArchiveError(self._name, "damaged archive: headers without end")
        wanted = _AT_ONCE + 1 if size is None or size < 0 else min(size, _AT_ONCE + 1)
        parts: list[bytes] = []
        while wanted > 0 and (part := self._stream.read(min(wanted, _CHUNK))):  # the length may be false
            parts.append(part)
            wanted -= len(part)
        data = b"".join(parts)
        if len(data) > _AT_ONCE:
            raise ArchiveError(self._name, "damaged archive: a header or table of contents of more than 64 MiB")
        return data


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a packed file. `name`: path of the file; for a member `ARCHIVE!/MEMBER`. `stream`: its unpacked
    bytes; open until the next document is requested."""

    name: str
    stream: IO[bytes]


class Archive(Closeable):
    """One file that may be packed, open for reading; a context manager. `bounds`: limits on what it may unpack to.
    `file`: its bytes, should they not be those of `path` on this machine; the archive closes it.

    Attributes:
        members: size in bytes of each document by its name, in the archive's order; empty if the file is not an
            archive. Only members named `*.xml`, `*.xml.gz` or `*.xml.zst` are documents, as in a folder.

    Raises ArchiveError: the file is damaged, unsafe or too large; SpoolError: the file cannot be read;
    MissingExtraError: the file is Zstandard, and this Python lacks the library.
    """

    def __init__(
        self, path: str | Path, bounds: UnpackBounds = DEFAULT_BOUNDS, *, file: IO[bytes] | None = None
    ) -> None:
        self.path = str(path)
        self.members: dict[str, int] = {}
        self._bounds = bounds
        self._zip: zipfile.ZipFile | None = None
        self._offsets: dict[str, int] = {}
        with ExitStack() as stack:
            with spool_errors(path):
                self._file: IO[bytes] = stack.enter_context(open_file(path) if file is None else file)
                self._packed = self._file.seek(0, io.SEEK_END)
                self._file.seek(0)
            with damage(self.path):
                self._look(stack)
            self._closing = stack.pop_all()

    @property
    def is_archive(self) -> bool:
        """Whether it has members, or could have."""
        return self._zip is not None or bool(self._offsets)

    def documents(self) -> Iterator[Document]:
        """All documents, one open at a time, in the order of the archive. Raises ArchiveError: damaged, or too
        large."""
        for name in self.members if self.is_archive else ("",):
            with self.open(name) as stream:
                shown = f"{self.path}{SEPARATOR}{name}" if name else self.path
                yield Document(shown, stream)

    def open(self, member: str = "") -> IO[bytes]:
        """The bytes of one document, unpacked if the document itself is compressed. `member`: its name; empty for a
        file that is not an archive. Raises ArchiveError: there is no such member, or while it is read, it proves to be
        damaged or too large."""
        if not member and not self.is_archive:
            return self._unpacked(cast("IO[bytes]", _Window(self._file, 0, self._packed)), self.path, self._packed)
        name = f"{self.path}{SEPARATOR}{member}"
        if member not in self.members:
            raise ArchiveError(name, "no such member")
        size = self.members[member]
        with damage(name):
            if self._zip is not None:
                stream = self._zip.open(member)
            else:
                stream = cast("IO[bytes]", _Window(self._file, self._offsets[member], size))
            return self._unpacked(stream, name, size)

    def _unpacked(self, stream: IO[bytes], name: str, size: int) -> IO[bytes]:
        unpacked = decompress(stream)
        if unpacked is stream:
            return cast("IO[bytes]", _Reading(name, stream))
        most = min(self._bounds.allowed(size), self._bounds.allowed(self._packed))
        return cast("IO[bytes]", _Reading(name, stream, cast("IO[bytes]", BoundedStream(unpacked, name, most))))

    def _look(self, stack: ExitStack) -> None:
        unpacked = decompress(self._file)
        head = unpacked.read(_HEAD)
        if unpacked is not self._file and _is_archive(head):
            self._file = self._spooled(stack, head, unpacked)
        if head.startswith(_ZIP_MAGIC):
            careful = cast("IO[bytes]", CarefulFile(self._file, self.path))
            self._zip = stack.enter_context(zipfile.ZipFile(careful))
            self._list_zip(self._zip)
        elif _is_archive(head):
            self._file.seek(0)
            reads = _READS_A_MEMBER * (self._bounds.max_members + _READS_A_MEMBER)
            careful = cast("IO[bytes]", CarefulFile(self._file, self.path, reads))
            with tarfile.open(fileobj=careful, mode="r:", errors="strict") as tar:
                self._list_tar(tar)
        else:
            return
        if not self.members:
            raise ArchiveError(self.path, f"an archive without any document ({DOCUMENT_NAMES})")

    def _spooled(self, stack: ExitStack, head: bytes, unpacked: IO[bytes]) -> IO[bytes]:
        stream = BoundedStream(unpacked, self.path, self._bounds.allowed(self._packed))
        spool = stack.enter_context(tempfile.TemporaryFile(prefix="mtosi-bulk-"))  # noqa: SIM115 - the stack closes it
        data = head
        while data:
            try:
                spool.write(data)
            except OSError as error:
                raise SpoolError(self.path, f"no room to unpack it: {error.strerror}") from error
            data = stream.read(_CHUNK)
        spool.seek(0)
        return cast("IO[bytes]", spool)

    def _list_zip(self, archive: zipfile.ZipFile) -> None:
        listing = _Listing(self.path, self._bounds, self._packed)
        for info in archive.infolist():
            if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
                raise ArchiveError(self.path, f"member {info.filename!r} is encrypted or packed in an unusual way")
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ArchiveError(self.path, f"member {info.filename!r} is a link or a device")
            listing.add(info.orig_filename, info.file_size)
            if not info.is_dir() and is_document_name(info.filename):
                self.members[info.filename] = info.file_size
        check_headers(archive, self._file, self.path)

    def _list_tar(self, archive: tarfile.TarFile) -> None:
        listing = _Listing(self.path, self._bounds, self._packed)
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # else tarfile would keep all of them
            if not (info.isdir() or info.isreg()) or info.issparse():
                raise ArchiveError(self.path, f"member {info.name!r} is a link, a device or sparse")
            listing.add(info.name, info.size)
            if info.isreg() and is_document_name(info.name):
                self.members[info.name] = info.size
                self._offsets[info.name] = info.offset_data
        self._file.seek(archive.offset)
        if self._file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # else a bad header looks like the end
            raise ArchiveError(self.path, "damaged archive: it ends early, or a header is damaged")

    def close(self) -> None:
        """Close the file, and remove temporary files."""
        self._closing.close()


class _Listing:
    """Checks each member of an archive, documents and others, before any is read."""

    def __init__(self, path: str, bounds: UnpackBounds, packed: int) -> None:
        self._path = path
        self._bounds = bounds
        self._most = bounds.allowed(packed)
        self._names: set[str] = set()
        self._total = 0

    def add(self, name: str, size: int) -> None:
        """Add a member. Raises ArchiveError: its name is unsafe or occurs twice, or the members are too many or too
        large."""
        if _is_unsafe(name):
            raise ArchiveError(self._path, f"member {name!r} has an unsafe name")
        if size < 0:
            raise ArchiveError(self._path, f"member {name!r} has a negative size")
        if name in self._names:
            raise ArchiveError(self._path, f"several members are called {name!r}")
        self._names.add(name)
        self._total += size
        if self._total > self._most:
            raise ArchiveError(self._path, f"unpacks to more than {self._most} bytes, too many for its size")
        if len(self._names) > self._bounds.max_members:
            raise ArchiveError(self._path, f"more than {self._bounds.max_members} members")


class _Window(_Readable):
    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size
        self._position = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        self._file.seek(self._start + self._position)
        data = self._file.read(wanted)
        self._position += len(data)
        if wanted and not data:
            raise EOFError("it ends early")
        return data


class _Reading(_Readable):
    """The stream of a document: reads the last of several streams, and closes all."""

    def __init__(self, name: str, *streams: IO[bytes]) -> None:
        self.name = name
        self._streams = streams

    def read(self, size: int | None = -1, /) -> bytes:
        with damage(self.name):
            return self._streams[-1].read(-1 if size is None else size)

    def close(self) -> None:
        if not self.closed:
            for stream in reversed(self._streams):
                stream.close()
        super().close()


def _is_archive(head: bytes) -> bool:
    return head.startswith(_ZIP_MAGIC) or head.startswith(_TAR_MAGIC, _TAR_MAGIC_AT)


def _is_unsafe(name: str) -> bool:
    """Whether a name could lead out of a folder on any system, or cannot be printed."""
    parts = name.removesuffix("/").split("/")
    odd = not name.isprintable() or "\\" in name or ":" in parts[0]
    return odd or any(part in ("", "..") for part in parts)
