"""A connection that shows a test each step of its sessions, which the test may hold up, let fail, or do itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from mtosi_jms.closing import Closeable
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.transport import (
    AckMode,
    CompletionListener,
    Connection,
    Delivery,
    ErrorHook,
    InterruptionHook,
    Listener,
    Session,
)

Action: TypeAlias = Literal["send", "send_soon", "send_async", "receive", "acknowledge"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a session is about to do, in the thread that does it.

    Attributes:
        message: what is sent or acknowledged; None where one is received.
        timeout: seconds that it may take; None: any number.
        proceed: does it, and returns or raises what came of it.
    """

    action: Action
    destination: Destination | str
    message: JmsMessage | None
    timeout: float | None
    proceed: Callable[[], Any]


Interceptor: TypeAlias = Callable[[Step], Any]
"""Gets each step. What it returns or raises is what the session returns or raises: `step.proceed()` as a rule."""


def _proceed(step: Step) -> Any:
    return step.proceed()


class InterceptedConnection(Connection):
    """A connection like another one, whose sessions hand each step to an interceptor.

        def cut(step):
            if step.action == "acknowledge":
                raise TransportError("the line is cut")
            return step.proceed()

        with exchange([Ems()], intercept_supplier=cut) as pair: ...

    `connection`: does the work; closed with this one. `interceptor`: gets each step; without one only `sessions` is of
    use. `sessions`: the sessions that were made and are open."""

    def __init__(self, connection: Connection, interceptor: Interceptor = _proceed) -> None:
        self.names = connection.names
        self.id = connection.id
        self.client_id = connection.client_id
        self.capabilities = connection.capabilities
        self.metadata = connection.metadata
        self.telemetry = connection.telemetry
        self._connection = connection
        self._interceptor = interceptor
        self._made: list[Session] = []

    @property
    def sessions(self) -> list[Session]:
        return [session for session in self._made if not session.is_closed]

    @property
    def dead_letter(self) -> Destination | None:
        return self._connection.dead_letter

    @property
    def is_up(self) -> bool:
        return self._connection.is_up

    def consumers(self, destination: Destination) -> int | None:
        return self._connection.consumers(destination)

    def start(self) -> None:
        self._connection.start()

    def stop(self) -> None:
        self._connection.stop()

    def close(self) -> None:
        self._connection.close()

    def session(self, ack_mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> Session:
        session: Any = _Session(self._connection.session(ack_mode, transacted=transacted), self._interceptor)
        self._made.append(session)
        made: Session = session
        return made


class _Through(Closeable):
    """Like another object, except for the methods that are here."""

    def __init__(self, inner: Any, interceptor: Interceptor) -> None:
        self._inner = inner
        self._interceptor = interceptor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def close(self) -> None:
        self._inner.close()


class _Session(_Through):
    producer, browse = Session.producer, Session.browse

    def _step(
        self,
        action: Action,
        destination: Destination | str,
        message: JmsMessage,
        timeout: float | None,
        proceed: Callable[..., Any],
    ) -> Any:
        named = self.connection.names.lookup(destination)
        return self._interceptor(Step(action, named, message, timeout, partial(proceed, destination, message)))

    def send(
        self,
        destination: Destination | str,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        timeout: float | None = None,
    ) -> Any:
        proceed = partial(self._inner.send, listener=listener, timeout=timeout)
        return self._step("send", destination, message, timeout, proceed)

    def send_soon(self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False) -> Any:
        proceed = partial(self._inner.send_soon, can_wait=can_wait)
        return self._step("send_soon", destination, message, None, proceed)

    def send_async(self, destination: Destination | str, message: JmsMessage) -> Any:
        return self._step("send_async", destination, message, None, self._inner.send_async)

    def consumer(self, *arguments: Any, **options: Any) -> Any:
        return _Consumer(self._inner.consumer(*arguments, **options), self._interceptor)


class _Consumer(_Through):
    on_interrupted: InterruptionHook | None = None

    def receive(self, timeout: float | None = None) -> Any:
        def proceed() -> Any:
            delivery = self._inner.receive(timeout)
            return None if delivery is None else self._handed(delivery)

        self._inner.on_interrupted = self.on_interrupted
        return self._interceptor(Step("receive", self.destination, None, timeout, proceed))

    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        self._inner.on_interrupted = self.on_interrupted
        self._inner.listen(lambda delivery: on_message(self._handed(delivery)), on_error)

    def _handed(self, delivery: Delivery) -> Any:
        handed: Any = _Through(delivery, self._interceptor)
        step = Step("acknowledge", self.destination, delivery.message, None, delivery.acknowledge)
        handed.acknowledge = lambda: self._interceptor(step)
        return handed
