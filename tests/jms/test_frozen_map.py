"""FrozenMap: a Mapping in every respect, whose views cannot change it."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.jms import FrozenMap

MAP = FrozenMap({"b": 1, "a": 2})


def test_it_is_the_mapping_that_it_was_made_of() -> None:
    assert list(MAP) == list(MAP.keys()) == ["b", "a"]
    assert list(MAP.values()) == [1, 2]
    assert list(MAP.items()) == [("b", 1), ("a", 2)]
    assert "a" in MAP
    assert "c" not in MAP
    assert MAP == {"a": 2, "b": 1}
    assert {**MAP} == {"b": 1, "a": 2}
    assert hash(MAP) == hash(FrozenMap({"a": 2, "b": 1}))


@pytest.mark.parametrize("view", [MAP, MAP.keys(), MAP.values(), MAP.items()])
@pytest.mark.parametrize("change", ["pop", "clear", "update", "setdefault", "add", "discard"])
def test_no_view_has_a_way_to_change_it(view: Any, change: str) -> None:
    assert not hasattr(view, change)
