"""What `request` asks for, by stubs or by a WSDL, and its replies as they are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from mtosi_jms.service import CallOptions

__all__ = ["PreparedCall", "Reply"]


class Reply(NamedTuple):
    """One reply for printing."""

    element: Any
    body: Callable[[], Any]


class PreparedCall(Protocol):
    """An operation with its request. `depth` elements lead from a response to an item of its list; 0: not known."""

    service: str
    operation: str
    depth: int

    def replies(self, options: CallOptions, batch_size: int | None) -> Iterator[Reply | None]:
        """Make the call; None for an operation without reply."""
        ...
