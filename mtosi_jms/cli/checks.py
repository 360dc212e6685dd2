"""What `doctor` shows of one thing. A module that a package registers for `doctor` has `check() -> Check`."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Check", "Status"]

Status: TypeAlias = Literal["ok", "missing", "fault"]


class Check(NamedTuple):
    """One thing that was checked.

    Attributes:
        detail: version, place, or what is wrong.
        fix: what to do about it, empty if there is nothing to do.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""
