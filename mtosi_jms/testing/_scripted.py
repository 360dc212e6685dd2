"""A supplier that answers what it is told, in the order it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

from mtosi_jms.errors import IllegalStateError, ReplyTimeoutError
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import BindingProfile, Destination, JmsMessage
from mtosi_jms.jms.binding import DEFAULT_PROFILE, from_jms
from mtosi_jms.service import SupplierBase
from mtosi_jms.soap import Envelope
from mtosi_jms.testing._clock import Timer
from mtosi_jms.testing._sending import Outgoing, Recorder, Sender
from mtosi_jms.transport import AckMode, Connection


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that a scripted supplier took.

    Attributes:
        message: as it came.
        connection: that it came by.
        destination: that it was sent to.
    """

    message: JmsMessage
    connection: Connection
    destination: Destination

    @property
    def envelope(self) -> Envelope:
        """The request's envelope, read anew each time."""
        return from_jms(self.message)

    def replies(
        self, services: Sequence[SupplierBase], *, profile: BindingProfile = DEFAULT_PROFILE, eager: bool = False
    ) -> list[JmsMessage]:
        """The messages that a `Supplier` with these services would send, each with its destination; none is sent.

        Args:
            services: instances of generated supplier classes.
            profile: the supplier's switches.
            eager: as for `Supplier`.
        """
        recorder = Recorder()
        supplier = Supplier(self.connection, self.destination, services, profile=profile, eager=eager)
        supplier.answer(self.message, recorder)
        return recorder.sent

    def reply(self, body: bytes) -> JmsMessage:
        """A message with these bytes, addressed to whoever asked, and JMSCorrelationID set as it should be."""
        return JmsMessage(body=body, destination=self.message.reply_to, correlation_id=self.message.message_id)


Script: TypeAlias = Callable[[Asked], Iterable[Outgoing]]
"""Says for a request which messages to answer with, in which order."""


class ScriptedSupplier:
    """Takes requests from a destination and sends the messages that a test wants, nothing else.

    Either by hand, in the thread of the test: `take` a request, `send` messages. Or by a script in a thread of its own:
    `start`. A message goes to its own `destination`. Requests count as done with as soon as they are taken.

    Args:
        connection: an open connection, which is started and not closed.
        destination: where requests come in.
        timer: delivers the messages that are `Late`.

    Raises:
        NamingError: the destination cannot be resolved.
    """

    def __init__(self, connection: Connection, destination: str | Destination, *, timer: Timer | None = None) -> None:
        self.connection = connection
        self.destination = connection.names.lookup(destination)
        self._session = connection.session(AckMode.AUTO)
        self._sender = Sender(connection, timer)
        self._consumer = self._session.consumer(self.destination)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        connection.start()

    def take(self, timeout: float = 10.0) -> Asked:
        """The next request, waited for.

        Args:
            timeout: seconds.

        Raises:
            ReplyTimeoutError: none came.
            IllegalStateError: closed, or a script is running.
        """
        delivery = self._consumer.receive(timeout)
        if delivery is None:
            raise ReplyTimeoutError(f"no request came to {self.destination} within {timeout:g} s")
        return Asked(delivery.message, self.connection, self.destination)

    def send(self, messages: Iterable[Outgoing]) -> None:
        """Send messages in this order, each to its own destination, and all at once: no clock runs out in between.

        Raises:
            IllegalStateError: a message without destination, or closed.
            ConfigError: a late message, and no timer.
        """
        self._sender.send(messages)

    def start(self, script: Script) -> Self:
        """Answer every request by a script, in a background thread until `close`."""
        self._thread = threading.Thread(target=self._run, args=(script,), name="scripted-supplier", daemon=True)
        self._thread.start()
        return self

    def _run(self, script: Script) -> None:
        try:
            while (delivery := self._consumer.receive()) is not None:
                self.send(script(Asked(delivery.message, self.connection, self.destination)))
        except IllegalStateError:
            return
        except BaseException as error:  # noqa: BLE001 - close raises it, where the test sees it
            self._failure = error

    def close(self) -> None:
        """End it.

        Raises:
            Exception: what the script raised.
        """
        self._session.close()
        self._sender.close()
        if self._thread is not None:
            self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
