"""The job behind `mtosi-jms ingest`: it makes Parquet tables by object type from a landing, with a report.

With the object type ALL, each type that has rows gets a folder. Types that are named get one even without rows. Two
engines make the same tables: this process (`run_local`), and Spark (`mtosi_jms.spark.jobs`).

Planning reads heads and ends of files only. If reading then finds a file that is damaged in the middle, the landing is
planned again with every file read to its end, and the tables are made again, so that `complete` is right in all rows.
"""

from __future__ import annotations

import datetime as dt
import heapq
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal

from mtosi_jms.binding.profile import FirstBatch
from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.inventory import ALL, MESSAGE, class_for, load_stubs
from mtosi_jms.report import Fact, RejectLine, Report, SequenceLine, duration, number
from mtosi_jms.tables.columns import LEDGER, values_of
from mtosi_jms.tables.files import Reject, list_files
from mtosi_jms.tables.job import (
    FORMATS,
    PARQUET,
    REPORT,
    Job,
    JobOptions,
    JobResult,
    Progress,
    Staging,
    check_format,
    staging,
)
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.options import Mode, OnIncomplete, SourceOptions, Verify
from mtosi_jms.tables.reader import Shown, check_readable
from mtosi_jms.tables.sequences import ReplySequence, check_complete, time_text
from mtosi_jms.tables.sql import Condition
from mtosi_jms.tables.writer import TableWriter, Written, weight

__all__ = [
    "APPEND",
    "CHECKPOINT",
    "LOADED",
    "MERGE",
    "REPLACE",
    "TABLES",
    "Ingest",
    "IngestOptions",
    "IngestResult",
    "check_replaces",
    "check_write",
    "choose",
    "page_of",
    "reading",
    "report_of",
    "run_local",
    "source_options",
    "write",
]

TABLES: Final = ("objectType=*",)
REPLACE: Final = "replace"
MERGE: Final = "merge"
APPEND: Final = "append"
WRITES: Final = (REPLACE, MERGE, APPEND)
CHECKPOINT: Final = "checkpoint.sqlite"
"""The file of the report that only tables that grow have."""
LOCAL_BYTES: Final = 4 * 1024**3
"""Landings up to this size are read in this process unless told otherwise: some four million objects in two minutes."""
_REFUSED: Final = frozenset({"paths", "columns", "correlationid", "columnnameofcorruptrecord"})
LOADED: Final = ("created", "changed", "unchanged", "ended")
"""What may happen to an object in tables that grow; each is a field of `IngestResult`."""
LISTED: Final = 1000
"""No more sequences than this are in a result and on its page."""
_SYNONYMS: Final = {"mark": "warn", "wait": "filter"}
Engine = Literal["auto", "local", "spark"]


