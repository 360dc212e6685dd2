"""Makes elements where a WSDL has only types: the wrappers of the rpc style, and parts with a type.

They go into the schema set beside the elements of the schemas, so all later steps handle only messages of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mtosi_codegen.wsdl.model import Part
from mtosi_codegen.xsd.model import ONCE, ComplexType, Compositor, Element, ElementUse, Place, QName, SchemaSet

_ANYTHING: Final = ("anything",)


class MadeElements:
    """Adds elements to a schema set; adding the same element twice is allowed."""

    def __init__(self, schema: SchemaSet) -> None:
        self._schema = schema
        self._made: dict[QName, tuple[object, ...]] = {}

    def means_element(self, name: QName) -> bool:
        """Whether the name in a `type` attribute is in fact that of an element, and of no type."""
        return name not in self._schema.types and name in self._schema.elements

    def wrapper(self, name: QName, parts: Sequence[Part], place: Place, doc: str) -> bool:
        """Add an element that wraps the parts of a message (rpc style).

        Returns:
            Whether the element has that content. False if an element of that name has other content; that element
            admits any content from now on.
        """
        content = Compositor("sequence", ONCE, tuple(_accessor(part) for part in parts)) if parts else None
        made = Element(name, place, ComplexType(None, place, content=content), doc=doc)
        return self._add(made, tuple((part.name, part.element, part.type) for part in parts))

    def typed(self, name: QName, type_: QName | None, place: Place, doc: str) -> bool:
        """Add an element of a type; returns the same as `wrapper`."""
        return self._add(Element(name, place, type_, doc=doc), (type_,))

    def is_taken(self, name: QName) -> bool:
        """Whether the name is that of an element other than an empty wrapper."""
        return name in self._schema.elements and self._made.get(name) != ()

    def _add(self, element: Element, shape: tuple[object, ...]) -> bool:
        known = self._schema.elements.setdefault(element.name, element)
        if known is element:
            self._made[element.name] = shape
        elif self._made.get(element.name) != shape:
            known.type = None
            self._made[element.name] = _ANYTHING
        return self._made[element.name] == shape


def _accessor(part: Part) -> ElementUse:
    """The element for a part in a wrapper: one without namespace (WS-I R2735), or the one that the part names."""
    if part.element is not None:
        return ElementUse(part.element, part.place, ONCE, reference=True)
    return ElementUse(QName("", part.name), part.place, ONCE, part.type)
