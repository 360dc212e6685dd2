"""A session's book of what it handed out and is not settled."""

from __future__ import annotations

from mtosi_jms.transport.stomp._consumer import StompConsumer
from mtosi_jms.transport.stomp._subscription import Entry


class Unsettled(dict[Entry, StompConsumer]):
    """Messages in the order in which they were handed out, each with its consumer. The connection's lock is held."""

    def enter(self, entry: Entry, consumer: StompConsumer) -> None:
        """A message is handed out."""
        self[entry] = consumer
        consumer.held += 1

    def strike(self, entry: Entry) -> StompConsumer | None:
        """Strikes a message off; None where another thread, one that closes the session, has done so."""
        consumer = self.pop(entry, None)
        if consumer is not None:
            consumer.held -= 1
        return consumer

    def hand_over(self, closed: StompConsumer, new: StompConsumer) -> None:
        """A consumer takes over what a closed one had handed out, and the subscriptions that were kept for it."""
        new.take_over(closed)
        for entry, consumer in self.items():
            if consumer is closed:
                self[entry] = new
