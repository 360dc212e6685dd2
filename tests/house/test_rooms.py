"""The rooms that `make test ROOM=...` runs."""

from __future__ import annotations

from ..schedule import ROOMS, TESTS  # noqa: TID252


def test_folders_of_rooms_are_there() -> None:
    assert [name for folders in ROOMS.values() for name in folders if not (TESTS / name).exists()] == []
