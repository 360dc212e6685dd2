"""The publisher: events out, each to the topic of its category, with attributes of Table 4 as properties (R7, R9)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from mtosi_jms.errors import ConfigError
from mtosi_jms.exchange.messages import moment, stamped
from mtosi_jms.jms import BindingProfile, Destination, JmsMessage
from mtosi_jms.jms.binding import to_jms
from mtosi_jms.jms.profile import TopicCategory
from mtosi_jms.notifications._system import SystemProfile
from mtosi_jms.notifications.events import Event, event_name, events_of_message, notify_of
from mtosi_jms.soap import Header
from mtosi_jms.spool.journal import OutgoingJournal
from mtosi_jms.stubs.fmw.elc import EventLossCleared
from mtosi_jms.stubs.fmw.elo import EventLossOccured
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.transport import Connection, dropped, is_open
from mtosi_jms.xmlbind import XmlObject

if TYPE_CHECKING:
    from mtosi_jms.notifications._aio import AsyncPublisher

log = logging.getLogger(__name__)

Category: TypeAlias = TopicCategory | str
Address: TypeAlias = str | Destination
Topics: TypeAlias = Mapping[TopicCategory, Address] | Mapping[str, Address] | Mapping[Category, Address]
"""Category to the name of its destination, or the destination."""
EVENTS_PER_MESSAGE: Final = 100
"""Events that `publish_all` puts into one message at most."""


class Publisher:
    """Publishes events on the topic of their category (O10). Threads may share it.

    It sends nothing until there is an event (R7), and it may share its topics with other publishers (O11).

    Args:
        connection: an open connection; the publisher does not close it.
        topics: category to the name of its destination, or the destination. Each category has a topic for itself
            (O10b): one for two categories is logged, and refused where the profile validates strictly. A queue will do
            where one system alone receives (O12a).
        sender_uri: the OS's logical name.
        profile: the switches: routing, Table 4 properties and their forms, time to live, delivery mode.
        system: what the publishers of the system have in common; its own profile counts where `profile` is left out.
        outbox: stores each message before it is sent, PERSISTENT, and until the provider has confirmed it; what is left
            in it is sent first of all.

    Raises:
        ConfigError: no topic, a temporary one (R2a), or a profile that maps other attributes than the system (R9c).
        TransportError: the provider failed while what was left in the outbox was sent.
        NamingError: a name that cannot be resolved.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        *,
        sender_uri: str,
        profile: BindingProfile | None = None,
        system: SystemProfile | None = None,
        outbox: OutgoingJournal | None = None,
    ) -> None:
        if not topics:
            raise ConfigError("a publisher needs a topic for at least one category")
        if system is not None and profile is not None:
            system.admit(profile)
        self.system = system or SystemProfile(binding=profile or BindingProfile())
        self.profile = profile or self.system.binding
        self.sender_uri = sender_uri
        self._names = connection.names
        self._topics = {TopicCategory(category): connection.names.lookup(name) for category, name in topics.items()}
        self._look_over()
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._aio: AsyncPublisher | None = None
        self._outbox = outbox
        self._session = connection.session()
        try:
            self.resend()
        except BaseException:
            self._session.close()
            raise

    def _look_over(self) -> None:
        """Refuse topics that cannot be, and tell of those that should not be (R2a, O2, O10b)."""
        served: dict[Destination, TopicCategory] = {}
        for category, topic in self._topics.items():
            if topic.is_temporary:
                raise ConfigError("notifications go to administered destinations (R2a)")
            if not topic.is_topic:
                log.info("%s goes to %s; topics are recommended for notifications (O2, O12)", category.value, topic)
            other = served.setdefault(topic, category)
            if other is not category:
                told = f"{topic} serves {other.value} and {category.value}; a topic is for one category (O10b)"
                if self.profile.validation == "strict":
                    raise ConfigError(told)
                log.warning("%s", told)

    @property
    def aio(self) -> AsyncPublisher:
        """The same publisher for coroutines."""
        from mtosi_jms.notifications._aio import AsyncPublisher  # asyncio is not there for who does not use it

        with self._making:
            if self._aio is None:
                self._aio = AsyncPublisher(self.publish)
            return self._aio

    @property
    def topics(self) -> Mapping[TopicCategory, Destination]:
        """The destination of each category."""
        return dict(self._topics)

    def publish(self, event: Event, *, category: Category | None = None) -> JmsMessage:
        """Publish one event in a message of its own (C30).

        Args:
            event: an instance of an event element's class (`ResourceObjectCreation`, `Alarm`, ...) of any generated
                package, or the XML of an event that none knows.
            category: where it goes; events of no category of their own need it, or `broadcast` (C29).

        Returns:
            The message as sent.

        Raises:
            ConfigError: no event's class, no category, or no topic for it.
            EncodeError: the event cannot become valid XML.
            TransportError: the provider failed. With an outbox the message is kept, and sent before the next one: do
                not publish it once more.
            SpoolError: the outbox cannot store it; it is not sent.
        """
        return self._send(self.topic_of(event, category), [event])

    def publish_all(self, events: Iterable[Event], *, category: Category | None = None) -> list[JmsMessage]:
        """Publish events in their order: each in a message of its own where attributes of it become properties, for
        selectors to go by; several in one message where none do (C30).

        Those that share a message follow each other and are of one name, so that all live equally long.

        Raises:
            As `publish`. Events before the one at fault may have been published.
        """
        sent = []
        for (topic, name), run in groupby(events, lambda event: self._place(event, category)):
            size = 1 if self.system.attributes_of(name) else EVENTS_PER_MESSAGE
            sent += [self._send(topic, chunk) for chunk in _chunks(run, size)]
        return sent

    def publish_message(self, message: XmlObject, *, category: Category | None = None) -> JmsMessage:
        """Publish a message that the caller made, with as many events as it has.

        An attribute becomes a property if all events of the message have it and have the same value (C30).

        Args:
            message: a `NotifyMessage`.
            category: where it goes, if not where its events belong.

        Raises:
            As `publish`; ConfigError, too, for a message without events or with events of several categories.
        """
        events = events_of_message(message)
        if not events:
            raise ConfigError("a message to publish is a NotifyMessage with events")
        topics = {self._topic(event_name(event), category) for event in events}
        if len(topics) > 1:
            raise ConfigError("the events of one message belong on several topics: say which category it goes to")
        return self._send(topics.pop(), events)

    def broadcast(self, event: Event) -> list[JmsMessage]:
        """Publish one event on every topic of the publisher: what concerns all of its subscribers (C29).

        Raises:
            As `publish`.
        """
        event_name(event)
        return [self._send(topic, [event]) for topic in dict.fromkeys(self._topics.values())]

    def event_loss_occurred(self, **fields: Any) -> list[JmsMessage]:
        """Tell all subscribers that events are being lost from now on.

        Args:
            fields: of `EventLossOccured`: `object_type`, `object_name`, `start_time`,
                `first_event_lost_notification_id`, ...

        Raises:
            As `publish`.
        """
        return self.broadcast(EventLossOccured(**{"start_time": moment(), **fields}))

    def event_loss_cleared(self, **fields: Any) -> list[JmsMessage]:
        """Tell all subscribers that no more events are lost, so that they may ask for what they missed.

        Args:
            fields: of `EventLossCleared`: `object_type`, `object_name` as when the loss was told, `end_time`, ...

        Raises:
            As `publish`.
        """
        return self.broadcast(EventLossCleared(**{"end_time": moment(), **fields}))

    def message_of(self, topic: Destination, events: Sequence[Event], *, to: str | None = None) -> JmsMessage:
        """The message that carries events of a topic; it is not sent.

        Args:
            topic: what the events belong to, named in the body.
            events: one or more.
            to: the header's destinationURI, the topic's name unless given.

        Raises:
            ConfigError: no event's class, or events of several packages.
            EncodeError: an event cannot become valid XML.
        """
        header = Header(
            activity_name="notify",
            msg_name="notify",
            msg_type=MessageTypeType.NOTIFICATION,
            sender_uri=self.sender_uri,
            destination_uri=to or topic.name,
            communication_pattern=CommunicationPatternType.Notification,
            communication_style=CommunicationStyleType.MSG,
            timestamp=moment(),
        )
        filters = sorted(self.system.shared(map(event_name, events)))
        body = notify_of(str(topic.name), events)
        message = to_jms(header, body, self.profile, names=self._names, filters=filters, one_way=True)
        return stamped(message, None, None)

    def topic_of(self, event: Event, category: Category | None = None) -> Destination:
        """The topic that an event goes to.

        Raises:
            ConfigError: no event's class, no category, or no topic for it.
        """
        return self._topic(event_name(event), category)

    def _send(self, topic: Destination, events: Sequence[Event]) -> JmsMessage:
        message = self.message_of(topic, events)
        with self._lock:
            if self._outbox is not None:
                return self._outbox.send(self._session, topic, message)
            return self._session.send(topic, message)

    def resend(self) -> int:
        """Send what is left in the outbox, after a TransportError say; how many messages that were.

        Raises:
            TransportError: the provider failed; what is left stays.
            SpoolError: the outbox cannot be read or written.
        """
        if self._outbox is None:
            return 0
        with self._lock:
            return self._outbox.resend(self._session)

    def _place(self, event: Event, category: Category | None) -> tuple[Destination, str]:
        name = event_name(event)
        return self._topic(name, category), name

    def _topic(self, name: str, category: Category | None) -> Destination:
        found = TopicCategory(category) if category is not None else self.profile.topic_category(name)
        if found is None:
            raise ConfigError(f"{name} belongs to no category: say which topic it goes to, or broadcast it")
        if found not in self._topics:
            raise ConfigError(f"{name}: there is no topic for the category {found.value}")
        return self._topics[found]

    def __del__(self) -> None:
        if is_open(getattr(self, "_session", None)):
            dropped("a Publisher", self.close)

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


def _chunks(events: Iterator[Event], size: int) -> Iterator[list[Event]]:
    chunk: list[Event] = []
    for event in events:
        chunk.append(event)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
