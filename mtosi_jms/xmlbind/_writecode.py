"""The fast path of writing: a function for each class that has been written often enough.

The function is made of the class's write plan: its tags stand in it as constants, each field is fetched once, and the
plain texts of an object are looked over together. Small classes inside are written in the same function. Whatever it
does not foresee raises `Odd`, and the object is written again by the encoder, which knows all cases and says where
something is wrong.

It writes wire text: text escaped, checked, and its UTF-8 held in a `str`, one character for each byte. ASCII is its own
wire text, and a name with an accent does not widen the document around it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from mtosi_jms.xmlbind._fast import Odd
from mtosi_jms.xmlbind._simpletypes import EnumType, Facets, SimpleType
from mtosi_jms.xmlbind._table import ClassTable
from mtosi_jms.xmlbind._values import Nil
from mtosi_jms.xmlbind._writeplan import (
    ANY,
    OBJECT,
    PLAIN,
    RAW_XML,
    ObjectWriter,
    Out,
    WritePlan,
    escape_text,
    has_forbidden,
    write_plan,
)

SUSPECT: Final = bytes([*(code for code in range(32) if code not in b"\t\n"), *b"&<>\xef"])
"""What is not written as it is, or may be forbidden."""

_SHORT: Final = 1000
_MOST_KNOWN: Final = 512
_LONGEST_KNOWN: Final = 64


def wire(text: str) -> str:
    """The wire text of a text that is escaped and holds only what XML allows."""
    return text if text.isascii() else text.encode().decode("latin-1")


def mended(text: str, values: Sequence[str | None]) -> Sequence[str | None]:
    """The wire texts of values.

    Args:
        text: all of them, joined.
        values: the values; None stays None.

    Raises:
        Odd: a character that XML does not allow.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Odd from None
    if len(data.translate(None, SUSPECT)) == len(data):
        return [value if not value or value.isascii() else value.encode().decode("latin-1") for value in values]
    if has_forbidden(data):
        raise Odd
    present = [value for value in values if value is not None]
    written = wire(escape_text("\0".join(present))).split("\0")
    if len(present) == len(values):
        return written
    again = iter(written)
    return [value if value is None else next(again) for value in values]


def element(tag: str, inner: str) -> str:
    """The element with a tag and what stands inside it, all in wire text."""
    return f"<{tag}>{inner}</{tag}>" if inner else f"<{tag}/>"


def pieces(tag: str, inner: str) -> tuple[str | bytes, ...]:
    """The pieces of an element: one text where that is quick to be looked over again, else bytes between tags.

    Args:
        tag: the tag.
        inner: what stands inside, in wire text.
    """
    if len(inner) < _SHORT and inner.isascii():
        return (element(tag, inner),)
    return f"<{tag}>", inner.encode("latin-1"), f"</{tag}>"


def joined(parts: Sequence[str | bytes]) -> bytes:
    """All pieces in UTF-8.

    Raises:
        Odd: a text among them holds a character that XML does not allow.
    """
    try:
        return _encoded("".join(parts))  # type: ignore[arg-type]
    except TypeError:  # there are bytes among them
        runs = groupby(parts, type)
        return b"".join([b"".join(run) if kind is bytes else _encoded("".join(run)) for kind, run in runs])  # type: ignore[arg-type]


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Odd from None
    if has_forbidden(data):
        raise Odd
    return data


class Elements(dict[Any, str]):
    """Values of a simple type with the elements that hold them, in wire text; the last ones are remembered, up to a
    bound.

    Args:
        kind: the simple type; an enumeration's values are their texts, and there from the beginning.
        tag: in wire text; empty for the bare text.
    """

    def __init__(self, kind: SimpleType, tag: str) -> None:
        super().__init__()
        self._kind = kind
        self._tag = tag
        if isinstance(kind, EnumType):
            texts = [text for text in kind.known if text is not None]
            self.update(zip(texts, map(self._tagged, mended("".join(texts), texts)), strict=True))

    def of(self, value: Any) -> str:
        """The element of a value that is not remembered.

        Raises:
            Odd: it has none.
        """
        if isinstance(value, Nil):
            raise Odd
        try:
            text = self._kind.format(value)
        except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError):
            raise Odd from None
        (written,) = mended(text, (text,))
        return self._tagged(written)

    def _tagged(self, written: str | None) -> str:
        if not self._tag:
            return written or ""
        return element(self._tag, written or "")

    def __missing__(self, value: Any) -> str:
        found = self.of(self._kind.cls(value) if isinstance(self._kind, EnumType) else value)
        if len(self) < _MOST_KNOWN and len(found) <= _LONGEST_KNOWN + 2 * len(self._tag):
            self[value] = found
        return found


WORTH_MAKING = 8
"""Objects of a class after which it is worth a function."""

