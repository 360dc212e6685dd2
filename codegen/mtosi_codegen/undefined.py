"""What findings say about a name that nothing defines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from lxml import etree

from mtosi_codegen.xsd.model import QName, SchemaSet
from mtosi_codegen.xsd.soap_encoding import ENCODINGS
from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import XML, XSD
from mtosi_jms.validation import default_folder
from mtosi_jms.xmlbind import HARDENED


def undefined(name: QName, schema: SchemaSet) -> str:
    """The name and that it is not defined; if its namespace is not declared, also that, and which file would do so."""
    text = f"{name} is not defined"
    if name.namespace in {"", XML, XSD, *ENCODINGS, *schema.prefixes}:
        return text
    shipped = _shipped_files().get(name.namespace)
    hint = f"; the shipped {shipped} does" if shipped else ""
    return f"{text}: nothing that the sources import declares its namespace{hint}"


@cache
def _shipped_files() -> Mapping[str, str]:
    """The shipped schema of each namespace, with its folder; empty if they are not installed."""
    try:
        folder = default_folder()
    except ConfigError:
        return {}
    files: dict[str, str] = {}
    for path in sorted(folder.rglob("*.xsd")):
        root = etree.parse(path, etree.XMLParser(**HARDENED)).getroot()
        files.setdefault(root.get("targetNamespace", ""), path.relative_to(folder.parent).as_posix())
    return files
