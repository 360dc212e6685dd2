"""Types of arguments that several commands take."""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Callable, Collection

_MOST_PROCESSORS = 1024


def processors(text: str) -> int:
    """A number of processors that a machine may have.

    Raises:
        ArgumentTypeError: anything else.
    """
    number = positive(text)
    if number > _MOST_PROCESSORS:
        raise argparse.ArgumentTypeError(f"at most {_MOST_PROCESSORS} are possible")
    return number


def positive(text: str) -> int:
    """A whole number of at least 1.

    Raises:
        ArgumentTypeError: anything else.
    """
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError("a whole number, 1 or more, is wanted")
    return int(text)


def count(text: str) -> int:
    """A whole number of at least 0.

    Raises:
        ArgumentTypeError: anything else.
    """
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError("a whole number, 0 or more, is wanted")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds, 0 or more.

    Raises:
        ArgumentTypeError: anything else.
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError("a number of seconds, 0 or more, is wanted")
    return number


def rate(text: str) -> float:
    """How many a second: a number above 0.

    Raises:
        ArgumentTypeError: anything else.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError("a number above 0 is wanted")
    return number


def words(text: str) -> tuple[str, ...]:
    """Words joined by commas.

    Raises:
        ArgumentTypeError: there is none.
    """
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise argparse.ArgumentTypeError("a name is wanted, or several joined by commas")
    return found


def known_words(what: str, known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of words joined by commas, each of them known; there may be none. A word may have a + before it.

    Args:
        what: they are, for the error.
        known: the words there are.
    """

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in names:
            if name.removeprefix("+") not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
                raise argparse.ArgumentTypeError(f"no {what} {name!r}; {hint}")
        return names

    return parse
