"""The operations of NotificationBroker as JMS means them: subscribe makes a consumer, and sends nothing (R8, P35).

The broker of the specification is the provider itself. So its interface, whose WSDL binds `subscribe` and `unsubscribe`
to messages, is served on the spot:

    broker = LocalBroker(connection, {"Fault": "jms/FaultTopic"})
    stub = NotificationBroker(broker, "")
    major = expression_of(P.perceivedSeverity == "MAJOR")
    told = stub.subscribe(consumer_epr="jms/NocOS", topic="Fault", selector=major)
    for event in broker.subscribers(told.subscription_id)["Fault"]: ...
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from mtosi_jms.errors import ConfigError, NamingError
from mtosi_jms.jms import Destination
from mtosi_jms.notifications._publisher import Publisher
from mtosi_jms.notifications._subscriber import Subscriber
from mtosi_jms.notifications._subscriptions import new_identifier, selector_of
from mtosi_jms.service import Call
from mtosi_jms.stubs.fmw.msg import InvalidInputFault, InvalidTopicFault, NotImplementedFault
from mtosi_jms.stubs.fmw.notmsg import (
    Notify,
    SubscribeRequest,
    SubscribeResponse,
    UnsubscribeRequest,
    UnsubscribeResponse,
)
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import XmlObject


class LocalBroker:
    """Carries out the calls of a `NotificationBroker` stub without any message but those of `notify`.

    Faults are those that a broker would answer with. The stub's destination is of no account. Threads may share it;
    each subscriber is for one at a time.

    Args:
        connection: an open connection; the broker does not close it.
        topics: what a request may call a topic, to its name or destination; a request without topic gets them all.
            Other names are looked up in the naming context.
        publisher: carries out `notify`; without one that operation is not implemented.
        new_id: makes subscription ids.
        options: further arguments of each `Subscriber`.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Mapping[str, str | Destination],
        *,
        publisher: Publisher | None = None,
        new_id: Callable[[], str] = new_identifier,
        **options: Any,
    ) -> None:
        self._connection = connection
        self._topics = dict(topics)
        self._publisher = publisher
        self._new_id = new_id
        self._options = options
        self._subscriptions: dict[str, dict[str, Subscriber]] = {}
        self._lock = threading.Lock()

    def call(self, call: Call) -> XmlObject | None:
        """Carry out an operation; see `mtosi_jms.service.Caller`.

        Raises:
            MtosiFault: as a broker would answer: no such topic, subscription, or filter.
            TransportError: the provider failed.
        """
        request = call.request
        if isinstance(request, SubscribeRequest):
            return self._subscribe(request)
        if isinstance(request, UnsubscribeRequest):
            return self._unsubscribe(request)
        if isinstance(request, Notify):
            self._notify(request)
            return None
        raise NotImplementedFault(f"a notification broker has no {call.operation.name}")

    def call_batches(self, *_: Any) -> NoReturn:
        """Refused: no answer of a broker has parts."""
        raise ConfigError("the operations of a notification broker have one answer at most")

    call_bulk = call_batches

    @property
    def aio(self) -> NoReturn:
        """Refused: nothing is waited for."""
        raise ConfigError("the operations of a local broker wait for nothing: call them without aio")

    def subscribers(self, subscription_id: str) -> Mapping[str, Subscriber]:
        """The subscribers of a subscription, by what the request, or `topics`, calls the topic.

        Raises:
            InvalidInputFault: there is no such subscription.
        """
        with self._lock:
            return dict(self._known(subscription_id))

    def _known(self, subscription_id: str) -> dict[str, Subscriber]:
        found = self._subscriptions.get(subscription_id)
        if found is None:
            raise InvalidInputFault(f"there is no subscription {subscription_id}")
        return found

    def _subscribe(self, request: SubscribeRequest) -> SubscribeResponse:
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
        return SubscribeResponse(subscription_id=identifier)

    def _unsubscribe(self, request: UnsubscribeRequest) -> UnsubscribeResponse:
        with self._lock:
            found = self._known(request.subscription_id)
            if request.topic is not None and request.topic not in found:
                raise InvalidInputFault(f"the subscription has no topic {request.topic}")
            ended = [request.topic] if request.topic is not None else list(found)
            subscribers = [found.pop(topic) for topic in ended]
            if not found:
                del self._subscriptions[request.subscription_id]
        for subscriber in subscribers:
            subscriber.close()
        return UnsubscribeResponse()

    def _notify(self, request: Notify) -> None:
        if self._publisher is None:
            raise NotImplementedFault("there is no publisher: nothing can be notified")
        place = self._destination(request.topic)
        category = next((one for one, topic in self._publisher.topics.items() if topic == place), None)
        if category is None:
            raise InvalidTopicFault(f"nothing is published on {request.topic}")
        self._publisher.publish_message(request.message, category=category)

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
