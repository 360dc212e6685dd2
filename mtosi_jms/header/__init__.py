"""The MTOSI header as data: its fields, and its dialects, which are the forms that the releases and vendors give it.

What reads, writes, maps, checks or shows a header takes it from here. Another field is a line in `FIELDS`, in the
order of `xsd/fmw/hdr.xsd`, and an element there and in `mtosi-1.1/xsd/header.xsd`. What a reply copies from its request
is said by the dispatcher of `exchange`, and for HTTP by `gateway`; what is a column of tables, by `tables.columns`.
Another dialect is an entry in `DIALECTS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import HDR, MTOP, TMF854, clark, split_clark

__all__ = [
    "BY_TAG",
    "DIALECTS",
    "FIELDS",
    "MTOSI_1X",
    "MTOSI_2X",
    "SLIPS",
    "HeaderDialect",
    "HeaderExtra",
    "HeaderField",
    "dialect_named",
    "dialects_with",
    "release_of_body",
]


class HeaderField(NamedTuple):
    """One field of the header.

    Attributes:
        property: the JMS property that it becomes by Table 2 (R14); empty if it becomes none.
        kind: type of the property's value (R15).
        mandatory: whether a present field must become the property (R13a) or may (R13b).
        slips: wrong values that the field sends, and what they stand for.
    """

    name: str
    property: str = ""
    kind: type[str | int | bool] = str
    mandatory: bool = True
    slips: Mapping[str, str] = MappingProxyType({})


FIELDS: Final = (
    HeaderField("activityName", "MTOSI_activityName", mandatory=False),
    HeaderField("msgName", "MTOSI_msgName"),
    HeaderField("msgType", "MTOSI_msgType"),
    HeaderField("senderURI", "MTOSI_senderURI"),
    HeaderField("destinationURI", "MTOSI_destinationURI", mandatory=False),
    HeaderField("replyToURI"),
    HeaderField("originatorURI"),
    HeaderField("failureReplytoURI", "MTOSI_failureReplytoURI"),
    HeaderField("activityStatus", "MTOSI_activityStatus"),
    HeaderField("correlationId"),
    HeaderField("security", "MTOSI_security", mandatory=False),
    HeaderField("securityType", "MTOSI_securityType", mandatory=False),
    HeaderField("priority"),
    HeaderField("msgSpecificProperties"),
    HeaderField("communicationPattern", "MTOSI_communicationPattern"),
    HeaderField("communicationStyle", "MTOSI_communicationStyle", slips=MappingProxyType({"RCP": "RPC"})),
    HeaderField("requestedBatchSize", "MTOSI_requestedBatchSize", int),
    HeaderField("batchSequenceNumber", "MTOSI_batchSequenceNumber", int),
    HeaderField("batchSequenceEndOfReply", "MTOSI_batchSequenceEndOfReply", bool),
    HeaderField("iteratorReferenceURI"),
    HeaderField("fileLocationURI"),
    HeaderField("compressionType"),
    HeaderField("packingType"),
    HeaderField("timestamp", "MTOSI_timestamp", mandatory=False),
    HeaderField("vendorExtensions", "MTOSI_vendorExtension", mandatory=False),
)
"""The fields, which all dialects have, in the order of the schema. replyToURI and priority become JMS headers."""


SLIPS: Final = MappingProxyType({field.name: field.slips for field in FIELDS if field.slips})
"""What the field gets wrong in values, by XML name."""


class HeaderExtra(NamedTuple):
    """What a dialect has beside the fields of all: an attribute of the header element, or a further field with a text.

    Attributes:
        field: Python name of the field of the header object.
        pattern: regular expression of the values that are known; empty: all.
    """

    name: str
    field: str
    pattern: str = ""

    def knows(self, text: str) -> bool:
        """Whether a text is a known value."""
        return not self.pattern or re.fullmatch(self.pattern, text) is not None


@dataclass(frozen=True, slots=True)
class HeaderDialect:
    """One form of the header.

    Attributes:
        release: `1.x`, or `2.x`, which 4.0 has too.
        tag: Clark name of the element. Its fields are in the same namespace.
        bodies: how the namespaces of TM Forum's messages of the release begin.
        required: fields that a header must have by the schema.
        is_ordered: whether the fields have a fixed order (xsd:sequence) or any (xsd:all).
        has_itu_time: whether the timestamp is ITU text, `20261128093000.0Z`, or an xsd:dateTime.
        version: the attribute that says which version of the release it is; empty: none.
        placeholders: texts that stand for a value which was never filled in. Such a field or attribute is absent.
    """

    release: str
    tag: str
    bodies: str
    required: tuple[str, ...] = ()
    is_ordered: bool = True
    has_itu_time: bool = False
    attributes: tuple[HeaderExtra, ...] = ()
    more: tuple[HeaderExtra, ...] = ()
    version: str = ""
    placeholders: frozenset[str] = frozenset()

    def is_over(self, body: str) -> bool:
        """Whether the body element with a Clark name may be under this header: a vendor's, or one of its release."""
        return release_of_body(split_clark(body)[0]) in ("", self.release)


