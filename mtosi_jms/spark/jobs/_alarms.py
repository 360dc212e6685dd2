"""Alarms as a table, with one row for each report of an alarm.

Alarms are reported in notifications and in answers to `getActiveAlarms`. The table has the columns below, then the
fields of the alarm class with the types of the source, then the columns of the header, the sequence and the file:

| column | what |
|---|---|
| `alarm_key` | the identity of the alarm as JSON: object, layer, cause with its extension and qualifier, ru, contra |
| `object_name_text` | full name of the object that has the alarm, `MD=EMS1/ME=NE-7` |
| `cause` | name of the probable cause, or the vendor's own cause |
| `active` | false if the severity is CLEARED, true for any other severity, null without a severity |

As in MTOSI, two reports are about the same alarm if they have the same object, layer rate and probable cause, including
its qualifier: the identity is that of `mtosi_jms.notifications.alarm_key`. The qualifier may also be an element of the
alarm, which the schema does not have (column `unknown`). `alarm_key` is null if object or cause is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import class_for, load_stubs
from mtosi_jms.report import Fact, RejectLine, Report, duration, number
from mtosi_jms.spark._engine import EnginePlan
from mtosi_jms.spark._frames import parse_messages
from mtosi_jms.spark._stateful import check_stateful, has_watermark, latest_of_stream, with_event
from mtosi_jms.spark.jobs._expressions import name_text
from mtosi_jms.spark.jobs._job import SparkJob, load
from mtosi_jms.spark.jobs._landed import Planner, check_readable, for_engine, landed_by
from mtosi_jms.tables.columns import NAMES, RELATIONS
from mtosi_jms.tables.files import Reject
from mtosi_jms.tables.ingest import reading
from mtosi_jms.tables.job import JobOptions, JobResult, Progress
from mtosi_jms.tables.landing import Plan
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.writer import sample

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ALARM: Final = "nra.alm:AlarmType"
"""The class of alarms in the shipped stubs."""
_MESSAGES: Final = "RESPONSE,NOTIFICATION"
_CLEARED: Final = "CLEARED"
_SEVERITIES: Final = ("CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE", _CLEARED)
_BUSIEST: Final = 10
_SAMPLED: Final = ("object_name_text", "cause", "perceived_severity", "active", "source_time")
_QUALIFIER: Final = "probableCauseQualifier"
_OURS: Final = ("alarm_key", "object_name_text", "cause", "active")
_LEFT_OUT: Final = (*_OURS, *(column.name for column in (*NAMES, *RELATIONS)))
_NEWEST: Final = ("source_time", "os_time", "header_timestamp", "source_file", "batch_number", "source_position")
_TABLES: Final = ("alarms", "latest")


@dataclass(frozen=True, kw_only=True)
class AlarmOptions(JobOptions):
    """Which alarms to read.

    Attributes:
        landing: a spool, a folder of envelopes, a file or a glob.
        object_type: the class of alarms, for stubs that have another name for it.
        latest: whether to write a table with the last state of each alarm, too.
        stubs: generated packages, joined by commas.
    """

    landing: str | Path
    object_type: str = ALARM
    latest: bool = False
    stubs: str = ""


@dataclass(frozen=True, kw_only=True)
class AlarmResult(JobResult):
    """What a run of the alarms job found.

    Attributes:
        rows: number of alarm reports.
        severities: number of alarm reports by perceived severity.
        latest: number of different alarms; None without the option `latest`.
        active: number of different alarms that are active; None without the option `latest`.
        messages: number of messages by kind, duplicates included.
        rejected: messages that cannot be read, with reasons.
    """

    rows: int
    severities: dict[str, int]
    latest: int | None
    active: int | None
    messages: dict[str, int]
    rejected: tuple[Reject, ...]


def read_alarms(spark: SparkSession, landing: str | Path, *, object_type: str = ALARM, stubs: str = "") -> DataFrame:
    """Return the alarms of a landing, with the columns that the module docstring lists.

    Args:
        spark: a session; the function registers the source with it.
        landing: a spool, a folder of envelopes, a file or a glob.
        object_type: the class of alarms, for stubs that have another name for it.
        stubs: generated packages, joined by commas.

    Raises:
        ConfigError: no stub has the class, or it is not a class of alarms.
    """
    return alarm_table(
        load(spark, path=str(landing), objectType=object_type, messageTypes=_MESSAGES, stubs=stubs),
    )


def parse_alarms(
    df: DataFrame, column: str = "body", *, object_type: str = ALARM, stubs: str = "", keep: Sequence[str] = ()
) -> DataFrame:
    """Return the alarms in a DataFrame of envelopes, from Kafka for example; the columns `keep` come last.

    Raises:
        ConfigError: as `parse_messages`, or the class is not a class of alarms.
    """
    return alarm_table(parse_messages(df, object_type, column, message_types=_MESSAGES, stubs=stubs, keep=keep))


def alarm_table(rows: DataFrame) -> DataFrame:
    """Put the columns of the module docstring in front of rows of the alarm class, as the source gives them.

    Raises:
        ConfigError: the rows lack the column `object_name` or `perceived_severity`.
    """
    if not {"object_name", "perceived_severity"} <= set(rows.columns):
        raise ConfigError("these are not alarms: they have no columns object_name and perceived_severity")
    named = rows.withColumn("object_name_text", name_text(f.col("object_name")))
    kept = [name for name in rows.columns if name not in _LEFT_OUT]
    return named.select(
        _key(rows).alias("alarm_key"),
        "object_name_text",
        _cause(rows).alias("cause"),
        (f.col("perceived_severity") != _CLEARED).alias("active"),
        *kept,
    )


def latest_alarms(alarms: DataFrame, *, timeout: float | None = None) -> DataFrame:
    """Return the last state of each alarm.

    Reports are ordered by `source_time`, `os_time` and `header_timestamp`, then by their position in the landing. All
    rows without `alarm_key` stay. On a stream, each report that is newer than the earlier reports of its alarm gives a
    row, so the last row of an `alarm_key` counts. A stream forgets a cleared alarm after `timeout` without a new
    report; it never forgets an active alarm.

    Args:
        alarms: the result of `read_alarms` or `parse_alarms`.
        timeout: seconds, required on a stream and ignored elsewhere; measured by the watermark of the stream, or by the
            clock of the machine if the stream has no watermark.

    Raises:
        ConfigError: for a stream: no `timeout`, a session whose state store is not RocksDB, or PySpark before 4.1.
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
    """Write `OUT/alarms/*.parquet`, `OUT/_report/alarms.json` and, with `latest`, `OUT/latest/*.parquet`."""
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
    job = SparkJob("alarms", options.out, _TABLES, progress, format=options.format, where=options.where)

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
        counts, seen = _write(job, active, source, plan, staged.folder, latest=options.latest)
        result = AlarmResult(**counts, messages=plan.counts, rejected=plan.rejects, **job.facts)
        job.finish(staged, result, _page(result, options, seen))
    return result


