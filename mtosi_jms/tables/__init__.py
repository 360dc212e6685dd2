"""Landed MTOSI envelopes as Arrow tables, without Spark and Java.

    table = read("landing/", "ME").to_arrow()

Needs the extra `tables`. `mtosi_jms.spark` plans landings and makes rows with these modules, too, so that rows, columns
and options are the same.
"""

from __future__ import annotations

import importlib.util

from mtosi_jms.errors import MissingExtraError

if importlib.util.find_spec("pyarrow") is None:
    raise MissingExtraError("pyarrow", "tables")

from mtosi_jms.tables._read import LandingTable, read

__all__ = ["LandingTable", "read"]
