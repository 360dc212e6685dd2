"""A document against the rules of SOAP 1.1, P36 and a schema set; what was found is a report with issues.

A bare MTOSI element is judged itself; of an envelope, the children of Header, of Body and of a Fault's detail are
judged where they are. libxml2 judges each against all schemas at once; an element that no schema declares is wrong, not
skipped.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError, DecodeError, MalformedXmlError, MissingExtraError, XmlError
from mtosi_jms.header import BY_TAG
from mtosi_jms.masking import shown_half_made
from mtosi_jms.namespaces import SOAP11, SOAP12, split_clark
from mtosi_jms.validation._judge import LARGE, Finding, is_undeclared, judge, readable, undeclared
from mtosi_jms.validation._schemaset import SchemaSet
from mtosi_jms.xmlbind import DEFAULT_LIMITS, ElementPaths, XmlLimits, XmlWarning, parse_xml, read_document

_ENVELOPE: Final = f"{{{SOAP11}}}Envelope"
_ENVELOPE_12: Final = f"{{{SOAP12}}}Envelope"
_HEADER: Final = f"{{{SOAP11}}}Header"
_BODY: Final = f"{{{SOAP11}}}Body"
_FAULT: Final = f"{{{SOAP11}}}Fault"
_BODY_12: Final = f"{{{SOAP12}}}Body"
_FAULT_12: Final = f"{{{SOAP12}}}Fault"
# The element at fault, and what is wrong with it.
Breach = tuple[etree._Element, str]
_FAULT_CHILDREN: Final = ("faultcode", "faultstring", "faultactor", "detail")


def parts(root: etree._Element) -> list[etree._Element]:
    """The elements that the schemas judge, in document order; the root itself where it is not an envelope."""
    if root.tag != _ENVELOPE:
        return [] if root.tag == _ENVELOPE_12 else [root]
    found: list[etree._Element] = []
    for child in root:
        found.extend(child if child.tag == _HEADER else _in_body(child))
    return found


def body_parts(root: etree._Element) -> list[etree._Element]:
    """Those of them in the Body of an envelope, of SOAP 1.2 too."""
    return [part for child in root for part in _in_body(child)]


def _in_body(body: etree._Element) -> Iterator[etree._Element]:
    if body.tag in (_BODY, _BODY_12):
        for entry in body:
            yield from _detail_entries(entry) if entry.tag in (_FAULT, _FAULT_12) else [entry]


def _detail_entries(fault: etree._Element) -> Iterator[etree._Element]:
    # A detail in the wrong namespace is an issue of its own; its children are judged all the same.
    for child in fault:
        if split_clark(str(child.tag))[1] in ("detail", "Detail"):
            yield from child


def envelope_breaches(root: etree._Element) -> Iterator[Breach]:
    """Every breach of the rules above; nothing where the document is not an envelope."""
    if root.tag == _ENVELOPE_12:
        yield root, "a SOAP 1.2 envelope: MTOSI over JMS uses SOAP 1.1; nothing in it was validated"
    if root.tag != _ENVELOPE:
        return
    yield from _envelope_children(root)
    for header in root.iterchildren(_HEADER):
        yield from _text(header)
        count = sum(1 for child in header if child.tag in BY_TAG)
        if count != 1:
            known = " or ".join(sorted({split_clark(tag)[0] for tag in BY_TAG} - {""}))
            yield header, f"holds {count} MTOSI headers (header of {known}); exactly one is needed"
    for body in root.iterchildren(_BODY):
        yield from _body(body)


def _envelope_children(root: etree._Element) -> Iterator[Breach]:
    yield from _text(root)
    bodies = 0
    headers = 0
    for child in root:
        if child.tag == _HEADER:
            headers += 1
            if bodies or headers > 1:
                yield child, "a second Header" if headers > 1 else "the Header has to stand before the Body"
        elif child.tag == _BODY:
            bodies += 1
            if bodies > 1:
                yield child, "a second Body: an envelope has exactly one"
        elif not bodies or split_clark(str(child.tag))[0] in ("", SOAP11):
            yield child, f"{_readable(child)} has no place in a SOAP envelope; only Header and Body have"
    if not bodies:
        yield root, "the envelope has no Body"


def _body(body: etree._Element) -> Iterator[Breach]:
    yield from _text(body)
    if not len(body):
        yield body, "the Body is empty: it has to hold the MTOSI message or a Fault"
    for extra in body[1:]:
        yield extra, "the Body holds more than one element: it has to hold one MTOSI message or one Fault"
    for fault in body.iterchildren(_FAULT):
        yield from _fault(fault)


def _fault(fault: etree._Element) -> Iterator[Breach]:
    yield from _text(fault)
    seen: list[str] = []
    for child in fault:
        namespace, local = split_clark(str(child.tag))
        if local not in _FAULT_CHILDREN:
            yield child, f"{local} has no place in a Fault; it holds {', '.join(_FAULT_CHILDREN)}"
            continue
        if namespace:
            yield child, f"{local} of a SOAP 1.1 Fault has no namespace; this one is in {namespace}"
        if local in seen:
            yield child, f"a second {local}"
        elif any(_FAULT_CHILDREN.index(name) > _FAULT_CHILDREN.index(local) for name in seen):
            yield child, f"{local} stands after {seen[-1]}; the order is {', '.join(_FAULT_CHILDREN)}"
        seen.append(local)
        if local == "faultcode":
            yield from _fault_code(child)
        elif local == "detail":
            yield from _text(child)
    for name in ("faultcode", "faultstring"):
        if name not in seen:
            yield fault, f"the Fault has no {name}"


def _fault_code(code: etree._Element) -> Iterator[Breach]:
    prefix, colon, _ = (code.text or "").strip().rpartition(":")
    if len(code) or not (code.text or "").strip():
        yield code, "faultcode has to hold a name such as soap:Server"
    elif colon and prefix not in code.nsmap:
        yield code, f"the prefix {prefix!r} of the fault code is not declared"


def _text(element: etree._Element) -> Iterator[Breach]:
    texts = (element.text, *(child.tail for child in element))
    stray = next((text for text in texts if text and text.strip()), None)
    if stray is not None:
        yield element, f"{_readable(element)} holds text, {stray.strip()[:40]!r}; only elements belong there"


def _readable(element: etree._Element) -> str:
    return split_clark(str(element.tag))[1]


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
