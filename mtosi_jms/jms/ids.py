"""Random ids, made many at a time.

Reading random bytes from the system releases the interpreter lock. With many threads, getting the lock back takes
longer than the rest of a request.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = [
    "random_id",
]

_MANY: Final = 256
_BYTES: Final = 16
_VARIANTS: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""Maps a random digit to a digit that is valid for the variant of RFC 4122."""
_stock: Final[list[str]] = []


def random_id() -> str:
    """Return a random UUID of version 4 as text. Threads and processes never get the same one."""
    while True:
        try:
            digits = _stock.pop()
        except IndexError:
            _restock()
        else:
            return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"


def _restock() -> None:
    digits = os.urandom(_MANY * _BYTES).hex()
    length = 2 * _BYTES
    _stock.extend(digits[start : start + length] for start in range(0, len(digits), length))


if hasattr(os, "register_at_fork"):  # a child process must not use the same ids as its parent
    os.register_at_fork(after_in_child=_stock.clear)
