"""Where the SDK's log goes while a command runs: notes on standard error, or lines as `--log-level` and others ask."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

from mtosi_jms.cli import terminal
from mtosi_jms.masking import without_login
from mtosi_jms.telemetry import JsonFormatter, LineFormatter

__all__ = ["add_log", "all_in_json", "log_in_lines"]

_LEVELS: Final = ("debug", "info", "warning", "error")
_WIRE: Final = ("mtosi_jms.wire", "mtosi_jms.messages")


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add `--log-level`, `--log-json` and `--wire`."""
    group = parser.add_argument_group("log")
    group.add_argument(
        "--log-level", choices=_LEVELS, help="lowest level to log on standard error (warnings, as notes)"
    )
    group.add_argument("--log-json", action="store_true", help="write each line on standard error as a JSON object")
    group.add_argument(
        "--wire", action="store_true", help="log each message: headers, properties, envelope; credentials are masked"
    )


class _Notes(logging.Handler):
    """Prints log records as notes, one line each and without a traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody reads standard error any longer
            terminal.note(without_login(record.getMessage()))


class _Lines(logging.Handler):
    """Prints log records as lines on standard error, which tests and callers may have redirected."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(self.format(record), file=sys.stderr, flush=True)


_LEVELS_OF: Final[dict[terminal.Style, int]] = {"bad": logging.ERROR, "warn": logging.WARNING}


@contextlib.contextmanager
def all_in_json(args: argparse.Namespace) -> Iterator[None]:
    """With `--log-json`, make each line on standard error a JSON object while the block runs: also notes, warnings,
    the log of other libraries, and failures of threads. The problem that ends the program is one too."""
    if not getattr(args, "log_json", False):
        yield
        return
    lines, root, own = _Lines(), logging.getLogger(), logging.getLogger("mtosi_jms.cli")
    lines.setFormatter(JsonFormatter())

    def take(text: str, style: terminal.Style) -> None:
        lines.emit(own.makeRecord(own.name, _LEVELS_OF.get(style, logging.INFO), "", 0, text, (), None))

    def failed(failure: Any) -> None:
        info = failure.exc_type, failure.exc_value, failure.exc_traceback
        what = "a thread failed" if hasattr(failure, "thread") else failure.err_msg or "an exception was ignored"
        lines.emit(own.makeRecord(own.name, logging.ERROR, "", 0, what, (), info))

    terminal.to_records(take)
    root.addHandler(lines)
    logging.captureWarnings(True)
    hooks, threading.excepthook, sys.unraisablehook = (threading.excepthook, sys.unraisablehook), failed, failed
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(False)
        root.removeHandler(lines)


def _handler(args: argparse.Namespace | None) -> logging.Handler:
    if args is None or not (args.log_level or args.log_json or args.wire):
        return _Notes(logging.WARNING)
    handler = _Lines()
    handler.setFormatter(JsonFormatter() if args.log_json else LineFormatter(tracebacks=args.log_level == "debug"))
    return handler


@contextlib.contextmanager
def log_in_lines(args: argparse.Namespace | None = None) -> Iterator[None]:
    """The SDK's log on standard error while the block runs: warnings as notes, unless what `add_log` adds asks for
    more."""
    log, handler = logging.getLogger("mtosi_jms"), _handler(args)
    wires = [logging.getLogger(name) for name in _WIRE]
    before = [(one, one.level) for one in (log, *wires)]
    propagated, log.propagate = log.propagate, False
    log.addHandler(handler)
    if args is not None and args.log_level:
        log.setLevel(args.log_level.upper())
    for wire in wires:
        if args is not None:
            wire.setLevel(logging.DEBUG if args.wire else logging.INFO)
    try:
        yield
    finally:
        for one, level in before:
            one.setLevel(level)
        log.removeHandler(handler)
        log.propagate = propagated
