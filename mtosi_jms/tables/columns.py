"""The table of our columns: the name, the Arrow type and the source of the value of each. This module needs no Spark.

Columns are made from these values:

- `HEADER`, `SEQUENCE` and `SOURCE_FILE`: from a `Message`; rows of objects and rows of messages both have them;
- the other columns of messages: from a `Message`;
- columns of objects: from the `Objects` of a batch;
- columns of the ledger: from a `ReplySequence`.

All schemas, readers and jobs use these definitions.

A row of an object has `NAMES`, the typed fields of its class, `RELATIONS`, `NOTES`, and then its origin. If the class
has a field with the name of one of our columns, in any case, it keeps the name and our column gets a trailing `_`. With
several object types at once `object_type` comes first, and each type has one struct column, named in lower case (`me`,
`ptp`), which is null in rows of other types. The long form has `object_type`, and `LONG` instead of the fields.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import ALL, MESSAGE, class_for, label_of, load_stubs, parents_of
from mtosi_jms.tables._leaves import list_type
from mtosi_jms.tables._structs import Struct, column_names
from mtosi_jms.tables.options import SourceOptions, hint
from mtosi_jms.tables.sequences import time_of
from mtosi_jms.xmlbind import ClassTable, XmlObject, XmlWarning, escape_name_part

if TYPE_CHECKING:
    from mtosi_jms.tables.envelope import EnvelopeFacts
    from mtosi_jms.tables.landing import PlannedFile
    from mtosi_jms.tables.sequences import ReplySequence

__all__ = [
    "HEADER",
    "HEADER_COLUMNS",
    "LEDGER",
    "MESSAGES",
    "NAMES",
    "OF_MESSAGE",
    "PROVENANCE",
    "SEQUENCE",
    "Column",
    "Message",
    "arrow_schema",
    "column_names",
    "full_schema",
    "own_columns",
    "row_schema",
    "schema_of",
    "values_of",
]


class Column(NamedTuple):
    """A column; `value` makes its value from the message, the batch of objects or the sequence of its rows."""

    name: str
    type: pa.DataType
    value: Callable[[Any], Any]


@dataclass(slots=True)
class Message:
    """A message that rows are made from.

    `file` is None for a message that is in no file. `data` is None for a message that is too large for memory.
    `objects` counts its objects by type, `unread` warns of those without a class, and `digest` gives the digest of its
    body.
    """

    facts: EnvelopeFacts
    file: PlannedFile | None = None
    size: int = 0
    objects: Callable[[], Mapping[str, int]] = dict
    unread: Callable[[], Sequence[XmlWarning]] = tuple
    digest: Callable[[], str | None] = lambda: None
    data: bytes | None = None


class Objects:
    """The objects of a batch of rows: one list for each fact about them.

    Attributes:
        types, names: object types, and full names as text.
        parents: full names of the objects that contain each object, outermost first; None if its name tells them.
        lines, positions: the lines on which they begin, and their numbers in the message, from 1.
        rare: by column: the values of the few rows that have one.
    """

    __slots__ = ("lines", "names", "parents", "positions", "rare", "types")

    def __init__(self) -> None:
        self.types: list[str | None] = []
        self.names: list[str | None] = []
        self.parents: list[list[str] | None] = []
        self.lines: list[int | None] = []
        self.positions: list[int | None] = []
        self.rare: defaultdict[str, dict[int, Any]] = defaultdict(dict)

    def truncate(self, count: int) -> None:
        """Keep only the first `count` objects. The others must have no value in `rare`."""
        for facts in (self.types, self.names, self.parents, self.lines, self.positions):
            del facts[count:]


def _parents(objects: Objects) -> list[list[str]]:
    pairs = zip(objects.names, objects.parents, strict=True)
    return [parents_of(name) if parents is None else parents for name, parents in pairs]


def _rare(name: str, type_: pa.DataType, blank: Any = None) -> Column:
    def values(objects: Objects) -> list[Any]:
        held = objects.rare[name]
        return [held.get(row, blank) for row in range(len(objects.types))]

    return Column(name, type_, values)


_TEXT: Final = pa.string()
_LONG: Final = pa.int64()
_BOOL: Final = pa.bool_()
_TIME: Final = pa.timestamp("us", tz="UTC")
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_TEXTS: Final = list_type(_TEXT)
_LONGS: Final = list_type(_LONG)
_TEXT_MAP: Final = pa.map_(_TEXT, _TEXT)
_QUALITY: Final = pa.struct([("is_suspect", _BOOL), ("is_descendant", _BOOL), ("reason", _TEXT)])
_UNKNOWN: Final = list_type(pa.struct([("path", _TEXT), ("content", _TEXT)]))
_WARNINGS: Final = list_type(pa.struct([("rule", _TEXT), ("message", _TEXT), ("path", _TEXT), ("line", _LONG)]))

HEADER_COLUMNS: Final[Mapping[str, str]] = {
    "activityName": "header_activity_name",
    "msgName": "header_msg_name",
    "msgType": "header_msg_type",
    "senderURI": "header_sender_uri",
    "destinationURI": "header_destination_uri",
    "activityStatus": "header_activity_status",
    "communicationPattern": "header_communication_pattern",
    "communicationStyle": "header_communication_style",
    "requestedBatchSize": "header_requested_batch_size",
    "timestamp": "header_timestamp",
}
"""Header fields of simple types that are columns of every row, as the text that was sent. `SEQUENCE` has the place in
the sequence. `security` never is a column: `envelope` does not read it."""


def _header_field(name: str) -> Callable[[Message], str | None]:
    return lambda message: message.facts.header.get(name)


# Columns of rows of objects and of messages, made from a Message.
HEADER: Final = (
    *(Column(column, _TEXT, _header_field(name)) for name, column in HEADER_COLUMNS.items()),
    # The timestamp as a time; null if it is absent or unreadable.
    Column("header_time", _TIME, lambda message: time_of(message.facts.header.get("timestamp"))),
)
SEQUENCE: Final = (
    Column("correlation_id", _TEXT, lambda message: message.facts.correlation_id),  # as received, white space included
    Column("batch_number", _LONG, lambda message: message.facts.batch_number),
    Column("end_of_reply", _BOOL, lambda message: message.facts.end_of_reply),
    # Whether the sequence is complete; null if unknown.
    Column("complete", _BOOL, lambda message: message.file.complete if message.file else None),
)
SOURCE_FILE: Final = Column("source_file", _TEXT, lambda message: message.file.path if message.file else None)
RELEASE: Final = Column("release", _TEXT, lambda message: message.facts.release)
OF_MESSAGE: Final = (RELEASE, *HEADER, *SEQUENCE, SOURCE_FILE)

# Columns of rows of objects, made from the Objects of a batch.
OBJECT_TYPE: Final = Column("object_type", _TEXT, lambda objects: objects.types)
NAMES: Final = (
    Column("name_text", _TEXT, lambda objects: objects.names),
    Column("parent_names", _TEXTS, _parents),
)
LONG: Final = (_rare("attributes", _TEXT_MAP), _rare("xml", _TEXT))
RELATIONS: Final = (
    # Of the nested layout: names of other objects by the name of their list (`supported_ptp_ref_list`).
    _rare("related", pa.map_(_TEXT, _TEXTS)),
    _rare("quality", _QUALITY),
)
WARNINGS: Final = _rare("warnings", _WARNINGS, ())
# Content that the schema does not know or that does not fit: its place, and the XML or text.
NOTES: Final = (_rare("unknown", _UNKNOWN, ()), WARNINGS)
PLACE: Final = (
    Column("source_line", _LONG, lambda objects: objects.lines),
    Column("source_position", _LONG, lambda objects: objects.positions),
)
OF_OBJECT: Final = (OBJECT_TYPE, *NAMES, *LONG, *RELATIONS, *NOTES, *PLACE)
_ORIGIN: Final = (*OF_MESSAGE, *PLACE)


def _warnings(message: Message) -> list[dict[str, Any]]:
    return [asdict(found) for found in (*message.facts.warnings, *message.unread())]


MESSAGES: Final = (
    Column("kind", _TEXT, lambda message: message.facts.kind),
    Column("body_element", _TEXT, lambda message: message.facts.body_tag or None),  # a Clark name
    Column("objects", pa.map_(_TEXT, _LONG), lambda message: sorted(message.objects().items())),
    Column("body_digest", _TEXT, lambda message: message.digest()),
    # Copies that were left out.
    Column("duplicate_files", _TEXTS, lambda message: list(message.file.duplicates) if message.file else []),
    # Of the header, and of objects that give no rows.
    Column("warnings", _WARNINGS, _warnings),
    *OF_MESSAGE,
    Column("size", _LONG, lambda message: message.size),
    Column("body", pa.binary(), lambda message: message.data),
)
"""The columns of objectType MESSAGE, which has one row for each envelope."""

LEDGER: Final = (
    Column("correlation_id", _TEXT, lambda found: found.correlation_id),
    Column("source_file", _TEXT, lambda found: found.source_file),
    Column("batches", _LONG, lambda found: found.batches),
    Column("expected", _LONG, lambda found: found.expected),
    Column("received", _LONGS, lambda found: list(found.received)),
    Column("missing", _LONGS, lambda found: list(found.missing)),
    Column("missing_count", _LONG, lambda found: found.missing_count),
    Column("duplicates", _LONG, lambda found: found.duplicates),
    # -1 is a response without a number.
    Column("conflicts", _LONGS, lambda found: [-1 if number is None else number for number in found.conflicts]),
    Column("unexpected", _LONGS, lambda found: list(found.unexpected)),
    Column("faults", _LONG, lambda found: found.faults),
    Column("complete", _BOOL, lambda found: found.complete),
    Column("first_time", _TIME, lambda found: found.first_time),
    Column("last_time", _TIME, lambda found: found.last_time),
)
"""The columns of the ledger, which has one row for each sequence."""

PROVENANCE: Final = frozenset(column.name for column in (*_ORIGIN, WARNINGS))
"""Columns about the origin and the reading of a row, not about the object."""


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return columns of ours as a schema."""
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def values_of(columns: Sequence[Column], source: Message | ReplySequence) -> dict[str, Any]:
    """Return the values of columns of ours in one row, by name."""
    return {column.name: column.value(source) for column in columns}


