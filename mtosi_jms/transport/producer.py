"""A producer: a destination with the settings that its messages go out with (P11, O6a)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtosi_jms.jms.destinations import Destination
from mtosi_jms.jms.message import DeliveryMode, JmsMessage

if TYPE_CHECKING:
    from mtosi_jms.transport.base import Session


class Producer:
    """Sends to one destination through a session; made by `Session.producer`. It holds nothing and needs no closing.

    A setting comes from the call of `send` if it is given there, else from the producer, else from the message.

    Attributes:
        session: sends for it.
        destination: where its messages go.
        delivery_mode: default of its messages; None: as each message says.
        priority: the same, 0 to 9.
        time_to_live_ms: the same, milliseconds; 0: never expires.

    Raises:
        ConfigError: a setting out of its range.
    """

    __slots__ = ("delivery_mode", "destination", "priority", "session", "time_to_live_ms")

    def __init__(
        self,
        session: Session,
        destination: Destination,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> None:
        self.session = session
        self.destination = destination
        self.delivery_mode = delivery_mode
        self.priority = priority
        self.time_to_live_ms = time_to_live_ms
        self._set(JmsMessage())

    def send(
        self,
        message: JmsMessage,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> JmsMessage:
        """Sends a message; see `Session.send` for what it returns and raises.

        Args:
            message: its own settings hold where neither the call nor the producer has one.
            delivery_mode: for this message alone.
            priority: for this message alone, 0 to 9.
            time_to_live_ms: for this message alone, milliseconds.

        Raises:
            ConfigError: a setting out of its range.
        """
        asked = self._set(message, delivery_mode=delivery_mode, priority=priority, time_to_live_ms=time_to_live_ms)
        return self.session.send(self.destination, asked)

    def _set(self, message: JmsMessage, **call: Any) -> JmsMessage:
        own = {name: getattr(self, name) for name in ("delivery_mode", "priority", "time_to_live_ms")}
        settings = {name: value for name, value in own.items() if value is not None}
        settings.update((name, value) for name, value in call.items() if value is not None)
        return replace(message, **settings) if settings else message
