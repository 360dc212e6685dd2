"""The passes from components to what is generated, one file each; `run` is the order."""

from __future__ import annotations

from mtosi_codegen.model import Model
from mtosi_codegen.passes import (
    bases,
    classes,
    content,
    cycles,
    derivation,
    faults,
    groups,
    modules,
    names,
    operations,
    order,
    prune,
    simple_elements,
    substitution,
    values,
)


def run(model: Model) -> None:
    """All passes in order. (`dedupe` comes before: it makes the model's schema set.)"""
    groups.run(model)  # no group references any more
    classes.run(model)  # a class for each complex type and element
    values.run(model)  # simple types; a class for each enumeration
    bases.run(model)  # what derives from what
    content.run(model)  # fields and content models
    derivation.run(model)  # own and inherited fields
    substitution.run(model)  # heads and members
    simple_elements.run(model)  # references to elements of simple type
    operations.run(model)  # operations and the classes of their messages
    faults.run(model)  # kinds of faults
    prune.run(model)  # only what the chosen operations need
    modules.run(model)  # one for each namespace, one for each service
    names.run(model)  # Python names
    cycles.run(model)  # modules that must share a home
    order.run(model)  # definitions after what they need