_DEEPEST: Final = 3
"""Classes within classes that one function writes."""
_SMALL: Final = 6
"""Fields of a class that is written where it stands."""
_LONGEST_RUN: Final = 4
"""Plain texts beside each other that are written at once, where all are there."""
_FEW: Final = 3
"""Plain texts for which three searches are faster than a copy without what is suspect."""

_LONG: Final = 100
"""Characters from which they are not."""
_MOST_VARIABLES: Final = 300
"""Variables of a function after which it takes in no more classes."""

_REPEATED: Final = {"date": dt.date, "string": str, "integer": int, "long": int, "decimal": int}
"""By the kind of simple type: classes whose equal values have equal texts."""


def inner_text(writer: ObjectWriter, plan: WritePlan, obj: Any) -> str:
    """What stands inside the element of an object, as wire text.

    Args:
        writer: notes which namespaces are needed.
        plan: the plan of the object's class.
        obj: the object.

    Raises:
        Odd: the encoder has to write it.
    """
    if plan.code is None:
        plan.written += 1
        if plan.written < WORTH_MAKING:
            raise Odd
        plan.code = _Coder(plan).function()
    return plan.code(writer, obj)


def _never(writer: ObjectWriter, obj: Any) -> str:
    raise Odd


def _is_able(plan: WritePlan) -> bool:
    """Whether a function can write objects of a class at all."""
    if plan.reading.grammar is not None or plan.mixed is not None or any(out.required for out in plan.attributes):
        return False
    outs = (plan.text,) if plan.text is not None else plan.outs
    # A wildcard that must have something, and a name that depends on namespaces in scope, are for the encoder.
    return not any((out.kind in (ANY, RAW_XML) and out.required) or _is_qualified(out) for out in outs)


def _is_qualified(out: Out) -> bool:
    return isinstance(out.target, SimpleType) and out.target.qualified


