"""Validates SOAP envelopes and bare MTOSI documents against all schemas at once.

An envelope must follow the rules of SOAP 1.1. The children of its Header, Body and fault detail must be valid against
their schemas. The exit code is 1 if any file is invalid.
"""

from __future__ import annotations

import argparse
from collections import Counter

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json
from mtosi_jms.cli.documents import add_files, files_in
from mtosi_jms.validation import Explainer, Explanation, Report, SchemaSet, Validator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser, "an XML document")
    parser.add_argument(
        "--schemas",
        metavar="DIR",
        help="schemas to use in place of ours: a release tree (only its IIS/xsd folders count) or any folder of XSDs",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="also explain each issue, with file and line of the schema (needs xmlschema)",
    )
    add_json(parser, "one JSON line for each file")


def run(args: argparse.Namespace) -> int:
    files = files_in(args.files)
    schemas = SchemaSet.load(args.schemas)
    for item in schemas.notes:
        terminal.note(str(item))
    validator = Validator(schemas)
    explainer = Explainer(schemas) if args.explain else None
    verdicts: Counter[str] = Counter()
    with terminal.progress("validating", len(files)) as advance:
        for file in files:
            report = validator.validate_file(file)
            verdicts[_verdict(report)] += 1
            wrong = explainer is not None and report.well_formed and not report.valid
            explanations = explainer.explain_file(file) if explainer is not None and wrong else None
            _show(report, explanations, as_json=args.json)
            advance(1)
    if not args.json and len(files) > 1:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        terminal.say(f"{len(files)} files: {counts}", "title")
    return 0 if set(verdicts) == {"valid"} else 1


def _verdict(report: Report) -> str:
    if report.valid:
        return "valid"
    if report.well_formed:
        return "invalid"
    return "not well-formed" if report.issues[0].kind == "malformed" else report.issues[0].kind


def _show(report: Report, explanations: list[Explanation] | None, *, as_json: bool) -> None:
    if as_json:
        more = {} if explanations is None else {"explanations": [one.to_json() for one in explanations]}
        terminal.print_json(report.to_json() | more)
    elif report.valid:
        terminal.say(f"{report.file}: valid", "good")
    else:
        for issue in report.issues:
            place = report.file if issue.line is None else f"{report.file}:{issue.line}"
            terminal.say(f"{place}: {issue}", "bad")
            for explanation in explanations or ():
                if explanation.path == issue.path:
                    terminal.say(f"    {explanation}")
