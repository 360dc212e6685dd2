"""MTOSI inventory in Spark: landed or streamed envelopes as typed tables, with a ledger of complete sequences.

    spark.dataSource.register(InventorySource)
    df = spark.read.format("mtosi").option("objectType", "ME").load("landing/")

Needs the extra `spark`. Importing this package imports neither Spark nor Arrow: each name below imports them when it is
first used. The import of the package already refuses a PySpark that is too old.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.spark._session import SPARK_MINIMUM, check_version, local_session, pyspark_version

if TYPE_CHECKING:
    from mtosi_jms.spark._engine import read_landing
    from mtosi_jms.spark._frames import ledger, parse_messages, register_functions
    from mtosi_jms.spark._message_stream import MessageStreamSource
    from mtosi_jms.spark._selector import PROPERTY_COLUMNS, selector_column
    from mtosi_jms.spark._source import InventorySource, stream_landing
    from mtosi_jms.spark.jobs import (
        diff_snapshots,
        diff_tables,
        latest_alarms,
        parse_alarms,
        read_alarms,
        snapshot_topology,
        topology_tables,
    )
    from mtosi_jms.tables.columns import arrow_schema
    from mtosi_jms.tables.landing import plan_landing
    from mtosi_jms.tables.options import SourceOptions

__all__ = [
    "PROPERTY_COLUMNS",
    "SPARK_MINIMUM",
    "InventorySource",
    "MessageStreamSource",
    "SourceOptions",
    "arrow_schema",
    "check_version",
    "diff_snapshots",
    "diff_tables",
    "latest_alarms",
    "ledger",
    "local_session",
    "parse_alarms",
    "parse_messages",
    "plan_landing",
    "pyspark_version",
    "read_alarms",
    "read_landing",
    "register_functions",
    "selector_column",
    "snapshot_topology",
    "stream_landing",
    "topology_tables",
]

_HOMES: Final = {
    "mtosi_jms.spark._engine": ("read_landing",),
    "mtosi_jms.spark._frames": ("ledger", "parse_messages", "register_functions"),
    "mtosi_jms.spark._message_stream": ("MessageStreamSource",),
    "mtosi_jms.spark._selector": ("PROPERTY_COLUMNS", "selector_column"),
    "mtosi_jms.spark._source": ("InventorySource", "stream_landing"),
    "mtosi_jms.tables.columns": ("arrow_schema",),
    "mtosi_jms.tables.landing": ("plan_landing",),
    "mtosi_jms.tables.options": ("SourceOptions",),
}
"""The names of this package by module; those that are missing here come from `jobs`."""

for _library in ("pyarrow", "pyspark"):
    if importlib.util.find_spec(_library) is None:
        raise MissingExtraError(_library, "spark")
check_version(pyspark_version())


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "mtosi_jms.spark.jobs")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
