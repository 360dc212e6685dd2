"""Where schemas are: the project's own, a release tree, any other folder; and what a schemaLocation means.

A release keeps its schemas in folders `<part>/IIS/xsd`; in a tree with such folders only these count, not the examples
beside them (`IIS/xml`). In any other folder every `*.xsd` below it counts.
"""

from __future__ import annotations

import os
import stat
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mtosi_jms.errors import ConfigError, SchemaError

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
