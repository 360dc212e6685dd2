"""The options of the source `mtosi`: strings from Spark into one frozen value, validated once.

- `path`: a spool, a folder (read recursively), a file or a glob; several as a JSON list in `paths`. Required.
- `objectType`: ME (default), EQ, EH, PTP, CTP, FTP, TL, OS, MD, TMD, a class of the stubs by name, several joined by
  commas, MESSAGE (a row an envelope), or ALL (long form).
- `columns`: names of the columns to give, joined by commas, in this order; the others are not decoded. The column of
  corrupt records, which has an option of its own, needs no mention.
- `correlationId`: only messages with this one, compared as it came, blanks included; what cannot be read at all is
  rejected as ever, since nobody knows whose it is.
- `mode`: PERMISSIVE (default), DROPMALFORMED (no row for a rejected file), FAILFAST (the first one ends the job).
- `columnNameOfCorruptRecord`: adds this column; PERMISSIVE then gives a row for each rejected file, with its reason.
- `onIncomplete`: warn (default: rows of incomplete sequences are marked), filter (they are left out), fail.
- `messageTypes`: which messages objects are taken from: RESPONSE (default), NOTIFICATION, REQUEST, joined by commas.
- `stubs`: generated packages to import, joined by commas; they are asked before the shipped stubs.
- `numPartitions`: most partitions to make; by default their number follows the size of the landing.
- `batchRows`: rows in an Arrow batch (10000).
- `verify`: full: parse every file while planning, so that the marks of complete sequences also know of files that break
  off in the middle; or ends: look at their heads and ends only. The default is full where `onIncomplete` is filter or
  fail, else ends.
- `wholeFileBytes`: larger files are streamed instead of being held in memory (8388608).
- `bulkFiles`: folder, or several as a JSON list, below which files are read that replies of BulkResponse in the landing
  name (C18, experimental); by default none is.
- `planFile`: a plan made before (`Landing.save`), read in place of the folder.

Names are compared without case, as Spark does. An option that does not exist is an error.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import ALL, MESSAGE, OBJECT_TYPES


class Mode(Enum):
    """What becomes of a rejected file (Spark's names)."""

    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"
    FAILFAST = "FAILFAST"


class OnIncomplete(Enum):
    """What becomes of the rows of an incomplete sequence."""

    WARN = "warn"
    FILTER = "filter"
    FAIL = "fail"


class Verify(Enum):
    """How much of each file planning looks at."""

    ENDS = "ends"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one load; see the table of the module."""

    paths: tuple[str, ...]
    object_types: tuple[str, ...] = ("ME",)
    columns: tuple[str, ...] = ()
    correlation_id: str | None = None
    mode: Mode = Mode.PERMISSIVE
    corrupt_column: str | None = None
    on_incomplete: OnIncomplete = OnIncomplete.WARN
    message_types: frozenset[str] = frozenset({"response"})
    stubs: tuple[str, ...] = ()
    partitions: int | None = None
    batch_rows: int = 10_000
    verify: Verify = Verify.ENDS
    whole_file_bytes: int = 8 * 1024 * 1024
    bulk_files: tuple[str, ...] = ()
    plan_file: str | None = None

    @property
    def object_type(self) -> str:
        """The one object type; several are joined by commas."""
        return ",".join(self.object_types)

    def reads(self, kind: str) -> bool:
        """Whether messages of a kind (`EnvelopeFacts.kind`) are read for rows."""
        return self.object_types == (MESSAGE,) or kind in self.message_types

    def asks_for(self, correlation_id: str | None) -> bool:
        """Whether messages of a correlationId, None for those without one, are asked for at all."""
        return self.correlation_id is None or self.correlation_id == correlation_id

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """The options that Spark hands over.

        Raises:
            ConfigError: an unknown option, a value that does not fit, or no path.
        """
        given = own_options(options)
        unknown = sorted(set(given) - set(_NAMES))
        if unknown:
            near = difflib.get_close_matches(unknown[0], _NAMES, n=1)
            hint = f"; did you mean {_NAMES[near[0]]}?" if near else f"; there are {', '.join(_NAMES.values())}"
            raise ConfigError(f"the source mtosi has no option {unknown[0]!r}{hint}")
        paths = _paths(given)
        on_incomplete = _choice(OnIncomplete, "onIncomplete", given.get("onincomplete", "warn").lower())
        verify = Verify.ENDS if on_incomplete is OnIncomplete.WARN else Verify.FULL
        return cls(
            paths=paths,
            object_types=parse_object_types(given.get("objecttype", "ME")),
            columns=_columns(given),
            correlation_id=_correlation_id(given),
            mode=_choice(Mode, "mode", given.get("mode", "PERMISSIVE").upper()),
            corrupt_column=given.get("columnnameofcorruptrecord") or None,
            on_incomplete=on_incomplete,
            message_types=_message_types(given.get("messagetypes", "RESPONSE")),
            stubs=_words(given.get("stubs", "")),
            partitions=_count(given, "numpartitions"),
            batch_rows=_count(given, "batchrows") or 10_000,
            verify=_choice(Verify, "verify", given.get("verify", verify.value).lower()),
            whole_file_bytes=_count(given, "wholefilebytes") or 8 * 1024 * 1024,
            bulk_files=_several(given, "bulkfiles"),
            plan_file=given.get("planfile") or None,
        )


_NAMES: Final = {
    name.lower(): name
    for name in (
        "path",
        "paths",
        "objectType",
        "columns",
        "correlationId",
        "mode",
        "columnNameOfCorruptRecord",
        "onIncomplete",
        "messageTypes",
        "stubs",
        "numPartitions",
        "batchRows",
        "verify",
        "wholeFileBytes",
        "bulkFiles",
        "planFile",
    )
}

_PROVIDER: Final = "provider"
_GIVEN: Final = "option."
_SPARKS: Final = frozenset({_PROVIDER, "location", "owner", "external", "is_managed_location", "comment", "collation"})

Choice = TypeVar("Choice", bound=Enum)


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are meant for the source, their names in small letters.

    Of a table in a catalog Spark hands over the table's properties too, its own and the user's; what was given as an
    option stands there a second time, behind `option.`. Names with a dot are never ours.
    """
    given = {name.lower(): value for name, value in options.items()}
    if not is_of_catalog(options):
        return {name: value for name, value in given.items() if "." not in name and name not in _SPARKS}
    meant = {name.removeprefix(_GIVEN): value for name, value in given.items() if name.startswith(_GIVEN)}
    return {**{name: value for name, value in given.items() if name in _NAMES}, **meant}


def names_landing(own: Mapping[str, str]) -> bool:
    """Whether options, as `own_options` gives them, say what to read."""
    return any(own.get(name) for name in ("path", "paths", "planfile"))


def is_of_catalog(options: Mapping[str, str]) -> bool:
    """Whether options are those of a table in a catalog."""
    return any(name.lower() == _PROVIDER for name in options)


def parse_object_types(text: str) -> tuple[str, ...]:
    """Object types joined by commas, each once; short names in capitals whatever their case.

    Raises:
        ConfigError: none at all, or MESSAGE or ALL together with others.
    """
    shorts = {*OBJECT_TYPES, MESSAGE, ALL}
    names = tuple(dict.fromkeys(word.upper() if word.upper() in shorts else word for word in _words(text)))
    if not names:
        raise ConfigError(f"objectType is empty; there are {', '.join(OBJECT_TYPES)}, MESSAGE, ALL and class names")
    if len(names) > 1 and {MESSAGE, ALL} & set(names):
        raise ConfigError("objectType MESSAGE and ALL stand alone")
    return names


def check_columns(names: Sequence[str], known: Sequence[str]) -> None:
    """See that columns are among those that there are.

    Raises:
        ConfigError: one is not; the text names the nearest, or all.
    """
    unknown = next((name for name in names if name not in known), None)
    if unknown is None:
        return
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(unknown.casefold(), folded, n=1)
    hint = f"; did you mean {folded[near[0]]}?" if near else f"; there are {', '.join(known)}"
    raise ConfigError(f"columns: there is no {unknown!r}{hint}")


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_words(given.get("columns", ""))))
    if not names and "columns" in given:
        raise ConfigError("columns is empty: name one at least, or leave the option out")
    return names


