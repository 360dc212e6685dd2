"""Proofs that all values in a text can be made, and the functions that make them later.

Of a simple type a proof finds texts as we would write them; of a shape it finds the elements whose values all have a
proof. A text that a proof has found needs no second look: its values are converted without asking whether they fit.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from decimal import Decimal
from itertools import count, takewhile
from typing import Any, Final

from mtosi_jms.xmlbind import _simpletypes as types
from mtosi_jms.xmlbind._pieces import column, is_certain, rows, unescaped
from mtosi_jms.xmlbind._plan import STRING, Slot, plan_of
from mtosi_jms.xmlbind._scanplan import CONTENT, ISLAND, TEXT, Cell, Shape, without_groups
from mtosi_jms.xmlbind._simpletypes import EnumType, SimpleType
from mtosi_jms.xmlbind._unread import publication

_MARKUP: Final = re.compile("[&<\r]")
_DIGITS: Final = 30

_YEAR: Final = "(?!0000)[0-9]{4}"
_LEAP_YEAR: Final = (
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"  # the year 0000 is none
)
_DATE: Final = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_TIME: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{0,5}[1-9])?"
_ZONE: Final = "(?:Z|[+-](?!00:00)(?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_COLLAPSED: Final = "(?:[^< \t\n]++(?: [^< \t\n]++)*+)?+"


def _integers(least: int | None, most: int | None) -> str:
    """The integers between two bounds, both of them at or beyond 1, -1 or nought."""
    below = "" if least is not None and least >= 0 else f"-{_up_to(least)}"
    above = "" if most is not None and most <= 0 else _up_to(most)
    zero = "" if (least or 0) > 0 or (most or 0) < 0 else "0"
    return "|".join(filter(None, (zero, above, below)))


def _up_to(bound: int | None) -> str:
    """The numbers from 1 to a bound, whatever its sign; to one of many digits where there is none."""
    if bound is None:
        return f"[1-9][0-9]{{0,{_DIGITS}}}"
    digits = str(abs(bound))
    ways = [f"[1-9][0-9]{{0,{len(digits) - 2}}}"] if len(digits) > 1 else []
    for at, digit in enumerate(digits):
        lowest = 0 if at else 1
        if int(digit) > lowest:
            ways.append(f"{digits[:at]}[{lowest}-{int(digit) - 1}][0-9]{{{len(digits) - at - 1}}}")
    return f"(?:{'|'.join([*ways, digits])})"


_FORMS: Final = {
    types.BOOLEAN: "true|false",
    types.DATE: _DATE,
    types.DATE_TIME: f"{_DATE}T{_TIME}{_ZONE}",
    types.DECIMAL: rf"-?(?:0|[1-9][0-9]{{0,{_DIGITS}}})(?:\.[0-9]{{1,{_DIGITS}}})?",
    types.ANY_URI: _COLLAPSED,
    types.TOKEN: _COLLAPSED,
    **{
        kind: _integers(kind.facets.minimum, kind.facets.maximum) if kind.facets else _integers(None, None)
        for kind in (
            types.INTEGER,
            types.NON_POSITIVE_INTEGER,
            types.NEGATIVE_INTEGER,
            types.NON_NEGATIVE_INTEGER,
            types.POSITIVE_INTEGER,
            types.LONG,
            types.INT,
            types.SHORT,
            types.BYTE,
            types.UNSIGNED_LONG,
            types.UNSIGNED_INT,
            types.UNSIGNED_SHORT,
            types.UNSIGNED_BYTE,
        )
    },
}

_MAKERS: Final[Mapping[SimpleType, Callable[[str], Any] | None]] = {
    types.DATE: dt.date.fromisoformat,
    types.DATE_TIME: dt.datetime.fromisoformat,
    types.DECIMAL: Decimal,
    types.ANY_URI: None,
    types.TOKEN: None,
}


def form_of(kind: SimpleType) -> str | None:
    """A pattern that finds texts of a type in their element, and no others; None where no pattern can tell.

    `exact` of the type takes every text that it finds, once references are resolved. There may be more such texts. The
    pattern is for documents whose octets stand as characters.
    """
    if isinstance(kind, EnumType):
        texts = sorted(text.encode().decode("latin-1") for text in kind.known if text and not _MARKUP.search(text))
        return _branches(texts) if texts else None
    return f"(?:{_FORMS[kind]})" if kind in _FORMS else None


def maker_of(kind: SimpleType) -> Mapping[str, Any] | Callable[[str], Any] | None:
    """What makes the value of a text that the form of a type has found, its references resolved.

    Returns:
        The values by their texts, or a function of the text; None where the text is the value.
    """
    return {text: value for text, value in kind.known.items() if text} or _MAKERS.get(kind, int)


def _branches(texts: list[str]) -> str:
    """Texts as a tree by their beginnings, so that each character is looked at once."""
    firsts: dict[str, list[str]] = {}
    for text in filter(None, texts):
        firsts.setdefault(text[0], []).append(text)
    ways = []
    for group in firsts.values():
        columns = takewhile(lambda letters: len(set(letters)) == 1, zip(*group, strict=False))
        start = "".join(letters[0] for letters in columns)
        ways.append(re.escape(start) + _branches([text[len(start) :] for text in group]))
    if "" in texts:
        return f"(?:{'|'.join(ways)})?+" if ways else ""
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def leaf_of(cell: Cell) -> Slot:
    """Where the text of a cell goes: into its own field, or into that of the object of simple content."""
    content = plan_of(cell.slot.target).text if cell.kind == CONTENT else None
    return content or cell.slot


def proof_of(shape: Shape, blank: str) -> str | None:
    """A pattern without groups that proves an object, None where there is none.

    It is for documents whose octets stand as characters, and does without the optional elements that have no proof.

    Args:
        shape: what the object looks like.
        blank: the pattern of what may stand between tags.
    """
    parts = [f"<{shape.tag}>{blank}" if shape.tag else blank]
    for cell in shape.cells:
        one = proof_of_cell(cell, blank)
        if one is not None:
            if cell.slot.many:
                parts.append(f"(?:{one}){'++' if cell.required else '*+'}")
            else:
                parts.append(one if cell.required else f"(?:{one}|)")  # sooner done than by a quantifier
        elif cell.required:
            return None
    return "".join(parts) + (f"</{shape.tag}>{blank}" if shape.tag else "")


def proof_of_cell(cell: Cell, blank: str) -> str | None:
    """The same of one element of a field."""
    if cell.inner is not None:
        return proof_of(cell.inner, blank)
    if cell.kind == ISLAND:
        return None
    leaf = leaf_of(cell)
    form = "[^<]*+" if leaf.kind == STRING else form_of(leaf.target)
    return f"<{cell.tag}>{form}</{cell.tag}>{blank}" if form is not None else None


_SPREAD: Final = 3
"""Elements of a list that have groups of their own; the others are looked for one by one."""
_GROUPS_TO_SPREAD: Final = 4

Fill = Callable[[str, Any], None]


def filler(shape: Shape, blank: str) -> Fill:
    """What makes an unread object of its text, whose octets stand as characters.

    Args:
        shape: a shape with a proof, which has found the text.
        blank: the pattern of what may stand between tags in the text.
    """
    known = {"new": object.__new__, "unescaped": unescaped, "rows": rows, "column": column}
    names = (f"x{number}" for number in count())
    careful = _Coder(blank, True, known, names).function(shape, None)
    return _Coder(blank, False, known, names).function(shape, careful)


class _Pattern:
    """A pattern, and names for its groups."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self.text = ""
        self.groups: list[str] = []

    def next(self) -> str:
        """The name of the next group."""
        return f"{self._letter}{len(self.groups)}"

    def group(self, what: str) -> str:
        """Append a group; its name."""
        self.text += f"({what})"
        self.groups.append(self.next())
        return self.groups[-1]


