"""Ids that identify copies of a message."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from typing import Final
from uuid import UUID

from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.bridge.reliable import SEQUENCE_NUMBER
from mtosi_jms.jms.ids import random_id

_NAMES: Final = frozenset({"JMSMessageID", "notificationId", "notificatId"})
_REMEMBERED: Final = 10_000


class Identities:
    """Makes ids of events, so that an inbox delivers each event once.

    An event that names itself gets an id from its content: whenever it comes again, it is the same event. The id of any
    other event also counts how many of the last 10,000 taken events had equal content: two equal ones are two events.
    An event that was not taken is not counted, so it gets the same id when it comes again. A random text goes into
    these ids, so they differ from those of an earlier process.
    """

    def __init__(self) -> None:
        self._own = random_id()
        self._taken: OrderedDict[bytes, int] = OrderedDict()
        self._given: list[bytes] = []

    def of(self, events: Sequence[StructuredEvent]) -> list[str]:
        """Makes the ids of events that are not taken yet."""
        before: Counter[bytes] = Counter()
        found = []
        self._given = []
        for event in events:
            digest, is_named = self._digest(event)
            if not is_named:
                self._given.append(digest)
                count = self._taken.get(digest, 0) + before[digest]
                before[digest] += 1
                digest = sha256(digest + str(count).encode()).digest()
            found.append(str(UUID(bytes=digest[:16], version=5)))
        return found

    def take(self) -> None:
        """Marks the events of the last `of` as taken."""
        for digest in self._given:
            self._taken[digest] = self._taken.pop(digest, 0) + 1
            if len(self._taken) > _REMEMBERED:
                self._taken.popitem(last=False)
        self._given = []

    def _digest(self, event: StructuredEvent) -> tuple[bytes, bool]:
        header = [(one.name, one.value.value) for one in event.variable_header if one.name != SEQUENCE_NUMBER]
        data = [(one.name, one.value.value) for one in event.filterable_data]
        is_named = any(value and name in _NAMES for name, value in data)
        fixed = "" if is_named else self._own, event.domain_name, event.type_name, event.event_name
        content = repr((fixed, header, data, event.remainder_of_body.value))
        return sha256(content.encode("utf-8", "surrogatepass")).digest(), is_named
