"""Parquet files as lines of JSON or as CSV, in the form that Spark writes."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from mtosi_jms.tables.formats import CSV

__all__ = ["as_text"]

_FORMULA: Final = re.compile(r"(?=\s*[=+\-@]|[\t\r\n])")
"""A spreadsheet runs a text that begins like this; after an apostrophe it is text."""


def as_text(path: Path, format: str) -> None:
    """Replace a Parquet file by the same rows as `json`, an object a line without nulls, or `csv` with a header."""
    line: Callable[[dict[str, Any]], str] = _record if format == CSV else _json
    with parquet.ParquetFile(path) as file, path.with_suffix(f".{format}").open("w", encoding="utf-8") as text:
        if format == CSV:
            text.write(",".join(map(_cell, file.schema_arrow.names)) + "\n")
        for batch in file.iter_batches(batch_size=1_000):
            for row in pa.Table.from_batches([batch]).to_pylist(maps_as_pydicts="lossy"):
                text.write(line(row) + "\n")
    path.unlink()


def _record(row: dict[str, Any]) -> str:
    return ",".join(map(_cell, row.values()))


def _cell(value: Any) -> str:
    if isinstance(value, list | dict):
        value = _json(value)
    elif not isinstance(value, str):
        return "" if value is None else str(_plain(value)).lower() if isinstance(value, bool) else str(_plain(value))
    text = f"'{value}" if _FORMULA.match(value) else value
    return '"{}"'.format(text.replace('"', '""'))


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """Return a value of Arrow as one of JSON; fields that are null are left out."""
    if isinstance(value, dict):
        return {name: _plain(held) for name, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_plain(held) for held in value]
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
