"""Which pending exchange a reply belongs to (R3, R6, O13, C12, C17): by the header's correlationId, then by
JMSCorrelationID, which peers set to the message id of the request, or echo. The caller does the locking, also around
the orphan hook.

The message id is known only once the provider took the request, and a fast reply may be there first. It is held until
`sent` has named the id of every request that was under way when it came; only then is it an orphan."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from mtosi_jms.errors import ConfigError
from mtosi_jms.patterns._model import P, Reply, ReplyType

E = TypeVar("E")


class Strategy(StrEnum):
    """What replies are matched by (O13e)."""

    BOTH = "both"
    XML = "xml"
    MESSAGE_ID = "message-id"


class OrphanReason(StrEnum):
    """Why a reply belongs to no pending exchange."""

    LATE = "the exchange has ended"
    UNKNOWN = "no exchange of this id is known"
    NO_ID = "the reply carries no id to match by"


@dataclass(frozen=True)
class Matched(Generic[E, P]):
    """A reply and its exchange. `irregular`: it is matched by JMSCorrelationID alone, for the peer did not copy the
    header's correlationId (R3c)."""

    exchange: E
    reply: Reply[P]
    irregular: bool = False


@dataclass(frozen=True)
class OrphanReply(Generic[P]):
    """A reply without an exchange, and why. `supplier`: what `open` was told of the exchange that has ended."""

    reply: Reply[P]
    reason: OrphanReason
    supplier: str = ""


@dataclass(frozen=True)
class HeldReply(Generic[P]):
    """A reply that cannot be told from an orphan before requests under way have got their message ids."""

    reply: Reply[P]


Match: TypeAlias = Matched[E, P] | OrphanReply[P] | HeldReply[P]


@dataclass(slots=True)
class _Entry(Generic[E]):
    exchange: E
    serial: int
    supplier: str
    jms_ids: list[str] = field(default_factory=list)


