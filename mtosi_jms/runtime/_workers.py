"""The threads that run handlers, and what is done about one that does not come back.

A thread cannot be ended from outside. When a handler runs past its deadline its attempt has failed: its context is
marked cancelled, its session is closed, so that nothing more goes out of it, another thread takes its place, and
whatever it returns or raises later is of no account. The thread itself stays until the handler returns; `stuck` counts
these. Where there are as many as there may be, none is replaced and nothing more is begun until one of them returns: so
there are never more threads than handlers that may run and handlers that may be stuck.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from mtosi_jms.errors import HandlerTimeoutError, IllegalStateError, MtosiError
from mtosi_jms.runtime._handlers import Handler
from mtosi_jms.runtime._lanes import Lanes, Task
from mtosi_jms.spool import begin
from mtosi_jms.transport import Session

log = logging.getLogger(__name__)

Opener = Callable[[], tuple[Session, int]]
"""Makes a session at the connection of now, and says which generation that is."""


class _Context:
    """See `HandlingContext`."""

    def __init__(self, worker: _Worker, attempt: int) -> None:
        self._worker = worker
        self.attempt = attempt
        self.cancelled = threading.Event()

    @property
    def session(self) -> Session:
        """See `HandlingContext`."""
        return self._worker.session()


class _Worker:
    """One thread, and the session that its handlers send from.

    Attributes:
        task: what it handles; None: it waits.
        context: of that.
    """

    def __init__(self, workers: Workers, number: int) -> None:
        self._workers = workers
        self._session: Session | None = None
        self._generation = -1
        self._fenced = threading.Event()
        self.task: Task | None = None
        self.context = _Context(self, 0)
        self.thread = threading.Thread(target=self._run, name=f"{workers.name}-{number}", daemon=True)

    def session(self) -> Session:
        """Its session at the connection of now.

        Raises:
            TransportError: the provider cannot be reached.
            IllegalStateError: the attempt was cancelled.
        """
        if self._workers.generation() != self._generation:
            self.close_session()
            self._session, self._generation = self._workers.opener()
        if self._session is None or self._fenced.is_set():
            self.close_session()  # it may be newer than the fence
            raise IllegalStateError("the attempt was cancelled")
        return self._session

    def fence(self) -> None:
        """Nothing more goes out of it; closing may have to wait for what is under way, so nobody waits for that."""
        if self._fenced.is_set():
            return
        self._fenced.set()
        self.context.cancelled.set()
        if self._session is not None:
            threading.Thread(target=self.close_session, name=f"{self.thread.name}-close", daemon=True).start()

    @property
    def is_cancelled(self) -> bool:
        """Whether its attempt is over without it."""
        return self._fenced.is_set()

    def close_session(self) -> None:
        """Ends its session."""
        if self._session is None:
            return
        try:
            self._session.close()
        except MtosiError as error:
            log.debug("a session did not close: %s", type(error).__name__)

    def _run(self) -> None:
        while (task := self._workers.next(self)) is not None:
            error: BaseException | None = None
            try:
                begin(task.delivery)
                self._workers.handler(task.delivery.message, self.context)
            except BaseException as raised:  # noqa: BLE001 - whatever a handler raises is a failed attempt
                error = raised
            if not self._workers.done(self, error):
                break
        self.close_session()

    def begin(self, task: Task) -> None:
        """It handles a message now."""
        self.task = task
        self.context = _Context(self, task.failures + 1)


class Workers:
    """The threads that handle what is in the lanes. Its lock guards the lanes.

    Args:
        count: how many threads.
        handler: what they run.
        deadline: seconds that an attempt has; None: any time.
        max_stuck: how many threads may be stuck.
        clock: seconds; what deadlines go by.
        opener: makes sessions for handlers.
        generation: which connection is the one of now.
        name: for the threads.

    Attributes:
        lanes: what waits.
        handler, opener, generation, name: the same.
    """

    def __init__(
        self,
        count: int,
        handler: Handler,
        *,
        deadline: float | None,
        max_stuck: int,
        clock: Callable[[], float],
        opener: Opener,
        generation: Callable[[], int],
        name: str,
    ) -> None:
        self.lanes = Lanes()
        self.handler = handler
        self.opener = opener
        self.generation = generation
        self.name = name
        self._deadline = deadline
        self._max_stuck = max_stuck
        self._clock = clock
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._over = threading.Condition(self._lock)
        self._outcomes: deque[tuple[Task, BaseException | None]] = deque()
        self._busy: set[_Worker] = set()
        self._stuck: set[_Worker] = set()
        self._threads: set[threading.Thread] = set()
        self._started = 0
        self._paused = False
        self._ended = False
        with self._lock:
            for _ in range(count):
                self._start()

    def counts(self) -> tuple[int, int, int]:
        """How many messages are being handled, how many wait, and how many threads are stuck."""
        with self._lock:
            return len(self._busy) + len(self._outcomes), len(self.lanes), len(self._stuck)

    @property
    def is_stuck(self) -> bool:
        """Whether so many threads are stuck that no more is begun."""
        return len(self._stuck) >= self._max_stuck

    @property
    def running(self) -> int:
        """How many handlers have not come to their end, those that are stuck included."""
        with self._lock:
            return len(self._busy) + len(self._stuck)

    def held(self) -> int:
        """How many messages are being handled or wait."""
        running, waiting, _ = self.counts()
        return running + waiting

    def is_mine(self) -> bool:
        """Whether the caller is one of the threads."""
        return threading.current_thread() in self._threads

    def add(self, task: Task) -> None:
        """A message has arrived."""
        with self._lock:
            self.lanes.add(task)
            self._work.notify()

    def finish(self, task: Task) -> None:
        """A message is done with: the next one of its key may be handled."""
        with self._lock:
            self.lanes.finish(task)
            self._work.notify()

    def retry(self, task: Task, at: float) -> None:
        """A message waits for another attempt."""
        with self._lock:
            self.lanes.retry(task, at)

    def clear(self) -> list[Task]:
        """Lets go of all that wait, and returns them."""
        with self._lock:
            return self.lanes.clear()

    def outcome(self) -> tuple[Task, BaseException | None] | None:
        """An attempt that is over, be it by its deadline, with what it failed with; None: there is none now."""
        with self._lock:
            now = self._clock()
            self._work.notify(self.lanes.due(now))
            self._replace_overdue(now)
            return self._outcomes.popleft() if self._outcomes else None

    def await_outcome(self, seconds: float) -> None:
        """Waits until an attempt is over, so many seconds at most."""
        with self._lock:
            if not self._outcomes:
                self._over.wait(seconds)

    def pause(self) -> None:
        """Begins with no more messages; has `await_outcome` return."""
        with self._lock:
            self._paused = True
            self._over.notify_all()

    def end(self) -> int:
        """Takes no more, cancels what runs; how many handlers still do."""
        with self._lock:
            self._ended = True
            self._work.notify_all()
            for worker in self._busy:
                worker.fence()
            return len(self._busy) + len(self._stuck)

    def next(self, worker: _Worker) -> Task | None:
        """What a thread is to handle, waited for; None: it ends."""
        with self._lock:
            while True:
                if self._ended:
                    self._threads.discard(worker.thread)
                    return None
                task = None if self._paused or self.is_stuck else self.lanes.take()
                if task is not None:
                    break
                self._work.wait()
            task.due = None if self._deadline is None else self._clock() + self._deadline
            worker.begin(task)
            self._busy.add(worker)
            return task

    def done(self, worker: _Worker, error: BaseException | None) -> bool:
        """A thread is back from a handler; whether it goes on."""
        with self._lock:
            if worker in self._stuck:
                self._stuck.discard(worker)
                self._work.notify_all()
                self._over.notify_all()
                return self._leave(worker)
            if worker.is_cancelled and not self._ended:  # past its deadline, and not replaced so far
                self._give_up(worker)
                return self._leave(worker)
            self._busy.discard(worker)
            if worker.task is not None:
                self._outcomes.append((worker.task, error))
            self._over.notify_all()
            return True

    def _leave(self, worker: _Worker) -> bool:
        self._threads.discard(worker.thread)
        return False

    def _replace_overdue(self, now: float) -> None:
        for worker in [one for one in self._busy if one.task is not None and _is_over(one.task, now)]:
            worker.fence()
            if not self.is_stuck:
                self._stuck.add(worker)
                self._give_up(worker)

    def _give_up(self, worker: _Worker) -> None:
        """Its attempt has failed, and another thread takes its place."""
        self._busy.discard(worker)
        if worker.task is not None:
            self._outcomes.append((worker.task, HandlerTimeoutError(self._deadline or 0.0)))
        self._over.notify_all()
        self._start()

    def _start(self) -> None:
        self._started += 1
        worker = _Worker(self, self._started)
        self._threads.add(worker.thread)
        worker.thread.start()


def _is_over(task: Task, now: float) -> bool:
    return task.due is not None and task.due <= now
