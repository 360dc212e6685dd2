"""Destinations: where a message goes, where its reply goes (R15b, C56).

Queue and Topic are administered: a deployment names them. The temporary kinds belong to the connection that made them:
only it may consume from them (R2c), and no naming context may hold them (R2d).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from mtosi_jms.errors import ConfigError

_MORE_THAN_ONE: Final = re.compile(r"[,?*>#]|::|://|(?i:^(?:activemq|\$sys)\.)")
"""What brokers interpret in a name: lists of destinations, options, wildcards, a queue of an address, a destination of
another kind. Also the prefixes of the brokers' own destinations, which control or monitor them."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The base of the four kinds of destination; it has no instances. `name`: physical name at the provider, not
    empty, without control characters. Raises ConfigError: the name is empty, holds a control character, or no kind
    was chosen."""

    name: str

    kind: ClassVar[str] = ""
    is_topic: ClassVar[bool] = False
    is_temporary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.kind:
            raise ConfigError("a destination is a Queue, a Topic, a TemporaryQueue or a TemporaryTopic")
        name: object = self.name
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ConfigError(f"{self.kind} name {name!r}: it must be text, not empty, without control characters")

    @property
    def is_plain(self) -> bool:
        """Whether every broker takes the name as one destination of an application and nothing else.

        A name that a peer chose must be plain, or it could mean more than what was checked. Our own configuration may
        use any name.
        """
        return _MORE_THAN_ONE.search(self.name) is None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Queue(Destination):
    """An administered queue: each message goes to exactly one consumer (P7)."""

    kind: ClassVar[str] = "queue"


@dataclass(frozen=True, slots=True)
class Topic(Destination):
    """An administered topic: each current subscriber gets a copy (P8)."""

    kind: ClassVar[str] = "topic"
    is_topic: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TemporaryQueue(Destination):
    """A queue that lives as long as the connection that made it, whose id is `owner`: empty where a peer named the
    queue."""

    owner: str = field(default="", compare=False)

    kind: ClassVar[str] = "temporary-queue"
    is_temporary: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TemporaryTopic(Destination):
    """A topic that lives as long as the connection that made it, whose id is `owner`: empty where a peer named the
    topic."""

    owner: str = field(default="", compare=False)

    kind: ClassVar[str] = "temporary-topic"
    is_topic: ClassVar[bool] = True
    is_temporary: ClassVar[bool] = True


KINDS: dict[str, type[Destination]] = {cls.kind: cls for cls in (Queue, Topic, TemporaryQueue, TemporaryTopic)}

ADMINISTERED: dict[str, type[Destination]] = {cls.kind: cls for cls in (Queue, Topic)}
"""The kinds that a naming context may hold, by their prefix."""
