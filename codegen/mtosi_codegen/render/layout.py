"""Laying out generated Python: one line where it fits, else one item a line, in the manner of the usual formatters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 120
INDENT: Final = "    "


@dataclass(frozen=True, slots=True)
class Brackets:
    """An expression in brackets: `head` ends with the opening one.

    Attributes:
        spread: one item a line even where one line would do.
    """

    head: str
    items: tuple[Expression, ...]
    close: str = ")"
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Types joined by `|`."""

    items: tuple[Expression, ...]


Expression = str | Brackets | Alternatives


def tuple_of(items: Sequence[Expression], *, head: str = "", spread: bool = False) -> Brackets:
    """A tuple; one of one item gets its comma."""
    one = len(items) == 1
    return Brackets(f"{head}(", tuple(items), ",)" if one else ")", spread and not one)


def flat(expression: Expression) -> str:
    """The expression on one line."""
    if isinstance(expression, str):
        return expression
    if isinstance(expression, Alternatives):
        return " | ".join(map(flat, expression.items))
    return f"{expression.head}{', '.join(flat(item) for item in expression.items)}{expression.close}"


def _spreads(expression: Expression) -> bool:
    return isinstance(expression, Brackets) and (
        (expression.spread and bool(expression.items)) or any(_spreads(item) for item in expression.items)
    )


def _shares_line(expression: Brackets) -> bool:
    """Whether items may share a line of their own: those of calls and subscripts, not those of tuples and dicts."""
    return expression.close in {")", "]"} and expression.head[-2:-1].isidentifier()


def lines(
    expression: Expression, *, prefix: str = "", suffix: str = "", indent: str = "", comma: bool = True
) -> Iterator[str]:
    """The lines of an expression between a prefix and a suffix; `comma` for one after each item on its own line."""
    line = f"{indent}{prefix}{flat(expression)}{suffix}"
    if isinstance(expression, str) or (len(line) <= WIDTH and not _spreads(expression)):
        yield line
        return
    if isinstance(expression, Alternatives):
        for number, item in enumerate(expression.items):
            ending = suffix if number == len(expression.items) - 1 else ""
            yield from lines(item, prefix="| " if number else prefix, suffix=ending, indent=indent, comma=False)
        return
    if len(f"{indent}{prefix}{expression.head}") > WIDTH and prefix.endswith("= "):
        yield f"{indent}{prefix}("
        yield from lines(expression, indent=indent + INDENT)
        yield f"{indent}){suffix}"
        return
    yield f"{indent}{prefix}{expression.head}"
    inner = indent + INDENT
    joined = inner + ", ".join(flat(item) for item in expression.items)
    if len(joined) <= WIDTH and not _spreads(expression) and _shares_line(expression):
        yield joined
    else:
        for item in expression.items:
            yield from lines(item, suffix="," if comma else "", indent=inner)
    yield f"{indent}{expression.close.lstrip(',')}{suffix}"


def string(text: str) -> str:
    """A string literal in double quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else repr(char)[1:-1] for char in escaped) + '"'


def docstring(
    text: str, indent: str = "", attributes: Iterable[tuple[str, str]] = (), section: str = "Attributes"
) -> list[str]:
    """A docstring with an optional section of attributes or arguments, wrapped."""
    body = _wrapped(text, indent)
    documented = [(name, doc) for name, doc in attributes if doc]
    if documented:
        body += ["", f"{indent}{section}:"]
        for name, doc in documented:
            body += _wrapped(f"{name}: {' '.join(doc.split())}", indent + INDENT, hanging=True)
    body[0] = f'{indent}"""{body[0].lstrip()}'
    if len(body) == 1:
        return [body[0] + (' """' if body[0].endswith('"') else '"""')]
    return [*body, f'{indent}"""']


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
