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

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import class_for, load_stubs
from mtosi_jms.spark._discover import Reject
from mtosi_jms.spark._landing import Landing, plan_landing
from mtosi_jms.spark._output import (
    Progress,
    Stages,
    check_out,
    session_for,
    spark_errors,
    write_parquet,
)
from mtosi_jms.spark._readable import check_readable
from mtosi_jms.spark._swap import staging
from mtosi_jms.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ALARM: Final = "nra.alm:AlarmType"
"""The class of the shipped stubs that every alarm is an instance of."""
_MESSAGES: Final = "RESPONSE,NOTIFICATION"
_CLEARED: Final = "CLEARED"
_OURS: Final = ("alarm_key", "object_name_text", "cause", "active")
_INVENTORY: Final = ("name_text", "parent_names", "related", "quality")
_NEWEST: Final = ("source_time", "os_time", "header_timestamp", "source_file", "batch_number", "source_position")
_TABLES: Final = ("alarms", "latest")
_SUMMARY: Final = "alarms.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmOptions:
    """Which alarms to read.

    Attributes:
        landing: a spool, a folder of envelopes, a file or a glob.
        out: folder for the result; an earlier result there is replaced.
        object_type: the class of alarms, for stubs that call it otherwise.
        latest: whether to write the last state of each alarm besides.
        stubs: generated packages, joined by commas.
        cores: processors for a session of the job's own, by default all.
        allow_empty: whether a landing without a readable message makes empty tables; by default it is an error.
    """

    landing: str | Path
    out: str | Path
    object_type: str = ALARM
    latest: bool = False
    stubs: str = ""
    cores: int | None = None
    allow_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmResult:
    """What was found.

    Attributes:
        rows: how often an alarm was told.
        severities: the same by perceived severity.
        latest: number of different alarms, None where not asked for.
        active: how many of them last, None where not asked for.
        messages: number of messages by kind, duplicates included.
        rejected: what was rejected.
        stages: seconds by stage.
        seconds: in all.
        out: where the result lies.
    """

    rows: int
    severities: dict[str, int]
    latest: int | None
    active: int | None
    messages: dict[str, int]
    rejected: tuple[Reject, ...]
    stages: dict[str, float]
    seconds: float
    out: Path

    def summary(self) -> dict[str, Any]:
        """The JSON document of the command."""
        return {
            "rows": self.rows,
            "severities": self.severities,
            "latest": self.latest,
            "active": self.active,
            "messages": self.messages,
            "rejected": [asdict(reject) for reject in self.rejected],
            "seconds": round(self.seconds, 3),
            "stages": self.stages,
            "out": str(self.out),
        }


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
    from mtosi_jms.spark._source import InventorySource

    spark.dataSource.register(InventorySource)
    reader = spark.read.format("mtosi").option("objectType", object_type).option("messageTypes", _MESSAGES)
    return alarm_table(reader.option("stubs", stubs).load(str(landing)))


def parse_alarms(
    df: DataFrame, column: str = "body", *, object_type: str = ALARM, stubs: str = "", keep: Sequence[str] = ()
) -> DataFrame:
    """The alarms in a DataFrame of envelopes, from Kafka for example; the columns `keep` stand last.

    Raises:
        ConfigError: as `parse_messages`, or a class that is no alarm.
    """
    from mtosi_jms.spark._messages import parse_messages

    return alarm_table(parse_messages(df, object_type, column, message_types=_MESSAGES, stubs=stubs, keep=keep))


def alarm_table(rows: DataFrame) -> DataFrame:
    """Rows of the alarm class, as the source gives them, with our columns in front.

    Raises:
        ConfigError: the rows have no name of an object and no severity.
    """
    from pyspark.sql import functions as f

    from mtosi_jms.spark._names import name_text

    if not {"object_name", "perceived_severity"} <= set(rows.columns):
        raise ConfigError("these are no alarms: they have no columns object_name and perceived_severity")
    told = rows.withColumn("object_name_text", name_text(f.col("object_name")))
    kept = [name for name in rows.columns if name not in (*_INVENTORY, *_OURS)]
    return told.select(
        _key(rows).alias("alarm_key"),
        "object_name_text",
        _cause(rows).alias("cause"),
        (f.col("perceived_severity") != _CLEARED).alias("active"),
        *kept,
    )


