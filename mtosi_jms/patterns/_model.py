"""The values that the pattern machines take and give: replies in, actions out, and the clocks between them. A payload
of any type `P` only passes through; time is seconds of any clock that does not run backwards.

The generic ones have no slots: before Python 3.13 `Reply[str](...)` fails on a frozen dataclass with slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError, ExchangeError

V = TypeVar("V")

NUMBER: Final = "batchSequenceNumber"
END: Final = "batchSequenceEndOfReply"
PATTERN: Final = "communicationPattern"

_NUMBER: Final = re.compile(r"(?:\+?0*(\d{1,10})|-0+)(?:\.0*)?", re.ASCII)
_LARGEST: Final = 2**32 - 1
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}
_SEVERAL: Final = frozenset({"multiplebatchresponse", "multipleresponse"})


class Standing(StrEnum):
    """What a reply is by its own words."""

    WHOLE = "the whole answer"
    BATCH = "a batch"
    LAST = "the last batch"
    UNPLACED = "one of several, without a number"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a reply among the replies to its request (R4, R5, C23, C58). Header and JMS properties may both say
    it; where both do they must agree. A reply that says that it is not the last, or one of several, never counts as the
    whole answer.

    Attributes:
        number: batchSequenceNumber; None: absent or not a number.
        end: batchSequenceEndOfReply. For a reply without a number, False also where its pattern or a field that cannot
            be read says that it is one of several. None: nothing is said.
        contradiction: where header and properties disagree; empty where they do not.
        FIELDS: the header fields that say it.
    """

    FIELDS: ClassVar = (NUMBER, END, PATTERN)

    number: int | None
    end: bool | None
    contradiction: str = ""


_NOWHERE: Final = Place(None, None)


def standing_of(number: int | None, end: bool | None) -> Standing:
    """Return what a reply is, given the values of `Place`."""
    if number is None:
        return Standing.UNPLACED if end is False else Standing.WHOLE
    return Standing.LAST if end else Standing.BATCH


def read_place(*sources: Mapping[str, object]) -> Place:
    """Return the place that a reply states. `sources`: header and properties, by XML names of header fields."""
    for source in sources:
        said_nothing = source.get(NUMBER) is None and source.get(END) is None
        if not said_nothing or source.get(PATTERN) not in (None, "SimpleResponse"):
            break
    else:
        return _NOWHERE  # of most replies
    numbers, ends = _read(NUMBER, sources, _whole_number), _read(END, sources, _truth)
    for name, said in ((NUMBER, numbers), (END, ends)):
        if len(set(said.values())) > 1:
            shown = " and ".join(text[:40] for text in said)
            return Place(None, False, f"{name} is {shown}: header and properties disagree")
    number, end = next(iter(numbers.values()), None), next(iter(ends.values()), None)
    if number is None and end is not False:
        several = any(_text(source.get(PATTERN)).lower() in _SEVERAL for source in sources)
        if numbers or (end is None and (ends or several)):
            return Place(None, False)
    return Place(number, end)


def _read(
    field: str, sources: tuple[Mapping[str, object], ...], value_of: Callable[[str], V | None]
) -> dict[str, V | None]:
    """Return what is said of a field: texts and their values; None for a text that cannot be read."""
    return {text: value_of(text) for source in sources if (text := _text(source.get(field)))}


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _whole_number(text: str) -> int | None:
    """Return the number in a text: an unsignedInt of XML, or such a number with a fraction of zero."""
    found = _NUMBER.fullmatch(text)
    number = int(found[1] or "0") if found else None
    return None if number is None or number > _LARGEST else number


def _truth(text: str) -> bool | None:
    return _TRUTH.get(text.lower())


P = TypeVar("P")
_COARSE: Final = 9.95


class ReplyType(StrEnum):
    """The two values of msgType that a reply may have."""

    RESPONSE = "RESPONSE"
    ERROR = "ERROR"


@dataclass(frozen=True, kw_only=True)
class Reply(Generic[P]):
    """One received message, reduced to what correlation and the patterns look at.

    Attributes:
        correlation_id: correlationId of the MTOSI header as it came, blanks included; None or empty counts as absent.
        batch_number: batchSequenceNumber, None where absent.
        end_of_reply: batchSequenceEndOfReply, None where absent; see `read_place`.
        contradiction: what header and properties say differently about the place of the reply; empty: nothing.
        payload: what the caller wants back when the reply is released.
        body_digest: digest of the body by which a duplicate is told from a conflict; empty: unknown, and then every
            second reply of a number counts as a duplicate.
        has_body: False for a reply whose SOAP body is empty; only such a reply can be an acknowledgement (C61).
        object_count: managed objects in the reply, None where not counted (only `BatchRules.strict_size` asks).
        by_iterator: whether the reply names an iterator, from which the caller gets what follows.
        run: the same in all replies of one answer, another one when the supplier answers the request again; empty:
            unknown, and such replies count as those of one run.
    """

    payload: P
    correlation_id: str | None = None
    jms_correlation_id: str | None = None
    message_type: ReplyType = ReplyType.RESPONSE
    batch_number: int | None = None
    end_of_reply: bool | None = None
    contradiction: str = ""
    body_digest: bytes | str = b""
    has_body: bool = True
    object_count: int | None = None
    by_iterator: bool = False
    run: str = ""


