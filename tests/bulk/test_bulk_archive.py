"""Packed files: what is read out of them, and what is refused (C18). Hostile ones end in a typed error, always."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtosi_jms.bulk import Archive, BulkFile, BulkReply, Compression, Packing, UnpackBounds
from mtosi_jms.compression import ZSTD
from mtosi_jms.errors import ArchiveError, ConfigError, SpoolError
from mtosi_jms.stubs.nrf.me import ManagedElementType

from ..packed import tarred, zipped

pytestmark = pytest.mark.obligation("C18", "SEC16")

zstd = import_module(ZSTD).compress
A, B = b"<a>" + b"x" * 1000 + b"</a>", b"<b/>"
BOUNDS = UnpackBounds(free_bytes=100_000, max_ratio=100)
MTOP = "http://www.tmforum.org/mtop/"
Save = Callable[[bytes], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(data: bytes) -> Path:
        path = tmp_path / "packed"
        path.write_bytes(data)
        return path

    return write


def texts(path: Path, bounds: UnpackBounds = BOUNDS) -> dict[str, bytes]:
    """All documents of a file by what follows its path in their names."""
    with Archive(path, bounds) as archive:
        return {doc.name.removeprefix(str(path)): doc.stream.read() for doc in archive.documents()}


BOTH = {"!/1.xml": A, "!/sub/2.xml": B}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(A, {"": A}, id="plain"),
        pytest.param(b"", {"": b""}, id="empty"),
        pytest.param(gzip.compress(A), {"": A}, id="gzip"),
        pytest.param(zipped(("1.xml", A), ("sub/2.xml", B)), BOTH, id="zip"),
        pytest.param(zipped(("1.xml", A), ("sub/2.xml", B), method=zipfile.ZIP_STORED), BOTH, id="zip-stored"),
        pytest.param(zstd(A), {"": A}, id="zstd"),
        pytest.param(gzip.compress(zipped(("1.xml", A), ("sub/2.xml", B))), BOTH, id="zip-in-gzip"),
        pytest.param(zstd(zipped(("1.xml", A), ("sub/2.xml", B))), BOTH, id="zip-in-zstd"),
        pytest.param(tarred(("1.xml", A), ("sub/2.xml", B)), BOTH, id="tar"),
        pytest.param(tarred(("1.xml", A), ("sub/2.xml", B), format=tarfile.GNU_FORMAT), BOTH, id="tar-gnu"),
        pytest.param(tarred(("1.xml", A), ("sub/2.xml", B), format=tarfile.USTAR_FORMAT), BOTH, id="tar-ustar"),
        pytest.param(tarred(("1.xml", A), ("sub/2.xml", B), mode="w:gz"), BOTH, id="tar-in-gzip"),
        pytest.param(zstd(tarred(("1.xml", A), ("sub/2.xml", B))), BOTH, id="tar-in-zstd"),
        pytest.param(zipped(("1.xml.gz", gzip.compress(A))), {"!/1.xml.gz": A}, id="gzip-in-zip"),
        pytest.param(zipped(("1.xml.zst", zstd(A))), {"!/1.xml.zst": A}, id="zstd-in-zip"),
        pytest.param(tarred(("1.XML.gz", gzip.compress(A))), {"!/1.XML.gz": A}, id="gzip-in-tar"),
        pytest.param(tarred(("1.XML.zst", zstd(A))), {"!/1.XML.zst": A}, id="zstd-in-tar"),
        pytest.param(zipped(("1.xml", A), ("readme.txt", B), (".2.xml", B), ("d/", b"")), {"!/1.xml": A}, id="others"),
    ],
)
def test_documents_are_found_however_they_are_packed(save: Save, data: bytes, found: dict[str, bytes]) -> None:
    assert texts(save(data)) == found


def test_members_are_read_in_any_order_and_piece_by_piece(save: Save) -> None:
    with Archive(save(tarred(("1.xml", A), ("2.xml", B), mode="w:gz"))) as archive:
        with archive.open("2.xml") as second, archive.open("1.xml") as first:
            assert (first.read(2), second.read(2), first.read(1)) == (A[:2], B[:2], A[2:3])
            assert first.read() == A[3:]
        with pytest.raises(ArchiveError, match="no such member"):
            archive.open("3.xml")


def unusual(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def encrypted() -> bytes:
    data = bytearray(zipped(("1.xml", A)))
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


HOSTILE = {
    "absolute zip": (zipped(("/etc/1.xml", A)), "unsafe name"),
    "traversal zip": (zipped(("../1.xml", A)), "unsafe name"),
    "traversal inside zip": (zipped(("a/../../1.xml", A)), "unsafe name"),
    "backslash zip": (zipped(("..\\1.xml", A)), "unsafe name"),
    "drive zip": (zipped(("C:1.xml", A)), "unsafe name"),
    "control zip": (zipped(("a\n1.xml", A)), "unsafe name"),
    "nul zip": (zipped(("aQ1.xml", A)).replace(b"aQ1.xml", b"a\x001.xml"), "unsafe name"),
    "traversal of no document": (zipped(("1.xml", A), ("../x.txt", B)), "unsafe name"),
    "absolute tar": (tarred(("/etc/1.xml", A)), "unsafe name"),
    "traversal tar": (tarred(("1.xml", A), ("../../2.xml", B)), "unsafe name"),
    "traversal tar.gz": (tarred(("../2.xml", B), mode="w:gz"), "unsafe name"),
    "link tar": (tarred(("1.xml", b""), type=tarfile.SYMTYPE, linkname="/etc/passwd"), "link"),
    "hard link tar": (tarred(("1.xml", b""), type=tarfile.LNKTYPE, linkname="/etc/passwd"), "link"),
    "device tar": (tarred(("1.xml", b""), type=tarfile.CHRTYPE), "device"),
    "pipe tar": (tarred(("1.xml", b""), type=tarfile.FIFOTYPE), "device"),
    "sparse tar": (tarred(("1.xml", b""), pax_headers={"GNU.sparse.map": "0,1", "GNU.sparse.size": "9"}), "sparse"),
    "odd bytes tar": (tarred(("a1.xml", A), format=tarfile.GNU_FORMAT).replace(b"a1.xml", b"\xff1.xml"), "damaged"),
    "link zip": (zipped((unusual("1.xml", 0o120777), b"/etc/passwd")), "link"),
    "encrypted zip": (encrypted(), "encrypted"),
    "lzma zip": (zipped(("1.xml", A), method=zipfile.ZIP_LZMA), "unusual way"),
    "tar bomb": (tarred(("1.xml", bytes(2_000_000))), None),
    "zip bomb": (zipped(("1.xml", bytes(2_000_000))), "too many for its size"),
    "tar.gz bomb": (tarred(("1.xml", bytes(2_000_000)), mode="w:gz"), "too many for its size"),
    "tar.zst bomb": (zstd(tarred(("1.xml", bytes(2_000_000)))), "too many for its size"),
    "zip in gzip bomb": (gzip.compress(zipped(("1.xml", bytes(2_000_000)), method=zipfile.ZIP_STORED)), "too many"),
    "gzip bomb": (gzip.compress(bytes(2_000_000)), "too many for its size"),
    "zstd bomb": (zstd(bytes(2_000_000)), "too many for its size"),
    "gzip bomb in zip": (zipped(("1.xml.gz", gzip.compress(bytes(2_000_000)))), "too many for its size"),
    "zstd bomb in zip": (zipped(("1.xml.zst", zstd(bytes(2_000_000)))), "too many for its size"),
    "gzip bomb in tar": (tarred(("1.xml.gz", gzip.compress(bytes(2_000_000)))), "too many for its size"),
    "nothing in it": (zipped(("readme.txt", B)), "without any"),
    "no member": (zipped(), "without any"),
    "the same name twice in tar": (tarred(("1.xml", A), ("1.xml", B)), "several members"),
    "cut zip": (zipped(("1.xml", A))[:-30], "damaged"),
    "cut tar": (tarred(("1.xml", A))[:1100], "damaged"),
    "cut tar between members": (tarred(("1.xml", A), ("2.xml", B))[:1536], "damaged"),
    "damaged header in tar": (tarred(("1.xml", A), ("2.xml", B)).replace(b"2.xml", b"3.xml"), "damaged"),
    "cut tar.gz": (tarred(("1.xml", A), mode="w:gz")[:-20], "damaged"),
    "cut tar.zst": (zstd(tarred(("1.xml", A)))[:-20], "damaged"),
    "cut gzip": (gzip.compress(A)[:-12], "damaged"),
    "cut zstd": (zstd(A)[:-2], "damaged"),
    "wrong checksum in zip": (zipped(("1.xml", A), method=zipfile.ZIP_STORED).replace(b"<a>", b"<b>"), "damaged"),
}


@pytest.mark.parametrize(("data", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_and_damaged_files_end_in_a_typed_error(save: Save, data: bytes, reason: str | None) -> None:
    path = save(data)
    if reason is None:  # a large file is not a bomb if it is large as it lies there
        assert len(texts(path)["!/1.xml"]) == 2_000_000
        return
    with pytest.raises(ArchiveError, match=reason) as caught:
        texts(path)
    assert str(path) in str(caught.value)
    assert [each.name for each in path.parent.iterdir()] == ["packed"], "nothing was unpacked beside it"


def test_the_same_name_twice_in_zip_is_refused(save: Save) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("1.xml", A), ("1.xml", B))
    with pytest.raises(ArchiveError, match="several members"):
        texts(save(data))


def test_members_and_bytes_are_bounded(save: Save) -> None:
    path = save(tarred(*((f"{number}.xml", B) for number in range(4))))
    assert len(texts(path, UnpackBounds(max_members=4))) == 4
    with pytest.raises(ArchiveError, match="more than 3 members"):
        texts(path, UnpackBounds(max_members=3))
    with pytest.raises(ArchiveError, match="more than 10 bytes"):
        texts(path, UnpackBounds(max_bytes=10))


def test_headers_without_end_are_not_read_into_memory(save: Save) -> None:
    long_name = tarfile.TarInfo("././@LongLink")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 8 * 1024**3
    with pytest.raises(ArchiveError, match="damaged"):
        texts(save(long_name.tobuf(tarfile.GNU_FORMAT) + bytes(2048)))


def test_headers_that_lead_to_headers_end(save: Save) -> None:
    link = tarfile.TarInfo("././@LongLink")
    link.type, link.size = tarfile.GNUTYPE_LONGNAME, 2
    chain = (link.tobuf(tarfile.GNU_FORMAT) + b"a\0" + bytes(510)) * 3000
    with pytest.raises(ArchiveError, match="damaged"):
        texts(save(chain + tarred(("1.xml", A))))


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, b"9"])
@pytest.mark.parametrize("size", [-512, -1024, -(2**40)])
def test_headers_that_lead_back_end(save: Save, kind: bytes, size: int) -> None:
    header = bytearray(tarfile.TarInfo("1.xml").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = kind
    header[124:136] = b"\xff" + (size % 256**11).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with pytest.raises(ArchiveError):
        texts(save(tarred(("0.xml", A))[:1536] + bytes(header) + bytes(1024)))


def test_a_zip_that_lies_about_sizes_gives_no_more_than_it_says(save: Save) -> None:
    data = bytearray(zipped(("1.xml", bytes(2_000_000))))
    for place in (data.index(b"PK\x03\x04") + 22, data.rindex(b"PK\x01\x02") + 24):
        data[place : place + 4] = struct.pack("<I", 50)
    with pytest.raises(ArchiveError, match="damaged"):
        texts(save(bytes(data)))


# ZIP archives whose directory and headers do not say the same: refused, whichever of the two is wrong.

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


@pytest.mark.parametrize("kind", ["plain", "stored", "stream", "zip64"])
def test_archives_as_programs_write_them_are_read(kind: str, save: Save) -> None:
    assert texts(save(archive(kind))) == {"!/a.xml": TEXT, "!/\xfc.xml": TEXT}


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
def test_no_flipped_bit_passes(kind: str, mark: bytes, start: int, size: int, save: Save) -> None:
    for data in flips(archive(kind, "a.xml", "b.xml", "c.xml"), mark, start, size):
        with pytest.raises(ArchiveError):
            texts(save(data))


def without_entry(data: bytes, number: int) -> bytes:
    """An archive whose directory leaves a member out, and says so."""
    entries = data[data.index(DIRECTORY) : data.index(END)].split(DIRECTORY)[1:]
    left = b"".join(DIRECTORY + entry for at, entry in enumerate(entries) if at != number)
    end = bytearray(data[data.index(END) :])
    struct.pack_into("<2HI", end, 8, len(entries) - 1, len(entries) - 1, len(left))
    return data[: data.index(DIRECTORY)] + left + bytes(end)


@pytest.mark.parametrize("number", range(4))
def test_members_that_the_directory_leaves_out_are_told(number: int, save: Save) -> None:
    with pytest.raises(ArchiveError, match="bytes before"):
        texts(save(without_entry(archive(), number)))


@pytest.mark.parametrize("more", [b"x", archive(), END + bytes(18)], ids=["a byte", "an archive", "an end"])
def test_what_follows_the_end_is_told(more: bytes, save: Save) -> None:
    with pytest.raises(ArchiveError):
        texts(save(archive() + more))


def test_members_that_share_bytes_are_told(save: Save) -> None:
    data = archive("plain", "a.xml", "b.xml")
    first = data.index(DIRECTORY)
    second = data.index(DIRECTORY, first + 1)
    shared = bytearray(data)
    struct.pack_into("<I", shared, second + 42, 0)
    with pytest.raises(ArchiveError, match=r"inside another one|differ"):
        texts(save(bytes(shared)))


def test_a_disk_without_room_is_not_taken_for_a_damaged_archive(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any, /) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: Full())
    with pytest.raises(SpoolError, match="no room to unpack it: No space left") as caught:
        texts(save(tarred(("1.xml", A), mode="w:gz")))
    assert not isinstance(caught.value, ArchiveError)


@pytest.mark.parametrize("pack", [zipped, tarred, lambda member: tarred(member, mode="w:gz")])
def test_memory_does_not_grow_with_the_file(save: Save, pack: Callable[..., bytes]) -> None:
    label = "<coi:userLabel>" + "x" * 300 + "</coi:userLabel>"
    spaces = f'xmlns:mer="urn:x" xmlns:me="{MTOP}nrf/xsd/me/v1" xmlns:coi="{MTOP}fmw/xsd/coi/v1"'
    document = f"<mer:x {spaces}>" + f"<me:me>{label}</me:me>" * 5_000 + "</mer:x>"
    path = save(pack(("1.xml", document.encode())))
    uri = path.as_uri()
    reply = BulkReply(response=None, envelope=None, file_location_uri=uri, compression="", packing="")
    next(reply.objects(ManagedElementType, allowed=path.parent))  # tables of classes are made once
    tracemalloc.start()
    try:
        count = sum(1 for _ in reply.objects(ManagedElementType, allowed=path.parent))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 5_000
    assert peak < len(document) / 3


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="No such file"):
        Archive(tmp_path / "none")


SEEDS = [
    zipped(("1.xml", A), ("2.xml.gz", gzip.compress(B))),
    tarred(("1.xml", A), ("s/2.xml", B)),
    tarred(("1.xml", A), format=tarfile.GNU_FORMAT),
    tarred(("1.xml", A), mode="w:gz"),
    gzip.compress(A),
    zstd(tarred(("1.xml", A), ("2.xml.zst", zstd(B)))),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4),
    st.integers(0, 10_000),
)
def test_any_bytes_give_documents_or_a_typed_error(
    save: Save, seed: bytes, changes: list[tuple[int, bytes]], cut: int
) -> None:
    data = bytearray(seed)
    for place, new in changes:
        at = place % len(data)
        data[at : at + len(new)] = new
    try:
        texts(save(bytes(data[: len(data) - cut % 50])))
    except ArchiveError:
        pass


KINDS = [(compression, packing) for compression in Compression for packing in Packing]


def write(path: Path, documents: Iterable[bytes], *how: Any) -> None:
    with BulkFile(path, *how) as file:
        for document in documents:
            file.add(document)


@pytest.mark.parametrize(("compression", "packing"), KINDS)
def test_a_written_file_is_read_again(tmp_path: Path, compression: Compression, packing: Packing) -> None:
    path = tmp_path / "out"
    documents = [A] if packing is Packing.NO_PACKING else [A, B]
    with BulkFile(path, compression, packing) as file:
        for document in documents:
            file.add(document)
            assert not path.exists()
    assert list(texts(path).values()) == documents
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    data = path.read_bytes()
    assert data.startswith(b"PK") == (packing is Packing.ZIP)
    assert data.startswith(b"\x1f\x8b") == (compression is Compression.GZIP and packing is not Packing.ZIP)


@pytest.mark.parametrize(("compression", "packing"), KINDS)
def test_a_file_that_fails_leaves_what_was_there(tmp_path: Path, compression: Compression, packing: Packing) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"earlier")

    def documents() -> Iterator[bytes]:
        yield A
        raise KeyError

    with pytest.raises(KeyError):
        write(path, documents(), compression, packing)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("out", b"earlier")]


def test_without_packing_there_is_one_document(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one document"):
        write(tmp_path / "out", [A, B])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="No such file"), BulkFile(tmp_path / "no" / "out"):
        pass
