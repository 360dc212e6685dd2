"""Full names as a tree: what lies below a name is found without looking at all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class NameTree:
    """The names that something is known of, and those above them.

    Args:
        used: whether something is known of a name; asked when it may be forgotten.
    """

    def __init__(self, used: Callable[[str], bool]) -> None:
        self._used = used
        self._below: dict[str, dict[str, None]] = {}

    def add(self, name: str) -> None:
        """Have a name in the tree."""
        while name:
            above = name.rpartition("/")[0]
            known = name in self._below.setdefault(above, {})
            self._below[above][name] = None
            if known:
                return
            name = above

    def forget(self, name: str) -> None:
        """Take a name out, and those above it, as far as nothing is known of them or below them."""
        while name and not self._below.get(name) and not self._used(name):
            self._below.pop(name, None)
            above = name.rpartition("/")[0]
            self._below.get(above, {}).pop(name, None)
            name = above

    def within(self, name: str) -> Iterator[str]:
        """The name and all below it, outermost first."""
        waiting = [name]
        while waiting:
            found = waiting.pop()
            yield found
            waiting.extend(reversed(self._below.get(found, {})))
