"""Types of arguments that several commands take."""

from __future__ import annotations

import argparse

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


def words(text: str) -> tuple[str, ...]:
    """Words joined by commas.

    Raises:
        ArgumentTypeError: there is none.
    """
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise argparse.ArgumentTypeError("a name is wanted, or several joined by commas")
    return found
