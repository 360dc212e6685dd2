"""The reply of a BulkResponse exchange, with access to its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from mtosi_jms.bulk._archive import DEFAULT_BOUNDS, Archive, Document, UnpackBounds
from mtosi_jms.bulk._location import Folders, bulk_files
from mtosi_jms.soap import Envelope
from mtosi_jms.xmlbind import XmlObject, iter_decode

Response = TypeVar("Response")
T = TypeVar("T", bound=XmlObject)


@dataclass(frozen=True, kw_only=True)
class BulkReply(Generic[Response]):
    """The reply to a BulkResponse request (C18). Experimental.

    The files are read on demand, and only below folders that the caller allows, since the peer chooses the names. Their
    bytes show how they are packed.

    Attributes:
        file_location_uri: the reply's fileLocationURI, or else the request's.
        compression: compressionType as text, the reply's or else the request's.
        packing: packingType as text, the reply's or else the request's.
    """

    response: Response
    envelope: Envelope
    file_location_uri: str
    compression: str
    packing: str

    def files(self, *, allowed: Folders) -> list[Path]:
        """The files that the reply names; see `bulk_files`. `allowed`: folders below which files may be read. Raises
        FileLocationError: no `file:` URI, another host, a path outside these folders, or no such file."""
        return bulk_files(self.file_location_uri, allowed)

    def documents(self, *, allowed: Folders, bounds: UnpackBounds = DEFAULT_BOUNDS) -> Iterator[Document]:
        """The documents in the files, unpacked, one open at a time. `bounds`: limits on what each file may unpack to.
        Raises FileLocationError: as for `files`; ArchiveError: a file is damaged, unsafe or too large; SpoolError: a
        file cannot be read."""
        for path in self.files(allowed=allowed):
            with Archive(path, bounds) as archive:
                yield from archive.documents()

    def objects(
        self,
        cls: type[T] | tuple[type[T], ...],
        *,
        allowed: Folders,
        strict: bool = False,
        bounds: UnpackBounds = DEFAULT_BOUNDS,
    ) -> Iterator[T]:
        """The objects of one or more classes in all documents, in constant memory; see `iter_decode`. `cls`: class of
        the objects, or a tuple of classes. `strict`: whether to raise at the first error against the schema. Raises As
        `documents`, and `XmlError` for a document that cannot be read; objects before it are yielded first."""
        for document in self.documents(allowed=allowed, bounds=bounds):
            yield from iter_decode(document.stream, cls, strict=strict)
