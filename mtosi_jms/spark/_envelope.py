"""What an ingest needs to know of an envelope before it looks at objects: its kind, its key, its header.

The header is read as text, each value without the white space around it; an empty element counts as absent. Only the
correlationId is taken as it came, blanks included. `security` is a credential and is never read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lxml import etree

from mtosi_jms.errors import EnvelopeError
from mtosi_jms.namespaces import HDR, SOAP11, SOAP12, clark, split_clark

RESPONSE: Final = "response"
REQUEST: Final = "request"
FAULT: Final = "fault"
NOTIFICATION: Final = "notification"
BULK_RESPONSE: Final = "bulk response"
"""A response that only names the file in which the data is (C18)."""

HEADER_COLUMNS: Final[Mapping[str, str]] = {
    "activityName": "header_activity_name",
    "msgName": "header_msg_name",
    "msgType": "header_msg_type",
    "senderURI": "header_sender_uri",
    "destinationURI": "header_destination_uri",
    "activityStatus": "header_activity_status",
    "communicationPattern": "header_communication_pattern",
    "communicationStyle": "header_communication_style",
    "requestedBatchSize": "header_requested_batch_size",
    "timestamp": "header_timestamp",
}
"""Header fields that become columns of every row, as text. The sequence fields have typed columns of their own."""

_ENVELOPES: Final = {clark(ns, "Envelope"): ns for ns in (SOAP11, SOAP12)}
_HEADER: Final = clark(HDR, "header")
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}
_KINDS: Final = {"REQUEST": REQUEST, "RESPONSE": RESPONSE, "ERROR": FAULT, "NOTIFICATION": NOTIFICATION}
_SUFFIXES: Final = (("Request", REQUEST), ("Response", RESPONSE), ("Exception", FAULT), ("Iterator", REQUEST))


@dataclass(frozen=True, slots=True)
class EnvelopeFacts:
    """One envelope without its objects.

    Attributes:
        kind: response, request, fault, notification, or bulk response.
        correlation_id: as it came, None where absent or empty.
        batch_number: batchSequenceNumber, None where absent or no number.
        end_of_reply: batchSequenceEndOfReply, None where absent or no boolean.
        body_tag: Clark name of the first element of the SOAP body, empty where the body is empty.
        header: text of the header fields by XML name, absent ones left out.
    """

    kind: str
    correlation_id: str | None
    batch_number: int | None
    end_of_reply: bool | None
    body_tag: str
    header: Mapping[str, str]


def soap_namespace(root: etree._Element) -> str:
    """The SOAP namespace of an envelope (C52: 1.1 and 1.2 are read).

    Raises:
        EnvelopeError: the element is no SOAP envelope.
    """
    namespace = _ENVELOPES.get(str(root.tag))
    if namespace is None:
        raise EnvelopeError(f"not SOAP: the root element is {root.tag}", line=root.sourceline)
    return namespace


def soap_body(root: etree._Element) -> etree._Element | None:
    """The SOAP body of an envelope, None where there is none (yet).

    Raises:
        EnvelopeError: the element is no SOAP envelope.
    """
    return root.find(clark(soap_namespace(root), "Body"))


def envelope_facts(root: etree._Element) -> EnvelopeFacts:
    """The facts of an envelope, of which the body may still be growing behind its first element.

    Raises:
        EnvelopeError: no SOAP, no body, no MTOSI header, or neither header nor body says what kind of message it is.
    """
    namespace = soap_namespace(root)
    body = soap_body(root)
    if body is None:
        raise EnvelopeError("a SOAP envelope without a body", line=root.sourceline)
    first = next(iter(body), None)
    header = root.find(f"{clark(namespace, 'Header')}/{_HEADER}")
    is_fault = first is not None and first.tag == clark(namespace, "Fault")
    if header is None and is_fault and first is not None:
        header = next(first.iter(_HEADER), None)
    if header is None and not is_fault:
        raise EnvelopeError("no MTOSI header in the SOAP header", line=root.sourceline)
    fields = _texts(header)
    tag = "" if first is None else str(first.tag)
    kind = FAULT if is_fault else _kind(fields, tag)
    if kind is None:
        text = f"msgType {fields.get('msgType', '')!r} and body element {tag or 'none'}"
        raise EnvelopeError(
            f"wrong kind: {text} name no request, response, fault or notification", line=body.sourceline
        )
    if kind == RESPONSE and _names_files(fields):
        kind = BULK_RESPONSE
    if kind == RESPONSE and first is None:
        raise EnvelopeError("wrong kind: a response with an empty body", line=body.sourceline)
    return _facts(kind, tag, fields)


def _names_files(fields: Mapping[str, str]) -> bool:
    """Whether a response is the reply of BulkResponse; the documents in its files are numbered, or name no file."""
    bulk = fields.get("communicationPattern") == "BulkResponse"
    return bulk and "fileLocationURI" in fields and "batchSequenceNumber" not in fields


def _facts(kind: str, tag: str, fields: dict[str, str]) -> EnvelopeFacts:
    number = fields.get("batchSequenceNumber", "")
    return EnvelopeFacts(
        kind=kind,
        correlation_id=fields.get("correlationId"),
        batch_number=int(number) if _DIGITS.fullmatch(number) else None,
        end_of_reply=_TRUTH.get(fields.get("batchSequenceEndOfReply", "")),
        body_tag=tag,
        header=fields,
    )


def _texts(header: etree._Element | None) -> dict[str, str]:
    fields: dict[str, str] = {}
    for child in header if header is not None else ():
        namespace, local = split_clark(str(child.tag))
        text = str(child.text or "")
        if namespace != HDR or not text.strip() or local in fields or local == "security":
            continue
        fields[local] = text if local == "correlationId" else text.strip()
    return fields


def _kind(fields: Mapping[str, str], tag: str) -> str | None:
    """What the message says it is; where msgType says nothing usable, what its names end in."""
    kind = _KINDS.get(fields.get("msgType", "").upper())
    if kind is not None:
        return kind
    local = split_clark(tag)[1]
    if local == "notify":
        return NOTIFICATION
    for name in (local, fields.get("msgName", "")):
        for suffix, found in _SUFFIXES:
            if name.endswith(suffix):
                return found
    return None
