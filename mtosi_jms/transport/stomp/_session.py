"""Connection, sessions and consumers over STOMP. All sessions share one STOMP connection at a time.

STOMP returns messages to a queue only when a subscription ends, so `recover` and `rollback` redeliver messages locally.
A transaction is sent as a whole, at `commit`, so a connection that is lost before undoes nothing.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Final

from mtosi_jms.errors import ConfigError, MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.telemetry import log_message
from mtosi_jms.transport._base import AckMode
from mtosi_jms.transport._buffered import BufferedConsumer, BufferedSession
from mtosi_jms.transport._completion import CompletionListener
from mtosi_jms.transport._descriptor import Capability, ConnectionMetadata
from mtosi_jms.transport._session_core import ConnectionCore, ConsumerSpec, T
from mtosi_jms.transport._threads import dropped
from mtosi_jms.transport.stomp._channel import Channel
from mtosi_jms.transport.stomp._frames import Frame
from mtosi_jms.transport.stomp._options import Address, StompOptions
from mtosi_jms.transport.stomp._subscriptions import Begun, Entry, Feed

log = logging.getLogger(__package__)

_LARGE: Final = 65_536
"""Size in bytes from which the cost of a separate write does not matter."""


class StompConsumer(BufferedConsumer[Entry, Feed]):
    def __init__(self, session: StompSession, spec: ConsumerSpec, feed: Feed) -> None:
        super().__init__(session, spec, feed)
        self._stomp = session
        feed.signal = self.signal

    def _prepare(self) -> None:
        if self.source.held and not self.source.buffer:
            self._stomp.make_room(self.source)


class StompSession(BufferedSession[Entry, Feed]):
    def __init__(self, connection: ConnectionCore, channel: Channel, ack_mode: AckMode, *, transacted: bool) -> None:
        super().__init__(connection, ack_mode, transacted=transacted)
        self.channel = channel
        self._begun = Begun(channel.transaction_on)
        self._sends: list[tuple[Frame, JmsMessage]] = []

    def _send(
        self, destination: Destination, message: JmsMessage, listener: CompletionListener | None, timeout: float | None
    ) -> JmsMessage:
        """The broker confirms PERSISTENT messages, and those to a temporary destination."""
        self._check_open()
        if listener is not None:
            self.completions.check_open()
        sent, frame = self.channel.prepare(destination, message)
        confirmed = destination.is_temporary or sent.delivery_mode is DeliveryMode.PERSISTENT
        if self.transacted:
            self._sends.append((frame, sent))
        elif listener is not None and confirmed:
            self._send_async(frame, message, sent, listener, timeout)
            return message
        else:
            try:
                self.channel.send(frame, confirmed=confirmed, timeout=timeout)
            except UnknownOutcomeError as error:
                error.messages = (sent,)
                raise
        if listener is None:
            return sent
        self.completions.completed(message, sent, listener)
        return message

    def _send_async(
        self, frame: Frame, message: JmsMessage, sent: JmsMessage, listener: CompletionListener, timeout: float | None
    ) -> None:
        pending = self.completions.begin(message, listener)

        def settled(error: MtosiError | None) -> None:
            if isinstance(error, UnknownOutcomeError):
                error.messages = (sent,)
            if error is None:
                pending.complete(sent)
            else:
                pending.fail(error)

        try:
            self.channel.send(frame, on_settled=settled, timeout=timeout)
        except BaseException as error:  # a signal's too: the caller and the listener must not both hear of it (A9)
            if self.completions.withdraw(pending) or not isinstance(error, Exception):
                raise

    def send_soon(
        self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False
    ) -> JmsMessage | None:
        """A message that was not written before a connection was lost is sent on the next one. A large one must be sent
        by `send`, because a common write with others would copy it."""
        self.completions.check(message)
        with self.use:
            self._check_open()
            target = self._named(destination)
            confirmed = target.is_temporary or message.delivery_mode is DeliveryMode.PERSISTENT
            if self.transacted or confirmed or message.delivery_delay_ms or len(message.body) > _LARGE:
                return None
            sent, frame = self.channel.prepare(target, message)
            if not self.channel.send_soon(frame, can_wait=can_wait):
                return None
        log_message("sent to", target, sent)
        return sent

    def _subscribe(self, spec: ConsumerSpec) -> StompConsumer:
        with self.lock:
            self.check_open()
            self.channel.check_reader(spec.destination)
            if self.transacted and Capability.TRANSACTED_RECEIVE not in self.channel.dialect.capabilities:
                raise ConfigError(
                    f"{self.channel.dialect.provider} acknowledges outside of STOMP's transactions: receive in a "
                    "session that is not transacted"
                )
            if spec.durable is not None:
                self.channel.claim(spec.durable)
            if (kept := self._kept_feed(spec)) is not None:
                return self._enter(StompConsumer(self, spec, kept))
        feed = Feed(spec)
        consumer = StompConsumer(self, spec, feed)
        self.channel.subscribe(feed)
        with self.lock:
            if not self._closed:
                return self._enter(consumer)
        feed.closed = True  # by another thread meanwhile, which has not seen this consumer
        self.channel.unsubscribe(feed, self.connection.goodbye())
        self._check_open()
        return consumer

    def unsubscribe(self, durable: str) -> None:
        """Artemis does not report a name that it does not know."""
        with self.use:
            with self.lock:
                self.check_open()
                self.channel.claim(durable)
            self.channel.end_durable(durable)

    def _browse(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        """ActiveMQ also returns messages that were delivered and not acknowledged."""
        with self.lock:
            self.check_open()
            self.channel.check_reader(spec.destination)
        yield from self.channel.browse(spec)

    def _count(self, spec: ConsumerSpec) -> int:
        return self.channel.count(spec) if self._is_managed() else super()._count(spec)

    def _count_by(self, spec: ConsumerSpec, names: Sequence[str]) -> dict[str | None, int]:
        return self.channel.count_by(spec, names) if self._is_managed() else super()._count_by(spec, names)

    def _headers(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        return self.channel.headers(spec) if self._is_managed() else self._browse(spec)

    def _is_managed(self) -> bool:
        return Capability.BROWSE not in self.channel.dialect.capabilities

    def _temporary(self, kind: type[T]) -> T:
        self._check_open()
        return self.channel.make_temporary(kind)

    def _commit(self) -> None:
        """A lost connection rolls back; if COMMIT was sent already, the outcome is unknown."""
        held = list(self.unsettled)
        lost = not self._begun.is_open  # what was acknowledged in it, then, by a commit that was interrupted
        if any(entry.comes_again or (lost and entry.uncommitted) for entry in held):
            self._roll_back()
            raise TransportError(
                "the connection was lost since messages of the transaction were received: it is rolled back, and "
                "they will be delivered again"
            )
        sends, self._sends = self._sends, []
        begun = self._begun.take()
        entries = [entry for entry in held if not entry.is_stale and not entry.uncommitted]
        if begun is None and not sends and not entries:
            return
        try:
            self.channel.transact(begun, [frame for frame, _ in sends], entries)
        except UnknownOutcomeError as error:
            error.messages = tuple(message for _, message in sends)
            self._forget(list(self.unsettled))
            raise
        except MtosiError:
            self._roll_back()
            raise
        except BaseException:  # a signal's: nobody else would end what was begun
            if begun is not None:
                begun.link.end(TransportError("a commit was interrupted"))
            raise
        self._settled(list(self.unsettled))

    def _roll_back(self) -> None:
        self._sends.clear()
        self._begun.abort(time.monotonic() + self.channel.options.send_timeout)
        feeds = dict.fromkeys(one.feed for one in list(self.unsettled) if one.uncommitted)
        if feeds:  # the broker takes no other acknowledgement of these: it has to deliver them again
            with self.lock:
                self.channel.note_returned(one for one in self.unsettled if one.feed in feeds)
            self.channel.renew(feeds)
        self._give_back(list(self.unsettled))

    def _acknowledge(self, entries: Sequence[Entry], deadline: float | None = None) -> None:
        if deadline is None and self.ack_mode is AckMode.CLIENT and any(entry.comes_again for entry in entries):
            self._forget(entries)
            raise TransportError("the connection was lost since: the message will be delivered again")
        self.channel.acknowledge([entry for entry in entries if not entry.is_stale], deadline)
        self._settled(entries)

    def _acknowledge_expired(self, entries: Sequence[Entry]) -> None:
        with suppress(TransportError):
            self.channel.acknowledge(entries)

    def _kept(self, entry: Entry) -> None:
        self.make_room(entry.feed)

    def make_room(self, feed: Feed) -> None:
        """Has the broker send more messages if the window is full of unacknowledged ones."""
        if self.transacted:
            with self.lock:
                unacknowledged = [one for one in self.unsettled if not one.uncommitted]
                held = [one for one in unacknowledged if not one.feed.spec.destination.is_topic]
            if len(held) >= self.channel.options.prefetch:
                self._begun.acknowledge(held)
        self.channel.widen(feed)

    def _note_returned(self, entries: Sequence[Entry]) -> None:
        self.channel.note_returned(entries)  # where it waits here, the broker may still have it back

    def _end_feed(self, feed: Feed, deadline: float, *, returns: bool = False) -> None:
        self.channel.unsubscribe(feed, deadline)
        with self.lock:
            self._feeds.pop(feed, None)

    def _end(self, deadline: float) -> None:
        self._sends.clear()
        self._begun.end(deadline)
        super()._end(deadline)


class StompConnection(ConnectionCore):
    """A connection over STOMP, to the first broker that can be reached. Raises LoginRefusedError; ConfigError: the
    client id is in use; TransportError: no broker can be reached."""

    def __init__(self, addresses: Sequence[Address], options: StompOptions, names: NamingContext) -> None:
        super().__init__(threading.Lock(), names, options.client_id, options.send_rules)
        self.id = f"stomp-{uuid.uuid4().hex[:12]}"
        self.options = options
        self.channel = Channel(
            self.id, self.lock, addresses, options, self._on_lost, self.wake_all, self.on_reconnected
        )
        dialect = self.channel.dialect
        self.capabilities = dialect.capabilities
        self.metadata = ConnectionMetadata(dialect.provider, dialect.version, options.jms_version)

    def __del__(self) -> None:
        if hasattr(self, "metadata") and not self._closing:
            dropped(repr(self), self.close)

    def check_alive(self) -> None:
        self.channel.check_alive()

    @property
    def server(self) -> tuple[str, int] | None:
        return self.channel.address.host, self.channel.address.port

    def _is_reached(self) -> bool:
        return self.channel.link is not None

    def goodbye(self) -> float:
        return self.options.goodbye()

    def _where(self) -> str:
        return f"{self.channel.address}, {self.metadata.provider} {self.metadata.provider_version}"

    def _session(self, ack_mode: AckMode, transacted: bool) -> StompSession:
        return StompSession(self, self.channel, ack_mode, transacted=transacted)

    def _finish(self, deadline: float) -> None:
        self.channel.close(deadline)

    def _on_lost(self) -> None:
        """Notes that a link was lost: the unsettled messages of sessions come again. The lock is held."""
        for session in self._sessions:
            self.channel.note_returned(session.unsettled)
        self.wake_all()
