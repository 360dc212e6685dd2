"""One XSD file as read: its namespace, what it declares, what it refers to, and the repairs it needs.

Repairs are made in memory and each is noted; the file is never touched. Released schemas carry blanks around names
(`name="meRef "`), which libxml2 takes as part of the name, so that no element ever matches.
"""

from __future__ import annotations

import os
import stat
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from lxml import etree

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError, SchemaError, XmlError
from mtosi_jms.namespaces import XSD
from mtosi_jms.xmlbind import parse_xml

_PACKAGE = Path(__file__).resolve().parent.parent
_SHARE = Path("share", "mtosi-jms", "xsd")


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What a folder holds.

    Attributes:
        wsdls: its WSDL files, sorted; their imports distinguish the schemas that count from leftovers.
        unreadable: (path, reason) of sub-folders that could not be listed, and of schemas that are not regular files.
    """

    folder: Path
    schemas: tuple[Path, ...]
    wsdls: tuple[Path, ...]
    unreadable: tuple[tuple[Path, str], ...] = ()


def default_folder() -> Path:
    """The folder of the project's own schemas: the checkout's first, else the installation's. Raises ConfigError:
    neither is there; the text names the places that were tried."""
    places = list(_own_places())
    for place in places:
        if place.is_dir():
            return place
    tried = ", ".join(map(str, places))
    raise ConfigError(f"the schemas of mtosi-jms are not installed (tried {tried}): reinstall, or give --schemas DIR")


def own_files() -> FoundFiles:
    """The project's own schemas, of all releases. Raises ConfigError, SchemaError: as for `default_folder` and
    `find_files`."""
    found, beside = find_files(default_folder()), default_folder().parent / "mtosi-1.1" / "xsd"
    older = find_files(beside).schemas if beside.is_dir() else ()
    return replace(found, schemas=(*found.schemas, *older))


def _own_places() -> Iterator[Path]:
    root = _PACKAGE.parent
    if (root / "pyproject.toml").is_file():
        yield root / "xsd"
    yield Path(sysconfig.get_path("data")) / _SHARE
    yield Path(sysconfig.get_path("data", sysconfig.get_preferred_scheme("user"))) / _SHARE
    # `pip install --target DIR` puts the data beside the package.
    yield root / _SHARE


def find_files(folder: Path) -> FoundFiles:
    """List the schemas of a release tree, of one `IIS/xsd` folder, of any folder, or one XSD file. Raises SchemaError:
    no such folder, it cannot be read, or it holds no schema."""
    folder = folder.absolute()
    if _is_file(folder):
        return FoundFiles(folder.parent, (folder,), ())
    unreadable: list[tuple[Path, str]] = []

    def failed(error: OSError) -> None:
        if error.filename is None or Path(error.filename) == folder:
            raise SchemaError(f"cannot be read: {error.strerror}", file=str(folder)) from error
        unreadable.append((Path(error.filename), error.strerror or type(error).__name__))

    schemas: list[Path] = []
    wsdls: list[Path] = []
    for parent, _, names in os.walk(folder, onerror=failed):
        paths = [Path(parent, name) for name in names]
        for path in paths:
            wanted = {".xsd": schemas, ".wsdl": wsdls}.get(path.suffix.lower())
            if wanted is not None and _is_special(path):
                unreadable.append((path, "not a regular file"))
            elif wanted is not None:
                wanted.append(path)
    released = [path for path in schemas if _is_release_folder(path.parent)]
    schemas = released or schemas
    if not schemas:
        reasons = "".join(f"; {path}: {reason}" for path, reason in unreadable)
        raise SchemaError(f"no XSD file in this folder{reasons and ' that can be read'}{reasons}", file=str(folder))
    return FoundFiles(folder, tuple(sorted(schemas)), tuple(sorted(wsdls)), tuple(unreadable))


def _is_special(path: Path) -> bool:
    """Whether a path is a pipe or a device: reading one would never end."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False  # whoever reads it says why it cannot be read


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_release_folder(folder: Path) -> bool:
    return folder.name.lower() == "xsd" and folder.parent.name.lower() == "iis"


def resolve_location(base: Path, location: str) -> tuple[Path | None, bool]:
    """The file that a schemaLocation means, and whether it is named exactly.

    Blanks around it, backslashes, percent escapes and the wrong case are tolerated. Network addresses are never
    followed.
    """
    plain = location.strip().replace("\\", "/")
    parts = urlsplit(plain)
    if not parts.path or "\0" in parts.path or (len(parts.scheme) > 1 and parts.scheme != "file"):
        return None, False
    target = Path(os.path.normpath(base / unquote(parts.path)))
    if _is_file(target):
        return target, plain == location
    return _any_case(target), False


