"""The publisher: sends each event to the topic of its category, with attributes of Table 4 as properties (R7, R9)."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Final, Protocol, Self, TypeAlias

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.events import EVENT_NAMES
from mtosi_jms.binding.mapping import DEFAULT_PROFILE, to_jms
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, TopicCategory
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.exchange.messages import Target, moment, stamped, target_of
from mtosi_jms.exchange.sending import TimedSender, check_connection, unanswered
from mtosi_jms.exchange.worker import Worker, within
from mtosi_jms.jms import Destination, FrozenMap, JmsMessage
from mtosi_jms.masking import shown_half_made, without_login
from mtosi_jms.notifications._events import (
    Event,
    event_name,
    events_of_message,
    is_release1,
    notify_of,
    own_event,
    sole_event,
)
from mtosi_jms.patterns import rounded
from mtosi_jms.service import CallOptions, check_seconds
from mtosi_jms.soap import Header, as_dialect, stubs_header
from mtosi_jms.spool import OutgoingJournal, watch_outbox
from mtosi_jms.stubs.fmw.elc import EventLossCleared
from mtosi_jms.stubs.fmw.elo import EventLossOccured
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType, CommunicationStyleType, MessageTypeType
from mtosi_jms.transport import Connection, dropped, is_open
from mtosi_jms.xmlbind import XmlObject

log = logging.getLogger(__package__)

Category: TypeAlias = TopicCategory | str
Address: TypeAlias = str | Destination
Topics: TypeAlias = Mapping[TopicCategory, Address] | Mapping[str, Address] | Mapping[Category, Address]
"""Maps each category to the name of its destination, or to the destination."""
_GRACE: Final = 0.05
"""Seconds that the loop waits longer than the thread that publishes for it: the thread's error says more."""
EVENTS_PER_MESSAGE: Final = 100
"""Events that `publish_all` puts into one message at most."""


