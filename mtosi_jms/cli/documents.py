"""Envelopes in files, read leniently; every fault becomes one line that says what to do."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from lxml import etree

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderMapping, is_notification, map_header
from mtosi_jms.cli import terminal
from mtosi_jms.compression import DOCUMENT_NAMES, is_document_name
from mtosi_jms.errors import ConfigError, EnvelopeError, ForbiddenXmlError, MalformedXmlError, XmlError
from mtosi_jms.header import BY_TAG
from mtosi_jms.namespaces import SOAP11, SOAP12, clark, split_clark
from mtosi_jms.service.registry import find_operations
from mtosi_jms.soap import Envelope, Header, dialect_of, header_text, parse
from mtosi_jms.spool import scan
from mtosi_jms.xmlbind import ElementPaths, RawXml, XmlWarning, parse_xml, read_document

__all__ = [
    "Document",
    "add_files",
    "error_text",
    "files_in",
    "landed_files",
    "load",
    "mapping_of",
    "no_header",
    "require_header",
    "shown_value",
    "warning_json",
]

_SHOWN: Final = 200
"""Characters of a value that a table has room for."""
_BODIES: Final = (clark(SOAP11, "Body"), clark(SOAP12, "Body"))

# Most specific first.
_ADVICE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (MalformedXmlError, "get it again, complete and as it was sent"),
    (ForbiddenXmlError, "no MTOSI message has a DTD, so many bytes or so many levels: check where the file comes from"),
    (EnvelopeError, "give a file with one SOAP envelope that has an MTOSI header"),
    (FileNotFoundError, "check the name"),
    (PermissionError, "make it readable for this user"),
)


@dataclass(frozen=True)
class Document:
    """One file and the envelope in it."""

    file: str
    data: bytes
    envelope: Envelope

    @cached_property
    def root(self) -> etree._Element:
        """The document as XML, for places in it."""
        return parse_xml(self.data, source=self.file, odd_prefixes=[])  # the envelope has reported them

    @cached_property
    def body(self) -> etree._Element:
        return next(child for child in self.root if child.tag in _BODIES)

    @cached_property
    def header(self) -> etree._Element | None:
        """The MTOSI header, be it in the SOAP Header or in a fault's detail."""
        return next(self.root.iter(*BY_TAG), None)

    @property
    def release(self) -> str | None:
        """The release that the MTOSI header is of, `1.x` or `2.x`; None without a header."""
        header = self.envelope.header
        return None if header is None else dialect_of(header).release

    def located(self, warning: XmlWarning) -> XmlWarning:
        """A warning about a header field with its place in the file; others as they are.

        An absent field stands at the line of the header.
        """
        if self.header is None or warning.line is not None or not warning.path.startswith("header/"):
            return warning
        local = warning.path.removeprefix("header/")
        found = next((child for child in self.header if split_clark(str(child.tag))[1] == local), None)
        path = ElementPaths().of(self.header if found is None else found)
        line = (self.header if found is None else found).sourceline
        return XmlWarning(warning.rule, warning.message, path if found is not None else f"{path}/{local}", line)


def add_files(parser: argparse.ArgumentParser, what: str) -> None:
    """The argument `files`: documents, or folders of them; `files_in` finds them."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help=f"{what}, compressed or not, or a folder of such files"
    )


def files_in(sources: Iterable[str]) -> list[str]:
    """The documents that a command was given: of a folder those in it, by their names, then those in the folders below
    it. Names that begin with a dot are left out; links are followed. Raises ConfigError: a folder has none, or cannot
    be read."""
    found = [_files_below(source) if Path(source).is_dir() else [source] for source in sources]
    return [file for files in found for file in files]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle
        return False


def _files_below(folder: str) -> list[str]:
    found: list[str] = []
    read: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:  # a stack, because folders may be nested deeper than calls
        place = waiting.pop()
        try:
            facts = Path(place).stat()
            with os.scandir(place) as entries:
                entered = sorted((entry.name, _is_folder(entry)) for entry in entries)
        except OSError as error:
            raise ConfigError(f"{place}: cannot be read: {error.strerror}") from error
        if (facts.st_dev, facts.st_ino) in read:  # a link led to it before
            continue
        read.add((facts.st_dev, facts.st_ino))
        waiting += [
            str(Path(place, name)) for name, is_folder in reversed(entered) if is_folder and not name.startswith(".")
        ]
        found += [str(Path(place, name)) for name, is_folder in entered if not is_folder and is_document_name(name)]
    if not found:
        raise ConfigError(f"{folder}: holds no document ({DOCUMENT_NAMES})")
    return found


def load(file: str) -> Document:
    """Read one file, compressed or not.

    Raises:
        OSError: it cannot be read, or not without a library that is missing.
        XmlError: damaged compressed data, or what is in it is not a SOAP envelope.
    """
    try:
        data = read_document(file)
    except XmlError:
        raise
    except ValueError as error:  # a name with a null character in it, or a missing library
        raise OSError(errno.EINVAL, str(error), file) from error
    return Document(file, data, parse(data, source=file))


def require_header(document: Document) -> Header:
    """The MTOSI header. Raises EnvelopeError: there is none."""
    if document.envelope.header is None:
        raise no_header(document)
    return document.envelope.header


def no_header(document: Document) -> EnvelopeError:
    """The error of an envelope without MTOSI header."""
    return EnvelopeError("a SOAP envelope without an MTOSI header", source=document.file, line=document.root.sourceline)


def mapping_of(document: Document, profile: BindingProfile, filters: tuple[str, ...] = ()) -> HeaderMapping:
    """What the binding makes of an envelope's header, leniently. Raises EnvelopeError: there is no MTOSI header."""
    header = require_header(document)
    body: Any = None
    one_way = False
    first = next(iter(document.body), None)
    if first is not None:
        one_way = any(use.operation.mep == "one-way" for use in find_operations(str(first.tag), header))
        if is_notification(header_text(header, "msgType"), header_text(header, "communicationPattern")):
            # As it came: an object that was read leniently need not be fit to be written.
            body = RawXml.from_element(first)
    return map_header(header, profile, body=body, filters=filters, one_way=one_way)


def landed_files(landing: Path) -> list[Path]:
    """The envelopes of a landing, in the order of arrival; a ConfigError if there are none."""
    if landing.is_file():
        return [landing]
    listing = scan(landing)
    for leftover in listing.leftovers:
        terminal.note(f"{leftover.path}: {leftover.reason}: not sent")
    if not (found := listing.documents):
        raise ConfigError(f"{landing}: holds no envelope ({DOCUMENT_NAMES})")
    return found


def error_text(file: str, error: Exception) -> str:
    """One line that says what is wrong with a file, where, and what to do."""
    advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
    if isinstance(error, XmlError):
        reason = str(error)
    elif isinstance(error, OSError):
        reason = f"{file}: cannot be read: {error.strerror or error}"
    else:
        reason = f"{file}: {error}"
    return f"{reason}; {advice}" if advice else reason


def warning_json(warning: XmlWarning) -> dict[str, object]:
    """A warning as plain values."""
    return {"path": warning.path, "line": warning.line, "message": warning.message, "rule": warning.rule}


def shown_value(value: object) -> str:
    """A value as text for a table, cut where it is long."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
