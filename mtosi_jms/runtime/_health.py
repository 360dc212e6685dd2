"""What a consumer runtime says of itself: its health, records for the log, errors for the hook. A record holds facts as
fields, and no content of a message: of an error the type alone, for its text might quote one."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mtosi_jms.jms import JmsMessage
from mtosi_jms.runtime._workers import Task
from mtosi_jms.telemetry import of_message

log = logging.getLogger("mtosi_jms.runtime")

ErrorHook: TypeAlias = Callable[[BaseException, JmsMessage | None], object]

_REMEMBERED: Final = 1_000
"""How many messages that went back to the provider are remembered with their failures."""


class State(enum.Enum):
    """The states of a runtime; `ENDED` may follow each of the others.

    `STUCK`: it would run, but takes no messages, because `RuntimeRules.max_stuck` handlers hang.
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
        last_progress: when a message was last done with, or the provider last reached; None: never.
        in_flight: messages that a handler has at the moment.
        backlog: messages that wait for their turn or for another attempt.
        handled: messages that were handled and acknowledged.
        parked: messages that were sent to the dead-letter destination.
        failures: attempts that failed, deadlines included.
        consecutive_failures: failed attempts since the last success; attempts to connect included.
        stuck: handlers that are past their deadline and have not returned; each holds a thread.
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
        """Whether it runs, and is idle or has made progress within so many seconds."""
        if self.state not in (State.RUNNING, State.DRAINING):
            return False
        if not self.in_flight and not self.backlog:
            return True
        return self.last_progress is not None and self.now - self.last_progress <= silence


class Record:
    """See above; changed by the receiving thread alone."""

    def __init__(self, destination: str, clock: Callable[[], float], on_error: ErrorHook | None) -> None:
        self._destination = destination
        self._clock = clock
        self._on_error = on_error
        self._handled = self._parked = self._failures = self._consecutive = 0
        self._progress: float | None = None
        self._earlier_failures: dict[str, tuple[int, BaseException | None]] = {}

    @property
    def settled(self) -> int:
        return self._handled + self._parked

    def health(self, state: State, counts: tuple[int, int, int]) -> Health:
        """The health, by the state and the numbers of messages handled now, of waiting ones, and of stuck threads."""
        in_flight, backlog, stuck = counts
        return Health(
            state=state,
            now=self._clock(),
            last_progress=self._progress,
            in_flight=in_flight,
            backlog=backlog,
            handled=self._handled,
            parked=self._parked,
            failures=self._failures,
            consecutive_failures=self._consecutive,
            stuck=stuck,
        )

    def connected(self, provider: str) -> None:
        self._progress = self._clock()
        self._note(logging.INFO, "connected", provider=provider)

    def not_reached(self, error: BaseException) -> None:
        self._consecutive += 1
        self._note(logging.WARNING, "provider not reached", error=type(error).__name__)

    def no_room(self, error: BaseException) -> None:
        self._note(logging.WARNING, "no room on the disk of the inbox", error=type(error).__name__)

    def lost(self, error: BaseException) -> None:
        self._consecutive += 1
        self._note(logging.WARNING, "provider lost", error=type(error).__name__)
        self.report_error(error, None)

    def handled(self, task: Task) -> None:
        self._handled += 1
        self._consecutive = 0
        self._progress = self._clock()
        self._note(logging.DEBUG, "handled", task)

    def failed(self, task: Task, error: BaseException) -> None:
        task.failures += 1
        task.error = error
        self._failures += 1
        self._consecutive += 1
        self._note(logging.WARNING, "attempt failed", task, error=type(error).__name__)
        self.report_error(error, task.delivery.message)

    def parked(self, task: Task, error: BaseException, parking: str) -> None:
        self._parked += 1
        self._progress = self._clock()
        self._note(logging.ERROR, "parked", task, error=type(error).__name__, parking=parking)

    def ended(self, abandoned: int) -> None:
        self._note(logging.INFO, "ended", abandoned=abandoned)

    def remember_failures(self, task: Task) -> None:
        identifier = task.delivery.message.message_id
        if identifier is None or not task.failures:
            return
        self._earlier_failures[identifier] = task.failures, task.error
        if len(self._earlier_failures) > _REMEMBERED:
            del self._earlier_failures[next(iter(self._earlier_failures))]

    def earlier_failures(self, message: JmsMessage) -> tuple[int, BaseException | None]:
        return self._earlier_failures.pop(message.message_id or "", (0, None))

    def report_error(self, error: BaseException, message: JmsMessage | None) -> None:
        if self._on_error is None:
            return
        try:
            self._on_error(error, message)
        except Exception as raised:  # noqa: BLE001 - a hook must not end what it watches
            self._note(logging.ERROR, "on_error failed", error=type(raised).__name__)

    def _note(self, level: int, event: str, task: Task | None = None, **facts: Any) -> None:
        facts = {"event": event, "destination": self._destination, **facts}
        shown = event
        if task is not None:
            message = task.delivery.message
            facts |= {**of_message(message, message.destination), "destination": self._destination}
            facts["failed_attempts"] = task.failures
            shown += f", message {message.message_id}, failed attempts {task.failures}"
        if "error" in facts:
            shown += f": {facts['error']}"
        log.log(level, "%s: %s", self._destination, shown, extra=facts)
