"""The fast path of reading, for documents with nothing to report, as most are.

A dictionary says for each tag what to do. Anything that does not fit raises an exception. The object is then read again
by the slow path, which keeps and reports what does not fit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from lxml import etree

from mtosi_jms.xmlbind._plan import KEEP, LEAF, OBJECT, STRING, Plan, Slot, plan_of
from mtosi_jms.xmlbind._registry import XSI_NIL
from mtosi_jms.xmlbind._simpletypes import SimpleType
from mtosi_jms.xmlbind._values import BLANKS, NIL, Nil

_TEXT: Final = 4
"""Of a class with simple content, beside the kinds of a plan."""

_MOST_KNOWN: Final = 512
_LONGEST_KNOWN: Final = 64


class Odd(Exception):
    """An element that the fast path cannot read."""


NOT_PLAIN: Final = (Odd, KeyError, ValueError, ArithmeticError)
"""The exceptions of the fast path when it gives up."""


class Known(dict[Any, Any]):
    """A cache of the values of texts of a simple type.

    The values of an inventory repeat, so the first conversions are remembered, up to a limit.
    """

    def __init__(self, kind: SimpleType) -> None:
        super().__init__(kind.known)
        self._kind = kind

    def __missing__(self, text: str | None) -> Any:
        value = self._kind.exact(text or "")
        if len(self) < _MOST_KNOWN and len(text or "") <= _LONGEST_KNOWN and type(value) is not list:
            self[text] = value
        return value


class Itself(dict[Any, Any]):
    """The values of texts of type string: each text is its own value."""

    def __missing__(self, text: str | None) -> str:
        return text or ""


def _filled(plan: Plan) -> dict[Any, tuple[str, int, int, int, Any]]:
    plan.fast = {tag: _fast_slot(slot) for tag, slot in plan.slots.items()}
    return plan.fast


def _fast_slot(slot: Slot) -> tuple[str, int, int, int, Any]:
    code, target = slot.kind, slot.target
    if code == LEAF:
        target = Known(target)
    elif code == KEEP:
        target = slot
    elif code == OBJECT:
        code, target = _object(slot)
    return slot.name, code, slot.order, slot.order - 1 if slot.many else slot.order, target


def _object(slot: Slot) -> tuple[int, Any]:
    plan = plan_of(slot.target)
    if slot.target.abstract or any(known.field.min for known in plan.attributes.values()):
        return KEEP, slot
    if plan.text is not None:
        known = Itself() if plan.text.kind == STRING else Known(plan.text.target)
        return _TEXT, (plan.cls, plan.text.name, known)
    return (OBJECT, plan) if plan.able else (KEEP, slot)


# This is one loop on purpose: a function call in it would cost time for each element of an inventory. All objects take
# their elements from one iterator over the document. If a leaf has children, some elements are left over at the end.
def read_fast(  # noqa: C901, PLR0912
    element: etree._Element, elements: Iterator[etree._Element], plan: Plan, reader: Any
) -> Any:
    """Return the object of an element without attributes.

    Whether there are attributes at all is checked once for the whole document: a check of each element would take as
    long as reading its text.

    Args:
        elements: an iterator over all nodes that follow it in the document; those inside the element are taken from it.

    Raises:
        NOT_PLAIN: the slow path has to read the element.
    """
    text = element.text
    if text is not None and text.strip(BLANKS):
        raise Odd
    slots = plan.fast or _filled(plan)
    attributed = reader.attributed
    values: dict[str, Any] = {}
    last = -1
    for child in islice(elements, len(element)):
        text = child.tail
        if text is not None and text.strip(BLANKS):
            raise Odd
        name, code, order, again, target = slots[child.tag]
        if order <= last:
            raise Odd
        last = again
        value: Any
        if attributed and child.keys():
            value = _with_attributes(child, elements, plan, reader)
        elif code == STRING:
            value = child.text or ""
        elif code == LEAF:
            value = target[child.text]
        elif code == OBJECT:
            value = read_fast(child, elements, target, reader)
        elif code == _TEXT:
            cls, field, known = target
            value = cls(**{field: known[child.text]})
        else:
            value = _other(child, elements, target, reader)
        if again == order:
            values[name] = value
        elif name in values:
            values[name].append(value)
        else:
            values[name] = [value]
    for name in plan.required:
        if name not in values:
            raise Odd
    return plan.cls(**values)


def _with_attributes(child: etree._Element, elements: Iterator[etree._Element], plan: Plan, reader: Any) -> Any:
    slot = plan.slots[str(child.tag)]
    if slot.kind in (OBJECT, KEEP):
        return _other(child, elements, slot, reader)
    if slot.field.nillable and child.items() == [(XSI_NIL, "true")] and not child.text:
        return NIL
    raise Odd


def _other(child: etree._Element, elements: Iterator[etree._Element], slot: Slot, reader: Any) -> Any:
    """Return the value of a child that the reader reads; the iterator skips the elements inside it."""
    if len(child):
        inside = sum(1 for _ in child.iter()) - 1
        deque(islice(elements, inside), maxlen=0)
    value = reader.child(child, slot)
    if value is None or (isinstance(value, Nil) and not slot.field.nillable):
        raise Odd
    return value