_FORMS: Final = ("time_form", "severity_form", "event_names")
"""Switches that must be the same for all publishers of a system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemProfile:
    """The selection of attributes for all publishers of a system, made once and never changed (R9b).

    Subscribers' selectors depend on it: if a publisher mapped other attributes, or wrote them in another form, its
    events would be filtered out silently. So a publisher that differs is refused (R9c).

    Attributes:
        binding: the switches of the binding; its `filter_properties` hold for all events.
        attributes: other attributes for some events, by logical name (`AlarmInformation`), without `MTOSI_`.

    Raises:
        ConfigError: an attribute that Table 4 does not have (R20a).
    """

    binding: BindingProfile = DEFAULT_PROFILE
    attributes: Mapping[str, frozenset[str]] = field(default=FrozenMap())

    def __post_init__(self) -> None:
        frozen = {event: frozenset(names) for event, names in self.attributes.items()}
        for event, names in frozen.items():
            if unknown := names - FILTER_ATTRIBUTES:
                raise ConfigError(f"attributes of {event}: Table 4 has no {', '.join(sorted(unknown))} (R20a)")
        object.__setattr__(self, "attributes", FrozenMap(frozen))

    def attributes_of(self, event: str) -> frozenset[str]:
        """Return the attributes of Table 4 that become properties of an event, by its logical name."""
        return self.attributes.get(event, self.binding.filter_properties)

    def shared(self, events: Iterable[str]) -> frozenset[str]:
        """Return the attributes that are mapped for every one of these events, as their common message needs (C30)."""
        return frozenset.intersection(*map(self.attributes_of, set(events)))

    def admit(self, profile: BindingProfile) -> None:
        """Check that the profile of a publisher fits its system. Raises ConfigError: it maps other attributes, or in
        another form (R9c)."""
        for form in _FORMS:
            if getattr(profile, form) != getattr(self.binding, form):
                raise ConfigError(f"{form} of the publisher is not that of its system (R9c)")
        for event in sorted({*EVENT_NAMES, *self.attributes}):
            mine, wanted = profile.filter_properties, self.attributes_of(event)
            if mine != wanted:
                other = ", ".join(sorted(mine ^ wanted))
                raise ConfigError(f"{event}: the publisher and its system differ in mapping {other} (R9c)")


class Publisher(Closeable):
    """Publishes events on the topic of their category (O10). Threads may share it.

    It sends nothing until there is an event (R7), and it may share its topics with other publishers (O11). Each method
    that sends takes a `timeout`, seconds that the whole call may take, and raises what `publish` raises.

    Args:
        connection: an open connection; the publisher does not close it.
        topics: maps each category to the name of its destination, or to the destination. A topic is for one category
            (O10b): two categories on one topic are logged, and refused if the profile validates strictly. A queue is
            enough if only one system receives (O12a).
        profile: the switches: routing, Table 4 properties and their forms, time to live, delivery mode.
        system: the settings that all publishers of the system share; its profile is used if `profile` is left out.
        outbox: stores each message before it is sent PERSISTENT, until the provider has confirmed it. Messages left in
            it are sent first.
        persistent: whether the provider must store notifications, unless the address of a topic says. None: as the
            profile says. Its default is NON_PERSISTENT (O6b), so a restart of the broker loses what it has kept.

    Raises:
        ConfigError: no topic, a temporary one (R2a), no such category, a profile that maps other attributes than the
            system (R9c), or an argument of the wrong type.
        TransportError: the provider failed while messages left in the outbox were sent.
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
        persistent: bool | None = None,
    ) -> None:
        check_connection("Publisher", connection)
        given: object = topics
        if not isinstance(given, Mapping) or not given:
            raise ConfigError(f"topics: give a topic by category, such as {{'Fault': 'jms/FaultTopic'}}, not {given!r}")
        if system is not None and profile is not None:
            system.admit(profile)
        self.system = system or SystemProfile(binding=profile or BindingProfile())
        self.profile = profile or self.system.binding
        self.sender_uri = sender_uri
        self._names = connection.names
        self._persistent = persistent
        found = {_category(one): target_of(connection.names, name, CallOptions()) for one, name in topics.items()}
        self._topics = {category: target.destination for category, target in found.items()}
        self._targets = {target.destination: target for target in found.values()}
        self._check_topics()
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._aio: AsyncPublisher | None = None
        self._outbox = outbox
        self._telemetry = connection.telemetry
        watch_outbox(connection.telemetry, outbox)
        self._session = connection.session()
        try:
            self.resend()
        except BaseException:
            self._session.close()
            raise

    def _check_topics(self) -> None:
        """Refuse topics that notifications must not go to, and log those that they should not go to (R2a, O2, O10b)."""
        served: dict[Destination, TopicCategory] = {}
        for category, topic in self._topics.items():
            if topic.is_temporary:
                raise ConfigError("notifications go to administered destinations (R2a)")
            if not topic.is_topic:
                log.info("%s goes to %s; topics are recommended for notifications (O2, O12)", category.value, topic)
            other = served.setdefault(topic, category)
            if other is not category:
                text = f"{topic} serves {other.value} and {category.value}; a topic is for one category (O10b)"
                if self.profile.validation == "strict":
                    raise ConfigError(text)
                log.warning("%s", text)

    @shown_half_made
    def __repr__(self) -> str:
        topics = ", ".join(f"{category.value} to {topic}" for category, topic in self._topics.items())
        state = "closed" if self._session.is_closed else "open"
        return f"<Publisher {without_login(self.sender_uri)}, {topics}, {state}>"

    @property
    def aio(self) -> AsyncPublisher:
        with self._making:
            if self._aio is None:
                self._aio = AsyncPublisher(self.publish)
            return self._aio

    @property
    def topics(self) -> Mapping[TopicCategory, Destination]:
        return dict(self._topics)

    def publish(self, event: Event, *, category: Category | None = None, timeout: float | None = None) -> JmsMessage:
        """Publish one event in a message of its own (C30).

        Args:
            event: an instance of an event element's class (`ResourceObjectCreation`, `Alarm`, ...) of any generated
                package, or the XML of an event of no known class.
            category: its category, if the event belongs to none by itself; `broadcast` needs no category (C29).
            timeout: seconds for the whole call: waiting for other threads, for room, a connection or the provider.

        Returns:
            The message as sent.

        Raises:
            ConfigError: not an event, no category, or no topic for it.
            EncodeError: the event cannot become valid XML.
            TransportError: the provider failed, or the time is over. With an outbox the message is kept, and sent
                before the next one: do not publish it again.
            SpoolError: the outbox cannot store it; it is not sent.
        """
        event = sole_event(event)
        return self._send(self.topic_of(event, category), [event], self._sender(timeout))

    def publish_all(
        self, events: Iterable[Event], *, category: Category | None = None, timeout: float | None = None
    ) -> list[JmsMessage]:
        """Publish events in their order. An event has a message of its own if attributes of it become properties, which
        selectors need; otherwise events share messages (C30).

        Events that share a message follow each other and have the same name, and so the same time to live. A message of
        MTOSI 1.x has one event.

        Raises:
            As `publish`. Events before the one at fault may have been published.
        """
        if isinstance(events, XmlObject) or not isinstance(events, Iterable):
            raise ConfigError(f"publish_all takes a list of events, not {type(events).__name__}; publish takes one")
        sender = self._sender(timeout)
        sent = []

        def group(event: Event) -> tuple[Destination, str, bool]:
            return self.topic_of(event, category), event_name(event), is_release1(event)

        for (topic, name, is_alone), run in groupby(map(sole_event, events), group):
            size = 1 if is_alone or self.system.attributes_of(name) else EVENTS_PER_MESSAGE
            while chunk := list(islice(run, size)):
                sent.append(self._send(topic, chunk, sender))
        return sent

    def publish_message(
        self, message: XmlObject, *, category: Category | None = None, timeout: float | None = None
    ) -> JmsMessage:
        """Publish a message that the caller made, with any number of events.

        An attribute becomes a property if all events of the message have it and have the same value (C30).

        Args:
            message: a `NotifyMessage`, or an `EventT` of MTOSI 1.x.
            category: its category, if not that of its events.
            timeout: as for `publish`.

        Raises:
            As `publish`; also ConfigError for a message without events or with events of several categories.
        """
        events = events_of_message(message)
        if not events:
            raise ConfigError("publish_message takes a NotifyMessage with events")
        topics = {self.topic_of(event, category) for event in events}
        if len(topics) > 1:
            raise ConfigError("the events of one message belong on several topics: say which category it goes to")
        return self._send(topics.pop(), events, self._sender(timeout))

    def broadcast(self, event: Event, *, timeout: float | None = None) -> list[JmsMessage]:
        """Publish one event on every topic of the publisher, for all of its subscribers (C29)."""
        sender, event = self._sender(timeout), sole_event(event)
        return [self._send(topic, [event], sender) for topic in dict.fromkeys(self._topics.values())]

    def event_loss_occurred(
        self,
        *,
        object_type: str | None = None,
        object_name: XmlObject | None = None,
        start_time: dt.datetime | None = None,
        first_event_lost_notification_id: str | None = None,
        timeout: float | None = None,
    ) -> list[JmsMessage]:
        """Tell all subscribers that events are being lost from now on, or from `start_time`; see `EventLossOccured`.
        The event is one of the release of `object_name`."""
        event = own_event(
            EventLossOccured,
            object_name,
            object_type=object_type,
            start_time=start_time or moment(),
            first_event_lost_notification_id=first_event_lost_notification_id,
        )
        return self.broadcast(event, timeout=timeout)

    def event_loss_cleared(
        self,
        *,
        object_type: str | None = None,
        object_name: XmlObject | None = None,
        end_time: dt.datetime | None = None,
        timeout: float | None = None,
    ) -> list[JmsMessage]:
        """Tell all subscribers that no more events of that object are lost: they may ask for what they missed."""
        event = own_event(EventLossCleared, object_name, object_type=object_type, end_time=end_time or moment())
        return self.broadcast(event, timeout=timeout)

    def message_of(self, topic: Destination, events: Sequence[Event], *, to: str | None = None) -> JmsMessage:
        """Return the message that carries events of a topic; it is not sent.

        Args:
            topic: the topic of the events, which the body names.
            to: the header's destinationURI; None: the topic's name in the naming context (C53).

        Raises:
            ConfigError: not an event, or events of several packages.
            EncodeError: an event cannot become valid XML.
        """
        target = self._targets.get(topic) or Target(topic, self._names.uri_of(topic), CallOptions())
        filters = sorted(self.system.shared(map(event_name, events)))
        body = notify_of(str(topic.name), events)
        module = body.__xml__.module
        cls = stubs_header(module.root, module.namespace, self.profile.header)
        header = notification_header(cls, self.sender_uri, to or target.uri)
        message = to_jms(header, body, self.profile, names=self._names, filters=filters, one_way=True)
        options = target.options
        return stamped(
            message, self._persistent if options.persistent is None else options.persistent, options.time_to_live
        )

    def topic_of(self, event: Event, category: Category | None = None) -> Destination:
        """Return the topic that an event goes to. Raises ConfigError: not an event, no category, or no topic for it."""
        name = event_name(event)
        found = _category(category) if category is not None else self.profile.topic_category(name)
        if found is None:
            raise ConfigError(f"{name} belongs to no category: say which topic it goes to, or broadcast it")
        if found not in self._topics:
            raise ConfigError(f"{name}: no topic for the category {found.value}")
        return self._topics[found]

    def resend(self, *, timeout: float | None = None) -> int:
        """Send what is left in the outbox, and return how many messages that were. Raises TransportError: the provider
        failed, or the time is over, and the others stay; SpoolError: the outbox cannot be read or written."""
        sender = self._sender(timeout)
        if self._outbox is None:
            return 0
        with sender.in_time("messages of the outbox"):
            return self._outbox.resend(sender)

    def _sender(self, timeout: float | None) -> TimedSender:
        check_seconds("timeout", timeout)
        return TimedSender(self._session, self._lock, timeout)

    def _send(self, topic: Destination, events: Sequence[Event], sender: TimedSender) -> JmsMessage:
        name = event_name(events[0])
        with unanswered(log, self._telemetry, name, topic, self.message_of(topic, events)) as publication:
            with sender.in_time(f"{name} to {topic}"):
                send = sender.send if self._outbox is None else partial(self._outbox.send, sender)
                sent = send(topic, publication.message)
            publication.sent(sent.message_id)
        return sent

    def __del__(self) -> None:
        if is_open(getattr(self, "_session", None)):
            dropped("a Publisher")  # its session lives on until the connection is closed

    def close(self) -> None:
        self._session.close()
        with self._making:
            if self._aio is not None:
                self._aio.stop()


