"""Compressed documents: what is read of them, and what ends in a typed error."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bulk import Archive
from mtosi_jms.cli import main
from mtosi_jms.compression import DAMAGED, ZSTD, decompress, is_document_name
from mtosi_jms.errors import ArchiveError, MalformedXmlError, MissingExtraError
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.validation import SchemaSet, Validator
from mtosi_jms.xmlbind import iter_decode, read_document, read_xml

zstd: Any = import_module(ZSTD)

Pack = Callable[[bytes], bytes]
PACKS: dict[str, Pack] = {"gzip": gzip.compress, "Zstandard": zstd.compress}
packs = pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)

A, B = b"<a>" + bytes(range(32, 48)) * 500, b"</a>"
SPACES = (
    'xmlns:m="urn:m" xmlns:me="http://www.tmforum.org/mtop/nrf/xsd/me/v1"'
    ' xmlns:coi="http://www.tmforum.org/mtop/fmw/xsd/coi/v1"'
)
RANDOM = random.Random(1)
ELEMENTS = (
    f"<m:list {SPACES}>"
    + "".join(
        f"\n<m:row><me:me><coi:userLabel>{RANDOM.randbytes(300).hex()}</coi:userLabel></me:me></m:row>"
        for _ in range(1_000)
    )
    + "</m:list>"
).encode()
MEBIBYTE = 1 << 20


def skippable(content: bytes = b"about the file") -> bytes:
    """A frame of Zstandard that has no data."""
    return b"\x5a\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content


def frame(data: bytes, window_log: int) -> bytes:
    """A frame of Zstandard, not compressed, that demands a window of 2 to the power of `window_log` octets."""
    return b"\x28\xb5\x2f\xfd\x00" + bytes([window_log - 10 << 3]) + (len(data) << 3 | 1).to_bytes(3, "little") + data


def checked(data: bytes) -> bytes:
    """A frame of Zstandard with a checksum."""
    packed: bytes = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
    return packed


@pytest.fixture
def save(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "document"
        path.write_bytes(data)
        return path

    return write


WHOLE = {
    "not compressed": (A + B, A + B),
    "nothing": (b"", b""),
    "one octet": (b"<", b"<"),
    "gzip": (gzip.compress(A + B), A + B),
    "gzip of nothing": (gzip.compress(b""), b""),
    "gzip in members": (gzip.compress(A) + gzip.compress(b"") + gzip.compress(B), A + B),
    "Zstandard": (zstd.compress(A + B), A + B),
    "Zstandard of nothing": (zstd.compress(b""), b""),
    "Zstandard in frames": (zstd.compress(A) + zstd.compress(b"") + zstd.compress(B), A + B),
    "Zstandard with a checksum": (checked(A + B), A + B),
    "Zstandard with the largest window": (frame(A + B, 27), A + B),
    "skippable frames": (skippable() + zstd.compress(A) + skippable(b"") + zstd.compress(B) + skippable(), A + B),
    "skippable frames alone": (skippable() + skippable(), b""),
}


@pytest.mark.parametrize("case", WHOLE)
def test_the_first_octets_decide(case: str, save: Any) -> None:
    data, expected = WHOLE[case]
    path = save(data)
    assert decompress(io.BytesIO(data)).read() == expected
    assert read_document(path) == expected
    with Archive(path) as archive:
        assert [document.stream.read() for document in archive.documents()] == [expected]


DAMAGES = {
    "gzip, cut in the header": gzip.compress(A)[:5],
    "gzip, cut": gzip.compress(A)[:40],
    "gzip, cut in the checksum": gzip.compress(A)[:-5],
    "gzip, wrong checksum": gzip.compress(A)[:-8] + bytes(8),
    "gzip, then something else": gzip.compress(A) + b"<a/>",
    "gzip, then Zstandard": gzip.compress(A) + zstd.compress(B),
    "gzip by its first octets alone": b"\x1f\x8b and no more",
    "Zstandard, cut in the header": zstd.compress(A)[:4],
    "Zstandard, cut": zstd.compress(A)[:20],
    "Zstandard, cut in the checksum": checked(A)[:-1],
    "Zstandard, wrong checksum": checked(A)[:-4] + bytes(4),
    "Zstandard, then something else": zstd.compress(A) + b"<a/>",
    "Zstandard, then gzip": zstd.compress(A) + gzip.compress(B),
    "Zstandard, cut in the next frame": zstd.compress(A) + zstd.compress(B)[:2],
    "Zstandard, window too large": frame(A, 28),
    "Zstandard, far too large": frame(A, 41),
    "Zstandard, no such block": b"\x28\xb5\x2f\xfd\x00\x00\x07\x00\x00",
    "Zstandard by its first octets alone": b"\x28\xb5\x2f\xfd and no more",
    "skippable, cut": skippable()[:-1],
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_data_is_a_typed_error(case: str, save: Any) -> None:
    path = save(DAMAGES[case])
    for read in (read_document, read_xml, lambda path: list(iter_decode(path, ManagedElementType))):
        with pytest.raises(MalformedXmlError, match=DAMAGED) as caught:
            read(path)
        assert caught.value.source == str(path)
    with pytest.raises(ArchiveError, match="damaged archive"), Archive(path) as archive:
        next(archive.documents()).stream.read()


@packs
def test_objects_before_the_damage_are_given_and_its_line_is_told(pack: Pack, save: Any) -> None:
    packed = pack(ELEMENTS)
    path = save(packed[: len(packed) * 3 // 4])
    found = []
    with pytest.raises(MalformedXmlError, match=DAMAGED) as caught:
        found.extend(iter_decode(path, ManagedElementType))  # extends it one by one
    assert 500 < len(found) < 1_000
    assert caught.value.line in range(len(found) - 10, len(found) + 10)


@packs
def test_an_open_file_that_decompresses_may_fail_too(pack: Pack) -> None:
    with pytest.raises(MalformedXmlError, match=DAMAGED):
        list(iter_decode(decompress(io.BytesIO(pack(ELEMENTS)[:-1])), ManagedElementType))


@packs
@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="the system has no names for open files")
def test_a_pipe_can_be_read(pack: Pack) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb"), os.fdopen(write, "wb") as pipe, ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: (pipe.write(pack(ELEMENTS)), pipe.close()))
        assert read_document(f"/dev/fd/{read}") == ELEMENTS


BOMB = """
import re, sys
from pathlib import Path
from mtosi_jms.errors import ForbiddenXmlError
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import XmlLimits, iter_decode, parse_xml, read_document

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1000

