"""Modules that have moved: their old names work for one release, and say where to go."""

from __future__ import annotations

import importlib
import sys

import pytest

from mtosi_jms import Requestor
from mtosi_jms._moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_the_old_name_gives_the_new_module(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if old.startswith("mtosi_jms.spark"):
        pytest.importorskip("pyspark")
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is {MOVED[old]} now"):
        assert importlib.import_module(old) is importlib.import_module(MOVED[old])
    monkeypatch.delitem(sys.modules, old)


def test_names_are_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mtosi_jms.requestor", raising=False)
    with pytest.warns(DeprecationWarning, match="mtosi_jms.exchange now"):
        assert importlib.import_module("mtosi_jms.requestor").Requestor is Requestor
    monkeypatch.delitem(sys.modules, "mtosi_jms.requestor")