def _page(result: AlarmResult, options: AlarmOptions, seen: dict[str, Any]) -> Report:
    counts = list(result.severities.items())
    severities = dict(sorted(counts, key=lambda item: _SEVERITIES.index(item[0]) if item[0] in _SEVERITIES else 99))
    facts = [Fact("rows", number(result.rows))]
    if result.latest is not None and result.active is not None:
        facts += [Fact("alarms", number(result.latest)), Fact("active", number(result.active))]
    seconds = result.stages["read and write"]
    facts += [
        Fact("messages", number(sum(result.messages.values()))),
        Fact("rejected", number(len(result.rejected)), "bad" if result.rejected else "plain"),
        Fact("rows a second", number(result.rows / seconds)),
        Fact("time", duration(result.seconds)),
    ]
    links = {"each report of an alarm": "../alarms/"}
    if result.latest is not None:
        links["the last state of each alarm"] = "../latest/"
    landing, place = quote(str(options.landing)), f"{result.out}/alarms"
    latest = {} if options.latest else {"Write the last state of each alarm": f"mtosi-jms alarms {landing} --latest"}
    return Report(
        title="Alarms",
        subtitle=f"{options.landing} to {result.out}",
        facts=facts,
        charts={"By perceived severity": severities, **seen["charts"]},
        tables=seen["tables"],
        rejects=[RejectLine(reject.file, reject.line, reject.reason) for reject in result.rejected],
        links=links,
        steps={
            **latest,
            "Keep what is critical": f"mtosi-jms alarms {landing} --where \"perceived_severity = 'CRITICAL'\"",
            "Read the alarms": reading(options.format, place),
        },
    )


