"""Turns a fileLocationURI into files of this machine, only in allowed folders (C18).

The peer chooses the URI, so it is not trusted: only `file:` is accepted, no other host, no `..`, and the file must be
inside an allowed folder after symbolic links are resolved. The check and the opening are two steps: do not allow a
folder in which the peer can make links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

from mtosi_jms.errors import FileLocationError

Folders: TypeAlias = str | Path | Iterable[str | Path]
"""One folder or several."""


def bulk_files(uri: str, allowed: Folders) -> list[Path]:
    """The files that a reply's fileLocationURI names.

    By its schema the field holds "the base name of the file(s)". So if no file has this name, it means all files whose
    names begin with it, followed by a dot, hyphen or underscore: `inventory` also means `inventory-1.xml.gz`.

    Args:
        allowed: folders below which files may be read.

    Returns:
        Sorted paths of regular files, without symbolic links; at least one.

    Raises:
        FileLocationError: another scheme or host, a path outside the allowed folders, no such file, no regular file.
    """
    path = _local_path(uri)
    folders = _real(allowed)
    real = _inside(path, folders)
    with _reaching(path):
        if real.exists():
            return [_regular(real)]
        names = sorted(os.listdir(real.parent))  # noqa: PTH208 - names of any bytes, as the system has them
        begins = tuple(path.name + mark for mark in ".-_")
        found = [_regular(_inside(real.parent / name, folders)) for name in names if name.startswith(begins)]
    if not found:
        raise FileLocationError("no such file", scheme="file", path=str(path))
    return found


def new_file(uri: str, allowed: Folders) -> Path:
    """The file that a request's fileLocationURI asks a supplier to write. `allowed`: folders below which files may be
    written. Returns a path in an existing folder; the folder's path has no symbolic links. The file itself may exist.
    Raises FileLocationError: another scheme or host, a path outside the allowed folders, or no such folder."""
    path = _local_path(uri)
    folder = _inside(path.parent, _real(allowed), itself=True)
    with _reaching(path):
        if not folder.is_dir():
            raise FileLocationError("no such folder", scheme="file", path=str(path.parent))
        if (folder / path.name).is_dir():
            raise FileLocationError("a folder", scheme="file", path=str(path))
    return folder / path.name


@contextmanager
def _reaching(path: Path) -> Iterator[None]:
    """Turns an error of the operating system, such as a path that is too long, into a FileLocationError."""
    try:
        yield
    except OSError as error:
        raise FileLocationError(f"cannot be read: {error.strerror}", scheme="file", path=str(path)) from None


def _local_path(uri: str) -> Path:
    scheme, separator, _ = uri.strip().partition(":")
    scheme = scheme.lower() if separator and scheme.isascii() and "/" not in scheme else ""
    if scheme != "file":
        raise FileLocationError(f"only file: URIs are followed, not {scheme or 'relative ones'}", scheme=scheme)
    try:
        parts = urlsplit(uri.strip())
        text = unquote_to_bytes(parts.path).decode()
    except ValueError:
        raise FileLocationError("not a well-formed file: URI", scheme=scheme) from None
    if parts.netloc.lower() not in ("", "localhost"):
        raise FileLocationError("names another host", scheme=scheme)
    if parts.query or parts.fragment or not text.startswith("/") or text.endswith("/"):
        raise FileLocationError("must name a file by an absolute path and nothing else", scheme=scheme)
    if any(ord(character) < 32 or character == "\x7f" for character in text):
        raise FileLocationError("control characters in the path", scheme=scheme)
    if {".", ".."} & set(text.split("/")):
        raise FileLocationError("a path with . or .. in it", scheme=scheme, path=text)
    return Path(text)


def _real(allowed: Folders) -> list[Path]:
    given = [allowed] if isinstance(allowed, str | Path) else list(allowed)
    return [Path(os.path.realpath(folder)) for folder in given]


def _inside(path: Path, folders: list[Path], *, itself: bool = False) -> Path:
    real = Path(os.path.realpath(path))
    for folder in folders:
        if folder in real.parents or (itself and real == folder):
            return real
    raise FileLocationError("outside the folders that are allowed", scheme="file", path=str(path))


def _regular(path: Path) -> Path:
    if not stat.S_ISREG(path.stat().st_mode):
        raise FileLocationError("not a regular file", scheme="file", path=str(path))
    return path
