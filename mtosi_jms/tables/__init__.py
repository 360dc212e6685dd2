"""Landed MTOSI envelopes as Arrow tables, without Spark and Java.

    table = read("landing/", "ME").to_arrow()

Needs the extra `tables`. `mtosi_jms.spark` plans landings and makes rows with these modules, too, so that rows, columns
and options are the same.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from mtosi_jms.errors import MissingExtraError

if importlib.util.find_spec("pyarrow") is None:
    raise MissingExtraError("pyarrow", "tables")

from mtosi_jms.tables._read import LandingTable, read

if TYPE_CHECKING:
    from mtosi_jms.tables.ingest import write

__all__ = ["LandingTable", "read", "write"]


def __getattr__(name: str) -> Any:
    if name != "write":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mtosi_jms.tables.ingest import write  # with the report, which readers do not need

    return write
