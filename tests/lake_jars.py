"""Delta Lake and Iceberg for the tests' Spark session: their jars from Maven, and the settings that load them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .java_tools import JavaTools

DELTA_CATALOG = "spark.sql.catalog.spark_catalog"
"""What a session must be told besides, by its own configuration: then other sessions have Spark's own catalog."""


def lake_settings(java: Callable[[], JavaTools], version: str) -> tuple[dict[str, str], str]:
    """Settings of Spark that load both formats, and an empty text; none, and the reason, where they cannot be had.

    Args:
        java: makes the tools.
        version: of PySpark.
    """
    from mtosi_jms.errors import ConfigError
    from mtosi_jms.spark.jobs._lake import DELTA, ICEBERG, package_of, session_settings

    try:
        delta, iceberg = package_of(DELTA, version), package_of(ICEBERG, version)
    except ConfigError as error:
        return {}, str(error)
    storage = f"io.delta:delta-storage:{delta.rpartition(':')[2]}"
    try:
        jars = java().jars(delta, storage, iceberg, alone=True)
    except pytest.skip.Exception as reason:
        return {}, str(reason)
    given = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    settings = session_settings(DELTA, version, given)
    return {name: value for name, value in settings.items() if name != DELTA_CATALOG}, ""
