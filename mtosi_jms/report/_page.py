"""The page: sections put together, everything escaped; one accent, light and dark by the reader's system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from mtosi_jms.report._charts import bars, duration, number, timeline
from mtosi_jms.report._model import Fact, RejectLine, Report, SequenceLine

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
        f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
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


_STYLE: Final = """
:root {
  --page: #f7f8fa; --card: #ffffff; --ink: #16191d; --soft: #5b6470; --line: #e2e6eb;
  --accent: #2f6fb2; --good: #1a7f4b; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12151a; --card: #1a1f26; --ink: #e8ebef; --soft: #9aa5b1; --line: #2c343e;
    --accent: #6aa5e0; --good: #57c08a; --bad: #f2857d;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 920px; margin: 0 auto; padding: 32px 20px 48px; }
header h1 { margin: 0; font-size: 26px; font-weight: 650; letter-spacing: -0.01em; }
header p { margin: 4px 0 0; color: var(--soft); overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px 20px; margin-top: 16px; }
h2 { margin: 0 0 12px; font-size: 15px; font-weight: 600; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 20px 0 0; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.fact dt { color: var(--soft); font-size: 13px; }
.fact dd { margin: 2px 0 0; font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; }
.good dd, .state.good { color: var(--good); }
.bad dd, .state.bad { color: var(--bad); }
.notes { margin: 16px 0 0; padding-left: 20px; color: var(--soft); }
.chart { display: block; width: 100%; height: auto; }
.chart text { font-size: 13px; fill: var(--ink); dominant-baseline: middle; }
.chart .tick, .chart .count { fill: var(--soft); font-size: 12px; }
.chart .value { fill: var(--soft); font-variant-numeric: tabular-nums; }
.chart .bar { fill: var(--accent); }
.chart .mark { fill: var(--accent); stroke: var(--card); stroke-width: 2; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .row:hover .bar, .chart rect.bar:hover, .chart .mark:hover { opacity: 0.75; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 13px; }
th, td { padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
.number { text-align: right; padding-right: 24px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.state { white-space: nowrap; font-weight: 500; }
footer { margin-top: 20px; color: var(--soft); font-size: 13px; }
"""
