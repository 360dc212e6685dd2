"""Patterns made from class tables: what the text of a plain object looks like, and how its values come out of it.

A class becomes regular expressions that match its elements exactly as the schema orders them, without attributes, and
an expression that builds its object from the groups. Every quantifier is possessive, so that a text is walked once
whether it matches or not. Whatever a pattern does not foresee does not match, and is left to the tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind.fast import Itself, Known, is_plain
from mtosi_jms.xmlbind.plan import LEAF, OBJECT, STRING, Plan, Slot, plan_of
from mtosi_jms.xmlbind.scanner import Child, Islands, Piece, Scanner, unescaped
from mtosi_jms.xmlbind.table import ClassTable

BLANK: Final = "[ \t\n]*+"

_GROUPS_OF_PIECE: Final = 200
_GROUPS_INSIDE: Final = 60
_GROUPS_OF_ITEM: Final = 16
_RUNS_IN_RUNS: Final = 2
_DEEPEST: Final = 60
_CAPTURE = re.compile(r"(?<!\\)\((?!\?)")


class Unable(Exception):
    """A class or field that no pattern can stand for."""


@dataclass(slots=True)
class _Fragment:
    """A part of a pattern.

    Attributes:
        pattern: its regular expression, blanks after the last tag included.
        names: a variable for each of its groups.
        value: the expression of what it stands for; texts stand as `unescaped(variable)`.
        runs: how deep lists stand in lists.
    """

    pattern: str
    names: list[str] = field(default_factory=list)
    value: str = ""
    runs: int = 0

    def bare(self) -> str:
        """The pattern without its groups."""
        return _CAPTURE.sub("(?:", self.pattern)


class ScanCompiler:
    """Makes scanners for documents that name their namespaces in one way.

    Args:
        names: the namespaces in scope, by prefix.
        text: a document; where a namespace has several prefixes, one that it uses is meant.
    """

    def __init__(self, names: Mapping[str | None, str], text: str) -> None:
        self._prefixes = {} if None in names else {"": ""}
        for prefix, namespace in names.items():
            if namespace not in self._prefixes or (prefix and f"<{prefix}:" in text):
                self._prefixes[namespace] = prefix or ""
        self._constants: dict[str, Any] = {"unescaped": unescaped, "groups": re.Match.groups, "islands": Islands(names)}
        self._made: dict[tuple[str, ClassTable], Scanner | None] = {}
        self._open: list[ClassTable] = []
        self._variables = 0

    def content(self, table: ClassTable) -> Scanner:
        """The scanner of what stands inside an element of a class.

        Raises:
            Unable: the class is not plain.
        """
        return self._scanner(self._compose("", table), table)

    def _scanner(self, made: _Fragment | Scanner, table: ClassTable) -> Scanner:
        return Scanner(table.cls, self._piece(made), []) if isinstance(made, _Fragment) else made

    def _piece(self, made: _Fragment) -> Piece:
        return Piece(made.pattern, made.names, made.value, self._constants)

    def _element(self, name: str, table: ClassTable) -> _Fragment | Scanner:
        """The elements of a name and a class: a fragment where they are small, their own scanner otherwise."""
        key = (name, table)
        if key not in self._made:
            self._made[key] = None
            try:
                made = self._compose(name, table)
                if isinstance(made, _Fragment) and len(made.names) <= _GROUPS_INSIDE:
                    del self._made[key]  # each use needs variables of its own
                    return made
                self._made[key] = self._scanner(made, table)
            except Unable:
                pass
        scanner = self._made[key]
        if scanner is None:
            raise Unable
        return scanner

    def _compose(self, name: str, table: ClassTable) -> _Fragment | Scanner:
        plan = plan_of(table)
        if not is_plain(plan) or not _able(table) or table in self._open or len(self._open) > _DEEPEST:
            raise Unable
        self._open.append(table)
        try:
            fields = [(slot.name, made) for slot in _own_slots(plan) if (made := self._field(slot)) is not None]
        finally:
            self._open.pop()
        if set(plan.required) - {field for field, _ in fields}:
            raise Unable
        ends = (f"<{name}>{BLANK}", f"</{name}>{BLANK}") if name else (BLANK, "")
        inside = [made for _, made in fields if isinstance(made, _Fragment)]
        if len(inside) == len(fields) and sum(len(made.names) for made in inside) <= _GROUPS_OF_PIECE:
            return self._joined(fields, *ends, table.cls)
        return Scanner(table.cls, None, self._steps(fields, *ends))

    def _joined(self, fields: list[tuple[str, Any]], opening: str, closing: str, maker: Any) -> _Fragment:
        """Fragments one after the other, as one that makes an object of their values."""
        pattern = opening + "".join(made.pattern for _, made in fields) + closing
        values = ", ".join(f"{name}={made.value}" for name, made in fields)
        names = [variable for _, made in fields for variable in made.names]
        runs = max((made.runs for _, made in fields), default=0)
        return _Fragment(pattern, names, f"{self._constant(maker)}({values})", runs)

    def _steps(self, fields: list[tuple[str, Any]], opening: str, closing: str) -> list[Piece | Child]:
        """Pieces as large as they may be, and the children between them."""
        steps: list[Piece | Child] = []
        waiting: list[tuple[str, Any]] = []

        def flush(last: str) -> None:
            nonlocal opening
            if opening or waiting or last:
                steps.append(self._piece(self._joined(waiting, opening, last, dict)))
            opening = ""
            waiting.clear()

        for name, made in fields:
            if isinstance(made, Child):
                flush("")
                steps.append(made)
                continue
            if sum(len(other.names) for _, other in waiting) + len(made.names) > _GROUPS_OF_PIECE:
                flush("")
            waiting.append((name, made))
        flush(closing)
        return steps

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _name(self, tag: str) -> str:
        """The name that stands in the tags of an element, as a pattern."""
        namespace, local = split_clark(tag)
        prefix = self._prefixes.get(namespace)
        if prefix is None:
            raise Unable
        return re.escape(f"{prefix}:{local}" if prefix else local)

    def _field(self, slot: Slot) -> _Fragment | Child | None:
        """What reads a field; None where it is left out: it cannot occur, and is not required."""
        try:
            name = self._name(slot.field.tag)
        except Unable:
            if slot.field.min:
                raise
            return None
        if slot.kind in (STRING, LEAF):
            known = None if slot.kind == STRING else self._constant(Known(slot.target))
            return self._leaf(name, slot, "{}" if known is None else known + "[{}]")
        if slot.kind == OBJECT and _able(slot.target):
            text = plan_of(slot.target).text
            if text is not None:
                known = self._constant(Itself() if text.kind == STRING else Known(text.target))
                return self._leaf(name, slot, f"{self._constant(slot.target.cls)}({text.name}={known}[{{}}])")
            try:
                return self._inner(name, slot)
            except Unable:
                pass
        return self._island(name, slot)

    def _island(self, name: str, slot: Slot) -> _Fragment:
        """Elements that are read from a tree: found by the first end tag, which the parser confirms or denies."""
        variable, known = self._variable(), self._constant(slot)
        one = rf"(?><{name}(?:[ \t\n][^<>]*+)?+(?<!/)>[\s\S]*?</{name}>){BLANK}"
        least, many = bool(slot.field.min), slot.many
        pattern = f"((?:{one}){'++' if least else '*+'})" if many else f"({one})" if least else f"(?:({one}))?+"
        value = f"islands({variable}, {known}){'' if many else '[0]'}"
        if not least:
            value += f" if {variable} else {'[]' if many else None}"
        return _Fragment(pattern, [variable], value)

    def _leaf(self, name: str, slot: Slot, value: str) -> _Fragment:
        """An element of text, or a run of them.

        Args:
            name: how its tags name it.
            slot: its place.
            value: the expression of its value, `{}` for the text.
        """
        variable = self._variable()
        one = _Fragment(f"<{name}>([^<]*+)</{name}>{BLANK}", [variable], value.format(f"unescaped({variable})"))
        if slot.many:
            return self._run(one, slot)
        if slot.field.min:
            return one
        if value != "{}":
            one.value += f" if {variable} is not None else None"
        one.pattern = f"(?:{one.pattern})?+"
        return one

    def _inner(self, name: str, slot: Slot) -> _Fragment | Child:
        """A child object: within the pattern where it is small.

        Raises:
            Unable: no pattern can stand for it.
        """
        made = self._element(name, slot.target)
        small = isinstance(made, _Fragment) and len(made.names) <= _GROUPS_OF_ITEM and made.runs < _RUNS_IN_RUNS
        if isinstance(made, Scanner) or (slot.many and not small):
            return Child(slot.name, self._scanner(made, slot.target), slot.many, bool(slot.field.min))
        if slot.many:
            return self._run(made, slot)
        if not slot.field.min:
            there = self._variable()
            made.names.insert(0, there)
            made.pattern = f"(?:(){made.pattern})?+"
            made.value += f" if {there} is not None else None"
        return made

    def _run(self, item: _Fragment, slot: Slot) -> _Fragment:
        """Elements of a list: captured together, then taken apart."""
        run = self._variable()
        variables = "".join(f"{name}, " for name in item.names)
        found = self._constant(re.compile(item.pattern).finditer)
        value = f"[{item.value} for ({variables}) in map(groups, {found}({run}))]"
        if not slot.field.min:
            value += f" if {run} else []"
        return _Fragment(f"((?:{item.bare()}){'++' if slot.field.min else '*+'})", [run], value, item.runs + 1)


def _able(table: ClassTable) -> bool:
    """Whether an element of the class may stand without attributes."""
    return not table.abstract and not any(slot.field.min for slot in plan_of(table).attributes.values())


def _own_slots(plan: Plan) -> list[Slot]:
    """The fields of a plan in order, without the members of substitution groups."""
    return sorted((slot for tag, slot in plan.slots.items() if slot.field.tag == tag), key=lambda slot: slot.order)
