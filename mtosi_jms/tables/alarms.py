"""Alarms as a table, with one row for each report of an alarm; docs/spark.md has the columns.

Two reports are about the same alarm if they have the same object, layer rate and probable cause, including its
qualifier: the identity is that of `mtosi_jms.notifications.alarm_key`. The qualifier may also be an element of the
alarm, which the schema does not have (column `unknown`). `alarm_key` is null if object or cause is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from mtosi_jms.errors import ConfigError, MtosiError, XmlError
from mtosi_jms.inventory import class_for, load_stubs
from mtosi_jms.report import Fact, RejectLine, Report, duration, number
from mtosi_jms.tables.columns import NAMES, RELATIONS, full_name, full_schema
from mtosi_jms.tables.files import Reject
from mtosi_jms.tables.ingest import Engine, choose_engine, reading, sizes_of
from mtosi_jms.tables.job import JobOptions, JobResult, Progress, Staging
from mtosi_jms.tables.landing import plan_landing, readable
from mtosi_jms.tables.options import SourceOptions
from mtosi_jms.tables.reader import check_readable, reader_for
from mtosi_jms.tables.sql import Condition, LocalJob, Sql, SqlJob, write_batches
from mtosi_jms.tables.writer import sample
from mtosi_jms.xmlbind import parse_xml

__all__ = [
    "ALARM",
    "MESSAGES",
    "NEWEST",
    "TABLES",
    "AlarmOptions",
    "AlarmResult",
    "alarm_batch",
    "alarm_columns",
    "choose",
    "last_states",
    "page_of",
    "report",
    "run_local",
    "source_options",
]

ALARM: Final = "nra.alm:AlarmType"
"""The class of alarms in the shipped stubs."""
MESSAGES: Final = "RESPONSE,NOTIFICATION"
"""The option `messageTypes` of the source for alarms."""
TABLES: Final = ("alarms", "latest")
NEWEST: Final = ("source_time", "os_time", "header_timestamp", "source_file", "batch_number", "source_position")
"""The columns that order the reports of an alarm; the last report has the greatest values, and null is the least."""
_SEVERITIES: Final = ("CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE", "CLEARED")
_BUSIEST: Final = 10
"""The number of objects that the page shows."""
_SAMPLED: Final = ("object_name_text", "cause", "perceived_severity", "active", "source_time")
_OURS: Final = pa.schema(
    [("alarm_key", pa.string()), ("object_name_text", pa.string()), ("cause", pa.string()), ("active", pa.bool_())]
)
_LEFT_OUT: Final = frozenset((*_OURS.names, *(column.name for column in (*NAMES, *RELATIONS))))
_OF_VENDORS: Final = ("VENDOR_EXT", "MINOR_EXT")
_TOLD: Final = (
    "object_name",
    "probable_cause",
    "layer_rate",
    "native_probable_cause",
    "probable_cause_qualifier",
    "unknown",
)
_QUALIFIER: Final = "probableCauseQualifier"
_NO_NAME: Final = "not given"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class AlarmOptions(JobOptions):
    """Which alarms to read. `landing`: a spool, a folder of envelopes, a file or a glob. `object_type`: the class of
    alarms, for stubs that have another name for it. `latest`: whether to write a table with the last state of each
    alarm, too. `stubs`: generated packages, joined by commas."""

    landing: str | Path
    object_type: str = ALARM
    latest: bool = False
    stubs: str = ""


@dataclass(frozen=True, kw_only=True)
class AlarmResult(JobResult):
    """What a run of the alarms job found: reports of alarms (`rows`), those of each severity, and messages by kind,
    duplicates included. `latest`, `active`: numbers of different alarms, and of those that are active; None without the
    option `latest`. `busiest`: reports by object, for the objects with most; not in the summary."""

    rows: int
    severities: dict[str, int]
    latest: int | None
    active: int | None
    messages: dict[str, int]
    rejected: tuple[Reject, ...]
    busiest: dict[str, int]


def alarm_columns(names: Sequence[str]) -> tuple[pa.Schema, list[str]]:
    """Return the columns that come first in a table of alarms, and the names of those that follow. `names`: the columns
    of rows of the alarm class, as the source gives them. Raises ConfigError: `object_name` or `perceived_severity` is
    not among them."""
    if not {"object_name", "perceived_severity"} <= set(names):
        raise ConfigError("these are not alarms: they have no columns object_name and perceived_severity")
    return _OURS, [name for name in names if name not in _LEFT_OUT]


def alarm_batch(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Turn rows of the alarm class, as the source gives them, into rows of the table of alarms."""
    ours, kept = alarm_columns(rows.schema.names)
    columns = {name: rows.column(name).to_pylist() for name in _TOLD if name in rows.schema.names}
    made = [_identity({name: values[at] for name, values in columns.items()}) for at in range(rows.num_rows)]
    active = pc.not_equal(rows.column("perceived_severity"), "CLEARED")
    first = [pa.array([row[at] for row in made], pa.string()) for at in range(3)]
    arrays = [*first, active, *(rows.column(name) for name in kept)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*ours, *(rows.schema.field(name) for name in kept)]))


