"""WSDLs of a deployment: the source WSDLs with the chosen addresses, and all files that they reach (P22).

All other bytes of a file stay. Files keep their relative locations, so their imports still work.
"""

from __future__ import annotations

import codecs
import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Finding, Findings
from mtosi_codegen.load import Document, Sources, load
from mtosi_codegen.load.documents import parse_again, source_bytes
from mtosi_codegen.model import Service
from mtosi_codegen.wsdl.join import outer_documents, services_of
from mtosi_codegen.wsdl.read import WsdlReader
from mtosi_codegen.xsd.model import QName, SchemaSet
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import WSDL, WSDL_SOAP11, WSDL_SOAP12

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


_ALLOWED: Final = "a name, or a URI, without blanks and control characters"


@dataclass(frozen=True, slots=True)
class Port:
    """An address that was set.

    Attributes:
        wsdl: path of the file with the address, below the folder, with `/`.
        added: whether the WSDL had no port for the binding.
    """

    service: str
    wsdl: str
    address: str
    added: bool


@dataclass(frozen=True, slots=True)
class Deployed:
    """The files to write.

    Attributes:
        files: bytes by path below the folder, with `/`.
        originals: their source files, by the same paths.
        ports: the addresses, in the order of services and files.
    """

    files: Mapping[str, bytes]
    originals: Mapping[str, Path]
    ports: tuple[Port, ...]
    findings: tuple[Finding, ...]


def deploy(sources: Sequence[Path | str], addresses: Mapping[str, str]) -> Deployed:
    """Return the files of a deployment; nothing is written.

    Every port of an interface's JMS binding gets the address. A binding without one gets a service with a port.

    Args:
        addresses: address by the name of the interface, as `inspect` shows it.

    Raises:
        SchemaError: an interface does not exist (the message names similar ones), there are no sources, an address has
            blanks, or a file cannot be edited.
    """
    findings = Findings()
    for name, address in addresses.items():
        if not address or not address.isprintable() or " " in address:
            raise SchemaError(f"{name}: the address {address!r} is not {_ALLOWED}")
    read = replace(load(sources, findings), abstract=())
    services = services_of(read, SchemaSet(), findings)
    chosen = [service for service in services if service.name in addresses]
    if unknown := [name for name in addresses if name not in {service.name for service in services}]:
        raise SchemaError(_unknown(unknown[0], [service.name for service in services]))
    editor = _Editor(read, chosen)
    ports = [port for service in chosen for port in editor.set(service, addresses[service.name])]
    found = tuple(findings.of_files(document.name for document in editor.files))
    return Deployed(editor.data(), {editor.place(one): one.path for one in editor.files}, tuple(ports), found)


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 3)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(sorted(known)) or 'none'}"
    return f"the sources have no JMS binding of an interface {name}; {hint}"


class _Editor:
    """The files that the services reach, with the changes made to them."""

    def __init__(self, sources: Sources, services: Sequence[Service]) -> None:
        self._sources = sources
        self._roots = {document.name: document for document in sources.roots}
        reached = dict.fromkeys(document for service in services for document in self._reach(service))
        self.files = sorted(reached, key=lambda document: document.name)
        self._base = Path(os.path.commonpath([document.path.parent for document in self.files])) if reached else Path()
        self._texts: dict[Document, WsdlText] = {}
        self._expected: list[tuple[Document, QName, str]] = []

    def place(self, document: Document) -> str:
        """The path of a file below the output folder."""
        return document.path.relative_to(self._base).as_posix()

    def _reach(self, service: Service) -> list[Document]:
        root = self._roots[service.wsdl]
        outer = [other for one in outer_documents(self._sources, root) for other in self._sources.scope(one)]
        return [*self._sources.scope(root), *outer]

    def _text(self, document: Document) -> WsdlText:
        if document not in self._texts:
            self._texts[document] = WsdlText(document, source_bytes(document))
        return self._texts[document]

    def set(self, service: Service, address: str) -> list[Port]:
        """Set the address of a service in each port of its binding."""
        binding = QName(service.namespace, service.binding)
        root, soap = self._roots[service.wsdl], _soap_of(self._roots[service.wsdl], service.binding)
        changed: list[Port] = []
        for document in dict.fromkeys(self._reach(service)):
            ports = list(WsdlReader(document, Findings()).ports_of(binding)) if document.kind == "wsdl" else []
            for port, element in ports:
                if element is None:
                    self._text(document).add_address(port, soap, address)
                else:
                    self._text(document).set_location(element, address)
            if ports:
                self._expected.append((document, binding, address))
                changed.append(Port(service.name, self.place(document), address, added=False))
        if not changed:
            self._text(root).add_port(service.name, binding, soap, address)
            self._expected.append((root, binding, address))
            changed.append(Port(service.name, self.place(root), address, added=True))
        return changed

    def data(self) -> dict[str, bytes]:
        """The bytes of all files, after a check that each address reads back."""
        found = {
            document: self._texts[document].data() if document in self._texts else source_bytes(document)
            for document in self.files
        }
        for document, binding, address in self._expected:
            again = parse_again(document, found[document])
            read = [element for _, element in WsdlReader(again, Findings()).ports_of(binding)]
            if not read or any(element is None or element.get("location") != address for element in read):
                raise SchemaError(f"cannot be edited: the address of {binding} does not read back", file=document.name)
        return {self.place(document): data for document, data in found.items()}


def _soap_of(document: Document, binding: str) -> str:
    """The namespace of the SOAP version of a binding."""
    for element in document.root.iterchildren(f"{{{WSDL}}}binding"):
        if (element.get("name") or "").strip() == binding:
            found = next(element.iterchildren(*(f"{{{soap}}}binding" for soap in (WSDL_SOAP11, WSDL_SOAP12))), None)
            if found is not None:
                return str(etree.QName(found).namespace)
    return WSDL_SOAP11
