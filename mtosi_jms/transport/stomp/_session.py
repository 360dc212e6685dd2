"""Sessions over STOMP: several share the one connection, each with its own book of what is not acknowledged.

STOMP returns nothing to a queue but by ending a subscription, so `recover` and `rollback` deliver again from here what
their consumers still have. A transaction is sent as a whole, at `commit`: before, a lost connection undoes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.jms import Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport._arguments import check_subscription, selector_of
from mtosi_jms.transport._descriptor import Capability
from mtosi_jms.transport._listening import ListenerPump, SessionUse
from mtosi_jms.transport.base import AckMode, Consumer, Delivery, Interruption, Session
from mtosi_jms.transport.completion import CompletionListener, Completions
from mtosi_jms.transport.stomp._consumer import StompConsumer, StompDelivery
from mtosi_jms.transport.stomp._sending import Sender
from mtosi_jms.transport.stomp._subscription import Entry
from mtosi_jms.transport.stomp._temporary import T
from mtosi_jms.transport.stomp._transaction import Begun
from mtosi_jms.transport.stomp._unsettled import Unsettled

if TYPE_CHECKING:
    from mtosi_jms.transport.stomp._connection import StompConnection

_LAZY: Final = 16
"""Messages that a DUPS_OK session hands out before it acknowledges them, all together."""


class StompSession(Session):
    """A session over STOMP.

    Attributes:
        connection: what it belongs to.
        use: entered by every call but `close`.
        pump: serves its listeners.
        blocked: whether a thread waits in it for a message.
        unsettled: what was handed out and is not acknowledged.
        spent: messages that expired here, to be acknowledged.
    """

    def __init__(self, connection: StompConnection, ack_mode: AckMode, *, transacted: bool) -> None:
        self.connection = connection
        self.ack_mode = ack_mode
        self.transacted = transacted
        self.use = SessionUse(self._is_elsewhere)
        self.pump = ListenerPump(self, self.use, connection.lock, f"listeners-{connection.id}")
        self.completions = Completions(connection.send_rules, connection.id)
        self.blocked = False
        self.spent: list[Entry] = []
        self._closed = False
        self._consumers: dict[StompConsumer, None] = {}
        self.unsettled = Unsettled()
        self._listened: Entry | None = None
        self._begun = Begun(connection.transaction_on)
        self._sender = Sender(connection, self.completions, transacted=transacted)

    def send(
        self,
        destination: Destination,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        timeout: float | None = None,
    ) -> JmsMessage:
        """See `Session.send`. What is PERSISTENT, or goes to a temporary destination, is confirmed by the broker.

        Raises:
            ConfigError: the message holds what STOMP cannot carry.
            UnknownOutcomeError: the connection was lost before the broker confirmed.
            ResourceLimitError: the broker refuses for want of room.
        """
        self.completions.check(message)
        with self.use:
            with self.connection.lock:
                self.check_open()
            return self._sender.send(destination, message, listener, timeout)

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool = False) -> JmsMessage | None:
        """See `Session.send_soon`. What is lost with its connection, and was not written, goes out on the next one."""
        self.completions.check(message)
        with self.use:
            with self.connection.lock:
                self.check_open()
            return self._sender.send_soon(destination, message, can_wait=can_wait)

    def consumer(
        self,
        destination: Destination,
        selector: str | None = None,
        *,
        durable: str | None = None,
        no_local: bool = False,
    ) -> StompConsumer:
        """See `Session.consumer`."""
        check_subscription(destination, durable, no_local)
        text, parsed = selector_of(selector)
        with self.use:
            with self.connection.lock:
                self.check_open()
                self.connection.check_reader(destination)
                if self.transacted and Capability.TRANSACTED_RECEIVE not in self.connection.capabilities:
                    raise ConfigError(
                        f"{self.connection.metadata.provider} acknowledges outside of STOMP's transactions: receive in "
                        "a session that is not transacted"
                    )
                if durable is not None:
                    self.connection.claim(durable)
                adopted = self._adopt(destination, text)
            consumer = StompConsumer(self, destination, text, parsed, durable=durable, no_local=no_local)
            if adopted is None:
                self.connection.subscribe(consumer)
            with self.connection.lock:
                closed = self._closed
                if not closed and adopted is not None:
                    self.unsettled.hand_over(adopted, consumer)
                    self._consumers.pop(adopted)
                if not closed:
                    self._consumers[consumer] = None
            if closed:  # meanwhile, by another thread, which has not seen this consumer
                consumer.closed = True
                self.connection.unsubscribe(consumer, self.connection.goodbye())
                self.check_open()
            return consumer

    def unsubscribe(self, durable: str) -> None:
        """See `Session.unsubscribe`; Artemis does not tell a name that it does not know."""
        with self.use:
            with self.connection.lock:
                self.check_open()
                self.connection.claim(durable)
            self.connection.transmit(self.connection.unsubscribing(durable), confirmed=True)

    def browse(self, queue: Destination, selector: str | None = None) -> list[JmsMessage]:
        """See `Session.browse`; ActiveMQ shows what was handed out and not acknowledged as well."""
        if queue.is_topic:
            raise ConfigError(f"{queue}: a queue can be browsed, a topic cannot")
        _, parsed = selector_of(selector)
        with self.use:
            with self.connection.lock:
                self.check_open()
                self.connection.check_reader(queue)
            return self.connection.browse(queue, parsed)

    def temporary_queue(self) -> TemporaryQueue:
        """See `Session.temporary_queue`."""
        return self._temporary(TemporaryQueue)

    def temporary_topic(self) -> TemporaryTopic:
        """See `Session.temporary_topic`."""
        return self._temporary(TemporaryTopic)

    def recover(self) -> None:
        """See `Session.recover`."""
        with self.use:
            with self.connection.lock:
                self.check_open()
                if self.transacted:
                    raise IllegalStateError("a transacted session is rolled back, not recovered")
            self._return(list(self.unsettled))

    def commit(self) -> None:
        """See `Session.commit`.

        Raises:
            TransportError: the connection was lost; all is rolled back.
            UnknownOutcomeError: it was lost after everything had been sent, and before the broker confirmed.
        """
        with self.use:
            self.completions.await_told()
            with self.connection.lock:
                self._check_transacted()
            lost = not self._begun.is_open  # what was acknowledged in it, then, by a commit that was interrupted
            if any(entry.comes_again or (lost and entry.told) for entry in list(self.unsettled)):
                self._roll_back()
                raise TransportError(
                    "the connection was lost since messages of the transaction were received: it is rolled back, and "
                    "they will be delivered again"
                )
            sends = self._sender.take()
            begun = self._begun.take()
            entries = [entry for entry in list(self.unsettled) if not entry.is_stale and not entry.told]
            if begun is None and not sends and not entries:
                return
            try:
                self.connection.transact(begun, [frame for frame, _ in sends], entries)
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

    def rollback(self) -> None:
        """See `Session.rollback`."""
        with self.use:
            self.completions.await_told()
            with self.connection.lock:
                self._check_transacted()
            self._roll_back()

    def close(self) -> None:
        """Closes its consumers; what was not acknowledged or committed is delivered again, elsewhere."""
        self.completions.check_thread()
        with self.connection.lock:
            self.begin_end()
        self.completions.await_told()
        with self.connection.lock:
            if self._closed:
                return
            self.pump.await_idle()
            self.shut()
        self.leave_all(self.connection.goodbye())

    def acknowledge(self, entry: Entry) -> None:
        """See `Delivery.acknowledge`."""
        if self.transacted or self.ack_mode is not AckMode.CLIENT or entry.settled:
            return
        with self.use:
            with self.connection.lock:
                self.check_open()
                if entry not in self.unsettled:
                    raise IllegalStateError("the session was recovered: the message will be delivered again")
            if entry.comes_again:
                self._forget([entry])
                raise TransportError("the connection was lost since: the message will be delivered again")
            self._acknowledge([entry])

    def settle(self, delivery: Delivery, *, failed: bool) -> None:
        """See `listening.Source.settle`."""
        with self.connection.lock:
            entry, self._listened = self._listened, None
            handled = entry in self.unsettled
        try:
            if entry is not None and handled:
                self._settle(entry, failed=failed)
        finally:
            if self._closed:  # by the listener, which left the rest of it to be done here
                deadline = self.connection.goodbye()
                self.leave_all(deadline)
                self.connection.finish(deadline)

    def _settle(self, entry: Entry, *, failed: bool) -> None:
        if failed and not self.transacted:
            self._return([entry])
        elif not self.transacted and (
            self.ack_mode is AckMode.AUTO or (self._closed and self.ack_mode is AckMode.DUPS_OK)
        ):
            self._acknowledge([entry])
        elif self.accept(entry):
            self.make_room(entry.subscription.consumer)

    def accept(self, entry: Entry) -> bool:
        """Does what a message that was handed out asks for; the lock is not held.

        Returns:
            False where the message is not to be handed out after all: the broker will deliver it again.
        """
        if self.transacted or self.ack_mode is AckMode.CLIENT:
            return True
        if self.ack_mode is AckMode.DUPS_OK:
            if len(self.unsettled) >= _LAZY:
                self._acknowledge([one for one in list(self.unsettled) if one is not self._listened])
        else:
            try:
                self._acknowledge([entry])
            except TransportError:
                self._forget([entry])
                return False
        return True

    def tell_spent(self) -> None:
        """Acknowledges what has expired here, so that the broker sends other messages in its place."""
        spent, self.spent = self.spent, []
        with suppress(TransportError):  # then it comes again, and expires again
            self._tell(spent)

    def make_room(self, consumer: StompConsumer) -> None:
        """Has the broker send more, where as many messages are held unacknowledged as may be on the way."""
        if self.transacted:
            with self.connection.lock:
                untold = [one for one in self.unsettled if not one.told]
                held = [one for one in untold if not one.subscription.consumer.destination.is_topic]
            if len(held) >= self.connection.options.prefetch:
                self._begun.acknowledge(held)
        self.connection.widen(consumer)

    def leave(self, consumer: StompConsumer) -> None:
        """Ends the subscriptions of a closed consumer, unless messages of it are still to be settled."""
        deadline = self.connection.goodbye()
        self._settle_lazily(deadline)
        if not consumer.held:
            self.connection.unsubscribe(consumer, deadline)
            with self.connection.lock:
                self._consumers.pop(consumer, None)

    def leave_all(self, deadline: float) -> None:
        """Ends all subscriptions of a closed session; what a listener holds, that acknowledges as it returns, stays."""
        self._settle_lazily(deadline)
        self._begun.end(deadline)
        with self.connection.lock:
            returned = [one for one in self.unsettled if one is not self._listened]
            self.connection.note_returned(returned)
        for consumer in list(self._consumers):
            if self._listened is None or self._listened.subscription.consumer is not consumer:
                self.connection.unsubscribe(consumer, deadline)
                with self.connection.lock:
                    self._consumers.pop(consumer, None)
        with self.connection.lock:
            for entry in returned:
                self.unsettled.strike(entry)
            if not self._consumers:
                self.connection.forget(self)

    @property
    def _ends_lazily(self) -> bool:
        return self._closed and self.ack_mode is AckMode.DUPS_OK

    def _is_elsewhere(self) -> bool:
        return bool(self.pump) and self.connection.started and not self.pump.in_thread()

    # What follows holds the lock already.

    def poll(self) -> tuple[Consumer, Delivery | Interruption] | None:
        """See `listening.Source.poll`."""
        for consumer in list(self._consumers):
            if consumer in self.pump and (found := consumer.take()) is not None:
                self._listened = found.entry if isinstance(found, StompDelivery) else None
                self._consumers[consumer] = self._consumers.pop(consumer)  # the others have their turn first
                return consumer, found
        self.connection.check_alive()
        return None

    def begin_end(self) -> None:
        """It is being closed: no listener gets anything more."""
        self.completions.begin_close()
        self.pump.end()

    def shut(self) -> None:
        """Closes the session for those who use it."""
        self._closed = True
        self._sender.take()
        for consumer in self._consumers:
            consumer.shut()

    def check_open(self) -> None:
        """Raises IllegalStateError where the session is closed."""
        if self._closed:
            raise IllegalStateError("the session is closed")

    def check_receive(self) -> None:
        """Raises IllegalStateError where messages go to listeners."""
        if self.pump:
            raise IllegalStateError("the session has a listener: its messages are handed to that, not received")

    def hand_out(self, entry: Entry, consumer: StompConsumer) -> StompDelivery:
        """A delivery of a message; kept until it is settled."""
        self.unsettled.enter(entry, consumer)
        return StompDelivery(self, entry)

    def wake_readers(self) -> None:
        """The connection was started or stopped, or has failed."""
        for consumer in self._consumers:
            consumer.signal()

    def _check_transacted(self) -> None:
        self.check_open()
        if not self.transacted:
            raise IllegalStateError("the session is not transacted")

    def _adopt(self, destination: Destination, text: str | None) -> StompConsumer | None:
        """A closed consumer that keeps its subscription, and would keep messages from a new one like it."""
        if destination.is_topic:
            return None
        closed = (one for one in self._consumers if one.closed)
        return next((one for one in closed if (one.destination, one.selector) == (destination, text)), None)

    # What follows does not hold the lock: it talks to the broker.

    def _temporary(self, kind: type[T]) -> T:
        with self.use:
            with self.connection.lock:
                self.check_open()
            return self.connection.make_temporary(kind)

    def _acknowledge(self, entries: Iterable[Entry], deadline: float | None = None) -> None:
        told = list(entries)
        self._tell(told, deadline)
        self._settled(told)

    def _tell(self, entries: Iterable[Entry], deadline: float | None = None) -> None:
        self.connection.acknowledge([entry for entry in entries if not entry.is_stale], deadline)

    def _settle_lazily(self, deadline: float) -> None:
        """Acknowledges at the end what DUPS_OK has left; nobody is there to be told that it failed: then it comes
        again."""
        if self.ack_mode is not AckMode.DUPS_OK or self.transacted:
            return
        entries = [one for one in list(self.unsettled) if one is not self._listened]
        try:
            self._acknowledge(entries, deadline)
        except TransportError:
            self._forget(entries)

    def _settled(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            entry.settled = True
        self._forget(entries)

    def _forget(self, entries: Iterable[Entry]) -> None:
        """Strikes messages off, and ends the subscriptions that were kept for them alone."""
        left: dict[StompConsumer, None] = {}
        with self.connection.lock:
            for entry in entries:
                consumer = self.unsettled.strike(entry)
                if consumer is not None:
                    left[consumer] = None
        for consumer in left:
            if consumer.closed and not consumer.held:
                self.leave(consumer)

    def _roll_back(self) -> None:
        self._sender.take()
        self._begun.abort(time.monotonic() + self.connection.options.send_timeout)
        told = dict.fromkeys(one.subscription.consumer for one in list(self.unsettled) if one.told)
        if told:  # the broker takes no other acknowledgement of these: it has to deliver them again
            with self.connection.lock:
                self.connection.note_returned(one for one in self.unsettled if one.subscription.consumer in told)
            self.connection.renew(told)
        self._return(list(self.unsettled))

    def _return(self, entries: list[Entry]) -> None:
        """Has messages delivered again: by their consumer, or by the broker where that is closed."""
        closed: dict[StompConsumer, None] = {}
        with self.connection.lock:
            for entry in reversed(entries):
                consumer = self.unsettled.strike(entry)
                if consumer is None:
                    continue
                self.connection.note_returned([entry])  # where it waits here, the broker may still have it back
                if consumer.closed:
                    closed[consumer] = None
                elif not entry.comes_again:
                    again = Entry(entry.subscription, entry.link, entry.ack, entry.message.again())
                    consumer.buffer.appendleft(again)
                    consumer.signal()
        for consumer in closed:
            if not consumer.held:
                self.leave(consumer)
