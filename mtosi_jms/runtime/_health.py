"""What a consumer runtime says of itself, for probes and dashboards."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class State(enum.Enum):
    """Where a runtime is in its life; `ENDED` may follow each of the others.

    `STUCK` is a runtime that would run, and takes nothing since `RuntimeRules.max_stuck` handlers hang.
    """

    NEW = "new"
    CONNECTING = "connecting"
    RUNNING = "running"
    STUCK = "stuck"
    DRAINING = "draining"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Health:
    """A runtime at one moment. Times are seconds by its clock.

    Attributes:
        state: where it is in its life.
        now: when this was said.
        last_progress: when a message was last done with, or the provider last reached; None: never.
        in_flight: messages that a handler has at the moment.
        backlog: messages that are held and wait: for their turn, or for another attempt.
        handled: messages that were handled and acknowledged.
        parked: messages that were parked.
        failures: attempts that failed, deadlines included.
        consecutive_failures: attempts that failed since one last succeeded; attempts to connect included.
        stuck: handlers that ran past their deadline and have not returned; each holds a thread.
    """

    state: State
    now: float
    last_progress: float | None
    in_flight: int
    backlog: int
    handled: int
    parked: int
    failures: int
    consecutive_failures: int
    stuck: int

    def is_alive(self, silence: float) -> bool:
        """Whether it does its work: it runs, and is idle or has made progress within so many seconds."""
        if self.state not in (State.RUNNING, State.DRAINING):
            return False
        if not self.in_flight and not self.backlog:
            return True
        return self.last_progress is not None and self.now - self.last_progress <= silence
