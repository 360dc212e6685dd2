"""Sessions and consumers by a Java provider.

Each consumer has its own Java session, in which messages are acknowledged one by one; sends use another session. In a
transacted session all share one Java session. Java's `receive` is called in the thread that waits or, for a listener,
in a thread of the consumer. So no Python code runs in a Java thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError, MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.transport._base import AckMode, Delivery, ErrorHook, Interruption, Listener
from mtosi_jms.transport._buffered import BufferedConsumer, BufferedEntry, BufferedFeed, BufferedSession
from mtosi_jms.transport._completion import CompletionListener, Pending, SendsInTurn
from mtosi_jms.transport._session_core import ConnectionCore, ConsumerSpec, DeliveryCore, T
from mtosi_jms.transport.jvm import machine
from mtosi_jms.transport.jvm._channel import Channel
from mtosi_jms.transport.jvm._link import Link
from mtosi_jms.transport.jvm._messages import error_of, stamps, translated

log = logging.getLogger(__package__)

_SETTLED: Final = 0.5
"""Seconds without a message after which a browsed queue counts as read, though its broker tells of more."""
_PAUSE: Final = 0.01
_SLICE: Final = 0.25
"""Seconds for which one call of Java's `receive` waits; an interrupt or a close takes effect after that time."""
_ANSWER: Final = 0.5
"""Seconds that the provider has for its part of a call that should not wait for it, beyond the call's own time."""
_AHEAD: Final = 8
"""How many messages may wait for a listener, if each can be acknowledged by itself."""


@dataclass(slots=True, eq=False)
class Feed(BufferedFeed):
    """The source of a consumer's messages, with the Java objects; they are None while the connection is lost."""

    link: Link | None = field(default=None, init=False)
    session: Any = field(default=None, init=False)
    consumer: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Entry(BufferedEntry[Feed]):
    java: Any
    link: Link

    @property
    def is_stale(self) -> bool:
        return self.link is not self.feed.link


class JvmConsumer(BufferedConsumer[Entry, Feed]):
    def __init__(self, session: JvmSession, spec: ConsumerSpec, feed: Feed) -> None:
        super().__init__(session, spec, feed)
        self._own = session
        self._room = threading.Condition(session.lock)

    def receive(self, timeout: float | None = None) -> DeliveryCore[Entry] | None:
        if timeout == 0 and not self.closed:
            with self.session.use:
                self._own.fetch_now(self.source)
        self._own.receives_until = None if timeout is None else time.monotonic() + timeout
        try:
            return super().receive(timeout)
        finally:
            self._own.receives_until = None

    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        super().listen(on_message, on_error)
        work = (weakref.ref(self), self._room)
        threading.Thread(target=_feed, args=work, name=f"feeds-{self.session.connection.id}", daemon=True).start()

    def _prepare(self) -> None:
        machine.check_process()

    # The caller of every method below holds the lock.

    def _next(self) -> Entry | Interruption | None:
        self._room.notify()
        return super()._next()

    def _sleep(self, seconds: float | None) -> None:
        if self.source.link is None or not self.session.connection.started:
            super()._sleep(seconds)
            return
        self.session.lock.release()  # Java's `receive` blocks, and whoever wakes or closes this needs the lock
        try:
            self._own.fetch(self.source, _SLICE if seconds is None else min(seconds, _SLICE))
        finally:
            self.session.lock.acquire()

    def signal(self) -> None:
        self._room.notify()
        super().signal()

    def shut(self) -> None:
        self._room.notify_all()
        super().shut()

    def is_idle(self) -> bool:
        link = self.source.link
        if link is None or not self.session.connection.started:
            return True
        alone = self.session.transacted or not link.api.individual
        return self._own.is_busy() if alone else len(self.source.buffer) >= _AHEAD

    def feed(self) -> bool:
        """Receives one message for the listener; returns False at the end. Takes the lock."""
        with self.session.lock:
            if self.closed or self not in self.session.use.listeners or machine.is_ending():
                return False
            if self.is_idle():
                return True
        with self._own.turn if self.session.transacted else nullcontext():
            self._own.fetch(self.source, _SLICE)
        with self.session.lock:
            if self.source.buffer:
                self.session.pump.signal()
        return True


def _feed(weak: weakref.ref[JvmConsumer], room: threading.Condition) -> None:
    """Receives for a listener. While it waits, it does not keep the consumer alive."""
    while True:
        consumer = weak()
        if consumer is None or not consumer.feed():
            return
        with room:
            idle = consumer.is_idle() and not consumer.closed
            del consumer
            if idle:
                room.wait(1.0)


