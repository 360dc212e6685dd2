"""Errors in Spark's Python processes: the message first, then the traceback.

Spark gives the caller the text that Python prints for an exception, and Python prints the long traceback first.
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
    """In a Python process of Spark, let Spark show the message of an `MtosiError` above its traceback.

    The setting tells Spark to leave the traceback out, and a note of the error has it instead. The process ends with
    the error, so the setting affects no other error.
    """
    try:
        yield
    except MtosiError as error:
        if _HIDE not in os.environ and any(name.startswith(_OF_WORKERS) for name in os.environ):
            error.add_note(traceback.format_exc().rstrip())
            os.environ[_HIDE] = "1"
        raise
