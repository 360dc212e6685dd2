"""The options of the source `mtosi`: Spark's strings, validated once and turned into one frozen value.

Names are compared without case, as Spark does. An unknown option is an error.
"""

from __future__ import annotations

import datetime as dt
import difflib
import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Final, TypeVar

from mtosi_jms.binding.profile import FirstBatch
from mtosi_jms.bounds import BOUNDS
from mtosi_jms.compression import scheme_of
from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import ALL, MESSAGE, OBJECT_TYPES
from mtosi_jms.tables._file_systems import Sieve, expanded
from mtosi_jms.tables.files import folder_here

__all__ = [
    "Mode",
    "OnIncomplete",
    "SourceOptions",
    "Verify",
    "hint",
    "is_of_catalog",
    "names_landing",
    "own_options",
    "whole_number",
]


class Mode(Enum):
    """What happens to a rejected file (Spark's names)."""

    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"
    FAILFAST = "FAILFAST"


class OnIncomplete(Enum):
    """What happens to the rows of an incomplete sequence."""

    WARN = "warn"
    FILTER = "filter"
    FAIL = "fail"


class Verify(Enum):
    """How much of each file planning reads."""

    ENDS = "ends"
    FULL = "full"


Choice = TypeVar("Choice")
Member = TypeVar("Member", bound=Enum)


def _one_of(choices: Mapping[str, Choice]) -> Callable[[str, str], Choice]:
    """Return the reader of an option with few values, by their texts."""

    def read(name: str, text: str) -> Choice:
        for choice, value in choices.items():
            if choice.lower() == text.strip().lower():
                return value
        raise ConfigError(f"{name} is {text!r}; there are {', '.join(choices)}")

    return read


def _member_of(kind: type[Member]) -> Callable[[str, str], Member]:
    return _one_of({str(member.value): member for member in kind})


_FIRST_BATCH: Final = _one_of({"auto": "auto", "0": 0, "1": 1})
_FLAG: Final = _one_of({"true": True, "false": False})


def _words(name: str, text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _columns(name: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_words(name, text)))
    if not names:
        raise ConfigError(f"{name} is empty: name one at least, or leave the option out")
    return names


def _text(name: str, text: str) -> str | None:
    return text or None


def _correlation_id(name: str, text: str) -> str:
    if not text:
        raise ConfigError("correlationId is empty: no message has an empty one; leave the option out")
    return text


def _object_types(name: str, text: str) -> tuple[str, ...]:
    """Split object types at commas; each type stays once, and short names become upper case."""
    shorts = {*OBJECT_TYPES, MESSAGE, ALL}
    names = tuple(dict.fromkeys(word.upper() if word.upper() in shorts else word for word in _words(name, text)))
    if not names:
        raise ConfigError(f"objectType is empty; there are {', '.join(OBJECT_TYPES)}, MESSAGE, ALL and class names")
    if len(names) > 1 and {MESSAGE, ALL} & set(names):
        raise ConfigError("objectType MESSAGE and ALL stand alone")
    return names


def _message_types(name: str, text: str) -> frozenset[str]:
    kinds = frozenset(word.lower() for word in _words(name, text))
    if not kinds or not kinds <= {"response", "notification", "request"}:
        raise ConfigError(f"messageTypes is {text!r}; there are RESPONSE, NOTIFICATION and REQUEST")
    return kinds


