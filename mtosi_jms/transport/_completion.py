"""Asynchronous sends as in JMS 2.0: keeps unconfirmed sends and calls their listeners. The same for every transport.

A session has one `Completions`, which notes each send in the order of the calls. The transport settles a send as soon
as it knows the outcome, from any thread and in any order. One thread of the session, never the sender's, calls the
listeners one at a time in the order of the sends (A27 to A29, AX3). A send whose outcome does not come in time has
failed (AX6). Closing and committing wait until every listener has returned (A13 to A19).

A transport with receipts calls `begin` before it writes the frame, `withdraw` if writing raises an error, and
`complete` at the receipt; one without calls `completed` after the frame is written (A7)."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias
from weakref import WeakValueDictionary

from mtosi_jms.errors import ConfigError, IllegalStateError, SendTimeoutError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.message import JmsMessage

log = logging.getLogger(__package__)

COMPLETION_TIMEOUT: Final = 30.0


class CompletionListener(Protocol):
    """Receives the outcomes of asynchronous sends, in a thread of the session and one send at a time.

    For each send that did not raise an error, one of the two methods is called, once (A9). Neither may close, commit or
    roll back the session of the send (A37), nor use the session while the application does (A26). Their exceptions are
    reported (AX5).
    """

    def on_completion(self, message: JmsMessage) -> object:
        """Called when the provider has the message, as surely as if a waiting send had returned (A6).

        The argument is what a waiting send would have returned: the message with the provider's values (A22)."""
        ...

    def on_exception(self, message: JmsMessage, error: Exception) -> object:
        """Called when the send of this object failed; whether the provider has the message may be unknown.

        The error is a SendTimeoutError if no outcome came in time."""
        ...


CompletionErrorHook: TypeAlias = Callable[[BaseException, JmsMessage], object]
"""Takes the exception of a completion listener, and the message of the send."""


@dataclass(frozen=True, slots=True)
class SendRules:
    """How a connection sends asynchronously.

    Attributes:
        timeout: seconds that an outcome may take; None: no limit, and closing waits as long.
        strict_2012: whether a message that was sent asynchronously must not be sent again, as in the proposal of 2012;
            JMS 2.0 allows it (AX1).
        on_error: called with a listener's exception; None: it is logged (AX5).
    """

    timeout: float | None = COMPLETION_TIMEOUT
    strict_2012: bool = False
    on_error: CompletionErrorHook | None = None


class Pending:
    """A send without an outcome; made by `Completions.begin`. `sequence`: its place among the sends of the session,
    from 1. `is_told`: its listener is called, or was."""

    __slots__ = ("_completions", "deadline", "is_told", "listener", "message", "outcome", "sequence")

    def __init__(
        self, completions: Completions, message: JmsMessage, listener: CompletionListener, sequence: int
    ) -> None:
        timeout = completions.rules.timeout
        self._completions = completions
        self.message = message
        self.listener = listener
        self.sequence = sequence
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.outcome: JmsMessage | Exception | None = None
        self.is_told = False

    @property
    def settled(self) -> bool:
        return self.outcome is not None

    def complete(self, sent: JmsMessage) -> bool:
        """Settles the send with the message as sent. Returns False, without effect, if the outcome was known."""
        return self._completions.settle(self, sent)

    def fail(self, error: Exception) -> bool:
        """Settles the send as failed. Returns False, without effect, if the outcome was known already."""
        return self._completions.settle(self, error)

    def timed_out(self) -> SendTimeoutError | None:
        if self.deadline is None or self.deadline > time.monotonic():
            return None
        return SendTimeoutError(self._completions.rules.timeout or 0.0)


class _Outcome(Future[JmsMessage]):
    def cancel(self) -> bool:
        return False


