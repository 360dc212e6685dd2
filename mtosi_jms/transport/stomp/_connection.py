"""A JMS connection over STOMP: one STOMP connection at a time, made again when it is lost, shared by all sessions.

One lock guards what is known about sessions, consumers and links. Nothing is sent while it is held, for the thread that
reads needs it: a broker that waits for us to read would wait for ever.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    MtosiError,
    WriteError,
)
from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.jms.selector import Selector
from mtosi_jms.transport._descriptor import Capability, ConnectionMetadata
from mtosi_jms.transport._listening import in_listener
from mtosi_jms.transport.base import AckMode, Connection
from mtosi_jms.transport.completion import SendRules
from mtosi_jms.transport.dropping import dropped
from mtosi_jms.transport.stomp._collecting import Collector
from mtosi_jms.transport.stomp._consumer import StompConsumer
from mtosi_jms.transport.stomp._dialect import Dialect
from mtosi_jms.transport.stomp._frames import Frame, Received, encode
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._messages import incoming, outgoing
from mtosi_jms.transport.stomp._reconnector import Keeper
from mtosi_jms.transport.stomp._session import StompSession
from mtosi_jms.transport.stomp._subscription import Entry
from mtosi_jms.transport.stomp._subscriptions import Subscriptions
from mtosi_jms.transport.stomp._temporary import T, Temporaries
from mtosi_jms.transport.stomp._transaction import Transaction, transact
from mtosi_jms.transport.stomp._unsent import Leftovers
from mtosi_jms.transport.stomp.options import Address, StompOptions

log = logging.getLogger(__name__)

_TOPIC_WINDOW: Final = 32_766
"""Messages on the way to a subscriber: what a topic does not keep must not wait at the broker for room."""
_REMEMBERED: Final = 10_000
_GOODBYE: Final = 5.0
"""Seconds that closing gives to a broker which does not answer."""
_MILLISECONDS: Final = 1000


class StompConnection(Connection):
    """A connection over STOMP.

    Args:
        addresses: of the brokers, in the order in which they are tried.
        options: see `StompOptions`.
        names: its naming context.
        send_rules: how it sends asynchronously.

    Attributes:
        lock: guards what is in here.
        options, send_rules: the same.
        leftovers: messages that no link has written.
        started: whether it delivers.
        dialect: of the broker.

    Raises:
        LoginRefusedError: the login is refused.
        ConfigError: the client id is in use.
        TransportError: no broker can be reached.
    """

    def __init__(
        self, addresses: Sequence[Address], options: StompOptions, names: NamingContext, send_rules: SendRules
    ) -> None:
        self.names = names
        self.send_rules = send_rules
        self.client_id = options.client_id
        self.id = f"stomp-{uuid.uuid4().hex[:12]}"
        self.lock = threading.Lock()
        self.options = options
        self.started = False
        self._closing = False
        self._closed = False
        self._ended = threading.Event()
        self._sessions: dict[StompSession, None] = {}
        self._subscriptions = Subscriptions(self.lock, lambda: self.options.send_timeout, self.goodbye)
        self._collector = Collector(self.lock, options.send_timeout)
        self._returned: dict[str, None] = {}
        self.leftovers = Leftovers(self.lock, lambda: self._keeper.current)
        self._numbers = itertools.count(1)
        self._temporaries = Temporaries(self, self._collector)
        self._keeper = Keeper(addresses, options, self)
        self.dialect: Dialect = self._keeper.open()
        self.capabilities = self.dialect.capabilities
        self.metadata = ConnectionMetadata(self.dialect.provider, self.dialect.version, options.jms_version)

    def __repr__(self) -> str:
        return f"StompConnection({self._keeper.address}, {self.metadata.provider} {self.metadata.provider_version})"

    def __del__(self) -> None:
        if hasattr(self, "dialect") and not self._closing:
            dropped(repr(self), self.close)

    def start(self) -> None:
        """See `Connection.start`."""
        with self.lock:
            self._check_open()
            self.started = True
            self.wake_all()

    def stop(self) -> None:
        """See `Connection.stop`."""
        with self.lock:
            self._check_open()
            self.started = False
            for session in list(self._sessions):
                session.pump.await_idle()

    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> StompSession:
        """See `Connection.session`."""
        with self.lock:
            self._check_open()
            session = StompSession(self, ack_mode, transacted=transacted)
            self._sessions[session] = None
            return session

    def close(self) -> None:
        """Closes its sessions, waits until everything sent has arrived, and ends the connection.

        A broker that does not answer is waited for 5 seconds, or `send_timeout` where that is less.
        """
        with self.lock:
            sessions = list(self._sessions)
            for session in sessions:
                session.completions.check_thread()
            for session in sessions:
                session.begin_end()
            self._closing = True
        for session in sessions:
            session.completions.await_told()
        with self.lock:
            again, self._closed = self._closed, True
        if again:  # another thread is at it; a listener, for which that one waits, must not wait in its turn
            if not in_listener():
                self._ended.wait(_GOODBYE)
            return
        with self.lock:
            for session in list(self._sessions):
                session.pump.await_idle()
            sessions = list(self._sessions)
            for session in sessions:
                session.shut()
        deadline = self.goodbye()
        for session in sessions:
            session.leave_all(deadline)
        self.finish(deadline)

    # What follows holds the lock already.

    def check_alive(self) -> None:
        """Raises TransportError where no broker could be reached again."""
        self._keeper.check()

    def check_reader(self, destination: Destination) -> None:
        """Raises InvalidDestinationError where the connection may not receive from a destination."""
        if destination.is_temporary and destination not in self._temporaries:
            raise InvalidDestinationError(
                f"{destination}: it is gone, or another connection's: only that may receive from it (R2c)"
            )

    def claim(self, durable: str) -> None:
        """Raises IllegalStateError where a consumer has the durable subscription, ConfigError without a client id."""
        if not self.client_id:
            raise ConfigError("durable subscriptions are known by the connection's client id: give client_id")
        self._subscriptions.check_free(durable)

    def note_returned(self, entries: Iterable[Entry]) -> None:
        """Messages that were handed out go back to the broker: Artemis does not mark them when they come again."""
        self._returned.update((entry.message.message_id, None) for entry in entries if entry.message.message_id)
        for oldest in list(itertools.islice(self._returned, max(len(self._returned) - _REMEMBERED, 0))):
            del self._returned[oldest]

    def wake_all(self) -> None:
        """Delivery was started, or something has failed: whoever waits looks again."""
        for session in self._sessions:
            session.wake_readers()

    def forget(self, session: StompSession) -> None:
        """A session was closed."""
        self._sessions.pop(session, None)

    def _check_open(self) -> None:
        if self._closing:
            raise IllegalStateError("the connection is closed")

    # What follows does not hold the lock: it talks to the broker.

    def goodbye(self) -> float:
        """When what is being closed waits no longer for the broker, by the monotonic clock."""
        return time.monotonic() + min(_GOODBYE, self.options.send_timeout)

    def finish(self, deadline: float) -> None:
        """Ends a connection that was closed, once no listener has a message in hand that it acknowledges as it
        returns."""
        with self.lock:
            ended = self._closed and not self._sessions
        if ended:
            self._keeper.close(deadline)
            self._ended.set()

    def prepare(self, destination: Destination, message: JmsMessage) -> tuple[JmsMessage, Frame]:
        """A message as it is sent, and its frame.

        Raises:
            ConfigError: STOMP cannot carry it.
        """
        sent = message.stamped(destination, message_id=None, timestamp_ms=int(time.time() * _MILLISECONDS))
        reply = None if sent.reply_to is None else self.reply_address_of(sent.reply_to)
        headers, body = outgoing(self.dialect, self.address_of(destination), sent, reply)
        return sent, ("SEND", headers, body)

    def transmit(self, frame: Frame, *, confirmed: bool, timeout: float | None = None) -> None:
        """Sends a frame; waits for a connection where it was lost, and for the broker's answer if so wanted.

        Args:
            frame: what is sent.
            confirmed: whether the answer is waited for.
            timeout: seconds that this may take, where that is less than the send time-out.
        """
        self._send(
            lambda link, deadline: (
                link.request([frame], deadline - time.monotonic()) if confirmed else link.post([frame], deadline)
            ),
            timeout,
        )

    def leave(self, frame: Frame, *, can_wait: bool) -> bool:
        """Has a frame sent soon, also on the next link where this one is lost before; see `Link.leave`."""
        return self.leftovers.leave(encode(*frame), can_wait=can_wait)

    def submit(
        self, frame: Frame, on_settled: Callable[[MtosiError | None], object], timeout: float | None = None
    ) -> None:
        """Sends a frame, and has it told later what became of it; see `Link.submit`."""
        self._send(lambda link, deadline: link.submit(frame, on_settled, deadline), timeout)

    def _send(self, sending: Callable[[Link, float], None], timeout: float | None) -> None:
        longest = self.options.send_timeout
        deadline = time.monotonic() + (longest if timeout is None else min(timeout, longest))
        while True:
            link = self._keeper.link(deadline)
            try:
                sending(link, deadline)
            except WriteError:  # the broker has not got it, so that it may be sent on another link
                if time.monotonic() >= deadline or self._keeper.is_closed:
                    raise
            else:
                return

    def transact(self, begun: Transaction | None, sends: Sequence[Frame], entries: Sequence[Entry]) -> None:
        """Sends and acknowledges as one transaction, one that was begun or another; see `transaction.transact`."""
        deadline = time.monotonic() + self.options.send_timeout
        one = begun or self.transaction_on(self._keeper.link(deadline))
        transact(one, sends, entries, deadline, begun=begun is not None, at_once=self.dialect.fails_commit)

    def transaction_on(self, link: Link) -> Transaction:
        """A transaction that the broker does not know yet."""
        return Transaction(link, f"t{next(self._numbers)}")

    def renew(self, consumers: Iterable[StompConsumer]) -> None:
        """Has all that came by the subscriptions of some consumers, and was not acknowledged, delivered again."""
        self._subscriptions.renew(consumers, time.monotonic() + self.options.send_timeout)

    def acknowledge(self, entries: Iterable[Entry], deadline: float | None = None) -> None:
        """Tells the broker that messages are done with: at once, or within 5 ms where more wait for the same reader.

        Args:
            entries: the messages.
            deadline: by the monotonic clock; None: the send time-out from now.

        Raises:
            TransportError: it cannot be told; it will deliver them again.
        """
        links: dict[Link, list[Frame]] = {}
        soon = False
        for entry in entries:
            links.setdefault(entry.link, []).append(entry.acknowledgement())
            soon = soon or bool(entry.subscription.consumer.buffer)
        for link, frames in links.items():
            link.post(frames, deadline, soon=soon and deadline is None)  # who has a deadline wants it done

    def subscribe(self, consumer: StompConsumer, factor: int = 1) -> None:
        """Makes a subscription for a consumer; messages come from the return on.

        Args:
            consumer: whose it is.
            factor: how many times the usual number of messages may be on the way.
        """
        window = _TOPIC_WINDOW if consumer.destination.is_topic else self.options.prefetch * factor
        headers = self.dialect.subscribing(
            consumer.destination, consumer.parsed, consumer.durable, consumer.no_local, window
        )
        address = self.address_of(consumer.destination)
        link = self._keeper.link(time.monotonic() + self.options.send_timeout)
        self._subscriptions.make(link, address, headers, consumer)

    def widen(self, consumer: StompConsumer) -> None:
        """Makes one more subscription to a queue, where as many messages are held unacknowledged as may be on the way.

        STOMP has no word for "more of them, though none is acknowledged": without this, a transaction of more messages
        would wait for ever.
        """
        allowed = self.options.prefetch * (2 ** len(consumer.subscriptions) - 1)
        if consumer.held >= allowed and not consumer.destination.is_topic and not consumer.closed:
            self.subscribe(consumer, 2 ** len(consumer.subscriptions))

    def unsubscribe(self, consumer: StompConsumer, deadline: float) -> None:
        """Ends a consumer's subscriptions; the broker delivers again what was not acknowledged."""
        with self.lock:
            ended, consumer.subscriptions = consumer.subscriptions, []
            consumer.buffer.clear()
        self._subscriptions.end(ended, deadline)

    def unsubscribing(self, durable: str) -> Frame:
        """The frame that ends a durable subscription."""
        return "UNSUBSCRIBE", self.dialect.unsubscribing(durable), b""

    def make_temporary(self, kind: type[T]) -> T:
        """Makes a temporary destination."""
        link = self._keeper.link(time.monotonic() + self.options.send_timeout)
        return self._temporaries.make(kind, link)

    def browse(self, destination: Destination, selector: Selector | None) -> list[JmsMessage]:
        """What waits at a queue.

        Raises:
            ConfigError: the broker's STOMP has no browser.
        """
        if Capability.BROWSE not in self.capabilities:
            raise ConfigError(f"{self.metadata.provider} has no browser over STOMP")
        headers = self.dialect.subscribing(destination, selector, None, False, self.options.prefetch)
        link = self._keeper.link(time.monotonic() + self.options.send_timeout)
        found = self._collector.collect(
            link, self.address_of(destination), {**headers, "browser": "true"}, lambda one: "browser" in one
        )
        return [self._message(headers, body, destination) for headers, body in found[:-1]]

    def address_of(self, destination: Destination) -> str:
        """A destination's header; temporary ones of our own have a name that outlives the STOMP connection."""
        return self._temporaries.address(destination) or self.dialect.address(destination)

    def reply_address_of(self, destination: Destination) -> str:
        """The same for `reply-to`."""
        own = self._temporaries.address(destination) if self.dialect.temporary else None
        return own or self.dialect.reply_address(destination)

    def restore(self, link: Link) -> None:
        """Makes on a new link what was there on the one that was lost: temporary destinations, subscriptions.

        Raises:
            MtosiError: the broker refuses one of them.
        """
        self._temporaries.restore(link)
        self._subscriptions.restore(link)
        self.leftovers.hand_on(link)

    def _message(self, headers: Mapping[str, str], body: bytes, consumed: Destination) -> JmsMessage:
        return incoming(self.dialect, headers, body, consumed, self._temporaries.destination)

    # What follows runs in the thread that reads, and must not talk to the broker.

    def on_messages(self, link: Link, frames: Sequence[Received]) -> None:
        """Messages came: they go to their consumers, for other threads to take, which are woken once for all."""
        came: list[Entry] = []
        for _, headers, body in frames:
            number = headers.get("subscription", "")
            subscription = self._subscriptions.find(number)
            if subscription is None:
                with self.lock:
                    self._collector.takes(number, headers, body)
            elif subscription.link is link:  # one kept for a closed consumer may be taken over by another
                message = self._message(headers, body, subscription.consumer.destination)
                came.append(Entry(subscription, link, headers.get("ack", ""), message))
        if not came:
            return
        with self.lock:
            for entry in came:
                if self._subscriptions.find(entry.subscription.number) is not None and not entry.is_stale:
                    self._take(entry)
            for consumer in dict.fromkeys(entry.subscription.consumer for entry in came):
                consumer.signal()

    def _take(self, entry: Entry) -> None:
        consumer, message = entry.subscription.consumer, entry.message
        if self._returned and message.message_id in self._returned:
            del self._returned[message.message_id]
            entry.message = message if message.redelivered else message.again()
        consumer.buffer.append(entry)

    def on_lost(self, link: Link) -> None:
        """A link was lost: what is not acknowledged comes again, if the broker keeps it at all."""
        with self.lock:
            self._subscriptions.lost(link, is_told=self.options.reconnect)
            for session in self._sessions:
                self.note_returned(session.unsettled)
            self._collector.end()
            self._keeper.notify()
            self.wake_all()
