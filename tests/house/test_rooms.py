"""The rooms that `make test ROOM=...` runs: each has tests, and each test has one room."""

from __future__ import annotations

import pytest

from ..schedule import ROOMS, TESTS, pytest_ignore_collect  # noqa: TID252


class Chosen:
    """What the command line says."""

    def __init__(self, room: str) -> None:
        self.room = room

    def getoption(self, name: str) -> str:
        return self.room


def files_of(room: str) -> set[str]:
    chosen: pytest.Config = Chosen(room)  # type: ignore[assignment]
    found = {path for path in TESTS.rglob("test_*.py") if not pytest_ignore_collect(path, chosen)}
    return {path.relative_to(TESTS).as_posix() for path in found}


def test_each_file_is_collected_for_one_room_but_for_those_with_parameters_for_java() -> None:
    rooms = {room: files_of(room) for room in ("core", *ROOMS)}
    assert all(rooms.values())
    everything = [file for files in rooms.values() for file in files]
    twice = {file for file in everything if everything.count(file) > 1}
    assert twice == {file for file in rooms["core"] if file.startswith("transport/")}
    assert set(everything) == {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}


def test_folders_of_rooms_are_there() -> None:
    assert [name for folders in ROOMS.values() for name in folders if not (TESTS / name).exists()] == []