class AsyncPublisher:
    """A publisher as coroutines see it; made by `Publisher.aio`."""

    def __init__(self, publish: Callable[..., JmsMessage]) -> None:
        self._publish = publish
        self._worker = Worker("mtosi-publish", "the publisher")

    async def publish(
        self, event: Event, *, category: TopicCategory | str | None = None, timeout: float | None = None
    ) -> JmsMessage:
        """Publish one event, after the calls that wait already; see `Publisher.publish`.

        The event of a call that is cancelled or timed out may be published all the same, unless the call was still
        waiting for its turn.
        """
        check_seconds("timeout", timeout)
        text = f"not sent within {rounded(timeout or 0)} s: the event stands in line, or is being sent"
        sent = self._worker.run(partial(self._publish, event, category=category, timeout=timeout))
        return await within(timeout, _GRACE, sent, lambda: TransportError(text))

    def stop(self) -> None:
        self._worker.close()


def _category(category: Category) -> TopicCategory:
    try:
        return TopicCategory(category)
    except ValueError:
        there = ", ".join(one.value for one in TopicCategory)
        raise ConfigError(f"there is no category {category!r}; there are {there}") from None


def notification_header(cls: type[Header], sender_uri: str, destination_uri: str) -> Header:
    """Return the header of a notification that is made now, of the class that `mtosi_jms.soap.stubs_header` gives."""
    fields = {
        "activity_name": "notify",
        "msg_name": "notify",
        "msg_type": MessageTypeType.NOTIFICATION,
        "sender_uri": sender_uri,
        "destination_uri": destination_uri,
        "communication_pattern": CommunicationPatternType.Notification,
        "communication_style": CommunicationStyleType.MSG,
        "timestamp": moment(),
    }
    return as_dialect(cls, fields)


