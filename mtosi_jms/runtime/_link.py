"""What a consumer runtime has at one connection, and the message that it sends to the dead-letter destination."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage
from mtosi_jms.spool import InboxReceiver, IncomingJournal, watch_inbox
from mtosi_jms.transport import Connection, InterruptionHook, publish

log = logging.getLogger(__package__)

ORIGINAL_DESTINATION: Final = "MTOSIX_originalDestination"
"""Of a parked message: where it was received from, with its kind: `queue:EMS.OS`."""
ORIGINAL_MESSAGE_ID: Final = "MTOSIX_originalMessageId"
"""Its JMSMessageID as received, if it had one; the parked message has another."""
REASON: Final = "MTOSIX_parkedReason"
"""The type of the last error: its text might quote the message."""
ATTEMPTS: Final = "MTOSIX_attempts"
"""How many attempts there were, an Integer."""


class Link:
    """A connection, and the session that receives, acknowledges and parks. Raises ConfigError: there is nowhere to
    park; TransportError: the provider failed.

    `parking`: None is the provider's dead-letter queue. Without an `inbox`, messages are acknowledged when they are
    done with."""

    def __init__(
        self,
        connection: Connection,
        *,
        owned: bool,
        generation: int,
        destination: str | Destination,
        selector: str | None,
        durable: str | None,
        parking: str | Destination | None,
        inbox: IncomingJournal | None,
        on_interrupted: InterruptionHook | None,
    ) -> None:
        self.connection = connection
        self.generation = generation
        self.on_interrupted = on_interrupted
        self._owned = owned
        try:
            self.session = connection.session()
            target = connection.names.lookup(destination)
            where = connection.dead_letter if parking is None else connection.names.lookup(parking)
            if where is None:
                raise ConfigError("the provider's dead-letter queue is not known: say where to park messages (parking)")
            if where == target:
                raise ConfigError(f"{target}: messages cannot be parked where they come from")
            if where.is_topic and not target.is_topic:
                raise ConfigError(f"{where}: a topic keeps no messages; those of a queue are parked at a queue (I18)")
            self.parking: Destination = where
            self.consumer = self.session.consumer(target, selector=selector, durable=durable)
            self.source = (
                self.consumer if inbox is None else InboxReceiver(self.session, self.consumer, inbox, conflicts=True)
            )
            self.consumer.on_interrupted = on_interrupted
            watch_inbox(connection.telemetry, inbox)
            connection.start()
        except BaseException:
            self.close()
            raise

    def park(self, message: JmsMessage, error: BaseException, attempts: int) -> None:
        """Sends a message to the dead-letter destination: persistent, without expiration, else unchanged."""
        properties = {
            **message.properties,
            ORIGINAL_DESTINATION: str(self.consumer.destination),
            REASON: type(error).__name__,
            ATTEMPTS: attempts,
        }
        if message.message_id is not None:
            properties[ORIGINAL_MESSAGE_ID] = message.message_id
        parked = replace(message, properties=properties, delivery_mode=DeliveryMode.PERSISTENT, time_to_live_ms=0)
        publish(self.session, self.parking, parked)

    def close(self) -> None:
        for one in (getattr(self, "session", None), self.connection if self._owned else None):
            try:
                if one is not None:
                    one.close()
            except MtosiError as error:
                log.debug("closing failed: %s", type(error).__name__)