def _identity(alarm: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
    """Return `alarm_key`, `object_name_text` and `cause` of an alarm."""
    place = full_name(_struct(alarm["object_name"]))
    cause = _struct(alarm.get("probable_cause"))
    native, name = alarm.get("native_probable_cause"), cause.get("probable_cause")
    given = name or native
    shown = cause.get("extension") if name in _OF_VENDORS else None
    shown = next((text for text in (shown, name, native) if text is not None), None)
    if not place or not shown:
        return None, place, shown
    layer = _struct(alarm.get("layer_rate"))
    parts = [place, layer.get("value"), layer.get("extension"), given, cause.get("extension") if name else None]
    parts += [_qualifier(cause, alarm), _flag(cause.get("ru")), _flag(cause.get("contra"))]
    texts = ["" if part is None else str(part) for part in parts]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":")), place, shown


def _struct(value: Any) -> Mapping[str, Any]:
    """Return a value that is a struct in most classes of alarms; empty if it is none."""
    return value if isinstance(value, Mapping) else {}


def _flag(value: bool | None) -> str:
    return "true" if value else "false"


def _qualifier(cause: Mapping[str, Any], alarm: Mapping[str, Any]) -> str | None:
    """Return the qualifier of the cause, or that of an element of the alarm, which its class may lack."""
    unknown = (one["content"] for one in alarm.get("unknown") or () if one["path"] == _QUALIFIER)
    found = (cause.get("qualifier"), alarm.get("probable_cause_qualifier"), _text_in(next(unknown, None)))
    return next((text.strip() for text in found if text and text.strip()), None)


def _text_in(content: str | None) -> str | None:
    try:
        return None if content is None else "".join(map(str, parse_xml(content.encode()).itertext()))
    except XmlError:
        return content


def source_options(options: AlarmOptions) -> SourceOptions:
    """Return the options of the source for alarms, whose stubs are then loaded. Raises ConfigError: no stub has the
    class."""
    source = SourceOptions.parse(
        {
            "path": str(options.landing),
            "objectType": options.object_type,
            "messageTypes": MESSAGES,
            "stubs": options.stubs,
            "verify": "full",
        }
    )
    load_stubs(source.stubs)
    class_for(source.object_type)
    return source


def choose(options: AlarmOptions, engine: Engine = "auto") -> tuple[Engine, str]:
    """Choose the engine of the job, and say why, and raise, as `mtosi_jms.tables.ingest.choose` does for an ingest."""
    return choose_engine(engine, options, "", sizes_of(lambda: source_options(options)))


