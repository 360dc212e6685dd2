"""Text on a STOMP wire: what Java makes of it, and what must not be sent.

ActiveMQ Classic keeps the bytes of a text as they come and has Java read them as CESU-8, in which a character beyond
the Basic Multilingual Plane is two surrogates of three bytes each: its four bytes of UTF-8 make `getText()` throw. What
Java sends comes out as CESU-8. So such characters go out as character references, which every reader of XML resolves,
and both forms are turned back on the way in.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from mtosi_jms.errors import ConfigError

_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_BEYOND: Final = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")
_REFERENCE: Final = re.compile(rb"&#x(10[0-9A-F]{4}|[1-9A-F][0-9A-F]{4});")
_SET_APART: Final = re.compile(rb"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_BEYOND_IN_NAME: Final = re.compile(rb"</?[^\s<>\"'=/&]*[\xf0-\xf4]")
_SPECIAL: Final = bytes([*range(9), 11, 12, *range(14, 32), *range(0xF0, 0xF5)])
_SPECIALS: Final = tuple(bytes([one]) for one in _SPECIAL)
_PIECE: Final = 16_384
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What neither XML nor a header may hold; tabulators and ends of lines are allowed."""


def is_plain(body: bytes) -> bool:
    """Whether a text goes out as it is, control characters and what is beyond the BMP being all that does not.

    A small one is looked at byte by byte. In a large one it is faster to search for each of them, and to read it in
    pieces, for which the processor's cache has room.
    """
    try:
        if len(body) <= _PIECE:
            body.decode()
            return len(body.translate(None, _SPECIAL)) == len(body)
        if not body.isascii():
            decoder = codecs.getincrementaldecoder("utf-8")()
            view = memoryview(body)
            for start in range(0, len(body), _PIECE):
                decoder.decode(view[start : start + _PIECE])
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return not any(one in body for one in _SPECIALS)


def check_body(body: bytes) -> None:
    """Raises ConfigError for what cannot travel as a TextMessage: other bytes than UTF-8, and control characters."""
    if found := _CONTROLS.search(body):
        raise ConfigError(f"the body has the control character {found[0][0]:#04x} at byte {found.start()}")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"the body is not UTF-8 at byte {error.start}; send it as a BytesMessage") from None


def to_references(body: bytes) -> bytes:
    """UTF-8 without characters beyond the BMP: as references; in a comment, where there is none, as U+FFFD.

    Raises:
        ConfigError: such a character in a name, where XML has no other form for it.
    """
    if not _BEYOND.search(body):
        return body
    return b"".join(_referenced(piece, apart) for piece, apart in _pieces(body))


def from_wire(body: bytes, *, references: bool) -> bytes:
    """What came as a text, in UTF-8.

    Args:
        body: UTF-8 or CESU-8; what is neither is left as it is, and its reader will tell.
        references: turn back what `to_references` made.
    """
    if b"\xed" in body and _SURROGATES.search(body):
        try:
            text = body.decode("utf-8", "surrogatepass")
            body = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode()
        except UnicodeError:
            return body
    if references and b"#" in body and _REFERENCE.search(body):
        body = b"".join(piece if apart else _REFERENCE.sub(_character, piece) for piece, apart in _pieces(body))
    return body


def _pieces(body: bytes) -> list[tuple[bytes, bool]]:
    """The document in pieces; True for those in which references have no meaning."""
    pieces: list[tuple[bytes, bool]] = []
    end = 0
    for found in _SET_APART.finditer(body):
        pieces += [(body[end : found.start()], False), (found[0], True)]
        end = found.end()
    return [*pieces, (body[end:], False)]


def _referenced(piece: bytes, apart: bool) -> bytes:
    if not apart:
        if _BEYOND_IN_NAME.search(piece):
            raise ConfigError("a name in the body has a character beyond U+FFFF: ActiveMQ cannot carry it as text")
        return _BEYOND.sub(_reference, piece)
    if piece.startswith(b"<![CDATA["):
        return _BEYOND.sub(lambda found: b"]]>" + _reference(found) + b"<![CDATA[", piece)
    return _BEYOND.sub("\ufffd".encode(), piece)


def _reference(found: re.Match[bytes]) -> bytes:
    return b"&#x%X;" % ord(found[0].decode())


def _character(found: re.Match[bytes]) -> bytes:
    return chr(int(found[1], 16)).encode()
