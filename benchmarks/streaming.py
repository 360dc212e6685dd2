"""Objects from a document of hundreds of megabytes, which is made while it is read. Each side has a process of its own.

As a script it is that process: `streaming.py WAY BYTES` prints the number of elements and its peak memory.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from lxml import etree
from measure import Comparison, Side, compare
from network import managed_element, read_leaves

from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import HARDENED, encode, iter_decode, iter_placed

_ITEM = "invdata:meInv"
_DIFFERENT = 500


def streaming(*, quick: bool) -> Comparison:
    """One getInventory response in the nested layout: managed elements below their domain; every leaf is read."""
    size = 5_000_000 if quick else 300_000_000
    peaks: dict[str, float] = {}

    def side(way: str) -> Callable[[], int]:
        def run() -> int:
            command = [sys.executable, __file__, way, str(size)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
            found = json.loads(done.stdout)
            peaks[way] = max(peaks.get(way, 0), found["peak_megabytes"])
            return int(found["elements"])

        return run

    found = compare(
        "iter_decode",
        f"iter_decode: objects out of one document of {size / 1e6:,.0f} MB, every leaf read",
        "managed elements",
        [
            Side("iter_decode", "ours", side("iter_decode")),
            Side("iter_placed", "ours", side("iter_placed")),
            Side("lxml iterparse alone", "limit", side("iterparse")),
        ],
        rounds=1,
        warm_up=False,
        megabytes=size / 1e6,
        notes=["the limit reads no leaf and makes no object; a process each, its start included"],
    )
    for line, way in zip(found.lines, ("iter_decode", "iter_placed", "iterparse"), strict=True):
        line.peak_megabytes = peaks[way]
    return found


class Document:
    """A response of at least `size` bytes, made while it is read by repeating some elements."""

    def __init__(self, size: int) -> None:
        items = [
            invdata.ManagedElementInventoryType(me_nm=f"NE-{number}", me_attrs=managed_element(number))
            for number in range(1, _DIFFERENT + 1)
        ]
        md = invdata.ManagementDomainInventoryType(
            md_nm="EMS1", me_list=invdata.ManagementDomainInventoryTypeMeList(me_inv=items)
        )
        data = invdata.InventoryDataType(md_list=invdata.InventoryDataTypeMdList(md=[md]))
        whole = encode(GetInventoryResponse(inventory_data=data))
        start = whole.index(f"<{_ITEM}>".encode())
        end = whole.rindex(f"</{_ITEM}>".encode()) + len(_ITEM) + 3
        self._pieces = self._made(whole[:start], whole[start:end], whole[end:], size)
        self._buffer = b""

    def _made(self, head: bytes, items: bytes, tail: bytes, size: int) -> Iterator[bytes]:
        yield head
        for _ in range(-(-size // len(items))):
            for start in range(0, len(items), 1 << 16):
                yield items[start : start + (1 << 16)]
        yield tail

    def read(self, count: int) -> bytes:
        """Return the next bytes, at most `count`."""
        if not self._buffer:
            self._buffer = next(self._pieces, b"")
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data


def _by_iter_decode(source: IO[bytes]) -> Iterator[Any]:
    for element in iter_decode(source, ManagedElementType):
        yield read_leaves(element)


def _by_iter_placed(source: IO[bytes]) -> Iterator[Any]:
    for found in iter_placed(source, ManagedElementType):
        node = found.around(invdata.ManagedElementInventoryType)
        domain = found.around(invdata.ManagementDomainInventoryType)
        if node is None or domain is None:
            raise RuntimeError(f"nothing is known around {found.path}")
        yield domain.md_nm, node.me_nm, read_leaves(found.value)


def _by_iterparse(source: IO[bytes]) -> Iterator[Any]:
    tag = f"{{{invdata.ManagedElementInventoryType.__xml__.module.namespace}}}meInv"
    for _, element in etree.iterparse(source, tag=tag, **HARDENED):
        yield element
        element.clear(keep_tail=True)
        while element.getprevious() is not None:
            del element.getparent()[0]


_WAYS = {"iter_decode": _by_iter_decode, "iter_placed": _by_iter_placed, "iterparse": _by_iterparse}


def main() -> None:
    """Read a document in one way."""
    count = sum(1 for _ in _WAYS[sys.argv[1]](cast("IO[bytes]", Document(int(sys.argv[2])))))
    status = Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii")) if status.exists() else None
    print(json.dumps({"elements": count, "peak_megabytes": int(peak.group(1)) * 1024 / 1e6 if peak else 0.0}))


if __name__ == "__main__":
    main()