class Timer(Protocol):
    """Runs an action later; such as `mtosi_jms.testing.ManualClock` or an asyncio event loop."""

    def call_later(self, seconds: float, action: Callable[[], object], /) -> object:
        """Run the action after so many seconds; the result may have a method `cancel`."""


class Heartbeats:
    """Publishes a heartbeat when it is started, and then one at every interval.

        with Publisher(...) as publisher, Heartbeats(publisher, 30, object_name=name("OS=EMS1")):
            ...

    A heartbeat that cannot be published is logged; the next one is tried at its time.

    Args:
        interval: seconds between two heartbeats. Subscribers should watch for a little more.
        object_type: type of the object whose sign of life it is.
        object_name: its name; the heartbeats are those of its release.
        timer: schedules the next heartbeat; None: a thread that does not keep the process alive.
        on_error: called with the error of a heartbeat that could not be published.

    Raises:
        ConfigError: the interval is not positive.
    """

    def __init__(
        self,
        publisher: Publisher,
        interval: float,
        *,
        object_type: str = "OS",
        object_name: XmlObject | None = None,
        timer: Timer | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> None:
        check_seconds("interval", interval)
        self.published = 0
        self._publisher = publisher
        self._interval = interval
        self._object_type = object_type
        self._object_name = object_name
        self._later = _in_a_thread if timer is None else timer.call_later
        self._on_error = on_error
        self._lock = threading.Lock()
        self._run: object = None  # identifies the time from start to stop
        self._next: object = None

    def start(self) -> Self:
        """Publish the first one and schedule the others; nothing happens if it is started already."""
        with self._lock:
            if self._run is None:
                self._run = object()
                self._beat(self._run)
        return self

    def _due(self, run: object) -> None:
        with self._lock:
            if run is self._run:
                self._beat(run)

    def _beat(self, run: object) -> None:
        """The lock is held."""
        self._next = self._later(self._interval, lambda: self._due(run))
        try:
            event = own_event(Heartbeat, self._object_name, object_type=self._object_type, os_time=moment())
            self._publisher.broadcast(event)
            self.published += 1
        except Exception as error:  # noqa: BLE001 - nobody is there to catch it in the timer's thread
            log.warning("a heartbeat could not be published: %s: %s", type(error).__name__, error)
            if self._on_error is not None:
                self._on_error(error)

    def stop(self) -> None:
        """Publish no more heartbeats; wait for one that is being published."""
        with self._lock:
            cancel = getattr(self._next, "cancel", None)
            self._run = self._next = None
        if cancel is not None:
            cancel()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _in_a_thread(seconds: float, action: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
    return timer