def whole_number(name: str, text: str) -> int:
    """Return the value of an option that is a positive whole number. Raises ConfigError: the text is not a whole number
    of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"{name} is {text!r}; it must be a whole number of at least 1")
    return int(text)


def _count(name: str, text: str) -> int | None:
    return whole_number(name, text) if text else None


def _json_list(name: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(str(path) for path in json.loads(text))
    except (ValueError, TypeError):
        raise ConfigError(f"{name} is not a JSON list: {text!r}") from None


def _folders(name: str, text: str) -> tuple[str, ...]:
    """One path, or a JSON list of paths, of folders on this machine."""
    text = text.strip()
    paths = _json_list(name, text) if text.startswith("[") else filter(None, (text,))
    return tuple(str(folder_here(path, f"the option {name}")) for path in paths)


def _glob(name: str, text: str) -> re.Pattern[str] | None:
    """Return the regular expression for a Hadoop glob of file names: `*`, `?`, `[a-z]`, `[^a]`, `{one,other}`."""
    return re.compile("|".join(map(fnmatch.translate, expanded(text)))) if text else None


def _moment(name: str, text: str) -> int | None:
    """Return a time in milliseconds since 1970; a time without a zone is taken as UTC."""
    if not text:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{name} is {text!r}; give a time such as 2026-01-31T00:00:00") from None
    return round((time if time.tzinfo else time.replace(tzinfo=dt.UTC)).timestamp() * 1000)


def _option(name: str, read: Callable[[str, str], object]) -> Mapping[str, Any]:
    """Return the metadata of a field that an option sets: `read` gets name and text, and gives None for the default."""
    return {"option": name, "read": read}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one load."""

    # `path`: a spool, a folder (read recursively), a file or a glob; several as a JSON list in `paths`. Required.
    paths: tuple[str, ...]
    # ME, EQ, EH, PTP, CTP, FTP, TL, OS, MD, TMD, SNC, MLSN, the name of a class of the stubs, several of these joined
    # by commas, MESSAGE (one row for each envelope), or ALL (long form).
    object_types: tuple[str, ...] = field(default=("ME",), metadata=_option("objectType", _object_types))
    # Names of the columns to return, joined by commas, in this order; other columns are not decoded. The column of
    # corrupt records has an option of its own and need not be named.
    columns: tuple[str, ...] = field(default=(), metadata=_option("columns", _columns))
    # Names of columns, joined by commas, whose values the names of folders are: `day` for `day=2026-01-31`.
    folder_columns: tuple[str, ...] = field(default=(), metadata=_option("folderColumns", _columns))
    # Only messages with this correlationId, compared with its white space. Files that cannot be read are rejected all
    # the same, because their correlationId is unknown.
    correlation_id: str | None = field(default=None, metadata=_option("correlationId", _correlation_id))
    # DROPMALFORMED: no row for a rejected file; FAILFAST: the first rejected file ends the job.
    mode: Mode = field(default=Mode.PERMISSIVE, metadata=_option("mode", _member_of(Mode)))
    # Adds this column; with PERMISSIVE each rejected file then gives a row with the reason in it.
    corrupt_column: str | None = field(default=None, metadata=_option("columnNameOfCorruptRecord", _text))
    # warn: rows of incomplete sequences are marked; filter: they are left out; fail.
    on_incomplete: OnIncomplete = field(
        default=OnIncomplete.WARN, metadata=_option("onIncomplete", _member_of(OnIncomplete))
    )
    # The number of the first batch of each sequence, 0 or 1; auto: 0 for a sender of which a 0 was seen, else 1 (C23).
    first_batch: FirstBatch = field(default="auto", metadata=_option("firstBatch", _FIRST_BATCH))
    # Senders of which earlier runs have seen a batch 0.
    from_zero: frozenset[str] = frozenset()
    # The kinds of messages whose objects are read: RESPONSE, NOTIFICATION, REQUEST, joined by commas.
    message_types: frozenset[str] = field(
        default=frozenset({"response"}), metadata=_option("messageTypes", _message_types)
    )
    # Generated packages to import, joined by commas; they take precedence over the shipped stubs.
    stubs: tuple[str, ...] = field(default=(), metadata=_option("stubs", _words))
    # The largest number of partitions; by default the number depends on the size of the landing.
    partitions: int | None = field(default=None, metadata=_option("numPartitions", _count))
    # Rows in an Arrow batch.
    batch_rows: int = field(default=10_000, metadata=_option("batchRows", _count))
    # full: parse every file while planning, so that `complete` is right even if files are damaged in the middle; ends:
    # read only heads and ends of files. The default is full if `onIncomplete` is filter or fail, otherwise ends.
    verify: Verify = field(default=Verify.ENDS, metadata=_option("verify", _member_of(Verify)))
    # Larger files are streamed instead of held in memory.
    whole_file_bytes: int = field(default=BOUNDS.whole_file, metadata=_option("wholeFileBytes", _count))
    # A folder, or several as a JSON list: files below it are read if a reply of BulkResponse in the landing names them
    # (C18, experimental). By default no such file is read.
    bulk_files: tuple[str, ...] = field(default=(), metadata=_option("bulkFiles", _folders))
    # Only files whose name matches this pattern: `*.xml`, `{ems1,ems2}-*`.
    name_glob: re.Pattern[str] | None = field(default=None, metadata=_option("pathGlobFilter", _glob))
    # false: only files directly in the folders, not those in folders inside them.
    recursive: bool = field(default=True, metadata=_option("recursiveFileLookup", _FLAG))
    # Only files that were last changed after, or before, this time: 2026-01-31T00:00:00; without a zone it is in UTC.
    modified_after: int | None = field(default=None, metadata=_option("modifiedAfter", _moment))
    modified_before: int | None = field(default=None, metadata=_option("modifiedBefore", _moment))

    @property
    def object_type(self) -> str:
        """The one object type; several are joined by commas."""
        return ",".join(self.object_types)

    @property
    def sieve(self) -> Sieve:
        """The conditions on files that are input."""
        return Sieve(self.name_glob, self.recursive, self.modified_after, self.modified_before)

    @property
    def is_local(self) -> bool:
        """Whether the landing is on this machine's file systems."""
        return all(scheme_of(path) in ("", "file") for path in self.paths)

    def reads(self, kind: str) -> bool:
        """Whether messages of a kind (`EnvelopeFacts.kind`) are read for rows."""
        return self.object_types == (MESSAGE,) or kind in self.message_types

    def asks_for(self, correlation_id: str | None) -> bool:
        """Whether the options ask for messages with a correlationId, or, with None, for messages without one."""
        return self.correlation_id is None or self.correlation_id == correlation_id

    @classmethod
    def names(cls) -> frozenset[str]:
        """The names of all options."""
        return frozenset(_NAMES.values())

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Return the options from the strings that Spark passes. Raises ConfigError: an unknown option, a value that
        does not fit, or no path."""
        given = own_options(options)
        unknown = sorted(set(given) - set(_NAMES))
        if unknown:
            raise ConfigError(f"the source mtosi has no option {unknown[0]!r}{hint(unknown[0], _NAMES.values())}")
        values: dict[str, Any] = {"paths": _paths(given)}
        for each in fields(cls):
            name = each.metadata.get("option", "")
            text = given.get(name.lower())
            value = None if text is None else each.metadata["read"](name, text)
            if value is not None:
                values[each.name] = value
        if values.get("on_incomplete", OnIncomplete.WARN) is not OnIncomplete.WARN:
            values.setdefault("verify", Verify.FULL)
        return cls(**values)


_NAMES: Final = {
    name.lower(): name
    for name in ("path", "paths", *(each.metadata["option"] for each in fields(SourceOptions) if each.metadata))
}

_PROVIDER: Final = "provider"
_GIVEN: Final = "option."
_SPARKS: Final = frozenset({_PROVIDER, "location", "owner", "external", "is_managed_location", "comment", "collation"})


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are meant for the source, with their names in lower case.

    For a table in a catalog Spark also passes the properties of the table, its own and the user's. These repeat each
    option with the prefix `option.`. Names with a dot are never options of the source.
    """
    given = {name.lower(): value for name, value in options.items()}
    if not is_of_catalog(options):
        return {name: value for name, value in given.items() if "." not in name and name not in _SPARKS}
    prefixed = {name.removeprefix(_GIVEN): value for name, value in given.items() if name.startswith(_GIVEN)}
    return {**{name: value for name, value in given.items() if name in _NAMES}, **prefixed}


def names_landing(own: Mapping[str, str]) -> bool:
    """Whether options, as `own_options` returns them, say what to read."""
    return any(own.get(name) for name in ("path", "paths"))


def is_of_catalog(options: Mapping[str, str]) -> bool:
    """Whether options belong to a table in a catalog."""
    return any(name.lower() == _PROVIDER for name in options)


def hint(unknown: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the most similar known name, or all known names."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(unknown.casefold(), folded, n=1)
    return f"; did you mean {folded[near[0]]}?" if near else f"; there are {', '.join(folded.values())}"


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    if given.get("paths"):
        paths = _json_list("paths", given["paths"])
    else:
        paths = (given["path"],) if given.get("path") else ()
    if not paths:
        raise ConfigError(
            "no path: load(LANDING) or option('path', LANDING); of a table in a catalog, create it without columns: "
            "where they are declared Spark tells the source no options"
        )
    return paths
