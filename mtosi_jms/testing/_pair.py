"""Both ends joined in memory, on a provider that nobody else knows: of an exchange, and of notifications."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeAlias, TypeVar

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import DEFAULT_PROFILE, from_jms
from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, IllegalStateError, ReplyTimeoutError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.jms import Destination, JmsMessage, NamingContext
from mtosi_jms.notifications import Publisher, Subscriber, event_name
from mtosi_jms.service import Service, SupplierBase
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.testing._clock import Timer
from mtosi_jms.testing._faults import Late
from mtosi_jms.testing._interception import InterceptedConnection, Interceptor
from mtosi_jms.transport import AckMode, Connection
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

REQUESTOR: Final = "jms/RequestorOS"
"""The requestor's logical name, whose destination the replies go to."""
SUPPLIER: Final = "jms/SupplierOS"
"""The name of the supplier's destination."""
NAMES: Final[Mapping[str, str]] = {
    REQUESTOR: "queue:REQUESTOR.OS",
    SUPPLIER: "queue:SUPPLIER.OS",
    "jms/FailureOS": "queue:FAILURE.OS",
}
"""The naming context of a pair; `jms/FailureOS` is there for failureReplytoURI."""
PUBLISHER: Final = "jms/EmsOS"
"""The publisher's logical name."""
TOPICS: Final[Mapping[TopicCategory, str]] = {category: f"jms/{category.value}Topic" for category in TopicCategory}
"""The name of each category's topic."""
TOPIC_NAMES: Final[Mapping[str, str]] = {
    f"jms/{category.value}Topic": f"topic:{category.value.upper()}" for category in TopicCategory
}
"""The naming context of notifications."""
Outgoing: TypeAlias = JmsMessage | Late[JmsMessage]
"""A message to be sent, now or later."""
Tamper: TypeAlias = Callable[[list[JmsMessage]], Iterable[Outgoing]]
"""Makes of the messages that would be delivered those that are: replies to a request, or notifications."""
S = TypeVar("S", bound=Service)


class Recorder:
    """Stands in for a session that sends: it keeps the messages. `sent`: the messages, each with its destination."""

    def __init__(self) -> None:
        self.sent: list[JmsMessage] = []

    def send(self, destination: Destination, message: JmsMessage) -> JmsMessage:
        """Keep a message with its destination."""
        found = dataclasses.replace(message, destination=destination)
        self.sent.append(found)
        return found

    def send_soon(self, destination: Destination, message: JmsMessage, *, can_wait: bool = False) -> JmsMessage:
        """The same."""
        return self.send(destination, message)

    def send_async(self, destination: Destination, message: JmsMessage) -> Future[JmsMessage]:
        """The same, with the result in a future that is done."""
        future: Future[JmsMessage] = Future()
        future.set_result(self.send(destination, message))
        return future


class _Sender:
    """Sends messages to their own destinations, those that are `Late` by a timer; threads may share it."""

    def __init__(self, connection: Connection, timer: Timer | None = None) -> None:
        self._session = connection.session(transacted=True)
        self._timer = timer
        self._lock = threading.Lock()
        self._closed = False

    def send(self, messages: Iterable[Outgoing]) -> None:
        """Send messages in this order and all at once; those that are late when their time has come. Raises
        IllegalStateError: a message without destination, or closed; ConfigError: a late message, and no timer."""
        given = list(messages)
        later = [one for one in given if isinstance(one, Late)]
        now = [one for one in given if not isinstance(one, Late)]
        if any(message.destination is None for message in [*now, *(late.message for late in later)]):
            raise IllegalStateError("a message without destination: messages made by hand need one")
        # The late ones first: whoever receives one of the others can rely on their being scheduled.
        for late in later:
            if self._timer is None:
                raise ConfigError("late messages need a timer: give a ManualClock as timer=")
            self._timer.call_later(late.seconds, partial(self._deliver, late.message))
        with self._lock:
            self._send(now)

    def _deliver(self, message: JmsMessage) -> None:
        with self._lock:
            if not self._closed:
                self._send([message])

    def _send(self, messages: list[JmsMessage]) -> None:
        for message in messages:
            if message.destination is not None:
                self._session.send(message.destination, message)
        self._session.commit()

    def close(self) -> None:
        """End it; messages that are late then are never sent."""
        with self._lock:
            self._closed = True
        self._session.close()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that a scripted supplier took. `connection`: that it came by. `destination`: that it was sent to."""

    message: JmsMessage
    connection: Connection
    destination: Destination

    @property
    def envelope(self) -> Envelope:
        """The request's envelope, read anew each time."""
        return from_jms(self.message)

    def replies(
        self, services: Sequence[SupplierBase], *, profile: BindingProfile = DEFAULT_PROFILE, eager: bool = False
    ) -> list[JmsMessage]:
        """The messages that a `Supplier` with these services would send, each with its destination; none is sent.
        `services`: instances of generated supplier classes. `eager`: as for `Supplier`."""
        recorder = Recorder()
        supplier = Supplier(self.connection, self.destination, services, profile=profile, eager=eager)
        supplier.answer(self.message, recorder)
        return recorder.sent

    def reply(self, body: bytes) -> JmsMessage:
        """A message with these bytes, addressed to whoever asked, and JMSCorrelationID set as it should be."""
        return JmsMessage(body=body, destination=self.message.reply_to, correlation_id=self.message.message_id)


