"""What tests of the spool share."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folders() -> Iterator[Callable[[], Path]]:
    """Names new folders, in memory where there is such a file system: thousands of syncs are waited for otherwise."""
    memory = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    numbers = itertools.count()
    yield lambda: base / f"{next(numbers)}"
    shutil.rmtree(base)
