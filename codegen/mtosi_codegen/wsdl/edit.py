"""Changes addresses, ports and services in the text of a WSDL; every other byte stays as it is (P22)."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

from lxml import etree

from mtosi_codegen.load import Document
from mtosi_codegen.xsd.model import QName
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import WSDL

# The markup of well-formed XML without document type.
_ATTRIBUTE: Final = r"([^\s=<>/]+)\s*=\s*(\"[^\"<]*\"|'[^'<]*')"
_TOKEN: Final = re.compile(
    rf"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    rf"|<(?P<end>/?)(?P<tag>[^\s/<>!?]+)(?:\s+{_ATTRIBUTE})*\s*(?P<empty>/?)>",
    re.DOTALL,
)
_BOMS: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", '"': "&quot;", "'": "&apos;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


@dataclass(slots=True)
class _Span:
    """The position of an element in the text: its start tag, and the start of its end tag, -1 for an empty element."""

    tag: str
    start: int
    stop: int
    end: int = -1


class WsdlText:
    """The text of a WSDL, with the tree that was parsed from it. Raises SchemaError: the text does not match the tree,
    for example in an encoding that Python does not know."""

    def __init__(self, document: Document, data: bytes) -> None:
        self._document = document
        self._codec = _codec_of(document, data)
        try:
            self._text = data.decode(self._codec)
        except (LookupError, UnicodeDecodeError) as error:
            raise SchemaError(f"cannot be edited: {error}", file=document.name) from None
        elements, spans = list(document.root.iter("*")), _spans(self._text)
        if len(elements) != len(spans) or self._text.encode(self._codec) != data:
            raise SchemaError("cannot be edited: its text and its tree differ", file=document.name)
        self._spans = dict(zip(elements, spans, strict=True))
        self._edits: list[tuple[int, int, str]] = []

    def data(self) -> bytes:
        """The bytes with all changes made."""
        text = self._text
        for start, stop, new in sorted(self._edits, reverse=True):
            text = text[:start] + new + text[stop:]
        return text.encode(self._codec, errors="xmlcharrefreplace")

    def set_location(self, address: etree._Element, location: str) -> None:
        """Set the location of a SOAP address."""
        span = self._spans[address]
        name_end = span.start + 1 + len(span.tag)
        for match in re.finditer(rf"(?<=\s){_ATTRIBUTE}", self._text[name_end : span.stop]):
            if match[1] == "location":
                quote = match[2][0]
                start, stop = match.span(2)
                self._edits.append((name_end + start, name_end + stop, f"{quote}{_escaped(location)}{quote}"))
                return
        self._edits.append((name_end, name_end, f' location="{_escaped(location)}"'))

    def add_address(self, port: etree._Element, soap: str, location: str) -> None:
        """Add a SOAP address to a port that has none."""
        self._append(port, _address(port, soap, location))

    def add_port(self, name: str, binding: QName, soap: str, location: str) -> None:
        """Add a port to the service of that name; without such a service add one.

        Args:
            name: name of the interface; the service is called `<name>Jms`, the port `<name>SoapJms`.
            soap: namespace of the binding's SOAP version.
        """
        root = self._document.root
        wsdl, declared = _prefix(root, WSDL, "wsdl")
        target, more = _prefix(root, binding.namespace, "tns") if binding.namespace else ("", "")
        inner = _address(root, soap, location)
        reference = f'name="{_escaped(name)}SoapJms" binding="{target}{binding.local}"'
        found = [one for one in root.iterchildren(f"{{{WSDL}}}service") if one.get("name") == f"{name}Jms"]
        line = "\r\n" if "\r\n" in self._text else "\n"
        if found:
            self._append(found[0], f"<{wsdl}port{declared}{more} {reference}>{inner}</{wsdl}port>")
            return
        lines = [
            f'  <{wsdl}service{declared}{more} name="{_escaped(name)}Jms">',
            f"    <{wsdl}port {reference}>",
            f"      {inner}",
            f"    </{wsdl}port>",
            f"  </{wsdl}service>",
            "",
        ]
        self._append(root, line.join(lines))

    def _append(self, element: etree._Element, xml: str) -> None:
        span = self._spans[element]
        if span.end >= 0:
            self._edits.append((span.end, span.end, xml))
        else:
            slash = self._text.rindex("/", span.start, span.stop)
            self._edits.append((slash, span.stop, f">{xml}</{span.tag}>"))


def _codec_of(document: Document, data: bytes) -> str:
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return codec
    return str(document.root.getroottree().docinfo.encoding or "utf-8")


def _spans(text: str) -> list[_Span]:
    """The elements of a text in document order."""
    spans: list[_Span] = []
    open_: list[_Span] = []
    for match in _TOKEN.finditer(text):
        if match["tag"] is None:
            continue
        if match["end"]:
            if open_:
                open_.pop().end = match.start()
            continue
        spans.append(_Span(match["tag"], match.start(), match.end()))
        if not match["empty"]:
            open_.append(spans[-1])
    return spans


def _prefix(scope: etree._Element, namespace: str, preferred: str) -> tuple[str, str]:
    """A prefix with its colon for a namespace, and its declaration if none is in scope."""
    for prefix, uri in scope.nsmap.items():
        if uri == namespace:
            return f"{prefix}:" if prefix else "", ""
    while preferred in scope.nsmap:
        preferred += "_"
    return f"{preferred}:", f' xmlns:{preferred}="{_escaped(namespace)}"'


def _address(scope: etree._Element, soap: str, location: str) -> str:
    prefix, declared = _prefix(scope, soap, "soap")
    return f'<{prefix}address{declared} location="{_escaped(location)}"/>'


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)
