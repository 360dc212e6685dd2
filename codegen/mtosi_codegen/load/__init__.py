"""Reads source files into parsed documents and reports every repair. No other part of the generator reads sources.

It never uses the network. Files that a wanted WSDL reaches come first. XML Schemas that nothing imports are added,
unless they repeat definitions that are there already (`rivals`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.load.documents import Document, Reader, foreign_kind
from mtosi_codegen.load.locate import BUILT_IN, Component, Locator, components, links_of, looks_stale, schemas_of
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import WSDL, WSDL_SOAP11, WSDL_SOAP12, XSD

Bindings = Literal["jms", "all"]
_SOAP_BINDINGS: Final = (f"{{{WSDL_SOAP11}}}binding", f"{{{WSDL_SOAP12}}}binding")

__all__ = ["Bindings", "Document", "SchemaUnit", "Sources", "load"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SchemaUnit:
    """One schema that is used, and the namespace of its definitions.

    Attributes:
        namespace: the target namespace; a schema without one has that of the schema that includes it.
    """

    document: Document
    element: etree._Element
    namespace: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sources:
    """All documents that are used.

    Attributes:
        roots: the WSDLs with a wanted binding, sorted by name.
        documents: all documents that are used, sorted by name.
        units: their schemas; first those that a WSDL reaches, then by name.
        abstract: the WSDLs with port types that no SOAP binding binds, sorted by name.
    """

    roots: tuple[Document, ...]
    documents: tuple[Document, ...]
    units: tuple[SchemaUnit, ...]
    abstract: tuple[Document, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over names and contents, independent of where the sources lie."""
        total = hashlib.sha256()
        for document in self.documents:
            total.update(f"{document.name}\0{document.digest}\n".encode())
        return total.hexdigest()

    def scope(self, root: Document) -> tuple[Document, ...]:
        """The WSDL itself and the documents that it reaches, in the order in which they are found."""
        met = dict.fromkeys((root,))
        queue = [root]
        while queue:
            targets = (link.target for link in queue.pop(0).links)
            fresh = [target for target in targets if target is not None and target not in met]
            met.update(dict.fromkeys(fresh))
            queue.extend(dict.fromkeys(fresh))
        return tuple(met)


def load(sources: Sequence[Path | str], findings: Findings, bindings: Bindings = "jms") -> Sources:
    """Read WSDLs, XML Schemas and folders of them.

    Args:
        findings: gets one finding for each repair and for each file that is left out.
        bindings: `jms` for bindings whose transport names JMS, `all` for every SOAP binding.

    Raises:
        SchemaError: there are no sources, or a source does not exist.
    """
    paths = sorted({Path(os.path.realpath(source)) for source in sources})
    refused: list[Path] = []
    for path in paths:
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise SchemaError("no such file or folder", file=str(path)) from None
        except OSError as error:
            message = error.strerror or str(error)
            findings.add("unreadable", path.as_posix(), 0, message, "not generated: source left out")
            refused.append(path)
    if not paths:
        raise SchemaError("no sources")
    paths = [path for path in paths if path not in refused]
    if not paths:
        return Sources((), (), ())
    base = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in paths]))
    return _Loader(Reader(base, findings), findings, bindings).load(paths)


