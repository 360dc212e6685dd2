"""The page: sections put together, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from mtosi_jms.report._model import Fact, RejectLine, Report, SequenceLine
from mtosi_jms.report._style import STYLE
from mtosi_jms.report.charts import bars, duration, number, timeline

_ROWS: Final = 500
_MARKS: Final = {"plain": "", "good": "\u2713 ", "bad": "\u2717 "}


def render(report: Report) -> str:
    """The report as one HTML page that needs nothing else."""
    sections = (
        _facts(report.facts),
        _notes(report.notes),
        _section("Exchange", timeline(report.timeline, "moments of the exchange") if report.timeline else ""),
        _section("Objects by type", bars(report.objects, "objects by type") if report.objects else ""),
        _section("Objects by manufacturer", bars(report.vendors, "objects by manufacturer") if report.vendors else ""),
        _section("Ledger of sequences", _ledger(report.sequences)),
        _section("Rejected", _rejects(report.rejects)),
        _section("Time", bars(report.seconds, "seconds by stage", shown=duration) if report.seconds else ""),
    )
    made = f"{report.made:%Y-%m-%d %H:%M:%S} UTC" if report.made else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(report.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{escape(report.title)}</h1><p>{escape(report.subtitle)}</p></header>\n"
        f"{''.join(sections)}<footer>mtosi-jms {escape(made)}</footer>\n</main>\n</body>\n</html>\n"
    )


def write_report(report: Report, path: str | Path) -> None:
    """Write the page to a file.

    Raises:
        OSError: the file cannot be written.
    """
    Path(path).write_bytes(render(report).encode("utf-8", "backslashreplace"))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>\n" if content else ""


def _facts(facts: Sequence[Fact]) -> str:
    if not facts:
        return ""
    cells = "".join(
        f'<div class="fact {fact.tone}"><dt>{escape(fact.label)}</dt>'
        f"<dd>{_MARKS[fact.tone]}{escape(fact.value)}</dd></div>"
        for fact in facts
    )
    return f'<dl class="facts">{cells}</dl>\n'


def _notes(notes: Sequence[str]) -> str:
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>\n' if notes else ""


def _ledger(sequences: Sequence[SequenceLine]) -> str:
    if not sequences:
        return ""
    worst = sorted(sequences, key=lambda line: (line.complete, not line.conflicts))
    heads = ("Sequence", "Batches", "Expected", "Missing", "Duplicates", "Conflicts", "First", "Last", "State")
    rows = [
        (
            escape(line.name),
            number(line.batches),
            "unknown" if line.expected is None else number(line.expected),
            _missing(line),
            number(line.duplicates),
            number(line.conflicts),
            escape(line.first_time),
            escape(line.last_time),
            _state("complete", "good") if line.complete else _state("incomplete", "bad"),
        )
        for line in worst[:_ROWS]
    ]
    return _table(heads, rows, {1, 2, 4, 5}) + _more(len(worst))


def _missing(line: SequenceLine) -> str:
    if not line.missing_count:
        return "none" if line.expected is not None else "the end"
    numbers = ", ".join(map(str, line.missing[:20]))
    return f"{numbers} \u2026 ({number(line.missing_count)})" if line.missing_count > 20 else numbers


def _state(text: str, tone: str) -> str:
    return f'<span class="state {tone}">{_MARKS[tone]}{escape(text)}</span>'


def _rejects(rejects: Sequence[RejectLine]) -> str:
    if not rejects:
        return ""
    rows = [
        (escape(line.file), "" if line.line is None else str(line.line), escape(line.reason))
        for line in rejects[:_ROWS]
    ]
    return _table(("File", "Line", "Reason"), rows, {1}) + _more(len(rejects))


def _more(count: int) -> str:
    return f"<p>The first {_ROWS} of {number(count)}.</p>" if count > _ROWS else ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: set[int]) -> str:
    """A table; cells are HTML already."""
    head = "".join(f"<th{_align(column, numeric)}>{escape(text)}</th>" for column, text in enumerate(heads))
    body = "".join(
        f"<tr>{''.join(f'<td{_align(column, numeric)}>{cell}</td>' for column, cell in enumerate(row))}</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _align(column: int, numeric: set[int]) -> str:
    return ' class="number"' if column in numeric else ""
