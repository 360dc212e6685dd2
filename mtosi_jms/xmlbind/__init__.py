"""XML binding: base classes and tables for generated classes, and functions to decode and encode their instances.

Reading is lenient. Unknown elements and attributes, invalid values, and the lexical form of values survive a round
trip. Each departure from the schema is reported as an `XmlWarning`. Writing is strict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, overload

from lxml import etree

from mtosi_jms.errors import ConfigError, MtosiFault
from mtosi_jms.xmlbind import _simpletypes
from mtosi_jms.xmlbind._canonical import Scopes, attributes_of
from mtosi_jms.xmlbind._encoder import Writer, encode_object
from mtosi_jms.xmlbind._encodings import DECLARATION, codec_named, declared_name, declares_utf8, in_utf8, self_described
from mtosi_jms.xmlbind._grammar import names_of
from mtosi_jms.xmlbind._issues import ElementPaths, Issues, XmlWarning
from mtosi_jms.xmlbind._lexical import Duration, format_date_time, parse_date_time, parse_loose_date_time
from mtosi_jms.xmlbind._names import (
    DistinguishedNameMixin,
    NamingAttributesMixin,
    attribute_parts,
    escape_name_part,
)
from mtosi_jms.xmlbind._native import Core, core, read_natively
from mtosi_jms.xmlbind._objects import XmlObject, find_element, find_type
from mtosi_jms.xmlbind._parser import (
    DEFAULT_LIMITS,
    HARDENED,
    XmlLimits,
    make_parser,
    parse_xml,
    plain_doctype,
    read_document,
    refuse_doctype,
    refuse_dtd,
    refuse_nodes,
    syntax_error,
    to_bytes,
)
from mtosi_jms.xmlbind._plan import Names, escape_text, forbidden_character, is_text
from mtosi_jms.xmlbind._reader import decode_root, without_comments
from mtosi_jms.xmlbind._registry import (
    XSI_NIL,
    XSI_TYPE,
    import_package,
    known_prefix,
    module_of,
    modules_of,
    register_package,
    registered_packages,
    resolve_class,
)
from mtosi_jms.xmlbind._simpletypes import *  # noqa: F403 - the names of the XSD built-in types
from mtosi_jms.xmlbind._simpletypes import EnumType, ListType, SimpleType, UnionType
from mtosi_jms.xmlbind._stream import iter_decode, iter_placed
from mtosi_jms.xmlbind._table import (
    ANY,
    MIXED,
    RAW,
    TEXT,
    A,
    ClassTable,
    E,
    Field,
    Module,
    enum,
    list_of,
    simple,
    union,
)
from mtosi_jms.xmlbind._values import BLANKS, NIL, Extras, Kept, Leaf, Nil, RawXml, XmlEnum
from mtosi_jms.xmlbind._walker import Around, Placed

__all__ = [
    "ANY",
    "BLANKS",
    "DECLARATION",
    "DEFAULT_LIMITS",
    "HARDENED",
    "MIXED",
    "NIL",
    "RAW",
    "TEXT",
    "XSI_NIL",
    "XSI_TYPE",
    "A",
    "Around",
    "ClassTable",
    "Core",
    "DistinguishedNameMixin",
    "Duration",
    "E",
    "ElementPaths",
    "EnumType",
    "Extras",
    "Field",
    "Issues",
    "Kept",
    "Leaf",
    "ListType",
    "Module",
    "MtosiFault",
    "Names",
    "NamingAttributesMixin",
    "Nil",
    "Placed",
    "RawXml",
    "Scopes",
    "SimpleType",
    "UnionType",
    "Writer",
    "XmlEnum",
    "XmlLimits",
    "XmlObject",
    "XmlWarning",
    "attribute_parts",
    "attributes_of",
    "codec_named",
    "core",
    "declared_name",
    "declares_utf8",
    "decode",
    "decode_root",
    "encode",
    "enum",
    "escape_name_part",
    "escape_text",
    "find_element",
    "find_type",
    "forbidden_character",
    "format_date_time",
    "import_package",
    "in_utf8",
    "is_text",
    "iter_decode",
    "iter_placed",
    "known_prefix",
    "list_of",
    "make_parser",
    "module_of",
    "modules_of",
    "names_of",
    "parse_date_time",
    "parse_loose_date_time",
    "parse_xml",
    "plain_doctype",
    "read_document",
    "read_xml",
    "refuse_doctype",
    "refuse_dtd",
    "refuse_nodes",
    "register_package",
    "registered_packages",
    "resolve_class",
    "self_described",
    "simple",
    "syntax_error",
    "to_bytes",
    "to_element",
    "union",
]
__all__ += _simpletypes.__all__

T = TypeVar("T", bound=XmlObject)


@overload
def decode(
    data: bytes | str | etree._Element,
    cls: type[T],
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    source: str | None = None,
    limits: XmlLimits = DEFAULT_LIMITS,
) -> T: ...
@overload
def decode(
    data: bytes | str | etree._Element,
    cls: None = None,
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    source: str | None = None,
    limits: XmlLimits = DEFAULT_LIMITS,
) -> Any: ...
def decode(
    data: bytes | str | etree._Element,
    cls: type[XmlObject] | None = None,
    *,
    warnings: list[XmlWarning] | None = None,
    strict: bool = False,
    source: str | None = None,
    limits: XmlLimits = DEFAULT_LIMITS,
) -> Any:
    """Decode an XML document or element into an instance of a generated class.

    Args:
        data: a document, or an element that lxml parsed.
        cls: class of the object; None to find it by the name of the element in the registered packages.
        warnings: a list that gets one `XmlWarning` for each departure from the schema.
        strict: raise `DecodeError` instead of the first warning.
        source: name of the document for errors.
        limits: bounds on a document given as bytes or text; an lxml element is not checked.

    Returns:
        An instance of `cls`, or of the class found. `RawXml` if no registered package has the element. A `Nil` if a
        known element has xsi:nil="true".

    Raises:
        MalformedXmlError: the document is not well-formed.
        ForbiddenXmlError: it has a DOCTYPE or entity references, or exceeds `limits`.
        DecodeError: in strict mode.
        ConfigError: `data` is not bytes, text or an lxml element, or `cls` is not a generated class.
    """
    if cls is not None and not hasattr(cls, "__xml__"):
        raise ConfigError(f"cls must be a generated class, not {cls!r}")
    if isinstance(data, etree._Element):
        element = without_comments(data)
    else:
        raw = to_bytes(data)
        value = read_natively(raw, cls, warnings=warnings, strict=strict, source=source, limits=limits)
        if value is not None:
            return value
        element = parse_xml(raw, source=source, limits=limits)
    issues = Issues(strict=strict, found=warnings if warnings is not None else [], source=source)
    return decode_root(element, cls, issues)


def encode(obj: Any) -> bytes:
    """Encode an instance of an element class, or a `RawXml`, as a UTF-8 document with an XML declaration. Raises
    EncodeError: the object is not valid against the schema; the error has the path of the Python attribute."""
    return encode_object(obj)


def to_element(obj: Any) -> etree._Element:
    """Encode an object and return its root as an lxml element. Raises EncodeError: as for `encode`."""
    return etree.fromstring(encode_object(obj), make_parser(XmlLimits(huge=True)))  # our own output needs no bounds


def read_xml(path: str | Path, *, limits: XmlLimits = DEFAULT_LIMITS) -> etree._Element:
    """Parse an XML file and return its root as an lxml element; no generated class is involved.

    Raises:
        MalformedXmlError, ForbiddenXmlError: with file and line.
        OSError: the file cannot be read.
    """
    return parse_xml(read_document(path, limits=limits), source=str(path), limits=limits)
