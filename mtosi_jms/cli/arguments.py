"""Types of arguments that several commands take."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A whole number of at least 1.

    Raises:
        ArgumentTypeError: anything else.
    """
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError("a whole number, 1 or more, is wanted")
    return int(text)
