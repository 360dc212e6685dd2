"""Headers that differ in correlationId and time alone: what the binding makes of the rest of them is made once.

Whoever sends many messages of a kind, a requestor its requests and a supplier its answers, writes the same header again
and again. A form keeps its properties, and its XML with two gaps. The messages are those that `to_jms` makes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from mtosi_jms.errors import EncodeError, HeaderError
from mtosi_jms.jms._destinations import Destination
from mtosi_jms.jms._naming import NamingContext
from mtosi_jms.jms.binding import HeaderMapping, map_header, message_of, reply_destination
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.message import JmsMessage, Properties
from mtosi_jms.jms.profile import BindingProfile
from mtosi_jms.soap.envelope import start_tag
from mtosi_jms.soap.faults import soap_prefix
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import DECLARATION, Writer, XmlObject, format_date_time, known_prefix

_MOST: Final = 256
"""Forms that are kept at once: what distinguishes them may come from peers."""
_LONGEST: Final = 2_000
"""Characters of what distinguishes a form that is kept."""
_MARKED_TIME: Final = dt.datetime(9876, 5, 4, 3, 2, 1, tzinfo=dt.UTC)


class HeaderForm:
    """A header with gaps for correlationId and timestamp.

    Args:
        header: a header whose two values do not matter.
        profile: the switches.
        version: SOAP version of the envelopes.
        has_reply_to: a reply destination is given beside the header (C15).

    Raises:
        HeaderError, EncodeError: such a header must not be sent.
        Unfit: more of the message depends on the two than their places in the XML.
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
            raise Unfit
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
            identifier: the header's correlationId; see `fits`.
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


class Unfit(Exception):
    """A header of which no form can be made."""


class HeaderForms:
    """The forms of one sender.

    Args:
        profile: the switches.

    Attributes:
        profile: the same.
    """

    def __init__(self, profile: BindingProfile) -> None:
        self.profile = profile
        self._seen: set[tuple[str | None, ...]] = set()
        self._made: dict[tuple[str | None, ...], HeaderForm | None] = {}

    def __len__(self) -> int:
        return len(self._made)

    def get(
        self,
        key: tuple[str | None, ...],
        make: Callable[[], Header],
        version: str = "1.1",
        *,
        has_reply_to: bool = False,
    ) -> HeaderForm | None:
        """A form, from the second time on that it is asked for.

        Args:
            key: all that the header depends on, its correlationId and timestamp excepted, and the other arguments.
            make: makes such a header, with a correlationId and a timestamp.
            version: SOAP version.
            has_reply_to: as for `HeaderForm`.

        Returns:
            None where the header has to be written by itself, which also tells what is wrong with it.
        """
        if sum(len(part) for part in key if isinstance(part, str)) > _LONGEST:
            return None
        try:
            return self._made[key]
        except KeyError:
            pass
        if len(self._seen) >= _MOST:
            self._seen.clear()
            self._made.clear()
        if key not in self._seen:
            self._seen.add(key)
            return None
        try:
            form: HeaderForm | None = HeaderForm(make(), self.profile, version, has_reply_to=has_reply_to)
        except (HeaderError, EncodeError, Unfit):
            form = None
        self._made[key] = form
        return form


def fits(identifier: object) -> bool:
    """Whether a correlationId may be put into a form as it is: letters, digits and hyphens of ASCII."""
    return isinstance(identifier, str) and identifier.isascii() and identifier.replace("-", "").isalnum()


@lru_cache(4)
def _written(now: dt.datetime) -> bytes:
    return format_date_time(now).encode()