def arrow_schema(cls: type[XmlObject]) -> pa.Schema:
    """Return the fields of a stub class as Arrow columns: typed, nested, with the names of the fields. Recursive types,
    substitution groups and content without a schema are XML text. Open content is a map of texts, with its XML in a
    column `..._raw`."""
    return pa.schema(list(Struct(cls.__xml__).type))


def row_schema(object_types: Sequence[str]) -> pa.Schema:
    """Return the columns of rows of some object types; the stubs must be loaded. Raises ConfigError: one is unknown."""
    if object_types == (MESSAGE,):
        return schema_of(MESSAGES)
    if object_types == (ALL,):
        return schema_of((OBJECT_TYPE, *NAMES, *LONG, *RELATIONS, *_ORIGIN))
    tables = [class_for(name) for name in object_types]
    if len(tables) > 1:
        structs = [pa.field(struct_name(table), Struct(table).type) for table in tables]
        behind = schema_of((*RELATIONS, *NOTES, *_ORIGIN))
        return pa.schema([*schema_of((OBJECT_TYPE, *NAMES)), *structs, *behind])
    own = list(Struct(tables[0]).type)
    shown = shown_names([inner.name for inner in own])
    free = [inner.with_name(shown[inner.name]) for inner in schema_of((*NAMES, *RELATIONS, *NOTES, *_ORIGIN))]
    return pa.schema([*free[: len(NAMES)], *own, *free[len(NAMES) :]])


