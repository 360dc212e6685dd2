"""Checks of what callers give, the same for every transport."""

from __future__ import annotations

import time

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Destination
from mtosi_jms.jms.selector import Selector, parse


def deadline_of(timeout: float | None) -> float | None:
    """When a wait of so many seconds from now ends, by the monotonic clock; None: never.

    Raises:
        ConfigError: the timeout is negative or not a number.
    """
    if timeout is not None and not timeout >= 0:
        raise ConfigError(f"timeout {timeout!r}: seconds to wait, 0 or more, or None")
    return None if timeout is None else time.monotonic() + timeout


def selector_of(text: str | None) -> tuple[str | None, Selector | None]:
    """A selector as it is kept, and parsed; None where it is blank.

    Raises:
        SelectorError: it does not parse.
    """
    parsed = parse(text or "")
    return (None, None) if text is None or parsed.tree is None else (text.strip(), parsed)


def check_subscription(destination: Destination, durable: str | None, no_local: bool) -> None:
    """Raises ConfigError for a subscription that there cannot be: see `Session.consumer`."""
    if no_local and not destination.is_topic:
        raise ConfigError(f"{destination}: no_local is for topics")
    if durable is None:
        return
    if not destination.is_topic or destination.is_temporary:
        raise ConfigError(f"{destination}: a durable subscription is to an administered topic")
    if not durable.strip():
        raise ConfigError("a durable subscription needs a name")
