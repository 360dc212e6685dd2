"""Notifications without a broker: who wants them subscribes with their producer, by a request over JMS (C40).

The producer keeps the subscriptions, looks at each event with their filters, and sends it to the destination that the
subscriber named. A consumer that wants the same without asking anybody makes a `Subscriber` on a topic (R8).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mtosi_jms.errors import MtosiError, NamingError
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.jms.selector import Selector
from mtosi_jms.notifications._publisher import Category, Publisher
from mtosi_jms.notifications._subscriptions import new_identifier, selector_of
from mtosi_jms.notifications.events import Event, event_name
from mtosi_jms.stubs.fmw.msg import InvalidInputFault, InvalidTopicFault
from mtosi_jms.stubs.fmw.notification_producer import NotificationProducer
from mtosi_jms.stubs.fmw.notmsg import SubscribeResponse, UnsubscribeResponse
from mtosi_jms.transport import Connection

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Subscription:
    """What one subscriber asked for.

    Attributes:
        consumer: where its notifications are sent.
        uri: the same as the subscriber wrote it.
        selector: what they must meet.
        topics: those that it wants, by name.
    """

    consumer: Destination
    uri: str
    selector: Selector
    topics: set[str]


class ProducerService(NotificationProducer.Supplier):
    """Serves `subscribe` and `unsubscribe`, and sends what is published to those who asked. Threads may share it.

    Args:
        connection: an open connection; the service does not close it.
        publisher: makes the messages, and says what the topics are: a request names one by its category (`Fault`), or
            by its name. It sends nothing for the service.
        allows: says where notifications may be sent. Unless given: to administered destinations that the naming
            context knows (C43), so that a subscriber cannot have messages sent anywhere it likes.
        on_error: called with what kept a message from one subscriber; the others get theirs.
        new_id: makes subscription ids.
    """

    def __init__(
        self,
        connection: Connection,
        publisher: Publisher,
        *,
        allows: Callable[[Destination], bool] | None = None,
        on_error: Callable[[Exception], object] | None = None,
        new_id: Callable[[], str] = new_identifier,
    ) -> None:
        self._names = connection.names
        self._publisher = publisher
        self._allows = allows or self._is_administered
        self._on_error = on_error
        self._new_id = new_id
        self._topics = {str(topic.name): topic for topic in publisher.topics.values()}
        self._subscriptions: dict[str, Subscription] = {}
        self._session = connection.session()
        self._lock = threading.Lock()

    def _is_administered(self, destination: Destination) -> bool:
        return not destination.is_temporary and self._names.knows(destination)

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        """What subscribers have asked for, by subscription id."""
        with self._lock:
            return dict(self._subscriptions)

    def subscribe(self, request: Any, context: Any) -> SubscribeResponse:
        """Keep a subscription.

        Raises:
            InvalidInputFault: the consumer is no destination that notifications may be sent to.
            InvalidTopicFault: there is no such topic.
            InvalidFilterDefinitionFault: the selector is none.
        """
        selector = selector_of(request.selector)
        topics = {self._topic(request.topic)} if request.topic is not None else set(self._topics)
        if not topics <= set(self._topics):
            raise InvalidTopicFault(f"there is no topic {request.topic}")
        consumer = self._consumer(request.consumer_epr)
        with self._lock:
            identifier = self._new_id()
            self._subscriptions[identifier] = Subscription(consumer, request.consumer_epr, selector, topics)
        return SubscribeResponse(subscription_id=identifier)

    def unsubscribe(self, request: Any, context: Any) -> UnsubscribeResponse:
        """End a subscription, or one of its topics.

        Raises:
            InvalidInputFault: there is no such subscription, or it has no such topic.
        """
        with self._lock:
            found = self._subscriptions.get(request.subscription_id)
            if found is None:
                raise InvalidInputFault(f"there is no subscription {request.subscription_id}")
            ended = set(found.topics) if request.topic is None else {self._topic(request.topic)} & found.topics
            if not ended:
                raise InvalidInputFault(f"the subscription has no topic {request.topic}")
            found.topics -= ended
            if not found.topics:
                del self._subscriptions[request.subscription_id]
        return UnsubscribeResponse()

    def _consumer(self, uri: str) -> Destination:
        try:
            consumer = self._names.lookup(uri)
        except NamingError as error:
            raise InvalidInputFault(f"consumerEpr: there is no destination {uri}") from error
        if not (consumer.is_plain or self._names.knows(consumer)) or not self._allows(consumer):
            raise InvalidInputFault(f"consumerEpr: no notifications are sent to {uri}")
        return consumer

    def _topic(self, wanted: str) -> str:
        """The name of the topic that a request means: by category, own name or naming context; empty for none."""
        for category, topic in self._publisher.topics.items():
            if wanted in (category.value, topic.name):
                return str(topic.name)
        try:
            return str(self._names.lookup(wanted).name)
        except NamingError:
            return ""

    def publish(self, event: Event, *, category: Category | None = None) -> list[JmsMessage]:
        """Send an event to every subscriber whose topic and filter it meets.

        Args:
            event: as for `Publisher.publish`.
            category: where it belongs; an event of no category of its own goes to every subscriber without it.

        Returns:
            The messages as sent.

        Raises:
            ConfigError: no event's class, or no topic for it.
            EncodeError: the event cannot become valid XML.
        """
        everywhere = category is None and self._publisher.profile.topic_category(event_name(event)) is None
        topics = list(self._topics.values()) if everywhere else [self._publisher.topic_of(event, category)]
        sent: list[JmsMessage] = []
        served: set[str] = set()
        for topic in topics:
            sample = self._publisher.message_of(topic, [event])
            for identifier, one in self.subscriptions.items():
                if identifier not in served and topic.name in one.topics and one.selector.accepts(sample):
                    served.add(identifier)
                    sent += self._send(topic, event, one)
        return sent

    def _send(self, topic: Destination, event: Event, to: Subscription) -> list[JmsMessage]:
        try:
            message = self._publisher.message_of(topic, [event], to=to.uri)
            with self._lock:
                return [self._session.send(to.consumer, message)]
        except MtosiError as error:
            log.warning("a notification could not be sent to %s: %s", to.uri, error)
            if self._on_error is not None:
                self._on_error(error)
            return []

    def close(self) -> None:
        """End all subscriptions and the session."""
        with self._lock:
            self._subscriptions.clear()
        self._session.close()
