"""What a reply says of its place among the replies to its request (R4, R5, C23, C58), decided here and nowhere else.

Header and JMS properties may both say it; where both do they must agree. A reply that says that it is not the last, or
that it is one of several, never counts as the whole answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, TypeVar

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
    """The place of a reply.

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
    for field, said in ((NUMBER, numbers), (END, ends)):
        if len(set(said.values())) > 1:
            shown = " and ".join(text[:40] for text in said)
            return Place(None, False, f"{field} is {shown}: header and properties disagree")
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
