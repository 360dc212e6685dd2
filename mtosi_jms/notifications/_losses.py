"""The losses of a subscriber: which events may be missing, since when, and whether the loss is over.

JMS does not number the notifications of a topic, so a subscriber cannot see that one is missing. It uses three signs: a
heartbeat that does not come, a sender that reports losses, and a provider that fails.

| cause | begins | is over |
|---|---|---|
| HEARTBEAT | no heartbeat of a sender, or of anybody so far, for longer than was promised | with the next one |
| SENDER | EventLossOccurred | with EventLossCleared about the same object |
| TRANSPORT | the provider failed, or the connection was lost and may not have kept all | with the next message |

When a loss is over, no more events are lost, but those that were lost are still missing: ask for them then.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from mtosi_jms.notifications._events import Event, object_name_of

log = logging.getLogger(__package__)


class LossCause(enum.Enum):
    """Why events may have been lost; see the table of the module."""

    HEARTBEAT = "heartbeat overdue"
    SENDER = "told by the sender"
    TRANSPORT = "provider interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Events may have been lost, or the loss is over.

    Attributes:
        cause: the sign by which it was noticed.
        sender: senderURI of the publisher concerned; empty if not known.
        object_name: name of the object whose events are lost; empty if the sender does not say.
        since: when it was noticed, in seconds of the subscriber's clock.
        over: whether no more events are lost; `since` is still the time when the loss was noticed.
        event: the event that reported the loss, or its end; None if there was none.
        reason: the transport's error; empty for other causes.
    """

    cause: LossCause
    sender: str = ""
    object_name: str = ""
    since: float
    over: bool = False
    event: Event | None = None
    reason: str = ""


LossHook: TypeAlias = Callable[[Loss], object]
"""Called with each loss when it begins and when it is over, in the thread that receives."""

_Key: TypeAlias = tuple[LossCause, str, str]


class LossWatch:
    """The losses of one subscriber; for one thread at a time. `heartbeat`: seconds that were promised, or None.
    `keeps_durable`: the provider keeps all for a durable subscription during a reconnect."""

    def __init__(self, hook: LossHook | None, clock: Callable[[], float], heartbeat: float | None) -> None:
        self.keeps_durable = False
        self._hook = hook
        self._clock = clock
        self._heartbeat = heartbeat
        self._open: dict[_Key, Loss] = {}
        # Until the first heartbeat, that of any sender is awaited, under the empty name.
        self._seen_at: dict[str, float] = {} if heartbeat is None else {"": clock()}

    @property
    def open(self) -> tuple[Loss, ...]:
        """The losses that are not over, in the order in which they began."""
        return tuple(self._open.values())

    def due(self) -> float | None:
        times = [time for sender, time in self._seen_at.items() if (LossCause.HEARTBEAT, sender, "") not in self._open]
        if self._heartbeat is None or not times:
            return None
        return max(0.0, min(times) + self._heartbeat - self._clock())

    def check(self) -> None:
        if self._heartbeat is None:
            return
        now = self._clock()
        for sender, time in self._seen_at.items():
            if now - time >= self._heartbeat:
                self._begin(Loss(cause=LossCause.HEARTBEAT, sender=sender, since=time))

    def heartbeat(self, sender: str, event: Event) -> None:
        if self._heartbeat is None:
            return
        self._seen_at.pop("", None)
        self._seen_at[sender] = self._clock()
        for concerned in ("", sender):
            self._end((LossCause.HEARTBEAT, concerned, ""), event)

    def loss_reported(self, sender: str, event: Event, *, over: bool) -> None:
        """Note that a sender reports a loss of events, or its end, even if its beginning was missed."""
        name = object_name_of(event)
        loss = Loss(cause=LossCause.SENDER, sender=sender, object_name=name, since=self._clock(), event=event)
        if not over:
            self._begin(loss)
        elif not self._end(_key_of(loss), event):
            self._report(replace(loss, over=True))

    def reconnected(self, reason: str) -> None:
        """Note a loss, unless a durable subscription has kept all that was sent meanwhile."""
        if not self.keeps_durable:
            self.interrupted(reason)

    def interrupted(self, reason: str) -> None:
        self._begin(Loss(cause=LossCause.TRANSPORT, since=self._clock(), reason=reason))

    def received(self) -> None:
        self._end((LossCause.TRANSPORT, "", ""), None)

    def _begin(self, loss: Loss) -> None:
        if _key_of(loss) not in self._open:
            self._open[_key_of(loss)] = loss
            self._report(loss)

    def _end(self, key: _Key, event: Event | None) -> bool:
        loss = self._open.pop(key, None)
        if loss is not None:
            self._report(replace(loss, over=True, event=event))
        return loss is not None

    def _report(self, loss: Loss) -> None:
        what = "no more events are lost" if loss.over else "events may have been lost"
        log.warning("%s: %s %s%s", what, loss.cause.value, loss.sender, f", {loss.reason}" if loss.reason else "")
        if self._hook is None:
            return
        try:
            self._hook(loss)
        except Exception:
            log.exception("on_loss failed")


def _key_of(loss: Loss) -> _Key:
    return loss.cause, loss.sender, loss.object_name
