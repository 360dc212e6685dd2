"""Masks credentials, which must never be shown (C55), by the names that hold them and in URLs. No I/O."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MASK", "is_secret", "passwords_in", "without", "without_login"]

MASK: Final = "***"
"""The text that replaces a credential."""

_SECRET: Final = re.compile("security|password|passwd|secret|credential|token", re.IGNORECASE)
# The user's name may be empty; a password may hold anything but what ends it in a URL.
_USER_INFO: Final = re.compile(r"(//[^/?#@:\s,()]*):[^/?#@\s,()]*@")
_PASSWORD: Final = re.compile(r"//[^/?#@:\s,()]*:([^/?#@\s,()]*)@")
_PARAMETER: Final = re.compile(r"([?&;]([^=&;\s]+)=)[^&;\s,()]*")


def is_secret(name: str) -> bool:
    """Whether a property, a header field or an option of this name may hold a credential."""
    return _SECRET.search(name) is not None


def without_login(text: str) -> str:
    """A text with URLs in it, their passwords masked: those before the host, and parameters with a secret's name.

    Args:
        text: any text; parts that are not URLs are unchanged.
    """
    masked = _USER_INFO.sub(rf"\1:{MASK}@", text)
    return _PARAMETER.sub(lambda found: found[1] + MASK if is_secret(found[2]) else found[0], masked)


def passwords_in(text: str) -> list[str]:
    """The passwords of the URLs in a text, as they are written there: those before the host."""
    return [found for found in _PASSWORD.findall(text) if found]


def without(text: str, secret: str) -> str:
    """A text that somebody else wrote, with a secret of ours masked wherever it stands.

    Args:
        text: such as a broker's error.
        secret: the secret; empty if there is none.
    """
    return text.replace(secret, MASK) if secret else text
