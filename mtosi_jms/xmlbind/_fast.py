"""The fast path of reading: documents as most of them are, with nothing to report.

Everything is settled beforehand in a dictionary from tag to what is to be done. Whatever does not fit raises, and the
object is read again by the slow path, which keeps and reports it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Protocol

from lxml import etree

from mtosi_jms.xmlbind._plan import KEEP, LEAF, OBJECT, STRING, Plan, Slot, plan_of
from mtosi_jms.xmlbind._registry import XSI_NIL
from mtosi_jms.xmlbind._simpletypes import SimpleType
from mtosi_jms.xmlbind._table import ClassTable
from mtosi_jms.xmlbind._values import BLANKS, NIL, Nil

_STRING: Final = 0
_LEAF: Final = 1
_OBJECT: Final = 2
_TEXT: Final = 3
_OTHER: Final = 4

_MOST_KNOWN: Final = 512
_LONGEST_KNOWN: Final = 64


class Reader(Protocol):
    """What the fast path needs of the reader of a document.

    Attributes:
        attributed: whether any element that is read may have attributes.
    """

    attributed: bool

    def child(self, child: etree._Element, slot: Slot) -> Any:
        """The value of a child that is an object or stays XML; None if it can only be kept as XML."""


class Odd(Exception):
    """Something that the fast path does not settle."""


NOT_PLAIN: Final = (Odd, KeyError, ValueError, ArithmeticError)
"""What the fast path raises when it gives up."""


class Known(dict[Any, Any]):
    """Texts of a simple type with their values; a text that is asked for the first time is converted.

    The values of an inventory repeat, so the last conversions are remembered, up to a bound.
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
    """Texts of simple content of type string: each is its own value."""

    def __missing__(self, text: str | None) -> str:
        return text or ""


class FastPlan:
    """What the fast path knows of one class.

    Attributes:
        slots: by Clark name: field, code, position, the position that what follows has to exceed (one less than its own
            where the field is a list), target. None until the class is first met.
        plan: the plan of the slow path.
        able: whether objects of the class may be read this way.
        required: names of fields that must have been found.
    """

    __slots__ = ("able", "cls", "plan", "required", "slots")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.able = is_plain(plan)
        self.cls = plan.cls
        self.required = plan.required
        self.slots: dict[Any, tuple[str, int, int, int, Any]] | None = None

    def fill(self) -> dict[Any, tuple[str, int, int, int, Any]]:
        """The slots, made at first need."""
        slots = {tag: _fast_slot(slot) for tag, slot in self.plan.slots.items()}
        self.slots = slots
        return slots


def _fast_slot(slot: Slot) -> tuple[str, int, int, int, Any]:
    code, target = _code(slot)
    return slot.name, code, slot.order, slot.order - 1 if slot.many else slot.order, target


def _code(slot: Slot) -> tuple[int, Any]:
    if slot.kind == STRING:
        return _STRING, None
    if slot.kind == LEAF:
        return _LEAF, Known(slot.target)
    if slot.kind == KEEP:
        return _OTHER, slot
    plan = plan_of(slot.target)
    if slot.target.abstract or any(known.field.min for known in plan.attributes.values()):
        return _OTHER, slot
    if plan.text is not None:
        kind: SimpleType = plan.text.target
        return _TEXT, (plan.cls, plan.text.name, Itself() if plan.text.kind == STRING else Known(kind))
    inner = fast_plan(slot.target)
    return (_OBJECT, inner) if inner.able else (_OTHER, slot)


def is_plain(plan: Plan) -> bool:
    """Whether the elements of a class are one sequence of known ones, so that the fast path can read them.

    A wildcard beside them does no harm, as what it takes is unknown here and goes the slow way; every resource has one
    for the ITU's states, and hardly any document uses it.
    """
    free = {wild.name for wild in plan.wildcards}
    counted = [name for name, _, _ in plan.bounded if name not in free]
    known = bool(plan.slots) or not free
    return plan.ordered and known and not counted and plan.mixed is None and plan.text is None


def fast_plan(table: ClassTable) -> FastPlan:
    """The fast plan of a table, made at first use."""
    if table.fast is None:
        table.fast = FastPlan(plan_of(table))
    made: FastPlan = table.fast
    return made


# One loop on purpose: every call in it would be paid for each element of an inventory. All objects take their elements
# from one iterator over the document; that a leaf has children is seen when some are left over at the end.
def read_fast(  # noqa: C901, PLR0912
    element: etree._Element, elements: Iterator[etree._Element], plan: FastPlan, reader: Reader
) -> Any:
    """The object of an element without attributes.

    Whether there are attributes at all is asked once for the whole document: for each element it would take as long as
    its text.

    Args:
        element: the element.
        elements: all nodes that follow it in the document; those inside it are taken from here.
        plan: the plan of its class, which must be plain.
        reader: reads what has to be read in another way.

    Raises:
        NOT_PLAIN: the slow path has to read it.
    """
    text = element.text
    if text is not None and text.strip(BLANKS):
        raise Odd
    slots = plan.slots or plan.fill()
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
        elif code == _STRING:
            value = child.text or ""
        elif code == _LEAF:
            value = target[child.text]
        elif code == _OBJECT:
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


def _with_attributes(child: etree._Element, elements: Iterator[etree._Element], plan: FastPlan, reader: Reader) -> Any:
    slot = plan.plan.slots[str(child.tag)]
    if slot.kind in (OBJECT, KEEP):
        return _other(child, elements, slot, reader)
    if slot.field.nillable and child.items() == [(XSI_NIL, "true")] and not child.text:
        return NIL
    raise Odd


def _other(child: etree._Element, elements: Iterator[etree._Element], slot: Slot, reader: Reader) -> Any:
    """The value of an element that is read in another way; what is inside it is passed over."""
    if len(child):
        inside = sum(1 for _ in child.iter()) - 1
        deque(islice(elements, inside), maxlen=0)
    value = reader.child(child, slot)
    if value is None or (isinstance(value, Nil) and not slot.field.nillable):
        raise Odd
    return value
