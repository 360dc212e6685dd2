"""XML that stays XML in a column, and open content as a map of texts.

The map's keys are paths of local names below the open element, repeated names numbered from 2
(`meExt/att1`, `meExt/att1[2]`, `meExt/@unit`); its values are the texts. Names lose their namespaces there; the XML
beside the map has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lxml import etree

from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import RawXml, XmlObject, to_element


class Extension(NamedTuple):
    """Open content.

    Attributes:
        texts: (path, text) pairs.
        xml: its elements as XML, one after the other.
    """

    texts: list[tuple[str, str]]
    xml: str


def xml_text(value: Any) -> str:
    """An element, kept XML or an object of an element's class as XML text that stands for itself."""
    if isinstance(value, etree._Element):
        return RawXml.from_element(value).xml.decode()
    if isinstance(value, RawXml):
        return value.xml.decode()
    if isinstance(value, XmlObject) and value.__xml__.element is not None:
        return RawXml.from_element(to_element(value)).xml.decode()
    return str(value)


def extension_of(value: Any) -> Extension:
    """The content of an element with open content, or of the object decoded from it."""
    if isinstance(value, etree._Element):
        children = list(value)
    else:
        children = [_element(item) for items in _lists(value) for item in items]
    texts = _Texts()
    for child in children:
        texts.add(child, "")
    return Extension(list(texts.found.items()), "".join(xml_text(child) for child in children))


def _lists(value: XmlObject) -> Iterator[list[Any]]:
    for field in value.__xml__.fields:
        held = getattr(value, field.name)
        if isinstance(held, list):
            yield held


def _element(item: Any) -> etree._Element:
    return item.element() if isinstance(item, RawXml) else to_element(item)


def texts_of(element: etree._Element, skip: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """All texts below an element as (path, text) pairs, children with a local name in `skip` left out."""
    texts = _Texts()
    texts.attributes(element, "")
    for child in element:
        if split_clark(str(child.tag))[1] not in skip:
            texts.add(child, "")
    return list(texts.found.items())


class _Texts:
    """Texts by path while they are collected."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._seen: dict[str, int] = {}

    def add(self, element: etree._Element, above: str) -> None:
        path = above + split_clark(str(element.tag))[1]
        number = self._seen[path] = self._seen.get(path, 0) + 1
        if number > 1:
            path = f"{path}[{number}]"
        self.attributes(element, f"{path}/")
        text = str(element.text or "")
        if not len(element):
            self.found[path] = text
            return
        if text.strip():
            self.found[path] = text.strip()
        for child in element:
            self.add(child, f"{path}/")

    def attributes(self, element: etree._Element, above: str) -> None:
        for name, value in element.items():
            self.found.setdefault(f"{above}@{split_clark(str(name))[1]}", str(value))
