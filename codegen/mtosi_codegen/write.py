"""Writes generated files, and compares a folder with what would be written. No other module of the generator writes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mtosi_codegen.render import MARK
from mtosi_jms.errors import SchemaError


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A file on disk that differs from the generated one.

    Attributes:
        path: below the package, with `/`.
        kind: `missing`, `extra` or `changed`.
    """

    path: str
    kind: str


def write(package: Path, files: Mapping[str, str], *, complete: bool = True) -> None:
    """Write a package; remove generated files of an earlier run that are no longer wanted. Other files stay.

    Args:
        files: text by path below it, with `/`.
        complete: False if something could not be generated; then nothing is removed.

    Raises:
        SchemaError: the folder cannot be written.
    """
    try:
        for path in outdated(package, files) if complete else ():
            (package / path).unlink()
        for path, text in files.items():
            target = package / path
            data = text.encode()
            if not target.is_file() or target.read_bytes() != data:
                _replace(target, data)
    except OSError as error:
        raise SchemaError(
            f"cannot be written: {error.strerror or error}", file=str(error.filename or package)
        ) from None


def write_files(folder: Path, files: Mapping[str, bytes], originals: Mapping[str, Path]) -> None:
    """Write files below a folder, each whole or not at all; other files are left alone.

    Args:
        files: bytes by path below it, with `/`.
        originals: source files, by the same paths; they must not be overwritten.

    Raises:
        SchemaError: the folder cannot be written, or it holds the originals.
    """
    try:
        for path, original in originals.items():
            if (folder / path).exists() and (folder / path).samefile(original):
                raise SchemaError("is a source; choose another folder", file=str(folder / path))
        for path, data in files.items():
            _replace(folder / path, data)
    except OSError as error:
        raise SchemaError(f"cannot be written: {error.strerror or error}", file=str(error.filename or folder)) from None


def write_pages(folder: Path, files: Mapping[str, str], mark: str, *, complete: bool = True) -> None:
    """Write pages; remove pages of an earlier run in the same folders that are no longer wanted. Other files stay.

    Args:
        files: text by path below it, with `/`.
        mark: first line of each page; it identifies generated pages.
        complete: False if something could not be generated; then nothing is removed.

    Raises:
        SchemaError: the folder cannot be written.
    """
    write_files(folder, {path: text.encode() for path, text in files.items()}, {})
    if not complete:
        return
    try:
        for below in {path.rpartition("/")[0] for path in files if "/" in path}:
            for page in (folder / below).glob("*.html"):
                if f"{below}/{page.name}" not in files and is_generated(page, mark):
                    page.unlink()
    except OSError as error:
        raise SchemaError(f"cannot be written: {error.strerror or error}", file=str(error.filename or folder)) from None


def compare(package: Path, files: Mapping[str, str], *, complete: bool = True) -> list[Difference]:
    """Every file that is missing, extra or changed; empty if `write` would change nothing.

    Args:
        package, files, complete: as for `write`.

    Raises:
        SchemaError: the folder cannot be read.
    """
    kept = () if complete else outdated(package, files)
    found = [Difference(path, "extra") for path in _extra(package, files) if path not in kept]
    try:
        for path, text in files.items():
            target = package / path
            if not target.is_file():
                found.append(Difference(path, "missing"))
            elif target.read_bytes() != text.encode():
                found.append(Difference(path, "changed"))
    except OSError as error:
        raise SchemaError(f"cannot be read: {error.strerror or error}", file=str(error.filename or package)) from None
    return sorted(found)


def outdated(package: Path, files: Mapping[str, str]) -> list[str]:
    """The generated files of a package that are not among those to write; paths below it, with `/`."""
    return [path for path in _extra(package, files) if is_generated(package / path)]


def _extra(package: Path, files: Mapping[str, str]) -> Iterator[str]:
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = (Path(folder) / name).relative_to(package).as_posix()
            if path not in files:
                yield path


def is_generated(path: Path, mark: str = MARK) -> bool:
    """Whether the first line of a file says that it was generated; False if the file cannot be read."""
    try:
        with path.open("rb") as file:
            return file.readline().startswith(mark.encode())
    except OSError:
        return False


def _replace(target: Path, data: bytes) -> None:
    """Write a file completely or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
