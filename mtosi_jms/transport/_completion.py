"""Asynchronous send after JMS 2.0: what was sent and is not confirmed, and who is told. The same for every transport.

A session has one `Completions`. It notes each send in the order of the calls (`begin`); the transport settles what was
noted as soon as it knows the outcome, from any thread and in any order (`Pending.complete`, `Pending.fail`). One
thread of the session, never the sender's, tells the listeners: one at a time and in the order of the sends (A27 to A29,
AX3). A send whose outcome does not come in time has failed (AX6). Closing and committing wait until every listener has
returned (A13 to A19).

With receipts: `begin` before the frame is written, `withdraw` where that raises, `complete` at the receipt; without,
`completed` after it was written (A7).
"""

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
    """Is told the outcome of asynchronous sends, in a thread of the session and one send at a time.

    One of the two is called, once, for each send that did not raise (A9). Neither may close, commit or roll back what
    sent the message (A37), nor use the session while the application does (A26). What they raise is reported (AX5).
    """

    def on_completion(self, message: JmsMessage) -> object:
        """The provider has the message, as surely as if a waiting send had returned (A6).

        It is the message as sent, with what the provider sets (A22): what a waiting send would have returned."""
        ...

    def on_exception(self, message: JmsMessage, error: Exception) -> object:
        """The send of this object failed; whether the provider has the message may be unknown.

        The error is a SendTimeoutError where no outcome came in time."""
        ...


CompletionErrorHook: TypeAlias = Callable[[BaseException, JmsMessage], object]
"""Takes what a completion listener raised, with the message that it was told of."""


@dataclass(frozen=True, slots=True)
class SendRules:
    """How a connection sends asynchronously.

    Attributes:
        timeout: seconds that an outcome may take; None: for ever, and closing waits as long.
        strict_2012: a message that was sent asynchronously is never sent again, as the proposal of 2012 has it; else
            it may be, as JMS 2.0 has it (AX1).
        on_error: told what a listener raised; None: the log (AX5).
    """

    timeout: float | None = COMPLETION_TIMEOUT
    strict_2012: bool = False
    on_error: CompletionErrorHook | None = None


class Pending:
    """A send without an outcome; made by `Completions.begin`.

    Attributes:
        message: the object that was sent.
        sequence: its place among the sends of the session, from 1.
        deadline: when it has failed, by `time.monotonic`; None: never.
    """

    __slots__ = ("_completions", "deadline", "listener", "message", "outcome", "sequence")

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

    @property
    def settled(self) -> bool:
        """Whether the outcome is known, or came too late."""
        return self.outcome is not None

    def complete(self, sent: JmsMessage) -> bool:
        """The provider has it, as `sent`; False, and of no effect, where the outcome was known already."""
        return self._completions.settle(self, sent)

    def fail(self, error: Exception) -> bool:
        """It failed; False, and of no effect, where the outcome was known already."""
        return self._completions.settle(self, error)

    def timed_out(self) -> SendTimeoutError | None:
        """What it fails with, its time being over."""
        if self.deadline is None or self.deadline > time.monotonic():
            return None
        return SendTimeoutError(self._completions.rules.timeout or 0.0)


