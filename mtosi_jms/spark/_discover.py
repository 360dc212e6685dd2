"""Finding the files of a landing: a spool, a folder, a file or a glob.

A folder is read recursively; its `*.xml` and `*.xml.gz` files are input, and `*.zip`, `*.tar`, `*.tar.gz` and `*.tgz`
for the former inside them, in any case of letters. Nothing else is: sidecars, acknowledgement logs and half-written
files of a spool have other endings or begin with a dot. A file that is named outright is input whatever it is called.
A document in an archive is a file of its own, called `ARCHIVE!/MEMBER`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mtosi_jms.bulk import SEPARATOR, is_document_name
from mtosi_jms.errors import ArchiveError, ConfigError, SpoolError
from mtosi_jms.spark._packed import SHELF

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, slots=True)
class Reject:
    """A file, or a folder, from which no message could be read.

    Attributes:
        file: its path; empty for a message that is in no file.
        line: line of the fault, from 1, None where there is none.
        reason: what is wrong with it.
    """

    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{place}: {self.reason}" if place else self.reason


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a landing.

    Attributes:
        files: absolute paths, sorted, each once, with sizes in bytes.
        rejects: folders and files that cannot be looked into.
    """

    files: tuple[tuple[str, int], ...]
    rejects: tuple[Reject, ...]


def find_files(paths: Iterable[str]) -> Found:
    """The files of a landing.

    Args:
        paths: folders, files, globs, or `file:` URLs of them.

    Raises:
        SpoolError: a path or glob that leads to nothing, or that cannot be read.
        ConfigError: a path on another file system; those are read by Spark itself and given to `parse_messages`.
    """
    files: dict[str, int] = {}
    rejects: list[Reject] = []
    for path in paths:
        for file in _input(local_path(path), rejects):
            try:
                files.update(documents_of(file))
            except ArchiveError as error:
                rejects.append(Reject(file, None, error.reason))
            except SpoolError as error:
                rejects.append(Reject(file, None, f"cannot be read: {error.reason}"))
    return Found(tuple(sorted(files.items())), tuple(rejects))


def documents_of(path: str) -> dict[str, int]:
    """The documents of a file with their sizes in bytes: the file itself, or what is in it if it is an archive.

    Raises:
        ArchiveError: an archive that is damaged, unsafe or too large.
        SpoolError: it cannot be read.
    """
    try:
        size = Path(path).stat().st_size
    except OSError as error:
        raise SpoolError(path, error.strerror or str(error)) from error
    if is_document_name(path) or not os.path.isfile(path):  # noqa: PTH113
        return {path: size}
    with SHELF.archive(path) as archive:
        if not archive.is_archive:
            return {path: size}
        return {f"{path}{SEPARATOR}{name}": size for name, size in archive.members.items()}


def local_path(path: str) -> str:
    """A path of this machine, absolute; `file:` URLs are taken apart.

    Raises:
        ConfigError: a URL of another file system.
    """
    scheme, separator, _ = path.partition(":")
    if separator and scheme.lower() == "file":
        path = unquote(urlsplit(path).path)
    elif separator and "//" in path and len(scheme) > 1 and scheme.isalnum():
        raise ConfigError(
            f"{path}: only local files are read; on {scheme} use spark.read.format('binaryFile') and parse_messages()"
        )
    return os.path.abspath(path)  # noqa: PTH100 - Path.resolve would follow links and change the names of files


def _input(path: str, rejects: list[Reject]) -> Iterator[str]:
    if os.path.isdir(path):  # noqa: PTH112
        yield from _folder(path, rejects)
    elif os.path.exists(path):  # noqa: PTH110
        yield path
    else:
        yield from _matching(path, rejects)


def _matching(path: str, rejects: list[Reject]) -> Iterator[str]:
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []  # noqa: PTH207
    if not matches:
        raise SpoolError(path, "no such file or folder")
    for match in matches:
        if os.path.isdir(match):  # noqa: PTH112
            yield from _folder(match, rejects)
        elif is_input_name(match):
            yield match


def _folder(path: str, rejects: list[Reject]) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        if str(error.filename) == path:
            raise SpoolError(path, error.strerror or str(error)) from error
        rejects.append(Reject(str(error.filename), None, f"cannot be read: {error.strerror}"))

    for folder, _, names in os.walk(path, onerror=unreadable):
        for name in names:
            if is_input_name(name):
                yield os.path.join(folder, name)  # noqa: PTH118


def is_input_name(path: str) -> bool:
    """Whether a file of this name is input when it is found in a folder."""
    name = Path(path).name
    return is_document_name(name) or (name.lower().endswith(_ARCHIVES) and not name.startswith("."))
