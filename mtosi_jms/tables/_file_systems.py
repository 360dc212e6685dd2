"""What a file system of landings is: it lists what is input, says the state of a file, and opens it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Final, NamedTuple, Protocol, TypeAlias

from mtosi_jms.compression import ARCHIVES, is_document_name

NOT_THERE: Final = "no such file or folder"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Reject:
    """A file or folder from which no message could be read; `line` is the line of the fault, from 1.

    `file` is empty for a message that is in no file.
    """

    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{place}: {self.reason}" if place else self.reason


Rejects: TypeAlias = list[Reject]
"""What is rejected; who finds more adds it."""


class FileState(NamedTuple):
    """The state of a file.

    Attributes:
        path: absolute path, or the URL of a file on another file system.
        size: bytes.
        modified_ns: when its content was last changed, in nanoseconds since 1970. Whoever copies a file may set it.
        key: identifies the message in it; None if nothing does.
        changed_ns: when anything of it was last changed; nobody can set that. Windows: when it was made. None if the
            file system does not say.
    """

    path: str
    size: int
    modified_ns: int
    key: str | None = None
    changed_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Sieve:
    """The conditions on files that are input, from Spark's options for files.

    Attributes:
        name: a regular expression for the name of the file, made from `pathGlobFilter`.
        deep: whether folders inside folders are read.
        after, before: exclusive bounds of the time of the last change, in milliseconds since 1970.
    """

    name: re.Pattern[str] | None = None
    deep: bool = True
    after: int | None = None
    before: int | None = None

    def takes_name(self, path: str, *, named: bool) -> bool:
        """Whether the name of a file is that of input.

        Args:
            path: of the file.
            named: whether a path of the landing names the file directly, so that it may have any ending.
        """
        name = path.rpartition("/")[2]
        return (named or _is_input_name(name)) and (self.name is None or bool(self.name.fullmatch(name)))

    def takes_time(self, time: int) -> bool:
        """Whether a file with this time of its last change, in milliseconds since 1970, is input."""
        return (self.after is None or time > self.after) and (self.before is None or time < self.before)


class Files(Protocol):
    """A file system that landings are on."""

    def list(self, paths: Iterable[str], rejects: Rejects, sieve: Sieve) -> Iterator[FileState]:
        """Yield the files of a landing, without opening archives; a file may come twice if `paths` overlap.

        Args:
            paths: folders, files and globs.
            rejects: folders and files that cannot be listed are added to it.
            sieve: conditions on the files.

        Raises:
            SpoolError: a path does not exist or cannot be read, or a glob matches nothing.
        """

    def stat(self, path: str) -> FileState:
        """Return the present state of a file.

        Raises:
            OSError, SpoolError: there is no such file, or it cannot be read.
        """

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading, without decompression. The stream is seekable.

        Raises:
            OSError, SpoolError: the file cannot be opened.
        """


def expanded(pattern: str) -> list[str]:
    """Return a glob of Hadoop as globs of Python: `{one,other}` becomes several, `[^a]` becomes `[!a]`."""
    patterns = [pattern.replace("[^", "[!")]
    while found := _BRACES.search(patterns[0]):
        patterns = [each.replace(found[0], word) for each in patterns for word in found[1].split(",")]
    return patterns


def _is_input_name(name: str) -> bool:
    """Whether a file with this name is input if it is found in a folder."""
    return is_document_name(name) or (name.lower().endswith(ARCHIVES) and not name.startswith("."))
