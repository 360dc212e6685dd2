"""What the commands show, on a terminal and in a pipe, with rich and without."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

import pytest

from mtosi_jms.cli import terminal


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Makes standard output and standard error one terminal; inside the test, since pytest sets them before it."""

    def install() -> Terminal:
        pytest.importorskip("rich", reason="needs the extra cli")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return install


@pytest.mark.obligation("SEC7")
@pytest.mark.parametrize("with_rich", [True, False])
def test_a_terminal_gets_nothing_that_steers_it(
    open_terminal: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch, with_rich: bool
) -> None:
    screen = open_terminal()
    if not with_rich:
        monkeypatch.setitem(sys.modules, "rich", None)
    terminal.write("a\x9b2Jb\n\tc\u202ed\x1b]0;e\x07\u2066")
    assert "a\\x9b2Jb\n        c\\u202ed\\x1b]0;e\\x07\\u2066" in screen.getvalue()


def test_a_terminal_without_rich_shows_plain_lines(
    open_terminal: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_terminal()
    monkeypatch.setitem(sys.modules, "rich", None)
    terminal.say("text", "bad")
    terminal.table("", ["a"], [["1"]])
    with terminal.progress("working", 2) as advance:
        advance(1)
    assert screen.getvalue() == "text\na\n1\n"


def test_a_bar_leaves_a_piped_standard_output_alone(
    open_terminal: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_terminal()
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with terminal.progress("working", 1) as advance:
        terminal.say("result", "good")
        terminal.print_json({"x": 1})
        advance(1)
    assert pipe.getvalue() == 'result\n{"x": 1}\n'


def test_a_terminal_shows_the_tasks_of_a_stage(open_terminal: Callable[[], Terminal]) -> None:
    screen = open_terminal()
    with terminal.stages("ingesting") as tell:
        for stage, done, tasks in (("read", 0, 0), ("read", 7, 8), ("count", 0, 0), ("count", 2, 3)):
            tell(stage, done, tasks)
    *_, last = screen.getvalue().split("ingesting: ")  # what came before may have been too short to be drawn
    assert last.startswith("count")
    assert "2/3" in last


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say("a [bold]b[/bold]", "bad")
    terminal.problem("first\nsecond \x1b[2J")
    terminal.note("aside")
    assert capsys.readouterr() == ("a [bold]b[/bold]\n", "error: first\\nsecond \\x1b[2J\nnote: aside\n")
    terminal.table("Objects", ["type", "rows"], [["ME", 2000], ["EQUIPMENT", None]])
    assert capsys.readouterr().out == "Objects\ntype       rows\nME         2000\nEQUIPMENT\n"
    with terminal.progress("working", 2) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")
    with terminal.stages("ingesting") as tell:
        for stage, done, tasks in (("start Spark", 0, 0), ("read", 0, 0), ("read", 1, 8)):
            tell(stage, done, tasks)
    assert capsys.readouterr() == ("", "ingesting: start Spark\ningesting: read\n")
    terminal.print_json({"name": "Zürich\n", "path": terminal})
    out = capsys.readouterr().out
    assert (out.count("\n"), out.isascii(), json.loads(out)["name"]) == (1, True, "Zürich\n")


def test_a_terminal_gets_colour_frames_and_the_text_as_it_is(open_terminal: Callable[[], Terminal]) -> None:
    screen = open_terminal()
    terminal.say("/a/b[2]: [red]x", "bad")
    terminal.say("x" * 500, "good")
    terminal.table("Objects", ["type", "rows"], [["[ME]", 2000]])
    with terminal.progress("working", 2) as advance:
        advance(1)
        terminal.say("said above the bar", "good")
    shown = screen.getvalue()
    for part in ("/a/b[2]: [red]x", "\x1b[", "x" * 500, "[ME]", "working", "said above the bar"):
        assert part in shown
    assert "─" in shown or "━" in shown
