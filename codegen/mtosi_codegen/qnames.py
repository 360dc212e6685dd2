"""Reads names in schemas and WSDLs; wrong blanks, prefixes and colons are repaired and reported."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from mtosi_codegen.findings import Findings
from mtosi_codegen.xsd.model import QName
from mtosi_jms.namespaces import XML


class QNameReader:
    """Reads names and qualified names of one file.

    Args:
        default: namespace of a name without prefix where no default namespace is declared. For a schema without target
            namespace it is that of the including schema, else it is empty.
        aliases: namespaces to replace, each with its replacement.
    """

    def __init__(
        self, file: str, findings: Findings, default: str = "", aliases: Mapping[str, str] | None = None
    ) -> None:
        self._file = file
        self._findings = findings
        self._default = default
        self._aliases = aliases or {}

    def name(self, element: etree._Element, attribute: str = "name") -> str:
        """The NCName in an attribute; surrounding blanks are reported and dropped."""
        text = element.get(attribute) or ""
        name = text.strip()
        if name != text:
            self._report("name-blanks", element, f"blanks around the name {text!r}", f"read as {name!r}")
        return name

    def qname(self, element: etree._Element, attribute: str) -> QName:
        """The qualified name in an attribute."""
        return self.resolve(element.get(attribute) or "", element)

    def resolve(self, text: str, element: etree._Element) -> QName:
        """The qualified name that a text means in the scope of an element."""
        text = text.strip()
        prefix, colon, local = text.rpartition(":")
        if ":" in prefix:
            candidates = [part for part in reversed(prefix.split(":")) if part in element.nsmap]
            chosen = candidates[0] if candidates else prefix.rpartition(":")[2]
            self._report("qname-colons", element, f"{text!r} has two colons", f"read as '{chosen}:{local}'")
            prefix = chosen
        if prefix == "xml":
            return QName(XML, local)
        namespace = element.nsmap.get(prefix or None)
        if namespace is None and colon:
            self._report("qname-prefix", element, f"prefix of {text!r} is not declared", "read without namespace")
        namespace = namespace if namespace is not None else self._default
        return QName(self._aliases.get(namespace, namespace), local)

    def _report(self, rule: str, element: etree._Element, message: str, repair: str) -> None:
        self._findings.add(rule, self._file, element.sourceline, message, repair)
