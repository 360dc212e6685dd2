"""Runs SQL over the tables of a landing, or of a folder that ingest has written. Needs no Java.

Tables are called as object types (ME, EQ, PTP, ...); a landing also has MESSAGE, LEDGER and REJECTS. The SQL is that of
DuckDB; it reads the tables alone, and no file.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys

from mtosi_jms.cli import terminal
from mtosi_jms.cli.arguments import add_json, add_stubs
from mtosi_jms.jobs._jobs import SHOWN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="LANDING|TABLES", help="a landing, or the --out of ingest, alarms, topology or diff"
    )
    parser.add_argument("sql", metavar="SQL", help="a query: SELECT manufacturer, count(*) FROM ME GROUP BY ALL")
    parser.add_argument("--csv", action="store_true", help="print CSV with a line of names")
    parser.add_argument("--memory", default="1GB", metavar="SIZE", help="what the query may hold; more spills (1GB)")
    add_stubs(parser)
    add_json(parser, "one JSON document: a list of rows")


def run(args: argparse.Namespace) -> int:
    from mtosi_jms.tables import query

    with query(args.source, args.sql, stubs=args.stubs, memory=args.memory) as answer:
        if args.json:
            comma = ""
            for row in answer.rows:
                sys.stdout.write(comma or "[")
                json.dump(dict(zip(answer.columns, row, strict=True)), sys.stdout, default=str)
                comma = ", "
            sys.stdout.write("]\n" if comma else "[]\n")
        elif args.csv:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(answer.columns)
            writer.writerows(answer.rows)
        else:
            rows = [row for _, row in zip(range(SHOWN * SHOWN), answer.rows, strict=False)]
            shown = [["NULL" if cell is None else cell for cell in row] for row in rows]
            terminal.table("rows", answer.columns, shown)
            if next(answer.rows, None) is not None:
                terminal.note(f"only the first {len(rows)} rows are shown: --csv or --json prints all")
        for note in answer.notes:
            terminal.note(note)
    return 0