class JvmSession(BufferedSession[Entry, Feed]):
    """A session by a Java provider. `receives_until`: end of the running `receive`. `turn`: held while Java receives
    for a listener of a transacted session, where all share one Java session."""

    def __init__(self, connection: ConnectionCore, channel: Channel, ack_mode: AckMode, *, transacted: bool) -> None:
        super().__init__(connection, ack_mode, transacted=transacted)
        self.channel = channel
        self.turn = threading.Lock()
        self.receives_until: float | None = None
        self._sending = threading.Lock()
        self._link: Link | None = None
        self._session: Any = None
        self._producer: Any = None
        self._sends: list[JmsMessage] = []
        self._broken: TransportError | None = None
        self._in_turn = SendsInTurn(connection.id)
        self._open_sends: dict[Pending, tuple[Link, int]] = {}

    # Sending

    def _send(
        self, destination: Destination, message: JmsMessage, listener: CompletionListener | None, timeout: float | None
    ) -> JmsMessage:
        machine.attach()
        self._check_open()
        deadline = self.channel.deadline() if timeout is None else time.monotonic() + timeout
        if listener is None:
            if not self._in_turn.await_sent(deadline):
                raise TransportError("messages that were sent before it are still being sent; not sent")
            return self._send_now(destination, message, deadline)
        self.completions.check_open()
        pending = self.completions.begin(message, listener)
        if self.channel.first.completes:
            try:
                self._send_now(destination, message, deadline, pending)
            except BaseException as error:  # a signal's too: the caller and the listener must not both hear of it (A9)
                self._remove_send(pending)
                if self.completions.withdraw(pending) or not isinstance(error, Exception):
                    raise
            return message
        self._in_turn.add(pending, partial(self._send_in_turn, destination, message, pending, timeout))
        return message

    def send_soon(
        self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False
    ) -> JmsMessage | None:
        """See `Session.send_soon`. Java's clients do not wait when they send NON_PERSISTENT messages."""
        if self.transacted or message.delivery_mode is DeliveryMode.PERSISTENT:
            with self.use:
                self._check_open()
                self._named(destination)
            return None
        return self.send(destination, message)

    def _send_in_turn(
        self, destination: Destination, message: JmsMessage, pending: Pending, timeout: float | None
    ) -> None:
        """In the thread of `SendsInTurn`; its time begins now."""
        deadline = self.channel.deadline() if timeout is None else time.monotonic() + timeout
        pending.complete(self._send_now(destination, message, deadline))

    def _send_now(
        self, destination: Destination, message: JmsMessage, deadline: float, pending: Pending | None = None
    ) -> JmsMessage:
        """Sends a message. With `pending`, it does not wait for the outcome but reports it there."""
        link = self.channel.link(deadline)
        watch = self.channel.watched(deadline, link)
        packed = link.messages.packed(message)
        with self._sending:
            begun = False
            try:
                with watch, translated():
                    session = self._java(link)
                    target = link.to_java(destination, session)
                    reply_to = None if message.reply_to is None else link.to_java(message.reply_to, session)
                    begun = True
                    if pending is not None:
                        number = self._note_open(link, destination, message, pending)
                        events = self.channel.events, number
                        link.messages.send_async(session, self._producer, target, reply_to, packed, *events)
                        if link.lost is not None:  # before the send was noted: nobody else settles it
                            self._fail_send(pending, link)
                        return message
                    outcome = link.messages.send(session, self._producer, target, reply_to, packed)
            except (TransportError, IllegalStateError) as error:
                # A client whose connection was lost may close its sessions before it reports the loss.
                doubtful = type(error) is TransportError
                suspect = not watch.fired and (doubtful or isinstance(error, IllegalStateError))
                lost = suspect and self.channel.note_failure(link, error, deadline)
                if begun and (watch.fired or (doubtful and lost)):
                    sent = message.stamped(destination, message_id=None, timestamp_ms=int(time.time() * 1_000))
                    raise UnknownOutcomeError(str(error), (sent,)) from None
                if lost or watch.fired:
                    raise TransportError(f"{'the connection was lost; ' * lost}not sent: {error}") from None
                raise
        return self._note_sent(destination, message, outcome)

    def _note_sent(self, destination: Destination, message: JmsMessage, outcome: Any) -> JmsMessage:
        stamp, message_id = stamps(outcome)
        sent = message.stamped(destination, message_id=message_id or None, timestamp_ms=stamp)
        if self.transacted:
            self._sends.append(sent)
        return sent

    def _note_open(self, link: Link, destination: Destination, message: JmsMessage, pending: Pending) -> int:
        """Registers a send, and returns the number by which Java will report its outcome."""

        def on_outcome(outcome: Any) -> None:
            self._remove_send(pending)
            if not isinstance(outcome, machine.jpype.JException):
                pending.complete(self._note_sent(destination, message, outcome))
                return
            error = error_of(outcome)
            pending.fail(UnknownOutcomeError(str(error), (message,)) if type(error) is TransportError else error)

        number = self.channel.expect(on_outcome)
        self._open_sends[pending] = link, number
        return number

    def _remove_send(self, pending: Pending) -> None:
        if (noted := self._open_sends.pop(pending, None)) is not None:
            self.channel.expect_no_more(noted[1])

    def _fail_send(self, pending: Pending, link: Link) -> None:
        self._remove_send(pending)
        pending.fail(UnknownOutcomeError(str(link.lost), (pending.message,)))

    def _java(self, link: Link) -> Any:
        """Returns the Java session for sends, which a transacted session uses for everything."""
        if self._link is not link:
            self._check_broken()
            self._session = link.session(transacted=self.transacted)
            with translated():
                self._producer = self._session.createProducer(None)
            self._link = link
        return self._session

    # Receiving

    def _subscribe(self, spec: ConsumerSpec) -> JvmConsumer:
        machine.check_process()
        with self.lock:
            self.check_open()
            if spec.durable is not None and not spec.shared:
                self.channel.claim(spec.durable)
            if (kept := self._kept_feed(spec)) is not None:
                return self._enter(JvmConsumer(self, spec, kept))
        deadline = self.channel.deadline()
        link = self.channel.link(deadline)
        self._check_reader(link, spec.destination)
        feed = Feed(spec)
        consumer = JvmConsumer(self, spec, feed)
        self._open_feed(feed, link, deadline)
        with self.lock:
            if not self._closed:
                if spec.durable is not None and not spec.shared:
                    self.channel.durables[spec.durable] = feed
                return self._enter(consumer)
        self._close_java(feed)
        self._check_open()
        return consumer

    def _check_reader(self, link: Link, destination: Destination) -> None:
        if destination.is_temporary and not link.is_own(destination):
            raise InvalidDestinationError(
                f"{destination}: gone, or made by another connection, which alone reads it (R2c)"
            )

    def _open_feed(self, feed: Feed, link: Link, deadline: float) -> None:
        spec, selector = feed.spec, feed.spec.text or ""  # with None the Java method would be ambiguous
        with self.channel.watched(deadline, link), translated():
            session = self._java(link) if self.transacted else link.session()
            try:
                target = link.to_java(spec.destination, session)
                if spec.shared:
                    feed.consumer = session.createSharedDurableConsumer(target, spec.durable, selector)
                elif spec.durable is not None:
                    feed.consumer = session.createDurableSubscriber(target, spec.durable, selector, spec.no_local)
                elif spec.no_local:
                    feed.consumer = session.createConsumer(target, selector, True)
                else:
                    feed.consumer = session.createConsumer(target, selector)
            except BaseException:
                if not self.transacted:
                    with suppress(MtosiError), translated():
                        session.close()
                raise
        feed.session, feed.link = session, link

    def fetch_now(self, feed: Feed) -> None:
        """Receives a message for an empty feed, if one is ready."""
        with self.lock:
            ready = not feed.buffer and feed.link is not None and self.connection.started and not self._closed
        if ready and not self.use.listeners:
            self.fetch(feed, 0)

    def fetch(self, feed: Feed, seconds: float) -> None:
        """Receives a message for a feed, waiting at most so many seconds; the lock is not held."""
        link, consumer = feed.link, feed.consumer
        if link is None or consumer is None or machine.is_ending():
            return
        received: Any = None
        now = time.monotonic()
        limit = math.inf if self.receives_until is None else max(self.receives_until, now) + _ANSWER / 2
        until = min(now + seconds + _ANSWER, limit)  # Artemis' client asks the broker
        watch = self.channel.watched(until, content_by=self.channel.deadline())
        try:
            with watch, translated():
                received = link.messages.receive(consumer, seconds)
                if received is None:
                    return
                message, java = link.messages.read(received, feed.spec.destination, link.marked)
        except (TransportError, IllegalStateError) as error:
            if feed.closed or self._closed or machine.is_ending():
                return
            if watch.fired and received is None and not watch.has_content:
                return
            if watch.fired:  # a message was taken and not read: it comes again over another connection
                self.channel.give_up(link, error)
            elif not self.channel.note_failure(link, error, self._receive_by()):
                raise
            return
        except BaseException:
            if self.transacted:  # a message may have been received and lost: it must not be committed
                self._broken = TransportError("receiving was interrupted: the transaction is rolled back")
            raise
        entry = Entry(message, feed, java, link)
        with self.lock:
            reported = feed.link is not link and bool(feed.buffer) and isinstance(feed.buffer[-1], Interruption)
            if reported and not feed.returns:  # the connection was lost meanwhile: the message came before that
                feed.buffer.insert(len(feed.buffer) - 1, entry)
            else:
                feed.buffer.append(entry)

    def _receive_by(self) -> float | None:
        """Until when a call for the running `receive` may take; None: without limit."""
        return None if self.receives_until is None else self.receives_until + _ANSWER

    def is_busy(self) -> bool:
        """Whether a listener has a message or will get one. The lock is held."""
        return self._listened is not None or any(feed.buffer for feed in self._feeds)

    def settle(self, delivery: Delivery, *, failed: bool) -> None:
        super().settle(delivery, failed=failed)
        with self.lock:
            for consumer in self.consumers:
                consumer.signal()

    # Acknowledging

    def _acknowledge(self, entries: Sequence[Entry], deadline: float | None = None) -> None:
        if deadline is None and self.ack_mode is AckMode.CLIENT and any(entry.comes_again for entry in entries):
            self._forget(entries)
            raise TransportError("the connection was lost since: the message will be delivered again")
        limits = [one for one in (self.channel.deadline(), deadline, self._receive_by()) if one is not None]
        until = min(limits)
        for entry in entries:
            if entry.is_stale or (not entry.link.api.individual and self._holds_more(entry, entries)):
                continue
            try:
                with self.channel.watched(until, entry.link), translated():
                    entry.java.acknowledge()
            except (TransportError, IllegalStateError) as error:
                self.channel.note_failure(entry.link, error, until)
                raise TransportError(f"not acknowledged: {error}") from None
        self._settled(entries)

    def _holds_more(self, entry: Entry, settled: Sequence[Entry]) -> bool:
        """Whether acknowledging one message would acknowledge others, as with providers that acknowledge per session:
        then the last one that the application acknowledges acknowledges all."""
        with self.lock:
            others = [one for one in self.unsettled if one.feed is entry.feed and one not in settled]
            return bool(others or entry.feed.buffer)

    def _acknowledge_expired(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            with suppress(MtosiError), self.channel.watched(self._receive_by(), entry.link), translated():
                entry.java.acknowledge()

    # Transactions

    def _check_broken(self) -> None:
        if self._broken is not None and self.transacted:
            raise TransportError(str(self._broken))

    def _commit(self) -> None:
        held = list(self.unsettled)
        if self._broken is not None or any(entry.is_stale for entry in held):
            error = self._broken
            self._roll_back()
            raise TransportError(
                str(error) if error is not None else "the connection was lost: the transaction is rolled back"
            )
        link = self._link
        if link is None or link.lost is not None:
            if self._sends:  # the link knows of its loss, this session does not yet
                self._roll_back()
                raise TransportError("the connection was lost: the transaction is rolled back")
            return
        sends, self._sends = self._sends, []
        deadline = self.channel.deadline()
        watch = self.channel.watched(deadline, link)
        try:
            with watch, translated():
                self._session.commit()
        except MtosiError as error:
            if watch.fired:
                self.channel.give_up(link, error)
            if not isinstance(error, InvalidDestinationError) and self.channel.note_failure(link, error, deadline):
                self._forget(held)
                raise UnknownOutcomeError(str(error), tuple(sends)) from None
            self._roll_back()
            raise
        self._settled(held)

    def _roll_back(self) -> None:
        self._sends.clear()
        self._broken = None
        link = self._link
        if link is not None and link.lost is None:
            deadline = self.channel.deadline()
            try:
                with self.channel.watched(deadline, link), translated():
                    self._session.rollback()
            except MtosiError as error:
                if not self.channel.note_failure(link, error, deadline):
                    raise
        with self.lock:
            for feed in self._feeds:
                feed.buffer = deque(one for one in feed.buffer if isinstance(one, Interruption))
        self._forget(list(self.unsettled))

    # Other requests

    def _browse(self, spec: ConsumerSpec) -> Generator[list[JmsMessage], None, None]:
        self._check_open()
        # The time-out begins again with each fetch of messages: a large queue takes long, and is no lost provider.
        deadline = self.channel.deadline()
        link = self.channel.link(deadline)
        self._check_reader(link, spec.destination)
        with self.channel.watched(deadline, link), translated():
            session = link.session()
        try:
            with self.channel.watched(deadline, link), translated():
                queue = link.to_java(spec.destination, session)
                waiting = session.createBrowser(queue, spec.text or "").getEnumeration()
            seen, latest = 0, time.monotonic()
            while True:
                with self.channel.watched(deadline, link), translated():
                    some = link.messages.browse(waiting)
                    found = [link.messages.read(one, spec.destination, link.marked)[0] for one in some]
                    told = 0 if found else link.told(session, queue)
                if found:
                    seen, latest = seen + len(found), time.monotonic()
                elif seen >= told or time.monotonic() > latest + _SETTLED:
                    return
                else:
                    time.sleep(_PAUSE)
                now = time.time() * 1_000  # Qpid's client returns what has expired too
                yield [message for message in found if not 0 < message.expiration_ms <= now]
                if found:
                    deadline = self.channel.deadline()
        finally:
            closed_by = max(deadline, time.monotonic() + _ANSWER)  # whoever took the messages may have taken long
            with suppress(MtosiError), self.channel.watched(closed_by, link), translated():
                session.close()

    def _temporary(self, kind: type[T]) -> T:
        self._check_open()
        return self.channel.make_temporary(kind)

    def unsubscribe(self, durable: str) -> None:
        with self.use:
            with self.lock:
                self.check_open()
                self.channel.claim(durable)
            deadline = self.channel.deadline()
            with self.channel.session(self.channel.link(deadline), deadline) as session, translated():
                session.unsubscribe(durable)

    # Closing and losing

    def _end_feed(self, feed: Feed, deadline: float, *, returns: bool = False) -> None:
        self._close_java(feed, deadline, returns=returns)
        with self.lock:
            self._feeds.pop(feed, None)
            if feed.spec.durable is not None and not feed.spec.shared:
                self.channel.durables.pop(feed.spec.durable, None)

    def _close_java(self, feed: Feed, deadline: float | None = None, *, returns: bool = False) -> None:
        link, consumer, session = feed.link, feed.consumer, feed.session
        feed.link = feed.consumer = feed.session = None
        if link is None or link.lost is not None:
            return
        watch = self.channel.watched(self.channel.goodbye(deadline), link)
        try:
            with watch, translated():
                if returns and not self.transacted:
                    session.recover()  # Artemis does not mark messages that come back only by closing
                consumer.close()
                if not self.transacted:
                    session.close()
        except MtosiError as error:
            text = "a consumer of %s was not ended in order: %s: %s"
            log.warning(text, feed.spec.destination, type(error).__name__, error)
            if watch.fired:  # so that what it holds comes again
                self.channel.give_up(link, error)

    def _end(self, deadline: float) -> None:
        listened = self._listened
        super()._end(deadline)
        with self.lock:
            link, session = self._link, self._session
        if link is not None and link.lost is None and session is not None and listened is None:
            producer, self._session, self._producer, self._link = self._producer, None, None, None
            watch = self.channel.watched(deadline, link)
            try:
                with watch, translated():
                    producer.close()  # else Qpid's client waits two seconds for Artemis' answer to the next line
                    session.close()
            except MtosiError as error:
                log.warning("a session did not close in order: %s: %s", type(error).__name__, error)
                if watch.fired:
                    self.channel.give_up(link, error)

    def lost(self, link: Link) -> None:
        """The lock is held."""
        for feed in self._feeds:
            if feed.link is link:
                feed.link = feed.consumer = feed.session = None
                feed.buffer = deque(one for one in feed.buffer if isinstance(one, Interruption) or not feed.returns)
                feed.buffer.append(Interruption(str(link.lost)))
        for pending in [one for one, (by, _) in self._open_sends.copy().items() if by is link]:
            self._fail_send(pending, link)
        if self.transacted and self._link is link and (self._sends or self.unsettled):
            self._broken = TransportError("the connection was lost: the transaction is rolled back")

    def restore(self, link: Link) -> None:
        """Makes on a new link what the lost one had. Raises MtosiError: the provider refuses it."""
        for feed in list(self._feeds):
            if feed.link is None and not (feed.closed and not feed.held):
                if self.transacted:
                    broken, self._broken = self._broken, None
                    try:
                        self._open_feed(feed, link, self.channel.deadline())
                    finally:
                        self._broken = broken
                else:
                    self._open_feed(feed, link, self.channel.deadline())
