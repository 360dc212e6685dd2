"""Streams a getInventory response that is made while it is read, and prints what was found and the peak of memory.

Usage: large_process.py iter_decode|iter_placed plain|gzip|odd BYTES, `odd` with elements that no schema has. Prints a
JSON object: `objects` that came, `written` those that the response has, `checksum` and `expected` of their names,
`bytes` of the response, `peak_mb` of this process's resident set, `seconds`.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from mtosi_jms import xmlbind
from mtosi_jms.inventory import place_of
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType

SPACES = " ".join(
    f'xmlns:{prefix}="http://www.tmforum.org/mtop/{path}/v1"'
    for prefix, path in {
        "rir": "mri/xsd/rir",
        "inv": "nrf/xsd/invdata",
        "ctp": "nrf/xsd/ctp",
        "me": "nrf/xsd/me",
        "coi": "fmw/xsd/coi",
        "cri": "nrb/xsd/cri",
    }.items()
)
HEAD = (
    f"<rir:getInventoryResponse {SPACES}><rir:inventoryData><inv:mdList><inv:md><inv:mdNm>EMS1</inv:mdNm><inv:meList>\n"
)
TAIL = "</inv:meList></inv:md></inv:mdList></rir:inventoryData></rir:getInventoryResponse>\n"
ELEMENT = (
    "<inv:meInv><inv:meNm>NE-{}</inv:meNm><inv:meAttrs><coi:userLabel>element {}</coi:userLabel>"
    "<me:location>room 7</me:location></inv:meAttrs><inv:ptpList>\n"
)
PORT = "<inv:ptpInv><inv:ptpNm>{}</inv:ptpNm><inv:ctpList>\n"
CTP = (
    "<inv:ctpInv><inv:ctpNm>{number}</inv:ctpNm><inv:ctpAttrs><coi:userLabel>channel {number}</coi:userLabel>"
    "<coi:discoveredName>ne.port.{number}</coi:discoveredName><coi:namingOs>EMS1</coi:namingOs>"
    "<coi:owner>Network operations, an owner with a name of some length</coi:owner>"
    "<cri:source>NETWORK_ME</cri:source><cri:networkAccessDomain>NAD-{domain}</cri:networkAccessDomain>"
    "<cri:resourceState>WORKING</cri:resourceState></inv:ctpAttrs></inv:ctpInv>\n"
)
PORTS, CHANNELS = 4, 2_500
"""Each element has ports, and the first of each element far more channels than the others: lists are long and short."""


class Pieces(io.RawIOBase):
    """A stream of pieces that are made as it is read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._buffer:
            self._buffer = next(filter(None, self._pieces), b"")
        count = min(len(buffer), len(self._buffer))
        buffer[:count] = self._buffer[:count]
        self._buffer = self._buffer[count:]
        return count


class Response(Pieces):
    """The response, nowhere whole.

    Attributes:
        count: CTPs written.
        checksum: of their names.
        size: bytes given out.
    """

    def __init__(self, size: int, *, placed: bool, odd: bool) -> None:
        self._ctp = CTP.replace("<inv:ctpAttrs>", "<inv:ctpAttrs><inv:new/>") if odd else CTP
        self.count = self.checksum = self.size = 0
        self._limit = size
        self._placed = placed
        super().__init__(self._made())

    def _made(self) -> Iterator[bytes]:
        yield self._piece(HEAD)
        element = 0
        while self.size < self._limit:
            yield self._piece(ELEMENT.format(element, element))
            for port in range(PORTS):
                yield self._piece(PORT.format(port))
                channels = CHANNELS if port == 0 else 3
                for start in range(0, channels, 100):
                    yield self._piece("".join(self._ctps(element, port, start, min(start + 100, channels))))
                yield self._piece("</inv:ctpList></inv:ptpInv>")
            yield self._piece("</inv:ptpList></inv:meInv>\n")
            element += 1
        yield self._piece(TAIL)

    def _piece(self, text: str) -> bytes:
        data = text.encode()
        self.size += len(data)
        return data

    def _ctps(self, element: int, port: int, start: int, end: int) -> Iterator[str]:
        for number in range(start, end):
            name = f"MD=EMS1/ME=NE-{element}/PTP={port}/CTP={number}" if self._placed else f"channel {number}"
            self.checksum = zlib.crc32(name.encode(), self.checksum)
            self.count += 1
            yield self._ctp.format(number=number, domain=number % 64)


def packed(stream: IO[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=31)
    while data := stream.read(1 << 16):
        yield packer.compress(data)
    yield packer.flush()


def main() -> None:
    """Read it all."""
    way, form, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    response = Response(size, placed=way == "iter_placed", odd=form == "odd")
    source = cast("IO[bytes]", io.BufferedReader(response, 1 << 16))
    if form == "gzip":
        source = cast("IO[bytes]", gzip.GzipFile(fileobj=io.BufferedReader(Pieces(packed(source)), 1 << 16)))
    started = time.perf_counter()
    count = checksum = 0
    for name in _names(way, source, strict=form != "odd"):
        count += 1
        checksum = zlib.crc32(name.encode(), checksum)
    seconds = time.perf_counter() - started
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    found = {
        "objects": count,
        "written": response.count,
        "checksum": checksum,
        "expected": response.checksum,
        "bytes": response.size,
        "peak_mb": int(peak.group(1)) * 1024 / 1e6 if peak else None,
        "seconds": seconds,
    }
    print(json.dumps(found))


class Unkept(list[xmlbind.XmlWarning]):
    """Warnings that nobody keeps."""

    def append(self, warning: xmlbind.XmlWarning) -> None:
        assert warning.rule == "unknown-element"


def _names(way: str, source: IO[bytes], *, strict: bool) -> Iterator[str]:
    if way == "iter_placed":
        for found in xmlbind.iter_placed(source, ConnectionTerminationPointType, strict=strict, warnings=Unkept()):
            yield str(place_of(found).name)
    else:
        for value in xmlbind.iter_decode(source, ConnectionTerminationPointType, strict=strict, warnings=Unkept()):
            yield str(value.user_label)


if __name__ == "__main__":
    main()