class FutureListener:
    """Puts the outcome into a future, which cannot be cancelled."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: Future[JmsMessage] = _Outcome()

    def on_completion(self, message: JmsMessage) -> None:
        self.future.set_result(message)

    def on_exception(self, message: JmsMessage, error: Exception) -> None:
        self.future.set_exception(error)


class Completions:
    """The asynchronous sends of one session whose listeners were not called yet, in the order of the calls.

    Thread-safe. A transport may call it while it holds its own locks, because this lock is always taken last; only
    `await_told` must be called without locks, because it waits. No listener runs with a lock held."""

    def __init__(self, rules: SendRules, name: str) -> None:
        self.rules = rules
        self.last = 0
        self._name = name
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._listener_returned = threading.Condition(self._lock)
        self._open: deque[Pending] = deque()  # the first one stays until its listener has returned
        self._thread: threading.Thread | None = None
        self._closed = False
        self._sent_once: WeakValueDictionary[int, JmsMessage] = WeakValueDictionary()

    def check(self, message: JmsMessage) -> None:
        """Raises IllegalStateError if `strict_2012` forbids the send. Called before each send, waiting or not."""
        if self.rules.strict_2012 and self._sent_once.get(id(message)) is message:
            raise IllegalStateError("the message was sent asynchronously, and strict_2012 forbids to send it again")

    def claim(self, message: JmsMessage) -> None:
        """Notes for `check` that a message was sent asynchronously."""
        if self.rules.strict_2012:
            self._sent_once[id(message)] = message

    def check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("the session is closed")

    def check_thread(self) -> None:
        """Raises IllegalStateError if the caller is a listener of this session, which would wait for itself (A37)."""
        if self._thread is threading.current_thread():
            raise IllegalStateError("a completion listener cannot close, commit or roll back what calls it (A37)")

    def begin(self, message: JmsMessage, listener: CompletionListener) -> Pending:
        """Notes a send that is about to be made. Raises what `check_open` raises."""
        self.check_open()
        with self._lock:
            return self._add(message, listener, None)

    def withdraw(self, pending: Pending) -> bool:
        """Removes a send that is about to raise an error. False if its listener is called already: then the send must
        not raise (A9)."""
        with self._lock:
            if pending.is_told:
                return False
            self._open.remove(pending)
            self._sent_once.pop(id(pending.message), None)
            self._wake.notify()
            self._listener_returned.notify_all()
            return True

    def completed(self, message: JmsMessage, sent: JmsMessage, listener: CompletionListener) -> None:
        """Notes a send that succeeded within the call, and the message as sent."""
        with self._lock:
            if self._open or not isinstance(listener, FutureListener):
                self._add(message, listener, sent)
                return
            self.last += 1
            self.claim(message)
        listener.on_completion(sent)  # nobody has the future yet, so the order is kept without waking a thread

    def settle(self, pending: Pending, outcome: JmsMessage | Exception) -> bool:
        with self._lock:
            if pending.outcome is not None:
                return False
            pending.outcome = outcome
            if self._open and self._open[0] is pending:  # the thread waits for the first one alone: order counts
                self._wake.notify()
            return True

    def await_told(self, last: int | None = None) -> None:
        """Waits until the outcome of every send up to the number `last` (None: the latest) is known and its listener
        has returned. Raises what `check_thread` raises."""
        self.check_thread()
        with self._lock:
            until = self.last if last is None else last
            while self._open and self._open[0].sequence <= until:
                self._listener_returned.wait()

    def begin_close(self) -> None:
        with self._lock:
            self._closed = True
            self._wake.notify()

    def _add(self, message: JmsMessage, listener: CompletionListener, sent: JmsMessage | None) -> Pending:
        self.last += 1
        self.claim(message)
        pending = Pending(self, message, listener, self.last)
        pending.outcome = sent
        self._open.append(pending)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"completions-{self._name}", daemon=True)
            self._thread.start()
        elif self._open[0] is pending:
            self._wake.notify()
        return pending

    def _run(self) -> None:
        while (pending := self._next()) is not None:
            self._call_listener(pending)
            with self._lock:
                self._open.popleft()
                self._listener_returned.notify_all()

    def _next(self) -> Pending | None:
        """Waits for the outcome of the first send, and returns the send; None at the end of the session."""
        with self._lock:
            while True:
                if not self._open:
                    if self._closed:
                        self._thread = None
                        return None
                    self._wake.wait()
                    continue
                first = self._open[0]
                if first.outcome is None:
                    first.outcome = first.timed_out()
                if first.outcome is not None:
                    first.is_told = True
                    return first
                left = None if first.deadline is None else first.deadline - time.monotonic()
                self._wake.wait(None if left is None else min(max(left, 0.0), threading.TIMEOUT_MAX))

    def _call_listener(self, pending: Pending) -> None:
        try:
            if isinstance(pending.outcome, JmsMessage):
                pending.listener.on_completion(pending.outcome)
            elif pending.outcome is not None:
                pending.listener.on_exception(pending.message, pending.outcome)
        except BaseException as error:  # noqa: BLE001 - the other listeners must be called all the same
            self._report(error, pending.message)

    def _report(self, error: BaseException, message: JmsMessage) -> None:
        what = f"a completion listener failed: {type(error).__name__}"
        if self.rules.on_error is None:
            log.error("%s", what, exc_info=error)
            return
        try:
            self.rules.on_error(error, message)
        except BaseException:  # the other listeners must be called all the same
            log.exception("on_completion_error failed; %s", what)


class SendsInTurn:
    """Asynchronous sends that have to wait for something: a thread makes them, in their order (A11). Thread-safe.
    `items`: what was not sent yet."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sent = threading.Condition()
        self.items: deque[tuple[Pending, Callable[[], object]]] = deque()  # the first one stays until it is sent

    def add(self, pending: Pending, send: Callable[[], object]) -> None:
        """Has `send` called after all others, unless the send is settled by then; an exception settles it."""
        with self._sent:
            self.items.append((pending, send))
            if len(self.items) == 1:
                threading.Thread(target=self._run, name=f"sends-{self._name}", daemon=True).start()

    def await_sent(self, deadline: float | None) -> bool:
        """Waits until all are sent, or have failed; returns whether that was so by the deadline (monotonic clock)."""
        with self._sent:
            left = threading.TIMEOUT_MAX if deadline is None else max(deadline - time.monotonic(), 0.0)
            return self._sent.wait_for(lambda: not self.items, min(left, threading.TIMEOUT_MAX))

    def _run(self) -> None:
        while True:
            pending, send = self.items[0]
            try:
                if not pending.settled:
                    send()
            except Exception as error:  # noqa: BLE001 - for the listener
                pending.fail(error)
            with self._sent:
                self.items.popleft()
                self._sent.notify_all()
                if not self.items:
                    return


