"""Finds stale copies and examples among files that share a namespace, and the definitions that they repeat."""

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
    """Whether the name or folder of a file suggests a copy, an old version or an example."""
    *folders, last = name.split("/")
    stem = last.rpartition(".")[0] or last
    return any(_STALE_NAME.search(text) for text in (stem, *folders)) or any(
        folder.lower() in _STALE_FOLDERS for folder in folders
    )


def components(schema: etree._Element) -> set[Component]:
    """The kind and name of each global definition of a schema; simple and complex types are one kind."""
    found: set[Component] = set()
    for child in schema.iterchildren(*(f"{{{XSD}}}{kind}" for kind in _COMPONENTS)):
        kind = etree.QName(child).localname
        found.add(("type" if kind.endswith("Type") else kind, (child.get("name") or "").strip()))
    return found
