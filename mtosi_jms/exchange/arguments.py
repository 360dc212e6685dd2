"""Checks the arguments of roles when they are given."""

from __future__ import annotations

from mtosi_jms.errors import ConfigError
from mtosi_jms.masking import without_login
from mtosi_jms.transport import Connection

__all__ = ["check_connection"]


def check_connection(role: str, given: object) -> None:
    """Check that a role gets a connection. Raises ConfigError: the argument is not a connection; the error says what to
    write."""
    if isinstance(given, Connection):
        return
    if isinstance(given, str):
        shown = without_login(given)
        raise ConfigError(f"{role}: {shown!r} is a URL; give a connection, mtosi_jms.connect({shown!r})")
    raise ConfigError(f"{role}: give a connection of mtosi_jms.connect(...), not {type(given).__name__}")
