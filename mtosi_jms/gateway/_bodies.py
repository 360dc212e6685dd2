"""Elements of bodies, and their names: a request's, its response's, its exception's."""

from __future__ import annotations

from typing import Final

from mtosi_jms.xmlbind import RawXml, XmlObject, to_element

OF_REQUEST: Final = "Request"
"""How the name of a request's element ends."""


def renamed(body: object, tag: str) -> object:
    """The same content in another element."""
    if not isinstance(body, RawXml | XmlObject):
        return body
    element = to_element(body)
    element.tag = tag
    return RawXml.from_element(element)
