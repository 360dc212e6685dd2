"""The terms of a BulkResponse exchange: location of the file, compression, packing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from mtosi_jms.errors import ConfigError


class Compression(StrEnum):
    """The values of compressionType that the SDK can write; VENDOR_EXT and MINOR_EXT are passed through only."""

    NO_COMPRESSION = "NO_COMPRESSION"
    GZIP = "GZIP"


class Packing(StrEnum):
    """The values of packingType that the SDK can write; VENDOR_EXT and MINOR_EXT are passed through only."""

    NO_PACKING = "NO_PACKING"
    ZIP = "ZIP"
    TAR = "TAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkTerms:
    """The header fields of a BulkResponse request. `file_location_uri`: fileLocationURI: the file to write.
    `batch_size`: requestedBatchSize: most objects in one document of the file; None or 0: all in one."""

    file_location_uri: str
    compression: Compression = Compression.NO_COMPRESSION
    packing: Packing = Packing.NO_PACKING
    batch_size: int | None = None

    @classmethod
    def of(cls, file_location_uri: str, compression: str, packing: str, batch_size: int | None = None) -> Self:
        """Make terms from the texts of a header or a call. Raises ConfigError: no location, an unknown compression or
        packing, or a negative size."""
        if not file_location_uri.strip():
            raise ConfigError("BulkResponse needs a file_location_uri")
        if compression not in list(Compression):
            raise ConfigError(f"compression is {compression!r}; it must be one of {', '.join(Compression)}")
        if packing not in list(Packing):
            raise ConfigError(f"packing is {packing!r}; it must be one of {', '.join(Packing)}")
        if batch_size is not None and batch_size < 0:
            raise ConfigError(f"batch_size must not be negative: {batch_size}")
        return cls(
            file_location_uri=file_location_uri,
            compression=Compression(compression),
            packing=Packing(packing),
            batch_size=batch_size,
        )
