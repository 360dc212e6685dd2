"""Notifications, the third pattern of section 3.3: publishers, subscribers, and what keeps a picture of the network.

A publisher exchanges nothing with the provider but its messages (R7); a subscriber makes a consumer, and no subscribe
message is sent (R8). `Publisher` and `Subscriber` are the two roles; `SystemProfile` is what the publishers of one
system have in common (R9), `Heartbeats` their signs of life, `Loss` what a subscriber may have missed. `LocalBroker`
carries out subscribe and unsubscribe as JMS means them (P35), `ProducerService` and a requestor do so with messages
(C40). `Snapshot` and `apply_notification` keep objects and alarms current.
"""

from __future__ import annotations

from mtosi_jms.notifications._alarms import AlarmKey, alarm_key
from mtosi_jms.notifications._broker import LocalBroker
from mtosi_jms.notifications._heartbeats import Heartbeats
from mtosi_jms.notifications._losses import Loss, LossCause
from mtosi_jms.notifications._producer import ProducerService
from mtosi_jms.notifications._publisher import Publisher
from mtosi_jms.notifications._snapshot import Applied, Change, Effect, Refusal, Snapshot, apply_notification
from mtosi_jms.notifications._subscriber import Subscriber
from mtosi_jms.notifications._subscriptions import expression_of, selector_of
from mtosi_jms.notifications._system import SystemProfile
from mtosi_jms.notifications.events import Event, event_name
from mtosi_jms.notifications.timing import ThreadTimer, Timer

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
    "Refusal",
    "Snapshot",
    "Subscriber",
    "SystemProfile",
    "ThreadTimer",
    "Timer",
    "alarm_key",
    "apply_notification",
    "event_name",
    "expression_of",
    "selector_of",
]
