"""Answers of wrong suppliers, made at random from a seed, and a small model of when they may count as whole.

A case is two answers of one supplier, one after the other. Each is right at first; then replies are lost, repeated and
moved, numbers, end marks and patterns are changed, left out or spelled otherwise, in the header, in the properties or
in both. The model knows nothing of how the product reads them: it has the words that the maker chose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeVar

from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.message import MessageType

BAD: Final = "no value"
"""What a field says that nobody can read."""
Number = int | None | Literal["no value"]
End = bool | None | Literal["no value"]
T = TypeVar("T")

HDR: Final = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
_ENDS: Final[dict[End, tuple[str, ...]]] = {True: ("true", "1", " true "), False: ("false", "0"), BAD: ("perhaps",)}
_PATTERNS: Final = {True: ("MultipleBatchResponse", "MultipleResponse"), False: ("SimpleResponse",)}
_NUMBERS: Final = ("{}", "+{}", " {} ", "{}.0", "0{}")


@dataclass(frozen=True)
class Words:
    """What one place, header or properties, says of a reply.

    Attributes:
        number, end: the values that are meant; None: nothing is said.
        several: whether the pattern is that of several replies; None: no pattern.
        texts: how it is written, by XML names.
    """

    number: Number = None
    end: End = None
    several: bool | None = None
    texts: tuple[tuple[str, str], ...] = ()


NOTHING: Final = Words()


@dataclass(frozen=True)
class Said:
    """A reply, in header, properties and content."""

    content: str
    header: Words
    properties: Words = NOTHING
    encoding: str = "utf-8"

    def is_unplaced(self, *, with_properties: bool) -> bool:
        """Whether it is one of several by its own words, and nobody can say which."""
        words = self._words(with_properties)
        for said in ({one.number for one in words} - {None}, {one.end for one in words} - {None}):
            if len(said) > 1:
                return True
        number, end = self.place(with_properties=with_properties)
        if number == BAD:
            return True
        quiet = end is None or end == BAD
        return number is None and (end is False or end == BAD or (quiet and any(one.several for one in words)))

    def place(self, *, with_properties: bool) -> tuple[Number, End]:
        """Number and end mark, of the first that says them."""
        words = self._words(with_properties)
        number = next((one.number for one in words if one.number is not None), None)
        return number, next((one.end for one in words if one.end is not None), None)

    def _words(self, with_properties: bool) -> list[Words]:
        return [self.header, self.properties] if with_properties else [self.header]


def is_whole(replies: Sequence[Said], first: int | None, *, from_zero: bool, with_properties: bool = True) -> bool:
    """The model: whether so many replies, in any order, are a whole answer.

    Args:
        replies: what came.
        first: number of the first batch, if it is agreed.
        from_zero: whether the supplier is known to count from 0.
        with_properties: whether the reader sees the properties.
    """
    if not replies or any(reply.is_unplaced(with_properties=with_properties) for reply in replies):
        return False
    places = [(*reply.place(with_properties=with_properties), reply.content) for reply in replies]
    if all(number is None for number, _, _ in places):
        return len({content for _, _, content in places}) == 1
    batches: dict[Number, set[tuple[bool, str]]] = {}
    for number, end, content in places:
        batches.setdefault(number, set()).add((end is True, content))
    if None in batches or any(len(different) > 1 for different in batches.values()):
        return False
    ends = [number for number, different in batches.items() if next(iter(different))[0]]
    base = first if first is not None else 0 if from_zero or 0 in batches else 1
    if len(ends) != 1 or not isinstance(ends[0], int):
        return False
    return len(batches) == ends[0] - base + 1 and all(number in range(base, ends[0] + 1) for number in batches)


def contents(replies: Sequence[Said]) -> list[str]:
    """The contents of a whole answer, in order."""
    found = {reply.place(with_properties=True)[0]: reply.content for reply in reversed(replies)}
    return [found[number] for number in sorted(found, key=lambda number: number if isinstance(number, int) else 0)]


def heard(replies: Sequence[Said], first: int | None, *, from_zero: bool) -> list[str] | None:
    """The model of a requestor, which gets replies one by one: the contents of a whole answer, None without one."""
    for count in range(1, len(replies) + 1):
        came = replies[:count]
        numbers = [reply.place(with_properties=True)[0] for reply in came]
        overtaken = 0 in numbers and 1 in numbers and numbers.index(1) < numbers.index(0)
        if overtaken and first is None and not from_zero:
            return None
        if is_whole(came, first, from_zero=from_zero):
            return contents(came)
    return None


@dataclass
class Answer:
    """One answer.

    Attributes:
        sent: the replies that the supplier sent, in order.
        arrived: those that arrived, some of them more than once, in this order.
        is_honest: whether all that was said is true, and said.
    """

    sent: list[Said]
    arrived: list[Said] = field(default_factory=list)
    is_honest: bool = True


@dataclass
class Case:
    """Two answers of one supplier, and what the reader was told about its first number."""

    seed: int
    base: int
    first: int | None
    answers: list[Answer]

    def __str__(self) -> str:
        lines = [f"case {self.seed}: counts from {self.base}, first_batch {self.first}"]
        for number, answer in enumerate(self.answers):
            lines += [f"  answer {number}, honest: {answer.is_honest}; sent:", *(f"    {one}" for one in answer.sent)]
            lines += ["  arrived:", *(f"    {one}" for one in answer.arrived)]
        return "\n".join(lines)


class Maker:
    """Makes a case from a seed."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._seed = seed
        self._is_plain = self._dice.random() < 0.75
        self._encoding = "utf-8" if self._dice.random() < 0.9 else "utf-16"

    def case(self) -> Case:
        base = self._dice.choice((0, 0, 1, 1, 1))
        first = self._dice.choice((None, None, None, base, 1 - base))
        return Case(self._seed, base, first, [self._answer(base) for _ in range(2)])

    def _answer(self, base: int) -> Answer:
        dice = self._dice
        where = dice.choice(("header", "header", "properties", "both", "mixed"))
        last = base + dice.choice((0, 0, 1, 2, 3, 4))
        says = {what: dice.random() < share for what, share in (("number", 0.85), ("end", 0.9), ("several", 0.8))}
        sent = []
        for number in range(base, last + 1):
            said_number, said_end = number if says["number"] else None, number == last if says["end"] else None
            words = Words(said_number, said_end, True if says["several"] else dice.choice((None, False)))
            sent.append(self._placed(f"NE-{number}", words, where))
        answer = Answer(sent, list(sent), is_honest=says["number"] and says["end"])
        for _ in range(dice.choice((0, 0, 1, 1, 2, 3))):
            dice.choice((self._lose, self._lose, self._repeat, self._move, self._move, self._lie, self._lie))(answer)
        return answer

    def _placed(self, content: str, words: Words, where: str) -> Said:
        written = [self._written(words) for _ in range(2)]
        if where == "mixed":
            number, rest = replace(words, end=None, several=None), replace(words, number=None)
            written = [self._written(one) for one in self._dice.sample((number, rest), 2)]
        header = written[0] if where != "properties" else NOTHING
        properties = written[1] if where != "header" else NOTHING
        return Said(content, header, properties, self._encoding)

    def _written(self, words: Words) -> Words:
        texts = {}
        if words.several is not None:
            texts["communicationPattern"] = self._spelled(_PATTERNS[words.several])
        if words.number is not None:
            odd = ("one", "1.5", "-1", "99999999999")
            number = odd if words.number == BAD else [form.format(words.number) for form in _NUMBERS]
            texts["batchSequenceNumber"] = self._spelled(number)
        if words.end is not None:
            texts["batchSequenceEndOfReply"] = self._spelled(_ENDS[words.end])
        return replace(words, texts=tuple(texts.items()))

    def _spelled(self, forms: Sequence[str]) -> str:
        return forms[0] if self._is_plain else self._dice.choice(forms)

    def _lose(self, answer: Answer) -> None:
        if answer.arrived:
            answer.arrived.pop(self._dice.randrange(len(answer.arrived)))

    def _repeat(self, answer: Answer) -> None:
        if answer.arrived:
            answer.arrived.insert(self._dice.randint(0, len(answer.arrived)), self._dice.choice(answer.arrived))

    def _move(self, answer: Answer) -> None:
        self._dice.shuffle(answer.arrived)

    def _lie(self, answer: Answer) -> None:
        """Change what one of the replies says, wherever it came; sometimes beside the right one."""
        if not answer.arrived:
            return
        answer.is_honest = False
        dice, at = self._dice, self._dice.randrange(len(answer.arrived))
        before = answer.arrived[at]
        side = dice.choice(("header", "properties")) if before.properties != NOTHING else "header"
        words: Words = getattr(before, side)
        number = words.number
        lies: list[Callable[[], Said]] = [
            lambda: self._with(before, side, replace(words, end=dice.choice((None, True, False, BAD)))),
            lambda: self._with(before, side, replace(words, several=dice.choice((None, True, False)))),
            lambda: replace(before, content=f"{before.content}'"),
            lambda: self._with(before, side, replace(words, number=self._other(number))),
            lambda: self._with(before, "properties", Words(self._other(number), words.end, words.several)),
        ]
        lie = dice.choice(lies)()
        if dice.random() < 0.3:
            answer.arrived.insert(dice.randint(0, len(answer.arrived)), lie)
        else:
            answer.arrived[at] = lie

    def _with(self, said: Said, side: str, words: Words) -> Said:
        written = self._written(words)
        return replace(said, header=written) if side == "header" else replace(said, properties=written)

    def _other(self, number: Number) -> Number:
        near = [number - 1, number + 1] if isinstance(number, int) and number else [1, 2]
        return self._dice.choice((*near, 0, None, BAD, 4_000_000_000))