class _Coder:
    """Writes the function of one class.

    It consists of field names of generated classes, tags, and names made here for constants and variables.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._inside: list[WritePlan] = []
        self._constants: dict[str, Any] = {"Odd": Odd, "mended": mended, "SUSPECT": SUSPECT, "inner_text": inner_text}
        self._constants["REPEATED"] = frozenset(_REPEATED.values())
        self._variables = 0

    def function(self) -> Callable[[ObjectWriter, Any], str]:
        """The function; one that always raises for a class that only the encoder can write."""
        if not _is_able(self._plan):
            return _never
        lines = ["def code(w, o):", " add = w.names.plans.add"]
        lines += (" " + line for line in self._element(self._plan, "o", "", "t", frozenset()))
        exec("\n".join([*lines, " return t"]), self._constants)  # noqa: S102
        made: Callable[[ObjectWriter, Any], str] = self._constants["code"]
        return made

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _element(self, plan: WritePlan, obj: str, tag: str, into: str, noted: frozenset[str]) -> Iterator[str]:
        """Sets `into` to the element of an object; without a tag to what stands inside it.

        Args:
            plan: the plan of its class.
            obj: the variable that holds it.
            tag: in wire text.
            into: variable for the element.
            noted: namespaces that the function has noted before.
        """
        unset = (f"{obj}.{name} is not None" for name in ("extras", *(out.name for out in plan.attributes)))
        yield f"if {' or '.join(unset)}: raise Odd"
        if not plan.namespaces <= noted:
            yield f"add({self._constant(plan)})"
        if plan.text is not None:
            yield from self._simple_content(plan.text, obj, tag, into)
            return
        self._inside.append(plan)
        names = {out.name: self._variable() for out in plan.outs if _is_plain_text(out)}
        yield from _fetched([out for out in plan.outs if out.name in names], names, obj)
        runs = list(_runs(plan.outs))
        if len(runs) == 1 and _is_plain_text(runs[0][0]):
            yield from _joined([(wire(out.tag), names[out.name]) for out in runs[0]], into, tag)
            self._inside.pop()
            return
        texts = [into] if len(runs) == 1 else [self._variable() for _ in runs]
        for text, run in zip(texts, runs, strict=True):
            if _is_plain_text(run[0]):
                yield from _joined([(wire(out.tag), names[out.name]) for out in run], text)
            else:
                yield from self._field(run[0], obj, text, noted | plan.namespaces)
        self._inside.pop()
        inner = "".join(f"{{{text}}}" for text in texts)
        if tag and any(out.required for out in plan.outs):
            yield f'{into} = f"<{tag}>{inner}</{tag}>"'
            return
        if len(runs) != 1:
            yield f'{into} = f"{inner}"'
        if tag:
            yield f"{into} = {_tagged(tag, into)}"

    def _simple_content(self, out: Out, obj: str, tag: str, into: str) -> Iterator[str]:
        value = self._variable()
        if out.kind == PLAIN:
            yield from _fetched([out], {out.name: value}, obj)
            yield f"{into} = {_tagged(tag, value)}"
        else:
            yield f"{value} = {obj}.{out.name}"
            yield f"if {value} is None: raise Odd"
            yield f"{into} = {self._simple(out.target, value, tag)}"

    def _field(self, out: Out, obj: str, into: str, noted: frozenset[str]) -> Iterator[str]:
        """Sets `into` to the elements of a field that is no single plain text."""
        value = self._variable()
        yield f"{value} = {obj}.{out.name}"
        if out.kind in (ANY, RAW_XML):
            unset = f"{value} is None" + (f" or ({value}.__class__ is list and not {value})" if out.many else "")
            yield f"if not ({unset}): raise Odd"
            yield f'{into} = ""'
            return
        yield f"if {value} is None: " + ("raise Odd" if out.required else f'{into} = ""')
        yield "else:"
        lines = self._list(out, value, into, noted) if out.many else self._value(out, value, into, noted)
        yield from (" " + line for line in lines)

    def _list(self, out: Out, value: str, into: str, noted: frozenset[str]) -> Iterator[str]:
        least, most = out.field.min, out.field.max
        yield f"if {value}.__class__ is not list: raise Odd"
        if least > 0:
            yield f"if len({value}) < {least}: raise Odd"
        if most is not None:
            yield f"if len({value}) > {most}: raise Odd"
        item, element = self._variable(), self._variable()
        yield f"{into} = []"
        yield f"for {item} in {value}:"
        yield from (" " + line for line in self._value(out, item, element, noted))
        yield f" {into}.append({element})"
        yield f'{into} = "".join({into})'

    def _value(self, out: Out, value: str, into: str, noted: frozenset[str]) -> Iterator[str]:
        """Sets `into` to the element of one value."""
        if out.kind == OBJECT:
            yield from self._object(out, value, into, noted)
        elif out.kind == PLAIN:
            yield f"if {value}.__class__ is not str: raise Odd"
            yield from _looked_over([(value, True)])
            yield f"{into} = {_tagged(wire(out.tag), value)}"
        else:
            yield f"{into} = {self._simple(out.target, value, wire(out.tag))}"

    def _simple(self, kind: SimpleType, value: str, tag: str) -> str:
        """An expression for the element of a value of a simple type."""
        elements = Elements(kind, tag)
        slow = f"{self._constant(elements.of)}({value})"
        if isinstance(kind, EnumType):
            is_member = f"{value}.__class__ is {self._constant(kind.cls)}"
            return f"{self._constant(elements)}[{value}._value_] if {is_member} else {slow}"
        start, end = _tags(tag)
        if kind.arrow == "boolean" and kind.facets is None:
            true, false = (f'"{start}{word}{end}"' for word in ("true", "false"))
            return f"{true} if {value} is True else {false} if {value} is False else {slow}"
        if bounds := _bounds(kind):
            is_within = f"{value}.__class__ is int and {bounds[0]} <= {value} <= {bounds[1]}"
            return f'f"{start}{{{value}}}{end}" if {is_within} else {slow}'
        cls = _REPEATED.get(kind.arrow) if type(kind) is SimpleType else None
        is_alike = f"is {self._constant(cls)}" if cls else "in REPEATED"
        return f"{self._constant(elements)}[{value}] if {value}.__class__ {is_alike} else {slow}"

    def _object(self, out: Out, value: str, into: str, noted: frozenset[str]) -> Iterator[str]:
        """The element of a child object: written here where its class is small, or by the function of its class; by
        `piece` where the element says what it is."""
        tag = wire(out.tag)
        plan = self._written_here(out)
        if plan is not None:
            yield f"if {value}.__class__ is {self._constant(out.target.cls)}:"
            yield from (" " + line for line in self._element(plan, value, tag, into, noted))
            yield f"else: {into} = {self._constant(Plans(out).element)}(w, {value})"
            return
        yield f"p = {self._constant(Plans(out))}[{value}.__class__]"
        yield "if p is None:"
        yield f" {into} = w.piece({self._constant(out)}, {value})"
        yield "else:"
        yield f" {into} = p.code(w, {value}) if p.code is not None else inner_text(w, p, {value})"
        yield f" {into} = {_tagged(tag, into)}"

    def _written_here(self, out: Out) -> WritePlan | None:
        """The plan of a child that this function writes itself: small, and met before."""
        table: ClassTable = out.target
        plan = table.writing
        if plan is None or table.abstract or table.declared.abstract or plan in self._inside:
            return None
        small = len(plan.outs) <= _SMALL and len(self._inside) <= _DEEPEST and self._variables < _MOST_VARIABLES
        return plan if small and _is_able(plan) else None


def _is_plain_text(out: Out) -> bool:
    return out.kind == PLAIN and not out.many


def _runs(outs: Sequence[Out]) -> Iterator[list[Out]]:
    """The fields one by one, but plain texts beside each other together."""
    run: list[Out] = []
    for out in outs:
        if run and not (_is_plain_text(out) and _is_plain_text(run[0]) and len(run) < _LONGEST_RUN):
            yield run
            run = []
        run.append(out)
    if run:
        yield run


def _fetched(outs: Sequence[Out], names: dict[str, str], obj: str) -> Iterator[str]:
    """Sets the variables of single plain texts to their wire texts."""
    for out in outs:
        name = names[out.name]
        yield f"{name} = {obj}.{out.name}"
        yield f"if {name}.__class__ is not str{'' if out.required else f' and {name} is not None'}: raise Odd"
    if outs:
        yield from _looked_over([(names[out.name], out.required) for out in outs])


def _looked_over(names: Sequence[tuple[str, bool]]) -> Iterator[str]:
    """Sees that texts may be written as they are; those that may not are mended.

    Args:
        names: variables, and whether each holds a text in any case.
    """
    text = names[0][0]
    if len(names) > 1 or not names[0][1]:
        text = "j"
        together = "".join(f"{{{name}}}" if is_text else f"{{{name} or ''}}" for name, is_text in names)
        yield f'j = f"{together}"'
    if len(names) <= _FEW:
        plain = f"len({text}) < {_LONG} and {text}.isascii() and {text}.isprintable()"
        yield f'if not ({plain}) or "&" in {text} or "<" in {text} or ">" in {text}:'
    else:
        yield f"if not {text}.isascii() or len({text}.encode().translate(None, SUSPECT)) != len({text}):"
    both = "".join(f"{name}, " for name, _ in names)
    yield f" {both}= mended({text}, ({both}))"


def _joined(pairs: Sequence[tuple[str, str]], into: str, around: str = "") -> Iterator[str]:
    """Sets `into` to the elements of plain texts that are in wire text or None.

    Args:
        pairs: tags and variables.
        into: the variable.
        around: tag of an element around them.
    """
    start, end = _tags(around)
    tag, name = pairs[0]
    alone = f'{into} = f"<{tag}>{{{name}}}</{tag}>" if {name} else "" if {name} is None else "<{tag}/>"'
    if len(pairs) == 1 and not around:
        yield alone
        return
    yield f"if {' and '.join(name for _, name in pairs)}:"
    together = "".join(f"<{tag}>{{{name}}}</{tag}>" for tag, name in pairs)
    yield f' {into} = f"{start}{together}{end}"'
    yield "else:"
    yield " " + alone
    for tag, name in pairs[1:]:
        yield f' if {name}: {into} += f"<{tag}>{{{name}}}</{tag}>"'
        yield f' elif {name} is not None: {into} += "<{tag}/>"'
    if around:
        yield f" {into} = {_tagged(around, into)}"


def _tags(tag: str) -> tuple[str, str]:
    return (f"<{tag}>", f"</{tag}>") if tag else ("", "")


def _tagged(tag: str, name: str) -> str:
    """An expression for the element of a wire text; the text itself where there is no tag."""
    return f'f"<{tag}>{{{name}}}</{tag}>" if {name} else "<{tag}/>"' if tag else name


def _bounds(kind: SimpleType) -> tuple[int, int] | None:
    """The bounds of a whole number that has no other facets; None for other types."""
    facets = kind.facets
    if type(kind) is not SimpleType or kind.arrow not in ("integer", "long") or facets is None:
        return None
    least, most = facets.minimum, facets.maximum
    plain = type(least) is int and type(most) is int and facets == Facets(minimum=least, maximum=most)
    return (least, most) if plain else None


class Plans(dict[Any, WritePlan | None]):
    """Classes of the objects of one field, with their plans; None for those whose element says what they are."""

    def __init__(self, out: Out) -> None:
        super().__init__()
        self._out = out

    def __missing__(self, cls: Any) -> WritePlan | None:
        table: ClassTable | None = getattr(cls, "__xml__", None)
        if table is None:
            raise Odd
        target: ClassTable = self._out.target
        same = table is target or (table.declared is target.declared and not self._out.field.head)
        plain = same and not table.abstract and not table.declared.abstract
        plan = self[cls] = write_plan(table) if plain else None
        return plan

    def element(self, writer: ObjectWriter, value: Any) -> str:
        """The element of an object, in wire text.

        Raises:
            Odd: the encoder has to write what is around it.
        """
        plan = self[value.__class__]
        if plan is None:
            return writer.piece(self._out, value)
        return element(wire(self._out.tag), inner_text(writer, plan, value))
