"""Sessions over STOMP: several share the one connection, each with its own book of what is not acknowledged.

STOMP returns nothing to a queue but by ending a subscription, so `recover` and `rollback` deliver again from here what
their consumers still have. A transaction is sent as a whole, at `commit`: until then nothing has left this process, and
a lost connection has nothing to undo.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mtosi_jms.errors import ConfigError, IllegalStateError, MtosiError, TransportError, UnknownOutcomeError
from mtosi_jms.jms.destinations import Destination, TemporaryQueue, TemporaryTopic
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.transport.arguments import check_subscription, selector_of
from mtosi_jms.transport.base import AckMode, Consumer, Delivery, Session
from mtosi_jms.transport.descriptor import Capability
from mtosi_jms.transport.listening import ListenerPump, SessionUse
from mtosi_jms.transport.stomp.consumer import StompConsumer, StompDelivery
from mtosi_jms.transport.stomp.link import Frame
from mtosi_jms.transport.stomp.subscription import Entry

if TYPE_CHECKING:
    from mtosi_jms.transport.stomp.connection import StompConnection

_LAZY: Final = 16
"""Messages that a DUPS_OK session hands out before it acknowledges them, all together."""


class StompSession(Session):
    """A session over STOMP.

    Attributes:
        connection: what it belongs to.
        use: entered by every call but `close`.
        pump: serves its listeners.
        blocked: whether a thread waits in it for a message.
        spent: messages that expired here and are to be acknowledged.
    """

    def __init__(self, connection: StompConnection, ack_mode: AckMode, *, transacted: bool) -> None:
        self.connection = connection
        self.ack_mode = ack_mode
        self.transacted = transacted
        self.use = SessionUse(self._is_elsewhere)
        self.pump = ListenerPump(self, self.use, connection.lock, f"listeners-{connection.id}")
        self.blocked = False
        self.spent: list[Entry] = []
        self._closed = False
        self._consumers: dict[StompConsumer, None] = {}
        self._unsettled: dict[Entry, StompConsumer] = {}
        self._listened: Entry | None = None
        self._sends: list[Frame] = []

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """See `Session.send`. What is PERSISTENT, or goes to a temporary destination, is confirmed by the broker.

        Raises:
            ConfigError: the message holds what STOMP cannot carry.
            UnknownOutcomeError: the connection was lost before the broker confirmed.
            ResourceLimitError: the broker refuses for want of room.
        """
        with self.use:
            with self.connection.lock:
                self.check_open()
            sent, frame = self.connection.prepare(destination, message)
            if self.transacted:
                self._sends.append(frame)
            else:
                confirmed = sent.delivery_mode is DeliveryMode.PERSISTENT or destination.is_temporary
                self.connection.transmit(frame, confirmed=confirmed)
            return sent

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
                if adopted is not None:
                    self._hand_over(adopted, consumer)
                self._consumers[consumer] = None
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
        with self.use:
            with self.connection.lock:
                self.check_open()
            return self.connection.make_temporary(TemporaryQueue)

    def temporary_topic(self) -> TemporaryTopic:
        """See `Session.temporary_topic`."""
        with self.use:
            with self.connection.lock:
                self.check_open()
            return self.connection.make_temporary(TemporaryTopic)

    def recover(self) -> None:
        """See `Session.recover`."""
        with self.use:
            with self.connection.lock:
                self.check_open()
                if self.transacted:
                    raise IllegalStateError("a transacted session is rolled back, not recovered")
            self._return(list(self._unsettled))

    def commit(self) -> None:
        """See `Session.commit`.

        Raises:
            TransportError: the connection was lost; all is rolled back.
            UnknownOutcomeError: it was lost after everything had been sent, and before the broker confirmed.
        """
        with self.use:
            with self.connection.lock:
                self._check_transacted()
            if any(entry.comes_again for entry in self._unsettled):
                self._roll_back()
                raise TransportError(
                    "the connection was lost since messages of the transaction were received: it is rolled back, and "
                    "they will be delivered again"
                )
            sends, self._sends = self._sends, []
            entries = [entry for entry in self._unsettled if not entry.is_stale]
            if not sends and not entries:
                return
            try:
                self.connection.transact(sends, entries)
            except UnknownOutcomeError:
                self._forget(list(self._unsettled))
                raise
            except MtosiError:
                self._roll_back()
                raise
            self._settled(list(self._unsettled))

    def rollback(self) -> None:
        """See `Session.rollback`."""
        with self.use:
            with self.connection.lock:
                self._check_transacted()
            self._roll_back()

    def close(self) -> None:
        """Closes its consumers; what was not acknowledged or committed is delivered again, elsewhere."""
        with self.connection.lock:
            if self._closed:
                return
            self.begin_end()
            self.pump.await_idle()
            self.shut()
        self.leave_all()

    def acknowledge(self, entry: Entry) -> None:
        """See `Delivery.acknowledge`."""
        if self.transacted or self.ack_mode is not AckMode.CLIENT or entry.settled:
            return
        with self.use:
            with self.connection.lock:
                self.check_open()
                if entry not in self._unsettled:
                    raise IllegalStateError("the session was recovered: the message will be delivered again")
            if entry.comes_again:
                self._forget([entry])
                raise TransportError("the connection was lost since: the message will be delivered again")
            self._acknowledge([entry])

    def settle(self, delivery: Delivery, *, failed: bool) -> None:
        """See `listening.Source.settle`."""
        with self.connection.lock:
            entry, self._listened = self._listened, None
            if entry is None or entry not in self._unsettled:
                return
        if failed and not self.transacted:
            self._return([entry])
        elif not self.transacted and (self.ack_mode is AckMode.AUTO or self._closed_lazily()):
            self._acknowledge([entry])
        elif self.accept(entry):
            self.connection.widen(entry.subscription.consumer)
        if self._closed:
            self.leave_all()
            self.connection.finish()

    def accept(self, entry: Entry) -> bool:
        """Does what a message that was handed out asks for; the lock is not held.

        Returns:
            False where the message is not to be handed out after all: the broker will deliver it again.
        """
        if self.spent:
            spent, self.spent = self.spent, []
            self._tell(spent)
        if self.transacted or self.ack_mode is AckMode.CLIENT:
            return True
        if self.ack_mode is AckMode.DUPS_OK:
            if len(self._unsettled) >= _LAZY:
                self._acknowledge([one for one in self._unsettled if one is not self._listened])
        else:
            try:
                self._acknowledge([entry])
            except TransportError:
                self._forget([entry])
                return False
        return True

    def leave(self, consumer: StompConsumer) -> None:
        """Ends the subscriptions of a closed consumer, unless messages of it are still to be settled."""
        if self.ack_mode is AckMode.DUPS_OK and not self.transacted:
            self._tell_quietly([one for one in self._unsettled if one is not self._listened])
        if not consumer.held:
            self.connection.unsubscribe(consumer)
            with self.connection.lock:
                self._consumers.pop(consumer, None)

    def leave_all(self) -> None:
        """Ends all subscriptions of a closed session; what a listener holds, that acknowledges as it returns, stays."""
        if self.ack_mode is AckMode.DUPS_OK and not self.transacted:
            self._tell_quietly([one for one in self._unsettled if one is not self._listened])
        with self.connection.lock:
            returned = [one for one in self._unsettled if one is not self._listened]
            self.connection.note_returned(returned)
        for consumer in list(self._consumers):
            if self._listened is None or self._listened.subscription.consumer is not consumer:
                self.connection.unsubscribe(consumer)
                with self.connection.lock:
                    self._consumers.pop(consumer, None)
        with self.connection.lock:
            for entry in returned:
                self._unsettled.pop(entry).held -= 1
            if not self._consumers:
                self.connection.forget(self)

    def _is_elsewhere(self) -> bool:
        return bool(self.pump) and self.connection.started and not self.pump.in_thread()

    def _closed_lazily(self) -> bool:
        return self._closed and self.ack_mode is AckMode.DUPS_OK

    # What follows holds the lock already.

    def poll(self) -> tuple[Consumer, Delivery] | None:
        """See `listening.Source.poll`."""
        for consumer in list(self._consumers):
            if consumer in self.pump and (delivery := consumer.take()) is not None:
                self._listened = delivery.entry
                self._consumers[consumer] = self._consumers.pop(consumer)  # the others have their turn first
                return consumer, delivery
        self.connection.check_alive()
        return None

    def begin_end(self) -> None:
        """It is being closed: no listener gets anything more."""
        self.pump.end()

    def shut(self) -> None:
        """Closes the session for those who use it."""
        self._closed = True
        self._sends.clear()
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
        self._unsettled[entry] = consumer
        consumer.held += 1
        return StompDelivery(self, entry)

    def unsettled(self) -> Iterable[Entry]:
        """What was handed out and is not settled."""
        return self._unsettled

    def wake_readers(self) -> None:
        """The connection was started or stopped, or has failed."""
        for consumer in self._consumers:
            consumer.signal()

    def await_listener(self) -> None:
        """Waits until a listener that is running has returned."""
        self.pump.await_idle()

    def _check_transacted(self) -> None:
        self.check_open()
        if not self.transacted:
            raise IllegalStateError("the session is not transacted")

    def _adopt(self, destination: Destination, text: str | None) -> StompConsumer | None:
        """A closed consumer that keeps its subscription, and would keep messages from a new one like it."""
        if destination.is_topic:
            return None
        alike = (
            one for one in self._consumers if one.closed and (one.destination, one.selector) == (destination, text)
        )
        return next(alike, None)

    def _hand_over(self, closed: StompConsumer, new: StompConsumer) -> None:
        for subscription in closed.subscriptions:
            subscription.consumer = new
        new.subscriptions, closed.subscriptions = closed.subscriptions, []
        new.buffer, closed.buffer = closed.buffer, new.buffer
        new.held, closed.held = closed.held, 0
        for entry, consumer in self._unsettled.items():
            if consumer is closed:
                self._unsettled[entry] = new
        self._consumers.pop(closed)

    # What follows does not hold the lock: it talks to the broker.

    def _acknowledge(self, entries: Iterable[Entry]) -> None:
        told = list(entries)
        self._tell(told)
        self._settled(told)

    def _tell(self, entries: Iterable[Entry]) -> None:
        self.connection.acknowledge([entry for entry in entries if not entry.is_stale])

    def _tell_quietly(self, entries: list[Entry]) -> None:
        """Acknowledges at the end, when nobody is there to be told that it failed: then they come again."""
        try:
            self._acknowledge(entries)
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
                consumer = self._unsettled.pop(entry, None)
                if consumer is not None:
                    consumer.held -= 1
                    left[consumer] = None
        for consumer in left:
            if consumer.closed and not consumer.held:
                self.leave(consumer)

    def _roll_back(self) -> None:
        self._sends.clear()
        self._return(list(self._unsettled))

    def _return(self, entries: list[Entry]) -> None:
        """Has messages delivered again: by their consumer, or by the broker where that is closed."""
        closed: dict[StompConsumer, None] = {}
        with self.connection.lock:
            for entry in reversed(entries):
                consumer = self._unsettled.pop(entry)
                consumer.held -= 1
                if consumer.closed:
                    self.connection.note_returned([entry])
                    closed[consumer] = None
                elif not entry.comes_again:
                    again = Entry(entry.subscription, entry.link, entry.ack, entry.message.again())
                    consumer.buffer.appendleft(again)
                    consumer.signal()
        for consumer in closed:
            if not consumer.held:
                self.leave(consumer)
