"""Which entries are one message that arrived twice.

A provider delivers again what was not acknowledged, so a message may have landed twice. The same correlationId, the
same batchSequenceNumber and the same body: a duplicate. The same two with another body: a conflict; both are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class EntryKey(NamedTuple):
    """What tells messages apart; the caller reads it from the envelope.

    Attributes:
        correlation_id: the header's correlationId as it came, blanks included; None: a message of its own, like no
            other.
        batch_number: batchSequenceNumber, None where there is none.
        sha256: of the body, in hexadecimal.
    """

    correlation_id: str | None
    batch_number: int | None
    sha256: str


@dataclass(slots=True)
class Group(Generic[T]):
    """Entries that are the same message.

    Attributes:
        key: what they share.
        first: the one that arrived first, to be read.
        duplicates: the others, in the order of arrival.
        conflict: another group has the same correlationId and number, and another body.
    """

    key: EntryKey
    first: T
    duplicates: list[T] = field(default_factory=list)
    conflict: bool = False


def group_entries(items: Iterable[T], key_of: Callable[[T], EntryKey]) -> list[Group[T]]:
    """Groups entries by key, in the order in which each message arrived first.

    Args:
        items: in the order of arrival, of any type; they are kept, so let them be small.
        key_of: reads the key of one.
    """
    groups: list[Group[T]] = []
    by_key: dict[EntryKey, Group[T]] = {}
    by_number: dict[tuple[str, int | None], list[Group[T]]] = {}
    for item in items:
        key = key_of(item)
        known = by_key.get(key)
        if known is not None:
            known.duplicates.append(item)
            continue
        group = Group(key, item)
        groups.append(group)
        if key.correlation_id is not None:
            by_key[key] = group
            by_number.setdefault((key.correlation_id, key.batch_number), []).append(group)
    for rivals in by_number.values():
        for group in rivals:
            group.conflict = len(rivals) > 1
    return groups