Script: TypeAlias = Callable[[Asked], Iterable[Outgoing]]
"""Says for a request which messages to answer with, in which order."""


class ScriptedSupplier(Closeable):
    """Takes requests from a destination and sends the messages that a test wants, nothing else.

    Either by hand, in the thread of the test: `take` a request, `send` messages. Or by a script in a thread of its own:
    `start`. A message goes to its own `destination`. Requests count as done with as soon as they are taken.

    Args:
        connection: an open connection, which is started and not closed.
        destination: where requests come in.
        timer: delivers the messages that are `Late`.
    """

    def __init__(self, connection: Connection, destination: str | Destination, *, timer: Timer | None = None) -> None:
        self.connection = connection
        self.destination = connection.names.lookup(destination)
        self._session = connection.session(AckMode.AUTO)
        self._sender = _Sender(connection, timer)
        self._consumer = self._session.consumer(self.destination)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        connection.start()

    def take(self, timeout: float = 10.0) -> Asked:
        """The next request, waited for. `timeout`: seconds. Raises ReplyTimeoutError: none came; IllegalStateError:
        closed, or a script is running."""
        delivery = self._consumer.receive(timeout)
        if delivery is None:
            raise ReplyTimeoutError(f"no request came to {self.destination} within {timeout:g} s")
        return Asked(delivery.message, self.connection, self.destination)

    def send(self, messages: Iterable[Outgoing]) -> None:
        """Send messages in this order, each to its own destination, and all at once: no clock runs out in between.
        Raises IllegalStateError: a message without destination, or closed; ConfigError: a late message, and no
        timer."""
        self._sender.send(messages)

    def start(self, script: Script) -> Self:
        """Answer every request by a script, in a background thread until `close`."""
        self._thread = threading.Thread(target=self._run, args=(script,), name="scripted-supplier", daemon=True)
        self._thread.start()
        return self

    def _run(self, script: Script) -> None:
        try:
            while (delivery := self._consumer.receive()) is not None:
                self.send(script(Asked(delivery.message, self.connection, self.destination)))
        except IllegalStateError:
            return
        except BaseException as error:  # noqa: BLE001 - close raises it, where the test sees it
            self._failure = error

    def close(self) -> None:
        """End it. Raises Exception: what the script raised."""
        self._session.close()
        self._sender.close()
        if self._thread is not None:
            self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


@dataclass(frozen=True, slots=True)
class Pair:
    """Both ends of an exchange.

    Attributes:
        provider: behind the connection; `depth` and `held` tell what is in it.
        requestor: on the queue of `REQUESTOR`.
        supplier: on the queue of `SUPPLIER`; a `ScriptedSupplier` where there were no services, or tampering.
    """

    connection: Connection
    provider: MemoryProvider
    requestor: Requestor
    supplier: Supplier | ScriptedSupplier

    @property
    def destination(self) -> Destination:
        """Where the supplier listens."""
        return self.supplier.destination

    @property
    def scripted(self) -> ScriptedSupplier:
        """The supplier of a pair without services. Raises ConfigError: it is a real one."""
        if not isinstance(self.supplier, ScriptedSupplier):
            raise ConfigError("this pair has a Supplier; make it without services, or with tamper")
        return self.supplier

    def stub(self, service: type[S]) -> S:
        """A service stub whose requests the supplier gets."""
        return service(self.requestor, SUPPLIER)


def connect_privately(names: Mapping[str, str] = NAMES, **options: Any) -> MemoryConnection:
    """A connection to an embedded provider of its own. `names`: the naming context. `options`: of `MemoryProvider`,
    such as `clock`."""
    return MemoryConnection(MemoryProvider("private", **options), NamingContext(names))


