"""A publisher and subscribers joined in memory, on a provider that nobody else knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from mtosi_jms.jms import BindingProfile, JmsMessage
from mtosi_jms.jms.binding import DEFAULT_PROFILE
from mtosi_jms.jms.profile import TopicCategory
from mtosi_jms.notifications import Publisher, Subscriber, event_name
from mtosi_jms.stubs.fmw.cei import CommonEventInformationType
from mtosi_jms.testing._clock import Timer
from mtosi_jms.testing._pair import connect_privately
from mtosi_jms.testing._sending import Outgoing, Sender, Tamper
from mtosi_jms.transport import Connection
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

PUBLISHER: Final = "jms/EmsOS"
"""The publisher's logical name."""
TOPICS: Final[Mapping[TopicCategory, str]] = {category: f"jms/{category.value}Topic" for category in TopicCategory}
"""The name of each category's topic."""
TOPIC_NAMES: Final[Mapping[str, str]] = {
    f"jms/{category.value}Topic": f"topic:{category.value.upper()}" for category in TopicCategory
}
"""The naming context of notifications."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """A publisher and a subscriber to each category.

    Attributes:
        connection: that all use.
        provider: behind the connection.
        publisher: of the code under test, or of the test; what it publishes goes straight to the topics.
        subscribers: by category; each ends when nothing more has arrived, and may go on later.
        profile: the switches of the publisher.
        generic: where events of no category of their own go.
    """

    connection: Connection
    provider: MemoryProvider
    publisher: Publisher
    subscribers: Mapping[TopicCategory, Subscriber]
    profile: BindingProfile
    generic: TopicCategory
    _sender: Sender

    def received(self, category: TopicCategory | str) -> list[Any]:
        """The events that have arrived on the topic of a category since it was last asked for."""
        return [received.event for received in self.subscribers[TopicCategory(category)]]

    def messages(self, events: Iterable[CommonEventInformationType]) -> list[JmsMessage]:
        """The messages that a publisher would send, each with its destination; none is sent.

        Raises:
            ConfigError, EncodeError: as for `Publisher.publish`.
        """
        messages = []
        for event in events:
            category = self.profile.topic_category(event_name(event)) or self.generic
            topic = self.publisher.topic_of(event, category)
            messages.append(dataclasses.replace(self.publisher.message_of(topic, [event]), destination=topic))
        return messages

    def publish(self, events: Iterable[CommonEventInformationType], *, tamper: Tamper | None = None) -> None:
        """Publish events, in this order and all at once.

        Args:
            events: instances of event elements' classes.
            tamper: gets the messages and returns those that are delivered.
        """
        messages = self.messages(events)
        self.send(messages if tamper is None else tamper(messages))

    def send(self, messages: Iterable[Outgoing]) -> None:
        """Send messages in this order, each to its own destination, and all at once.

        Raises:
            IllegalStateError: a message without destination, or the pair has ended.
            ConfigError: a late message, and no timer.
        """
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
        sender = Sender(connection, timer)
        stack.callback(sender.close)
        yield Notifications(connection, connection.provider, publisher, subscribers, profile, generic, sender)
