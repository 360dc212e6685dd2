"""Attempts to connect, each in a thread of its own, because a client of Java's may take longer than its time-out. An
attempt whose time is over goes on until Java returns, and closes what it has opened. Until then a provider has one
attempt at a time beside it in this process, and none beside two such attempts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from mtosi_jms.errors import TransportError
from mtosi_jms.transport.jvm._link import Link

_MOST: Final = 2
_changed: Final = threading.Condition()
_open: Final[dict[Attempt, None]] = {}


@dataclass(slots=True, eq=False, repr=False)  # `provider` may hold a password
class Attempt:
    """One attempt to open a link to a provider, in a thread that discards a link which came too late."""

    provider: Hashable
    connection: str
    shown: str
    open_link: Callable[[], Link]
    discard: Callable[[Link], None]
    outcome: Link | BaseException | None = None
    is_late: bool = False

    def link(self, seconds: float) -> Link:
        """Waits for the attempts before it, then makes this one, within so many seconds. Raises MtosiError."""
        deadline = time.monotonic() + seconds
        with _changed:
            if not _changed.wait_for(self._may_begin, seconds):
                raise TransportError(f"{self.shown}: earlier attempts to connect have not returned from Java")
            _open[self] = None
            threading.Thread(target=self._run, name=f"connects-{self.connection}", daemon=True).start()
            try:
                _changed.wait_for(lambda: self.outcome is not None, deadline - time.monotonic())
            finally:  # also if a signal's handler raises
                self.is_late = self.outcome is None
        if self.outcome is None:
            raise TransportError(f"{self.shown}: no connection within {seconds:g} s")
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def _may_begin(self) -> bool:
        others = [one for one in _open if one.provider == self.provider]
        late = [one for one in others if one.is_late]
        if any(one.connection == self.connection for one in late):
            return False
        return not late or len(late) == len(others) < _MOST

    def _run(self) -> None:
        try:
            outcome: Link | BaseException = self.open_link()
        except BaseException as error:  # noqa: BLE001 - for the thread that waits
            outcome = error
        with _changed:
            self.outcome = outcome
            is_late = self.is_late
            if not is_late:
                del _open[self]
            _changed.notify_all()
        if is_late:
            try:
                if isinstance(outcome, Link):
                    self.discard(outcome)
            finally:
                with _changed:
                    del _open[self]
                    _changed.notify_all()
