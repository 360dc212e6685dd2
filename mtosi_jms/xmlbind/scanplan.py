"""Patterns made from class tables: what the text of a plain object looks like, and how its values come out of it.

A class becomes regular expressions that match its elements exactly as the schema orders them, without attributes, and
an expression that builds its object from the groups. Every quantifier is possessive, so that a text is walked once
whether it matches or not. Whatever a pattern does not foresee does not match, and is left to the tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind.fast import Itself, Known, Odd, is_sequence
from mtosi_jms.xmlbind.plan import LEAF, OBJECT, STRING, Plan, Slot, plan_of
from mtosi_jms.xmlbind.table import ClassTable

BLANK: Final = "[ \t\n]*+"

_GROUPS_OF_PIECE: Final = 200
_GROUPS_INSIDE: Final = 60
_GROUPS_OF_ITEM: Final = 16
_RUNS_IN_RUNS: Final = 2
_DEEPEST: Final = 60
_CAPTURE = re.compile(r"(?<!\\)\((?!\?)")
_ENTITIES: Final = {"amp;": "&", "lt;": "<", "gt;": ">", "quot;": '"', "apos;": "'"}


class Unable(Exception):
    """A class or field that no pattern can stand for."""


def unescaped(text: str | None) -> str | None:
    """Text with its references resolved.

    Raises:
        KeyError: one of them is not predefined; character references are left to the parser.
    """
    if text is None or "&" not in text:
        return text
    first, *rest = text.split("&")
    parts = [first]
    for part in rest:
        name, end, after = part.partition(";")
        parts += (_ENTITIES[name + end], after)
    return "".join(parts)


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


class Piece:
    """A pattern, and a function from its groups to what was found.

    Attributes:
        match: finds it at a position.
        build: the values from the groups, where no text holds a reference.
        careful: the same where one may.
    """

    __slots__ = ("build", "careful", "match")

    def __init__(self, fragment: _Fragment, constants: dict[str, Any]) -> None:
        self.match = re.compile(fragment.pattern).match
        head = f"lambda {', '.join(fragment.names)}: "
        self.build = _function(head + fragment.value.replace("unescaped(", "("), constants)
        self.careful = _function(head + fragment.value, constants)

    def take(self, text: str, at: int, escapes: bool) -> tuple[Any, int] | None:
        """What stands at a position, and where it ends; None where it does not match."""
        found = self.match(text, at)
        if found is None:
            return None
        end = found.end()
        build = self.careful if escapes and text.find("&", at, end) >= 0 else self.build
        return build(*found.groups()), end

    def take_all(self, text: str, at: int, escapes: bool) -> tuple[list[Any], int]:
        """What stands at a position one after the other, and where the last ends."""
        match, build, careful, find = self.match, self.build, self.careful, text.find
        taken: list[Any] = []
        while found := match(text, at):
            end = found.end()
            if escapes and find("&", at, end) >= 0:
                taken.append(careful(*found.groups()))
            else:
                taken.append(build(*found.groups()))
            at = end
        return taken, at


def _function(source: str, constants: dict[str, Any]) -> Callable[..., Any]:
    """The function of an expression that consists of field names of a generated class and of names made here."""
    made: Callable[..., Any] = eval(source, constants)  # noqa: S307
    return made


@dataclass(slots=True)
class _Child:
    """A child element with a scanner of its own."""

    name: str
    scanner: Scanner
    many: bool
    required: bool


class Scanner:
    """Reads the elements of one class from text.

    Attributes:
        whole: the one pattern of the class, None where it takes several steps.
        steps: pieces, each giving a dictionary of values, and children.
    """

    __slots__ = ("cls", "steps", "whole")

    def __init__(self, cls: Any, whole: Piece | None, steps: list[Piece | _Child]) -> None:
        self.cls = cls
        self.whole = whole
        self.steps = steps

    def read(self, text: str, at: int, escapes: bool) -> tuple[Any, int] | None:
        """The object that stands at a position, and where it ends; None where none begins there.

        Args:
            text: the document.
            at: where the object begins.
            escapes: whether the document holds references anywhere.

        Raises:
            NOT_PLAIN: it has to be read from the tree.
        """
        if self.whole is not None:
            return self.whole.take(text, at, escapes)
        values: dict[str, Any] = {}
        begun = False
        for step in self.steps:
            if isinstance(step, Piece):
                taken = step.take(text, at, escapes)
                if taken is None:
                    if begun:
                        raise Odd
                    return None
                values |= taken[0]
                at = taken[1]
            else:
                at = _read_child(step, values, text, at, escapes)
            begun = True
        return self.cls(**values), at

    def read_all(self, text: str, at: int, escapes: bool) -> tuple[list[Any], int]:
        """The objects that stand at a position one after the other, and where the last ends; as `read`."""
        if self.whole is not None:
            return self.whole.take_all(text, at, escapes)
        found: list[Any] = []
        while (taken := self.read(text, at, escapes)) is not None:
            found.append(taken[0])
            at = taken[1]
        return found, at


def _read_child(child: _Child, values: dict[str, Any], text: str, at: int, escapes: bool) -> int:
    if child.many:
        found, end = child.scanner.read_all(text, at, escapes)
        if found:
            values[child.name] = found
    else:
        taken = child.scanner.read(text, at, escapes)
        found, end = ([], at) if taken is None else ([taken[0]], taken[1])
        if found:
            values[child.name] = found[0]
    if child.required and not found:
        raise Odd
    return end


class ScanCompiler:
    """Makes scanners for documents that name their namespaces in one way.

    Args:
        prefixes: prefix of each namespace, empty for the default one; elements of others are in no pattern.
    """

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes
        self._constants: dict[str, Any] = {"unescaped": unescaped, "groups": re.Match.groups}
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
        return Scanner(table.cls, Piece(made, self._constants), []) if isinstance(made, _Fragment) else made

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
        if not is_sequence(plan) or not _able(table) or table in self._open or len(self._open) > _DEEPEST:
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

    def _steps(self, fields: list[tuple[str, Any]], opening: str, closing: str) -> list[Piece | _Child]:
        """Pieces as large as they may be, and the children between them."""
        steps: list[Piece | _Child] = []
        waiting: list[tuple[str, Any]] = []

        def flush(last: str) -> None:
            nonlocal opening
            if opening or waiting or last:
                steps.append(Piece(self._joined(waiting, opening, last, dict), self._constants))
            opening = ""
            waiting.clear()

        for name, made in fields:
            if isinstance(made, _Child):
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

    def _field(self, slot: Slot) -> _Fragment | _Child | None:
        """What reads a field; None where it is left out, so that documents that have it do not match."""
        try:
            if slot.kind in (STRING, LEAF):
                known = None if slot.kind == STRING else self._constant(Known(slot.target))
                return self._leaf(slot, "{}" if known is None else known + "[{}]")
            if slot.kind != OBJECT or not _able(slot.target):
                raise Unable
            text = plan_of(slot.target).text
            if text is not None:
                known = self._constant(Itself() if text.kind == STRING else Known(text.target))
                return self._leaf(slot, f"{self._constant(slot.target.cls)}({text.name}={known}[{{}}])")
            return self._inner(slot)
        except Unable:
            if slot.field.min:
                raise
            return None

    def _leaf(self, slot: Slot, value: str) -> _Fragment:
        """An element of text, or a run of them.

        Args:
            slot: its place.
            value: the expression of its value, `{}` for the text.
        """
        name, variable = self._name(slot.field.tag), self._variable()
        one = _Fragment(f"<{name}>([^<]*+)</{name}>{BLANK}", [variable], value.format(f"unescaped({variable})"))
        if slot.many:
            return self._run(one, slot)
        if slot.field.min:
            return one
        if value != "{}":
            one.value += f" if {variable} is not None else None"
        one.pattern = f"(?:{one.pattern})?+"
        return one

    def _inner(self, slot: Slot) -> _Fragment | _Child:
        """A child object: within the pattern where it is small."""
        name = self._name(slot.field.tag)
        made = self._element(name, slot.target)
        small = isinstance(made, _Fragment) and len(made.names) <= _GROUPS_OF_ITEM and made.runs < _RUNS_IN_RUNS
        if isinstance(made, Scanner) or (slot.many and not small):
            return _Child(slot.name, self._scanner(made, slot.target), slot.many, bool(slot.field.min))
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
