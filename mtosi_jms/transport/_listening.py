"""The lock that limits a session to one thread (P4), and the thread that serves its listeners (P6)."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.transport._base import Consumer, Delivery, ErrorHook, Interruption, Listener

log = logging.getLogger(__package__)

_here: Final = threading.local()


def in_listener() -> bool:
    """Whether the calling thread runs listeners. Such a thread must not wait for other listeners: it could deadlock."""
    return getattr(_here, "runs_listeners", False)


class SessionUse:
    """Lets one thread at a time into a session, as often as it likes, and refuses the others. `dedicated`: returns
    whether the session belongs to another thread, which it cannot without `listeners`."""

    __slots__ = ("_dedicated", "_lock", "listeners")

    def __init__(self, dedicated: Callable[[], bool]) -> None:
        self._lock = threading.RLock()
        self._dedicated = dedicated
        self.listeners: dict[Consumer, tuple[Listener, ErrorHook | None]] = {}

    def __enter__(self) -> None:
        """Raises IllegalStateError: another thread uses the session, or it belongs to the thread of its listeners."""
        if not self._lock.acquire(blocking=False):
            raise IllegalStateError("the session is in use by another thread, and a session is for one at a time (P4)")
        if not self.listeners:
            return
        try:
            if self._dedicated():
                raise IllegalStateError(
                    "the session belongs to the thread of its listeners while its connection runs (P4)"
                )
        except BaseException:  # a signal's too
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self) -> AbstractContextManager[bool]:
        return self._lock


class Pumped(Protocol):
    """The methods of a session that the pump needs. Both may raise TransportError."""

    def poll(self) -> tuple[Consumer, Delivery | Interruption] | None:
        """Returns the next message or interruption for a listener; None: nothing until `ListenerPump.signal`. The lock
        is held."""
        ...

    def settle(self, delivery: Delivery, *, failed: bool) -> None:
        """Called when the listener has returned or raised, in the session and without the lock."""
        ...


class _Call(NamedTuple):
    consumer: Consumer
    delivery: Delivery | Interruption
    on_message: Listener
    on_error: ErrorHook | None


class ListenerPump:
    """The thread that hands a session's messages to its listeners, one at a time and in order.

    All methods but `in_thread` are called with the lock held; `await_idle` releases it while it waits."""

    def __init__(self, source: Pumped, use: SessionUse, lock: threading.Lock, name: str) -> None:
        self._source = source
        self._use = use
        self._lock = lock
        self._name = name
        self.listeners = use.listeners
        self._wake = threading.Condition(lock)
        self._idle = threading.Condition(lock)
        self._running: Consumer | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    def in_thread(self) -> bool:
        return self._thread is threading.current_thread()

    def add(self, consumer: Consumer, on_message: Listener, on_error: ErrorHook | None) -> None:
        """Gives a consumer its listener. Raises IllegalStateError: the consumer has a listener already."""
        if consumer in self.listeners:
            raise IllegalStateError("the consumer has a listener")
        self.listeners[consumer] = on_message, on_error
        if self._thread is None:
            work = (weakref.ref(self), self._wake)
            self._thread = threading.Thread(target=_pump, args=work, name=self._name, daemon=True)
            self._thread.start()
        self.signal()

    def remove(self, consumer: Consumer) -> None:
        self.listeners.pop(consumer, None)

    def signal(self) -> None:
        self._wake.notify()

    def end(self) -> None:
        self._ended = True
        self.listeners.clear()
        self._wake.notify()

    def await_idle(self, consumer: Consumer | None = None) -> None:
        """Waits until the running listener, of the consumer if one is given, has returned. Called by a listener, it
        returns at once."""
        if in_listener():
            return
        while self._running is not None and (consumer is None or self._running is consumer):
            self._idle.wait()

    def _next(self) -> _Call | TransportError | IllegalStateError | None:
        """Returns the next message, or an error that ends the thread; None: nothing now. The lock is held."""
        try:
            found = self._source.poll()
        except (TransportError, IllegalStateError) as error:
            return error
        if found is None:
            return None
        self._running = found[0]
        return _Call(*found, *self.listeners[found[0]])

    def _fail(self, error: TransportError | IllegalStateError) -> None:
        with self._lock:
            hooks = dict.fromkeys(on_error for _, on_error in self.listeners.values())
            self.end()
        for hook in hooks:
            _report_error(hook, error, None)

    def _serve(self, entry: _Call) -> None:
        try:
            with self._use.wait():
                self._deliver(entry)
        finally:
            with self._lock:
                self._running = None
                self._idle.notify_all()

    def _deliver(self, entry: _Call) -> None:
        failed = False
        delivery = entry.delivery
        if isinstance(delivery, Interruption):
            delivery.tell(entry.consumer.on_interrupted)
            return
        try:
            entry.on_message(delivery)
        except BaseException as error:  # noqa: BLE001 - a thread has nobody else to raise to: the hook gets it
            failed = True
            _report_error(entry.on_error, error, delivery)
        try:
            self._source.settle(delivery, failed=failed)
        except (TransportError, IllegalStateError) as error:
            _report_error(entry.on_error, error, delivery)


def _pump(weak: weakref.ref[ListenerPump], wake: threading.Condition) -> None:
    """Serves listeners until the end. While it waits, it does not keep the session alive."""
    _here.runs_listeners = True
    while True:
        with wake:
            pump = weak()
            if pump is None or pump._ended:
                return
            entry = pump._next()
            if entry is None:
                del pump
                wake.wait()
                continue
        if isinstance(entry, (TransportError, IllegalStateError)):
            pump._fail(entry)
            return
        pump._serve(entry)
        del pump, entry


def _report_error(hook: ErrorHook | None, error: BaseException, delivery: Delivery | None) -> None:
    message = delivery.message.message_id if delivery is not None else None
    what = f"the listener failed on message {message}" if delivery is not None else "no more messages for listeners"
    if hook is None:
        log.error("%s: %s", what, type(error).__name__, exc_info=error)
        return
    try:
        hook(error, delivery)
    except BaseException:  # the listeners' thread must go on, whatever the hook raises
        log.exception("on_error failed; %s: %s", what, type(error).__name__)
