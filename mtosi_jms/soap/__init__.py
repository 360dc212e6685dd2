"""SOAP envelopes with an MTOSI header: decoded from bytes to objects, and encoded. Only `read` does I/O."""

from __future__ import annotations

from mtosi_jms.soap._blocks import (
    blocks_in,
    must_understand_fault,
    names_of,
    not_understood,
    not_understood_blocks,
    require_understood,
    typed_blocks,
)
from mtosi_jms.soap._dialects import (
    as_dialect,
    converted,
    dialect_of,
    header_class,
    like,
    mend,
    stubs_header,
    warn_of_body,
    warn_of_second,
)
from mtosi_jms.soap._envelope import Envelope, renamed, start_tag, tag_of
from mtosi_jms.soap._faults import soap_prefix
from mtosi_jms.soap._header import FIELD_NAMES, correlation_id, header_text, header_texts, missing_fields
from mtosi_jms.soap._kinds import code_of_kind, exception_for, fault_class, fault_kinds
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