@contextmanager
def exchange(
    services: Sequence[SupplierBase] = (),
    *,
    tamper: Tamper | None = None,
    timer: Timer | None = None,
    names: Mapping[str, str] = NAMES,
    profile: BindingProfile = DEFAULT_PROFILE,
    provider: Mapping[str, Any] | None = None,
    supplier: Mapping[str, Any] | None = None,
    threads: int = 1,
    intercept: Interceptor | None = None,
    intercept_supplier: Interceptor | None = None,
    **requestor: Any,
) -> Iterator[Pair]:
    """A requestor and a supplier joined in memory, ended and cleared away with the block.

    Args:
        services: instances of generated supplier classes; none: a `ScriptedSupplier` that the test drives.
        tamper: gets the replies that the services make to a request and returns those that are delivered.
        timer: delivers replies that `tamper`, or the test, made late; usually a `ManualClock`.
        names: the naming context; it has `REQUESTOR` and `SUPPLIER`.
        profile: the switches, at both ends.
        provider: options of the embedded provider, such as `clock`.
        supplier: further arguments of `Supplier`.
        threads: how many threads the supplier answers with.
        intercept: gets each step of the requestor's sessions (`InterceptedConnection`).
        intercept_supplier: the same for the supplier.
        requestor: further arguments of `Requestor`.
    """
    with ExitStack() as stack:
        embedded = stack.enter_context(connect_privately(names, **provider or {}))
        connection = _intercepted(embedded, intercept)
        other = _intercepted(
            stack.enter_context(MemoryConnection(embedded.provider, embedded.names)), intercept_supplier
        )
        serving: Supplier | ScriptedSupplier
        if services and tamper is None:
            serving = Supplier(other, SUPPLIER, services, **{"profile": profile, **(supplier or {})})
            stack.callback(serving.stop)
            serving.start(threads)
        else:
            serving = stack.enter_context(ScriptedSupplier(other, SUPPLIER, timer=timer))
            if tamper is not None:
                serving.start(lambda asked: tamper(asked.replies(services, profile=profile)))
        client = Requestor(connection, **{"sender_uri": REQUESTOR, "profile": profile, **requestor})
        yield Pair(connection, embedded.provider, stack.enter_context(client), serving)


@dataclass(frozen=True, slots=True)
class Notifications:
    """A publisher and a subscriber to each category.

    Attributes:
        publisher: of the code under test, or of the test; what it publishes goes straight to the topics.
        subscribers: by category; each ends when nothing more has arrived, and may go on later.
        generic: where events of no category of their own go.
    """

    connection: Connection
    provider: MemoryProvider
    publisher: Publisher
    subscribers: Mapping[TopicCategory, Subscriber]
    profile: BindingProfile
    generic: TopicCategory
    _sender: _Sender

    def received(self, category: TopicCategory | str) -> list[Any]:
        """The events that have arrived on the topic of a category since it was last asked for."""
        return [received.event for received in self.subscribers[TopicCategory(category)]]

    def messages(self, events: Iterable[CommonEventInformationType]) -> list[JmsMessage]:
        """The messages that a publisher would send, each with its destination; none is sent. Raises ConfigError,
        EncodeError: as for `Publisher.publish`."""
        messages = []
        for event in events:
            category = self.profile.topic_category(event_name(event)) or self.generic
            topic = self.publisher.topic_of(event, category)
            messages.append(dataclasses.replace(self.publisher.message_of(topic, [event]), destination=topic))
        return messages

    def publish(self, events: Iterable[CommonEventInformationType], *, tamper: Tamper | None = None) -> None:
        """Publish events, in this order and all at once. `tamper`: gets the messages and returns those that are
        delivered."""
        messages = self.messages(events)
        self.send(messages if tamper is None else tamper(messages))

    def send(self, messages: Iterable[Outgoing]) -> None:
        """Send messages in this order, each to its own destination, and all at once. Raises IllegalStateError: a
        message without destination, or the pair has ended; ConfigError: a late message, and no timer."""
        self._sender.send(messages)


@contextmanager
def notifications(
    *,
    timer: Timer | None = None,
    profile: BindingProfile = DEFAULT_PROFILE,
    generic: TopicCategory = TopicCategory.FAULT,
    provider: Mapping[str, Any] | None = None,
    **subscriber: Any,
) -> Iterator[Notifications]:
    """A publisher and subscribers joined in memory, ended and cleared away with the block.

    Args:
        timer: delivers messages that a test made late; usually a `ManualClock`.
        profile: the publisher's switches.
        generic: where `Notifications.publish` sends events of no category of their own, such as heartbeats.
        provider: options of the embedded provider, such as `clock`.
        subscriber: further arguments of `Subscriber`; `timeout` is 0, since what was published has arrived.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(connect_privately(TOPIC_NAMES, **provider or {}))
        other = stack.enter_context(MemoryConnection(connection.provider, connection.names))
        subscribers = {
            category: stack.enter_context(Subscriber(other, TOPICS[category], **{"timeout": 0, **subscriber}))
            for category in TopicCategory
        }
        publisher = stack.enter_context(Publisher(connection, TOPICS, sender_uri=PUBLISHER, profile=profile))
        sender = _Sender(connection, timer)
        stack.callback(sender.close)
        yield Notifications(connection, connection.provider, publisher, subscribers, profile, generic, sender)


def _intercepted(connection: Connection, interceptor: Interceptor | None) -> Connection:
    return connection if interceptor is None else InterceptedConnection(connection, interceptor)
