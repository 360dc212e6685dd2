"""Landed MTOSI envelopes as Arrow tables, without Spark and Java.

    table = read("landing/", "ME").to_arrow()

Needs the extra `tables`. `mtosi_jms.spark` plans landings and makes rows with these modules, too, so that rows, columns
and options are the same.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import MissingExtraError

if importlib.util.find_spec("pyarrow") is None:
    raise MissingExtraError("pyarrow", "tables")

from mtosi_jms.tables._read import LandingTable, read

if TYPE_CHECKING:
    from mtosi_jms.tables._query import Answer, query
    from mtosi_jms.tables.ingest import write

__all__ = ["Answer", "LandingTable", "query", "read", "write"]

_HOMES: Final = {"Answer": "_query", "query": "_query", "write": "ingest"}
"""The modules that readers do not need."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
