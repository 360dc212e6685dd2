"""Finds the file of an import: the one at the location, or the one that was meant, with a finding."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.load.documents import Document, Kind, Link, LinkKind, Reader, is_file
from mtosi_codegen.xsd.soap_encoding import ENCODINGS
from mtosi_jms.namespaces import WSDL, XML, XSD

_STALE_NAME: Final = re.compile(
    r"(?:^|[\W_])(?:old|copy|bak|backup|orig|obsolete|deprecated|tmp)(?:[\W_]|\d*$)", re.IGNORECASE
)
_STALE_FOLDERS: Final = {"xml", "example", "examples", "sample", "samples", "old", "backup", "test", "tests"}
_COMPONENTS: Final = ("element", "complexType", "simpleType", "group", "attributeGroup", "attribute")

Component = tuple[str, str]


def looks_stale(name: str) -> bool:
    """Whether the name or folder of a file suggests a copy, an old version or an example."""
    *folders, last = name.split("/")
    stem = last.rpartition(".")[0] or last
    return any(_STALE_NAME.search(text) for text in (stem, *folders)) or any(
        folder.lower() in _STALE_FOLDERS for folder in folders
    )


def components(schema: etree._Element) -> set[Component]:
    """The kind and name of each global definition of a schema; simple and complex types are one kind."""
    found: set[Component] = set()
    for child in schema.iterchildren(*(f"{{{XSD}}}{kind}" for kind in _COMPONENTS)):
        kind = etree.QName(child).localname
        found.add(("type" if kind.endswith("Type") else kind, (child.get("name") or "").strip()))
    return found


_SCHEME: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_NO_FILE_NAME: Final = re.compile(r"[^\w.-]+")
BUILT_IN: Final = {XML, XSD, "http://www.w3.org/2001/XMLSchema-instance", *ENCODINGS}
_LINK_KINDS: Final[dict[str, LinkKind]] = {
    f"{{{XSD}}}import": "import",
    f"{{{XSD}}}include": "include",
    f"{{{XSD}}}redefine": "redefine",
    f"{{{XSD}}}override": "override",
}
_NEEDS: Final = ("portType", "message")


class Locator:
    """Finds the document that an import or include means.

    Args:
        pool: files of the sources; they may replace a broken location.
    """

    def __init__(self, reader: Reader, pool: Iterable[Path], findings: Findings) -> None:
        self._reader = reader
        self._pool = tuple(pool)
        self._findings = findings

    def locate(self, document: Document, link: Link) -> Document | None:
        """The document to which a link of a document leads; None if there is nothing to read."""
        wanted = (link.element.get("namespace") or "").strip()
        location = (link.element.get("schemaLocation") or link.element.get("location") or "").strip()
        if link.kind == "import" and wanted in BUILT_IN:
            return None
        if not location:
            return self._by_namespace(document, link, wanted)
        found = self._by_location(document, link, location) or self._from_above(document, link, location)
        if found is None:
            found = self._substitute(document, link, location, wanted)
        if found is not None and link.kind == "import" and found.namespace != wanted:
            message = f"import says namespace {wanted!r}, {found.name} has {found.namespace!r}"
            self._report("import-namespace", document, link, message, "the namespace of the file is used")
        return found

    def exists(self, document: Document, location: str) -> bool:
        """Whether a location leads to a file exactly as written."""
        return is_file(document.path.parent / location)

    def _by_location(self, document: Document, link: Link, location: str) -> Document | None:
        if "\\" in location:
            location = location.replace("\\", "/")
            self._report("location-backslash", document, link, "backslashes in the location", f"read as {location!r}")
        scheme = _SCHEME.match(location)
        if scheme and scheme.group(1).lower() == "file":
            location = location[5:].removeprefix("//")
        elif scheme:
            return None
        for text in dict.fromkeys((location, unquote(location))):
            path = Path(os.path.normpath(document.path.parent / text))
            actual = self._on_disk(path)
            if actual is None:
                continue
            if actual != path:
                message = f"location {location!r} differs in case from the file on disk"
                self._report("location-case", document, link, message, f"read {self._reader.name(actual)}")
            return self._reader.read(actual)
        return None

    def _from_above(self, document: Document, link: Link, location: str) -> Document | None:
        """The file at a location relative to a parent folder, such as the root of a build."""
        steps = Path(location.replace("\\", "/"))
        if _SCHEME.match(location) or steps.is_absolute() or len(steps.parts) < 2 or ".." in steps.parts:
            return None
        for folder in document.path.parent.parents:
            found = self._reader.read(folder / steps) if is_file(folder / steps) else None
            if found is not None and found is not document:
                message = f"location {location!r} leads to no file"
                self._report(
                    "location-missing", document, link, message, f"read {found.name}, to which it leads from above"
                )
                return found
        return None

    def _on_disk(self, path: Path) -> Path | None:
        """The path in the spelling of the disk, found without regard to case; None if there is no such file."""
        if is_file(path) and path.name in (self._reader.entries(path.parent) or (path.name,)):
            return path  # files of a folder that cannot be listed may still be readable
        actual = Path(path.anchor or ".")
        for part in path.relative_to(path.anchor).parts:
            entries = self._reader.entries(actual) or (part,)
            same = [part] if part in entries else [name for name in entries if name.casefold() == part.casefold()]
            if not same:
                return None
            actual = actual / same[0]
        return actual if is_file(actual) else None

    def _by_namespace(self, document: Document, link: Link, wanted: str) -> Document | None:
        own = {(schema.get("targetNamespace") or "").strip() for schema in schemas_of(document)}
        if link.kind != "import" or wanted in own:
            return None
        candidates = [other for other in self._candidates(document, link) if other.namespace == wanted]
        best = min(candidates, key=lambda other: self._rank(document, other, "", wanted), default=None)
        if best is not None:
            message = f"import of {wanted!r} has no location"
            self._report("import-without-location", document, link, message, f"read {best.name}")
        return self._reader.read(best.path) if best is not None else None

    def _substitute(self, document: Document, link: Link, location: str, wanted: str) -> Document | None:
        remote = _SCHEME.match(location) is not None
        rule = "location-remote" if remote else "location-missing"
        message = f"location {location!r} " + ("is not fetched" if remote else "leads to no file")
        wanted = wanted if link.kind == "import" else document.namespace
        needed = _needed(document)
        candidates = [
            other
            for other in self._candidates(document, link)
            if other.namespace == wanted or needed & _defined(other) or (link.kind != "import" and not other.namespace)
        ]
        best = min(candidates, key=lambda other: self._rank(document, other, location, wanted), default=None)
        if best is None:
            repair = f"left out, and what it defines is missing; put it at {self._place_for(document, link, location)}"
            self._report(rule, document, link, message, repair)
        else:
            self._report(rule, document, link, message, f"read {best.name}, which defines what is needed")
        return self._reader.read(best.path) if best is not None else None

    def _place_for(self, document: Document, link: Link, location: str) -> str:
        """The path at which a missing file would be found, in the form that reports use."""
        if _SCHEME.match(location):
            location = (
                _NO_FILE_NAME.sub("_", location.partition("?")[0].partition("#")[0].rpartition("/")[2]) or "imported"
            )
            if Path(location).suffix.lower() not in {".wsdl", ".xsd"}:
                location += ".wsdl" if link.schema is None else ".xsd"
        return self._reader.name(Path(os.path.normpath(document.path.parent / location)))

    def _candidates(self, document: Document, link: Link) -> Iterator[Document]:
        kind: Kind = "wsdl" if link.schema is None else "xsd"
        location = (link.element.get("schemaLocation") or link.element.get("location") or "").replace("\\", "/")
        folders = {document.path.parent}
        if location and not _SCHEME.match(location):
            folders.add(Path(os.path.normpath(document.path.parent / location)).parent)
        siblings = (folder / name for folder in folders for name in self._reader.entries(folder))
        nearby = (path for path in siblings if path.suffix.lower() in {".wsdl", ".xsd"} and is_file(path))
        for path in sorted({*self._pool, *nearby} - {document.path}):
            other = self._reader.peek(path)
            if other is not None and other.kind == kind:
                yield other

    def _rank(self, document: Document, other: Document, location: str, wanted: str) -> tuple[object, ...]:
        """A sort key, best first: needed definitions, right namespace, not stale, same name, folder, similar name."""
        base = location.replace("\\", "/").rpartition("/")[2].casefold()
        likeness = SequenceMatcher(None, base, other.path.name.casefold()).ratio() if base else 0.0
        return (
            -len(_needed(document) & _defined(other)),
            other.namespace != wanted,
            looks_stale(other.name),
            other.path.name.casefold() != base,
            other.path.parent != document.path.parent,
            -round(likeness, 6),
            other.name,
        )

    def _report(self, rule: str, document: Document, link: Link, message: str, repair: str) -> None:
        self._findings.add(rule, document.name, link.element.sourceline, message, repair)


def _needed(document: Document) -> set[str]:
    """Local names that a WSDL uses and does not define: port types with their operations, messages."""
    if document.kind != "wsdl":
        return set()
    used = {_local(element.get("message")) for element in document.root.iter(f"{{{WSDL}}}input", f"{{{WSDL}}}output")}
    for binding in document.root.iter(f"{{{WSDL}}}binding"):
        used.add(_local(binding.get("type")))
        used |= {_local(operation.get("name")) for operation in binding.iterchildren(f"{{{WSDL}}}operation")}
    return used - _defined(document) - {""}


def _defined(document: Document) -> set[str]:
    """Local names that a WSDL defines: port types with their operations, messages."""
    defined: set[str] = set()
    for tag in _NEEDS:
        for element in document.root.iterchildren(f"{{{WSDL}}}{tag}"):
            defined.add(_local(element.get("name")))
            defined |= {_local(child.get("name")) for child in element.iterchildren(f"{{{WSDL}}}operation")}
    return defined


def _local(text: str | None) -> str:
    return (text or "").strip().rpartition(":")[2]


def links_of(document: Document) -> list[Link]:
    """The imports, includes, redefines and overrides of a document, in document order, not yet followed."""
    links = [Link(element, "import", None) for element in document.root.iterchildren(f"{{{WSDL}}}import")]
    for schema in schemas_of(document):
        children = schema.iterchildren(*_LINK_KINDS)
        links.extend(Link(child, _LINK_KINDS[str(child.tag)], schema) for child in children)
    return links


def schemas_of(document: Document) -> list[etree._Element]:
    """The schema elements of a document: its root, or those inside the types of a WSDL."""
    if document.kind == "xsd":
        return [document.root]
    return list(document.root.iterfind(f"{{{WSDL}}}types/{{{XSD}}}schema"))