class _Coder:
    """Writes one function. It consists of field names of generated classes, and of names made here."""

    def __init__(self, blank: str, careful: bool, known: dict[str, Any], names: Iterator[str]) -> None:
        self._blank = blank
        self._careful = careful
        self._known = known
        self._lines: list[str] = []
        self._depth = 1
        self._names = names

    def function(self, shape: Shape, careful: Fill | None) -> Fill:
        """The function.

        Args:
            shape: what the text looks like.
            careful: does the same for texts with references; None for itself.
        """
        pattern = _Pattern("g")
        lines, names = publication(shape.table.cls, self._values(shape, pattern, spread=True))
        known = {**self._known, **names, "match": re.compile(pattern.text).match, "careful": careful}
        source = ["def fill(text, o):"]
        if careful is not None:
            source += [
                " if not text.isascii(): text = text.encode('latin-1').decode()",
                " if '&' in text: return careful(text, o)",
            ]
        if pattern.groups:
            source.append(f" {', '.join(pattern.groups)}, = match(text).groups()")
        exec("\n".join([*source, *self._lines, *(f" {line}" for line in lines)]), known)  # noqa: S102
        made: Fill = known["fill"]
        return made

    def _line(self, line: str) -> None:
        self._lines.append(" " * self._depth + line)

    @contextmanager
    def _inside(self, line: str) -> Iterator[None]:
        self._line(line)
        self._depth += 1
        yield
        self._depth -= 1

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._known)}"
        self._known[name] = value
        return name

    def _values(self, shape: Shape, pattern: _Pattern, *, spread: bool) -> dict[str, str]:
        """Writes what makes the values of an object's fields.

        Args:
            shape: what the object looks like.
            pattern: takes the pattern of its text.
            spread: whether the first elements of lists may have groups of their own.

        Returns:
            What each field gets, as names and constants.
        """
        values = self._defaults(shape.table.cls)
        pattern.text += f"<{shape.tag}>{self._blank}" if shape.tag else self._blank
        for cell in shape.cells:
            if proof_of_cell(cell, "") is not None:
                values[cell.slot.name] = self._field(cell, pattern, spread=spread)
        pattern.text += f"</{shape.tag}>{self._blank}" if shape.tag else ""
        return values

    def _defaults(self, cls: Any) -> dict[str, str]:
        values: dict[str, str] = {}
        for field in fields(cls):
            if field.default_factory is list:
                values[field.name] = "[]"
            else:
                values[field.name] = "None" if field.default is None else self._constant(field.default)
        return values

    def _field(self, cell: Cell, pattern: _Pattern, *, spread: bool) -> str:
        """Writes what makes the value of a field; its name."""
        if cell.slot.many:
            return self._list(cell, pattern, spread=spread)
        if cell.required:
            return self._one(cell, pattern, spread=spread)
        pattern.text += "(?:"
        name = next(self._names)
        self._line(f"{name} = None")
        if cell.inner is not None:
            with self._inside(f"if {pattern.group('')} is not None:"):
                self._line(f"{name} = {self._one(cell, pattern, spread=spread)}")
        else:
            group = self._text(cell, pattern)
            with self._inside(f"if {group} is not None:"):
                value = self._of_text(cell, group)
                self._line(f"{name} = {value}")
            if value == group:
                del self._lines[-3:]
                name = group
        pattern.text += "|)"
        return name

    def _one(self, cell: Cell, pattern: _Pattern, *, spread: bool) -> str:
        """Writes what makes one value that is there; its name."""
        if cell.inner is None:
            value = self._of_text(cell, self._text(cell, pattern))
            if value.isidentifier():
                return value
            self._line(f"{(name := next(self._names))} = {value}")
            return name
        return self._object(cell, self._values(cell.inner, pattern, spread=spread))

    def _text(self, cell: Cell, pattern: _Pattern) -> str:
        pattern.text += f"<{cell.tag}>"
        group = pattern.group("[^<]*+")
        pattern.text += f"</{cell.tag}>{self._blank}"
        return group

    def _of_text(self, cell: Cell, group: str) -> str:
        leaf = leaf_of(cell)
        make = None if leaf.kind == STRING else maker_of(leaf.target)
        value = group
        if make is not None:
            value = f"{self._constant(make)}" + (f"[{group}]" if isinstance(make, dict) else f"({group})")
        elif self._careful:
            value = f"unescaped({group}) if '&' in {group} else {group}"
        if cell.kind == TEXT:
            return value
        return self._object(cell, {**self._defaults(cell.slot.target.cls), leaf.name: value})

    def _object(self, cell: Cell, values: Mapping[str, str]) -> str:
        name = next(self._names)
        self._line(f"{name} = new({self._constant(cell.slot.target.cls)})")
        for field, value in values.items():
            self._line(f"{name}.{field} = {value}")
        return name

    def _list(self, cell: Cell, pattern: _Pattern, *, spread: bool) -> str:
        """Writes what makes a list: its first elements have groups of their own, the others are in one."""
        name = next(self._names)
        item = _Pattern(f"{name}_")
        body = _Coder(self._blank, self._careful, self._known, self._names)
        one = body._one(cell, item, spread=False)
        lists = cell.inner is not None and any(inner.slot.many for inner in cell.inner.cells)
        first = _SPREAD if spread and not lists and len(item.groups) <= _GROUPS_TO_SPREAD else 0
        # An element all of whose groups take part is there if the first one has.
        is_marked = bool(item.groups) and (cell.inner is None or is_certain(cell.inner))
        made: list[str] = []
        depth, ends = self._depth, ""
        for number in range(first):
            if number or not cell.required:
                pattern.text += "(?:"
                ends += "|)"
                mark = pattern.next() if is_marked else pattern.group("")
                self._line(f"if {mark} is None: {name} = [{', '.join(made)}]")
                self._line("else:")
                self._depth += 1
            made.append(self._one(cell, pattern, spread=False))
        self._line(f"{name} = [{', '.join(made)}]")
        more = "++" if cell.required and not first else "*+"
        rest = pattern.group(f"(?:{without_groups(item.text)}){more}")
        pattern.text += ends
        find = self._find(cell, item)
        self._line(f"for {', '.join(item.groups) or '_'} in {find}{rest}) if {rest} else ():")
        self._lines += [" " * self._depth + line for line in body._lines]
        self._line(f" {name}.append({one})")
        self._depth = depth
        return name

    def _find(self, cell: Cell, item: _Pattern) -> str:
        """The beginning of the call that gives the groups of all items in a text."""
        found = re.compile(item.text)
        if cell.inner is None or is_certain(cell.inner):
            return f"{self._constant(found.findall)}("
        return f"{'column' if len(item.groups) == 1 else 'rows'}({self._constant(found)}, "
