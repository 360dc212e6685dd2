"""Elements that no pattern describes, inside documents that are read from their text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from mtosi_jms.xmlbind._canonical import declaration
from mtosi_jms.xmlbind.decoder import Reader
from mtosi_jms.xmlbind.fast import Odd
from mtosi_jms.xmlbind.issues import Issues
from mtosi_jms.xmlbind.parser import make_parser
from mtosi_jms.xmlbind.plan import Slot
from mtosi_jms.xmlbind.values import BLANKS, Nil

_LARGEST_ISLAND: Final = 4096
_DEEPEST_ISLAND: Final = 64
_PREFIX: Final = re.compile(r"(?<![^\s<>/=:\"'&;])([^\s<>/=:\"'&;]++):")
"""What may be a prefix, in names and in content."""
_DEEPER: Final = etree.XPath(f"boolean(/*{'/*' * (_DEEPEST_ISLAND + 1)})")


class Islands:
    """Reads elements that no pattern describes, each from a small tree of its own.

    Args:
        names: the namespaces in scope, by prefix.
    """

    __slots__ = ("_declared", "_default", "_parser")

    def __init__(self, names: Mapping[str | None, str]) -> None:
        self._declared = {prefix: declaration(prefix, space) for prefix, space in names.items() if prefix}
        self._default = declaration("", names[None]) if None in names else ""
        self._parser = make_parser()

    def __call__(self, text: str, slot: Slot) -> list[Any]:
        """The values of the elements of a slot that stand one after the other.

        Raises:
            NOT_PLAIN: they have to be read with the whole document: they are large, or leave something to report.
        """
        issues = Issues()
        reader = Reader(issues)
        values = [reader.child(element, slot) for element in self.elements(text, slot)]
        lost = issues.found or any(value is None for value in values)
        if lost or any(isinstance(value, Nil) and not slot.field.nillable for value in values):
            raise Odd
        return values

    def elements(self, text: str, slot: Slot) -> list[etree._Element]:
        """The elements of a slot that stand one after the other.

        Raises:
            NOT_PLAIN: as above.
        """
        root = self.parsed(text)
        if any(element.tag != slot.field.tag or (element.tail or "").strip(BLANKS) for element in root):
            raise Odd
        if len(root) > 1 and not slot.many:  # one that ended where no pattern sees it, and the next
            raise Odd
        return list(root)

    def parsed(self, text: str) -> etree._Element:
        """Any elements, below one that declares the namespaces in scope.

        Raises:
            NOT_PLAIN: as above.
        """
        if len(text) > _LARGEST_ISLAND:  # and so not too crowded
            raise Odd
        # To read all declarations again for each island would cost the product of their numbers.
        prefixes = self._declared.keys() if "&#" in text else self._declared.keys() & set(_PREFIX.findall(text))
        declared = [self._declared[prefix] for prefix in sorted(prefixes)]
        try:
            root = etree.fromstring(f"<sea{self._default}{''.join(declared)}>{text}</sea>", self._parser)
        except etree.XMLSyntaxError:
            raise Odd from None
        if text.count("</") > _DEEPEST_ISLAND and _DEEPER(root):
            raise Odd
        return root
