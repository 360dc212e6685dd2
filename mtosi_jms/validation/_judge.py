"""One element against a schema set: libxml2's findings, each with its element.

libxml2 reports every finding, and lxml computes for each the path of its node, which takes as long as the element has
siblings before it: a reply of 100,000 elements with one systematic mistake would take minutes, a hostile one hours.
Small elements are judged as trees. Large ones are judged as a stream: once to learn whether anything is wrong, and only
then once more beside the tree that was parsed, so that lines and paths are the same, until enough has been found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lxml import etree

from mtosi_jms.masking import MASK, is_secret
from mtosi_jms.namespaces import PREFIXES, split_clark
from mtosi_jms.xmlbind import ElementPaths

LARGE: Final = 5_000
_CHUNK: Final = 1 << 16
# Found when a child begins, and about its parent: content where there must be none, or no elements.
_ABOUT_PARENT: Final = frozenset(
    {
        etree.ErrorTypes.SCHEMAV_CVC_TYPE_3_1_2,
        etree.ErrorTypes.SCHEMAV_CVC_COMPLEX_TYPE_2_1,
        etree.ErrorTypes.SCHEMAV_CVC_COMPLEX_TYPE_2_2,
        etree.ErrorTypes.SCHEMAV_CVC_ELT_3_2_1,
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    message: str
    element: etree._Element
    line: int | None
    path: str


def judge(
    element: etree._Element, schema: etree.XMLSchema, limit: int, paths: ElementPaths, large: int = LARGE
) -> tuple[list[Finding], bool]:
    """Validate one element where it stands, with the namespaces that are in scope there.

    Args:
        large: number of elements from which the element is judged as a stream.

    Returns:
        the findings in document order, and whether there are more than `limit`.
    """
    if _is_large(element, large):
        data = etree.tostring(element, with_tail=False)
        findings = [] if _fits(data, schema) else _stream(data, element, schema, limit + 1, paths)
    elif schema.validate(element):
        findings = []
    else:
        findings = [_from_entry(entry, element, paths) for entry in list(schema.error_log)[: limit + 1]]
    return findings[:limit], len(findings) > limit


def _is_large(element: etree._Element, large: int) -> bool:
    return any(number >= large for number, _ in enumerate(element.iter(), 1))


def _from_entry(entry: Any, root: etree._Element, paths: ElementPaths) -> Finding:
    element = _follow(entry.path or "", root)
    path = paths.of(element)
    attribute = (entry.path or "").rpartition("/")[2]
    if attribute.startswith("@"):
        path = f"{path}/{attribute}"
    return Finding(entry.message, element, entry.line or element.sourceline, path)


def _follow(path: str, root: etree._Element) -> etree._Element:
    """The element that one of libxml2's node paths means, such as `/m:meList/*[2]/m:name`.

    A step counts the siblings of equal prefix and name; a step of `*` stands for a default namespace and counts all.
    """
    element = root
    for step in path.split("/")[2:]:
        name, _, position = step.partition("[")
        number = int(position.rstrip("]") or 1)
        if name.startswith("@"):
            break
        same = (child for child in element if name in ("*", _name(child)))
        found = next((child for place, child in enumerate(same, 1) if place == number), None)
        if found is None:
            break
        element = found
    return element


def _name(element: etree._Element) -> str:
    local = str(element.tag).rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else local


class _Enough(Exception):
    """The maximum of findings is reached."""


class _Stream:
    """Parser target that walks the parsed tree in step with the stream and gives each new finding its element.

    libxml2 judges an event after the target has seen it, so that what is new at one event belongs to the one before.
    """

    def __init__(self, root: etree._Element, limit: int, paths: ElementPaths) -> None:
        self.findings: list[Finding] = []
        self.parser: etree.XMLParser | None = None
        self._limit = limit
        self._paths = paths
        self._walk: Iterator[etree._Element] = root.iter()
        self._open: list[etree._Element] = []
        self._last: etree._Element = root
        self._began = False

    def start(self, tag: str, attributes: object) -> None:
        self._collect()
        self._last, self._began = next(self._walk), True
        self._open.append(self._last)

    def data(self, text: str) -> None:
        self._collect()
        self._last, self._began = self._open[-1], False

    def end(self, tag: str) -> None:
        self._collect()
        self._last, self._began = self._open.pop(), False

    def close(self) -> None:
        self._collect()

    def _collect(self) -> None:
        log = self.parser.feed_error_log if self.parser is not None else ()
        # The log is copied at each look at it: its length shows first whether there is anything new.
        if len(log) == len(self.findings):
            return
        for entry in list(log)[len(self.findings) :]:
            element = self._last
            if self._began and entry.type in _ABOUT_PARENT and len(self._open) > 1:
                element = self._open[-2]
            self.findings.append(Finding(entry.message, element, element.sourceline, self._paths.of(element)))
        if len(self.findings) >= self._limit:
            raise _Enough


class _Silent:
    """Parser target that wants no events: nothing is made of the document."""

    def close(self) -> None:
        pass


def _fits(data: bytes, schema: etree.XMLSchema) -> bool:
    parser = _parser(schema, _Silent())
    parser.feed(data)
    parser.close()
    return len(parser.feed_error_log) == 0


def _stream(
    data: bytes, element: etree._Element, schema: etree.XMLSchema, limit: int, paths: ElementPaths
) -> list[Finding]:
    target = _Stream(element, limit, paths)
    target.parser = parser = _parser(schema, target)
    try:
        for start in range(0, len(data), _CHUNK):
            parser.feed(data[start : start + _CHUNK])
        parser.close()
    except _Enough:
        pass
    return target.findings


def _parser(schema: etree.XMLSchema, target: _Stream | _Silent) -> etree.XMLParser:
    return etree.XMLParser(schema=schema, target=target, huge_tree=True, resolve_entities=False, no_network=True)


if TYPE_CHECKING:
    from mtosi_jms.validation._schemaset import SchemaSet

_CLARK: Final = re.compile(r"\{([^{}\s']*)\}(?=[\w*])")
_MTOP: Final = re.compile(r"http://www\.tmforum\.org/mtop/\w+/xsd/([\w.-]+)/v[\w.-]+$")
_ROOT_FINDING: Final = "No matching global declaration"
_AFTER_VALUE: Final = re.compile(r"'(?= (?:is|has|does|of) )")


def readable(message: str, element: etree._Element | None) -> str:
    """A message of libxml2 with the document's own prefixes; a credential that it quotes is masked (C55).

    Where the document has none for a namespace, the usual prefix stands, or the short name inside an MTOSI namespace;
    any other namespace stays as it is.
    """
    prefixes: dict[str, str | None] = {}
    if element is not None:
        prefixes = {uri: prefix for prefix, uri in element.nsmap.items()}
        # Of several prefixes for one namespace the element's own is the one that the reader sees.
        prefixes[split_clark(str(element.tag))[0]] = element.prefix
        place, colon, finding = message.partition("': ")
        if is_secret(place) or is_secret(split_clark(str(element.tag))[1]):
            message = place + colon + _masked(finding)

    def shorten(match: re.Match[str]) -> str:
        uri = match.group(1)
        if uri in prefixes:
            return f"{prefixes[uri]}:" if prefixes[uri] else ""
        if uri in PREFIXES:
            return f"{PREFIXES[uri]}:"
        short = _MTOP.match(uri)
        return f"{short.group(1)}:" if short else match.group(0)

    return _CLARK.sub(shorten, message.strip())


def _masked(finding: str) -> str:
    """A finding with the value masked that it quotes, from its first quote to the last that may close it."""
    start = 0 if finding.startswith("'") else finding.find("value '") + len("value ")
    ends = [found.end() for found in _AFTER_VALUE.finditer(finding)]
    return f"{finding[:start]}{MASK}{finding[ends[-1] :]}" if ends and "'" in finding[start : ends[-1] - 1] else finding


def is_undeclared(message: str) -> bool:
    """Whether libxml2 says that no schema declares the element it was given."""
    return _ROOT_FINDING in message


def undeclared(element: etree._Element, schemas: SchemaSet) -> str:
    """Why an element is not declared, and what it might have been meant to be."""
    namespace, local = split_clark(str(element.tag))
    if namespace in schemas.left_out:
        return f"no usable schema for {namespace}: {schemas.left_out[namespace]}"
    if not namespace:
        return f"no schema declares {local}: it is in no namespace"
    known = schemas.elements.get(namespace)
    if known is None:
        near = sorted(uri for uri in schemas.elements if _loosely(uri) == _loosely(namespace))
        hint = f"; did you mean {' or '.join(near)}?" if near else f" (schemas of {schemas.folder})"
        return f"no schema declares {local}: none has the namespace {namespace}{hint}"
    near = difflib.get_close_matches(local, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"no schema declares {local}: namespace {namespace} has no such element{hint}"


def _loosely(uri: str) -> str:
    """A namespace without what is mistaken most: case, a slash at the end, the version."""
    return re.sub(r"/v\d[\w.-]*$", "", uri.strip().lower().rstrip("/"))
