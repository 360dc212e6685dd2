"""What ends at the end of a `with` block, and what ends with the process if that block is never left."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Self

__all__ = ["Closeable", "end_with_the_process", "with_the_process"]

_ends: Final[dict[object, Callable[[], object]]] = {}


class Closeable(ABC):
    """Is closed at the end of a `with` block."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Releases what is held; may be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class with_the_process:  # noqa: N801 - it reads as the statement that it is for
    """While the block runs, something outlives this process unless `end` is called: a child, or a temporary folder.

    It is no generator: one that is dropped leaves its block, and what it was for would outlive the process.

    Args:
        end: called, in any thread, where the process exits inside of the block. It does not wait for anything.
    """

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end

    def __enter__(self) -> None:
        _ends[self] = self._end

    def __exit__(self, *_: object) -> None:
        del _ends[self]


def end_with_the_process() -> None:
    """Call what was given to `with_the_process`, the last one first: the process exits from inside of those blocks."""
    for end in reversed(list(_ends.values())):
        with contextlib.suppress(Exception):
            end()
