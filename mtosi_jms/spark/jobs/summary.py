"""An ingest's result as a report page."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from mtosi_jms.report import Fact, RejectLine, Report, SequenceLine, duration, number
from mtosi_jms.spark.sequences import time_text

if TYPE_CHECKING:
    from mtosi_jms.spark.jobs.ingest import IngestResult
    from mtosi_jms.spark.sequences import ReplySequence


def report_of(result: IngestResult, landing: str, made: dt.datetime | None = None) -> Report:
    """The page of an ingest.

    Args:
        result: what it brought.
        landing: what was read, for the heading.
        made: when, in UTC.
    """
    return Report(
        title="MTOSI inventory",
        subtitle=f"{landing} to {result.out}",
        made=made,
        facts=facts_of(result),
        objects=result.rows,
        vendors=result.vendors,
        sequences=[sequence_line(found) for found in result.sequences],
        rejects=[RejectLine(reject.file, reject.line, reject.reason) for reject in result.rejected],
        seconds=result.stages,
        notes=_notes(result),
    )


def facts_of(result: IngestResult) -> list[Fact]:
    """The numbers at the top of the page."""
    whole = sum(found.complete for found in result.sequences)
    return [
        Fact("rows", number(sum(result.rows.values()))),
        Fact("messages", number(sum(result.messages.values()))),
        Fact("sequences complete", f"{whole} of {len(result.sequences)}", "good" if result.complete else "bad"),
        Fact("duplicates left out", number(sum(found.duplicates for found in result.sequences))),
        Fact("rejected", number(len(result.rejected)), "bad" if result.rejected else "plain"),
        Fact("time", duration(result.seconds)),
    ]


def sequence_line(found: ReplySequence) -> SequenceLine:
    """A sequence as a line of the page's ledger."""
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
        notes.append(f"{number(len(result.unfollowed))} replies name files that were not read: see summary.json.")
    if any(found.conflicts for found in result.sequences):
        notes.append("Some batch numbers arrived with different contents; all of them are kept.")
    return notes