def _correlation_id(given: Mapping[str, str]) -> str | None:
    if given.get("correlationid") == "":
        raise ConfigError("correlationId is empty: no message has an empty one; leave the option out")
    return given.get("correlationid")


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    if given.get("paths"):
        try:
            paths = tuple(str(path) for path in json.loads(given["paths"]))
        except ValueError:
            raise ConfigError(f"paths is no JSON list: {given['paths']!r}") from None
    else:
        paths = (given["path"],) if given.get("path") else ()
    if not paths and not given.get("planfile"):
        raise ConfigError(
            "no path: load(LANDING) or option('path', LANDING); of a table in a catalog, create it without columns: "
            "where they are declared Spark tells the source no options"
        )
    return paths


def _several(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    """One path, or a JSON list of paths."""
    text = given.get(name, "").strip()
    if not text.startswith("["):
        return (text,) if text else ()
    try:
        return tuple(str(path) for path in json.loads(text))
    except ValueError:
        raise ConfigError(f"{_NAMES[name]} is no JSON list: {text!r}") from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _choice(kind: type[Choice], name: str, text: str) -> Choice:
    try:
        return kind(text)
    except ValueError:
        names = ", ".join(str(member.value) for member in kind)
        raise ConfigError(f"{name} is {text!r}; there are {names}") from None


def _message_types(text: str) -> frozenset[str]:
    kinds = frozenset(word.lower() for word in _words(text))
    if not kinds or not kinds <= {"response", "notification", "request"}:
        raise ConfigError(f"messageTypes is {text!r}; there are RESPONSE, NOTIFICATION and REQUEST")
    return kinds


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None or text == "":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"{_NAMES[name]} is {text!r}; a whole number from 1 is needed")
    return int(text)
