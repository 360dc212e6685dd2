"""Why a document is invalid, in words: xmlschema's reasons beside the verdict of libxml2.

xmlschema reads the same schemas, as they were repaired, from files of a folder that is removed again. Its components
keep the order of the elements on disk, so that each leads to a file and line there.
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lxml import etree

from mtosi_jms.errors import MissingExtraError, SchemaError, XmlError
from mtosi_jms.masking import is_secret
from mtosi_jms.namespaces import split_clark
from mtosi_jms.validation._judge import readable
from mtosi_jms.validation._schemaset import SchemaSet
from mtosi_jms.validation._validator import parts
from mtosi_jms.xmlbind import ElementPaths, parse_xml, read_document

if TYPE_CHECKING:
    from xmlschema import XMLSchemaValidationError

_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one element is not valid.

    Attributes:
        expected: names of the elements that may stand there, with occurrences; empty where that is not the point.
        file: the schema that says so, None where it is not known.
        schema_line: the line there, from 1, or None.
    """

    path: str
    line: int | None
    reason: str
    expected: tuple[str, ...] = ()
    file: str | None = None
    schema_line: int | None = None

    def __str__(self) -> str:
        place = f" ({self.file}:{self.schema_line})" if self.file else ""
        wanted = f"; expected: {', '.join(self.expected)}" if self.expected else ""
        return f"{self.reason}{wanted}{place}"

    def to_json(self) -> dict[str, Any]:
        schema = {"file": self.file, "line": self.schema_line} if self.file else None
        return {
            "path": self.path,
            "line": self.line,
            "reason": self.reason,
            "expected": list(self.expected),
            "schema": schema,
        }


class Explainer:
    """Explains invalid documents.

    Raises:
        MissingExtraError: xmlschema is not installed.
        SchemaError: xmlschema refuses the schemas.
    """

    def __init__(self, schemas: SchemaSet) -> None:
        try:
            import xmlschema
        except ModuleNotFoundError as error:
            raise MissingExtraError("xmlschema", "codegen") from error
        with tempfile.TemporaryDirectory(prefix="mtosi-jms-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a schema lacks was noted when libxml2 read it
            driver, self._sources = schemas.write(Path(folder))
            try:
                self._schema = xmlschema.XMLSchema10(str(driver), allow="local", use_fallback=False, validation="lax")
            except (xmlschema.XMLSchemaException, RecursionError) as error:
                reason = " ".join(str(error).split())
                raise SchemaError(f"xmlschema refuses the schemas: {reason}", file=str(schemas.folder)) from None

    def explain_file(self, path: Path | str) -> list[Explanation]:
        """What is wrong with the parts of a document that schemas judge, in document order; the first 100 of each.

        Nothing for a file that cannot be read as XML: the report of the validator says why.
        """
        try:
            root = parse_xml(read_document(path))
        except (OSError, XmlError):
            return []
        paths = ElementPaths()
        found: list[Explanation] = []
        for part in parts(root):
            if part.tag in self._schema.maps.elements:
                errors = itertools.islice(self._schema.iter_errors(part), _MOST)
                found += [self._explanation(error, part, paths) for error in errors]
        return found

    def _explanation(self, error: XMLSchemaValidationError, part: etree._Element, paths: ElementPaths) -> Explanation:
        element = error.elem if isinstance(error.elem, etree._Element) else part
        child = error.invalid_child
        element = child if isinstance(child, etree._Element) else element
        reason = " ".join((error.reason or error.message).split()).partition(". Tag ")[0].rstrip(".")
        if is_secret(split_clark(str(element.tag))[1]):
            reason = "the value is not allowed"
        file, line = self._place(error.validator)
        expected = [_named(particle, element) for particle in _expected(error)]
        return Explanation(
            paths.of(element), element.sourceline, readable(reason, element), tuple(dict.fromkeys(expected)), file, line
        )

    def _place(self, component: Any) -> tuple[str | None, int | None]:
        schema: Any = getattr(component, "schema", None)
        element = getattr(component, "elem", None)
        known = self._sources.get(Path(str(schema.url)).name) if schema is not None else None
        if known is None:
            return None, None
        for copied, original in zip(_elements(schema.root), _elements(known.root), strict=False):
            if copied is element:
                return str(known.path), original.sourceline
        return str(known.path), known.root.sourceline


def _expected(error: XMLSchemaValidationError) -> list[Any]:
    """The particles that may stand where a child is wrong or missing: what xmlschema names, else all that come next."""
    index, parent = getattr(error, "index", None), error.elem
    group: Any = error.validator
    named = list(getattr(error, "expected", None) or ())
    if named or index is None or not hasattr(group, "iter_elements") or not isinstance(parent, etree._Element):
        return named
    particles = list(group.iter_elements())
    before = parent[index - 1].tag if index else None
    start = max((number for number, particle in enumerate(particles) if particle.name == before), default=-1)
    if start >= 0 and particles[start].max_occurs == 1:
        start += 1
    found: list[Any] = []
    for particle in particles[max(start, 0) :]:
        found.append(particle)
        if particle.min_occurs and group.model == "sequence":
            break
    return found


def _elements(root: Any) -> Iterable[Any]:
    return (element for element in root.iter() if isinstance(element.tag, str))


def _named(particle: Any, element: etree._Element) -> str:
    """An element that may stand somewhere, and how often."""
    name = readable(str(getattr(particle, "name", None) or "any element"), element)
    low, high = particle.min_occurs, particle.max_occurs
    return name if (low, high) == (1, 1) else f"{name} ({low}..{'unbounded' if high is None else high})"