def number_of(said: Said, *, with_properties: bool = True) -> Number:
    """The number that a reader can know."""
    if said.is_unplaced(with_properties=with_properties):
        return None
    return said.place(with_properties=with_properties)[0]


def envelope(said: Said, correlation_id: str, sender: str) -> bytes:
    """The envelope of a reply."""
    fields = "".join(f"<h:{name}>{text}</h:{name}>" for name, text in said.header.texts)
    document = (
        f'<?xml version="1.0" encoding="{said.encoding}"?>'
        f'<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="{HDR}"><S:Header><h:header>'
        "<h:activityName>getAllManagedElements</h:activityName><h:msgName>getAllManagedElementsResponse</h:msgName>"
        f"<h:msgType>RESPONSE</h:msgType><h:senderURI>{sender}</h:senderURI>"
        f"<h:correlationId>{correlation_id}</h:correlationId>{fields}</h:header></S:Header><S:Body>"
        '<getAllManagedElementsResponse xmlns="http://www.tmforum.org/mtop/mri/xsd/mer/v1"><meList>'
        '<me xmlns="http://www.tmforum.org/mtop/nrf/xsd/me/v1"><name xmlns="http://www.tmforum.org/mtop/fmw/xsd/coi/v1">'
        '<rdn xmlns="http://www.tmforum.org/mtop/fmw/xsd/nam/v1"><type>ME</type>'
        f"<value>{said.content}</value></rdn></name></me></meList></getAllManagedElementsResponse></S:Body></S:Envelope>"
    )
    return document.encode(said.encoding)


def message(said: Said, correlation_id: str, sender: str) -> JmsMessage:
    """The JMS message of a reply."""
    properties = {f"MTOSI_{name}": text for name, text in said.properties.texts}
    body = envelope(said, correlation_id, sender)
    return JmsMessage(body=body, properties=properties, message_type=MessageType.BYTES)
