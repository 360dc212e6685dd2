"""Reading source files: the only place of the generator that opens one. Offline, no entities, bounded size."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_jms.namespaces import WSDL, XSD

MAX_BYTES: Final = 64 * 1024 * 1024
_SNIFF_BYTES: Final = 64 * 1024
_SKIPPED_FOLDERS: Final = {"__pycache__", "node_modules"}
_KINDS: Final[dict[str, Literal["wsdl", "xsd"]]] = {f"{{{WSDL}}}definitions": "wsdl", f"{{{XSD}}}schema": "xsd"}

Kind = Literal["wsdl", "xsd"]
LinkKind = Literal["import", "include", "redefine"]


@dataclass(slots=True, eq=False)
class Document:
    """One parsed source file.

    Attributes:
        path: where it lies.
        name: its path relative to the common folder of the sources, with `/`; what reports and hashes use.
        root: its root element.
        digest: SHA-256 of its bytes, hexadecimal.
        kind: `wsdl` or `xsd`.
        links: its imports and includes, in document order; filled by the loader.
        aliases: namespaces that its imports name wrongly and nothing defines, with those that are meant; filled by the
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
        """The target namespace; empty where there is none."""
        return (self.root.get("targetNamespace") or "").strip()


@dataclass(slots=True, eq=False)
class Link:
    """An import, include or redefine, and the document that it leads to.

    Attributes:
        element: the XML element.
        kind: `import`, `include` or `redefine`.
        schema: the schema element that it stands in, None for a WSDL import.
        target: the document; None where nothing was found or nothing is needed.
    """

    element: etree._Element
    kind: LinkKind
    schema: etree._Element | None
    target: Document | None = None


class Reader:
    """Parses each file once; what cannot be read becomes a finding."""

    def __init__(self, base: Path, findings: Findings) -> None:
        self._base = base
        self._findings = findings
        self._read: dict[Path, Document | None] = {}
        self._folders: dict[Path, tuple[str, ...]] = {}

    def name(self, path: Path) -> str:
        """The name of a file in reports: relative to the common folder, with `/`."""
        return Path(os.path.relpath(path, self._base)).as_posix()

    def read(self, path: Path) -> Document | None:
        """The document at a path, or None with a finding where it is no WSDL or XML Schema that can be read."""
        if path not in self._read:
            self._read[path] = self._parse(path)
        return self._read[path]

    def entries(self, folder: Path) -> tuple[str, ...]:
        """The names in a folder, sorted; empty where it cannot be listed."""
        if folder not in self._folders:
            try:
                self._folders[folder] = tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names, not paths
            except OSError:
                self._folders[folder] = ()
        return self._folders[folder]

    def find(self, folder: Path) -> list[Path]:
        """All files below a folder that look like WSDL or XML Schema, whatever they are called; sorted."""
        found: list[Path] = []
        for parent, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
            found.extend(path for path in (Path(parent, name) for name in files) if self._looks_right(path))
        return sorted(found)

    def _looks_right(self, path: Path) -> bool:
        if path.name.startswith("."):
            return False
        if path.suffix.lower() in {".wsdl", ".xsd"}:
            return True
        try:
            with path.open("rb") as file:
                head = file.read(_SNIFF_BYTES)
        except OSError:
            return False
        text = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
        return text.startswith(b"<") and bool(re.search(rb"<(?:[\w.-]+:)?(?:definitions|schema)[\s>]", text))

    def _parse(self, path: Path) -> Document | None:
        name = self.name(path)
        try:
            size = path.stat().st_size
            data = path.read_bytes() if size <= MAX_BYTES else b""
        except OSError as error:
            self._findings.add("unreadable", name, 0, error.strerror or str(error), "not generated: file left out")
            return None
        if size > MAX_BYTES:
            self._findings.add("unreadable", name, 0, f"larger than {MAX_BYTES} bytes", "not generated: file left out")
            return None
        root = self._root(data, name)
        if root is None:
            return None
        kind = _KINDS.get(str(root.tag))
        if kind is None:
            return None
        return Document(path, name, root, hashlib.sha256(data).hexdigest(), kind)

    def _root(self, data: bytes, name: str) -> etree._Element | None:
        stripped = data.lstrip(b" \t\r\n")
        if stripped is not data and stripped.startswith(b"<?xml") and len(stripped) != len(data):
            self._findings.add("encoding-blank", name, 1, "blanks before the XML declaration", "blanks left out")
            data = stripped
        parser = etree.XMLParser(
            resolve_entities=False, load_dtd=False, no_network=True, remove_pis=True, remove_comments=True
        )
        try:
            root = etree.fromstring(data, parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            line = getattr(error, "lineno", 0)
            self._findings.add("not-xml", name, line, str(error), "not generated: file left out")
            return None
        dtd = root.getroottree().docinfo.internalDTD
        if dtd is not None and next(iter(dtd.iterentities()), None) is not None:
            self._findings.add("dtd", name, 1, "declares entities", "not generated: file left out")
            return None
        return root
