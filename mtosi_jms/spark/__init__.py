"""MTOSI inventory into Spark: landed or streamed envelopes as typed tables, with a ledger of what is complete.

    spark.dataSource.register(InventorySource)
    df = spark.read.format("mtosi").option("objectType", "ME").load("landing/")

Needs the extra `spark`. Importing this package imports neither Spark nor Arrow; what stands below does, when it is
first asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import MissingExtraError

if TYPE_CHECKING:
    from mtosi_jms.spark.alarms import latest_alarms, parse_alarms, read_alarms
    from mtosi_jms.spark.diff import diff_snapshots, diff_tables
    from mtosi_jms.spark.messages import parse_messages
    from mtosi_jms.spark.rows import arrow_schema
    from mtosi_jms.spark.sequences import ledger
    from mtosi_jms.spark.source import InventorySource
    from mtosi_jms.spark.topology import snapshot_topology, topology_tables

__all__ = [
    "InventorySource",
    "arrow_schema",
    "diff_snapshots",
    "diff_tables",
    "latest_alarms",
    "ledger",
    "parse_alarms",
    "parse_messages",
    "read_alarms",
    "snapshot_topology",
    "topology_tables",
]

_HOMES: Final = {
    "InventorySource": "source",
    "arrow_schema": "rows",
    "diff_snapshots": "diff",
    "diff_tables": "diff",
    "latest_alarms": "alarms",
    "ledger": "sequences",
    "parse_alarms": "alarms",
    "parse_messages": "messages",
    "read_alarms": "alarms",
    "snapshot_topology": "topology",
    "topology_tables": "topology",
}


for _library in ("pyarrow", "pyspark"):
    if importlib.util.find_spec(_library) is None:
        raise MissingExtraError(_library, "spark")


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
