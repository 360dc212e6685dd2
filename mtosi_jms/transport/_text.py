"""Checks for text that a protocol cannot carry."""

from __future__ import annotations

import re
from typing import Final

from mtosi_jms.errors import ConfigError

_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Control characters that neither XML nor a header may contain; tab, LF and CR are allowed."""


def check_body(body: bytes, *, controls: bool = False) -> None:
    """Raises ConfigError if a TextMessage cannot carry the body: it is not UTF-8, or has control characters."""
    if not controls and (found := _CONTROLS.search(body)):
        raise ConfigError(f"the body has the control character {found[0][0]:#04x} at byte {found.start()}")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"the body is not UTF-8 at byte {error.start}; send it as a BytesMessage") from None