class PendingExchanges(Generic[E, P]):
    """The exchanges that wait for replies, found by what a reply carries.

    An exchange is `open`ed before its request is sent, mostly told `sent` afterwards, and `close`d when it has ended;
    nothing of it stays but its ids, among the last `remember` ones, so that a late reply is known for one.

    Args:
        strategy: what to match by; BOTH tries the header's correlationId first.
        on_orphan: called with every orphan; it may be a list's `append`.
        remember: how many ids of ended exchanges are kept.
        hold: how many replies are held at most while message ids are awaited; beyond it the oldest is an orphan.

    Attributes:
        orphans: how many orphans there were, by reason.
    """

    def __init__(
        self,
        strategy: Strategy | str = Strategy.BOTH,
        *,
        on_orphan: Callable[[OrphanReply[P]], object] | None = None,
        remember: int = 1024,
        hold: int = 1024,
    ) -> None:
        try:
            self.strategy = Strategy(strategy)
        except ValueError:
            raise ConfigError(f"correlation must be one of {', '.join(Strategy)}, not {strategy!r}") from None
        self.orphans: dict[OrphanReason, int] = dict.fromkeys(OrphanReason, 0)
        self._on_orphan = on_orphan
        self._entries: dict[str, _Entry[E]] = {}
        self._by_jms_id: dict[str, str] = {}
        self._unsent: dict[str, int] = {}
        self._serial = 0
        self._held: deque[tuple[int, Reply[P]]] = deque()
        self._hold = hold
        self._ended: OrderedDict[str, str] = OrderedDict()
        self._remember = remember

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, correlation_id: object) -> bool:
        return correlation_id in self._entries

    def __iter__(self) -> Iterator[E]:
        """The pending exchanges, oldest first."""
        return iter([entry.exchange for entry in self._entries.values()])

    @property
    def held(self) -> int:
        """How many replies are held for requests under way."""
        return len(self._held)

    def open(
        self,
        correlation_id: str,
        exchange: E,
        *,
        jms_ids: Iterable[str] = (),
        awaits_id: bool = True,
        supplier: str = "",
    ) -> None:
        """Enter an exchange; its request may be sent now.

        Args:
            correlation_id: correlationId of the request, compared as it is, blanks included.
            exchange: any object.
            jms_ids: values of JMSCorrelationID that a reply may carry and that are known before sending, such as a
                JMSCorrelationID of the client's own making.
            awaits_id: whether `sent` will be told what message id the request got; where not, it need not be called.
            supplier: names who answers; replies that come too late are given with it.

        Raises:
            ConfigError: an empty id, or one that is pending: replies could not be told apart (R3b).
        """
        jms = list(dict.fromkeys(jms_ids))
        if not correlation_id:
            raise ConfigError("a request must carry a correlationId")
        if correlation_id in self._entries or not self._by_jms_id.keys().isdisjoint(jms):
            raise ConfigError(f"an exchange with correlationId {correlation_id!r} or its message id is pending")
        self._serial += 1
        self._entries[correlation_id] = _Entry(exchange, self._serial, supplier, jms)
        self._by_jms_id.update(dict.fromkeys(jms, correlation_id))
        if awaits_id and self.strategy is not Strategy.XML:
            self._unsent[correlation_id] = self._serial

    def sent(self, correlation_id: str, message_id: str | None) -> list[Matched[E, P]]:
        """The provider took the request, with this JMSMessageID, or None where the wire does not tell (C62). Returns
        the held replies to deliver now, in order of arrival."""
        entry = self._entries.get(correlation_id)
        if entry is not None and message_id and message_id not in self._by_jms_id:
            entry.jms_ids.append(message_id)
            self._by_jms_id[message_id] = correlation_id
        elif entry is None and message_id:
            # It ended before the provider told: a reply by this id is late, not unknown.
            self._forget(self._ended.get(correlation_id, ""), message_id)
        self._unsent.pop(correlation_id, None)
        return self._settle()

    def match(self, reply: Reply[P]) -> Match[E, P]:
        """Find the exchange of a reply.

        A correlationId of a pending exchange decides; so does one of an ended exchange (late). Otherwise, with an
        absent or unknown one, JMSCorrelationID decides: it names our own message, so it cannot cross.

        Returns:
            Matched; or HeldReply, which a later `sent` or `close` settles; or OrphanReply, already counted and
            given to the hook.
        """
        found = self._find(reply)
        if isinstance(found, OrphanReply) and found.reason is OrphanReason.UNKNOWN and self._may_be_early(reply):
            self._held.append((self._serial, reply))
            if len(self._held) > self._hold:
                self._orphan(self._held.popleft()[1], OrphanReason.UNKNOWN)
            return HeldReply(reply)
        if isinstance(found, OrphanReply):
            self._orphan(reply, found.reason)
        return found

    def close(self, correlation_id: str) -> list[Matched[E, P]]:
        """The exchange has ended; from now on its replies are late orphans. Unknown ids are let pass. Returns as `sent`
        does."""
        entry = self._entries.pop(correlation_id, None)
        if entry is None:
            return []
        for jms_id in entry.jms_ids:
            del self._by_jms_id[jms_id]
        self._forget(entry.supplier, correlation_id, *entry.jms_ids)
        self._unsent.pop(correlation_id, None)
        return self._settle()

    def orphan(self, reply: Reply[P]) -> None:
        """Count a reply that an exchange itself refused as late, and give it to the hook."""
        self._orphan(reply, OrphanReason.LATE)

    def _find(self, reply: Reply[P]) -> Matched[E, P] | OrphanReply[P]:
        xml = reply.correlation_id if self.strategy is not Strategy.MESSAGE_ID else None
        jms = reply.jms_correlation_id if self.strategy is not Strategy.XML else None
        if xml and xml in self._entries:
            return Matched(self._entries[xml].exchange, reply)
        if xml and xml in self._ended:
            return OrphanReply(reply, OrphanReason.LATE, self._ended[xml])
        if jms and jms in self._by_jms_id:
            pending = self._by_jms_id[jms]
            return Matched(self._entries[pending].exchange, reply, irregular=self._irregular(reply, pending))
        if jms and jms in self._entries and self.strategy is Strategy.BOTH:  # copied from the header
            return Matched(self._entries[jms].exchange, reply, irregular=self._irregular(reply, jms))
        if jms and jms in self._ended:
            return OrphanReply(reply, OrphanReason.LATE, self._ended[jms])
        return OrphanReply(reply, OrphanReason.UNKNOWN if xml or jms else OrphanReason.NO_ID)

    def _irregular(self, reply: Reply[P], pending: str) -> bool:
        if self.strategy is Strategy.MESSAGE_ID:
            return False
        if not reply.correlation_id and reply.message_type is ReplyType.ERROR:
            return False  # faults of many peers carry no correlationId (C17)
        return reply.correlation_id != pending

    def _may_be_early(self, reply: Reply[P]) -> bool:
        return bool(self._unsent and reply.jms_correlation_id)

    def _settle(self) -> list[Matched[E, P]]:
        """Deliver what can be told now; orphan what cannot and came before the oldest request under way."""
        if not self._held:
            return []
        oldest = next(iter(self._unsent.values()), None)
        ready: list[Matched[E, P]] = []
        waiting: deque[tuple[int, Reply[P]]] = deque()
        for serial, reply in self._held:
            found = self._find(reply)
            if isinstance(found, Matched):
                ready.append(found)
            elif found.reason is OrphanReason.UNKNOWN and oldest is not None and oldest <= serial:
                waiting.append((serial, reply))
            else:
                self._orphan(reply, found.reason)
        self._held = waiting
        return ready

    def _orphan(self, reply: Reply[P], reason: OrphanReason) -> None:
        self.orphans[reason] += 1
        if self._on_orphan is not None:
            self._on_orphan(OrphanReply(reply, reason))

    def _forget(self, supplier: str, *ids: str) -> None:
        for one in ids:
            self._ended[one] = supplier
            self._ended.move_to_end(one)
        while len(self._ended) > self._remember:
            self._ended.popitem(last=False)
