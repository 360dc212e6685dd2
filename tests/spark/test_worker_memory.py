"""A worker's memory: under 300 MB for any number of files, and for one file of any size.

Here thousands of small files, files of the size that is still held whole, and one of tens of megabytes; in
`make endurance` a hundred thousand files, and one of two gigabytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("resource", reason="the peak of memory is asked of the system")

MEGABYTE = 1_000_000
MOST_MB = 300
NESTED_AT_ONCE = 200


def read(root: Path, landing: Path, object_type: str = "ME") -> dict[str, Any]:
    """What a process that reads a landing tells of itself."""
    script = Path(__file__).with_name("worker_memory_process.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), str(landing), object_type],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def element(envelopes: Any, name: str) -> str:
    """A managed element of about a kilobyte."""
    inner = (
        "<coi:userLabel>Delft, room 7, row 12</coi:userLabel><coi:discoveredName>ne.ems1.example</coi:discoveredName>"
        "<coi:namingOs>EMS1</coi:namingOs><coi:owner>Network operations</coi:owner>"
        "<cri:source>NETWORK_ME</cri:source><cri:networkAccessDomain>NAD-7</cri:networkAccessDomain>"
        "<cri:resourceState>WORKING</cri:resourceState><me:location>Delft, room 7, row 12</me:location>"
        "<me:manufacturer>Northwind Optical</me:manufacturer><me:manufactureDate>2019-05-01</me:manufactureDate>"
        "<me:productName>NWO-8800</me:productName><me:softwareVersion>9.2.4</me:softwareVersion>"
        "<me:isInSyncState>true</me:isInSyncState>"
        "<me:communicationState>CS_AVAILABLE</me:communicationState>"
    )
    return str(envelopes.me(name, inner))


def land(envelopes: Any, landing: Path, files: int, elements: int) -> int:
    """Write a complete reply of so many files with so many elements each; the checksum of the names in order."""
    mark = "@ELEMENT@"
    text = element(envelopes, mark)
    number = "4242424242"
    parts = str(envelopes.batch("many", int(number), True, text)).replace("true</hdr:", "@END@</hdr:", 1)
    before, after = parts.split(text)
    names = []
    for file in range(1, files + 1):
        mine = [f"{file:06d}-{index:05d}" for index in range(elements)]
        names.extend(f"MD=M/ME={name}" for name in mine)
        head = before.replace(number, str(file)).replace("@END@", "true" if file == files else "false")
        folder = landing / f"{file // 1000:03d}"
        folder.mkdir(exist_ok=True)
        content = head + "".join(text.replace(mark, name) for name in mine) + after
        (folder / f"{file:06d}.xml").write_text(content, encoding="utf-8")
    return zlib.crc32("".join(f"{name}\n" for name in names).encode())


def land_large(envelopes: Any, path: Path, size: int, *, nested: bool) -> tuple[int, str]:
    """Write one envelope of at least so many bytes; how many elements it has, and the name of the last one."""
    mark = "@ELEMENT@"
    one = element(envelopes, mark)
    if nested:
        attributes = one.partition("</coi:name>")[2].rpartition("</me:me>")[0]
        item = f"<inv:meInv><inv:meNm>{mark}</inv:meNm><inv:meAttrs>{attributes}</inv:meAttrs></inv:meInv>\n"
        domain = f"<inv:mdList><inv:md><inv:mdNm>M</inv:mdNm><inv:meList>{one}</inv:meList></inv:md></inv:mdList>"
        whole = str(envelopes.inventory(domain))
    else:
        item, whole = one, str(envelopes.batch("large", 1, True, one))
    before, after = whole.split(one)
    count = written = 0
    with path.open("w", encoding="utf-8") as file:
        written += file.write(before)
        while written < size:
            written += file.write(
                "".join(item.replace(mark, f"{count + index:08d}") for index in range(NESTED_AT_ONCE))
            )
            count += NESTED_AT_ONCE
        file.write(after)
    return count, f"MD=M/ME={count - 1:08d}"


def test_files_however_many(root: Path, envelopes: Any, tmp_path: Path) -> None:
    """Many times the files take no more memory, as soon as there are enough for a whole batch of rows."""
    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir()
    many.mkdir()
    land(envelopes, few, 400, 25)
    expected = land(envelopes, many, 1000, 25)
    found = read(root, many)
    assert (found["rows"], found["rejects"], found["checksum"]) == (25_000, 0, expected)
    assert found["largest"] == 10_000
    assert found["peak_mb"] < MOST_MB
    assert found["peak_mb"] - read(root, few)["peak_mb"] < 30


def test_files_of_the_size_that_is_held_whole(root: Path, envelopes: Any, tmp_path: Path) -> None:
    """Read from its text, and from its tree where a comment makes the document less than plain."""
    size = 8 * 1024 * 1024 - 500_000
    count, last = land_large(envelopes, tmp_path / "1.xml", size, nested=False)
    other, _ = land_large(envelopes, tmp_path / "2.xml", size, nested=True)
    text = (tmp_path / "1.xml").read_text(encoding="utf-8").replace(">1</hdr:batch", ">2</hdr:batch")
    (tmp_path / "3.xml").write_text(text.replace("</soap:Body>", "<!-- --></soap:Body>"), encoding="utf-8")
    found = read(root, tmp_path)
    assert (found["rows"], found["rejects"]) == (2 * count + other, 0)
    assert found["last"] == [last, count]
    assert found["peak_mb"] < MOST_MB


@pytest.mark.parametrize(
    "nested",
    [pytest.param(False, id="flat"), pytest.param(True, id="nested", marks=pytest.mark.endurance)],
)
def test_one_large_file(root: Path, envelopes: Any, tmp_path: Path, *, nested: bool) -> None:
    """Streamed: what is in the tree does not grow with the file."""
    land_large(envelopes, tmp_path / "less.xml", 9 * MEGABYTE, nested=nested)
    less = read(root, tmp_path / "less.xml")["peak_mb"]
    count, last = land_large(envelopes, tmp_path / "1.xml", 20 * MEGABYTE, nested=nested)
    found = read(root, tmp_path / "1.xml")
    assert (found["rows"], found["rejects"]) == (count, 0)
    assert found["first"] == ["MD=M/ME=00000000", 1]
    assert found["last"] == [last, count]
    assert found["peak_mb"] < MOST_MB
    assert found["peak_mb"] - less < 30, "eleven megabytes of a tree take more"


@pytest.mark.endurance
def test_a_hundred_thousand_files(
    root: Path, envelopes: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = land(envelopes, tmp_path, 100_000, 5)
    found = read(root, tmp_path)
    _show(capsys, "100,000 files", found)
    assert (found["rows"], found["rejects"], found["checksum"]) == (500_000, 0, expected)
    assert found["peak_mb"] < MOST_MB


@pytest.mark.endurance
@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
def test_two_gigabytes(
    root: Path, envelopes: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, nested: bool
) -> None:
    count, last = land_large(envelopes, tmp_path / "1.xml", 2000 * MEGABYTE, nested=nested)
    found = read(root, tmp_path)
    (tmp_path / "1.xml").unlink()
    _show(capsys, f"2 GB, {'nested' if nested else 'flat'}", found)
    assert (found["rows"], found["rejects"]) == (count, 0)
    assert found["last"] == [last, count]
    assert found["peak_mb"] < MOST_MB


def _show(capsys: pytest.CaptureFixture[str], what: str, found: dict[str, Any]) -> None:
    with capsys.disabled():
        rate = found["rows"] / found["seconds"]
        print(f"\n{what}: {found['rows']:,} rows, {rate:,.0f}/s, {found['peak_mb']:.0f} MB")
