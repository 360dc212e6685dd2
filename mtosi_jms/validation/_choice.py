"""Which files make up a namespace, where a tree has several for it.

Files that another file of the namespace includes belong to that file. Files that declare different things complement
each other and are taken together. Files that declare the same thing twice are rivals (`X.xsd` and `X-old.xsd`): the
one that other schemas and WSDLs of the tree import most is taken, the others are left out and noted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import read_file
from mtosi_jms.errors import XmlError
from mtosi_jms.namespaces import WSDL, XSD
from mtosi_jms.validation._locate import resolve_location
from mtosi_jms.validation._schemafile import SchemaFile, SchemaNote
from mtosi_jms.xmlbind import parse_xml

_LEFTOVER = re.compile(r"\b(?:old|copy|backup|bak|orig)\b", re.IGNORECASE)

Choice = dict[str, list[SchemaFile]]


def choose(
    files: Mapping[Path, SchemaFile], primary: Collection[Path], wsdl_imports: Callable[[], Counter[Path]]
) -> tuple[Choice, list[SchemaNote]]:
    """Choose the files of each namespace.

    Args:
        primary: those that the folder itself holds; others, reached by an import out of it, count only for
            namespaces that the folder lacks.
        wsdl_imports: counts how often a WSDL imports a file; called only where there are rivals.

    Returns:
        the files of each namespace, the main one first, and a note on each rival left out.
    """
    heads = _by_namespace(files, primary)
    notes: list[SchemaNote] = []
    counts: Counter[Path] | None = None
    for namespace, candidates in heads.items():
        if len(candidates) == 1:
            continue
        if counts is None:
            counts = _imports(files.values()) + wsdl_imports()
        ranked = sorted(candidates, key=_rank(counts))
        heads[namespace], rivals = _compatible(ranked)
        notes.extend(_rival_note(rival, heads[namespace][0]) for rival in rivals)
    return heads, notes


def _by_namespace(files: Mapping[Path, SchemaFile], primary: Collection[Path]) -> Choice:
    included = {link.target for file in files.values() for link in file.links if link.kind != "import"}
    heads: Choice = {}
    for path in sorted(files):
        if path not in included:
            heads.setdefault(files[path].namespace, []).append(files[path])
    for path in sorted(files):
        # Files that include each other in a ring have no head: any of them brings in the rest.
        if files[path].namespace:
            heads.setdefault(files[path].namespace, [files[path]])
    for namespace, candidates in heads.items():
        heads[namespace] = [file for file in candidates if file.path in primary] or candidates
    return heads


def _imports(files: Iterable[SchemaFile]) -> Counter[Path]:
    return Counter(link.target for file in files for link in file.links if link.target is not None)


def _rank(counts: Counter[Path]) -> Callable[[SchemaFile], tuple[int, bool, int, int, str]]:
    def rank(file: SchemaFile) -> tuple[int, bool, int, int, str]:
        dangling = sum(1 for link in file.links if link.location is not None and link.target is None)
        stem = file.path.stem.replace("_", " ")
        return -counts[file.path], bool(_LEFTOVER.search(stem)), dangling, len(stem), str(file.path)

    return rank


def _compatible(ranked: list[SchemaFile]) -> tuple[list[SchemaFile], list[SchemaFile]]:
    """Take files in order as long as none declares again what an earlier one declares."""
    taken: list[SchemaFile] = []
    rivals: list[SchemaFile] = []
    symbols: set[tuple[str, str]] = set()
    for file in ranked:
        if symbols.isdisjoint(file.symbols):
            taken.append(file)
            symbols |= file.symbols
        else:
            rivals.append(file)
    return taken, rivals


def _rival_note(rival: SchemaFile, winner: SchemaFile) -> SchemaNote:
    message = f"left out: a rival of {winner.path}, which counts for namespace {rival.namespace}"
    return SchemaNote("rival", str(rival.path), rival.root.sourceline, message)


def count_wsdl_imports(wsdls: Iterable[Path]) -> Counter[Path]:
    """How often the WSDLs of a tree import each schema file. A WSDL that cannot be read imports nothing."""
    counts: Counter[Path] = Counter()
    for path in wsdls:
        try:
            root = parse_xml(read_file(path, BOUNDS.source_bytes), schema=True)
        except (OSError, XmlError):
            # Only schemas are judged here; the generator is the one to report a broken WSDL.
            continue
        for element in root.iter(f"{{{XSD}}}import", f"{{{XSD}}}include", f"{{{WSDL}}}import"):
            location = element.get("schemaLocation") or element.get("location") or ""
            target, _ = resolve_location(path.parent, location)
            if target is not None:
                counts[target] += 1
    return counts
