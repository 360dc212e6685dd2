"""One message of a spool, as it was written or as it is read back."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.spool._files import reporting

ENVELOPE: Final = ".xml"
SIDECAR: Final = ".json"
UNFINISHED: Final = ".tmp"
NAME: Final = re.compile(r"([0-9]{13})-([0-9]{6})-([0-9a-f]{8})")
"""Of an entry: milliseconds of arrival, a number within the millisecond, the beginning of the body's SHA-256."""


def digest(body: bytes) -> str:
    """SHA-256 of a body, in hexadecimal."""
    return hashlib.sha256(body).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolEntry:
    """One message of a spool. It holds no body: `read_body` and `message` go to the disk each time.

    Attributes:
        path: the envelope's file.
        facts: the message without its body; None where the sidecar is missing or damaged.
        received_ms: when it was received, milliseconds since 1970 UTC; None where neither sidecar nor name tell.
        sha256: of the body as it was received, in hexadecimal; None where the sidecar does not tell.
        problem: what is wrong with the sidecar; empty where nothing is.
    """

    path: Path
    facts: JmsMessage | None
    received_ms: int | None
    sha256: str | None
    problem: str = ""

    @property
    def name(self) -> str:
        """The name that the files of the entry share, without suffix."""
        return self.path.name.removesuffix(ENVELOPE)

    def read_body(self) -> bytes:
        """The envelope's bytes, exactly as they were received.

        Raises:
            SpoolError: the file cannot be read.
        """
        with reporting(self.path):
            return self.path.read_bytes()

    def message(self) -> JmsMessage:
        """The whole message; with default headers and no properties where the sidecar does not tell.

        Raises:
            SpoolError: the file cannot be read.
        """
        body = self.read_body()
        return replace(self.facts, body=body) if self.facts is not None else JmsMessage(body=body)

    def damage(self) -> str:
        """What is wrong with the entry, its body compared with the SHA-256 of what was received; empty: nothing.

        Raises:
            SpoolError: the file cannot be read.
        """
        actual = digest(self.read_body())
        named = NAME.fullmatch(self.name)
        expected = self.sha256 or (named[3] if named else "")
        if not actual.startswith(expected):
            return "the envelope's bytes are not those that were received"
        return self.problem
