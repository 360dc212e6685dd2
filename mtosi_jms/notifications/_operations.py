"""The operations subscribe, unsubscribe and notify, in both readings of the specification (C40; docs/notifications.md).

JMS has no messages for subscribe and unsubscribe: whoever wants notifications makes a consumer (R8, P35), as
`LocalBroker` does for a `NotificationBroker` stub. The WSDLs nevertheless bind both operations to messages:
`ProducerService` serves these, keeps the subscriptions, and sends each event to their destinations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from mtosi_jms.bulk import BulkTerms
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, MtosiError, NamingError, SelectorError
from mtosi_jms.exchange.sending import check_connection
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.selector import Condition, Selector, parse
from mtosi_jms.notifications._events import Event, event_name
from mtosi_jms.notifications._publisher import Category, Publisher
from mtosi_jms.notifications._subscriber import Subscriber
from mtosi_jms.service import Call, RequestContext
from mtosi_jms.stubs.fmw.gen import QueryDialectEnumType, QueryExpressionType
from mtosi_jms.stubs.fmw.msg import (
    InvalidFilterDefinitionFault,
    InvalidInputFault,
    InvalidTopicFault,
    NotImplementedFault,
)
from mtosi_jms.stubs.fmw.notification_producer import NotificationProducer
from mtosi_jms.stubs.fmw.notmsg import SubscribeRequest, SubscribeResponse, UnsubscribeRequest, UnsubscribeResponse
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import XmlObject

T = TypeVar("T")
log = logging.getLogger(__package__)


def expression_of(selector: str | Selector | Condition) -> QueryExpressionType:
    """Return the expression that a subscribe request carries for a selector. Raises SelectorError: the text is not a
    selector."""
    return QueryExpressionType(dialect=QueryDialectEnumType.ANSI_92.value, content=[parse(str(selector)).text])


def selector_of(expression: XmlObject | None) -> Selector:
    """Return the selector that a subscribe request carries; without an expression, one that accepts everything. Raises
    InvalidFilterDefinitionFault: another language than SQL92, or not a selector."""
    if expression is None:
        return parse("")
    if str(getattr(expression, "dialect", "")) != QueryDialectEnumType.ANSI_92.value:
        raise InvalidFilterDefinitionFault(f"selectors are in {QueryDialectEnumType.ANSI_92.value}")
    content = getattr(getattr(expression, "query", expression), "content", [])
    if not all(isinstance(part, str) for part in content):
        raise InvalidFilterDefinitionFault("a selector is text, not XML")
    try:
        return parse("".join(content))
    except SelectorError as error:
        raise InvalidFilterDefinitionFault(str(error)) from error


class LocalBroker(Closeable):
    """Carries out the calls of a `NotificationBroker` stub; only `notify` sends messages.

    It raises the faults that a broker would answer with. The stub's destination has no effect. Threads may share the
    broker; each subscriber is for one thread at a time.

    Args:
        topics: maps the name of a topic in requests to the name of its destination, or the destination. A request
            without a topic gets all of them. Other names are looked up in the naming context.
        publisher: carries out `notify`; without one that operation is not implemented.
        options: further arguments of each `Subscriber`.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Mapping[str, str | Destination],
        *,
        publisher: Publisher | None = None,
        new_id: Callable[[], str] = random_id,
        **options: Any,
    ) -> None:
        check_connection("LocalBroker", connection)
        self._connection = connection
        self._topics = dict(topics)
        self._publisher = publisher
        self._new_id = new_id
        self._options = options
        self._subscriptions: dict[str, dict[str, Subscriber]] = {}
        self._lock = threading.Lock()

    def call(self, call: Call) -> XmlObject | None:
        """Carry out an operation; see `mtosi_jms.service.Caller`. Raises ConfigError: the request is not one of it;
        MtosiFault: no such topic, subscription or filter; TransportError: the provider failed."""
        call.check()
        request: Any = call.request
        act = _ACTS.get(call.operation.name)
        if act is None or not isinstance(request, XmlObject):
            raise NotImplementedFault(f"a notification broker has no {call.operation.name}")
        told = act(self, request)
        if not call.operation.response:
            return None
        cls: Callable[..., XmlObject] = call.service.load(call.operation.response)
        return cls(**told)

    def call_batches(self, call: Call, batch_size: int) -> NoReturn:
        raise ConfigError("the operations of a notification broker have one answer at most")

    def call_bulk(self, call: Call, terms: BulkTerms) -> NoReturn:
        self.call_batches(call, 0)

    @property
    def aio(self) -> NoReturn:
        """Refused: nothing is waited for."""
        raise ConfigError("the operations of a local broker wait for nothing: call them without aio")

    def subscribers(self, subscription_id: str) -> Mapping[str, Subscriber]:
        """Return the subscribers of a subscription, by the name of the topic in the request or in `topics`. Raises
        InvalidInputFault: no such subscription."""
        with self._lock:
            return dict(_known(self._subscriptions, subscription_id))

    # One method for each operation, for the requests of any release. It returns the fields of the response.

    def _subscribe(self, request: Any) -> dict[str, str]:
        selector = selector_of(request.selector)
        wanted = [request.topic] if request.topic is not None else list(self._topics)
        places = {topic: self._destination(topic) for topic in wanted}
        found: dict[str, Subscriber] = {}
        try:
            for topic, place in places.items():
                found[topic] = Subscriber(self._connection, place, selector=selector, **self._options)
        except BaseException:
            for subscriber in found.values():
                subscriber.close()
            raise
        with self._lock:
            identifier = self._new_id()
            self._subscriptions[identifier] = found
        return {"subscription_id": identifier}

    def _unsubscribe(self, request: Any) -> dict[str, str]:
        with self._lock:
            found = _known(self._subscriptions, request.subscription_id)
            ended = [found.pop(topic) for topic in _ended(found, request.topic, request.topic)]
            if not found:
                del self._subscriptions[request.subscription_id]
        for subscriber in ended:
            subscriber.close()
        return {}

    def _notify(self, request: Any) -> dict[str, str]:
        if self._publisher is None:
            raise NotImplementedFault("the broker has no publisher: nothing can be notified")
        place = self._destination(request.topic)
        category = next((one for one, topic in self._publisher.topics.items() if topic == place), None)
        if category is None:
            raise InvalidTopicFault(f"nothing is published on {request.topic}")
        self._publisher.publish_message(request.message, category=category)
        return {}

    def _destination(self, topic: str) -> Destination:
        try:
            return self._connection.names.lookup(self._topics.get(topic, topic))
        except NamingError as error:
            raise InvalidTopicFault(f"there is no topic {topic}") from error

    def close(self) -> None:
        """End all subscriptions."""
        with self._lock:
            subscribers = [one for found in self._subscriptions.values() for one in found.values()]
            self._subscriptions.clear()
        for subscriber in subscribers:
            subscriber.close()


