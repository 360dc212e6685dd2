"""References to global elements of simple type: the field holds the value itself, not an object around it.

The head of a substitution group keeps its class: its members differ by name, which a plain value would lose.
"""

from __future__ import annotations

from mtosi_codegen.model import Model, ObjectValue


def run(model: Model) -> None:
    """Replace the type of such fields."""
    for cls in model.classes:
        for field in cls.fields:
            if field.reference and not field.head and isinstance(field.type, ObjectValue):
                target = field.type.cls
                own = target.fields[0] if len(target.fields) == 1 else None
                if target.source is None and target.base is None and own is not None and own.kind == "text":
                    field.type = own.type
