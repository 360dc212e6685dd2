"""libxml2's findings in the words of the document: prefixes in place of `{namespace}`, and what is missing in full."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from lxml import etree

from mtosi_jms.masking import MASK, is_secret
from mtosi_jms.namespaces import PREFIXES, split_clark

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
