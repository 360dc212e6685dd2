"""The rooms that `make test ROOM=...` runs."""

from __future__ import annotations

from ..schedule import ROOMS, TESTS, choose


def test_folders_of_rooms_are_there() -> None:
    assert [name for folders in ROOMS.values() for name in folders if not (TESTS / name).exists()] == []


def test_files_go_to_workers_that_have_what_they_share() -> None:
    spark, broker, other = (f"tests/{name}.py" for name in ("spark/test_diff", "interop/test_cxf", "soap/test_faults"))
    every = [spark, broker, other]
    assert [choose(every, worker, range(3), {}) for worker in range(3)] == [spark, broker, other]
    assert choose([spark, other], 1, range(3), {}) == other
    assert choose([spark], 1, range(3), {}) is None
    assert choose([spark], 1, range(3), {"spark/test_diff.py": 100}) == spark
    assert choose([spark], 1, [1], {}) == spark
