"""Notifications, the third pattern of section 3.3: publishers, subscribers, and a picture of the network.

A publisher only sends its notifications to the provider (R7). A subscriber makes a consumer, and sends no subscribe
message (R8). `LocalBroker` carries out subscribe and unsubscribe by JMS alone (P35), `ProducerService` with a requestor
by messages (C40).
"""

from __future__ import annotations

from mtosi_jms.notifications._events import Event, Received, event_name, events_in, log_warnings, read_notification
from mtosi_jms.notifications._operations import LocalBroker, ProducerService, expression_of, selector_of
from mtosi_jms.notifications._publisher import (
    Heartbeats,
    Publisher,
    SystemProfile,
    Timer,
    notification_header,
)
from mtosi_jms.notifications._snapshot import (
    AlarmKey,
    Applied,
    Change,
    Effect,
    Refusal,
    Snapshot,
    alarm_key,
    apply_notification,
)
from mtosi_jms.notifications._subscriber import Loss, LossCause, Subscriber

__all__ = [
    "AlarmKey",
    "Applied",
    "Change",
    "Effect",
    "Event",
    "Heartbeats",
    "LocalBroker",
    "Loss",
    "LossCause",
    "ProducerService",
    "Publisher",
    "Received",
    "Refusal",
    "Snapshot",
    "Subscriber",
    "SystemProfile",
    "Timer",
    "alarm_key",
    "apply_notification",
    "event_name",
    "events_in",
    "expression_of",
    "log_warnings",
    "notification_header",
    "read_notification",
    "selector_of",
]
