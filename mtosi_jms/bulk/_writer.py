"""Writes the file of a BulkResponse, compressed and packed as requested; completely or not at all."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from mtosi_jms.bulk._terms import Compression, Packing
from mtosi_jms.errors import ConfigError, SpoolError
from mtosi_jms.files import sync


class BulkFile:
    """A file to which documents are added; a context manager.

    It is written under a temporary name in the same folder. If the block ends without an error, it is renamed and
    replaces a file of that name; otherwise it is removed. Only one document is in memory at a time.

    | | NO_COMPRESSION | GZIP |
    |---|---|---|
    | NO_PACKING | the document | the document, gzip |
    | ZIP | plain members | members compressed by gzip, `.xml.gz` |
    | TAR | plain members | the archive compressed by gzip, `.tar.gz` |

    Args:
        packing: how to pack; without packing the file can hold only one document.

    Raises:
        SpoolError: the file cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        compression: Compression = Compression.NO_COMPRESSION,
        packing: Packing = Packing.NO_PACKING,
    ) -> None:
        self.path = Path(path)
        self.documents = 0
        self._gzip = compression is Compression.GZIP
        self._packing = packing
        self._part = self.path.with_name(f".mtosi-{uuid.uuid4().hex}.part")
        self._stack = ExitStack()
        self._out: Any = None

    def __enter__(self) -> Self:
        with _reporting(self.path):
            self._file: IO[bytes] = self._stack.enter_context(self._part.open("xb"))
            with ExitStack() as failing:
                failing.callback(self._discard)
                self._out = self._stack.enter_context(self._opened())
                failing.pop_all()
        return self

    def _opened(self) -> Any:
        if self._packing is Packing.ZIP:
            return zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
        if self._packing is Packing.TAR:
            return tarfile.open(fileobj=self._file, mode="w|gz" if self._gzip else "w|")
        return gzip.GzipFile(filename="", fileobj=self._file, mode="wb") if self._gzip else ExitStack()

    def add(self, document: bytes) -> None:
        """Add a document; in an archive its name is 000001.xml and so on. Raises ConfigError: it is a second document,
        and the file is not packed; SpoolError: it cannot be written."""
        self.documents += 1
        name = f"{self.documents:06}.xml"
        with _reporting(self.path):
            if self._packing is Packing.ZIP:
                info = zipfile.ZipInfo(f"{name}.gz" if self._gzip else name, time.gmtime()[:6])
                info.external_attr = 0o644 << 16
                self._out.writestr(info, gzip.compress(document) if self._gzip else document)
            elif self._packing is Packing.TAR:
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(document), int(time.time())
                self._out.addfile(member, io.BytesIO(document))
            elif self.documents > 1:
                raise ConfigError("without packing a file holds one document")
            else:
                (self._out if self._gzip else self._file).write(document)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._discard()
            return
        with _reporting(self.path), ExitStack() as failing:
            failing.callback(self._discard)
            self._out.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._stack.close()
            self._part.replace(self.path)
            failing.pop_all()
        with _reporting(self.path):
            sync(self.path.parent)

    def _discard(self) -> None:
        with suppress(OSError, ValueError, tarfile.TarError):
            self._stack.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Turns an error of the operating system into a SpoolError that names the path."""
    try:
        yield
    except SpoolError:
        raise
    except OSError as error:
        raise SpoolError(str(path), error.strerror or str(error)) from error
