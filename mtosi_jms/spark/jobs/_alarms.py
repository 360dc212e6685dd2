"""Alarms as a table: those of notifications and those of answers to `getActiveAlarms`, one row each time one was told.

Columns of ours come first, then the fields of the alarm class as the source types them, then the header, the sequence
and the place in the landing:

| column | what |
|---|---|
| `alarm_key` | the identity of the alarm as JSON: object, layer, cause, extension and qualifier of it, ru, contra |
| `object_name_text` | full name of the object in trouble, `MD=EMS1/ME=NE-7` |
| `cause` | the probable cause: its name, or the vendor's own |
| `active` | whether the trouble lasts: the severity is another than CLEARED; null where it is not told |

An alarm is the same as another one when object, layer rate and probable cause are, the latter with its qualifier; this
is how MTOSI identifies alarms. `alarm_key` is null where object or cause is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import class_for, load_stubs
from mtosi_jms.spark._columns import NAMES, RELATIONS
from mtosi_jms.spark._engine import EnginePlan
from mtosi_jms.spark._files import Reject
from mtosi_jms.spark._frames import parse_messages
from mtosi_jms.spark._landing import Plan
from mtosi_jms.spark._options import SourceOptions
from mtosi_jms.spark._stateful import check_stateful, has_watermark, latest_of_stream, with_event
from mtosi_jms.spark.jobs._expressions import name_text
from mtosi_jms.spark.jobs._job import Job, JobOptions, JobResult, Progress, load, write_parquet
from mtosi_jms.spark.jobs._landed import Planner, check_readable, for_engine, landed_by

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ALARM: Final = "nra.alm:AlarmType"
"""The class of the shipped stubs that every alarm is an instance of."""
_MESSAGES: Final = "RESPONSE,NOTIFICATION"
_CLEARED: Final = "CLEARED"
_OURS: Final = ("alarm_key", "object_name_text", "cause", "active")
_LEFT_OUT: Final = (*_OURS, *(column.name for column in (*NAMES, *RELATIONS)))
_NEWEST: Final = ("source_time", "os_time", "header_timestamp", "source_file", "batch_number", "source_position")
_TABLES: Final = ("alarms", "latest")


@dataclass(frozen=True, kw_only=True)
class AlarmOptions(JobOptions):
    """Which alarms to read.

    Attributes:
        landing: a spool, a folder of envelopes, a file or a glob.
        object_type: the class of alarms, for stubs that call it otherwise.
        latest: whether to write the last state of each alarm besides.
        stubs: generated packages, joined by commas.
        conf: further settings of Spark for a session of the job's own.
    """

    landing: str | Path
    object_type: str = ALARM
    latest: bool = False
    stubs: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AlarmResult(JobResult):
    """What was found.

    Attributes:
        rows: how often an alarm was told.
        severities: the same by perceived severity.
        latest: number of different alarms, None where not asked for.
        active: how many of them last, None where not asked for.
        messages: number of messages by kind, duplicates included.
        rejected: what was rejected.
    """

    rows: int
    severities: dict[str, int]
    latest: int | None
    active: int | None
    messages: dict[str, int]
    rejected: tuple[Reject, ...]


def read_alarms(spark: SparkSession, landing: str | Path, *, object_type: str = ALARM, stubs: str = "") -> DataFrame:
    """The alarms of a landing; see the table of the module.

    Args:
        spark: a session; the source is registered with it.
        landing: a spool, a folder of envelopes, a file or a glob.
        object_type: the class of alarms, for stubs that call it otherwise.
        stubs: generated packages, joined by commas.

    Raises:
        ConfigError: a class that no stub knows, or that is no alarm.
    """
    return alarm_table(
        load(spark, path=str(landing), objectType=object_type, messageTypes=_MESSAGES, stubs=stubs),
    )


def parse_alarms(
    df: DataFrame, column: str = "body", *, object_type: str = ALARM, stubs: str = "", keep: Sequence[str] = ()
) -> DataFrame:
    """The alarms in a DataFrame of envelopes, from Kafka for example; the columns `keep` stand last.

    Raises:
        ConfigError: as `parse_messages`, or a class that is no alarm.
    """
    return alarm_table(parse_messages(df, object_type, column, message_types=_MESSAGES, stubs=stubs, keep=keep))


def alarm_table(rows: DataFrame) -> DataFrame:
    """Rows of the alarm class, as the source gives them, with our columns in front.

    Raises:
        ConfigError: the rows have no name of an object and no severity.
    """
    if not {"object_name", "perceived_severity"} <= set(rows.columns):
        raise ConfigError("these are no alarms: they have no columns object_name and perceived_severity")
    told = rows.withColumn("object_name_text", name_text(f.col("object_name")))
    kept = [name for name in rows.columns if name not in _LEFT_OUT]
    return told.select(
        _key(rows).alias("alarm_key"),
        "object_name_text",
        _cause(rows).alias("cause"),
        (f.col("perceived_severity") != _CLEARED).alias("active"),
        *kept,
    )


def latest_alarms(alarms: DataFrame, *, timeout: float | None = None) -> DataFrame:
    """The last state of each alarm: by the time at its source, then by that of its message, then by its place.

    Alarms that cannot be identified all stay. On a stream each report that is newer than those before it gives a row,
    so the last row of an `alarm_key` counts. A cleared alarm is forgotten after `timeout` without news of it; an
    active one is remembered.

    Args:
        alarms: what `read_alarms` or `parse_alarms` gave.
        timeout: seconds, on the clock of the stream's watermark, without one on that of the machine; needed on a
            stream, and of no meaning elsewhere.

    Raises:
        ConfigError: of a stream, no `timeout`, a session whose state store is not RocksDB, or PySpark before 4.1.
    """
    names = [name for name in _NEWEST if name in alarms.columns]
    if alarms.isStreaming:
        milliseconds = check_stateful(alarms, timeout, "latest_alarms")
        event_time = has_watermark(alarms)
        return latest_of_stream(with_event(alarms), names, "alarm_key", milliseconds, event_time=event_time)
    order = [f.col(name).desc_nulls_last() for name in names]
    numbered = alarms.withColumn("_age", f.row_number().over(Window.partitionBy("alarm_key").orderBy(*order)))
    return numbered.where("_age = 1 or alarm_key is null").drop("_age")


def run_alarms(
    options: AlarmOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> AlarmResult:
    """Write `OUT/alarms/*.parquet`, with `latest` also `OUT/latest/*.parquet`, and `OUT/_report/alarms.json`."""
    source = SourceOptions.parse(
        {
            "path": str(options.landing),
            "objectType": options.object_type,
            "messageTypes": _MESSAGES,
            "stubs": options.stubs,
            "verify": "full",
        }
    )
    load_stubs(source.stubs)
    class_for(source.object_type)
    job = Job("alarms", options.out, _TABLES, progress)

    def planned(planner: Planner) -> Plan | EnginePlan:
        with job.stage("plan"):
            plan = planner(source)
        if not options.allow_empty:
            check_readable(plan, source)
        return plan

    plan = None if for_engine(source) else planned(Planner())
    with job.working(spark, options.cores, settings=options.conf) as (staged, active):
        if plan is None:
            plan = planned(Planner(active, staged.folder / "plan"))
        counts = _write(job, active, source, plan, staged.folder, latest=options.latest)
        result = AlarmResult(**counts, messages=plan.counts, rejected=plan.rejects, **job.facts)
        job.finish(staged, result)
    return result


def _write(
    job: Job, spark: SparkSession, source: SourceOptions, plan: Plan | EnginePlan, folder: Path, *, latest: bool
) -> dict[str, Any]:
    """Write the tables; what is in them, in numbers."""
    rows = landed_by(spark, plan, source, folder).rows(source)
    with job.stage("read and write"):
        write_parquet(alarm_table(rows), folder / "alarms")
    alarms = spark.read.parquet(str(folder / "alarms"))
    counts: dict[str, Any] = {"latest": None, "active": None}
    if latest:
        with job.stage("latest"):
            write_parquet(latest_alarms(alarms), folder / "latest")
            last = spark.read.parquet(str(folder / "latest"))
            counts = {"latest": last.count(), "active": last.where("active").count()}
    with job.stage("count"):
        severities = alarms.groupBy("perceived_severity").count().orderBy("perceived_severity").collect()
    told = {row["perceived_severity"] or "not given": row["count"] for row in severities}
    return {"rows": sum(told.values()), "severities": told, **counts}


def _field(rows: DataFrame, column: str, name: str) -> Column:
    """A field of a struct column as text; null where the class has no such field."""
    kind = rows.schema[column].dataType if column in rows.columns else None
    there = isinstance(kind, StructType) and name in kind.names
    return (f.col(column).getField(name) if there else f.lit(None)).cast("string")


def _cause(rows: DataFrame) -> Column:
    """The name of the probable cause; where it says that a vendor's own is meant, or nothing, the vendor's own."""
    extension = _field(rows, "probable_cause", "extension")
    native = f.col("native_probable_cause") if "native_probable_cause" in rows.columns else f.lit(None)
    name = _field(rows, "probable_cause", "probable_cause")
    return f.coalesce(f.when(name.isin("VENDOR_EXT", "MINOR_EXT"), extension), name, native.cast("string"))


def _key(rows: DataFrame) -> Column:
    """The identity of an alarm as JSON, null where object or cause is missing."""
    layer = [_field(rows, "layer_rate", name) for name in ("value", "extension")]
    cause = [_field(rows, "probable_cause", name) for name in ("probable_cause", "extension", "qualifier")]
    flags = [f.coalesce(_field(rows, "probable_cause", name), f.lit("false")) for name in ("ru", "contra")]
    parts = [f.coalesce(part, f.lit("")) for part in (f.col("object_name_text"), *layer, *cause, *flags)]
    known = f.col("object_name_text").isNotNull() & _cause(rows).isNotNull()
    return f.when(known, f.to_json(f.array(*parts)))