class _Loader:
    def __init__(self, reader: Reader, findings: Findings, bindings: Bindings) -> None:
        self._reader = reader
        self._findings = findings
        self._bindings = bindings
        self._reached: dict[Document, int] = {}
        self._defined: dict[str, dict[Component, Document]] = {}

    def load(self, paths: Iterable[Path]) -> Sources:
        found, named = self._listed(paths)
        self._locator = Locator(self._reader, [document.path for document in found], self._findings)
        wsdls = [document for document in found if document.kind == "wsdl"]
        roots = self._without_rivals([document for document in wsdls if self._is_root(document)], named)
        outer = [document for document in wsdls if document not in roots and has_ports_only(document.root)]
        for document in (*roots, *outer, *(document for document in named if document.kind == "xsd")):
            self._follow(document, rank=0)
        abstract: list[Document] = []
        for document in (document for document in named if document.kind == "wsdl" and document not in roots):
            behind = self._roots_behind(document, roots)
            roots += behind or ()
            abstract.extend([document] if behind is None else [])
        if not roots and not named:
            self._report_other_bindings(wsdls)
        abstract += self._abstract(document for document in wsdls if document not in abstract)
        self._take_unreached([document for document in found if document.kind == "xsd"])
        ordered = sorted(self._reached, key=lambda document: document.name)
        for document in ordered:
            document.aliases = self._aliases(document)
        units = self._units()
        declared: dict[str, dict[Document, None]] = {}
        for unit in units:
            declared.setdefault(unit.namespace, {})[unit.document] = None
        report_unimported(ordered, declared, self._findings)
        return Sources(_by_name(roots), tuple(ordered), units, _by_name(abstract))

    def _is_root(self, document: Document) -> bool:
        return document.kind == "wsdl" and has_binding(document.root, self._bindings)

    def _without_rivals(self, roots: list[Document], named: list[Document]) -> list[Document]:
        """The WSDLs without those that have a stale name and repeat the bindings of another one."""
        fresh = [root for root in roots if root in named or not looks_stale(root.name)]
        kept = list(fresh)
        for root in (root for root in roots if root not in fresh):
            rival = next((other for other in fresh if _bindings(other) == _bindings(root)), None)
            if rival is None:
                kept.append(root)
            else:
                message = f"the bindings of {rival.name} again"
                self._findings.add("rival-left-out", root.name, 0, message, "left out")
        return kept

    def _roots_behind(self, document: Document, roots: list[Document]) -> list[Document] | None:
        """The WSDLs with a wanted binding that a WSDL without one imports, directly or not; a finding if there is none.

        Returns:
            None if there is no SOAP binding at all: the WSDL only defines port types.
        """
        self._follow(document, rank=0)
        scope = Sources((), (), ()).scope(document)
        reached = [other for other in scope if self._is_root(other)]
        if not reached and not any(has_binding(other.root, "all") for other in scope):
            return None
        if not reached:
            self._findings.add("no-service", document.name, 0, self._no_binding(), "not generated: file left out")
        return [other for other in reached if other not in roots]

    def _abstract(self, wsdls: Iterable[Document]) -> list[Document]:
        """The WSDLs of folders that no other file reaches and whose port types no SOAP binding of the sources binds."""
        every = [document for document in wsdls if document.kind == "wsdl"]
        defined = {name for document in every for name in _port_types(document)}
        bound = {name for document in every for name in _bound_port_types(document)}
        # A binding to an undefined port type may mean any port type with that local name.
        loose = {local for namespace, local in bound if (namespace, local) not in defined}
        found: list[Document] = []
        for document in every:
            own = _port_types(document)
            served = has_binding(document.root, "all") or bound & own or loose & {local for _, local in own}
            if own and not served and document not in self._reached and not looks_stale(document.name):
                self._follow(document, rank=1)
                found.append(document)
        reached = {other for document in found for other in Sources((), (), ()).scope(document)[1:]}
        return [document for document in found if document not in reached]

    def _no_binding(self) -> str:
        return "no binding that was asked for" + " (--bindings all takes HTTP too)" * (self._bindings == "jms")

    def _report_other_bindings(self, wsdls: Iterable[Document]) -> None:
        """Report the WSDLs with other bindings. Called if folders hold no wanted binding at all."""
        for document in wsdls:
            if has_binding(document.root, "all"):
                self._findings.add("no-service", document.name, 0, self._no_binding(), "left out, types aside")

    def _aliases(self, document: Document) -> dict[str, str]:
        """Undefined namespaces that imports of a document name, each with the namespace of the imported file."""
        wrong: dict[str, str] = {}
        for link in document.links:
            wanted = (link.element.get("namespace") or "").strip()
            if link.kind == "import" and link.target is not None and not self._defined.get(wanted):
                wrong[wanted] = link.target.namespace
        return {wanted: actual for wanted, actual in wrong.items() if wanted != actual}

    def _listed(self, paths: Iterable[Path]) -> tuple[list[Document], list[Document]]:
        """All documents of the sources, and those among them that were given as files."""
        found: dict[Document, None] = {}
        named: list[Document] = []
        for path in paths:
            for file in self._reader.find(path) if path.is_dir() else [path]:
                document = self._reader.read(file)
                if document is not None:
                    found[document] = None
                    named.extend([document] if path.is_file() else [])
                elif not path.is_dir() and not self._findings.of_files([name := self._reader.name(path)]):
                    message = "no WSDL and no XML Schema"
                    self._findings.add("not-xml", name, 0, message, "not generated: file left out")
        return sorted(found, key=lambda document: document.name), named

    def _follow(self, root: Document, rank: int) -> None:
        """Add a document and all documents that it reaches."""
        queue = [(root, False)]
        while queue:
            document, included = queue.pop(0)
            if document in self._reached:
                continue
            if rank and not included and self._rival_of(document) is not None:
                self._leave_out(document)
                continue
            self._reached[document] = rank
            for other in document.root.iterfind(f"{{{WSDL}}}types/*"):
                if (kind := foreign_kind(other)) is not None:
                    repair = "left out; what it defines is missing where it is used"
                    self._findings.add("xsd-unsupported", document.name, other.sourceline, f"this is {kind}", repair)
            for schema in schemas_of(document):
                defined = self._defined.setdefault((schema.get("targetNamespace") or "").strip(), {})
                for component in components(schema):
                    defined.setdefault(component, document)
            document.links = links_of(document)
            for link in document.links:
                link.target = self._locator.locate(document, link)
                if link.target is not None:
                    queue.append((link.target, link.kind != "import"))

    def _take_unreached(self, schemas: Iterable[Document]) -> None:
        """Add the schemas that nothing reached. Files that look stale come last in the order."""

        def rank(document: Document) -> tuple[object, ...]:
            locations = (link.element.get("schemaLocation") or "" for link in links_of(document))
            broken = sum(1 for location in locations if location and not self._locator.exists(document, location))
            # A schema without namespace may be part of one with a namespace, so it comes later.
            return not document.namespace, looks_stale(document.name), broken, document.name

        for document in sorted((schema for schema in schemas if schema not in self._reached), key=rank):
            if document not in self._reached:
                self._follow(document, rank=1)

    def _rival_of(self, document: Document) -> Document | None:
        """The document whose definitions this one repeats; None if it only adds to its namespace."""
        defined = self._defined.get(document.namespace, {})
        repeated = [defined[component] for component in sorted(components(document.root)) if component in defined]
        if not repeated and defined and looks_stale(document.name):
            repeated = list(defined.values())
        return repeated[0] if repeated else None

    def _leave_out(self, document: Document) -> None:
        rival = self._rival_of(document)
        of = f" of {rival.name}" if rival else ""
        message = f"namespace {document.namespace!r} again, with definitions{of}; no WSDL reaches this file"
        self._findings.add("rival-left-out", document.name, 0, message, "left out")

    def _units(self) -> tuple[SchemaUnit, ...]:
        """The schemas that are used; a schema without namespace once for each namespace that includes it."""
        ordered = sorted(self._reached, key=lambda document: (self._reached[document], document.name))
        links = [link for document in ordered for link in document.links]
        adopted = {link.target for link in links if link.kind != "import"}
        adopted -= {link.target for link in links if link.kind == "import"}
        units = _with_included(
            SchemaUnit(document, schema, namespace)
            for document in ordered
            for schema in schemas_of(document)
            if (namespace := (schema.get("targetNamespace") or "").strip()) or document not in adopted
        )
        met = {unit.document for unit in units}
        # The remaining documents include only each other, in a circle.
        left = (SchemaUnit(document, document.root, "") for document in ordered if document not in met)
        return (*units, *_with_included(unit for unit in left if unit.document.kind == "xsd"))