class Clock(StrEnum):
    """What ran out; the value stands in the error's `clock`."""

    FIRST_REPLY = "first reply"
    GAP = "gap"
    GRACE = "grace"
    TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long an exchange waits, in seconds; None: without limit (C60).

    Attributes:
        first_reply: from when the request was sent to the first reply.
        gap: from one reply that brought something new to the next.
        total: from the call to the end, sending the request included; replies that keep coming do not move it.
        grace: how long a batch 0 may still come where the peer is known to count from 0 and all others are there
            (C23); replaces `gap` in that one situation when it is shorter.

    Raises:
        ConfigError: a limit that is not a positive number.
    """

    first_reply: float | None = BOUNDS.first_reply
    gap: float | None = BOUNDS.reply_gap
    total: float | None = None
    grace: float | None = BOUNDS.batch_grace

    def of(self, clock: Clock) -> str:
        """The seconds of one of the clocks, rounded, for people."""
        seconds: float | None = getattr(self, clock.name.lower())
        return rounded(seconds or 0.0)

    def __post_init__(self) -> None:
        for name in ("first_reply", "gap", "total", "grace"):
            value: object = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise ConfigError(f"limit {name} must be a number of seconds above 0, not {value!r}")


def rounded(seconds: float) -> str:
    """Seconds for people: whole ones from ten on, below that two digits."""
    return f"{seconds:.0f}" if seconds >= _COARSE else f"{seconds:.2g}"


def earliest(*candidates: tuple[float | None, float | None, Clock]) -> tuple[float, Clock] | None:
    """The first deadline of (start, limit, clock) triples. On a tie the first triple wins, whatever the rounding."""
    found: tuple[float, Clock] | None = None
    for start, limit, clock in candidates:
        if start is None or limit is None:
            continue
        if found is None or start + limit < found[0]:
            found = (start + limit, clock)
    return found


@dataclass(frozen=True)
class Release(Generic[P]):
    """Hand this reply to the application: its turn has come. `number` is None for a reply without batch fields."""

    payload: P
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Complete:
    """The exchange ended well; nothing more will be released."""


@dataclass(frozen=True)
class Fault(Generic[P]):
    """The peer answered with an ERROR, which ends the exchange (C59); `held`: batches whose turn never came."""

    payload: P
    held: Mapping[int, P] = field(default_factory=dict)


@dataclass(frozen=True)
class Fail(Generic[P]):
    """The exchange ended without a usable end: raise `error`. `held`: batches whose turn never came, by number."""

    error: ExchangeError
    held: Mapping[int, P] = field(default_factory=dict)


@dataclass(frozen=True)
class Duplicate(Generic[P]):
    """The same batch again, with the same body: dropped and counted (P32)."""

    reply: Reply[P]


@dataclass(frozen=True)
class Conflict(Generic[P]):
    """A batch number that was already taken, with another body or another end mark; followed by a Fail, or the first
    one stands."""

    reply: Reply[P]


@dataclass(frozen=True)
class Stray(Generic[P]):
    """A reply of this exchange that has no place in the sequence, by `rule`; not released, never silently lost."""

    reply: Reply[P]
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Flag:
    """Something irregular that was accepted all the same, by a rule or decision such as C58: to be reported as a
    warning."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Orphan(Generic[P]):
    """A reply that came after the exchange had ended: for the orphan hook (C58)."""

    reply: Reply[P]


Action: TypeAlias = (
    Release[P] | Complete | Fault[P] | Fail[P] | Duplicate[P] | Conflict[P] | Stray[P] | Flag | Orphan[P]
)
Actions: TypeAlias = tuple[Action[P], ...]


class Exchange(Protocol[P]):
    """What the two machines have in common: all that a requestor needs to pump either."""

    correlation_id: str
    timeouts: Timeouts

    @property
    def finished(self) -> bool:
        """Whether the exchange has ended, well or not."""

    @property
    def deadline(self) -> tuple[float, Clock] | None:
        """When `tick` will end the exchange, and by which clock; None: never."""

    def sent(self, now: float) -> None:
        """The request was sent at `now`, in seconds; until it is, it counts as sent at the beginning."""

    def receive(self, reply: Reply[P], now: float) -> Actions[P]:
        """A reply of this exchange came at `now`, in seconds."""

    def tick(self, now: float) -> Actions[P]:
        """The time is `now`, in seconds; nothing happens before `deadline`."""

    def exhaust(self) -> Actions[P]:
        """No reply can come any more."""

    def abandon(self) -> None:
        """The caller gave up."""


class CommunicationPattern(StrEnum):
    """The four values of communicationPattern (P2)."""

    SIMPLE_RESPONSE = "SimpleResponse"
    MULTIPLE_BATCH_RESPONSE = "MultipleBatchResponse"
    BULK_RESPONSE = "BulkResponse"
    NOTIFICATION = "Notification"


_PATTERNS: Final[Mapping[str, CommunicationPattern]] = {pattern.value: pattern for pattern in CommunicationPattern}


def parse_pattern(text: str | None) -> tuple[CommunicationPattern, Flag | None]:
    """A received communicationPattern, read leniently, and what to warn of.

    `MultipleResponse`, which the older guides print, is taken for MultipleBatchResponse (C51); an absent or unknown
    value for SimpleResponse: one answer is what every peer can take."""
    value = (text or "").strip()
    if (known := _PATTERNS.get(value)) is not None:
        return known, None
    if value == "MultipleResponse":
        return CommunicationPattern.MULTIPLE_BATCH_RESPONSE, Flag("C51", "MultipleResponse means MultipleBatchResponse")
    problem = f"{value!r} is not a communication pattern" if value else "no communication pattern is given"
    return CommunicationPattern.SIMPLE_RESPONSE, Flag("P2", f"{problem}; taken for SimpleResponse")
