"""The public surface: what `mtosi_jms` promises by name, pinned."""

from __future__ import annotations

import mtosi_jms
from mtosi_jms import errors


def test_every_promised_name_is_there_and_documented() -> None:
    undocumented = [name for name in mtosi_jms.__all__ if not (getattr(mtosi_jms, name).__doc__ or "").strip()]
    assert undocumented == []


def test_every_error_derives_from_the_root() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    raised = [value for value in classes if issubclass(value, Exception)]
    assert len(raised) > 15
    assert [value for value in raised if not issubclass(value, errors.MtosiError)] == []