before, limits = peak(), XmlLimits(max_bytes=10_000_000)
for path in sys.argv[1:]:
    for read in (
        lambda: parse_xml(read_document(path, limits=limits), limits=limits),
        lambda: list(iter_decode(path, ManagedElementType)),
    ):
        try:
            read()
        except ForbiddenXmlError as error:
            print(error.message)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_a_gigabyte_of_blanks_meets_the_limits(root: Path, tmp_path: Path) -> None:
    """In a text, before the first element, in a comment and in a tag; the frames demand the largest window."""
    parameter = zstd.CompressionParameter
    paths = []
    for number, beginning in enumerate((b"<a>", b"", b"<!--", b"<a b='")):
        packer = zstd.ZstdCompressor(options={parameter.compression_level: 1, parameter.window_log: 27})
        path = tmp_path / f"{number}.xml.zst"
        with path.open("wb") as file:
            file.write(packer.compress(beginning))
            file.writelines(packer.compress(b" " * MEBIBYTE) for _ in range(1024))
            file.write(packer.flush())
        assert path.stat().st_size < MEBIBYTE
        paths.append(str(path))
    code = [sys.executable, "-W", "error", "-c", BOMB, *paths]
    done = subprocess.run(
        code, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}, timeout=300
    )
    assert done.returncode == 0, done.stderr
    *errors, megabytes = done.stdout.splitlines()
    assert errors[0::2] == ["larger than 10000000 bytes"] * 4
    assert errors[1] == "Resource limit exceeded: Text node too long"
    assert errors[3::2] == [f"no element begins or ends within {32 * MEBIBYTE} bytes"] * 3
    assert float(megabytes) < 250


def test_without_the_library_the_error_says_what_to_install(
    save: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(zstd.compress(ELEMENTS))
    monkeypatch.setitem(sys.modules, ZSTD, None)
    words = rf"{re.escape(ZSTD)} is not installed: pip install 'mtosi-jms\[zstd\]'"
    for read in (read_document, Archive, lambda path: list(iter_decode(path, ManagedElementType))):
        with pytest.raises(MissingExtraError, match=words):
            read(path)
    report = Validator(SchemaSet.load()).validate_file(path)
    assert [(issue.kind, bool(re.search(words, issue.message))) for issue in report.issues] == [("unreadable", True)]
    assert main(["inspect", str(path)]) == 1
    assert re.fullmatch(rf"error: {path}: cannot be read: {words}\n", capsys.readouterr().err)
    path.write_bytes(gzip.compress(A))
    assert read_document(path) == A
    path.write_bytes(gzip.compress(A)[:-1])
    with pytest.raises(MalformedXmlError, match=DAMAGED):
        read_document(path)


def test_names_of_documents() -> None:
    assert all(map(is_document_name, ("a.xml", "b/a.XML.GZ", "a.xml.zst", "landing/.hidden/a.Xml")))
    assert not any(
        map(is_document_name, ("a.gz", "a.zst", "xml.zst", ".a.xml.zst", "b/.xml", "a.xml.zst.part", "a.xml.bz2"))
    )
