"""Reads source files; no other module of the generator opens them. No network, no entities, bounded size."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import read_file
from mtosi_jms.errors import SchemaError, XmlError
from mtosi_jms.namespaces import WSDL, XSD
from mtosi_jms.xmlbind import HARDENED, plain_doctype, refuse_doctype, refuse_dtd, refuse_nodes, syntax_error

MAX_BYTES: Final = BOUNDS.source_bytes
_SNIFF_BYTES: Final = 64 * 1024
_SKIPPED_FOLDERS: Final = {"__pycache__", "node_modules"}
_KINDS: Final[dict[str, Literal["wsdl", "xsd"]]] = {f"{{{WSDL}}}definitions": "wsdl", f"{{{XSD}}}schema": "xsd"}

_DRAFT: Final = "a schema of a draft of XML Schema; the standard is of 2001"
_FOREIGN: Final = {
    "{http://www.w3.org/ns/wsdl}description": "WSDL 2.0; what is read is WSDL 1.1",
    **{f"{{http://www.w3.org/{year}/XMLSchema}}schema": _DRAFT for year in ("1999", "2000/08", "2000/10")},
}

Kind = Literal["wsdl", "xsd"]
LinkKind = Literal["import", "include", "redefine", "override"]
_SUFFIXES: Final = {".wsdl", ".xsd"}
_FILE_LEFT_OUT: Final = "not generated: file left out"
_FOLDER_LEFT_OUT: Final = "not generated: folder left out"


@dataclass(slots=True, eq=False, repr=False)
class Document:
    """One parsed source file.

    Attributes:
        name: its path relative to the common folder of the sources, with `/`; reports and hashes use it.
        digest: SHA-256 of its bytes, hexadecimal.
        kind: `wsdl` or `xsd`.
        links: its imports and includes, in document order; filled by the loader.
        aliases: the right namespace for each undefined namespace that its imports name by mistake; filled by the
            loader.
    """

    path: Path
    name: str
    root: etree._Element
    digest: str
    kind: Kind
    links: list[Link] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The target namespace; empty if there is none."""
        return (self.root.get("targetNamespace") or "").strip()


@dataclass(slots=True, eq=False, repr=False)
class Link:
    """An import, include, redefine or override, and the document that it leads to.

    Attributes:
        schema: the schema element that contains it; None for a WSDL import.
        target: the document; None if none was found or none is needed.
    """

    element: etree._Element
    kind: LinkKind
    schema: etree._Element | None
    target: Document | None = None


