"""For columnar readers: what reads values from the text of a document without making objects of them.

Whoever fills columns, or takes an envelope apart without a tree, works on the same shapes and plans as the readers of
objects. All of this may change with them; programs that want objects use `mtosi_jms.xmlbind`.
"""

from __future__ import annotations

from mtosi_jms.xmlbind._fast import NOT_PLAIN, Odd
from mtosi_jms.xmlbind._native import Enveloped, read_enveloped
from mtosi_jms.xmlbind._pieces import Islands, unescaped
from mtosi_jms.xmlbind._plan import OBJECT, STRING, Slot, plan_of
from mtosi_jms.xmlbind._scan import (
    SMALLEST,
    Cut,
    Recipe,
    Recipes,
    content_of,
    cut_body,
    is_shell,
    matched,
    parsed_shell,
    plain_octets,
    plain_text,
    scanners,
)
from mtosi_jms.xmlbind._scanner import Scanner
from mtosi_jms.xmlbind._scanplan import ISLAND, TEXT, Cell, Child, Layout, Shape, Steps, Unable

__all__ = [
    "ISLAND",
    "NOT_PLAIN",
    "OBJECT",
    "SMALLEST",
    "STRING",
    "TEXT",
    "Cell",
    "Child",
    "Cut",
    "Enveloped",
    "Islands",
    "Layout",
    "Odd",
    "Recipe",
    "Recipes",
    "Scanner",
    "Shape",
    "Slot",
    "Steps",
    "Unable",
    "content_of",
    "cut_body",
    "is_shell",
    "matched",
    "parsed_shell",
    "plain_octets",
    "plain_text",
    "plan_of",
    "read_enveloped",
    "scanners",
    "unescaped",
]
