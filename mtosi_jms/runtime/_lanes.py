"""Which message may be handled next: one at a time of each key, in the order of arrival. Plain data, without threads. A
lane is a key with a message that is being handled, is next, or waits for another attempt; later ones wait behind it."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from mtosi_jms.transport import Delivery


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
