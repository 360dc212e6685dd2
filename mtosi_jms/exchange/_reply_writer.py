"""The reply writer: where the replies to one request go, and how they are sent (R5, R16d, C16, C17)."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

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
from mtosi_jms.jms import RUN_ID, BindingProfile, Destination, JmsMessage, NamingContext, Properties
from mtosi_jms.jms.binding import HeaderTemplates, to_jms
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.soap_jms import as_reply
from mtosi_jms.patterns import JmsEcho, ReplyRoute, RouteSource, reply_ids, reply_route
from mtosi_jms.service import check_count
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.telemetry import Telemetry
from mtosi_jms.transport import AsyncSender, SendWindow

log = logging.getLogger(__package__)

ReplyPolicy: TypeAlias = Callable[[Destination], bool]
"""Says whether replies may be sent to a destination."""


class WithheldError(Abandoned):
    """No reply can reach the requestor: nothing more is to be done for this request but to report it."""

    def __init__(self, what: str, error: MtosiError) -> None:
        self.what = what
        self.error = error
        super().__init__(what)


class ProviderError(Abandoned):
    """The provider failed while a reply was sent, or the session was closed: no failure of the handler."""

    def __init__(self, error: TransportError | IllegalStateError) -> None:
        self.error = error
        super().__init__(str(error))


class Sender(AsyncSender, Protocol):
    """What sends replies: a session."""

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """See `Session.send`."""
        ...

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool) -> JmsMessage | None:
        """See `Session.send_soon`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRules:
    """What holds for all replies of a supplier.

    Attributes:
        profile: the switches of the binding.
        names: resolves failureReplytoURI.
        policy: says where replies may be sent; None: with a naming context, to the destinations that it knows and to
            temporary ones; without one, to any queue.
        send_window: how many partial responses to a request may be unconfirmed by the provider.
        together: whether a reply that the provider does not confirm may be sent with others (`Session.send_soon`). That
            is safe where the request is acknowledged behind it, on the same way.
        echo: what goes into JMSCorrelationID, after the profile.
        templates: of its responses.

    Raises:
        ConfigError: a window below 1.
    """

    profile: BindingProfile
    names: NamingContext
    policy: ReplyPolicy | None
    send_window: int
    together: bool
    echo: JmsEcho = field(init=False)
    templates: HeaderTemplates = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "echo", JmsEcho(self.profile.jms_echo))
        object.__setattr__(self, "templates", HeaderTemplates(self.profile))
        check_count("send_window", self.send_window)
        if self.send_window < 1:
            raise ConfigError(f"send_window must be at least 1, not {self.send_window}")

    def allows(self, destination: Destination) -> bool:
        """Whether a reply may be sent there; where the policy fails it may not.

        A name that brokers read as more than one destination may stand in our naming context; from a peer it is
        refused, whatever the policy says: that would judge another destination than the broker serves.
        """
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