@dataclass(frozen=True, kw_only=True)
class IngestOptions(JobOptions):
    """What to ingest, and how.

    Attributes:
        landing: a spool, a folder of envelopes, a file or a glob.
        object_type: as the option `objectType` of the source; ALL for every type that occurs. MESSAGE is not allowed.
        mode: as the option of the source; FAILFAST raises before anything is written.
        on_incomplete: as the option of the source; fail raises before anything is written. `mark` is a synonym of warn,
            and `wait` of filter. With `write` merge or append, responses that wait are written once their sequence is
            complete.
        stubs: generated packages, joined by commas.
        bulk_files: folders with the files that replies of BulkResponse may name (C18, experimental).
        table: prefix of the names of tables in a catalog of the session: `TABLE_me` and so on. By default the tables
            are below `out`. The report and the checkpoint are always below `out`.
        write: replace: make the tables anew. With Delta or Iceberg, merge: keep the last state of each object, and
            append: keep its history. With Parquet, append: add the rows of complete sequences that are new.
        since_last: with merge or append: read only what is new since the last ingest; always so with Parquet.
        snapshot: with merge or append: close objects that a complete answer does not have.
        first_batch: as the option `firstBatch` of the source: "auto", 0 or 1.
        dry_run: make everything, and throw it away: the result says what would be written.
        source: with write replace: further options of the source, such as `{"folderColumns": "day"}`.
        partition_by: with write replace and Parquet: columns; the rows of a table are in folders `column=value` then.
    """

    landing: str | Path
    object_type: str = "ME"
    mode: str = "PERMISSIVE"
    on_incomplete: str = "warn"
    stubs: str = ""
    bulk_files: tuple[str, ...] = ()
    table: str = ""
    write: str = REPLACE
    since_last: bool = False
    snapshot: bool = False
    first_batch: FirstBatch = "auto"
    dry_run: bool = False
    source: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class IngestResult(JobResult):
    """The result of an ingest.

    Attributes:
        rows: number of rows by object type.
        ledger: number of `sequences`, of those that are `complete`, of `duplicates`, and of sequences in `conflict`.
        sequences: of the ledger at most 1000, those first that lack something; `ledger.jsonl` has all.
        rejected: rejected files, with reasons.
        unfollowed: replies of BulkResponse whose files were not read.
        messages: number of messages by kind, duplicates included.
        copies: number of rows that were left out, because another row of the same sequence has the object, by object
            type. Each batch of an answer repeats the objects around those in it.
        differing: how many of these copies have other attributes than the row that stays.
        vendors: number of objects by manufacturer, for the most frequent manufacturers.
        created, changed, unchanged, ended: with merge or append: what happened to objects, in numbers by object type:
            they are there now and were not, have other content or are remembered in another way, are as they were, or
            are gone. With Parquet, `created` counts rows.
        added: with merge or append: columns that the tables did not have before, by object type.
        unnamed: with merge or append: number of objects without a name, which are left out.
        foreign: with merge or append: object types whose tables were changed since the last ingest, but not by an
            ingest that finished.
        waiting: with merge or append: number of responses that wait for the rest of their sequences.
        stuck: how many of them wait for ever, because their sequences have batches in conflict or a fault.
        submit: the options that spark-submit needs for the format.
        dry_run: whether nothing was written.
    """

    rows: dict[str, int]
    ledger: dict[str, int] = field(default_factory=dict)
    sequences: tuple[ReplySequence, ...]
    rejected: tuple[Reject, ...]
    unfollowed: tuple[Reject, ...] = ()
    messages: dict[str, int]
    vendors: dict[str, int]
    copies: dict[str, int] = field(default_factory=dict)
    differing: dict[str, int] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    unchanged: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    added: dict[str, list[str]] = field(default_factory=dict)
    unnamed: int = 0
    foreign: list[str] = field(default_factory=list)
    waiting: int = 0
    stuck: int = 0
    submit: str = ""
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Whether all sequences are complete."""
        return self.ledger.get("complete") == self.ledger.get("sequences")

    def summary(self) -> dict[str, Any]:
        """The JSON document of the command."""
        return {**super().summary(), "sequences": [_sequence_json(found) for found in self.sequences]}


def _sequence_json(found: ReplySequence) -> dict[str, Any]:
    line = _ledger_line(found)
    del line["received"]
    line |= {"source_file": found.source, "conflicts": list(found.conflicts)}
    return {"file" if name == "source_file" else name: value for name, value in line.items()}


def _ledger_line(found: ReplySequence) -> dict[str, Any]:
    times = {"first_time": time_text(found.first_time), "last_time": time_text(found.last_time)}
    return {**values_of(LEDGER, found), **times}


def write(landing: str | Path, out: str | Path, format: str = PARQUET, **options: Any) -> IngestResult:
    """Write the tables of a landing into a folder with a report, in this process, as `mtosi-jms ingest` does.
    `landing`: a spool, a folder of envelopes, a file or a glob. `out`: the folder; an earlier result is replaced, all
    of it or nothing. `options`: the other fields of `IngestOptions`: `object_type="ALL"`, `on_incomplete="fail"` and so
    on.

    Raises ConfigError: options that do not fit, or only an ingest by Spark can do; MtosiError: as `run_local`.
    """
    try:
        given = IngestOptions(landing=landing, out=out, format=format, **options)
    except TypeError as error:
        raise ConfigError(f"write(): {error}") from None
    return run_local(given)


def choose(options: IngestOptions, engine: Engine = "auto") -> tuple[Engine, str]:
    """Choose the engine of an ingest, and say why.

    This process is chosen for what it can do (Parquet, tables that are replaced) if the files have at most
    `LOCAL_BYTES`, where a byte of a compressed file counts as 16. Raises ConfigError: the local engine is asked for,
    and cannot do it; SpoolError: the landing does not exist or cannot be read.
    """
    return choose_engine(engine, options, _only_spark(options), sizes_of(lambda: source_options(options)))


def sizes_of(source: Callable[[], SourceOptions]) -> Iterator[int]:
    """Yield about how many bytes each file of a landing has unpacked; the options are asked for when it begins."""
    options = source()
    for file in list_files(options.paths, [], options.sieve):
        yield weight(file.path, file.size)


def choose_engine(engine: Engine, options: JobOptions, only_spark: str, sizes: Iterable[int]) -> tuple[Engine, str]:
    """Choose the engine of a job, and say why; as `choose`. `options`: of the job. Conditions go to Spark unless the
    local engine is asked for: its SQL is another. `only_spark`: why only Spark can do the job; empty if this process
    can. `sizes`: bytes to read, of one file after the other.

    Raises ConfigError: the local engine is asked for, and cannot do it.
    """
    if options.conf and not only_spark:
        only_spark = "conf (--conf) is for Spark"
    if engine == "local" and only_spark:
        raise ConfigError(f"the local engine cannot do that: {only_spark}; use --engine spark")
    if engine != "auto":
        return engine, "asked for"
    if only_spark:
        return "spark", only_spark
    if options.where:
        return "spark", "where (--where) is in the SQL of Spark; --engine local takes that of DuckDB"
    total = 0
    for size in sizes:
        total += size
        if total > LOCAL_BYTES:
            return "spark", f"more than {LOCAL_BYTES / 1024**3:.0f} GiB; --engine local reads it without Java"
    return "local", f"{total / 1e6:,.1f} MB"


def _only_spark(options: IngestOptions) -> str:
    """Return why only Spark can do an ingest; empty if this process can."""
    if options.format != PARQUET and options.format in FORMATS:
        return f"the format is {options.format}"
    if options.write != REPLACE:
        return f"write is {options.write}"
    return "table (--table) is for Spark" if options.table else ""


def run_local(options: IngestOptions, *, progress: Progress | None = None) -> IngestResult:
    """Write `OUT/objectType=X/*.parquet` and `OUT/_report/` without Spark; see docs/spark.md.

    Raises:
        ConfigError: options that do not fit, or an `out` that holds tables that this job did not make.
        SpoolError: the landing does not exist, cannot be read or has no readable message, or `out` cannot be written.
        SpoolInUseError: another job works on `out`.
        ExchangeError: `on_incomplete` is fail and a sequence is incomplete.
        MtosiError: `mode` is FAILFAST and something is rejected; the text has one line for each reject.
    """
    choose(options, "local")
    source = source_options(options)
    job = Job("ingest", options.out, TABLES, progress, where=options.where)
    check_format(options.format, job.out)
    check_write(options)
    check_replaces(options, job.out)
    ingest = Ingest(job, options, source, plan_landing, check_readable)
    plan = ingest.plan(source)
    with staging(job.out, dry_run=options.dry_run) as staged:
        result = ingest.replace(plan, TableWriter(source, staged.folder, Condition(options.where)))
        ingest.finish(result, staged)
    return result


def check_write(options: IngestOptions) -> None:
    """Check that tables of the format can be written in this way. Raises ConfigError: they cannot; the text says what
    can be done instead."""
    if options.write not in WRITES:
        raise ConfigError(f"write is {options.write!r}; there are {', '.join(WRITES)}")
    if options.write != REPLACE and (options.source or options.partition_by):
        name = "source (--option)" if options.source else "partition_by (--partition-by)"
        raise ConfigError(f"{name} goes with write {REPLACE}")
    if options.format != PARQUET and options.partition_by:
        raise ConfigError("partition_by (--partition-by) is for Parquet: Delta and Iceberg keep their own layout")
    if options.format != PARQUET or options.write == REPLACE:
        return
    if options.write == MERGE or options.snapshot:
        what = "write merge (--write merge)" if options.write == MERGE else "snapshot (--snapshot)"
        raise ConfigError(
            f"{what} needs tables of Delta or Iceberg: --format delta or --format iceberg; plain Parquet tables are "
            "replaced (--write replace), or get new rows (--write append)"
        )
    if options.on_incomplete in ("warn", "mark"):
        raise ConfigError(
            "rows of plain Parquet tables stay as they are, so write append adds complete sequences only: "
            "on_incomplete wait (--on-incomplete wait), or --format delta or iceberg"
        )


def check_replaces(options: IngestOptions, out: Path) -> None:
    """Check the options of an ingest that replaces tables. Raises ConfigError: an option of tables that grow, or `out`
    has such tables."""
    if options.since_last or options.snapshot:
        given = "since_last (--since-last)" if options.since_last else "snapshot (--snapshot)"
        raise ConfigError(f"{given} goes with write (--write) merge or append: {REPLACE} reads everything again")
    if (out / REPORT / CHECKPOINT).exists():
        raise ConfigError(f"{out} holds tables that grow, with a checkpoint: write {REPLACE} into another folder")


def source_options(options: IngestOptions) -> SourceOptions:
    """Return the options of the source for an ingest, whose stubs are then loaded. Raises ConfigError: an option that
    does not fit, or an object type that does not exist."""
    own = {
        "path": str(options.landing),
        "objectType": options.object_type,
        "mode": options.mode,
        "onIncomplete": _SYNONYMS.get(options.on_incomplete, options.on_incomplete),
        "stubs": options.stubs,
        "firstBatch": str(options.first_batch),
        "bulkFiles": json.dumps([str(folder) for folder in options.bulk_files]),
    }
    taken = _REFUSED | {name.lower() for name in own}
    wrong = next((name for name in options.source if name.lower() in taken), None)
    if wrong is not None:
        raise ConfigError(f"source (--option): {wrong} is an option of ingest itself, or not for it")
    source = SourceOptions.parse({**options.source, **own})
    if source.object_types == (MESSAGE,):
        raise ConfigError("ingest makes tables of objects; read messages with the source's objectType MESSAGE")
    load_stubs(source.stubs)
    for name in source.object_types:
        if name != ALL:
            class_for(name)
    return source


class Ingest:
    """Plans a landing and makes its tables; shows paths as the user would write them. `planner`: plans the landing: a
    `Plan`, or what Spark has in its place. `check`: checks that something in a plan can be read."""

    def __init__(
        self,
        job: Job,
        options: IngestOptions,
        source: SourceOptions,
        planner: Callable[[SourceOptions], Any],
        check: Callable[[Any, SourceOptions, Shown], None] | None,
    ) -> None:
        self._job = job
        self._options = options
        self._source = source
        self._planner = planner
        self._check = None if options.allow_empty else check
        self._planned: Any = None
        self._landing = str(options.landing)

    def plan(self, source: SourceOptions, planner: Callable[[SourceOptions], Any] | None = None) -> Any:
        """Plan the landing; with FAILFAST, where a single reject decides, read every file to its end. `planner`: plans
        it now, and later if it has to be planned again; by default the present planner."""
        self._planner = planner or self._planner
        with self._job.stage("plan"):
            plan = self._planner(replace(source, verify=Verify.FULL) if source.mode is Mode.FAILFAST else source)
        if plan.rejects and source.mode is Mode.FAILFAST:
            raise MtosiError("\n".join(str(self.shown(reject)) for reject in plan.rejects))
        if source.on_incomplete is OnIncomplete.FAIL:
            check_complete(self._sequences(plan))
        if self._check is not None:
            self._check(plan, source, self.shown)
            self._check = None
        return plan

    def replace(self, plan: Any, writer: TableWriter) -> IngestResult:
        """Make the tables, which replace those of an earlier ingest."""
        plan, written, seen = self._read(plan, writer)
        if self._options.partition_by:
            with self._job.stage("partition"):
                writer.check_split(written.rows, self._options.partition_by)
                for name in (name for name, count in written.rows.items() if count):
                    writer.split(name, self._options.partition_by)
        return self._result(plan, written, seen)

    def finish(self, result: IngestResult, staged: Staging, tables: Sequence[str] | None = None) -> None:
        """Write the report, and replace the tables; nothing in a dry run. `tables` is as for `Job.finish`."""
        if self._options.dry_run:
            return
        staged.report("ledger.jsonl", lines=(_line(_ledger_line(found)) for found in self._sequences(self._planned)))
        staged.report("rejects.jsonl", lines=(_line(asdict(reject)) for reject in result.rejected))
        self._job.finish(staged, result, page_of(result, self._options), tables)

    def _read(self, plan: Any, writer: TableWriter) -> tuple[Any, Written, dict[str, Any]]:
        """Make the tables and the samples for the page; if the plan was wrong, plan again with every file verified."""
        with self._job.stage("read and write"):
            written = writer.write(plan)
        if written is None:
            plan = self.plan(replace(self._source, verify=Verify.FULL))  # by the same planner
            with self._job.stage("read and write"):
                written = writer.write(plan)
        if written is None:
            raise MtosiError(f"{self._landing}: files change while they are read")
        self._planned = plan
        with self._job.stage("count"):
            seen = {"vendors": writer.vendors(written.rows), "samples": writer.samples(written.rows)}
            return plan, written, seen

    def _result(self, plan: Any, written: Written, seen: dict[str, Any]) -> IngestResult:
        ledger, sequences = _listed(self._sequences(plan))
        rejects = sorted((*plan.rejects, *written.rejects), key=lambda reject: reject.file)
        return IngestResult(
            rows=written.rows,
            copies={name: found.rows for name, found in written.copies.items()},
            differing={name: found.differing for name, found in written.copies.items() if found.differing},
            ledger=ledger,
            sequences=sequences,
            rejected=tuple(map(self.shown, rejects)),
            unfollowed=tuple(map(self.shown, plan.unfollowed)),
            messages=plan.counts,
            dry_run=self._options.dry_run,
            **seen,
            **self._job.facts,
        )

    def shown(self, reject: Reject) -> Reject:
        """Return a reject with its path as the user would write it."""
        return replace(reject, file=self._path(reject.file))

    def _sequences(self, plan: Any) -> Iterator[ReplySequence]:
        for found in plan.sequences:
            yield found if found.source is None else replace(found, source=self._path(found.source))

    def _path(self, path: str) -> str:
        """Return a path as the user would write it: relative if the path of the landing is relative."""
        absolute = Path(self._landing).is_absolute() or scheme_of(self._landing)
        return path if absolute else os.path.relpath(path)


def _listed(sequences: Iterable[ReplySequence]) -> tuple[dict[str, int], tuple[ReplySequence, ...]]:
    """Return the numbers of a ledger, and its worst sequences in their order."""
    ledger = dict.fromkeys(("sequences", "complete", "duplicates", "conflict"), 0)

    def counted() -> Iterator[tuple[tuple[bool, bool, int], ReplySequence]]:
        for place, found in enumerate(sequences):
            counts = (1, int(found.complete), found.duplicates, int(bool(found.conflicts)))
            for name, count in zip(ledger, counts, strict=True):
                ledger[name] += count
            yield (found.complete, not found.conflicts, place), found

    worst = heapq.nsmallest(LISTED, counted(), key=itemgetter(0))
    return ledger, tuple(found for _, found in sorted(worst, key=lambda item: item[0][2]))


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row) + "\n"


def report_of(result: IngestResult, landing: str, made: dt.datetime | None = None) -> Report:
    """Return the page of an ingest; its heading shows `landing` and `made` (in UTC)."""
    return Report(
        title="MTOSI inventory",
        subtitle=f"{landing} to {result.out}",
        made=made,
        facts=_facts(result),
        charts={
            "Objects by type": result.rows,
            "Objects by manufacturer": result.vendors,
            **{f"Objects {kind}": getattr(result, kind) for kind in LOADED},
        },
        samples=result.samples,
        sequences=[_sequence_line(found) for found in result.sequences],
        sequence_count=result.ledger.get("sequences", 0),
        rejects=[RejectLine(reject.file, reject.line, reject.reason) for reject in result.rejected],
        seconds=result.stages,
        notes=_notes(result),
    )


def page_of(result: IngestResult, options: IngestOptions) -> Report:
    """Return the page of an ingest, with the files beside it and suggestions what to do next with the tables."""
    tables = {f"the table of {name}": f"../objectType={name}/" for name in result.rows if not options.table}
    ledger = {"the ledger, one sequence a line": "ledger.jsonl", "rejected files, one a line": "rejects.jsonl"}
    steps = (
        {"Use the tables on a cluster": f"spark-submit {result.submit}"}
        if result.submit and not options.dry_run
        else {}
    )
    if result.rows and not options.table and not options.dry_run:
        out = shlex.quote(str(result.out))
        steps |= {
            "Draw the network": f"mtosi-jms topology {out} --out {shlex.quote(f'{result.out}-topology')}",
            "Compare with the tables of another day": f"mtosi-jms diff BEFORE {out}",
            "Read a table": reading(options.format, f"{result.out}/objectType={next(iter(result.rows))}"),
        }
    return replace(report_of(result, str(options.landing)), links={**tables, **ledger}, steps=steps)


def _facts(result: IngestResult) -> list[Fact]:
    ledger = dict.fromkeys(("sequences", "complete", "duplicates"), 0) | result.ledger
    whole, rows = ledger["complete"], sum(result.rows.values())
    spent = result.stages.get("read and write", 0.0)  # without the start of Spark
    return [
        Fact("rows", number(rows)),
        Fact("messages", number(sum(result.messages.values()))),
        Fact("sequences complete", f"{whole} of {ledger['sequences']}", "good" if result.complete else "bad"),
        Fact("duplicates left out", number(ledger["duplicates"])),
        Fact("rejected", number(len(result.rejected)), "bad" if result.rejected else "plain"),
        Fact("objects a second", number(rows / spent) if spent else "unknown"),
        Fact("time", duration(result.seconds)),
    ]


def _sequence_line(found: ReplySequence) -> SequenceLine:
    return SequenceLine(
        name=found.correlation_id if found.correlation_id is not None else found.source or "",
        batches=found.batches,
        expected=found.expected,
        missing=found.missing,
        missing_count=found.missing_count,
        duplicates=found.duplicates,
        conflicts=len(found.conflicts),
        complete=found.complete,
        first_time=time_text(found.first_time) or "",
        last_time=time_text(found.last_time) or "",
    )


def _notes(result: IngestResult) -> list[str]:
    notes: list[str] = []
    others = {kind: count for kind, count in result.messages.items() if kind != "response"}
    if others:
        listed = ", ".join(f"{number(count)} {kind}s" for kind, count in sorted(others.items()))
        notes.append(f"Besides responses there were {listed}; they hold no rows.")
    if result.unfollowed:
        first, count = result.unfollowed[0], number(len(result.unfollowed))
        notes.append(f"{count} replies name files that were not read: see summary.json. {first.file} {first.reason}.")
    for name, columns in result.added.items():
        notes.append(f"New columns of {name}, of a newer release: {', '.join(columns)}.")
    if result.foreign:
        notes.append(f"Something else has changed tables since the last ingest: {', '.join(result.foreign)}.")
    if result.unnamed:
        notes.append(f"{number(result.unnamed)} objects without a name were left out.")
    if result.waiting:
        notes.append(f"{number(result.waiting)} responses wait for the rest of their sequences.")
    if result.stuck:
        why = "batches are in conflict, or a fault came; on_incomplete mark (--on-incomplete mark) writes their rows"
        notes.append(f"{number(result.stuck)} of them wait for ever: {why}.")
    if result.copies:
        listed = ", ".join(f"{number(count)} of {name}" for name, count in result.copies.items())
        notes.append(f"Rows left out because their sequence has the object already: {listed}.")
    if result.differing:
        listed = ", ".join(f"{number(count)} of {name}" for name, count in result.differing.items())
        notes.append(f"Of these rows, some have other attributes than the row that stays: {listed}.")
    if result.dry_run:
        notes.append("Dry run: nothing was written.")
    if result.ledger.get("conflict"):
        notes.append("Some batch numbers arrived with different contents: their sequences are not complete.")
    return notes


def reading(format: str, place: str) -> str:
    """Return the Python expression that reads a table of a job with Spark."""
    header = ".option('header', True)" if format == "csv" else ""
    return f"spark.read.format({format!r}){header}.load({place!r})"