class Reader:
    """Parses each file once; a file that cannot be read becomes a finding."""

    def __init__(self, base: Path, findings: Findings) -> None:
        self._base = base
        self._findings = findings
        self._read: dict[Path, Document | None] = {}
        self._peeked: dict[Path, Document | None] = {}
        self._folders: dict[Path, tuple[str, ...]] = {}

    def name(self, path: Path) -> str:
        """The name of a file in reports: its path relative to the common folder, with `/`."""
        return path.as_posix() if path == self._base else Path(os.path.relpath(path, self._base)).as_posix()

    def read(self, path: Path) -> Document | None:
        """The document at a path; None and a finding if it is not a readable WSDL or XML Schema."""
        if path not in self._read:
            self._read[path] = self._parse(path)
        return self._read[path]

    def peek(self, path: Path) -> Document | None:
        """The document at a path, like `read`, but without findings: the caller may not need the document."""
        if path in self._read:
            return self._read[path]
        if path not in self._peeked:
            self._peeked[path] = Reader(self._base, Findings())._parse(path)
        return self._peeked[path]

    def entries(self, folder: Path) -> tuple[str, ...]:
        """The names in a folder, sorted; empty if it cannot be listed, with a finding if it belongs to the sources."""
        if folder not in self._folders:
            try:
                self._folders[folder] = tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names, not paths
            except OSError as error:
                self._folders[folder] = ()
                there = not isinstance(error, (FileNotFoundError, NotADirectoryError))
                if there and folder.is_relative_to(self._base):
                    self._unreadable(folder, error, _FOLDER_LEFT_OUT)
        return self._folders[folder]

    def find(self, folder: Path) -> list[Path]:
        """All files below a folder whose content looks like WSDL or XML Schema, whatever their names; sorted.

        A file or folder that cannot be read is a finding.
        """
        found: list[Path] = []

        def failed(error: OSError) -> None:
            self._unreadable(Path(error.filename or folder), error, _FOLDER_LEFT_OUT)

        for parent, folders, files in os.walk(folder, onerror=failed):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
            found.extend(path for path in (Path(parent, name) for name in files) if self._looks_right(path))
        return sorted(found)

    def _looks_right(self, path: Path) -> bool:
        if path.name.startswith("."):
            return False
        if path.suffix.lower() in _SUFFIXES:
            return True
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return False
            with path.open("rb") as file:
                head = file.read(_SNIFF_BYTES)
        except FileNotFoundError:  # a broken link, or removed meanwhile
            return False
        except OSError as error:
            self._unreadable(path, error, _FILE_LEFT_OUT)
            return False
        text = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
        return text.startswith(b"<") and bool(re.search(rb"<(?:[\w.-]+:)?(?:definitions|schema)[\s>]", text))

    def _parse(self, path: Path) -> Document | None:
        name = self.name(path)
        data = self._bytes(path, name)
        root = self._root(data, name) if data is not None else None
        if data is None or root is None:
            return None
        kind = _KINDS.get(str(root.tag))
        if kind is None:
            if (other := foreign_kind(root)) is not None:
                self._findings.add("not-xml", name, root.sourceline, f"this is {other}", _FILE_LEFT_OUT)
            return None
        return Document(path, name, root, hashlib.sha256(data).hexdigest(), kind)

    def _bytes(self, path: Path, name: str) -> bytes | None:
        """The content of a file."""
        try:
            return read_file(path, MAX_BYTES)
        except OSError as error:
            self._unreadable(path, error, _FILE_LEFT_OUT)
            return None

    def _unreadable(self, path: Path, error: OSError, repair: str) -> None:
        self._findings.add("unreadable", self.name(path), 0, error.strerror or str(error), repair)

    def _root(self, data: bytes, name: str) -> etree._Element | None:
        stripped = data.lstrip(b" \t\r\n")
        if stripped is not data and stripped.startswith(b"<?xml") and len(stripped) != len(data):
            self._findings.add("encoding-blank", name, 1, "blanks before the XML declaration", "blanks left out")
            data = stripped
        try:
            plain = plain_doctype(data)
            refuse_nodes(plain, BOUNDS.xml_nodes)
            root = etree.fromstring(plain, etree.XMLParser(**HARDENED))
            refuse_dtd(root, plain=plain is not data)
            if plain is not data:
                if root.tag not in _KINDS:
                    refuse_doctype(data)
                repair = "read without it: nothing is fetched, no entity is expanded"
                self._findings.add("dtd", name, 1, "a document type declaration (DTD)", repair)
        except etree.XMLSyntaxError as error:
            known = syntax_error(error, None)
            self._findings.add("not-xml", name, known.line, known.message, _FILE_LEFT_OUT)
            return None
        except XmlError as error:
            self._findings.add("dtd", name, error.line, error.message, _FILE_LEFT_OUT)
            return None
        except ValueError as error:
            self._findings.add("not-xml", name, 1, str(error), _FILE_LEFT_OUT)
            return None
        return root


def foreign_kind(root: etree._Element) -> str | None:
    """The name of a description language that is not supported; None if the root is supported or no description."""
    return _FOREIGN.get(str(root.tag))


def source_bytes(document: Document) -> bytes:
    """Read again the bytes from which a document was parsed. Raises SchemaError: the file cannot be read any longer, or
    has changed meanwhile."""
    try:
        data = read_file(document.path, MAX_BYTES)
    except OSError as error:
        raise SchemaError(f"cannot be read: {error.strerror or error}", file=document.name) from None
    if hashlib.sha256(data).hexdigest() != document.digest:
        raise SchemaError("has changed while it was read", file=document.name)
    return data


def parse_again(document: Document, data: bytes) -> Document:
    """Parse other bytes as the content of a document. Raises SchemaError: they are neither a WSDL nor an XML Schema."""
    root = Reader(document.path.parent, Findings())._root(data, document.name)
    if root is None:
        raise SchemaError("is not well-formed any more", file=document.name)
    digest = hashlib.sha256(data).hexdigest()
    return Document(document.path, document.name, root, digest, document.kind, aliases=document.aliases)


def is_file(path: Path) -> bool:
    """Whether a path leads to a regular file; False if the system refuses to say."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
