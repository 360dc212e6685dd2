"""An editable copy of a schema or WSDL element, whose names are read as the generator reads them."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import Document
from mtosi_codegen.qnames import QNameReader
from mtosi_codegen.xsd.model import QName
from mtosi_jms.namespaces import XML

_PREFIX: Final = "mended"


class MendedXml:
    """A copy of an element of a document.

    Args:
        element: the root of the document, or a schema inside a WSDL.
        document: the document; its aliases apply to the names.

    Attributes:
        root: the copy; callers may edit it.
        used: namespaces of the qualified names in it.
    """

    def __init__(self, element: etree._Element, document: Document) -> None:
        self.root = _copy(element, {})
        self.used: set[str] = set()
        aliases = {wrong: right for wrong, right in document.aliases.items() if wrong != document.namespace}
        self._names = QNameReader(document.name, Findings(), aliases=aliases)
        self._pairs = dict(zip(element.iter(), self.root.iter(), strict=True))
        self._pending: dict[tuple[etree._Element, str], list[QName]] = {}

    def of(self, original: etree._Element) -> etree._Element:
        """The copy of an element."""
        return self._pairs[original]

    def qnames(self, element: etree._Element, attribute: str) -> list[QName]:
        """The qualified names in an attribute of the copy, with any that `set_qnames` set."""
        pending = self._pending.get((element, attribute))
        texts = (element.get(attribute) or "").split()
        return pending if pending is not None else [self._names.resolve(text, element) for text in texts]

    def set_qnames(self, element: etree._Element, attribute: str, names: Iterable[QName]) -> None:
        """Set the qualified names in an attribute of the copy."""
        self._pending[element, attribute] = list(names)
        self.used |= {name.namespace for name in self._pending[element, attribute]}

    def data(self) -> bytes:
        """The copy as bytes; a name keeps its prefix if that still means the right namespace."""
        extra: dict[str, str] = {}
        taken = {prefix for element in self.root.iter("*") for prefix in element.nsmap}
        for (element, attribute), names in self._pending.items():
            old = (element.get(attribute) or "").split()
            texts = []
            for number, name in enumerate(names):
                before = old[number] if len(old) == len(names) else ""
                texts.append(self._text(element, name, before, extra, taken))
            element.set(attribute, " ".join(texts))
        root = _copy(self.root, extra) if extra else self.root
        text: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=True)
        return text + b"\n"

    def _text(self, element: etree._Element, name: QName, before: str, extra: dict[str, str], taken: set[str]) -> str:
        prefix, _, local = before.rpartition(":")
        scope = element.nsmap
        if local == name.local and ":" not in prefix and (scope.get(prefix or None) or "") == name.namespace:
            return before
        if name.namespace == XML:
            return f"xml:{name.local}"
        if not name.namespace:
            return name.local
        for known, namespace in (*scope.items(), *((one, space) for space, one in extra.items())):
            if namespace == name.namespace:
                return f"{known}:{name.local}" if known else name.local
        number = next(n for n in range(1, len(taken) + 2) if f"{_PREFIX}{n}" not in taken)
        prefix = f"{_PREFIX}{number}"
        taken.add(prefix)
        extra[name.namespace] = prefix
        return f"{prefix}:{name.local}"


def _copy(element: etree._Element, extra: dict[str, str]) -> etree._Element:
    """A copy that declares all namespaces in scope and `extra` ones, which are prefixes by namespace."""
    nsmap = {**element.nsmap, **{prefix: namespace for namespace, prefix in extra.items()}}
    root = etree.Element(element.tag, dict(element.attrib), nsmap=nsmap)
    root.text = element.text
    root.extend([deepcopy(child) for child in element])
    return root


def remove(element: etree._Element) -> None:
    """Take an element out of its parent; the text after it stays."""
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + (element.tail or "")
    else:
        parent.text = (parent.text or "") + (element.tail or "")
    parent.remove(element)
