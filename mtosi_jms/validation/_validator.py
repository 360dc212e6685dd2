"""A document against the rules of SOAP 1.1, P36 and a schema set; what was found is a report with issues.

A bare MTOSI element is judged itself; of an envelope, the children of Header, of Body and of a Fault's detail are
judged where they are. libxml2 judges each against all schemas at once; an element that no schema declares is wrong, not
skipped.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError, DecodeError, MalformedXmlError, MissingExtraError, XmlError
from mtosi_jms.masking import shown_half_made
from mtosi_jms.validation._envelope import body_parts, envelope_breaches, parts
from mtosi_jms.validation._judge import LARGE, Finding, judge
from mtosi_jms.validation._messages import is_undeclared, readable, undeclared
from mtosi_jms.validation._schemaset import SchemaSet
from mtosi_jms.xmlbind import DEFAULT_LIMITS, ElementPaths, XmlLimits, XmlWarning, parse_xml, read_document

_MOST_WARNINGS: Final = 20

IssueKind = Literal["unreadable", "malformed", "forbidden", "envelope", "undeclared", "schema", "more"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with a document.

    Attributes:
        kind: `unreadable` (the file could not be read), `malformed` (not well-formed, empty, ending early, wrong
            encoding), `forbidden` (DTD, too deep, too large), `envelope` (SOAP 1.1 or P36), `undeclared` (no schema
            declares the element), `schema` (libxml2's finding), `more` (further findings that were not listed).
        line: line of the document, from 1, or None.
        path: path of the element with local names, positions from 1; empty where there is none.
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
        well_formed: whether it was read to its end as well-formed XML; False where it could not be opened or was
            refused: then it is unknown.
    """

    file: str
    well_formed: bool
    issues: tuple[Issue, ...] = ()

    @property
    def valid(self) -> bool:
        return self.well_formed and not self.issues

    def to_json(self) -> dict[str, Any]:
        """The report as plain values: file, well_formed, valid, issues (line, path, message, kind)."""
        issues = [
            {"line": issue.line, "path": issue.path, "message": issue.message, "kind": issue.kind}
            for issue in self.issues
        ]
        return {"file": self.file, "well_formed": self.well_formed, "valid": self.valid, "issues": issues}


MAX_ISSUES: Final = BOUNDS.validation_issues


@dataclass(frozen=True, slots=True)
class Validator:
    """Validates documents against one schema set. Holds no state of a document.

    Attributes:
        max_issues: how many issues of one document are listed; one more says that there are others.
        large: number of elements from which a part is judged as a stream (see `judge`).
    """

    schemas: SchemaSet
    limits: XmlLimits = DEFAULT_LIMITS
    max_issues: int = MAX_ISSUES
    large: int = LARGE

    def validate_file(self, path: Path | str) -> Report:
        """Validate one file, compressed or not. Never raises for anything that is wrong with the file or in it."""
        try:
            data = read_document(path, limits=self.limits)
        except MalformedXmlError as error:
            return Report(str(path), well_formed=False, issues=(Issue("malformed", None, "", error.message),))
        except (MissingExtraError, OSError) as error:
            issue = Issue("unreadable", None, "", f"cannot be read: {getattr(error, 'strerror', None) or error}")
            return Report(str(path), well_formed=False, issues=(issue,))
        return self.validate_bytes(data, str(path))

    def validate_bytes(self, data: bytes, name: str = "") -> Report:
        """Validate one document, which the report calls by this name."""
        try:
            root = parse_xml(data, limits=self.limits)
        except XmlError as error:
            kind: IssueKind = "malformed" if isinstance(error, MalformedXmlError) else "forbidden"
            return Report(name, False, (Issue(kind, error.line, error.path or "", error.message),))
        return Report(name, True, tuple(self._issues(root)))

    def validate_body(self, data: bytes | str, name: str = "") -> Report:
        """Validate what the Body of an envelope holds; the envelope itself and its header are not judged.

        Args:
            data: the document; text is taken as Unicode, its encoding declaration ignored.

        Raises:
            MalformedXmlError, ForbiddenXmlError: not XML that may be read.
        """
        root = parse_xml(data, source=name or None, limits=self.limits)
        paths = ElementPaths()
        return Report(name, True, tuple(self._judged(body_parts(root), [], paths)))

    def _issues(self, root: etree._Element) -> list[Issue]:
        paths = ElementPaths()
        breaches = envelope_breaches(root)
        found = [Issue("envelope", element.sourceline, paths.of(element), message) for element, message in breaches]
        return self._judged(parts(root), found, paths)

    def _judged(self, judged: list[etree._Element], issues: list[Issue], paths: ElementPaths) -> list[Issue]:
        more = len(issues) > self.max_issues
        for part in judged:
            findings, cut = judge(part, self.schemas.schema, self.max_issues, paths, self.large)
            issues.extend(self._issue(finding, part) for finding in findings)
            more = more or cut
        issues.sort(key=lambda issue: issue.line or 0)
        if more or len(issues) > self.max_issues:
            message = f"only the first {self.max_issues} issues are listed; there are more"
            issues[self.max_issues :] = [Issue("more", None, "", message)]
        return issues

    def _issue(self, finding: Finding, part: etree._Element) -> Issue:
        if finding.element is part and is_undeclared(finding.message):
            return Issue("undeclared", finding.line, finding.path, undeclared(part, self.schemas))
        return Issue("schema", finding.line, finding.path, readable(finding.message, finding.element))


class BodyValidation:
    """Judges the SOAP body of each message that a role receives. Threads and roles may share one.

    Headers and patterns are not judged here: that is for the profile's `validation`.

    Args:
        action: `warn`: what is wrong becomes warnings of the envelope, at most 20 and one more that says so; `fail`: an
            error, so that the message is one that cannot be read.
        schemas: what bodies have to fit; by default the project's own.

    Raises:
        ConfigError: another action, or the project's own schemas are not installed.
    """

    def __init__(self, action: Literal["warn", "fail"] = "fail", schemas: SchemaSet | None = None) -> None:
        if action not in ("warn", "fail"):
            raise ConfigError(f"{action!r}: a body's validation has the actions warn and fail")
        self._action = action
        self._validator = Validator(schemas or _own_schemas(), max_issues=_MOST_WARNINGS)
        self._lock = threading.Lock()  # a compiled schema has one list of findings

    @shown_half_made
    def __repr__(self) -> str:
        return f"<BodyValidation {self._action} by {self._validator.schemas.folder.name}>"

    def check(self, document: bytes | str) -> list[XmlWarning]:
        """What is wrong with an envelope's body.

        Args:
            document: the envelope; text is taken as Unicode, its encoding declaration ignored.

        Raises:
            DecodeError: the action is `fail`, and the body does not fit the schemas.
            MalformedXmlError, ForbiddenXmlError: not XML that may be read.
        """
        with self._lock:
            issues = self._validator.validate_body(document).issues
        if issues and self._action == "fail":
            first, others = issues[0], len(issues) - 1
            more = f"; and {others} more" if others else ""
            raise DecodeError(f"{first.message}{more}", line=first.line, path=first.path)
        return [XmlWarning("S12", issue.message, issue.path, issue.line) for issue in issues]


@cache
def _own_schemas() -> SchemaSet:
    return SchemaSet.load()
