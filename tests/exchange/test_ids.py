"""Ids of messages: random UUIDs, never twice the same, whoever makes them."""

from __future__ import annotations

import multiprocessing
import os
import uuid

import pytest

from mtosi_jms.jms.ids import random_id

from ..waiting import background


@pytest.mark.obligation("SEC21")
def test_ids_are_random_uuids() -> None:
    found = [random_id() for _ in range(1_000)]
    assert len(set(found)) == len(found)
    for text in found:
        known = uuid.UUID(text)
        assert str(known) == text
        assert (known.version, known.variant) == (4, uuid.RFC_4122)


def test_threads_get_different_ones() -> None:
    found = [background(lambda: [random_id() for _ in range(2_000)]) for _ in range(4)]
    every = [one for done in found for one in done.result(60)]
    assert len(set(every)) == 8_000


@pytest.mark.obligation("SEC21")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_gets_different_ones() -> None:
    random_id()  # so that some are in stock
    reading, writing = os.pipe()
    child = multiprocessing.get_context("fork").Process(target=lambda: os.write(writing, random_id().encode()))
    child.start()
    child.join(60)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert uuid.UUID(pipe.read().decode()) != uuid.UUID(random_id())