class ReplyWriter:
    """Sends the replies to one request.

    Args:
        rules: what holds for all replies.
        session: sends them.
        message: the request.
        soap_jms: whether the replies follow W3C's SOAP over JMS too.

    Attributes:
        request: the request's header, None as long as it is not known.
        operation: what it asks for; empty as long as that is not known.
        replies: how many were sent.
        failed: whether the last one was a fault.
    """

    def __init__(
        self,
        rules: ReplyRules,
        session: Sender,
        message: JmsMessage,
        *,
        soap_jms: bool,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.operation = ""
        self.replies = 0
        self.failed = False
        self._telemetry = telemetry
        self._soap_jms = soap_jms
        self._rules = rules
        self._session = session
        self._window: SendWindow | None = None
        self._message = message
        self._run = ""
        self.request: Header | None = None

    def settle(self) -> None:
        """Return when the provider has confirmed every partial response that was sent.

        Raises:
            WithheldError, ProviderError: one of them failed.
        """
        if self._window is None:
            return
        try:
            self._window.settle()
        except (TransportError, IllegalStateError) as error:
            raise _told_apart(error) from error

    def admit(self) -> None:
        """Look before anything is done for the request whether it can and may be answered.

        Raises:
            WithheldError: it has no JMSReplyTo, or replies to that are not allowed.
        """
        if self._message.reply_to is None:
            what = "it has no JMSReplyTo, so that nobody would get the response"
            raise WithheldError("a request is not carried out", ProtocolError(what, correlation_id(self.request) or ""))
        self._allowed(self._message.reply_to)

    def complete(self, header: Header) -> None:
        """Complete the header of a reply with what the request's JMS message says; see `ReplyAddress`.

        That is the message id, by which a peer without correlationIds pairs, and the address that a fault really goes
        to.

        Raises:
            WithheldError: a fault has nowhere to go.
        """
        if header.correlation_id is None:
            header.correlation_id = self._jms_id(JmsEcho.MESSAGE_ID)
        request = self.request
        if request is None or header.msg_type is not MessageTypeType.ERROR:
            return
        if self._route(is_error=True).source is not RouteSource.FAILURE_REPLY_TO:
            header.destination_uri = header_text(request, "replyToURI") or header_text(request, "senderURI")

    def send(self, reply: Envelope) -> None:
        """Send one reply; a partial response is not waited for, as long as the window has room.

        Args:
            reply: as the dispatcher made it.

        Raises:
            WithheldError, ProviderError: it cannot be sent, or a partial one before it failed.
            HeaderError, EncodeError: it must not be sent as it is.
        """
        header, rules = reply.header or Header(), self._rules
        route = self._route(is_error=reply.fault is not None)
        echo = self._jms_id(JmsEcho.CORRELATION_ID_FIRST if self._soap_jms else rules.echo)
        partial = header.batch_sequence_number is not None
        if partial or reply.fault is not None:
            message = to_jms(header, reply, rules.profile, names=rules.names, correlation_id=echo)
        else:
            message = rules.templates.to_jms(header, reply.body, reply.version, names=rules.names, correlation_id=echo)
        if self._soap_jms:
            message = as_reply(message, self._message, is_fault=reply.fault is not None, version=reply.version)
        self.failed = reply.fault is not None
        self._transmit(message, route, partial=partial)
        self.replies += 1

    def _jms_id(self, echo: JmsEcho) -> str | None:
        message = self._message
        return reply_ids(None, message.message_id, message.correlation_id, echo=echo).jms_correlation_id

    def _route(self, *, is_error: bool) -> ReplyRoute[Destination]:
        route = reply_route(
            is_error=is_error,
            reply_to=self._message.reply_to,
            failure_reply_to_uri=header_text(self.request, "failureReplytoURI") if is_error and self.request else None,
            resolve=self._allowed_name,
        )
        if route.destination is None:
            raise WithheldError("a reply has nowhere to go", ConfigError(route.warning or "no reply address"))
        if route.warning:
            log.warning("%s", route.warning)
        if route.source is RouteSource.REPLY_TO:
            self._allowed(route.destination)
        return route

    def _allowed(self, destination: Destination) -> None:
        if not self._rules.allows(destination):
            error = InvalidDestinationError(f"replies to {destination} are not allowed here")
            raise WithheldError("a reply is withheld", error)

    def _allowed_name(self, name: str) -> Destination:
        destination = self._rules.names.lookup(name)
        if not self._rules.allows(destination):
            raise InvalidDestinationError(f"replies to {destination} are not allowed here")
        return destination

    def _transmit(self, message: JmsMessage, route: ReplyRoute[Destination], *, partial: bool) -> None:
        if route.destination is None:
            return
        message = stamped(message, None, None)
        if partial:
            self._run = self._run or random_id()
            properties = Properties.trusted({**message.properties, RUN_ID: self._run})
            message = dataclasses.replace(message, properties=properties)
        if self._telemetry is None:
            self._send(message, route.destination, partial=partial)
            return
        identifier = correlation_id(self.request) or ""
        publication = self._telemetry.publish(message, route.destination, self.operation, identifier)
        try:
            self._send(publication.message, route.destination, partial=partial)
        except BaseException as error:
            publication.end(error=error)
            raise
        publication.end()

    def _send(self, message: JmsMessage, destination: Destination, *, partial: bool) -> None:
        try:
            if partial:
                if self._window is None:
                    self._window = SendWindow(self._session, self._rules.send_window)
                self._window.send(destination, message)
            else:
                if self._window is not None:
                    self._window.settle()
                together = self._rules.together and self._session.send_soon(destination, message, can_wait=True)
                if not together:
                    self._session.send(destination, message)
        except (TransportError, IllegalStateError) as error:
            raise _told_apart(error) from error


def _told_apart(error: TransportError | IllegalStateError) -> WithheldError | ProviderError:
    """Says of what went wrong with a send whether the requestor is to blame, or the provider."""
    if isinstance(error, InvalidDestinationError):
        return WithheldError("the requestor is gone", error)
    if isinstance(error, ResourceLimitError):
        return WithheldError("the requestor's destination is full", error)
    return ProviderError(error)
