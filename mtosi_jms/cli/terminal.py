"""What the commands show: plain lines, and colour, tables and progress bars where rich draws on a terminal.

Results go to standard output; problems, notes and progress go to standard error, so that a pipe carries results only.
All but `write` and `print_json` keep a text on one line, and escape what a terminal would obey or could not show.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

__all__ = [
    "Stages",
    "Style",
    "be_quiet",
    "before_ready",
    "counted",
    "fancy",
    "flush",
    "note",
    "print_json",
    "printable",
    "problem",
    "progress",
    "ready",
    "say",
    "stages",
    "table",
    "tell",
    "to_records",
    "write",
]

Stages = Callable[[str, int, int], None]
"""Told of a stage of a job, its tasks that are done, and all its tasks; 0 and 0 as it begins."""
Style = Literal["plain", "good", "bad", "warn", "dim", "title"]
_RICH: dict[Style, str] = {
    "plain": "",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "dim": "dim",
    "title": "bold",
}

_LEAST = 12
"""Characters that a column of a table has at least, or as many as its longest cell."""
_LONGEST = 4_000
"""Characters of a problem and of a cell that are shown: some quote a peer or a file."""

# The console that draws a progress bar just now: other lines go through it, above the bar.
_drawing: Console | None = None


# Whether notes and progress are left out.
_quiet = False
# Takes the lines for standard error, if they are to be records of a log.
_records: Callable[[str, Style], None] | None = None


def be_quiet(quiet: bool) -> None:
    """Leave out notes and progress from now on, or no longer."""
    global _quiet
    _quiet = quiet


def to_records(take: Callable[[str, Style], None] | None) -> None:
    """Have a function take the lines for standard error from now on, without the word before them; None: print them."""
    global _records
    _records = take


def counted(number: int) -> str:
    """How many messages, in words."""
    return f"{number:,} {'message' if number == 1 else 'messages'}"


def printable(text: str) -> str:
    """Text on one line, with what a terminal would obey or could not show as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"


def fancy(stream: IO[str] | None = None) -> bool:
    """Whether a stream, by default standard output, is a terminal and rich is installed."""
    stream = sys.stdout if stream is None else stream
    if stream is None or not stream.isatty():
        return False
    try:
        import rich  # noqa: F401 - asked for only
    except ImportError:
        return False
    return True


def write(text: str, style: Style = "plain", *, stream: IO[str] | None = None) -> None:
    """Print text of any number of lines: as it is, on a terminal in colour and with what it would obey as escapes."""
    stream = sys.stdout if stream is None else stream
    if _records is not None and stream is sys.stderr:
        _records(text.removeprefix("error: ").removeprefix("note: "), style)
        return
    if stream is not None and stream.isatty():
        text = "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
    if not fancy(stream):
        print(text, file=stream)  # to nowhere, where the caller closed the stream
        return
    from rich.console import Console
    from rich.text import Text

    target = _drawing or Console(file=stream)
    target.print(Text(text, style=_RICH[style]), soft_wrap=True, highlight=False)


def say(text: str, style: Style = "plain") -> None:
    """Print a line of the result."""
    write(printable(text), style)


def flush() -> None:
    """Have what was printed read at once, also through a pipe."""
    if sys.stdout is not None:
        sys.stdout.flush()


before_ready: list[Callable[[], None]] = []
"""Called before a command says that it is ready."""


def ready(text: str, *, stream: IO[str] | None = None) -> None:
    """Say that a command listens: on standard error, where standard output is for what it receives."""
    for tell in before_ready:
        tell()
    stream = sys.stderr if stream is None else stream
    write(printable(text), "good", stream=stream)
    if stream is not None:
        stream.flush()


def problem(text: str) -> None:
    """Report something at fault on standard error; of a long text its beginning."""
    write(_short(printable(f"error: {text}")), "bad", stream=sys.stderr)


def tell(text: str) -> None:
    """Print a line on standard error, without a word before it."""
    write(printable(text), stream=sys.stderr)


