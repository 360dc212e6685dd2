"""The formats of the tables of an ingest, told apart by the content of their folders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mtosi_jms.errors import ConfigError

__all__ = [
    "CSV",
    "DELTA",
    "FOLDERS",
    "FORMATS",
    "ICEBERG",
    "JSON",
    "PARQUET",
    "PREFIX",
    "check_format",
    "format_of",
    "is_committed",
]

PARQUET: Final = "parquet"
JSON: Final = "json"
CSV: Final = "csv"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)
PREFIX: Final = "objectType="
FOLDERS: Final = {DELTA: "_delta_log", ICEBERG: "metadata"}


def format_of(folder: Path) -> str:
    """Return the format of a table, found by the content of its folder."""
    return next((name for name, inside in FOLDERS.items() if (folder / inside).is_dir()), PARQUET)


def is_committed(folder: Path) -> bool:
    """Whether a table of Delta or Iceberg has any version."""
    logs = ((folder / FOLDERS[DELTA]).glob("[0-9]*"), (folder / FOLDERS[ICEBERG]).glob("v*.metadata.json"))
    return any(True for log in logs for _ in log)


def check_format(name: str, out: Path, table: str = "") -> None:
    """Check that the job can write tables in a format. Raises ConfigError: the format is unknown, `out` has tables of
    another format, `table` is not a name, or it is given with Parquet."""
    if name not in FORMATS:
        raise ConfigError(f"format is {name!r}; there are {', '.join(FORMATS)}")
    if table and name == PARQUET:
        raise ConfigError(f"tables of a catalog are of the format {DELTA} or {ICEBERG}, not {PARQUET}")
    if table and not re.fullmatch(r"\w+(\.\w+)*", table):
        raise ConfigError(f"table is {table!r}; give a name such as lake.network.inventory")
    others = {format_of(folder) for folder in out.glob(f"{PREFIX}*")} - {name}
    if others:
        raise ConfigError(f"{out} holds tables of the format {others.pop()}: choose it, or another folder")
