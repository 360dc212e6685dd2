"""JMS messages as commands show them."""

from __future__ import annotations

from mtosi_jms.jms.display import headers_of, mask_credentials, moment, shown_body, shown_properties

__all__ = ["counted", "headers_of", "mask_credentials", "moment", "shown_body", "shown_properties"]


def counted(number: int) -> str:
    """How many messages, in words."""
    return f"{number:,} {'message' if number == 1 else 'messages'}"
