"""Errors in Spark's Python processes: what is wrong first, and then where.

Spark hands the caller what Python prints of an exception, and Python prints its traceback first, which is long.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mtosi_jms.errors import MtosiError

_OF_WORKERS: Final = "PYTHON_WORKER_FACTORY_"
_HIDE: Final = "SPARK_HIDE_TRACEBACK"


@contextmanager
def error_first() -> Iterator[None]:
    """Has Spark tell an error of ours in one line, above its traceback, where this is a process of Spark's.

    Spark is told to leave the traceback out, which then is a note of the error's. The process ends with the error, so
    the setting says nothing about others.
    """
    try:
        yield
    except MtosiError as error:
        if _HIDE not in os.environ and any(name.startswith(_OF_WORKERS) for name in os.environ):
            error.add_note(traceback.format_exc().rstrip())
            os.environ[_HIDE] = "1"
        raise
