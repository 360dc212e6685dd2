"""The ids by which a second copy of a message is known."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from typing import Final
from uuid import UUID

from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.reliable import SEQUENCE_NUMBER
from mtosi_jms.jms.ids import random_id

_NAMES: Final = frozenset({"JMSMessageID", "notificationId"})
_REMEMBERED: Final = 10_000


class Identities:
    """Ids of events: of what they say, and of how many of the last 10,000 that were taken say the same.

    An event that was not taken is not counted: when it comes again it has its id. An event that names itself has it
    after a crash too; the ids of others begin with something random, since they must not be those of earlier ones.
    """

    def __init__(self) -> None:
        self._own = random_id()
        self._taken: OrderedDict[bytes, int] = OrderedDict()
        self._given: list[bytes] = []

    def of(self, events: Sequence[StructuredEvent]) -> list[str]:
        """The ids of events that are not taken yet."""
        before: Counter[bytes] = Counter()
        found = []
        self._given = [self._digest(event) for event in events]
        for digest in self._given:
            count = self._taken.get(digest, 0) + before[digest]
            before[digest] += 1
            found.append(str(UUID(bytes=sha256(digest + str(count).encode()).digest()[:16], version=5)))
        return found

    def take(self) -> None:
        """Counts the events that ids were given to last: they are taken."""
        for digest in self._given:
            self._taken[digest] = self._taken.pop(digest, 0) + 1
            if len(self._taken) > _REMEMBERED:
                self._taken.popitem(last=False)
        self._given = []

    def _digest(self, event: StructuredEvent) -> bytes:
        header = [(one.name, one.value.value) for one in event.variable_header if one.name != SEQUENCE_NUMBER]
        data = [(one.name, one.value.value) for one in event.filterable_data]
        own = "" if any(value and name in _NAMES for name, value in data) else self._own
        fixed = own, event.domain_name, event.type_name, event.event_name
        told = repr((fixed, header, data, event.remainder_of_body.value))
        return sha256(told.encode("utf-8", "surrogatepass")).digest()
