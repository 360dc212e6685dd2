"""Real brokers on loopback, for development and tests: Apache ActiveMQ Artemis and ActiveMQ Classic.

`start_broker(folder)` starts one that goes on running, `stop_broker(folder)` stops it. `KINDS["artemis"].start` is for
tests: it starts a process that the caller waits for and ends.
"""

from __future__ import annotations

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
    "Endpoints",
    "KeyStores",
    "Kind",
    "default_folder",
    "find_broker",
    "find_java",
    "free_ports",
    "start_broker",
    "start_on_free_ports",
    "stop_broker",
]
