"""The job behind `mtosi-jms ingest`: a landing into Parquet by object type, with ledger, rejects and report.

    OUT/objectType=ME/*.parquet      typed columns of ME, and so on: one folder for each object type
    OUT/_report/summary.json         what `--json` prints
    OUT/_report/ledger.jsonl         one line a sequence
    OUT/_report/rejects.jsonl        one line a rejected file
    OUT/_report/report.html

With ALL, each object type that occurs gets its folder; with types named, each of these does, be it without rows.

Each file is parsed once. One object type is written as it is read; several are read together, each into a struct
column of its own, and parted afterwards by Spark. All is made in a folder of its own and moved into place at the end,
so that a job that fails leaves an earlier result as it was. Planning looks at heads and ends only; when reading then
finds a file that breaks off in the middle, the landing is planned again with every file parsed, and the tables are made
again, so that the marks of complete sequences are right.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.errors import ConfigError, MtosiError
from mtosi_jms.inventory import ALL, MESSAGE
from mtosi_jms.spark._delta import DELTA, check_format, commit, delta_settings
from mtosi_jms.spark._discover import Reject
from mtosi_jms.spark._landing import Landing, check_complete, plan_landing
from mtosi_jms.spark._output import check_out, spark_errors
from mtosi_jms.spark._readable import check_readable
from mtosi_jms.spark._swap import Staging, staging
from mtosi_jms.spark.options import Mode, OnIncomplete, SourceOptions, Verify
from mtosi_jms.spark.sequences import ReplySequence, ledger_row, time_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES: Final = ("objectType=*",)
_SUMMARY: Final = "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """What to ingest, and how.

    Attributes:
        landing: a spool, a folder of envelopes, a file or a glob.
        out: folder for the result; made if need be. Tables of an earlier ingest there are replaced.
        object_type: as the source's option `objectType`, ALL for every type that occurs; not MESSAGE.
        mode: as the source's option; FAILFAST raises before anything is written.
        on_incomplete: as the source's option; fail raises before anything is written.
        stubs: generated packages, joined by commas.
        cores: processors for a session of the job's own, by default all.
        bulk_files: folders below which files are read that replies of BulkResponse name (C18, experimental).
        format: of the tables, parquet or delta; the latter needs `delta-spark`, and a session that knows Delta.
        allow_empty: whether a landing without a readable message makes empty tables; by default it is an error.
    """

    landing: str | Path
    out: str | Path
    object_type: str = "ME"
    mode: str = "PERMISSIVE"
    on_incomplete: str = "warn"
    stubs: str = ""
    cores: int | None = None
    bulk_files: tuple[str, ...] = ()
    format: str = "parquet"
    allow_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What an ingest brought.

    Attributes:
        rows: number of rows by object type.
        sequences: the ledger.
        rejected: what was rejected.
        unfollowed: replies of BulkResponse whose files were not read.
        messages: number of messages by kind, duplicates included.
        vendors: number of objects by manufacturer, the most frequent ones.
        stages: seconds by stage.
        seconds: in all, until the tables were made.
        out: where the result lies.
    """

    rows: dict[str, int]
    sequences: tuple[ReplySequence, ...]
    rejected: tuple[Reject, ...]
    messages: dict[str, int]
    vendors: dict[str, int]
    stages: dict[str, float]
    seconds: float
    out: Path
    unfollowed: tuple[Reject, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all sequences are complete."""
        return all(found.complete for found in self.sequences)

    def summary(self) -> dict[str, Any]:
        """The JSON document of the command."""
        return {
            "rows": self.rows,
            "sequences": [_sequence_json(found) for found in self.sequences],
            "rejected": [asdict(reject) for reject in self.rejected],
            "unfollowed": [asdict(reply) for reply in self.unfollowed],
            "messages": self.messages,
            "seconds": round(self.seconds, 3),
            "stages": {name: round(value, 3) for name, value in self.stages.items()},
            "out": str(self.out),
        }


def _sequence_json(found: ReplySequence) -> dict[str, Any]:
    return {
        "correlation_id": found.correlation_id,
        "file": found.source,
        "batches": found.batches,
        "expected": found.expected,
        "missing": list(found.missing),
        "missing_count": found.missing_count,
        "duplicates": found.duplicates,
        "conflicts": list(found.conflicts),
        "unexpected": list(found.unexpected),
        "faults": found.faults,
        "complete": found.complete,
        "first_time": time_text(found.first_time),
        "last_time": time_text(found.last_time),
    }


def _ledger_line(found: ReplySequence) -> dict[str, Any]:
    times = {"first_time": time_text(found.first_time), "last_time": time_text(found.last_time)}
    return {**ledger_row(found), **times}


def ingest(
    options: IngestOptions, *, spark: SparkSession | None = None, progress: Callable[[str], None] | None = None
) -> IngestResult:
    """Run the job.

    Args:
        options: what to do.
        spark: a session with this machine's files at hand; by default one is made and stopped again.
        progress: called with the name of each stage as it begins.

    Raises:
        ConfigError: options that do not fit, a type that no stub knows, no PySpark or Java, or a folder `out` that
            holds tables of somebody else.
        SpoolError: the landing does not exist, cannot be read or holds no readable message, or `out` cannot be written.
        SpoolInUseError: another job works on `out`.
        ExchangeError: `on_incomplete` is fail and some sequence is incomplete.
        MtosiError: `mode` is FAILFAST and something is rejected; one line each.
    """
    return _Job(options, progress or (lambda stage: None)).run(spark)


class _Job:
    """One run."""

    def __init__(self, options: IngestOptions, progress: Callable[[str], None]) -> None:
        self._given = options
        self._progress = progress
        self._started = time.perf_counter()
        self._out = Path(options.out)
        self._source = SourceOptions.parse(
            {
                "path": str(options.landing),
                "objectType": options.object_type,
                "mode": options.mode,
                "onIncomplete": options.on_incomplete,
                "stubs": options.stubs,
                "bulkFiles": json.dumps([str(folder) for folder in options.bulk_files]),
            }
        )
        if self._source.object_types == (MESSAGE,):
            raise ConfigError("ingest makes tables of objects; read messages with the source's objectType MESSAGE")
        self._stages: dict[str, float] = {}

    def run(self, spark: SparkSession | None) -> IngestResult:
        from mtosi_jms.inventory import class_for, load_stubs
        from mtosi_jms.spark.session import check_java, check_pyspark, local_session

        check_pyspark()
        load_stubs(self._source.stubs)
        for name in self._source.object_types:
            if name != ALL:
                class_for(name)
        delta = self._given.format == DELTA
        check_out(self._out, _TABLES, _SUMMARY, delta=delta)
        check_format(self._given.format, self._out)
        landing = self._plan(self._source)
        if not self._given.allow_empty:
            check_readable(landing, self._source, self._shown_reject)
        if spark is None:
            check_java()
        with staging(self._out, delta=delta) as staged, ExitStack() as stack:
            with self._stage("start Spark"):
                settings = delta_settings() if delta else {}
                active = spark or stack.enter_context(local_session(cores=self._given.cores, settings=settings))
            with spark_errors():
                result = self._tables(active, landing, staged.folder)
                if delta:
                    with self._stage("commit"):
                        staged.begin_commits(_TABLES)
                        commit(active, staged.folder, self._out)
            self._report(result, staged)
            staged.swap(() if delta else _TABLES)
        return result

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._progress(name)
        started = time.perf_counter()
        yield
        self._stages[name] = self._stages.get(name, 0.0) + time.perf_counter() - started

    def _plan(self, source: SourceOptions) -> Landing:
        """Look at the landing; where a single reject decides, at every file from end to end."""
        with self._stage("plan"):
            landing = plan_landing(replace(source, verify=Verify.FULL) if source.mode is Mode.FAILFAST else source)
        if landing.rejects and source.mode is Mode.FAILFAST:
            raise MtosiError("\n".join(str(self._shown_reject(reject)) for reject in landing.rejects))
        if source.on_incomplete is OnIncomplete.FAIL:
            check_complete(tuple(self._shown_sequence(found) for found in landing.sequences))
        return landing

    def _tables(self, spark: SparkSession, landing: Landing, folder: Path) -> IngestResult:
        """Make the tables in a folder."""
        from mtosi_jms.spark._tables import TableWriter

        writer = TableWriter(spark, self._source, folder)
        with self._stage("read and write"):
            written = writer.write(landing)
        if written is None:
            landing = self._plan(replace(self._source, verify=Verify.FULL))
            with self._stage("read and write"):
                written = writer.write(landing)
        if written is None:
            raise MtosiError(f"{self._given.landing}: files change while they are read")
        with self._stage("count"):
            vendors = writer.vendors(written.rows)
        rejects = sorted((*landing.rejects, *written.rejects), key=lambda reject: reject.file)
        return IngestResult(
            rows=written.rows,
            sequences=tuple(self._shown_sequence(found) for found in landing.sequences),
            rejected=tuple(self._shown_reject(reject) for reject in rejects),
            messages=landing.counts,
            vendors=vendors,
            stages=self._stages,
            seconds=time.perf_counter() - self._started,
            out=self._out,
            unfollowed=tuple(self._shown_reject(reply) for reply in landing.unfollowed),
        )

    def _shown(self, path: str) -> str:
        """A path as the user would write it: relative where the landing was given so."""
        given = str(self._given.landing)
        return path if Path(given).is_absolute() or given.startswith("file:") else os.path.relpath(path)

    def _shown_reject(self, reject: Reject) -> Reject:
        return replace(reject, file=self._shown(reject.file))

    def _shown_sequence(self, found: ReplySequence) -> ReplySequence:
        return found if found.source is None else replace(found, source=self._shown(found.source))

    def _report(self, result: IngestResult, staged: Staging) -> None:
        from mtosi_jms.report import render
        from mtosi_jms.spark.jobs.summary import report_of

        staged.report_json(_SUMMARY, result.summary())
        staged.report("ledger.jsonl", _lines([_ledger_line(found) for found in result.sequences]))
        staged.report("rejects.jsonl", _lines([asdict(reject) for reject in result.rejected]))
        made = dt.datetime.now(dt.UTC)
        staged.report("report.html", render(report_of(result, str(self._given.landing), made)))


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
