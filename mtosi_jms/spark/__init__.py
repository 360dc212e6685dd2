"""MTOSI inventory into Spark: landed or streamed envelopes as typed tables, with a ledger of what is complete.

    spark.dataSource.register(InventorySource)
    df = spark.read.format("mtosi").option("objectType", "ME").load("landing/")

Needs the extra `spark`. Importing this package imports neither Spark nor Arrow; what stands below does, when it is
first asked for; that PySpark is new enough is seen all the same.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from mtosi_jms.spark._messages import parse_messages
    from mtosi_jms.spark._rows import arrow_schema
    from mtosi_jms.spark._source import InventorySource
    from mtosi_jms.spark.jobs.alarms import latest_alarms, parse_alarms, read_alarms
    from mtosi_jms.spark.jobs.diff import diff_snapshots, diff_tables
    from mtosi_jms.spark.jobs.topology import snapshot_topology, topology_tables
    from mtosi_jms.spark.selector import selector_column
    from mtosi_jms.spark.sequences import ledger

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
    "selector_column",
    "snapshot_topology",
    "topology_tables",
]

_HOMES: Final = {
    "InventorySource": "_source",
    "arrow_schema": "_rows",
    "diff_snapshots": "jobs.diff",
    "diff_tables": "jobs.diff",
    "latest_alarms": "jobs.alarms",
    "ledger": "sequences",
    "parse_alarms": "jobs.alarms",
    "parse_messages": "_messages",
    "read_alarms": "jobs.alarms",
    "selector_column": "selector",
    "snapshot_topology": "jobs.topology",
    "topology_tables": "jobs.topology",
}


SPARK_MINIMUM: Final = (4, 0)
"""The first PySpark that has what is used here: a Python data source API whose readers give Arrow batches."""


def pyspark_version() -> str:
    """The version of the PySpark that an import would give, without importing it; empty where it cannot be told.

    It is read from PySpark's own file, since not every PySpark was installed as a distribution: a cluster's lies in its
    `SPARK_HOME`, as a folder or as an archive.
    """
    spec = importlib.util.find_spec("pyspark")
    read = getattr(spec.loader, "get_data", None) if spec is not None else None
    if spec is None or spec.origin is None or read is None:
        return ""
    try:
        text = read(str(Path(spec.origin).with_name("version.py"))).decode("utf-8", "replace")
    except OSError:
        return ""
    found = re.search(r"""^__version__[^=]*=\s*["']([^"']+)["']""", text, re.MULTILINE)
    return found.group(1) if found else ""


def check_version(version: str) -> None:
    """See that a PySpark is new enough.

    Args:
        version: of PySpark; what does not begin with numbers is let through.

    Raises:
        ConfigError: it is too old.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found.group(1)), int(found.group(2))) < SPARK_MINIMUM:
        least = ".".join(map(str, SPARK_MINIMUM))
        raise ConfigError(f"PySpark {version} is too old: {least} is needed, pip install 'pyspark>={least}'")


for _library in ("pyarrow", "pyspark"):
    if importlib.util.find_spec(_library) is None:
        raise MissingExtraError(_library, "spark")
check_version(pyspark_version())


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
