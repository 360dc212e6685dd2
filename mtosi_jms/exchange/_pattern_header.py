"""The header fields of a request that state the communication pattern that the caller chose (P2, O8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mtosi_jms.bulk import BulkTerms
from mtosi_jms.errors import ConfigError
from mtosi_jms.service import OperationInfo
from mtosi_jms.stubs.fmw.hdr import (
    CommunicationPatternType,
    CompressionEnumType,
    CompressionTypeType,
    PackingEnumType,
    PackingTypeType,
)

SIMPLE: Final[Mapping[str, object]] = {"communication_pattern": CommunicationPatternType.SimpleResponse}
"""The fields for one response (SimpleResponse)."""


def batch_pattern(operation: OperationInfo, batch_size: int) -> Mapping[str, object]:
    """Return the fields for several responses (MultipleBatchResponse). Raises ConfigError: the operation is one-way."""
    if operation.mep == "one-way":
        raise ConfigError(f"{operation.name} is one-way: it has no batches")
    pattern = CommunicationPatternType.MultipleBatchResponse
    return {"communication_pattern": pattern, "requested_batch_size": batch_size}


def bulk_pattern(operation: OperationInfo, terms: BulkTerms) -> Mapping[str, object]:
    """Return the fields for one response with the data in a file (BulkResponse). Raises ConfigError: it is one-way."""
    if operation.mep == "one-way":
        raise ConfigError(f"{operation.name} is one-way: it has no bulk response")
    return {
        "communication_pattern": CommunicationPatternType.BulkResponse,
        "requested_batch_size": terms.batch_size,
        "file_location_uri": terms.file_location_uri,
        "compression_type": CompressionTypeType(value=CompressionEnumType(terms.compression)),
        "packing_type": PackingTypeType(value=PackingEnumType(terms.packing)),
    }


def has_batches(pattern: Mapping[str, object]) -> bool:
    return pattern["communication_pattern"] is CommunicationPatternType.MultipleBatchResponse
