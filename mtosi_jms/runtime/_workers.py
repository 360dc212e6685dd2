"""The threads that run handlers; docs/design/runtime.md describes what happens when a handler is past its deadline."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from mtosi_jms.errors import HandlerTimeoutError, IllegalStateError, MtosiError
from mtosi_jms.runtime._handlers import Handler, HandlingContext, RuntimeRules
from mtosi_jms.spool import begin
from mtosi_jms.transport import Delivery, Session


@dataclass(slots=True, eq=False)
class Task:
    """A message that is held. `generation`: the number of the connection that it came by. `due`: when the running
    attempt must be over; None: no attempt runs, or it has any time."""

    delivery: Delivery
    key: Hashable
    generation: int
    failures: int = 0
    error: BaseException | None = None
    due: float | None = None


class Lanes:
    """Which message may be handled next: one at a time of each key, in the order of arrival. A lane is a key with a
    message that is being handled, is next, or waits for another attempt; later ones wait behind it."""

    def __init__(self) -> None:
        self._ready: deque[Task] = deque()
        self._lanes: dict[Hashable, deque[Task]] = {}
        self._later: list[tuple[float, int, Task]] = []
        self._tie = itertools.count()

    def __len__(self) -> int:
        """How many wait for a handler, for others of their key, or for another attempt."""
        return len(self._ready) + len(self._later) + sum(len(lane) for lane in self._lanes.values())

    def add(self, task: Task) -> None:
        if task.key is None:
            self._ready.append(task)
        elif task.key in self._lanes:
            self._lanes[task.key].append(task)
        else:
            self._lanes[task.key] = deque()
            self._ready.append(task)

    def take(self) -> Task | None:
        return self._ready.popleft() if self._ready else None

    def finish(self, task: Task) -> None:
        """A message that was taken is done with: the next one of its key may be handled."""
        if task.key is None:
            return
        lane = self._lanes[task.key]
        if lane:
            self._ready.append(lane.popleft())
        else:
            del self._lanes[task.key]

    def retry(self, task: Task, at: float) -> None:
        """A message that was taken waits for another attempt; its key waits with it."""
        heapq.heappush(self._later, (at, next(self._tie), task))

    def due(self, now: float) -> int:
        """Makes messages ready whose wait is over, and returns how many."""
        count = 0
        while self._later and self._later[0][0] <= now:
            self._ready.append(heapq.heappop(self._later)[2])
            count += 1
        return count

    def clear(self) -> list[Task]:
        """Removes and returns all that wait; what was taken still holds its key."""
        left = [*self._ready, *(task for _, _, task in self._later)]
        free = {task.key for task in left if task.key is not None}
        left += [task for lane in self._lanes.values() for task in lane]
        self._ready.clear()
        self._later.clear()
        self._lanes = {key: deque() for key in self._lanes if key not in free}
        return left


log = logging.getLogger(__package__)

Opener = Callable[[], tuple[Session, int]]
"""Makes a session at the current connection, and returns it with the number of that connection."""


class _Worker:
    """One thread, the session that its handlers send from, and the context of its attempt."""

    def __init__(self, workers: Workers, number: int) -> None:
        self._workers = workers
        self._session: Session | None = None
        self._generation = -1
        self._fenced = threading.Event()
        self.context = HandlingContext(0, self.session)
        self.thread = threading.Thread(target=self._run, name=f"handler-{number}", daemon=True)

    def session(self) -> Session:
        """Its session at the connection. Raises TransportError, IllegalStateError: the attempt was cancelled."""
        if self._workers.generation() != self._generation:
            self.close_session()
            self._session, self._generation = self._workers.opener()
        if self._session is None or self._fenced.is_set():
            self.close_session()  # it may be newer than the fence
            raise IllegalStateError("the attempt was cancelled")
        return self._session

    def fence(self) -> None:
        """Cancels its attempt. Another thread closes the session, which may take time, so that nothing more is sent."""
        if self._fenced.is_set():
            return
        self._fenced.set()
        self.context.cancelled.set()
        if self._session is not None:
            threading.Thread(target=self.close_session, name=f"{self.thread.name}-close", daemon=True).start()

    @property
    def is_cancelled(self) -> bool:
        return self._fenced.is_set()

    def close_session(self) -> None:
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


class Workers:
    """The threads that handle what is in the lanes; its lock guards the lanes."""

    def __init__(
        self,
        handler: Handler,
        rules: RuntimeRules,
        *,
        clock: Callable[[], float],
        opener: Opener,
        generation: Callable[[], int],
    ) -> None:
        self.lanes = Lanes()
        self.handler = handler
        self.opener = opener
        self.generation = generation
        self._rules = rules
        self._clock = clock
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._over = threading.Condition(self._lock)
        self._outcomes: deque[tuple[Task, BaseException | None]] = deque()
        self._busy: dict[_Worker, Task] = {}
        self._stuck: set[_Worker] = set()
        self._threads: set[threading.Thread] = set()
        self._started = 0
        self._paused = False
        self._ended = False

    def start(self) -> None:
        with self._lock:
            for _ in range(self._rules.concurrency):
                self._start()

    def counts(self) -> tuple[int, int, int]:
        """How many messages are being handled, how many wait, and how many threads are stuck."""
        with self._lock:
            return len(self._busy) + len(self._outcomes), len(self.lanes), len(self._stuck)

    @property
    def is_stuck(self) -> bool:
        """Whether as many threads are stuck as may be, so that no more messages are begun."""
        return len(self._stuck) >= self._rules.most_stuck

    @property
    def running(self) -> int:
        with self._lock:
            return len(self._busy) + len(self._stuck)

    def held(self) -> int:
        running, waiting, _ = self.counts()
        return running + waiting

    def is_mine(self) -> bool:
        return threading.current_thread() in self._threads

    def add(self, task: Task) -> None:
        with self._lock:
            self.lanes.add(task)
            self._work.notify()

    def finish(self, task: Task) -> None:
        with self._lock:
            self.lanes.finish(task)
            self._work.notify()

    def retry(self, task: Task, at: float) -> None:
        with self._lock:
            self.lanes.retry(task, at)

    def clear(self) -> list[Task]:
        with self._lock:
            return self.lanes.clear()

    def outcome(self) -> tuple[Task, BaseException | None] | None:
        """An attempt that is over, by its deadline or not, and its error; None: no attempt is over now."""
        with self._lock:
            now = self._clock()
            self._work.notify(self.lanes.due(now))
            self._replace_overdue(now)
            return self._outcomes.popleft() if self._outcomes else None

    def await_outcome(self, seconds: float) -> None:
        with self._lock:
            if not self._outcomes:
                self._over.wait(seconds)

    def pause(self) -> None:
        """Begins no more messages, and wakes `await_outcome`."""
        with self._lock:
            self._paused = True
            self._over.notify_all()

    def end(self) -> int:
        """Ends the threads and cancels what runs; how many handlers still run."""
        with self._lock:
            self._ended = True
            self._work.notify_all()
            for worker in self._busy:
                worker.fence()
            return len(self._busy) + len(self._stuck)

    def next(self, worker: _Worker) -> Task | None:
        """Waits for the next message of a thread; None: it ends."""
        with self._lock:
            while True:
                if self._ended:
                    self._threads.discard(worker.thread)
                    return None
                task = None if self._paused or self.is_stuck else self.lanes.take()
                if task is not None:
                    break
                self._work.wait()
            deadline = self._rules.deadline
            task.due = None if deadline is None else self._clock() + deadline
            worker.context = HandlingContext(task.failures + 1, worker.session)
            self._busy[worker] = task
            return task

    def done(self, worker: _Worker, error: BaseException | None) -> bool:
        """A handler has returned; whether its thread goes on."""
        with self._lock:
            if worker in self._stuck:
                self._stuck.discard(worker)
                self._work.notify_all()
                self._over.notify_all()
                return self._leave(worker)
            if worker.is_cancelled and not self._ended:  # past its deadline, and not replaced so far
                self._give_up(worker)
                return self._leave(worker)
            self._outcomes.append((self._busy.pop(worker), error))
            self._over.notify_all()
            return True

    def _leave(self, worker: _Worker) -> bool:
        self._threads.discard(worker.thread)
        return False

    def _replace_overdue(self, now: float) -> None:
        overdue = [worker for worker, task in self._busy.items() if task.due is not None and task.due <= now]
        for worker in overdue:
            worker.fence()
            if not self.is_stuck:
                self._stuck.add(worker)
                self._give_up(worker)

    def _give_up(self, worker: _Worker) -> None:
        """Its attempt has failed, and another thread takes its place."""
        self._outcomes.append((self._busy.pop(worker), HandlerTimeoutError(self._rules.deadline or 0.0)))
        self._over.notify_all()
        self._start()

    def _start(self) -> None:
        self._started += 1
        worker = _Worker(self, self._started)
        self._threads.add(worker.thread)
        worker.thread.start()