class _Outcome(Future[JmsMessage]):
    def cancel(self) -> bool:
        """What is sent is sent."""
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
    """The asynchronous sends of one session that its listeners were not told of, in the order of the calls.

    Safe for any number of threads. Its lock is taken last of all: a transport may call it with locks of its own held,
    but for `await_told`, which waits. No listener runs with a lock held.

    Args:
        rules: how the connection sends.
        name: for the thread.

    Attributes:
        last: the place of the latest send, 0 where there was none.
    """

    def __init__(self, rules: SendRules, name: str) -> None:
        self.rules = rules
        self.last = 0
        self._name = name
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._told = threading.Condition(self._lock)
        self._open: deque[Pending] = deque()  # the first one stays until its listener has returned
        self._thread: threading.Thread | None = None
        self._closed = False
        self._sent_once: WeakValueDictionary[int, JmsMessage] = WeakValueDictionary()

    def check(self, message: JmsMessage) -> None:
        """Called before each send, waiting or not; raises IllegalStateError where `strict_2012` forbids it."""
        if self.rules.strict_2012 and self._sent_once.get(id(message)) is message:
            raise IllegalStateError("the message was sent asynchronously, and strict_2012 forbids to send it again")

    def claim(self, message: JmsMessage) -> None:
        """Notes for `check` that a message was sent asynchronously."""
        if self.rules.strict_2012:
            self._sent_once[id(message)] = message

    def check_open(self) -> None:
        """Raises IllegalStateError where the session is closed, or is being closed."""
        if self._closed:
            raise IllegalStateError("the session is closed")

    def check_thread(self) -> None:
        """Called first by what waits for listeners: close, commit and rollback.

        Raises IllegalStateError where the caller is a listener of this session, which would wait for itself (A37)."""
        if self._thread is threading.current_thread():
            raise IllegalStateError("a completion listener cannot close, commit or roll back what calls it (A37)")

    def begin(self, message: JmsMessage, listener: CompletionListener) -> Pending:
        """Notes a send that is about to be made; raises as `check_open`."""
        self.check_open()
        with self._lock:
            return self._add(message, listener, None)

    def withdraw(self, pending: Pending) -> None:
        """The send raised to its caller: nobody is told, unless its outcome was known before."""
        with self._lock:
            if pending.outcome is None:
                self._open.remove(pending)
                self._sent_once.pop(id(pending.message), None)
                self._wake.notify()
                self._told.notify_all()

    def completed(self, message: JmsMessage, sent: JmsMessage, listener: CompletionListener) -> None:
        """Notes a send that succeeded within the call, and the message as sent."""
        with self._lock:
            if self._open or not isinstance(listener, FutureListener):
                self._add(message, listener, sent)
                return
            self.last += 1
            self.claim(message)
        listener.on_completion(sent)  # nobody has the future yet, so no thread need be woken to keep the order

    def settle(self, pending: Pending, outcome: JmsMessage | Exception) -> bool:
        """See `Pending.complete` and `Pending.fail`."""
        with self._lock:
            if pending.outcome is not None:
                return False
            pending.outcome = outcome
            if self._open and self._open[0] is pending:
                self._wake.notify()
            return True

    def await_told(self, last: int | None = None) -> None:
        """Waits until the outcome of every send up to the place `last` is known and its listener has returned.

        Raises as `check_thread`; None stands for the latest send."""
        self.check_thread()
        with self._lock:
            until = self.last if last is None else last
            while self._open and self._open[0].sequence <= until:
                self._told.wait()

    def begin_close(self) -> None:
        """The session is being closed: nothing more is sent asynchronously."""
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
            self._tell(pending)
            with self._lock:
                self._open.popleft()
                self._told.notify_all()

    def _next(self) -> Pending | None:
        """The first send, as soon as its outcome is known; None at the end of the session."""
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
                    return first
                left = None if first.deadline is None else first.deadline - time.monotonic()
                self._wake.wait(None if left is None else min(max(left, 0.0), threading.TIMEOUT_MAX))

    def _tell(self, pending: Pending) -> None:
        try:
            if isinstance(pending.outcome, JmsMessage):
                pending.listener.on_completion(pending.outcome)
            elif pending.outcome is not None:
                pending.listener.on_exception(pending.message, pending.outcome)
        except BaseException as error:  # noqa: BLE001 - the others must be told, whatever one listener raises
            self._report(error, pending.message)

    def _report(self, error: BaseException, message: JmsMessage) -> None:
        what = f"a completion listener failed: {type(error).__name__}"
        if self.rules.on_error is None:
            log.error("%s", what, exc_info=error)
            return
        try:
            self.rules.on_error(error, message)
        except BaseException:
            log.exception("on_completion_error failed; %s", what)


class AsyncSender(Protocol):
    """What sends without waiting: a session."""

    def send_async(self, destination: Destination, message: JmsMessage) -> Future[JmsMessage]:
        """See `Session.send_async`."""
        ...


class SendWindow:
    """Sends messages of which at most `size` are unconfirmed; for the thread of the session.

    The first send that failed is raised by the next call, when all others have their outcome too: after an error
    nothing is open, and what became of the messages behind the failed one is not told.

    Raises:
        ConfigError: a size below 1.
    """

    __slots__ = ("_open", "_sender", "_size")

    def __init__(self, sender: AsyncSender, size: int) -> None:
        if size < 1:
            raise ConfigError(f"the size of a window must be at least 1, not {size}")
        self._sender = sender
        self._size = size
        self._open: deque[Future[JmsMessage]] = deque()

    def send(self, destination: Destination, message: JmsMessage) -> None:
        """Sends a message as soon as the window has room.

        Raises:
            TransportError: an earlier send failed, and this message was not sent; or it cannot be sent at all.
        """
        self._confirm(self._size - 1)
        try:
            self._open.append(self._sender.send_async(destination, message))
        except BaseException:
            self._abandon()
            raise

    def settle(self) -> None:
        """Returns when all that was sent is confirmed.

        Raises:
            TransportError: a send failed.
        """
        self._confirm(0)

    def _confirm(self, most: int) -> None:
        while self._open and (len(self._open) > most or self._open[0].done()):
            try:
                self._open.popleft().result()
            except BaseException:
                self._abandon()
                raise

    def _abandon(self) -> None:
        wait(self._open)
        self._open.clear()
