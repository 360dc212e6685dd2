"""The order of definitions in a module: enumerations, then classes in the order of the schema, each after its base."""

from __future__ import annotations

from mtosi_codegen.model import ClassDef, Model


def run(model: Model) -> None:
    """Sort every module."""
    for module in model.modules:
        module.enums.sort(key=lambda enum: (enum.place, enum.path))
        module.faults.sort(key=lambda fault: fault.name)
        module.classes = bases_first(sorted(module.classes, key=lambda cls: (cls.place, cls.path)))


def bases_first(classes: list[ClassDef]) -> list[ClassDef]:
    """The classes in the given order, but each after its bases."""
    here = set(classes)
    done: dict[ClassDef, None] = {}
    for cls in classes:
        for ancestor in reversed(list(cls.lineage())):
            if ancestor in here:
                done[ancestor] = None
    return list(done)
