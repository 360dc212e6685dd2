"""A connection that shows a test each step of its sessions, which the test may hold up, let fail, or do itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mtosi_jms.jms import Destination, JmsMessage, TemporaryQueue, TemporaryTopic
from mtosi_jms.transport import (
    AckMode,
    CompletionListener,
    Connection,
    Consumer,
    Delivery,
    ErrorHook,
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

    Args:
        connection: does the work; closed with this one.
        interceptor: gets each step; without one only `sessions` is of use.

    Attributes:
        sessions: the sessions that were made and are open.
    """

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
        session = _Session(self._connection.session(ack_mode, transacted=transacted), self._interceptor)
        self._made.append(session)
        return session


class _Session(Session):
    def __init__(self, session: Session, interceptor: Interceptor) -> None:
        self.connection = session.connection
        self.ack_mode = session.ack_mode
        self.transacted = session.transacted
        self.completions = session.completions
        self._session = session
        self._interceptor = interceptor

    @property
    def is_closed(self) -> bool:
        return self._session.is_closed

    def send(
        self,
        destination: Destination | str,
        message: JmsMessage,
        listener: CompletionListener | None = None,
        *,
        timeout: float | None = None,
    ) -> JmsMessage:
        def proceed() -> JmsMessage:
            return self._session.send(destination, message, listener, timeout=timeout)

        sent: JmsMessage = self._interceptor(Step("send", self._named(destination), message, timeout, proceed))
        return sent

    def send_soon(
        self, destination: Destination | str, message: JmsMessage, *, can_wait: bool = False
    ) -> JmsMessage | None:
        def proceed() -> JmsMessage | None:
            return self._session.send_soon(destination, message, can_wait=can_wait)

        sent: JmsMessage | None = self._interceptor(Step("send_soon", self._named(destination), message, None, proceed))
        return sent

    def send_async(self, destination: Destination | str, message: JmsMessage) -> Future[JmsMessage]:
        def proceed() -> Future[JmsMessage]:
            return self._session.send_async(destination, message)

        future: Future[JmsMessage] = self._interceptor(
            Step("send_async", self._named(destination), message, None, proceed)
        )
        return future

    def consumer(
        self,
        destination: Destination | str,
        selector: str | None = None,
        *,
        durable: str | None = None,
        shared: bool = False,
        no_local: bool = False,
    ) -> Consumer:
        consumer = self._session.consumer(destination, selector, durable=durable, shared=shared, no_local=no_local)
        return _Consumer(consumer, self._interceptor)

    def _named(self, destination: Destination | str) -> Destination:
        return self.connection.names.lookup(destination)

    def unsubscribe(self, durable: str) -> None:
        self._session.unsubscribe(durable)

    def browser(self, queue: Destination | str, selector: str | None = None) -> Generator[JmsMessage, None, None]:
        return self._session.browser(queue, selector)

    def headers(self, queue: Destination | str, selector: str | None = None) -> Generator[JmsMessage, None, None]:
        return self._session.headers(queue, selector)

    def count(self, queue: Destination | str, selector: str | None = None) -> int:
        return self._session.count(queue, selector)

    def count_by(
        self, queue: Destination | str, names: Sequence[str], selector: str | None = None
    ) -> dict[str | None, int]:
        return self._session.count_by(queue, names, selector)

    def temporary_queue(self) -> TemporaryQueue:
        return self._session.temporary_queue()

    def temporary_topic(self) -> TemporaryTopic:
        return self._session.temporary_topic()

    def recover(self) -> None:
        self._session.recover()

    def commit(self) -> None:
        self._session.commit()

    def rollback(self) -> None:
        self._session.rollback()

    def close(self) -> None:
        self._session.close()


class _Consumer(Consumer):
    def __init__(self, consumer: Consumer, interceptor: Interceptor) -> None:
        self.destination = consumer.destination
        self.selector = consumer.selector
        self.durable = consumer.durable
        self._consumer = consumer
        self._interceptor = interceptor

    def receive(self, timeout: float | None = None) -> Delivery | None:
        def proceed() -> Delivery | None:
            delivery = self._consumer.receive(timeout)
            return None if delivery is None else _Delivery(delivery, self.destination, self._interceptor)

        self._consumer.on_interrupted = self.on_interrupted
        received: Delivery | None = self._interceptor(Step("receive", self.destination, None, timeout, proceed))
        return received

    def listen(self, on_message: Listener, on_error: ErrorHook | None = None) -> None:
        self._consumer.on_interrupted = self.on_interrupted
        self._consumer.listen(
            lambda delivery: on_message(_Delivery(delivery, self.destination, self._interceptor)), on_error
        )

    def close(self) -> None:
        self._consumer.close()


class _Delivery(Delivery):
    __slots__ = ("_delivery", "_destination", "_interceptor")

    def __init__(self, delivery: Delivery, destination: Destination, interceptor: Interceptor) -> None:
        self.message = delivery.message
        self._delivery = delivery
        self._destination = destination
        self._interceptor = interceptor

    def acknowledge(self) -> None:
        self._interceptor(Step("acknowledge", self._destination, self.message, None, self._delivery.acknowledge))