def latest_alarms(alarms: DataFrame) -> DataFrame:
    """The last state of each alarm: by the time at its source, then by that of its message, then by its place.

    Alarms that cannot be identified all stay.

    Args:
        alarms: what `read_alarms` or `parse_alarms` gave.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = [f.col(name).desc_nulls_last() for name in _NEWEST if name in alarms.columns]
    numbered = alarms.withColumn("_age", f.row_number().over(Window.partitionBy("alarm_key").orderBy(*order)))
    return numbered.where("_age = 1 or alarm_key is null").drop("_age")


def run_alarms(
    options: AlarmOptions, *, spark: SparkSession | None = None, progress: Progress | None = None
) -> AlarmResult:
    """Write `OUT/alarms/*.parquet`, with `latest` also `OUT/latest/*.parquet`, and `OUT/_report/alarms.json`.

    Args:
        options: what to read.
        spark: a session with this machine's files at hand; by default one is made and stopped again.
        progress: called with the name of each stage as it begins.

    Raises:
        SpoolError: the landing does not exist, cannot be read or holds no readable message, or `out` cannot be written.
        SpoolInUseError: another job works on `out`.
        ConfigError: options that do not fit, no PySpark or Java, or an `out` that holds alarms of somebody else.
        MtosiError: Spark fails.
    """
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
    out = Path(options.out)
    check_out(out, _TABLES, _SUMMARY)
    stages = Stages(progress)
    with stages.stage("plan"):
        landing = plan_landing(source)
    if not options.allow_empty:
        check_readable(landing, source)
    with staging(out) as staged, session_for(spark, options.cores) as active, spark_errors():
        counts = _write(active, source, landing, staged.folder, stages, latest=options.latest)
        result = AlarmResult(
            **counts,
            messages=landing.counts,
            rejected=tuple(landing.rejects),
            stages=stages.rounded(),
            seconds=stages.total,
            out=out,
        )
        staged.report_json(_SUMMARY, result.summary())
        staged.swap(_TABLES)
    return result


def _write(
    spark: SparkSession, source: SourceOptions, landing: Landing, folder: Path, stages: Stages, *, latest: bool
) -> dict[str, Any]:
    """Write the tables; what is in them, in numbers."""
    from mtosi_jms.spark._source import InventorySource

    spark.dataSource.register(InventorySource)
    plan = folder / "plan.json"
    landing.save(plan)
    reader = spark.read.format("mtosi").option("objectType", source.object_type).option("planFile", str(plan))
    reader = reader.option("messageTypes", _MESSAGES).option("stubs", ",".join(source.stubs))
    with stages.stage("read and write"):
        write_parquet(alarm_table(reader.load()), folder / "alarms")
    alarms = spark.read.parquet(str(folder / "alarms"))
    counts: dict[str, Any] = {"latest": None, "active": None}
    if latest:
        with stages.stage("latest"):
            write_parquet(latest_alarms(alarms), folder / "latest")
            last = spark.read.parquet(str(folder / "latest"))
            counts = {"latest": last.count(), "active": last.where("active").count()}
    with stages.stage("count"):
        severities = alarms.groupBy("perceived_severity").count().orderBy("perceived_severity").collect()
    told = {row["perceived_severity"] or "not given": row["count"] for row in severities}
    return {"rows": sum(told.values()), "severities": told, **counts}


def _field(rows: DataFrame, column: str, name: str) -> Column:
    """A field of a struct column as text; null where the class has no such field."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    kind = rows.schema[column].dataType if column in rows.columns else None
    there = isinstance(kind, StructType) and name in kind.names
    return (f.col(column).getField(name) if there else f.lit(None)).cast("string")


def _cause(rows: DataFrame) -> Column:
    """The name of the probable cause; where it says that a vendor's own is meant, or nothing, the vendor's own."""
    from pyspark.sql import functions as f

    extension = _field(rows, "probable_cause", "extension")
    native = f.col("native_probable_cause") if "native_probable_cause" in rows.columns else f.lit(None)
    name = _field(rows, "probable_cause", "probable_cause")
    return f.coalesce(f.when(name.isin("VENDOR_EXT", "MINOR_EXT"), extension), name, native.cast("string"))


def _key(rows: DataFrame) -> Column:
    """The identity of an alarm as JSON, null where object or cause is missing."""
    from pyspark.sql import functions as f

    layer = [_field(rows, "layer_rate", name) for name in ("value", "extension")]
    cause = [_field(rows, "probable_cause", name) for name in ("probable_cause", "extension", "qualifier")]
    flags = [f.coalesce(_field(rows, "probable_cause", name), f.lit("false")) for name in ("ru", "contra")]
    parts = [f.coalesce(part, f.lit("")) for part in (f.col("object_name_text"), *layer, *cause, *flags)]
    known = f.col("object_name_text").isNotNull() & _cause(rows).isNotNull()
    return f.when(known, f.to_json(f.array(*parts)))
