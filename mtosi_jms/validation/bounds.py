"""Schemas that a validator cannot hold: groups that refer to groups more than once stand for any number of particles.

libxml2 writes groups out wherever a type refers to them, without a bound on time or memory, so such a file is found
before libxml2 gets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_jms.namespaces import XSD
from mtosi_jms.validation.schemafile import SchemaFile

MAX_PARTICLES: Final = 100_000
MAX_LEVELS: Final = 200

_GROUP: Final = f"{{{XSD}}}group"
_COMPLEX: Final = f"{{{XSD}}}complexType"
_PARTICLES: Final = tuple(f"{{{XSD}}}{name}" for name in ("element", "any", "sequence", "choice", "all"))

# Particles, levels of groups in groups.
_Size = tuple[int, int]
_OVER: Final[_Size] = (MAX_PARTICLES + 1, MAX_LEVELS + 1)


def overgrown(files: Iterable[SchemaFile]) -> dict[Path, tuple[int | None, str]]:
    """The files with a group or complex type beyond `MAX_PARTICLES` or `MAX_LEVELS`, each with line and reason."""
    files = list(files)
    groups = {
        (file.namespace, str(child.get("name"))): (file, child) for file in files for child in file.root.iter(_GROUP)
        if child.getparent() is file.root and child.get("name") is not None
    }  # fmt: skip
    if not groups:
        return {}
    uses = {key: list(_uses(file, element)) for key, (file, element) in groups.items()}
    sizes: dict[tuple[str, str], _Size] = {}
    for key in groups:
        _settle(key, groups, uses, sizes)
    found: dict[Path, tuple[int | None, str]] = {}
    for file in files:
        for element in file.root.iter(_GROUP, _COMPLEX):
            particles, levels = _size(element, _uses(file, element), sizes)
            if particles > MAX_PARTICLES or levels > MAX_LEVELS:
                reason = f"more than {MAX_PARTICLES} particles or {MAX_LEVELS} levels once its groups are written out"
                found.setdefault(file.path, (element.sourceline, reason))
    return found


def _uses(file: SchemaFile, element: etree._Element) -> Iterator[tuple[str, str]]:
    """The groups that a definition refers to, each as often as it does."""
    for child in element.iterdescendants(_GROUP):
        prefix, _, local = str(child.get("ref") or "").rpartition(":")
        # A schema without namespace takes that of whoever includes it, and so do the names in it.
        yield child.nsmap.get(prefix or None, file.namespace), local


def _size(element: etree._Element, uses: Iterable[tuple[str, str]], sizes: dict[tuple[str, str], _Size]) -> _Size:
    known = [sizes.get(use, (0, 0)) for use in uses]
    particles = sum(1 for _ in element.iterdescendants(*_PARTICLES)) + sum(particles for particles, _ in known)
    return min(particles, _OVER[0]), min(1 + max((levels for _, levels in known), default=0), _OVER[1])


def _settle(
    start: tuple[str, str],
    groups: dict[tuple[str, str], tuple[SchemaFile, etree._Element]],
    uses: dict[tuple[str, str], list[tuple[str, str]]],
    sizes: dict[tuple[str, str], _Size],
) -> None:
    """Find the size of a group after those of the groups in it; one that contains itself is left to libxml2."""
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
