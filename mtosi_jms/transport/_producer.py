"""A producer: a destination with the settings that its messages go out with (P11, O6a)."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mtosi_jms.errors import IllegalStateError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import DeliveryMode, JmsMessage
from mtosi_jms.transport.completion import CompletionListener, FutureListener

if TYPE_CHECKING:
    from mtosi_jms.transport.base import Session


class Producer:
    """Sends to one destination through a session; made by `Session.producer`.

    It holds nothing: closing it matters only to wait for what it sent asynchronously.

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

    __slots__ = ("_closed", "_last", "delivery_mode", "destination", "priority", "session", "time_to_live_ms")

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
        self._last = 0
        self._closed = False
        self._set(JmsMessage())

    def send(
        self,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> JmsMessage:
        """Sends a message; see `Session.send` for what it returns and raises.

        Args:
            message: its own settings hold where neither the call nor the producer has one.
            listener: is told the outcome, which is not waited for; None: it is waited for.
            delivery_mode: for this message alone.
            priority: for this message alone, 0 to 9.
            time_to_live_ms: for this message alone, milliseconds.

        Raises:
            ConfigError: a setting out of its range.
            IllegalStateError: it is closed.
        """
        if self._closed:
            raise IllegalStateError("the producer is closed")
        asked = self._set(message, delivery_mode=delivery_mode, priority=priority, time_to_live_ms=time_to_live_ms)
        completions = self.session.completions
        if asked is not message:  # the session never sees the object that the caller may send again
            completions.check(message)
        sent = self.session.send(self.destination, asked, listener)
        if listener is None:
            return sent
        completions.claim(message)
        self._last = completions.last
        return message

    def send_async(
        self,
        message: JmsMessage,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> Future[JmsMessage]:
        """Sends a message without waiting for its outcome; see `Session.send_async`, and `send` for the arguments.

        Raises:
            As `send`.
        """
        listener = FutureListener()
        self.send(message, listener, delivery_mode=delivery_mode, priority=priority, time_to_live_ms=time_to_live_ms)
        return listener.future

    def close(self) -> None:
        """Ends it, and returns when what it sent asynchronously is finished and its listeners have returned (A15).

        Raises:
            IllegalStateError: a completion listener closes a producer of the session that calls it (A37).
        """
        self.session.completions.check_thread()
        self._closed = True
        self.session.completions.await_told(self._last)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _set(self, message: JmsMessage, **call: Any) -> JmsMessage:
        own = {name: getattr(self, name) for name in ("delivery_mode", "priority", "time_to_live_ms")}
        settings = {name: value for name, value in own.items() if value is not None}
        settings.update((name, value) for name, value in call.items() if value is not None)
        return replace(message, **settings) if settings else message