def _any_case(target: Path) -> Path | None:
    """The file whose path differs from `target` in case only, or None."""
    place = Path(target.anchor)
    for step in target.parts[1:]:
        try:
            if (place / step).exists():
                place = place / step
                continue
            matches = sorted(entry for entry in place.iterdir() if entry.name.casefold() == step.casefold())
        except OSError:
            return None
        if not matches:
            return None
        place = matches[0]
    return place if _is_file(place) else None


_NAMES: Final = ("name", "ref", "type", "base", "itemType", "refer", "substitutionGroup")
_LINKS: Final = {f"{{{XSD}}}{kind}": kind for kind in ("import", "include", "redefine")}
_ELEMENT: Final = f"{{{XSD}}}element"
# Simple and complex types share one symbol space.
_SYMBOLS: Final = {
    f"{{{XSD}}}{tag}": kind
    for tag, kind in (
        ("element", "element"),
        ("attribute", "attribute"),
        ("complexType", "type"),
        ("simpleType", "type"),
        ("group", "group"),
        ("attributeGroup", "attributeGroup"),
        ("notation", "notation"),
    )
}


@dataclass(frozen=True, slots=True)
class SchemaNote:
    """One thing about a schema that was repaired, or that keeps it from being used.

    Attributes:
        rule: `blank-name`, `schema-location`, `import-namespace`, `rival`, `unreadable` or `left-out`.
    """

    rule: str
    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


@dataclass(slots=True)
class SchemaLink:
    """One xsd:import, xsd:include or xsd:redefine.

    Attributes:
        location: the schemaLocation attribute unchanged, None where absent.
        target: the file that the location means, or None.
        exact: whether the location names that file exactly.
    """

    kind: str
    index: int
    line: int | None
    namespace: str
    location: str | None
    target: Path | None
    exact: bool


@dataclass(slots=True)
class SchemaFile:
    """One schema, repaired in memory; its symbols are kind and name of its global components."""

    path: Path
    namespace: str
    root: etree._Element
    links: list[SchemaLink]
    symbols: frozenset[tuple[str, str]]
    elements: frozenset[str]
    notes: list[SchemaNote] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The address under which libxml2 is given this schema; never one that it could open by itself."""
        return f"mtosi-schema:/{self.path.as_posix().encode().hex()}.xsd"


def read_schema(path: Path) -> SchemaFile:
    """Read one XSD file and repair the blanks around its names. Raises SchemaError: it cannot be read, is not
    well-formed, has a DTD with entities, or is not a schema; with the line."""
    try:
        root = parse_xml(read_file(path, BOUNDS.source_bytes), schema=True)
    except OSError as error:
        raise SchemaError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except XmlError as error:
        raise SchemaError(error.message, file=str(path), line=error.line) from error
    if root.tag != f"{{{XSD}}}schema":
        raise SchemaError(f"the root is {root.tag}, not xsd:schema", file=str(path), line=root.sourceline)
    notes = [note for element in root.iter(f"{{{XSD}}}*") for note in _repair_names(element, path)]
    namespace = _stripped(root, "targetNamespace")
    links = [_link(index, child, path) for index, child in enumerate(root) if child.tag in _LINKS]
    symbols = frozenset((_SYMBOLS[str(child.tag)], str(child.get("name"))) for child in root if child.tag in _SYMBOLS)
    elements = frozenset(name for kind, name in symbols if kind == "element")
    return SchemaFile(path, namespace, root, links, symbols, elements, notes)


def _repair_names(element: etree._Element, path: Path) -> list[SchemaNote]:
    notes: list[SchemaNote] = []
    for attribute in _NAMES:
        value = element.get(attribute)
        if value is None or value == (plain := value.strip()):
            continue
        element.set(attribute, plain)
        message = f"{attribute}={value!r} has blanks around it; read as {plain!r}"
        notes.append(SchemaNote("blank-name", str(path), element.sourceline, message))
    return notes


def _stripped(element: etree._Element, attribute: str) -> str:
    value: str | None = element.get(attribute)
    if value is None:
        return ""
    plain = value.strip()
    element.set(attribute, plain)
    return plain


def _link(index: int, element: etree._Element, path: Path) -> SchemaLink:
    location = element.get("schemaLocation")
    target, exact = (None, False) if location is None else resolve_location(path.parent, location)
    namespace = _stripped(element, "namespace")
    return SchemaLink(_LINKS[str(element.tag)], index, element.sourceline, namespace, location, target, exact)


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