def _by_name(documents: Iterable[Document]) -> tuple[Document, ...]:
    return tuple(sorted(documents, key=lambda document: document.name))


def _with_included(seeds: Iterable[SchemaUnit]) -> tuple[SchemaUnit, ...]:
    """The units, each once, then the schemas without namespace that they include, in the unit's namespace."""
    units: dict[tuple[Document, int, str], SchemaUnit] = {}
    queue = list(seeds)
    while queue:
        unit = queue.pop(0)
        key = (unit.document, schemas_of(unit.document).index(unit.element), unit.namespace)
        if key in units:
            continue
        units[key] = unit
        for link in unit.document.links:
            if link.kind != "import" and link.schema is unit.element and link.target is not None:
                queue.extend(SchemaUnit(link.target, schema, unit.namespace) for schema in _chameleons(link.target))
    return tuple(units.values())


def _chameleons(document: Document) -> list[etree._Element]:
    return [schema for schema in schemas_of(document) if not (schema.get("targetNamespace") or "").strip()]


def _bindings(document: Document) -> tuple[str, list[str]]:
    """The target namespace and names of a WSDL's bindings, to compare with other WSDLs."""
    names = [binding.get("name") or "" for binding in document.root.iterchildren(f"{{{WSDL}}}binding")]
    return document.namespace, sorted(name.strip() for name in names)


def has_ports_only(definitions: etree._Element) -> bool:
    """Whether a WSDL has ports, but no bindings: it imports them."""
    found = {etree.QName(child).localname for child in definitions.iterchildren(f"{{{WSDL}}}*")}
    return "service" in found and "binding" not in found


