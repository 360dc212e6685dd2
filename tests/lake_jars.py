"""Delta Lake and Iceberg for the tests' Spark session: the settings that load their jars."""

from __future__ import annotations

DELTA_CATALOG = "spark.sql.catalog.spark_catalog"
"""What a session must be told besides, by its own configuration: then other sessions have Spark's own catalog."""


def lake_settings(version: str) -> tuple[dict[str, str], str]:
    """Settings that load both formats in a version of Spark, and an empty text; none, and the reason, without jars."""
    from mtosi_jms.errors import ConfigError
    from mtosi_jms.spark.jobs._lake import session_settings
    from mtosi_jms.tables.job import DELTA, ICEBERG

    try:
        settings, iceberg = session_settings(DELTA, version, {}), session_settings(ICEBERG, version, {})
    except ConfigError as error:
        return {}, str(error)
    settings["spark.jars"] = f"{settings['spark.jars']},{iceberg['spark.jars']}"
    settings["spark.databricks.delta.snapshotPartitions"] = "1"
    return {name: value for name, value in settings.items() if name != DELTA_CATALOG}, ""
