"""Publisher and Subscriber: notifications on topics, by category, with the attributes of Table 4 as properties.

A publisher exchanges nothing with the provider but its messages (R7); a subscriber makes a consumer, and no subscribe
message is sent (R8). Which attributes become properties is fixed when the publisher is made (R9b).
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mtosi_jms.errors import ConfigError, EnvelopeError, XmlError
from mtosi_jms.incoming import Landing
from mtosi_jms.jms import BindingProfile, Destination, JmsMessage
from mtosi_jms.jms.binding import DEFAULT_PROFILE, from_jms, to_jms
from mtosi_jms.jms.events import logical_name
from mtosi_jms.jms.profile import TopicCategory
from mtosi_jms.messages import have_again, stamped
from mtosi_jms.soap import Envelope, Header, correlation_id
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.transport import Connection, Delivery

if TYPE_CHECKING:
    from mtosi_jms.aio.notifications import AsyncPublisher, AsyncSubscriber

log = logging.getLogger(__name__)


class Publisher:
    """Publishes events on the topic of their category (O10).

    Args:
        connection: an open connection; the publisher does not close it.
        topics: category to the name of its destination, or the destination; one destination may serve all (O11).
        sender_uri: the OS's logical name.
        profile: the switches: routing, Table 4 properties and their forms, time to live.

    Raises:
        ConfigError: no topic, or a temporary one (R2a).
        NamingError: a name that cannot be resolved.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Mapping[TopicCategory | str, str | Destination],
        *,
        sender_uri: str,
        profile: BindingProfile = DEFAULT_PROFILE,
    ) -> None:
        if not topics:
            raise ConfigError("a publisher needs a topic for at least one category")
        self.profile = profile
        self.sender_uri = sender_uri
        self._names = connection.names
        self._topics = {TopicCategory(category): connection.names.lookup(name) for category, name in topics.items()}
        if any(topic.is_temporary for topic in self._topics.values()):
            raise ConfigError("notifications go to administered destinations (R2a)")
        self._session = connection.session()
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._aio: AsyncPublisher | None = None

    @property
    def aio(self) -> AsyncPublisher:
        """The same publisher for coroutines."""
        from mtosi_jms.aio.notifications import AsyncPublisher  # asyncio is not there for who does not use it

        with self._making:
            if self._aio is None:
                self._aio = AsyncPublisher(self.publish)
            return self._aio

    def publish(self, event: CommonEventInformationType, *, category: TopicCategory | str | None = None) -> JmsMessage:
        """Publish one event in a message of its own (C30).

        Args:
            event: an instance of an event element's class (`ResourceObjectCreation`, `Alarm`, ...).
            category: where it goes; events of no category of their own need it (C29).

        Returns:
            The message as sent.

        Raises:
            ConfigError: no event's class, no category, or no topic for it.
            EncodeError: the event cannot become valid XML.
            TransportError: the provider failed.
        """
        topic = self._topic(event, category)
        body = Notify(topic=str(topic.name), message=NotifyMessage(common_event_information=[event]))
        header = Header(
            activity_name="notify",
            msg_name="notify",
            msg_type=MessageTypeType.NOTIFICATION,
            sender_uri=self.sender_uri,
            destination_uri=topic.name,
            communication_pattern=CommunicationPatternType.Notification,
            communication_style=CommunicationStyleType.MSG,
            timestamp=dt.datetime.now(dt.UTC).replace(microsecond=0),
        )
        filters = sorted(self.profile.filter_properties)
        message = to_jms(header, body, self.profile, names=self._names, filters=filters, one_way=True)
        with self._lock:
            return self._session.send(topic, stamped(message, None, None))

    def _topic(self, event: CommonEventInformationType, category: TopicCategory | str | None) -> Destination:
        if not event.__xml__.element:
            raise ConfigError(f"{type(event).__name__} is a type, not an event: take the class of its element")
        name = logical_name(event.__xml__.element)
        found = TopicCategory(category) if category is not None else self.profile.topic_category(name)
        if found is None:
            raise ConfigError(f"{name} belongs to no category: say which topic it goes to")
        if found not in self._topics:
            raise ConfigError(f"{name}: there is no topic for the category {found.value}")
        return self._topics[found]

    def close(self) -> None:
        """End the session."""
        self._session.close()
        with self._making:
            if self._aio is not None:
                self._aio.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Subscriber(Iterator[Any]):
    """Receives notifications, event by event; for one thread at a time.

    Each message is landed, if there is a landing, and acknowledged before its events are handed out. A message that
    cannot be read, or has nothing in it, goes to `on_error` and stays in the landing. Iteration may go on after an
    error. What is no notification is handed out as it is.

    Args:
        connection: an open connection; the subscriber starts it.
        destination: topic or queue, by name or as it is.
        selector: condition on headers and properties (R10).
        durable: name of a durable subscription, which keeps notifications while nobody receives (P8); for a topic, and
            a connection with a client id.
        timeout: seconds to wait for an event before iteration ends; None waits for ever.
        landing: keeps each message durably.
        on_error: called with the error of a message that cannot be read; without it the error is raised.

    Attributes:
        envelope: the envelope that the last event came in.
        message: the message that the last event came in.

    Raises:
        NamingError: the destination cannot be resolved.
        SelectorError: the selector does not parse.
        ConfigError: `durable` for a queue, or the transport lacks what was asked for.
        TransportError: the provider failed.
    """

    def __init__(
        self,
        connection: Connection,
        destination: str | Destination,
        *,
        selector: str | None = None,
        durable: str | None = None,
        timeout: float | None = None,
        landing: Landing | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> None:
        target = connection.names.lookup(destination)
        self._timeout = timeout
        self._landing = landing
        self._on_error = on_error
        self._events: deque[Any] = deque()
        self._making = threading.Lock()
        self._aio: AsyncSubscriber | None = None
        self.envelope: Envelope | None = None
        self.message: JmsMessage | None = None
        self._session = connection.session()
        try:
            self._consumer = self._session.consumer(target, selector, durable=durable)
            connection.start()
        except BaseException:
            self._session.close()
            raise

    @property
    def aio(self) -> AsyncSubscriber:
        """The same subscriber for coroutines, in place of the blocking iteration and not beside it."""
        from mtosi_jms.aio.notifications import AsyncSubscriber  # asyncio is not there for who does not use it

        with self._making:
            if self._aio is None:
                receive = self._consumer.receive
                self._aio = AsyncSubscriber(receive, self._take, self._events, self.close, self._timeout)
            return self._aio

    def __next__(self) -> Any:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._events:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            delivery = self._consumer.receive(left)
            if delivery is None:
                raise StopIteration
            self._take(delivery)
        return self._events.popleft()

    def _take(self, delivery: Delivery) -> None:
        """Land, acknowledge and read one message."""
        try:
            landed = self._landing.land(delivery.message) if self._landing is not None else None
            delivery.acknowledge()
        except BaseException:
            have_again(self._session)
            raise
        try:
            envelope = from_jms(delivery.message)
            if envelope.body is None:
                raise EnvelopeError("the SOAP body is empty")
        except XmlError as error:
            self._logged(landed, None)
            if self._on_error is None:
                raise
            self._on_error(error)
            return
        self._logged(landed, envelope)
        if envelope.warnings:
            log.warning("a notification with %d warnings, the first: %s", len(envelope.warnings), envelope.warnings[0])
        self.envelope, self.message = envelope, delivery.message
        events = getattr(getattr(envelope.body, "message", None), "common_event_information", None)
        self._events.extend([envelope.body] if events is None else events)

    def _logged(self, landed: Any, envelope: Envelope | None) -> None:
        if self._landing is not None:
            found = correlation_id(envelope.header) if envelope is not None else None
            self._landing.acknowledged(landed, correlation_id=found, batch_number=None)

    def close(self) -> None:
        """End the subscription."""
        self._session.close()
        with self._making:
            if self._aio is not None:
                self._aio.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
