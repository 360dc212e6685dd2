"""What a subscriber may have missed: who tells of it, since when, and whether it is over.

Nothing in JMS numbers the notifications of a topic, so a subscriber cannot see that one is missing. Three signs there
are: a heartbeat that does not come, a sender who says that it loses events, and a provider that fails in between.

| cause | begins | is over |
|---|---|---|
| HEARTBEAT | no heartbeat of a sender, or of anybody so far, for longer than was promised | with the next one |
| SENDER | EventLossOccurred | with EventLossCleared about the same object |
| TRANSPORT | the provider failed, or the connection to a topic that is not durable was lost | with the next message |

When one is over, nothing more is lost; what was lost is not there yet. That is the time to ask for it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from mtosi_jms.notifications.events import Event

log = logging.getLogger(__name__)


class LossCause(enum.Enum):
    """Why events may have been lost; see the table of the module."""

    HEARTBEAT = "heartbeat overdue"
    SENDER = "told by the sender"
    TRANSPORT = "provider interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Events may have been lost, or nothing more is.

    Attributes:
        cause: what shows it.
        sender: senderURI of who is concerned; empty where that cannot be told.
        object_name: whose events they are, as the sender says; empty where it says nothing.
        since: when it was seen, in seconds of the subscriber's clock.
        over: whether nothing more is lost; then `since` is still when it began.
        event: the event that told it; None where none did.
        reason: what the transport said; empty for other causes.
    """

    cause: LossCause
    sender: str = ""
    object_name: str = ""
    since: float
    over: bool = False
    event: Event | None = None
    reason: str = ""


LossHook: TypeAlias = Callable[[Loss], object]
"""Takes each loss when it begins and when it is over, in the thread that receives."""

_Key: TypeAlias = tuple[LossCause, str, str]


class LossWatch:
    """Keeps what is open; for one thread at a time.

    Args:
        hook: told of each change.
        clock: seconds, not running backwards.
        heartbeat: seconds in which each sender is to be heard; None where none was promised.

    Attributes:
        open: the losses that are not over, in the order in which they began.
    """

    def __init__(self, hook: LossHook | None, clock: Callable[[], float], heartbeat: float | None) -> None:
        self._hook = hook
        self._clock = clock
        self._heartbeat = heartbeat
        self._open: dict[_Key, Loss] = {}
        # Before anybody was heard, somebody is to be: the empty name stands for them.
        self._heard: dict[str, float] = {} if heartbeat is None else {"": clock()}

    @property
    def open(self) -> tuple[Loss, ...]:
        """See the class."""
        return tuple(self._open.values())

    def due(self) -> float | None:
        """Seconds until the next heartbeat is overdue; None where none is waited for."""
        times = [time for sender, time in self._heard.items() if (LossCause.HEARTBEAT, sender, "") not in self._open]
        if self._heartbeat is None or not times:
            return None
        return max(0.0, min(times) + self._heartbeat - self._clock())

    def check(self) -> None:
        """Look at the clock: is a heartbeat overdue?"""
        if self._heartbeat is None:
            return
        now = self._clock()
        for sender, time in self._heard.items():
            if now - time >= self._heartbeat:
                self._begin(Loss(cause=LossCause.HEARTBEAT, sender=sender, since=time))

    def heartbeat(self, sender: str, event: Event) -> None:
        """A sender was heard."""
        if self._heartbeat is None:
            return
        self._heard.pop("", None)
        self._heard[sender] = self._clock()
        for key in ((LossCause.HEARTBEAT, "", ""), (LossCause.HEARTBEAT, sender, "")):
            self._end(key, event)

    def told(self, sender: str, event: Any, *, over: bool) -> None:
        """A sender says that events are being lost, or that no more are.

        The end of a loss whose beginning was missed is told too.
        """
        name = str(event.object_name) if getattr(event, "object_name", None) else ""
        loss = Loss(cause=LossCause.SENDER, sender=sender, object_name=name, since=self._clock(), event=event)
        if not over:
            self._begin(loss)
        elif not self._end(self._key(loss), event):
            self._tell(replace(loss, over=True))

    def interrupted(self, reason: str) -> None:
        """The provider failed or was away."""
        self._begin(Loss(cause=LossCause.TRANSPORT, since=self._clock(), reason=reason))

    def received(self) -> None:
        """A message has come: the provider is there."""
        self._end((LossCause.TRANSPORT, "", ""), None)

    def _key(self, loss: Loss) -> _Key:
        return loss.cause, loss.sender, loss.object_name

    def _begin(self, loss: Loss) -> None:
        if self._key(loss) not in self._open:
            self._open[self._key(loss)] = loss
            self._tell(loss)

    def _end(self, key: _Key, event: Event | None) -> bool:
        loss = self._open.pop(key, None)
        if loss is not None:
            self._tell(replace(loss, over=True, event=event))
        return loss is not None

    def _tell(self, loss: Loss) -> None:
        what = "no more events are lost" if loss.over else "events may have been lost"
        log.warning("%s: %s %s%s", what, loss.cause.value, loss.sender, f", {loss.reason}" if loss.reason else "")
        if self._hook is None:
            return
        try:
            self._hook(loss)
        except Exception:
            log.exception("on_loss failed")