def run_local(options: AlarmOptions, *, progress: Progress | None = None) -> AlarmResult:
    """Write `OUT/alarms/*.parquet`, `OUT/_report/` and, with `latest`, `OUT/latest/*.parquet` without Spark. Raises
    ConfigError, SpoolError, SpoolInUseError: as `mtosi_jms.tables.ingest.run_local`."""
    choose(options, "local")
    source = source_options(options)
    job = LocalJob("alarms", options.out, TABLES, progress, format=options.format, where=options.where)
    with job.stage("plan"):
        plan = plan_landing(source)
    if not options.allow_empty:
        check_readable(plan, source)

    def reports(folder: Path) -> str:
        rows = full_schema(source)
        reader = reader_for(source, rows)
        schema = alarm_batch(pa.RecordBatch.from_pylist([], schema=rows)).schema
        batches = map(alarm_batch, reader.read(readable(plan, source)))
        write_batches(Condition(options.where).each(batches, schema), schema, folder)
        if reader.rejected:
            raise MtosiError(f"{reader.rejected[0]}: files change while they are read")
        return job.sql.parquet(folder)

    with job.working() as staged:
        return report(job, staged, options, plan, reports)


def report(
    job: SqlJob[T], staged: Staging, options: AlarmOptions, plan: Any, reports: Callable[[Path], T]
) -> AlarmResult:
    """Make the tables and the page. `plan`: of the landing: a `Plan`, or what Spark has in its place. `reports`: writes
    the table with a row for each report into a folder."""
    sql, latest, active = job.sql, None, None
    with job.stage("read and write"):
        alarms = reports(staged.folder / "alarms")
    if options.latest:
        with job.stage("latest"):
            last = job.write(last_states(sql, alarms), staged.folder / "latest", filtered=False, like=alarms)
            text = "SELECT count(*), count(CASE WHEN active THEN 1 END) FROM {last}"
            ((latest, active),) = sql.rows(sql.sql(text, last=last))
    with job.stage("count"):
        severities = _count(sql, alarms, "perceived_severity", "perceived_severity NULLS FIRST")
        busiest = _count(
            sql, alarms, "object_name_text", f"count(*) DESC, object_name_text NULLS FIRST LIMIT {_BUSIEST}"
        )
    result = AlarmResult(
        rows=sum(severities.values()),
        severities=severities,
        latest=latest,
        active=active,
        messages=plan.counts,
        rejected=plan.rejects,
        busiest=busiest,
        samples=(sample("The first rows", staged.folder / "alarms", _SAMPLED),),
        **job.facts,
    )
    job.finish(staged, result, page_of(result, options))
    return result


def last_states(sql: Sql[T], alarms: T) -> T:
    """Return the last report of each alarm, and all reports without `alarm_key`."""
    columns = sql.schema(alarms).names
    order = ", ".join(f"{name} DESC NULLS LAST" for name in NEWEST if name in columns) or "alarm_key"
    text = f"SELECT *, row_number() OVER (PARTITION BY alarm_key ORDER BY {order}) AS _age FROM {{alarms}}"  # noqa: S608
    numbered = sql.sql(text, alarms=alarms)
    last = sql.sql("SELECT * FROM {numbered} WHERE _age = 1 OR alarm_key IS NULL", numbered=numbered)
    return sql.select(last, columns)


def _count(sql: Sql[T], alarms: T, column: str, order: str) -> dict[str, int]:
    text = f"SELECT {column}, count(*) FROM {{alarms}} GROUP BY {column} ORDER BY {order}"  # noqa: S608
    return {name or _NO_NAME: count for name, count in sql.rows(sql.sql(text, alarms=alarms))}


def page_of(result: AlarmResult, options: AlarmOptions) -> Report:
    """Return the page of the job."""
    given = list(result.severities.items())
    severities = dict(sorted(given, key=lambda item: _SEVERITIES.index(item[0]) if item[0] in _SEVERITIES else 99))
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
        charts={"By perceived severity": severities, "Objects with most rows": result.busiest},
        samples=result.samples,
        rejects=[RejectLine(reject.file, reject.line, reject.reason) for reject in result.rejected],
        links=links,
        steps={
            **latest,
            "Keep what is critical": f"mtosi-jms alarms {landing} --where \"perceived_severity = 'CRITICAL'\"",
            "Read the alarms": reading(options.format, place),
        },
    )
