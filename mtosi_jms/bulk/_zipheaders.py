"""ZIP archives hold all facts twice, in the directory at the end and in a header before each member: both must agree.

Some readers follow the directory, others the headers, so an archive in which they differ holds different documents for
different readers; a single flipped bit can hide a member. The members must fill the file from its first byte to the
directory, in any order, without gaps and overlaps.
"""

from __future__ import annotations

import io
import struct
import zipfile
from typing import IO, Any, Final, NamedTuple

from mtosi_jms.errors import ArchiveError

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
