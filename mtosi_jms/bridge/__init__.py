"""A bridge between JMS and OMG's Notification Service, based on the mapping of formal/04-10-09."""

from __future__ import annotations

__all__: list[str] = []