def note(text: str) -> None:
    """Report something worth knowing on standard error."""
    if not _quiet:
        write(printable(f"note: {text}"), "dim", stream=sys.stderr)


def print_json(value: Any) -> None:
    """Print one JSON document on one line of standard output, at once."""
    print(json.dumps(value, default=str), flush=True)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], above: Mapping[int, int] | None = None
) -> Mapping[int, int]:
    """Print a table: framed on a terminal, aligned plain lines otherwise. A column of which every cell is empty is left
    out, and of a long cell its beginning is shown.

    Args:
        above: what was returned for the table just above, which this one continues: plain lines have one heading.

    Returns:
        the columns shown by their numbers, with their widths.
    """
    title = printable(title)
    cells = [["" if cell is None else _short(printable(str(cell))) for cell in row] for row in rows]
    above = {} if above is None or fancy() else above
    filled = [at for at in range(len(columns)) if not cells or at in above or any(row[at] for row in cells)]
    columns, *cells = [[row[at] for at in filled] for row in (columns, *cells)]
    widths = {at: max(above.get(at, 0), *map(len, cut)) for at, *cut in zip(filled, columns, *cells, strict=True)}
    if fancy():
        _rich_table(title, columns, cells, list(widths.values()))
        return widths
    if title:
        print(title)
    for row in cells if above.keys() == widths.keys() else (columns, *cells):
        print("  ".join(map(str.ljust, row, widths.values())).rstrip())
    return widths


def _rich_table(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout)
    if sum(min(width, _LEAST) + 3 for width in widths) + 1 > console.width:
        _in_lines(title, columns, cells)
        return
    framed = Table(title=title or None, title_justify="left")
    for column, width in zip(columns, widths, strict=True):
        framed.add_column(column, overflow="fold", min_width=min(_LEAST, width))
    for row in cells:
        framed.add_row(*map(Text, row))
    console.print(framed)


def _in_lines(title: str, columns: Sequence[str], cells: Iterable[Sequence[str]]) -> None:
    """A row after the other, a line for each cell that is not empty: for a terminal too narrow for the table."""
    if title:
        write(title, "title")
    width = max(map(len, columns))
    for row in cells:
        for column, cell in zip(columns, row, strict=True):
            if cell:
                write(f"{column.ljust(width)}  {cell}")
        write("")


@contextlib.contextmanager
def stages(label: str) -> Iterator[Stages]:
    """The stages of a job on standard error while the block runs: a bar of its tasks on a terminal, else lines."""
    if _quiet:
        yield lambda stage, done, tasks: None
        return
    if _records is not None or not fancy(sys.stderr):
        yield lambda stage, done, tasks: None if tasks else write(printable(f"{label}: {stage}"), stream=sys.stderr)
        return
    with _bar(label, None) as (bar, task):

        def report(stage: str, done: int, tasks: int) -> None:
            nonlocal task
            if not tasks:  # a bar of its own, which does not know its length yet
                bar.remove_task(task)
                task = bar.add_task(printable(f"{label}: {stage}"), total=None)
            bar.update(task, completed=done, total=tasks or None)

        yield report


@contextlib.contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error while the block runs; nothing where that is not a terminal.

    Args:
        total: how many steps there are, None if unknown.

    Yields:
        a function that takes the number of steps just done, and as `total` how many there are, once that is known.
    """
    if _quiet or _records is not None or not fancy(sys.stderr):
        yield lambda steps, total=None: None
        return
    with _bar(label, total) as (bar, task):
        yield lambda steps, total=None: bar.update(task, advance=steps, total=total)


@contextlib.contextmanager
def _bar(label: str, total: int | None) -> Iterator[tuple[Progress, TaskID]]:
    global _drawing
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    # rich would send a piped standard output to standard error as well.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty())
    _drawing = console
    try:
        with bar:
            yield bar, bar.add_task(label, total=total)
    finally:
        _drawing = None
