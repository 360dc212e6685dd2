"""Landed MTOSI envelopes as Arrow tables: the planner of a landing and the makers of rows, without Spark.

Needs the extra `tables`. `mtosi_jms.spark` plans landings and makes rows with these modules, too.
"""

from __future__ import annotations

import importlib.util

from mtosi_jms.errors import MissingExtraError

__all__ = ()

if importlib.util.find_spec("pyarrow") is None:
    raise MissingExtraError("pyarrow", "tables")
