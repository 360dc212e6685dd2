"""The passes from schema components to the model that is rendered, `run` has their order."""

from __future__ import annotations

from mtosi_codegen.model import Model
from mtosi_codegen.passes import (
    bases,
    classes,
    content,
    derivation,
    groups,
    modules,
    names,
    operations,
    order,
    prune,
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
    derivation.substitution(model)  # heads and members
    derivation.simple_elements(model)  # references to elements of simple type
    operations.run(model)  # operations and the classes of their messages
    operations.faults(model)  # kinds of faults
    prune.run(model)  # only what the chosen operations need
    modules.run(model)  # one for each namespace, one for each service
    names.run(model)  # Python names
    order.cycles(model)  # modules that must share a home
    order.order(model)  # definitions after what they need
