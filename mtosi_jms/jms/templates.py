"""Messages whose headers differ in correlationId and timestamp alone: the rest of the binding's work is done once.

Whoever sends many messages of a kind, a requestor its requests and a supplier its responses, writes the same header
again and again. A template keeps its properties, and its XML with two gaps. It is found by the values of all other
fields of the header, so that none can be forgotten. The messages are those that `to_jms` makes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from functools import lru_cache
from operator import attrgetter
from types import NoneType
from typing import Any, Final, TypeAlias

from mtosi_jms.errors import EncodeError, HeaderError
from mtosi_jms.jms._destinations import Destination
from mtosi_jms.jms._naming import NamingContext
from mtosi_jms.jms.binding import HeaderMapping, map_header, message_of, reply_destination
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.message import JmsMessage, Properties
from mtosi_jms.jms.profile import BindingProfile
from mtosi_jms.soap.envelope import start_tag
from mtosi_jms.soap.faults import soap_prefix
from mtosi_jms.stubs.fmw.hdr import ActivityStatusType, Header
from mtosi_jms.xmlbind import Writer, XmlObject
from mtosi_jms.xmlbind.encoder import DECLARATION
from mtosi_jms.xmlbind.lexical import format_date_time
from mtosi_jms.xmlbind.registry import known_prefix

__all__ = ["HeaderTemplates"]

_MOST: Final = 256
"""Templates that are kept at once: their headers may hold what peers sent."""
_LONGEST: Final = 2_000
"""Characters in the fields of a header of which a template is kept."""
_APART: Final = ("activity_status", "correlation_id", "timestamp")
_fields_of: Final = attrgetter(*(one.name for one in Header.__xml__.fields if one.name not in _APART))
_status_of: Final = attrgetter(*(one.name for one in ActivityStatusType.__xml__.fields), "extras")
_Key: TypeAlias = tuple[object, ...]
_MARKED_TIME: Final = dt.datetime(9876, 5, 4, 3, 2, 1, tzinfo=dt.UTC)


class HeaderTemplates:
    """The templates of one sender; threads may share them.

    Args:
        profile: the switches of the binding.
    """

    def __init__(self, profile: BindingProfile) -> None:
        self._profile = profile
        self._seen: set[_Key] = set()
        self._made: dict[_Key, _HeaderTemplate | None] = {}

    def __len__(self) -> int:
        return len(self._made)

    def message(
        self,
        header: Header,
        body: object,
        version: str = "1.1",
        *,
        names: NamingContext,
        reply_to: Destination | None = None,
        correlation_id: str | None = None,
    ) -> JmsMessage | None:
        """The message of a header and a body, from the second one of its kind on.

        Args:
            header: the MTOSI header.
            body: the object of the body's element; a response or a request, no fault.
            version: SOAP version of the envelope.
            names: resolves replyToURI or senderURI (R16c).
            reply_to: the destination of JMSReplyTo itself (C15).
            correlation_id: JMSCorrelationID (O13).

        Returns:
            None where `to_jms` has to make the message, which also tells what is wrong with the header.

        Raises:
            NamingError: the reply URI has no destination (R16c).
            EncodeError: the body cannot become valid XML.
        """
        identifier, now = header.correlation_id, header.timestamp
        if not (isinstance(body, XmlObject) and _fits(identifier) and type(now) is dt.datetime):
            return None
        template = self._template(header, version, reply_to is not None)
        if template is None:
            return None
        return template.message(
            body, str(identifier), now, names=names, reply_to=reply_to, correlation_id=correlation_id
        )

    def _template(self, header: Header, version: str, has_reply_to: bool) -> _HeaderTemplate | None:
        values, status = _fields_of(header), header.activity_status
        if header.extras is not None or type(status) not in (ActivityStatusType, NoneType):
            return None
        told = None if status is None else _status_of(status)
        # Equal values of other classes (1 and True) are not written alike.
        key: _Key = (version, has_reply_to, values, tuple(map(type, values)), told)
        try:
            hash(key)
        except TypeError:  # what is an object with fields of its own, vendor extensions for example
            return None
        if key in self._made:
            return self._made[key]
        if sum(len(value) for value in values if isinstance(value, str)) > _LONGEST:
            return None
        if len(self._seen) >= _MOST:
            self._seen.clear()
            self._made.clear()
        if key not in self._seen:
            self._seen.add(key)
            return None
        try:
            template: _HeaderTemplate | None = _HeaderTemplate(
                header, self._profile, version, has_reply_to=has_reply_to
            )
        except (HeaderError, EncodeError, _UnfitError):
            template = None
        self._made[key] = template
        return template


class _UnfitError(Exception):
    """A header of which no template can be made."""


class _HeaderTemplate:
    """A header with gaps for correlationId and timestamp.

    Args:
        header: a header whose two values do not matter.
        profile: the switches.
        version: SOAP version of the envelopes.
        has_reply_to: a reply destination is given beside the header (C15).

    Raises:
        HeaderError, EncodeError: such a header must not be sent.
        _UnfitError: more of the message depends on the two than their places in the XML.
    """

    __slots__ = ("_mapping", "_needed", "_pieces", "_profile", "_properties", "_version")

    def __init__(self, header: Header, profile: BindingProfile, version: str, *, has_reply_to: bool) -> None:
        mark, marked_time = random_id(), format_date_time(_MARKED_TIME)
        marked = dataclasses.replace(header, correlation_id=mark, timestamp=_MARKED_TIME)
        self._profile = profile
        self._version = version
        self._mapping: HeaderMapping = map_header(marked, profile, strict=True, has_reply_to=has_reply_to)
        self._properties = Properties.trusted(self._mapping.properties)
        writer = Writer()
        writer.root(marked)
        self._needed = writer.names
        before, _, rest = writer.content().decode().partition(mark)
        between, _, after = rest.partition(marked_time)
        told = [before, between, after, *map(str, self._properties.values())]
        own = all(map(known_prefix, self._needed.namespaces))
        if not after or not own or any(mark in text or marked_time in text for text in told):
            raise _UnfitError
        soap = soap_prefix(version)
        self._pieces = [
            piece.encode()
            for piece in (
                f"<{soap}:Header>{before}",
                between,
                f"{after}</{soap}:Header><{soap}:Body>",
                f"</{soap}:Body></{soap}:Envelope>",
            )
        ]

    def message(
        self,
        body: XmlObject,
        identifier: str,
        now: dt.datetime,
        *,
        names: NamingContext,
        reply_to: Destination | None = None,
        correlation_id: str | None = None,
    ) -> JmsMessage:
        """The message of a body.

        Args:
            body: the object of the body's element.
            identifier: the header's correlationId; see `_fits`.
            now: the header's timestamp.
            names: resolves replyToURI or senderURI (R16c).
            reply_to: the destination of JMSReplyTo itself (C15).
            correlation_id: JMSCorrelationID (O13).

        Raises:
            NamingError: the reply URI has no destination (R16c).
            EncodeError: the body cannot become valid XML.
        """
        if reply_to is None:
            reply_to = reply_destination(self._mapping, names)
        document = self._document(body, identifier, now)
        return message_of(self._mapping, self._properties, document, self._profile, reply_to, correlation_id)

    def _document(self, body: XmlObject, identifier: str, now: dt.datetime) -> bytes:
        writer = Writer()
        writer.names.plans |= self._needed.plans
        writer.names.namespaces |= self._needed.namespaces
        writer.root(body)
        content = writer.content()
        head = start_tag(self._version, writer.names).encode()
        before, between, after, end = self._pieces
        parts = (DECLARATION, head, before, identifier.encode(), between, _written(now), after, content, end)
        return b"".join(parts)


def _fits(identifier: Any) -> bool:
    """Whether a correlationId may stand in a template as it is: letters, digits and hyphens of ASCII."""
    return isinstance(identifier, str) and identifier.isascii() and identifier.replace("-", "").isalnum()


@lru_cache(4)
def _written(now: dt.datetime) -> bytes:
    return format_date_time(now).encode()
