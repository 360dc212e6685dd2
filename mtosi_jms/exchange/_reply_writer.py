"""The reply writer: where the replies to one request go, and how they are sent (R5, R16d, C16, C17)."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderTemplates, to_jms
from mtosi_jms.binding.soap_jms import as_reply
from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    MtosiError,
    ProtocolError,
    ResourceLimitError,
    TransportError,
)
from mtosi_jms.exchange._dispatcher import Abandoned
from mtosi_jms.exchange.messages import stamped
from mtosi_jms.jms import RUN_ID, Destination, JmsMessage, NamingContext, Properties
from mtosi_jms.jms.ids import random_id
from mtosi_jms.patterns import ReplyRoute, RouteSource, jms_correlation_id, reply_route
from mtosi_jms.service import check_count
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text, missing_fields
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.telemetry import Telemetry, published
from mtosi_jms.transport import AsyncSender, SendWindow

log = logging.getLogger(__package__)

ReplyPolicy: TypeAlias = Callable[[Destination], bool]
"""Returns whether replies may be sent to a destination."""


class WithheldError(Abandoned):
    """No reply can reach the requestor: the request is only reported."""

    def __init__(self, what: str, error: MtosiError) -> None:
        self.what = what
        self.error = error
        super().__init__(what)


class ProviderError(Abandoned):
    """The provider failed while a reply was sent, or the session was closed. The handler did not fail."""

    def __init__(self, error: TransportError | IllegalStateError) -> None:
        self.error = error
        super().__init__(str(error))


class Sender(AsyncSender, Protocol):
    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage: ...

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool) -> JmsMessage | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRules:
    """The settings for all replies of a supplier. Raises ConfigError: `send_window` is below 1.

    `together`: whether a reply that is not a batch may go out unconfirmed with others (`Session.send_soon`), which is
    safe if the acknowledgement of the request follows it on the same connection."""

    profile: BindingProfile
    names: NamingContext
    policy: ReplyPolicy | None
    send_window: int
    together: bool
    is_gone: Callable[[Destination], bool]
    correlation_id_first: bool = field(init=False)
    templates: HeaderTemplates = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "correlation_id_first", self.profile.jms_echo == "correlation-id-first")
        object.__setattr__(self, "templates", HeaderTemplates(self.profile))
        check_count("send_window", self.send_window)
        if self.send_window < 1:
            raise ConfigError(f"send_window must be at least 1, not {self.send_window}")

    def allows(self, destination: Destination) -> bool:
        """Whether a reply may be sent to a destination. A policy that raises an exception allows nothing.

        A name that a broker reads as several destinations is allowed only if the naming context has it, whatever the
        policy says: it would judge another destination than the broker uses."""
        if self.policy is None:
            if self.names.knows(destination):
                return True
            open_to_all = not destination.is_topic and not self.names.names()
            return destination.is_plain and (destination.is_temporary or open_to_all)
        if not destination.is_plain and not self.names.knows(destination):
            return False
        try:
            return self.policy(destination)
        except Exception:
            log.exception("the reply policy failed: no reply to %s", destination)
            return False


@dataclass(slots=True, eq=False)
class ReplyWriter:
    """Sends the replies to one request; it is the `ReplyAddress` of the dispatcher. `fault`: the kind of the
    last reply, if it was one. `allowed`: where replies may go, once that was asked."""

    rules: ReplyRules
    session: Sender
    message: JmsMessage
    soap_jms: bool
    telemetry: Telemetry | None = None
    operation: str = ""
    replies: int = 0
    fault: str = ""
    request: Header | None = None
    window: SendWindow | None = None
    run: str = ""
    allowed: Destination | None = None

    def settle(self) -> None:
        """Wait until the provider has confirmed every partial response. Raises WithheldError, ProviderError: one
        failed."""
        if self.window is None:
            return
        try:
            self.window.settle()
        except (TransportError, IllegalStateError) as error:
            raise _sending_error(error) from error

    def admit(self) -> None:
        """Check, before the handler runs, that the request may be answered. Raises WithheldError: it has no JMSReplyTo,
        replies may not go there, or the requestor is gone."""
        if self.message.reply_to is None:
            what = "it has no JMSReplyTo, so that nobody would get the response"
            raise WithheldError("a request is not carried out", ProtocolError(what, correlation_id(self.request) or ""))
        self._check_allowed(self.message.reply_to)
        if self.message.reply_to.is_temporary and self.rules.is_gone(self.message.reply_to):
            error = InvalidDestinationError(f"{self.message.reply_to}: the requestor that waited for the reply is gone")
            raise WithheldError("a request is not carried out", error)

    def complete(self, header: Header) -> None:
        """Complete a reply's header from the request's JMS message; see `ReplyAddress`.

        Without a correlationId it gets the message id of the request, by which the peer can match it; a fault the
        address to which it really goes. Raises WithheldError: a fault has nowhere to go."""
        if header.correlation_id is None:
            header.correlation_id = self._jms_id(correlation_id_first=False)
        request = self.request
        is_fault = header.msg_type is MessageTypeType.ERROR
        if request is not None and is_fault and self._route(is_error=True).source is not RouteSource.FAILURE_REPLY_TO:
            header.destination_uri = header_text(request, "replyToURI") or header_text(request, "senderURI")
        reply_to = self.message.reply_to
        if not header.destination_uri and reply_to is not None and "destinationURI" in missing_fields(header):
            header.destination_uri = self.rules.names.uri_of(reply_to)

    def send(self, reply: Envelope) -> None:
        """Send one reply; a partial response is not waited for while the send window has room. Raises WithheldError,
        ProviderError: this one or an earlier one failed; HeaderError, EncodeError: the reply is not valid."""
        header, rules = reply.header or Header(), self.rules
        route = self._route(is_error=reply.fault is not None)
        jms_id = self._jms_id(correlation_id_first=self.soap_jms or rules.correlation_id_first)
        partial = header.batch_sequence_number is not None
        if partial or reply.fault is not None:
            message = to_jms(header, reply, rules.profile, names=rules.names, correlation_id=jms_id)
        else:
            message = rules.templates.to_jms(
                header, reply.body, reply.version, names=rules.names, correlation_id=jms_id
            )
        if self.soap_jms:
            message = as_reply(message, self.message, is_fault=reply.fault is not None, version=reply.version)
        self.fault = (reply.fault.kind or reply.fault.fault_code) if reply.fault is not None else ""
        self._transmit(message, route, partial=partial)
        self.replies += 1

    def _jms_id(self, *, correlation_id_first: bool) -> str | None:
        message = self.message
        return jms_correlation_id(message.message_id, message.correlation_id, correlation_id_first=correlation_id_first)

    def _route(self, *, is_error: bool) -> ReplyRoute[Destination]:
        route = reply_route(
            is_error=is_error,
            reply_to=self.message.reply_to,
            failure_reply_to_uri=header_text(self.request, "failureReplytoURI") if is_error and self.request else None,
            resolve=self._allowed_destination,
        )
        if route.destination is None:
            raise WithheldError("a reply has nowhere to go", ConfigError(route.warning or "no reply address"))
        if route.warning:
            log.warning("%s", route.warning)
        if route.source is RouteSource.REPLY_TO:
            self._check_allowed(route.destination)
        return route

    def _check_allowed(self, destination: Destination) -> None:
        if destination is self.allowed:
            return
        try:
            self._refuse_unallowed(destination)
        except InvalidDestinationError as error:
            raise WithheldError("a reply is withheld", error) from None
        self.allowed = destination

    def _allowed_destination(self, name: str) -> Destination:
        destination = self.rules.names.lookup(name)
        self._refuse_unallowed(destination)
        return destination

    def _refuse_unallowed(self, destination: Destination) -> None:
        if not self.rules.allows(destination):
            raise InvalidDestinationError(f"replies to {destination} are not allowed here")

    def _transmit(self, message: JmsMessage, route: ReplyRoute[Destination], *, partial: bool) -> None:
        if route.destination is None:  # _route returns none such: for the type checker
            return
        # A broker may make the queue of a requestor that is gone anew: what is in there must not stay for long. So a
        # single reply lives no longer than its request. Batches do: a requestor's time-out begins anew with each.
        life = 0 if partial or not route.destination.is_temporary else self.message.time_to_live_ms
        message = stamped(message, None, None, life / 1000 if life else None)
        if partial:
            self.run = self.run or random_id()
            properties = Properties.trusted({**message.properties, RUN_ID: self.run})
            message = dataclasses.replace(message, properties=properties)
        identifier = (correlation_id(self.request) or "") if self.telemetry is not None else ""
        with published(self.telemetry, message, route.destination, self.operation, identifier) as publication:
            self._send(publication.message, route.destination, partial=partial)

    def _send(self, message: JmsMessage, destination: Destination, *, partial: bool) -> None:
        try:
            if partial:
                if self.window is None:
                    self.window = SendWindow(self.session, self.rules.send_window)
                self.window.send(destination, message)
            else:
                if self.window is not None:
                    self.window.settle()
                together = self.rules.together and self.session.send_soon(destination, message, can_wait=True)
                if not together:
                    self.session.send(destination, message)
        except (TransportError, IllegalStateError) as error:
            raise _sending_error(error) from error


def _sending_error(error: TransportError | IllegalStateError) -> WithheldError | ProviderError:
    if isinstance(error, InvalidDestinationError):
        return WithheldError("the requestor is gone", error)
    if isinstance(error, ResourceLimitError):
        return WithheldError("the requestor's destination is full", error)
    return ProviderError(error)
