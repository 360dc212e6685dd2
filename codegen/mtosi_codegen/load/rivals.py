"""Which of several files with one namespace counts: what a WSDL reaches wins, stale copies and examples lose."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from mtosi_jms.namespaces import XSD

_STALE_NAME: Final = re.compile(
    r"(?:^|[\W_])(?:old|copy|bak|backup|orig|obsolete|deprecated|tmp)(?:[\W_]|\d*$)", re.IGNORECASE
)
_STALE_FOLDERS: Final = {"xml", "example", "examples", "sample", "samples", "old", "backup", "test", "tests"}
_COMPONENTS: Final = ("element", "complexType", "simpleType", "group", "attributeGroup", "attribute")

Component = tuple[str, str]


def looks_stale(name: str) -> bool:
    """Whether a file's name or folder says that it is a copy, a former version or an example."""
    *folders, last = name.split("/")
    stem = last.rpartition(".")[0] or last
    return any(_STALE_NAME.search(text) for text in (stem, *folders)) or any(
        folder.lower() in _STALE_FOLDERS for folder in folders
    )


def components(schema: etree._Element) -> set[Component]:
    """The kind and name of each global definition of a schema; types share one symbol space."""
    found: set[Component] = set()
    for child in schema.iterchildren(*(f"{{{XSD}}}{kind}" for kind in _COMPONENTS)):
        kind = etree.QName(child).localname
        found.add(("type" if kind.endswith("Type") else kind, (child.get("name") or "").strip()))
    return found
