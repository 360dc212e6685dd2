"""WSDLs of a deployment: the source WSDLs with the chosen addresses, and all files that they reach (P22).

All other bytes of a file stay. Files keep their relative locations, so their imports still work.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_codegen.findings import Finding, Findings
from mtosi_codegen.load import Document, Sources, load
from mtosi_codegen.load.documents import parse_again, source_bytes
from mtosi_codegen.model import Service
from mtosi_codegen.wsdl.edit import WsdlText
from mtosi_codegen.wsdl.join import outer_documents, services_of
from mtosi_codegen.wsdl.read import WsdlReader
from mtosi_codegen.xsd.model import QName, SchemaSet
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import WSDL, WSDL_SOAP11, WSDL_SOAP12

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
