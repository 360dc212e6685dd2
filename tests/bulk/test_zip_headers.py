"""ZIP archives whose directory and headers do not say the same: refused, whichever of the two is wrong."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from mtosi_jms.bulk import Archive
from mtosi_jms.errors import ArchiveError

pytestmark = pytest.mark.obligation("C18")

LOCAL, DIRECTORY, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
TEXT = b"<a>" + b"x" * 50 + b"</a>"


class _OneWay(io.BytesIO):
    """A file that is written from the beginning to the end: sizes follow each member."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation


def archive(kind: str = "plain", *names: str) -> bytes:
    out = _OneWay() if kind == "stream" else io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED if kind == "stored" else zipfile.ZIP_DEFLATED) as made:
        for name in names or ("a.xml", "\xfc.xml", "sub/", "c.txt"):
            with made.open(name, "w", force_zip64=kind == "zip64") as member:
                member.write(b"" if name.endswith("/") else TEXT)
        made.comment = b"a comment"
    return out.getvalue()


def documents(data: bytes, folder: Path) -> dict[str, bytes]:
    path = folder / "a.zip"
    path.write_bytes(data)
    with Archive(path) as read:
        return {found.name.removeprefix(str(path)): found.stream.read() for found in read.documents()}


@pytest.mark.parametrize("kind", ["plain", "stored", "stream", "zip64"])
def test_archives_as_programs_write_them_are_read(kind: str, tmp_path: Path) -> None:
    assert documents(archive(kind), tmp_path) == {"!/a.xml": TEXT, "!/\xfc.xml": TEXT}


def flips(data: bytes, mark: bytes, start: int, size: int) -> list[bytes]:
    """An archive with one bit of a header's field the other way, in each header of a kind and each bit in turn."""
    found = []
    at = data.find(mark)
    while at >= 0:
        for bit in range(size * 8):
            changed = bytearray(data)
            changed[at + start + bit // 8] ^= 1 << bit % 8
            found.append(bytes(changed))
        at = data.find(mark, at + 1)
    return found


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize(
    ("mark", "start", "size"),
    [
        pytest.param(LOCAL, 6, 2, id="flags"),
        pytest.param(LOCAL, 8, 2, id="method"),
        pytest.param(LOCAL, 14, 12, id="checksum and sizes"),
        pytest.param(LOCAL, 26, 4, id="lengths"),
        pytest.param(LOCAL, 30, 5, id="name"),
        pytest.param(DIRECTORY, 8, 2, id="flags in the directory"),
        pytest.param(DIRECTORY, 10, 2, id="method in the directory"),
        pytest.param(DIRECTORY, 16, 12, id="checksum and sizes in the directory"),
        pytest.param(DIRECTORY, 28, 6, id="lengths in the directory"),
        pytest.param(DIRECTORY, 42, 4, id="place in the directory"),
        pytest.param(DIRECTORY, 46, 5, id="name in the directory"),
        pytest.param(END, 0, 22, id="end"),
    ],
)
def test_no_flipped_bit_passes(kind: str, mark: bytes, start: int, size: int, tmp_path: Path) -> None:
    for data in flips(archive(kind, "a.xml", "b.xml", "c.xml"), mark, start, size):
        with pytest.raises(ArchiveError):
            documents(data, tmp_path)


def without_entry(data: bytes, number: int) -> bytes:
    """An archive whose directory leaves a member out, and says so."""
    entries = data[data.index(DIRECTORY) : data.index(END)].split(DIRECTORY)[1:]
    left = b"".join(DIRECTORY + entry for at, entry in enumerate(entries) if at != number)
    end = bytearray(data[data.index(END) :])
    struct.pack_into("<2HI", end, 8, len(entries) - 1, len(entries) - 1, len(left))
    return data[: data.index(DIRECTORY)] + left + bytes(end)


@pytest.mark.parametrize("number", range(4))
def test_members_that_the_directory_leaves_out_are_told(number: int, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="bytes before"):
        documents(without_entry(archive(), number), tmp_path)


@pytest.mark.parametrize("more", [b"x", archive(), END + bytes(18)], ids=["a byte", "an archive", "an end"])
def test_what_follows_the_end_is_told(more: bytes, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError):
        documents(archive() + more, tmp_path)


def test_members_that_share_bytes_are_told(tmp_path: Path) -> None:
    data = archive("plain", "a.xml", "b.xml")
    first = data.index(DIRECTORY)
    second = data.index(DIRECTORY, first + 1)
    shared = bytearray(data)
    struct.pack_into("<I", shared, second + 42, 0)
    with pytest.raises(ArchiveError, match=r"inside another one|differ"):
        documents(bytes(shared), tmp_path)
