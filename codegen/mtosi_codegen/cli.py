"""The command `mtosi-codegen generate | check | inspect | docs | templates | deploy | verify | sample`.

Exit codes: 0 done; 1 the sources or the files on disk are wrong, each problem is one line on standard error;
2 wrong usage; 130 interrupted; 141 the reader of the output has gone. A traceback is shown only if the environment
sets MTOSI_JMS_DEBUG.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import keyword
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mtosi_codegen import cli_deploy, cli_proof, cli_templates, report
from mtosi_codegen.pipeline import Result, generate
from mtosi_codegen.wanted import UNKNOWN
from mtosi_codegen.write import compare, is_generated, outdated, write, write_pages
from mtosi_jms.errors import MtosiError, SchemaError

if TYPE_CHECKING:
    from mtosi_codegen.docs import Examples

_FIX = "run mtosi-codegen generate with the same arguments"
_MOVE = "not generated, so keep it elsewhere"
_AT_FAULT: Final = 1
_WRONG_USAGE: Final = 2
_INTERRUPTED: Final = 130
# The exit code that a shell reports for a program whose reader has gone.
_PIPE_CLOSED: Final = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: arguments without the program's name; None for the arguments of the process.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name or a value that the terminal cannot show must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return _PIPE_CLOSED
    except KeyboardInterrupt:
        print("mtosi-codegen: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (MtosiError, OSError) as error:
        if isinstance(error, SchemaError) and error.rule == UNKNOWN:
            return _report(error, f"--operations: {error}", _WRONG_USAGE)
        return _report(error, _one_line(error))
    except Exception as error:  # noqa: BLE001 - the last place that can report a defect without a traceback
        return _report(error, f"internal error, please report it: {type(error).__name__}: {error}")
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        args = _parser().parse_args(argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else _WRONG_USAGE
    command: Callable[[argparse.Namespace], int] = args.run
    return command(args)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, MtosiError):
        reason = error.strerror or str(error) or type(error).__name__
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    return str(error) or type(error).__name__


def _report(error: Exception, text: str, code: int = _AT_FAULT) -> int:
    _discard_output()
    print(f"mtosi-codegen: {' '.join(text.split())}", file=sys.stderr)
    if os.environ.get("MTOSI_JMS_DEBUG"):
        raise error
    return code


def _discard_output() -> None:
    """Drop output that cannot be written; else the interpreter complains again when it flushes at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)


def _version() -> str:
    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:
        return "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mtosi-codegen", description="Typed Python from WSDL and XML Schema.")
    parser.add_argument("--version", action="version", version=f"mtosi-codegen {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, about in (
        ("generate", _generate, "write the package"),
        ("check", _check, "compare the package on disk with what generate would write"),
        ("inspect", _inspect, "show services, operations and findings; write nothing"),
        ("docs", _docs, "write web pages about services, operations and types"),
    ):
        command = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        command.set_defaults(run=run)
        command.add_argument("sources", nargs="+", metavar="SOURCE", help="a WSDL, an XML Schema, or a folder of them")
        command.add_argument(
            "--operations", type=_names, metavar="A,B", help="only these operations, each [SERVICE.]OPERATION"
        )
        command.add_argument(
            "--bindings", choices=("jms", "all"), default="jms", help="all: include SOAP over HTTP (%(default)s)"
        )
        command.add_argument("--strict", action="store_true", help="refuse sources that need a repair")
        if name == "docs":
            command.add_argument("--out", type=Path, required=True, help="folder to write the pages to")
            continue
        if name != "inspect":
            command.add_argument("--package", type=_package, required=True, help="name of the package, dots allowed")
            command.add_argument("--out", type=Path, required=True, help="folder to write the package to")
            command.add_argument("--templates", type=Path, metavar="DIR", help="templates to use in place of ours")
        if name == "generate":
            command.add_argument("--report", type=Path, metavar="FILE", help="also write a report, as JSON")
        else:
            command.add_argument("--json", action="store_true", help="print JSON")
    cli_deploy.add_parser(commands)
    cli_templates.add_parser(commands)
    cli_proof.add_parsers(commands, _names, _package)
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("no operation named")
    return names


