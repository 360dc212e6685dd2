"""Encodes STOMP 1.2 frames, and parses them from a stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import TransportError

Frame: TypeAlias = tuple[str, Mapping[str, str], bytes]
"""A frame to send: command, headers, body."""
Received: TypeAlias = tuple[str, dict[str, str], bytes]
"""A received frame: command, headers, body."""

HEART_BEAT: Final = b"\n"
_UNESCAPES: Final = {"\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\c": ":"}
_COLON: Final = "\\c"
_ODD: Final = re.compile(r"[\\\n\r:]")
_ESCAPED: Final = re.compile(r"\\.")
_AS_THEY_ARE: Final = frozenset({"CONNECT", "CONNECTED"})
"""Frames whose headers are not escaped, for compatibility with STOMP 1.0."""
_LONGEST_HEAD: Final = BOUNDS.stomp_head_bytes
"""Maximum bytes of command and headers. More means that the peer does not send STOMP."""


def escaped(text: str) -> str:
    """Returns a header's name or value, escaped."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace(":", "\\c")


def encode(command: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Returns the bytes of a frame; headers keep their order."""
    names, values = "".join(headers), "\n".join(headers.values())
    if command in _AS_THEY_ARE:
        lines = [f"{name}:{value}" for name, value in headers.items()]
    elif _ODD.search(names) or "\\" in values or "\r" in values or values.count("\n") >= max(len(headers), 1):
        lines = [f"{escaped(name)}:{escaped(value)}" for name, value in headers.items()]
    else:  # times and ids have colons; most frames have nothing else to escape
        lines = [f"{name}:{value.replace(':', _COLON)}" for name, value in headers.items()]
    head = "\n".join([command, *lines, "", ""])
    return b"%b%b\0" % (head.encode("utf-8", "surrogatepass"), body)


class FrameReader:
    """Splits a stream, which may come in any pieces, into frames."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._seen = 0
        self._head: tuple[str, dict[str, str]] | None = None
        self._length: int | None = None

    @property
    def is_inside(self) -> bool:
        return bool(self._data)

    def feed(self, piece: bytes | memoryview) -> list[Received]:
        """Returns the frames that end in the next piece of the stream. Raises TransportError: it is not STOMP."""
        self._data += piece
        found: list[Received] = []
        start = 0
        while True:
            if self._head is None:
                start = self._begin(start)
                if self._head is None:
                    break
            end = self._end(start)
            if end < 0:
                break
            command, headers = self._head
            found.append((command, headers, bytes(memoryview(self._data)[start:end])))
            start = self._seen = end + 1
            self._head = None
        if start:
            del self._data[:start]
            self._seen = max(self._seen - start, 0)
        return found

    def _begin(self, start: int) -> int:
        """Reads command and headers if they are complete; returns where the body, or the rest, begins."""
        data = self._data
        while start < len(data) and data[start] in b"\r\n":  # heart-beats, and ends of lines after a frame
            start += 1
        first = max(self._seen - 2, start)
        end = data.find(b"\n\n", first)
        short = data.find(b"\n\r\n", first, end if end >= 0 else len(data))
        if short >= 0:
            end = short
        if end < 0:
            self._seen = len(data)
            if self._seen - start > _LONGEST_HEAD:
                raise TransportError("more headers than a STOMP frame can have")
            return start
        command, headers = self._head = _head(bytes(data[start:end]))
        length = headers.get("content-length")
        self._length = None
        if length is not None:
            length = length.strip()
            if not (length.isascii() and length.isdigit()):
                raise TransportError(f"a {command} frame whose content-length is not a number")
            self._length = int(length)
        self._seen = end + (3 if short >= 0 else 2)
        return self._seen

    def _end(self, start: int) -> int:
        """Returns where the body ends; -1: not yet."""
        data = self._data
        if self._length is None:
            end = data.find(b"\0", self._seen)
            self._seen = len(data)
            return end
        end = start + self._length
        if end >= len(data):
            return -1
        if data[end]:
            raise TransportError("a frame that is longer than its content-length")
        return end


def _head(data: bytes) -> tuple[str, dict[str, str]]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\n".join(map(_from_java, data.split(b"\n")))
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    command, *lines = text.split("\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name not in headers:  # the first one counts
            headers[name] = value
    if "\\" in text and command not in _AS_THEY_ARE:
        headers = _unescaped(headers)
    return command, headers


def _unescaped(headers: dict[str, str]) -> dict[str, str]:
    if "\\" in "".join(headers):
        return {_plain(name): _plain(value) for name, value in headers.items()}
    for name, value in headers.items():
        if "\\" in value:
            headers[name] = _plain(value)
    return headers


def _plain(text: str) -> str:
    if "\\\\" in text:
        return _ESCAPED.sub(lambda found: _UNESCAPES.get(found[0], found[0]), text)
    return text.replace("\\c", ":").replace("\\n", "\n").replace("\\r", "\r")


def _from_java(data: bytes) -> str:
    """Decodes a line of CESU-8, Java's form for characters beyond U+FFFF, or of UTF-8; other bytes are replaced."""
    try:
        return data.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeError:
        return data.decode("utf-8", "replace")
