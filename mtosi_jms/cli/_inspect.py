"""`mtosi-jms inspect`: what an envelope is, for people: operation, pattern, header, objects, fault, warnings.

Credentials in the header are masked, in the table and in the JSON; `--show-secrets` shows them.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from mtosi_jms.cli import _console as console
from mtosi_jms.cli._contents import Contents, Group, contents_of
from mtosi_jms.cli._documents import Document, load, no_header, printable, told, warning_json
from mtosi_jms.errors import MtosiError

_NAMES: Final = 3
_WARNINGS: Final = 30
_SHOWN: Final = 200


def add_parser(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "inspect",
        help="show what envelopes are and hold",
        description="Shows operation and service, pattern, header fields, objects by type, fault and warnings of SOAP "
        "envelopes. Exit code 1 if a file is no MTOSI envelope.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a SOAP envelope, gzip or not")
    parser.add_argument(
        "--names", type=_count, default=_NAMES, metavar="N", help=f"names to show of each type, {_NAMES} by default"
    )
    parser.add_argument("--show-secrets", action="store_true", help="show credentials in the header")
    parser.add_argument("--json", action="store_true", help="one JSON line for each file")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of names")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Inspect each file; 1 if any is no MTOSI envelope."""
    code = 0
    for file in args.files:
        try:
            document = load(file)
            contents = contents_of(document, names=args.names, secrets=args.show_secrets)
        except (MtosiError, OSError) as error:
            console.problem(told(file, error))
            code = 1
            continue
        if contents.is_mtosi:
            _show(document, contents, as_json=args.json)
        if contents.header is None:
            console.problem(told(file, no_header(document)))
            code = 1
    return code


def _show(document: Document, contents: Contents, *, as_json: bool) -> None:
    if as_json:
        console.print_json(_to_json(document, contents))
        return
    rows = [tuple(printable(cell) for cell in row) for row in _rows(contents)]
    console.table(printable(f"{document.file}: SOAP {document.envelope.version}"), ("", "name", "value"), rows)
    for warning in contents.warnings[:_WARNINGS]:
        console.say(printable(f"warning: {warning}"), "warn")
    if len(contents.warnings) > _WARNINGS:
        console.say(f"warning: {len(contents.warnings) - _WARNINGS} more; --json lists all", "warn")


def _rows(contents: Contents) -> list[tuple[str, str, str]]:
    rows = [("body", contents.body, contents.namespace)] if contents.body else []
    rows += [
        ("operation", use.operation.name, f"{use.role} of {use.service.name}, {use.operation.mep}")
        for use in contents.uses
    ]
    if not contents.uses and contents.operation:
        rows.append(("operation", contents.operation, "of no service that is known here"))
    if contents.pattern:
        rows.append(("pattern", contents.pattern, contents.style or ""))
    if contents.batch:
        rows.append(("batch", "", ", ".join(f"{name} {_text(value)}" for name, value in contents.batch.items())))
    rows += [("header", name, _short(text) or "(empty)") for name, text in (contents.header or {}).items()]
    rows += [("objects", group.type, _group(group)) for group in contents.objects]
    rows += [("events", group.type, _group(group)) for group in contents.events]
    if contents.fault:
        rows.append(("fault", contents.fault["kind"] or contents.fault["code"], contents.fault["reason"]))
    return rows


def _group(group: Group) -> str:
    more = [f"... {group.named - len(group.names)} more"] if group.named > len(group.names) else []
    names = ", ".join([*map(_short, group.names), *more])
    return f"{group.count}: {names}" if group.names else str(group.count)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_json(document: Document, contents: Contents) -> dict[str, object]:
    return {
        "file": document.file,
        "soap_version": document.envelope.version,
        "body": {"element": contents.body, "namespace": contents.namespace} if contents.body else None,
        "operation": contents.operation,
        "services": [
            {
                "service": use.service.name,
                "namespace": use.service.namespace,
                "role": use.role,
                "mep": use.operation.mep,
            }
            for use in contents.uses
        ],
        "pattern": contents.pattern,
        "style": contents.style,
        "batch": contents.batch or None,
        "header": contents.header,
        "objects": [group.to_json() for group in contents.objects],
        "events": [group.to_json() for group in contents.events],
        "fault": contents.fault or None,
        "warnings": [warning_json(warning) for warning in contents.warnings],
    }