def _package(text: str) -> str:
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split(".")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Python package name")
    return text


def _result(args: argparse.Namespace) -> tuple[Result, float]:
    start = time.perf_counter()
    templates = getattr(args, "templates", None)
    result = generate(args.sources, bindings=args.bindings, operations=args.operations, templates=templates)
    return result, time.perf_counter() - start


def _problems(result: Result, args: argparse.Namespace) -> int:
    """Print findings to standard error; return 1 if something was not generated or, with --strict, was repaired."""
    for finding in result.findings:
        print(finding, file=sys.stderr)
    return _verdict(result, args)


def _verdict(result: Result, args: argparse.Namespace) -> int:
    if _is_empty(result):
        print("mtosi-codegen: nothing to generate in the sources", file=sys.stderr)
        return 1
    return int(result.failed or (args.strict and bool(result.findings)))


def _is_empty(result: Result) -> bool:
    return not result.model.modules and not result.model.services


def _folder(args: argparse.Namespace) -> Path:
    out: Path = args.out
    return out.joinpath(*args.package.split("."))


def _generate(args: argparse.Namespace) -> int:
    result, seconds = _result(args)
    code = _problems(result, args)
    if args.report is not None:
        _write_report(args.report, report.as_json(result, seconds))
    if args.strict and result.findings:
        print("mtosi-codegen: --strict: the sources need repairs, nothing was written", file=sys.stderr)
        return 1
    if _is_empty(result):  # a wrong path must not remove a package generated earlier
        return code
    _say_what_is_kept(result, args)
    write(_folder(args), result.files, complete=not result.failed)
    print(f"{_folder(args)}: {report.summary(result, seconds)}")
    return code


def _say_what_is_kept(result: Result, args: argparse.Namespace) -> None:
    if result.failed and (kept := outdated(_folder(args), result.files)):
        text = f"{report.counted(len(kept), 'file')} that may be outdated, because something could not be generated"
        print(f"mtosi-codegen: {_folder(args)}: kept {text}", file=sys.stderr)


def _write_report(path: Path, content: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise MtosiError(f"{path}: cannot be written: {error.strerror}") from None


def _check(args: argparse.Namespace) -> int:
    result, seconds = _result(args)
    code = _problems(result, args)
    _say_what_is_kept(result, args)
    differences = compare(_folder(args), result.files, complete=not result.failed)
    if args.json:
        pairs = [{"path": difference.path, "kind": difference.kind} for difference in differences]
        print(json.dumps({"fresh": not differences, "differences": pairs, "seconds": round(seconds, 3)}))
    for difference in differences:
        path = _folder(args) / difference.path
        fix = _FIX if difference.kind != "extra" or is_generated(path) else _MOVE
        print(f"{path}: {difference.kind}; {fix}", file=sys.stderr)
    if not differences and not args.json:
        print(f"{_folder(args)}: up to date, {report.summary(result, seconds)}")
    return 1 if differences else code


def _inspect(args: argparse.Namespace) -> int:
    result, seconds = _result(args)
    if args.json:
        print(json.dumps(report.as_json(result, seconds), indent=2))
    else:
        rows = [("service", "operation", "pattern", "request", "response"), *report.table(result)]
        _print_table(rows)
        for finding in result.findings:
            print(finding)
        print(report.summary(result, seconds))
    return _verdict(result, args)


def _docs(args: argparse.Namespace) -> int:
    from mtosi_codegen.docs import MARK, pages

    result, _ = _result(args)
    code = _problems(result, args)
    if (args.strict and result.findings) or _is_empty(result):
        return code
    files = pages(result, _examples(args) if result.model.services else None)
    write_pages(args.out, files, MARK, complete=not result.failed)
    print(f"{args.out / 'index.html'}: {report.counted(len(files), 'file')}")
    return code


def _examples(args: argparse.Namespace) -> Examples | None:
    """Example messages; None if the schemas cannot be used even after repair."""
    from mtosi_codegen.proof.sample import Samples

    try:
        return Samples(args.sources, args.bindings).examples
    except SchemaError as error:
        print(f"mtosi-codegen: pages without examples: {' '.join(str(error).split())}", file=sys.stderr)
        return None


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