def shown_names(fields_of_class: Collection[str]) -> dict[str, str]:
    """Return the names of our columns in rows of objects, given the fields of the class (none for several classes)."""
    names = [column.name for column in (*OF_OBJECT, *OF_MESSAGE)]
    taken = {name.casefold() for name in fields_of_class}
    return {name: f"{name}_" if name in taken else name for name in names}


def own_columns(columns: Collection[str]) -> dict[str, str]:
    """Return the names of our columns in a table of one object type, given all columns of the table."""
    names = (column.name for column in (*NAMES, *RELATIONS, *NOTES, *_ORIGIN))
    return {name: f"{name}_" if f"{name}_" in columns else name for name in names}


def struct_name(table: ClassTable) -> str:
    """Return the name of the struct column of an object type in rows with several types."""
    return label_of(table).lower()


def full_schema(options: SourceOptions) -> pa.Schema:
    """Return the columns for some options: those of the object types or the option `columns`, and the corrupt column.
    Raises ConfigError: an object type, a stubs package or a column that does not exist."""
    load_stubs(options.stubs)
    schema = row_schema(options.object_types)
    corrupt = options.corrupt_column
    own = (*options.folder_columns, *(() if corrupt is None else (corrupt,)))
    for name in own:
        schema = schema.append(pa.field(name, _TEXT))
    first: dict[str, str] = {}
    for name in schema.names:
        if (other := first.setdefault(name.casefold(), name)) != name or schema.names.count(name) > 1:
            raise ConfigError(f"the columns {other!r} and {name!r} would have one name: case does not count for Spark")
    if not options.columns:
        return schema
    unknown = next((name for name in options.columns if name not in schema.names), None)
    if unknown is not None:
        raise ConfigError(f"columns: there is no {unknown!r}{hint(unknown, schema.names)}")
    return pa.schema([schema.field(name) for name in dict.fromkeys((*options.columns, *own))])


def folder_values(path: str, columns: Sequence[str]) -> dict[str, str | None]:
    """Return the values of the option `folderColumns` for a file: of `.../day=2026-01-31/a.xml` that of `day`.

    As in Hive, case does not count in names, values are percent-encoded, and `__HIVE_DEFAULT_PARTITION__` is null. The
    innermost folder counts; without one, the value is null.
    """
    if not columns:
        return {}
    steps = (step.partition("=") for step in path.replace(os.sep, "/").split("/")[:-1])
    found = {name.casefold(): unquote(value) for name, equals, value in steps if equals}
    values = {name: found.get(name.casefold()) for name in columns}
    return {name: None if value == _NO_VALUE else value for name, value in values.items()}


def names_type(kind: pa.DataType) -> int:
    """Tell what a column of a type holds: 1 for a full name as its steps, 2 for a list of such names, else 0."""
    if not pa.types.is_struct(kind) or kind.num_fields != 1 or not pa.types.is_list(kind.field(0).type):
        return 0
    name, inner = kind.field(0).name, kind.field(0).type.value_type
    if name == "rdn" and pa.types.is_struct(inner) and [field.name for field in inner] == ["type", "value"]:
        return 1
    return 2 if names_type(inner) == 1 else 0


def full_name(name: Mapping[str, Any]) -> str | None:
    """Return a full name in its steps as text, as in the column `name_text`; None if it has no step."""
    steps = name.get("rdn") or ()
    texts = (f"{escape_name_part(step['type'])}={escape_name_part(step['value'])}" for step in steps)
    return "/".join(texts) or None
