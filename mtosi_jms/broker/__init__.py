"""Real services on loopback, for development and tests: Apache ActiveMQ Artemis, ActiveMQ Classic, JacORB's channels.

`start_broker(folder)` starts a broker that keeps running, `stop_broker(folder)` stops it. `KINDS["artemis"].start` is
for tests: it starts a process, and the caller waits for it and ends it. `start_channel`, `stop_channel` and
`start_channel_process` do the same for the notification service of JacORB.
"""

from __future__ import annotations

from mtosi_jms.broker._channel import (
    DevelopmentChannel,
    default_channel_folder,
    find_channel,
    start_channel,
    start_channel_process,
    stop_channel,
)
from mtosi_jms.broker._process import BrokerProcess, Endpoints, KeyStores, find_java, free_ports, start_on_free_ports
from mtosi_jms.broker._service import (
    KINDS,
    DevelopmentBroker,
    Kind,
    default_folder,
    find_broker,
    start_broker,
    stop_broker,
)

__all__ = [
    "KINDS",
    "BrokerProcess",
    "DevelopmentBroker",
    "DevelopmentChannel",
    "Endpoints",
    "KeyStores",
    "Kind",
    "default_channel_folder",
    "default_folder",
    "find_broker",
    "find_channel",
    "find_java",
    "free_ports",
    "start_broker",
    "start_channel",
    "start_channel_process",
    "start_on_free_ports",
    "stop_broker",
    "stop_channel",
]
