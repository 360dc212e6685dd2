"""Inventory objects in messages: which classes are objects, and where objects are in flat replies and nested layouts.

This package uses only lxml and the tables of the stubs. The Spark source and the commands use it.
"""

from __future__ import annotations

from mtosi_jms.inventory._layout import (
    Above,
    Hit,
    Place,
    Relations,
    Route,
    Routes,
    above_of,
    actual_table,
    escaped,
    find_objects,
    given_name,
    name_tag,
    name_text,
    node_hit,
    node_of,
    parents_of,
    place_of,
    quality_of,
    relations_of,
)
from mtosi_jms.inventory._objects import (
    ALL,
    MESSAGE,
    OBJECT_TYPES,
    class_for,
    global_elements,
    is_object,
    label_of,
    load_stubs,
    tables_of_namespace,
    type_class,
)
from mtosi_jms.inventory._release1 import RENAMED, converted_content, is_release1

__all__ = [
    "ALL",
    "MESSAGE",
    "OBJECT_TYPES",
    "RENAMED",
    "Above",
    "Hit",
    "Place",
    "Relations",
    "Route",
    "Routes",
    "above_of",
    "actual_table",
    "class_for",
    "converted_content",
    "escaped",
    "find_objects",
    "given_name",
    "global_elements",
    "is_object",
    "is_release1",
    "label_of",
    "load_stubs",
    "name_tag",
    "name_text",
    "node_hit",
    "node_of",
    "parents_of",
    "place_of",
    "quality_of",
    "relations_of",
    "tables_of_namespace",
    "type_class",
]
