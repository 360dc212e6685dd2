"""docs/delivery.md: its figures are those of the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from mtosi_jms import errors
from mtosi_jms.spool import Inbox, Outbox


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "delivery.md").read_text(encoding="utf-8")


def test_the_bounds_on_the_page(page: str) -> None:
    by_default = {cls: inspect.signature(cls).parameters for cls in (Inbox, Outbox)}
    assert f"{by_default[Inbox]['window'].default:,} ids" in page
    for cls in (Inbox, Outbox):
        assert f"take {by_default[cls]['limit_bytes'].default // 2**30} GiB" in page


def test_the_errors_on_the_page(page: str) -> None:
    named = set(re.findall(r"`([A-Z]\w+Error)`", page))
    assert {"UnknownOutcomeError", "JournalDamageError", "SpoolInUseError", "SpoolFullError"} <= named
    assert [name for name in named if not hasattr(errors, name)] == []
