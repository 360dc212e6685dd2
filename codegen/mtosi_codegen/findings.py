"""Defects that the generator found in its sources, and how it repaired them.

Each finding names a rule of `RULES`, the file (relative to the sources' common folder), the line, what is wrong and the
repair. A finding whose repair begins with "not generated" is a failure; every other one is a repair or a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mtosi_jms.errors import SchemaError

RULES: Final[dict[str, str]] = {
    "unreadable": "a file or folder that cannot be read",
    "not-xml": "a file that is not well-formed XML, or neither WSDL 1.1 nor XML Schema",
    "dtd": "a document type declaration",
    "encoding-blank": "blanks before the XML declaration",
    "location-backslash": "backslashes in a location",
    "location-case": "a location that differs in case from the file on disk",
    "location-remote": "a location on the network; nothing is fetched",
    "location-missing": "a location that leads to no file",
    "import-namespace": "an import whose namespace is not that of the file",
    "import-without-location": "an import without a location, found by namespace among the sources",
    "import-missing": "a namespace that a file uses and does not import, declared by another file of the sources",
    "rival-left-out": "a file that defines again what a file reached from a WSDL defines",
    "definition-conflict": "two definitions of one name in one namespace",
    "name-blanks": "blanks around a name",
    "value-blanks": "blanks around an enumeration value",
    "qname-colons": "a qualified name with more than one colon",
    "qname-prefix": "a qualified name whose prefix is not declared",
    "type-unresolved": "a type that nothing defines",
    "element-unresolved": "a reference to an element that nothing defines",
    "group-unresolved": "a reference to a group or attribute group that nothing defines",
    "attribute-unresolved": "a reference to an attribute that nothing defines",
    "base-unresolved": "a base type that nothing defines",
    "cycle": "a definition that contains itself where it must not",
    "too-large": "a definition that grows beyond any use: by groups in groups, or by a long chain of base types",
    "pattern-unsupported": "a pattern facet that has no Python equivalent",
    "repeated-in-extension": "an element that the base type has already",
    "xsd-1.1": "a construct of XML Schema 1.1",
    "redefine-undefined": "a definition that redefines or overrides one that is not there",
    "xsd-unsupported": "a construct of XML Schema that the generator leaves out",
    "binding-type-missing": "a binding whose portType cannot be found",
    "operation-drift": "a binding operation spelled otherwise in the portType",
    "operation-overloaded": "an overloaded operation of a binding that names neither its input nor its output",
    "operation-undefined": "a binding operation that the portType does not have",
    "operation-unbound": "a portType operation that the binding does not have",
    "operation-shared": "operations of a service with one request element",
    "operation-reversed": "an operation whose service speaks first: a notification or solicit-response",
    "message-namespace": "a message found in another namespace than the one written",
    "message-undefined": "a message that nothing defines",
    "message-part": "a message without a body part, with several, or with a part that its style does not allow",
    "fault-undefined": "a fault whose message or element nothing defines",
    "service-name": "a service named after its file because its own name is taken or belongs to another file",
    "binding-style": "a style that WSDL does not have, an rpc binding that WS-I does not allow, or the SOAP encoding",
    "soap-jms": "an element of W3C's SOAP over JMS that calls do not follow",
    "binding-unserved": "a binding that is not of SOAP",
    "no-service": "sources without any binding that was asked for",
}


_LONGEST: Final = 1_000
"""Characters of a message or repair, which may quote a source."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One defect of the sources and its repair.

    Attributes:
        file: path relative to the common folder of the sources, with `/`.
        line: line from 1; 0 for the whole file.
        rule: a key of `RULES`.
        repair: what was done; begins with "not generated" if something had to be left out.
    """

    file: str
    line: int
    rule: str
    message: str
    repair: str

    @property
    def failed(self) -> bool:
        """Whether something could not be generated."""
        return self.repair.startswith("not generated")

    def as_json(self) -> dict[str, str | int]:
        """The finding with the keys of the report."""
        return {
            "rule": self.rule,
            "file": self.file,
            "line": self.line,
            "message": self.message,
            "repair": self.repair,
        }

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.rule}: {self.message}; {self.repair}"


@dataclass(slots=True)
class Findings:
    """Collects findings without duplicates."""

    _found: dict[Finding, None] = field(default_factory=dict)

    def add(self, rule: str, file: str, line: int | None, message: str, repair: str) -> None:
        """Keep one finding. Raises SchemaError: `rule` is not in `RULES`."""
        if rule not in RULES:
            raise SchemaError(f"unknown rule {rule!r}")
        self._found[Finding(file, line or 0, rule, _shortened(message), _shortened(repair))] = None

    def of_files(self, files: Iterable[str]) -> list[Finding]:
        """The findings about some files, sorted."""
        wanted = set(files)
        return [finding for finding in self if finding.file in wanted]

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self._found))

    def __len__(self) -> int:
        return len(self._found)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
