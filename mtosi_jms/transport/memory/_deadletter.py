"""Messages that were delivered too often without being acknowledged: parked as they are, with where they come from.

What a parked message is told by is properties of the provider, which JMS names `JMS_` and the vendor's name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage, PropertyValue

ORIGINAL_DESTINATION: Final = "JMS_MTOSIX_originalDestination"
"""Where the message had been sent, with its kind: `queue:EMS.OS`."""
REASON: Final = "JMS_MTOSIX_deadLetterReason"
"""Why it is here, in words."""
DELIVERIES: Final = "JMS_MTOSIX_deliveries"
"""How often it was handed out, an Integer."""


def parked(message: JmsMessage, queue: Destination) -> JmsMessage:
    """The message as it lies in the dead-letter queue: it expires no more, and its deliveries are counted anew.

    Body, message id, timestamp, priority, correlation id and the other properties stay.

    Args:
        message: as it was handed out for the last time.
        queue: the dead-letter queue.
    """
    count = message.delivery_count
    facts: dict[str, PropertyValue] = {
        ORIGINAL_DESTINATION: str(message.destination),
        REASON: f"delivered {count} times without being acknowledged",
        DELIVERIES: count,
    }
    return replace(
        message,
        properties={**message.properties, **facts},
        destination=queue,
        expiration_ms=0,
        redelivered=False,
        delivery_count=1,
    )