def has_binding(definitions: etree._Element, bindings: Bindings) -> bool:
    """Whether a WSDL has a SOAP binding of the wanted kind."""
    found = list(_soap_bindings(definitions))
    on_jms = {name for name, _ in found} & set(_bindings_on_jms(definitions))
    return bool(on_jms) or any(wanted_transport(transport, bindings) for _, transport in found)


def wanted_transport(transport: str, bindings: Bindings) -> bool:
    """Whether a SOAP binding with this transport is wanted: one that names JMS, or any for `all`."""
    return bindings == "all" or "jms" in transport.casefold()


def is_jms_port(port: etree._Element) -> bool:
    """Whether the address of a port is a JMS address, whatever its binding says."""
    return any(
        "jms" in str(etree.QName(child).namespace).casefold()
        or (child.get("location") or "").strip().casefold().startswith("jms:")
        for child in port.iterchildren("*")
        if etree.QName(child).localname == "address"
    )


def _bindings_on_jms(definitions: etree._Element) -> Iterator[str]:
    """The local names of the bindings for which the WSDL has a port with a JMS address."""
    for port in definitions.iterfind(f"{{{WSDL}}}service/{{{WSDL}}}port"):
        if is_jms_port(port):
            yield (port.get("binding") or "").strip().rpartition(":")[2]


def _port_types(document: Document) -> set[tuple[str, str]]:
    """Namespace and name of each port type that a WSDL defines."""
    names = (element.get("name") or "" for element in document.root.iterchildren(f"{{{WSDL}}}portType"))
    return {(document.namespace, name.strip()) for name in names}


def _bound_port_types(document: Document) -> Iterator[tuple[str, str]]:
    """Namespace and name of each port type that the SOAP bindings of a WSDL bind."""
    for binding in document.root.iterchildren(f"{{{WSDL}}}binding"):
        if next(binding.iterchildren(*_SOAP_BINDINGS), None) is not None:
            prefix, _, local = (binding.get("type") or "").strip().rpartition(":")
            yield binding.nsmap.get(prefix or None) or "", local


def _soap_bindings(definitions: etree._Element) -> Iterator[tuple[str, str]]:
    """The name and transport of each SOAP binding of a WSDL."""
    for binding in definitions.iterchildren(f"{{{WSDL}}}binding"):
        for soap in binding.iterchildren(*_SOAP_BINDINGS):
            yield (binding.get("name") or "").strip(), soap.get("transport") or ""


_REFERENCES: Final = ("type", "base", "ref", "itemType", "memberTypes", "substitutionGroup")
_PART_REFERENCES: Final = ("element", "type")


def report_unimported(
    documents: Iterable[Document], declared: Mapping[str, Mapping[Document, None]], findings: Findings
) -> None:
    """Report each namespace once for a file, where the file first uses it.

    Args:
        declared: the files that declare something in each namespace, the most important first.
    """
    for document in documents:
        known = {*BUILT_IN, *_imported(document)}
        for namespace, line in _used(document):
            if namespace not in known and document not in (files := declared.get(namespace, {document: None})):
                known.add(namespace)
                message = f"namespace {namespace} is used here, and the file does not import it"
                findings.add("import-missing", document.name, line, message, f"{next(iter(files)).name} is used")


def _imported(document: Document) -> set[str]:
    """The namespaces that a file declares or imports.

    A WSDL has those of all files that it reaches: in the releases of TM Forum the header's is imported by schemas only.
    """
    found: set[str] = set()
    met = {document: None}
    for current in (queue := [document]):
        found |= {(schema.get("targetNamespace") or "").strip() for schema in schemas_of(current)}
        for link in current.links:
            found.add((link.element.get("namespace") or "").strip())
            if link.target is not None:
                found.add(link.target.namespace)
                if document.kind == "wsdl" and link.target not in met:
                    met[link.target] = None
                    queue.append(link.target)
    return found


def _used(document: Document) -> Iterator[tuple[str, int]]:
    """The namespaces of the references in a file, and their lines."""
    for schema in schemas_of(document):
        for element in schema.iter(f"{{{XSD}}}*"):
            yield from _namespaces(element, _REFERENCES)
    for part in document.root.iterfind(f"{{{WSDL}}}message/{{{WSDL}}}part"):
        yield from _namespaces(part, _PART_REFERENCES)


def _namespaces(element: etree._Element, attributes: Iterable[str]) -> Iterator[tuple[str, int]]:
    for attribute in attributes:
        for name in (element.get(attribute) or "").split():
            namespace = element.nsmap.get(name.rpartition(":")[0] or None)
            if namespace is not None:
                yield namespace, element.sourceline or 0
