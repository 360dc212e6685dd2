"""The passes from schema components to the model that is rendered, one file each; `run` has their order."""

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
    """Run all passes in order. (`dedupe` runs before: it makes the model's schema set.)"""
    groups.run(model)  # group references replaced by their content
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
