"""The fast path of writing: a function for each class that has been written often enough.

The function is made of the class's write plan: its tags stand in it as constants, and each field is looked at once.
Whatever it does not foresee raises `Odd`, and the object is written again by the encoder, which knows all cases and
says where something is wrong.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.xmlbind.fast import Odd
from mtosi_jms.xmlbind.simpletypes import EnumType, QNameType, SimpleType
from mtosi_jms.xmlbind.table import ClassTable
from mtosi_jms.xmlbind.values import Nil
from mtosi_jms.xmlbind.writeplan import ANY, OBJECT, PLAIN, RAW_XML, Out, WritePlan, escape_text, write_plan

if TYPE_CHECKING:
    from mtosi_jms.xmlbind.encoder import Writer

WORTH_MAKING = 8
"""Objects of a class after which it is worth a function."""

_MOST_KNOWN: Final = 512
_LONGEST_KNOWN: Final = 64

_REPEATED: Final = frozenset({str, int, dt.date})
"""Classes whose equal values have equal texts."""


class Texts(dict[Any, str]):
    """Values of a simple type with their texts, escaped; the last ones are remembered, up to a bound."""

    def __init__(self, kind: SimpleType) -> None:
        super().__init__()
        self._kind = kind

    def of(self, value: Any) -> str:
        """The text of a value that is not remembered.

        Raises:
            Odd: it has none.
        """
        if isinstance(value, Nil):
            raise Odd
        try:
            return escape_text(self._kind.format(value))
        except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError):
            raise Odd from None

    def __missing__(self, value: Any) -> str:
        text = self.of(value)
        if len(self) < _MOST_KNOWN and len(text) <= _LONGEST_KNOWN:
            self[value] = text
        return text


def inner_text(writer: Writer, plan: WritePlan, obj: Any) -> str:
    """What stands inside the element of an object.

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


def _never(writer: Writer, obj: Any) -> str:
    raise Odd


class _Coder:
    """Writes the function of one class.

    It consists of field names of generated classes, tags, and names made here for constants.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._constants: dict[str, Any] = {"Odd": Odd, "escape": escape_text, "repeated": _REPEATED, "plan": plan}

    def function(self) -> Callable[[Writer, Any], str]:
        """The function; one that always raises for a class that only the encoder can write."""
        plan = self._plan
        if plan.reading.grammar is not None or plan.mixed is not None or any(out.required for out in plan.attributes):
            return _never
        outs = (plan.text,) if plan.text is not None else plan.outs
        # A wildcard that must have something, and a name that depends on namespaces in scope, are for the encoder.
        if any((out.kind in (ANY, RAW_XML) and out.required) or isinstance(out.target, QNameType) for out in outs):
            return _never
        lines = ["def code(w, o):", " if o.extras is not None: raise Odd", " w.names.plans.add(plan)", " t = ''"]
        lines += [f" if o.{out.name} is not None: raise Odd" for out in plan.attributes]
        for out in outs:
            lines += [f" v = o.{out.name}", *(" " + line for line in self._field(out))]
        exec("\n".join([*lines, " return t"]), self._constants)  # noqa: S102
        made: Callable[[Writer, Any], str] = self._constants["code"]
        return made

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _field(self, out: Out) -> Iterator[str]:
        if out.required:
            yield "if v is None: raise Odd"
            yield from self._present(out)
        else:
            yield "if v is not None:"
            yield from (" " + line for line in self._present(out))

    def _present(self, out: Out) -> Iterator[str]:
        if not out.many:
            yield from self._value(out)
            return
        least, most = out.field.min, out.field.max
        yield "if v.__class__ is not list: raise Odd"
        if least > 0:
            yield f"if len(v) < {least}: raise Odd"
        if most is not None:
            yield f"if len(v) > {most}: raise Odd"
        yield "for v in v:"
        yield from (" " + line for line in self._value(out))

    def _value(self, out: Out) -> Iterator[str]:
        if out.kind in (ANY, RAW_XML):
            yield "raise Odd"
        elif out.kind == OBJECT:
            yield from self._object(out)
        elif out.kind == PLAIN:
            yield "if v.__class__ is not str: raise Odd"
            yield 'if "&" in v or "<" in v or ">" in v or "\\r" in v: v = escape(v)'
            yield self._tagged(out)
        else:
            yield from self._simple(out)
            yield self._tagged(out)

    def _tagged(self, out: Out) -> str:
        """Adds `v` to the text, in its tags where it has any."""
        if not out.tag:
            return "t += v"
        return f't += f"{out.start}{{v}}{out.end}" if v else "<{out.tag}/>"'

    def _simple(self, out: Out) -> Iterator[str]:
        kind: SimpleType = out.target
        texts = Texts(kind)
        slow = self._constant(texts.of)
        if isinstance(kind, EnumType):
            known = self._constant({str(text): escape_text(str(text)) for text in kind.known})
            listed = f"{known}.get(v._value_) if v.__class__ is {self._constant(kind.cls)} else None"
            yield f"v = ({listed}) or {slow}(v)"
        elif kind.arrow == "boolean" and kind.facets is None:
            yield f'v = "true" if v is True else "false" if v is False else {slow}(v)'
        else:
            yield f"v = {self._constant(texts)}[v] if v.__class__ in repeated else {slow}(v)"

    def _object(self, out: Out) -> Iterator[str]:
        """A child object: by the function of its class where it stands in its place without more, else by `piece`."""
        plans = self._constant(Plans(out))
        yield f"p = {plans}[v.__class__]"
        yield "if p is None:"
        yield f" t += w.piece({self._constant(out)}, v)"
        yield "else:"
        yield f" v = p.code(w, v) if p.code is not None else {self._constant(inner_text)}(w, p, v)"
        yield " " + self._tagged(out)


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
