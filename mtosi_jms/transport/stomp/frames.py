"""STOMP 1.2 frames: to bytes, and the headers of those that came in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", ":": "\\c"}
_MUST_ESCAPE: Final = re.compile(r"[\\\n\r:]")
_UNESCAPES: Final = {escape: character for character, escape in _ESCAPES.items()}
_ESCAPED: Final = re.compile(r"\\.")
HEART_BEAT: Final = b"\n"


def escaped(text: str) -> str:
    """A header's name or value as it stands in a frame."""
    return _MUST_ESCAPE.sub(lambda found: _ESCAPES[found[0]], text) if _MUST_ESCAPE.search(text) else text


def encode(command: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A frame.

    Args:
        command: SEND, for one.
        headers: in the order in which they go out.
        body: of a frame that has one.
    """
    plain = command == "CONNECT"  # its headers are not escaped, for the sake of STOMP 1.0
    lines = [command]
    lines += [f"{name}:{value}" if plain else f"{escaped(name)}:{escaped(value)}" for name, value in headers.items()]
    return b"".join(("\n".join(lines).encode("utf-8", "surrogatepass"), b"\n\n", body, b"\0"))


def headers_of(frame: Any, raw: bytes) -> dict[str, str]:
    """The headers of a frame that stomp.py has read; read again where it damaged them, as it does with CESU-8.

    Args:
        frame: of stomp.py.
        raw: its bytes.
    """
    headers: dict[str, str] = frame.headers
    if not any("\ufffd" in value for value in headers.values()):
        return headers
    read: dict[str, str] = {}
    for line in raw.lstrip(b"\r\n").split(b"\n\n", 1)[0].split(b"\n")[1:]:
        name, _, value = line.rstrip(b"\r").partition(b":")
        read.setdefault(_text(name), _text(value))
    return read


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeError:
        text = data.decode("utf-8", "replace")
    return _ESCAPED.sub(lambda found: _UNESCAPES.get(found[0], found[0]), text)
