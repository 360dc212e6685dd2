"""Lays out generated Python as the usual formatters do: lines that are too long are folded at their brackets, and
docstrings are wrapped. `python` and `docstring` are filters of the templates.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

WIDTH: Final = 120
INDENT: Final = "    "
_MARKS: Final = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | [()\[\]{},\#] """, re.VERBOSE)
_CLOSING: Final = frozenset(")]}")
_OPENING: Final = frozenset("([{")


class _Brackets(NamedTuple):
    """The positions of a pair of brackets in a line and of the commas between them."""

    start: int
    end: int
    commas: tuple[int, ...]


def fold(text: str) -> str:
    """Fold each line of more than 120 characters at its brackets. Docstrings and comments stay as they are."""
    if max(map(len, text.split("\n"))) <= WIDTH:
        return text
    found: list[str] = []
    prose = False
    for line in text.split("\n"):
        if prose or len(line) <= WIDTH or '"""' in line or line.lstrip().startswith("#"):
            found.append(line)
        else:
            found += _folded(line)
        prose ^= line.count('"""') % 2 == 1
    return "\n".join(found)


def _folded(line: str) -> Iterator[str]:
    code = line.lstrip(" ")
    indent = line[: len(line) - len(code)]
    pairs = _brackets(code)
    if len(line) <= WIDTH or not pairs:
        yield line
        return
    # Fold a signature at its first brackets, the parameters; fold other lines at their last brackets.
    start, end, commas = pairs[0 if code.startswith("def ") else -1]
    head, tail = code[: start + 1], code[end:]
    name, equals, value = head.rpartition(" = ")
    if equals and len(indent + head) > WIDTH:
        yield f"{indent}{name} = ("
        yield from _folded(f"{indent}{INDENT}{value}{code[start + 1 :]}")
        yield f"{indent})"
        return
    edges = (start, *commas, end)
    items = [code[left + 1 : right].strip() for left, right in itertools.pairwise(edges)]
    items = [item for item in items if item]
    joined = f"{indent}{INDENT}{', '.join(items)}"
    yield indent + head
    if len(joined) <= WIDTH and _shares_line(head):
        yield joined
    else:
        comma = "" if code.startswith("class ") else ","
        for item in items:
            yield from _folded(f"{indent}{INDENT}{item}{comma}")
    yield from _folded(indent + tail)


def _brackets(code: str) -> list[_Brackets]:
    """The outermost pairs of non-empty brackets; none if a comment follows."""
    found: list[_Brackets] = []
    commas: list[int] = []
    depth = start = 0
    for match in _MARKS.finditer(code):
        mark = match.group()
        if mark in _OPENING:
            if not depth:
                start, commas = match.start(), []
            depth += 1
        elif mark in _CLOSING and depth:
            depth -= 1
            if not depth and match.start() > start + 1:
                found.append(_Brackets(start, match.start(), tuple(commas)))
        elif mark == "," and depth == 1:
            commas.append(match.start())
        elif mark == "#":
            return []
    return found


def _shares_line(head: str) -> bool:
    """Whether items may share one line: items of calls and subscripts may, items of tuples and dicts may not."""
    return re.search(r"\w[(\[]$", head) is not None


def python(value: object) -> str:
    """A string, a number, a sequence or a dict of these as a Python literal; strings in double quotes."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(char if char.isprintable() else repr(char)[1:-1] for char in escaped) + '"'
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{python(key)}: {python(text)}' for key, text in value.items())}}}"
    return tuple_of([python(item) for item in value]) if isinstance(value, Sequence) else repr(value)


def tuple_of(items: Sequence[str]) -> str:
    """A tuple of expressions, with the comma that a single item needs."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def docstring(
    text: str, indent: int = 0, section: str = "", entries: Iterable[object] = (), name: str = "name", doc: str = "doc"
) -> str:
    """A docstring, wrapped.

    Args:
        indent: blanks before its lines, except the first line, which the template indents.
        section: heading of the section that lists names.
        entries: entries of the section; an entry without documentation is left out.
        name, doc: the attributes of an entry that hold its name and its documentation.
    """
    margin = " " * indent
    body = _wrapped(text, margin)
    documented = [entry for entry in entries if getattr(entry, doc)]
    if documented:
        body += ["", f"{margin}{section}:"]
        for entry in documented:
            line = f"{getattr(entry, name)}: {' '.join(getattr(entry, doc).split())}"
            body += _wrapped(line, margin + INDENT, hanging=True)
    body[0] = f'"""{body[0].lstrip()}'
    if len(body) == 1:
        return body[0] + (' """' if body[0].endswith('"') else '"""')
    return "\n".join([*body, f'{margin}"""'])


def _wrapped(text: str, indent: str, *, hanging: bool = False) -> list[str]:
    safe = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    safe = safe.replace("\\", "\\\\").replace('"""', "'''")
    found: list[str] = []
    for paragraph in safe.split("\n\n"):
        if found:
            found.append("")
        following = indent + INDENT if hanging else indent
        wrapper = textwrap.TextWrapper(
            WIDTH - (0 if found or hanging else 6), indent, following, break_long_words=False, break_on_hyphens=False
        )
        found += wrapper.wrap(" ".join(paragraph.split()))
    return found or [indent]