MTOSI_2X: Final = HeaderDialect("2.x", clark(HDR, "header"), MTOP)
"""The header of MTOSI 2.0, 2.1 and 4.0."""

MTOSI_1X: Final = HeaderDialect(
    "1.x",
    clark(TMF854, "header"),
    TMF854,
    required=(
        "activityName",
        "msgName",
        "msgType",
        "senderURI",
        "destinationURI",
        "communicationPattern",
        "communicationStyle",
    ),
    is_ordered=False,
    has_itu_time=True,
    attributes=(
        HeaderExtra("tmf854Version", "tmf854_version", r"1\.[0-9A-Za-z]*"),
        HeaderExtra("extAuthor", "ext_author"),
        HeaderExtra("extVersion", "ext_version"),
    ),
    version="tmf854Version",
    placeholders=frozenset({"?"}),
)
"""The header of MTOSI 1.0 and 1.1."""

_VENDOR_FIELDS: Final = (
    HeaderExtra("domain", "domain"),
    HeaderExtra("payloadVersion", "payload_version"),
    HeaderExtra("operationStatus", "operation_status"),
)

DIALECTS: Final = (
    MTOSI_2X,
    MTOSI_1X,
    replace(MTOSI_1X, tag=clark(TMF854, "MTOSI_Header"), more=_VENDOR_FIELDS),
    replace(MTOSI_1X, tag="MTOSI_Header", more=_VENDOR_FIELDS),
)
"""The dialects that are read everywhere. The last two are those of a vendor's systems, one of them in no namespace."""

BY_TAG: Final = MappingProxyType({dialect.tag: dialect for dialect in DIALECTS})
"""The dialects by the Clark name of the header element."""


@lru_cache(64)
def dialect_named(name: str) -> HeaderDialect:
    """Return a dialect by a release (`1.x`, `2.x`) or by the Clark name of its header element. An element that is not
    in `DIALECTS` is that of a vendor, with the fields and attributes of 1.x in its own namespace. Raises ConfigError:
    neither a release nor the name of an element."""
    for dialect in DIALECTS:
        if name in (dialect.release, dialect.tag):
            return dialect
    namespace, local = split_clark(name)
    if not local.replace("_", "a").replace("-", "a").replace(".", "a").isalnum() or name.startswith("{}"):
        raise ConfigError(f"header {name!r}: give 1.x, 2.x, or the name of an element, {{namespace}}name")
    return replace(MTOSI_1X, tag=clark(namespace, local))


@lru_cache(64)
def dialects_with(name: str) -> Mapping[str, HeaderDialect]:
    """Return the dialects that are read by the Clark names of their elements: those known, and if the name
    is not empty that of `dialect_named`."""
    if not name:
        return BY_TAG
    dialect = dialect_named(name)
    return BY_TAG if dialect.tag in BY_TAG else MappingProxyType({**BY_TAG, dialect.tag: dialect})


@lru_cache(256)
def release_of_body(namespace: str) -> str:
    """Return the release that has messages in a namespace; empty for a vendor's namespace."""
    return next((one.release for one in DIALECTS if namespace.startswith(one.bodies)), "")
