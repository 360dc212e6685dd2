"""Masks credentials, which must never be shown (C55), by the names that hold them and in URLs. No I/O.

The environment variable MTOSI_JMS_SECRET_NAMES adds names, with commas between, such as `pin,snmpRead`.

The texts come from peers, so each pattern takes time in proportion to the length of the text: what repeats never
contains the character with which the pattern begins.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from functools import wraps
from reprlib import recursive_repr
from typing import Any, Final, Generic, TypeVar

__all__ = [
    "MASK",
    "Hidden",
    "is_secret",
    "passwords_in",
    "shown_half_made",
    "shown_in_part",
    "without",
    "without_login",
]

T = TypeVar("T")
MASK: Final = "***"
"""The text that replaces a credential."""

_NAMES: Final = (
    "security", "password", "passwd", "pwd", "passphrase", "secret", "credential", "token", "apikey", "api_key",
    "api-key", "authorization", "privatekey", "private_key", "private-key", "community",
)  # fmt: skip


def _secret_names(environment: Mapping[str, str]) -> re.Pattern[str]:
    added = [name.strip() for name in environment.get("MTOSI_JMS_SECRET_NAMES", "").split(",")]
    return re.compile("|".join(re.escape(name) for name in (*_NAMES, *added) if name), re.IGNORECASE)


_SECRET: Final = _secret_names(os.environ)
# The user's name may be empty; a password may hold anything but what ends it in a URL.
_USER_INFO: Final = re.compile(r"(//[^/?#@:\s,()]*):[^/?#@\s,()]*@")
_PASSWORD: Final = re.compile(r"//[^/?#@:\s,()]*:([^/?#@\s,()]*)@")
_PARAMETER: Final = re.compile(r"([?&;]([^=?&;\s]+)=)[^&;\s,()]*")


class Hidden(Generic[T]):
    """Holds a value that its `repr` does not show: error trackers record the local variables of frames."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Hidden({MASK})"


def is_secret(name: str) -> bool:
    """Whether a property, a header field or an option of this name may hold a credential: a word of a credential, or a
    name of MTOSI_JMS_SECRET_NAMES, is part of it, in any case."""
    return _SECRET.search(name) is not None


def without_login(text: str) -> str:
    """A text with URLs in it, their passwords masked: those before the host, and parameters with a secret's name."""
    masked = _USER_INFO.sub(rf"\1:{MASK}@", text)
    return _PARAMETER.sub(lambda found: found[1] + MASK if is_secret(found[2]) else found[0], masked)


def passwords_in(text: str) -> list[str]:
    """The passwords of the URLs in a text, as they are written there: those before the host."""
    return [found for found in _PASSWORD.findall(text) if found]


def without(text: str, secret: str) -> str:
    """A text that somebody else wrote, with a secret of ours masked wherever it stands; an empty one is none."""
    return text.replace(secret, MASK) if secret else text


def shown_half_made(show: Callable[[T], str]) -> Callable[[T], str]:
    """Makes a `__repr__` work for objects whose `__init__` raised: tools show these with the local variables."""

    @wraps(show)
    def shown(self: T) -> str:
        try:
            return show(self)
        except AttributeError:
            return f"<{type(self).__name__}, not complete>"

    return shown


@recursive_repr("...")
@shown_half_made
def shown_in_part(self: Any) -> str:
    """The `__repr__` of a dataclass without the fields that are None or an empty list, tuple or dict."""
    fields = [(field.name, getattr(self, field.name)) for field in dataclasses.fields(self) if field.repr]
    shown = [
        f"{name}={value!r}"
        for name, value in fields
        if value is not None and (value or not isinstance(value, list | tuple | dict))
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"
