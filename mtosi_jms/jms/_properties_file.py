"""Reads the text of a Java `.properties` file, the format of `jndi.properties`.

A line that ends in an odd number of backslashes is joined with the next. The key ends at the first `=`, `:` or blank
that is not escaped by a backslash. `#` and `!` begin a comment. `\\uXXXX`, `\\t`, `\\n`, `\\r`, `\\f` have the same
meaning as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mtosi_jms.errors import ConfigError

_BLANK: Final = " \t\f"
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_BROKEN: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9A-Fa-f]{4})")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def read_properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields (line number from 1, key, value) for each entry, in the order of the file; a key may occur twice. Raises
    ConfigError: four hexadecimal digits are missing after `\\u`, which Java refuses too. The error names the line."""
    for number, line in _logical_lines(text):
        if _BROKEN.search(line):
            raise ConfigError(f"line {number}: \\u without four hexadecimal digits; a backslash itself is two")
        match = _KEY.fullmatch(line)
        if match is None:  # a lone backslash at the very end of the text
            yield number, _unescape(line), ""
        else:
            yield number, _unescape(match[1]), _unescape(match[2])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")), 1):
        line = raw.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        start = start if pending else number
        joined = pending + line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = joined[:-1]
            continue
        pending = ""
        yield start, joined
    if pending:
        yield start, pending


def _unescape(text: str) -> str:
    return _PAIR.sub(_joined, _ESCAPE.sub(lambda match: _meaning(match[1]), text))


def _joined(pair: re.Match[str]) -> str:
    """Return the character of a surrogate pair: Java writes characters beyond U+FFFF as two."""
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


def _meaning(escaped: str) -> str:
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _NAMED.get(escaped, escaped)
