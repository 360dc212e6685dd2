"""What a deployment is made of: how a service is asked for, and what may be wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Destination

Address: TypeAlias = str | Destination


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How an OS asks one service of another.

    Attributes:
        destination: where the supplier receives.
        reply_to: where replies come in; None: at the destination of the OS's own name (R16).
        failure_reply_to: where failures come in; None: with the other replies (P29).
        temporary_reply: replies come in at a temporary queue (R2b).

    Raises:
        ConfigError: a temporary destination, or `reply_to` beside `temporary_reply`.
    """

    destination: Address
    reply_to: str | None = None
    failure_reply_to: str | None = None
    temporary_reply: bool = False

    def __post_init__(self) -> None:
        administered("a supplier", self.destination)
        if self.temporary_reply and self.reply_to is not None:
            raise ConfigError("give reply_to or temporary_reply, not both")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a deployment.

    Attributes:
        message: what, and of which interface.
        fatal: whether nothing may be opened like that; otherwise it is only unusual.
    """

    message: str
    fatal: bool = True


def administered(what: str, address: Address) -> None:
    """Refuse a temporary destination at the server's side.

    Raises:
        ConfigError: it is one (R2a).
    """
    if isinstance(address, Destination) and address.is_temporary:
        raise ConfigError(f"{what} is served from {address}: an administered destination is needed (R2a)")


def near(name: str, known: Iterable[str]) -> str:
    """The hint of an error about an unknown name; empty where nothing resembles it."""
    close = difflib.get_close_matches(name, known, 3)
    return f"; did you mean {', '.join(close)}?" if close else ""