_ACTS: Final[Mapping[str, Callable[[LocalBroker, Any], dict[str, str]]]] = {
    "subscribe": LocalBroker._subscribe,
    "unsubscribe": LocalBroker._unsubscribe,
    "notify": LocalBroker._notify,
}


@dataclass(slots=True)
class Subscription:
    """What one subscriber requested from a producer. `uri`: the same destination as the subscriber wrote it."""

    consumer: Destination
    uri: str
    selector: Selector
    topics: set[str]


class ProducerService(NotificationProducer.Supplier):
    """Serves `subscribe` and `unsubscribe`, and sends what is published to the subscribers. Threads may share it.

    Args:
        publisher: makes the messages, and has the topics: a request names a topic by its category (`Fault`), or by its
            name. The service sends the messages itself.
        allows: returns whether notifications may be sent to a destination. Default: only to administered destinations
            that the naming context knows (C43), so that a subscriber cannot have messages sent anywhere else.
        on_error: called with the error if a message cannot be sent to one subscriber; the others get theirs.
    """

    def __init__(
        self,
        connection: Connection,
        publisher: Publisher,
        *,
        allows: Callable[[Destination], bool] | None = None,
        on_error: Callable[[Exception], object] | None = None,
        new_id: Callable[[], str] = random_id,
    ) -> None:
        check_connection("ProducerService", connection)
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
        with self._lock:
            return dict(self._subscriptions)

    def subscribe(self, request: SubscribeRequest, context: RequestContext | None) -> SubscribeResponse:
        """Keep a subscription.

        Raises:
            InvalidInputFault: the consumer is not a destination that notifications may be sent to.
            InvalidTopicFault: no such topic.
            InvalidFilterDefinitionFault: not a selector.
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

    def unsubscribe(self, request: UnsubscribeRequest, context: RequestContext | None) -> UnsubscribeResponse:
        """End a subscription, or one of its topics. Raises InvalidInputFault: no such subscription, or it has no such
        topic."""
        with self._lock:
            found = _known(self._subscriptions, request.subscription_id)
            topic = None if request.topic is None else self._topic(request.topic)
            found.topics.difference_update(_ended(found.topics, topic, request.topic))
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
        """Return the topic that a request names, by category, its own name or one of the naming context; else empty."""
        for category, topic in self._publisher.topics.items():
            if wanted in (category.value, topic.name):
                return str(topic.name)
        try:
            return str(self._names.lookup(wanted).name)
        except NamingError:
            return ""

    def publish(self, event: Event, *, category: Category | None = None) -> list[JmsMessage]:
        """Send an event to every subscriber whose topic and filter it meets. Raises ConfigError: not an event, or no
        topic for it; EncodeError: the event cannot become valid XML."""
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
            log.warning("a notification could not be sent to %s: %s: %s", to.uri, type(error).__name__, error)
            if self._on_error is not None:
                self._on_error(error)
            return []

    def close(self) -> None:
        with self._lock:
            self._subscriptions.clear()
        self._session.close()


def _known(subscriptions: Mapping[str, T], identifier: str) -> T:
    found = subscriptions.get(identifier)
    if found is None:
        raise InvalidInputFault(f"there is no subscription {identifier}")
    return found


def _ended(topics: Collection[str], topic: str | None, requested: str | None) -> list[str]:
    if topic is not None and topic not in topics:
        raise InvalidInputFault(f"the subscription has no topic {requested}")
    return [topic] if topic is not None else list(topics)
