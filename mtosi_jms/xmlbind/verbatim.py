"""Objects that were read and never looked at, written as they came: their text instead of their values.

What an unread object holds is proven to be what its class wants, and it is in wire text already. So it may go out
again as it is, blanks between its tags included, if the tags in it are the ones that we write: with the same prefixes,
which then stand for the same namespaces.
"""

from __future__ import annotations

import re
from gc import get_referents
from types import MethodType
from typing import TYPE_CHECKING, Any

from mtosi_jms.xmlbind.proofs import proof_of_cell
from mtosi_jms.xmlbind.scanplan import Shape
from mtosi_jms.xmlbind.unread import BARE
from mtosi_jms.xmlbind.writeplan import WritePlan, write_plan

if TYPE_CHECKING:
    from mtosi_jms.xmlbind.encoder import Writer


def plans_in(shape: Shape) -> frozenset[WritePlan] | None:
    """The plans of the classes whose elements stand in the texts of a shape.

    Args:
        shape: a shape with a proof, which finds the texts.

    Returns:
        None where we would write other tags.
    """
    plan = write_plan(shape.table)
    found = {plan}
    for cell in shape.cells:
        if proof_of_cell(cell, "") is None:  # no text of the shape has it
            continue
        out = plan.by_name.get(cell.slot.name)
        tag = cell.tag if cell.inner is None else cell.inner.tag
        if out is None or re.escape(out.tag) != tag:
            return None
        if cell.inner is not None:
            inner = plans_in(cell.inner)
            if inner is None:
                return None
            found |= inner
    return frozenset(found)


def as_it_came(writer: Writer, obj: Any, held: MethodType) -> str | None:
    """What stands inside the element of an unread object, as wire text; None where it has to be written anew.

    Args:
        writer: notes which namespaces are needed.
        obj: the object.
        held: what its slot of `extras` holds.
    """
    plans: frozenset[WritePlan] | None = getattr(held, "plans", None)
    if plans is None or len(get_referents(obj)) > BARE:  # a field was set
        return None
    writer.names.plans |= plans
    text: str = held.__self__  # type: ignore[assignment]
    return text[text.index(">") + 1 : text.rindex("</")]
