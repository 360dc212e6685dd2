"""Real brokers on loopback, for development and tests: Apache ActiveMQ Artemis and ActiveMQ Classic."""

from __future__ import annotations
