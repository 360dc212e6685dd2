"""Finds schemas that would exhaust libxml2, which expands groups and base types at each reference, without a bound.

Groups that refer to groups more than once stand for any number of particles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.namespaces import XSD
from mtosi_jms.validation._schemafile import SchemaFile

MAX_PARTICLES: Final = BOUNDS.schema_particles
MAX_LEVELS: Final = BOUNDS.schema_levels

_GROUP: Final = f"{{{XSD}}}group"
_COMPLEX: Final = f"{{{XSD}}}complexType"
_DERIVED: Final = (f"{{{XSD}}}extension", f"{{{XSD}}}restriction")
_PARTICLES: Final = tuple(f"{{{XSD}}}{name}" for name in ("element", "any", "sequence", "choice", "all"))

# Group or complex type, namespace, local name.
_Key = tuple[str, str, str]
# Particles, levels of groups in groups or of types derived from types.
_Size = tuple[int, int]
_OVER: Final[_Size] = (MAX_PARTICLES + 1, MAX_LEVELS + 1)


def overgrown(files: Iterable[SchemaFile]) -> dict[Path, tuple[int | None, str]]:
    """The files with a group or complex type beyond `MAX_PARTICLES` or `MAX_LEVELS`, each with line and reason."""
    files = list(files)
    groups = {
        (str(child.tag), file.namespace, str(child.get("name"))): (file, child)
        for file in files for child in file.root.iterchildren(_GROUP, _COMPLEX)
    }  # fmt: skip
    uses = {key: list(_uses(file, element)) for key, (file, element) in groups.items()}
    sizes: dict[_Key, _Size] = {}
    for key in groups:
        _settle(key, groups, uses, sizes)
    found: dict[Path, tuple[int | None, str]] = {}
    for file in files:
        for element in file.root.iter(_GROUP, _COMPLEX):
            particles, levels = _size(element, _uses(file, element), sizes)
            if particles > MAX_PARTICLES or levels > MAX_LEVELS:
                reason = f"more than {MAX_PARTICLES} particles or {MAX_LEVELS} levels with its groups and base types"
                found.setdefault(file.path, (element.sourceline, reason))
    return found


def _uses(file: SchemaFile, element: etree._Element) -> Iterator[_Key]:
    """The groups and base types that a definition refers to, each as often as it does."""
    for child in element.iterdescendants(_GROUP, *_DERIVED):
        kind, attribute = (_GROUP, "ref") if child.tag == _GROUP else (_COMPLEX, "base")
        prefix, _, local = str(child.get(attribute) or "").rpartition(":")
        # A schema without namespace takes that of whoever includes it, and so do the names in it.
        yield kind, child.nsmap.get(prefix or None, file.namespace), local


def _size(element: etree._Element, uses: Iterable[_Key], sizes: dict[_Key, _Size]) -> _Size:
    known = [sizes.get(use, (0, 0)) for use in uses]
    particles = sum(1 for _ in element.iterdescendants(*_PARTICLES)) + sum(particles for particles, _ in known)
    return min(particles, _OVER[0]), min(1 + max((levels for _, levels in known), default=0), _OVER[1])


def _settle(
    start: _Key,
    groups: dict[_Key, tuple[SchemaFile, etree._Element]],
    uses: dict[_Key, list[_Key]],
    sizes: dict[_Key, _Size],
) -> None:
    """Find the size of a definition after those it refers to; one that refers to itself is left to libxml2."""
    opened = {start: None}
    stack = [start]
    while stack:
        key = stack[-1]
        inner = next((use for use in uses[key] if use in groups and use not in sizes and use not in opened), None)
        if inner is not None:
            opened[inner] = None
            stack.append(inner)
        else:
            sizes[key] = _size(groups[key][1], uses[key], sizes)
            stack.pop()
