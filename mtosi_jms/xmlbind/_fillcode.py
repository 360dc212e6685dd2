"""The functions that make the values of unread objects: one for each shape, with all that is inside it.

A text that a proof has found needs no second look at its values: they are converted without asking whether they fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from itertools import count
from typing import Any, Final

from mtosi_jms.xmlbind._proofs import leaf_of, maker_of, proof_of_cell
from mtosi_jms.xmlbind._unread import publication
from mtosi_jms.xmlbind.pieces import column, is_certain, rows, unescaped
from mtosi_jms.xmlbind.plan import STRING
from mtosi_jms.xmlbind.scanplan import TEXT, Cell, Shape, without_groups

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
