"""SOAP envelopes with an MTOSI header: decoded from bytes to objects, and encoded. Only `read` does I/O."""

from __future__ import annotations

from mtosi_jms.soap._dialects import (
    FIELD_NAMES,
    as_dialect,
    converted,
    correlation_id,
    dialect_of,
    header_class,
    header_text,
    header_texts,
    like,
    mend,
    missing_fields,
    stubs_header,
    warn_of_body,
    warn_of_second,
)
from mtosi_jms.soap._envelope import (
    Envelope,
    blocks_in,
    must_understand_fault,
    names_of,
    not_understood,
    not_understood_blocks,
    renamed,
    require_understood,
    start_tag,
    tag_of,
    typed_blocks,
)
from mtosi_jms.soap._faults import code_of_kind, exception_for, fault_class, fault_kinds, soap_prefix
from mtosi_jms.soap._reading import parse, read
from mtosi_jms.stubs.fmw.hdr import Header

__all__ = [
    "FIELD_NAMES",
    "Envelope",
    "Header",
    "as_dialect",
    "blocks_in",
    "code_of_kind",
    "converted",
    "correlation_id",
    "dialect_of",
    "exception_for",
    "fault_class",
    "fault_kinds",
    "header_class",
    "header_text",
    "header_texts",
    "like",
    "mend",
    "missing_fields",
    "must_understand_fault",
    "names_of",
    "not_understood",
    "not_understood_blocks",
    "parse",
    "read",
    "renamed",
    "require_understood",
    "soap_prefix",
    "start_tag",
    "stubs_header",
    "tag_of",
    "typed_blocks",
    "warn_of_body",
    "warn_of_second",
]