class AsyncSender(Protocol):
    """The part of a session that sends without waiting."""

    def send_async(self, destination: Destination, message: JmsMessage) -> Future[JmsMessage]: ...


class SendWindow:
    """Sends messages, of which at most `size` may be unconfirmed. Only the thread of the session may use it.

    After a send has failed, the next call waits for the outcomes of all sends and raises the error. So no send is open
    after an error. The outcomes of the messages after the failed one are not reported. Raises ConfigError: a size below
    1."""

    __slots__ = ("_open", "_sender", "_size")

    def __init__(self, sender: AsyncSender, size: int) -> None:
        if size < 1:
            raise ConfigError(f"the size of a window must be at least 1, not {size}")
        self._sender = sender
        self._size = size
        self._open: deque[Future[JmsMessage]] = deque()

    def send(self, destination: Destination, message: JmsMessage) -> None:
        """Sends a message as soon as the window has room. Raises TransportError: an earlier send failed, and this
        message was not sent; or it cannot be sent at all."""
        self._confirm(self._size - 1)
        try:
            self._open.append(self._sender.send_async(destination, message))
        except BaseException:  # a signal's too: no send is open after an error
            self._abandon()
            raise

    def settle(self) -> None:
        """Waits until all messages are confirmed. Raises TransportError: a send failed."""
        self._confirm(0)

    def _confirm(self, most: int) -> None:
        while self._open and (len(self._open) > most or self._open[0].done()):
            try:
                self._open.popleft().result()
            except BaseException:  # the same
                self._abandon()
                raise

    def _abandon(self) -> None:
        wait(self._open)
        self._open.clear()
