"""The schemas as xmlschema and libxml2 read them, independent of our own reader."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

import xmlschema
from lxml import etree
from xmlschema.validators import XsdComplexType, XsdElement, XsdGlobals, XsdSimpleType

from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import PREFIXES, XML, XSD, XSI

XsdType: TypeAlias = XsdComplexType | XsdSimpleType

ANY_TYPE: Final = f"{{{XSD}}}anyType"
_OURS: Final = frozenset(
    {"", XSD, XSI, XML, "http://www.w3.org/1999/xlink", "http://www.w3.org/2007/XMLSchema-versioning"}
)


class Oracle:
    """Two models of one set of schemas, by xmlschema and libxml2.

    Args:
        schema: a schema that imports all others.

    Attributes:
        maps: the global components of xmlschema.
        doubt: why libxml2 refuses the schemas, so that xmlschema alone judges; empty if it does not.

    Raises:
        SchemaError: xmlschema refuses the schemas; the message has the reason.
    """

    def __init__(self, schema: Path) -> None:
        self._libxml2: etree.XMLSchema | None = None
        self.doubt = ""
        try:
            self._libxml2 = etree.XMLSchema(etree.parse(str(schema)))
        except (etree.XMLSchemaParseError, etree.XMLSyntaxError) as error:
            self.doubt = f"libxml2 refuses the schemas: {_first(error.error_log)}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a missing schema is an error where it is used
                self._xmlschema = xmlschema.XMLSchema10(str(schema), allow="local", use_fallback=False, use_meta=False)
        except (xmlschema.XMLSchemaException, RecursionError) as error:
            raise SchemaError(f"xmlschema refuses the schemas: {_line(error)}") from None
        self.maps: XsdGlobals = self._xmlschema.maps

    @cached_property
    def prefixes(self) -> dict[str, str]:
        """Prefixes of the schemas' namespaces: the usual prefix, else the one that the schemas use."""
        found: dict[str, str] = {}
        for namespace in sorted(space for space in self.maps.namespaces if space not in _OURS):
            used = (
                prefix
                for schema in self.maps.namespaces[namespace]
                for prefix, uri in schema.namespaces.items()
                if uri == namespace and prefix not in {"", "tns", "xml", "xsi", "this"}
            )
            preferred = PREFIXES.get(namespace) or min(used, default="ns")
            numbers = (f"{preferred}{number}" for number in itertools.count(2))
            found[next(prefix for prefix in (preferred, *itertools.islice(numbers, 1000)) if prefix not in found)] = (
                namespace
            )
        return found

    def element(self, name: str) -> XsdElement | None:
        """The declaration of a global element by its Clark name; None if there is none."""
        return self.maps.elements.get(name)

    @cached_property
    def _derived(self) -> dict[str, list[XsdType]]:
        found: dict[str, list[XsdType]] = {}
        for _, xsd_type in sorted(self.maps.types.items()):
            base = xsd_type.base_type
            while base is not None and base.name != ANY_TYPE and isinstance(xsd_type, XsdComplexType):
                if base.name:
                    found.setdefault(base.name, []).append(xsd_type)
                base = base.base_type
        return found

    def derived(self, xsd_type: XsdType) -> Sequence[XsdType]:
        """The named complex types that are derived from a type, directly or not; sorted by name."""
        return self._derived.get(xsd_type.name or "", ())

    def substitutes(self, element: XsdElement) -> Sequence[XsdElement]:
        """The other elements that may substitute for an element, abstract ones too; sorted by name."""
        if element.ref is None and element.parent is not None:
            return ()
        met: dict[str, XsdElement] = {}
        queue = [element.name]
        while queue:
            for member in self.maps.substitution_groups.get(queue.pop(), ()):
                if member.name not in met and member.name != element.name:
                    met[member.name] = member
                    queue.append(member.name)
        return [met[name] for name in sorted(met)]

    def refused(self, document: etree._Element) -> str:
        """The first error of libxml2, or else of xmlschema, in a document; empty if it is valid."""
        if self._libxml2 is None:
            return next(iter(self._refusals(document)), "")
        return "" if self._libxml2.validate(document) else _first(self._libxml2.error_log)

    def problems(self, document: etree._Element) -> list[str]:
        """The first errors of libxml2 and of xmlschema in a document; empty if it is valid."""
        refused = self.refused(document) if self._libxml2 is not None else ""
        return [*([f"libxml2: {refused}"] if refused else []), *self._refusals(document)]

    def _refusals(self, document: etree._Element) -> list[str]:
        error = next(self._xmlschema.iter_errors(document), None)
        return [f"xmlschema: {error.path}: {_line(error.reason or error.message)}"] if error is not None else []


def _first(log: object) -> str:
    entries = list(log) if isinstance(log, etree._BaseErrorLog) else []
    return f"{Path(entries[0].filename).name}:{entries[0].line}: {entries[0].message}" if entries else "no reason given"


def _line(error: object) -> str:
    return " ".join(str(error).split())[:400]
