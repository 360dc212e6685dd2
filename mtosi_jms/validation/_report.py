"""What a validation found: one report a file, one issue for each thing that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

IssueKind = Literal["unreadable", "malformed", "forbidden", "envelope", "undeclared", "schema", "more"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with a document.

    Attributes:
        kind: `unreadable` (the file could not be opened), `malformed` (not well-formed, empty, ending early, wrong
            encoding), `forbidden` (DTD, too deep, too large), `envelope` (SOAP 1.1 or P36), `undeclared` (no schema
            declares the element), `schema` (libxml2's finding), `more` (further findings that were not listed).
        line: line of the document, from 1, or None.
        path: path of the element with local names, positions from 1; empty where there is none.
        message: what is wrong and, where that is known, what to do.
    """

    kind: IssueKind
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on one document.

    Attributes:
        file: name of the document.
        well_formed: whether it was read to its end as well-formed XML; False where it could not be opened or was
            refused, since nobody knows then.
        issues: what is wrong, in document order.
    """

    file: str
    well_formed: bool
    issues: tuple[Issue, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing at all is wrong."""
        return self.well_formed and not self.issues

    def to_json(self) -> dict[str, Any]:
        """The report as plain values: file, well_formed, valid, issues (line, path, message, kind)."""
        issues = [
            {"line": issue.line, "path": issue.path, "message": issue.message, "kind": issue.kind}
            for issue in self.issues
        ]
        return {"file": self.file, "well_formed": self.well_formed, "valid": self.valid, "issues": issues}
