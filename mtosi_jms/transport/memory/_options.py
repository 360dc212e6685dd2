"""The options of the embedded provider, checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Queue
from mtosi_jms.transport.completion import OPTIONS as COMPLETION_OPTIONS
from mtosi_jms.transport.completion import SendRules

Clock: TypeAlias = Callable[[], float]

DEAD_LETTER_QUEUE: Final = Queue("DLQ")
CONNECTION_OPTIONS: Final = ("client_id", "jms_version", *COMPLETION_OPTIONS)
"""Options of one connection, and not of the provider."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the messages of a provider.

    Attributes:
        capacity: messages that wait at a queue or subscription before senders have to; None: no bound.
        send_timeout: seconds that a sender waits for room at most; 0 refuses at once; None waits.
        max_deliveries: how often a message is handed out without being acknowledged before it is parked; None: no
            bound.
        dead_letter: the queue where such messages are parked.
    """

    capacity: int | None = None
    send_timeout: float | None = None
    max_deliveries: int | None = None
    dead_letter: Queue = DEAD_LETTER_QUEUE

    def changed(self, **given: Any) -> Limits:
        """The limits with those that are given in place; None and what is not given leave one as it is.

        Args:
            given: by the names of the attributes; `dead_letter` may be the queue's name.

        Raises:
            ConfigError: a value of the wrong kind.
        """
        checked: dict[str, Any] = {
            name: _CHECKS[name](name, value) for name, value in given.items() if value is not None
        }
        return replace(self, **checked)


def _count(name: str, value: object) -> object:
    if type(value) is not int or value < 1:
        raise ConfigError(f"option {name}: a whole number, 1 or more, is wanted")
    return value


def _seconds(name: str, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ConfigError(f"option {name}: seconds, 0 or more, are wanted")
    return value


def _queue(name: str, value: object) -> object:
    queue = Queue(value) if isinstance(value, str) else value
    if type(queue) is not Queue:
        raise ConfigError(f"option {name}: an administered queue, or its name, is wanted")
    return queue


_CHECKS: Final = {"capacity": _count, "send_timeout": _seconds, "max_deliveries": _count, "dead_letter": _queue}
OPTIONS: Final = ("clock", *_CHECKS, *CONNECTION_OPTIONS)


@dataclass(frozen=True, slots=True)
class Options:
    """What `connect("memory:...")` was given besides the address.

    Attributes:
        clock: returns seconds since 1970; None: the system's, or that of the provider where it exists.
        limits: those given, by name, to hold for the provider from now on.
        client_id: of the connection.
        send_rules: the same.
    """

    clock: Clock | None
    limits: Mapping[str, Any]
    client_id: str
    send_rules: SendRules

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """The options as they were given, checked.

        Raises:
            ConfigError: an option that there is not, or one of the wrong kind.
        """
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise ConfigError(f"memory: takes no option {', '.join(unknown)}; there are {', '.join(OPTIONS)}")
        clock = given.get("clock")
        if clock is not None and not callable(clock):
            raise ConfigError("option clock: a callable that returns seconds since 1970 is wanted")
        limits = {name: given[name] for name in _CHECKS if name in given}
        Limits().changed(**limits)
        client_id = given.get("client_id")
        if client_id is None:
            client_id = ""
        if not isinstance(client_id, str):
            raise ConfigError("option client_id: text is wanted")
        return cls(clock, limits, client_id, SendRules.of(given))


SYSTEM_CLOCK: Final[Clock] = time.time
