"""What a consumer runtime did: counts for `health`, records for the log, errors for the hook.

A record of the log has its facts as fields: `event`, `destination`, and where there is one `message_id`,
`failed_attempts`, `error` (a type: the text of an error might quote a message) and more. Nothing of a message stands
in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mtosi_jms.jms import JmsMessage
from mtosi_jms.runtime._health import Health, State
from mtosi_jms.runtime._lanes import Task

log = logging.getLogger("mtosi_jms.runtime")

ErrorHook: TypeAlias = Callable[[BaseException, JmsMessage | None], object]

_REMEMBERED: Final = 1_000
"""Messages whose failures are remembered when they went back to the provider."""


class Record:
    """See above; changed by the receiving thread alone.

    Args:
        destination: where messages come from, for the log.
        clock: seconds.
        on_error: told what an attempt failed with, and why the provider was lost.
    """

    def __init__(self, destination: str, clock: Callable[[], float], on_error: ErrorHook | None) -> None:
        self._destination = destination
        self._clock = clock
        self._on_error = on_error
        self._handled = self._parked = self._failures = self._consecutive = 0
        self._progress: float | None = None
        self._went_back: dict[str, tuple[int, BaseException | None]] = {}

    @property
    def settled(self) -> int:
        """How many messages are done with."""
        return self._handled + self._parked

    def health(self, state: State, counts: tuple[int, int, int]) -> Health:
        """How the runtime is.

        Args:
            state: where it is in its life.
            counts: messages being handled, waiting, and threads stuck.
        """
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
        """The provider was reached."""
        self._progress = self._clock()
        self._note(logging.INFO, "connected", provider=provider)

    def not_reached(self, error: BaseException | None) -> None:
        """The provider was not reached; there will be another attempt."""
        self._consecutive += 1
        self._note(logging.WARNING, "provider not reached", error=type(error).__name__)

    def no_room(self, error: BaseException) -> None:
        """The disk of the inbox is full; there will be another attempt."""
        self._note(logging.WARNING, "no room on the disk of the inbox", error=type(error).__name__)

    def lost(self, error: BaseException) -> None:
        """The provider failed."""
        self._consecutive += 1
        self._note(logging.WARNING, "provider lost", error=type(error).__name__)
        self.tell(error, None)

    def handled(self, task: Task) -> None:
        """A message was handled and acknowledged."""
        self._handled += 1
        self._consecutive = 0
        self._progress = self._clock()
        self._note(logging.DEBUG, "handled", task)

    def failed(self, task: Task, error: BaseException) -> None:
        """An attempt failed."""
        task.failures += 1
        task.error = error
        self._failures += 1
        self._consecutive += 1
        self._note(logging.WARNING, "attempt failed", task, error=type(error).__name__)
        self.tell(error, task.delivery.message)

    def parked(self, task: Task, error: BaseException, parking: str) -> None:
        """A message was parked and acknowledged."""
        self._parked += 1
        self._progress = self._clock()
        self._note(logging.ERROR, "parked", task, error=type(error).__name__, parking=parking)

    def ended(self, abandoned: int) -> None:
        """The runtime has ended, and so many handlers had not."""
        self._note(logging.INFO, "ended", abandoned=abandoned)

    def went_back(self, task: Task) -> None:
        """A message will be delivered again; its failures count on then."""
        identifier = task.delivery.message.message_id
        if identifier is None or not task.failures:
            return
        self._went_back[identifier] = task.failures, task.error
        if len(self._went_back) > _REMEMBERED:
            del self._went_back[next(iter(self._went_back))]

    def came_again(self, message: JmsMessage) -> tuple[int, BaseException | None]:
        """How often a message that was just delivered has failed here before, and with what."""
        return self._went_back.pop(message.message_id or "", (0, None))

    def tell(self, error: BaseException, message: JmsMessage | None) -> None:
        """Calls the hook."""
        if self._on_error is None:
            return
        try:
            self._on_error(error, message)
        except Exception as raised:  # noqa: BLE001 - a hook must not end what it watches
            self._note(logging.ERROR, "on_error failed", error=type(raised).__name__)

    def _note(self, level: int, event: str, task: Task | None = None, **facts: Any) -> None:
        facts = {"event": event, "destination": self._destination, **facts}
        if task is not None:
            facts |= {"message_id": task.delivery.message.message_id, "failed_attempts": task.failures}
        log.log(level, "%s: %s", self._destination, event, extra=facts)