def _write(
    job: SparkJob, spark: SparkSession, source: SourceOptions, plan: Plan | EnginePlan, folder: Path, *, latest: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the tables. Return the numbers of the result, and the charts and tables of the page."""
    rows = landed_by(spark, plan, source, folder).rows(source)
    with job.stage("read and write"):
        alarms = job.write(alarm_table(rows), folder / "alarms")
    counts: dict[str, Any] = {"latest": None, "active": None}
    if latest:
        with job.stage("latest"):
            last = job.write(latest_alarms(alarms), folder / "latest", filtered=False)
            counts = {"latest": last.count(), "active": last.where("active").count()}
    with job.stage("count"):
        severities = alarms.groupBy("perceived_severity").count().orderBy("perceived_severity").collect()
    by_severity = {row["perceived_severity"] or "not given": row["count"] for row in severities}
    busiest = alarms.groupBy("object_name_text").count().orderBy(f.desc("count"), "object_name_text").limit(_BUSIEST)
    objects = {row["object_name_text"] or "not given": row["count"] for row in busiest.collect()}
    seen = {
        "charts": {"Objects with most rows": objects},
        "tables": [sample("The first rows", folder / "alarms", _SAMPLED)],
    }
    return {"rows": sum(by_severity.values()), "severities": by_severity, **counts}, seen


def _field(rows: DataFrame, column: str, name: str) -> Column:
    """Return a field of a struct column as text; null if the class has no such field."""
    kind = rows.schema[column].dataType if column in rows.columns else None
    there = isinstance(kind, StructType) and name in kind.names
    return (f.col(column).getField(name) if there else f.lit(None)).cast("string")


def _cause(rows: DataFrame) -> Column:
    """Return the name of the probable cause; if it is missing or stands for a vendor's own cause, the vendor's text."""
    extension = _field(rows, "probable_cause", "extension")
    name = _field(rows, "probable_cause", "probable_cause")
    return f.coalesce(f.when(name.isin("VENDOR_EXT", "MINOR_EXT"), extension), name, _native(rows))


def _native(rows: DataFrame) -> Column:
    native = f.col("native_probable_cause") if "native_probable_cause" in rows.columns else f.lit(None)
    return native.cast("string")


def _own_qualifier(rows: DataFrame) -> list[Column]:
    """Return the qualifier that is an element of the alarm: of the class, or else one that the schema lacks."""
    found = [f.col("probable_cause_qualifier").cast("string")] if "probable_cause_qualifier" in rows.columns else []
    if "unknown" in rows.columns:
        own = f.filter("unknown", lambda one: one.getField("path") == _QUALIFIER)
        found.append(f.xpath_string(f.get(own, 0).getField("content"), f.lit("string(/*)")))
    return found


def _key(rows: DataFrame) -> Column:
    """Return the identity of an alarm as JSON; null if object or cause is missing."""
    layer = [_field(rows, "layer_rate", name) for name in ("value", "extension")]
    name, extension, qualifier = (
        _field(rows, "probable_cause", name) for name in ("probable_cause", "extension", "qualifier")
    )
    qualifiers = [f.when(f.trim(one) != "", f.trim(one)) for one in (qualifier, *_own_qualifier(rows))]
    cause = [f.coalesce(name, _native(rows)), f.when(name.isNotNull(), extension), f.coalesce(*qualifiers)]
    flags = [f.coalesce(_field(rows, "probable_cause", name), f.lit("false")) for name in ("ru", "contra")]
    parts = [f.coalesce(part, f.lit("")) for part in (f.col("object_name_text"), *layer, *cause, *flags)]
    known = f.col("object_name_text").isNotNull() & _cause(rows).isNotNull()
    return f.when(known, f.to_json(f.array(*parts)))
