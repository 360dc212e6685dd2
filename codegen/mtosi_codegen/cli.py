"""The command `mtosi-codegen generate | check | inspect | docs | templates | deploy | verify | sample`.

Exit codes: 0 done; 1 the sources or the files on disk are wrong, each problem is one line on standard error; others as
in `mtosi_jms.cli.program`.
"""

from __future__ import annotations

import argparse
import json
import keyword
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtosi_codegen import cli_deploy, cli_proof, report
from mtosi_codegen.pipeline import UNKNOWN, Result, generate
from mtosi_codegen.write import compare, is_generated, outdated, write, write_pages
from mtosi_jms.cli.arguments import SHOWING, Parser, commands_of, complete, local, nearest, shown_as, write_manual
from mtosi_jms.cli.program import WRONG_USAGE, run_program
from mtosi_jms.cli.terminal import problem, progress, say, tell
from mtosi_jms.cli.terminal import write as say_lines
from mtosi_jms.errors import MtosiError, SchemaError

if TYPE_CHECKING:
    from mtosi_codegen.docs import Examples

_FIX = "run mtosi-codegen generate with the same arguments"
_EXAMPLES = {
    "generate": "wsdl/ --package acme.stubs --out src",
    "check": "wsdl/ --package acme.stubs --out src",
    "inspect": "wsdl/",
    "docs": "wsdl/ --out pages",
    "templates": "templates",
    "deploy": "wsdl/ --deployment os.toml --out deployed",
    "verify": "wsdl/ --package acme.stubs --out src",
    "sample": "getManagedElement wsdl/ --min",
    "help": "generate",
}
_MOVE = "not generated, so keep it elsewhere"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: arguments without the program's name; None for the arguments of the process.
    """
    if argv is None:
        complete(lambda command: _parser())
    return run_program(_run, argv)


def _run(arguments: list[str]) -> int:
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return WRONG_USAGE
    try:
        args = parser.parse_args(shown_as(arguments))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else WRONG_USAGE
    command: Callable[[argparse.Namespace], int] = args.run
    try:
        return command(args)
    except SchemaError as error:
        if error.rule != UNKNOWN:
            raise
        where = "" if args.command == "sample" else "--operations: "
        raise argparse.ArgumentError(None, f"{where}{error}") from None


def _version() -> str:
    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:
        return "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="mtosi-codegen",
        description="Typed Python from WSDL and XML Schema.",
        epilog="mtosi-codegen help COMMAND explains a command, with an example.",
    )
    for option, does in SHOWING.items():
        parser.add_argument(option, action="store_true", help=does)
    parser.add_argument("--version", action="version", version=f"mtosi-codegen {_version()}")
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND", title="commands")
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
            command.add_argument("--out", type=local, required=True, help="folder to write the pages to")
            continue
        if name != "inspect":
            command.add_argument("--package", type=_package, required=True, help="name of the package, dots allowed")
            command.add_argument("--out", type=local, required=True, help="folder to write the package to")
            command.add_argument("--templates", type=local, metavar="DIR", help="templates to use in place of ours")
        if name == "generate":
            command.add_argument("--report", type=local, metavar="FILE", help="also write a report, as JSON")
        else:
            command.add_argument("--json", action="store_true", help="print JSON")
    cli_deploy.add_parser(commands)
    cli_deploy.add_templates(commands)
    cli_proof.add_parsers(commands, _names, _package)
    shown = commands.add_parser("help", help="explain a command; write pages for man")
    shown.add_argument("about", nargs="?", metavar="COMMAND")
    shown.add_argument("--man", type=local, metavar="DIR", help="write the help of all commands as pages for man")
    shown.set_defaults(run=partial(_help, parser))
    for name, example in _EXAMPLES.items():
        commands.choices[name].epilog = f"Example: mtosi-codegen {name} {example}"
    return parser


def _help(parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    commands = commands_of(parser)
    if args.about is not None and args.about not in commands:
        raise argparse.ArgumentError(None, f"there is no command {args.about!r}; {nearest(args.about, commands)}")
    if args.man is None:
        say_lines(commands.get(args.about, parser).format_help().rstrip("\n"))
    else:
        one = [(command, command.description or parser.description or "") for command in commands.values()]
        written = write_manual(args.man, [(parser, parser.description or ""), *one])
        say(f"{args.man}: {len(written)} pages; man -l {written[0]}")
    return 0


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
    with progress("reading the sources"):
        result = generate(args.sources, bindings=args.bindings, operations=args.operations, templates=templates)
    return result, time.perf_counter() - start


def _problems(result: Result, args: argparse.Namespace) -> int:
    """Print findings to standard error; return 1 if something was not generated or, with --strict, was repaired."""
    for finding in result.findings:
        tell(str(finding))
    return _verdict(result, args)


def _verdict(result: Result, args: argparse.Namespace) -> int:
    if _is_empty(result):
        problem("nothing to generate in the sources")
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
        problem("--strict: the sources need repairs, nothing was written")
        return 1
    if _is_empty(result):  # a wrong path must not remove a package generated earlier
        return code
    _say_what_is_kept(result, args)
    write(_folder(args), result.files, complete=not result.failed)
    say(f"{_folder(args)}: {report.summary(result, seconds)}")
    return code


def _say_what_is_kept(result: Result, args: argparse.Namespace) -> None:
    if result.failed and (kept := outdated(_folder(args), result.files)):
        text = f"{report.counted(len(kept), 'file')} that may be outdated, because something could not be generated"
        problem(f"{_folder(args)}: kept {text}")


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
        tell(f"{path}: {difference.kind}; {fix}")
    if not differences and not args.json:
        say(f"{_folder(args)}: up to date, {report.summary(result, seconds)}")
    return 1 if differences else code


def _inspect(args: argparse.Namespace) -> int:
    result, seconds = _result(args)
    if args.json:
        print(json.dumps(report.as_json(result, seconds), indent=2))
    else:
        rows = [("service", "operation", "pattern", "request", "response"), *report.table(result)]
        _print_table(rows)
        for finding in result.findings:
            say(str(finding))
        say(report.summary(result, seconds))
    return _verdict(result, args)


def _docs(args: argparse.Namespace) -> int:
    from mtosi_codegen.docs import MARK, pages

    result, _ = _result(args)
    code = _problems(result, args)
    if (args.strict and result.findings) or _is_empty(result):
        return code
    with progress("making the pages"):
        files = pages(result, _examples(args) if result.model.services else None)
    write_pages(args.out, files, MARK, complete=not result.failed)
    say(f"{args.out / 'index.html'}: {report.counted(len(files), 'file')}")
    return code


def _examples(args: argparse.Namespace) -> Examples | None:
    """Example messages; None if the schemas cannot be used even after repair."""
    from mtosi_codegen.proof.sample import Samples

    try:
        return Samples(args.sources, args.bindings).examples
    except SchemaError as error:
        problem(f"pages without examples: {' '.join(str(error).split())}")
        return None


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
