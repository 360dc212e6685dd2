"""Messages that no attempt could handle, as they are parked: unchanged, with why as properties of ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mtosi_jms.jms import DeliveryMode, Destination, JmsMessage

ORIGINAL_DESTINATION: Final = "MTOSIX_originalDestination"
"""Where the message was received from, with its kind: `queue:EMS.OS`."""
ORIGINAL_MESSAGE_ID: Final = "MTOSIX_originalMessageId"
"""Its JMSMessageID then, where it had one; parked it has another."""
REASON: Final = "MTOSIX_parkedReason"
"""The type of the last error: its text might quote the message."""
ATTEMPTS: Final = "MTOSIX_attempts"
"""How often it was tried to handle the message, an Integer."""


def parked(message: JmsMessage, received_from: Destination, error: BaseException, attempts: int) -> JmsMessage:
    """The message as it goes to the parking destination: persistent, and without expiration.

    Body, the other properties, reply address, correlation id, type and priority stay.

    Args:
        message: as it was received.
        received_from: where.
        error: what the last attempt failed with.
        attempts: how many there were.
    """
    properties = {
        **message.properties,
        ORIGINAL_DESTINATION: str(received_from),
        REASON: type(error).__name__,
        ATTEMPTS: attempts,
    }
    if message.message_id is not None:
        properties[ORIGINAL_MESSAGE_ID] = message.message_id
    return replace(message, properties=properties, delivery_mode=DeliveryMode.PERSISTENT, time_to_live_ms=0)
