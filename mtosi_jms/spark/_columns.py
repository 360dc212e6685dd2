"""The table of our columns: what each is called, its Arrow type, and where its value comes from. No Spark here.

`HEADER`, `SEQUENCE` and `SOURCE_FILE` are made from a `Message` and stand in rows of objects and of messages alike. The
other columns of messages are made from a `Message` too, those of objects from the `Objects` of a batch, and those of
the ledger from a `ReplySequence`. All else that needs to know a column, a schema, a reader or a job, asks here.

A row of an object has `NAMES`, the typed fields of its class, `RELATIONS`, `NOTES`, and then where it comes from. Where
the class has a field of the same name, the field keeps it and our column gets a trailing `_`. With several object types
at once `object_type` comes first, and each type has one struct column, named in lower case (`me`, `ptp`), null in rows
of other types. The long form has `object_type`, and `LONG` in place of the fields.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from mtosi_jms.errors import ConfigError
from mtosi_jms.inventory import ALL, MESSAGE, class_for, label_of, load_stubs, parents_of
from mtosi_jms.spark._leaves import list_type
from mtosi_jms.spark._options import SourceOptions, hint
from mtosi_jms.spark._structs import Struct
from mtosi_jms.xmlbind import ClassTable, XmlObject

if TYPE_CHECKING:
    from mtosi_jms.spark._envelope import EnvelopeFacts
    from mtosi_jms.spark._landing import PlannedFile
    from mtosi_jms.spark._sequences import ReplySequence


class Column(NamedTuple):
    """A column: `value` makes what it holds from what the row stands for."""

    name: str
    type: pa.DataType
    value: Callable[[Any], Any]


@dataclass(slots=True)
class Message:
    """A message that rows are made from.

    `file` is None for a message that is in no file, `data` for one that is too large to hold. `objects` counts its
    objects by type, and `digest` tells what its body says.
    """

    facts: EnvelopeFacts
    file: PlannedFile | None = None
    size: int = 0
    objects: Callable[[], Mapping[str, int]] = dict
    digest: Callable[[], str | None] = lambda: None
    data: bytes | None = None


class Objects:
    """The objects of a batch of rows: one list for each fact about them.

    Attributes:
        types, names: object types, and full names as text.
        parents: full names of the objects around each, outermost first; None where the name tells them.
        lines, positions: where they begin, and their numbers in the message, from 1.
        rare: by column, the values of the few rows that have one.
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
        """Forget all objects but the first so many; no value of theirs is rare."""
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
"""Header fields that become columns of every row, as text; `security` never does."""


def _header_field(name: str) -> Callable[[Message], str | None]:
    return lambda message: message.facts.header.get(name)


# Columns of rows of objects and of messages, made from a Message.
HEADER: Final = tuple(Column(column, _TEXT, _header_field(name)) for name, column in HEADER_COLUMNS.items())
SEQUENCE: Final = (
    Column("correlation_id", _TEXT, lambda message: message.facts.correlation_id),  # as it came, blanks included
    Column("batch_number", _LONG, lambda message: message.facts.batch_number),
    Column("end_of_reply", _BOOL, lambda message: message.facts.end_of_reply),
    # Whether the sequence is complete; null where that is not known.
    Column("complete", _BOOL, lambda message: message.file.complete if message.file else None),
)
SOURCE_FILE: Final = Column("source_file", _TEXT, lambda message: message.file.path if message.file else None)
OF_MESSAGE: Final = (*HEADER, *SEQUENCE, SOURCE_FILE)

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
# What the schema does not know or what does not fit: where it stood, and the XML or text.
NOTES: Final = (_rare("unknown", _UNKNOWN, ()), WARNINGS)
PLACE: Final = (
    Column("source_line", _LONG, lambda objects: objects.lines),
    Column("source_position", _LONG, lambda objects: objects.positions),
)
OF_OBJECT: Final = (OBJECT_TYPE, *NAMES, *LONG, *RELATIONS, *NOTES, *PLACE)
_ORIGIN: Final = (*OF_MESSAGE, *PLACE)

MESSAGES: Final = (
    Column("kind", _TEXT, lambda message: message.facts.kind),
    Column("body_element", _TEXT, lambda message: message.facts.body_tag or None),  # a Clark name
    Column("objects", pa.map_(_TEXT, _LONG), lambda message: sorted(message.objects().items())),
    Column("body_digest", _TEXT, lambda message: message.digest()),
    # Copies that were left out.
    Column("duplicate_files", _TEXTS, lambda message: list(message.file.duplicates) if message.file else []),
    *OF_MESSAGE,
    Column("size", _LONG, lambda message: message.size),
    Column("body", pa.binary(), lambda message: message.data),
)
"""One row an envelope: objectType MESSAGE."""

LEDGER: Final = (
    Column("correlation_id", _TEXT, lambda found: found.correlation_id),
    Column("source_file", _TEXT, lambda found: found.source_file),
    Column("batches", _LONG, lambda found: found.batches),
    Column("expected", _LONG, lambda found: found.expected),
    Column("received", _LONGS, lambda found: list(found.received)),
    Column("missing", _LONGS, lambda found: list(found.missing)),
    Column("missing_count", _LONG, lambda found: found.missing_count),
    Column("duplicates", _LONG, lambda found: found.duplicates),
    # -1 stands for a response without a number.
    Column("conflicts", _LONGS, lambda found: [-1 if number is None else number for number in found.conflicts]),
    Column("unexpected", _LONGS, lambda found: list(found.unexpected)),
    Column("faults", _LONG, lambda found: found.faults),
    Column("complete", _BOOL, lambda found: found.complete),
    Column("first_time", _TIME, lambda found: found.first_time),
    Column("last_time", _TIME, lambda found: found.last_time),
)
"""One row a sequence."""

PROVENANCE: Final = frozenset(column.name for column in (*_ORIGIN, WARNINGS))
"""Columns that tell where a row comes from and how it was read, and nothing of the object."""


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Columns of ours as a schema."""
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def values_of(columns: Sequence[Column], source: Message | ReplySequence) -> dict[str, Any]:
    """The values of columns of ours in one row, by name."""
    return {column.name: column.value(source) for column in columns}


def arrow_schema(cls: type[XmlObject]) -> pa.Schema:
    """The fields of a stub class as Arrow columns.

    Args:
        cls: any generated class.

    Returns:
        Typed, nested columns named as the fields of the class. Types that hold themselves, substitution groups and
        content without a schema are XML text; open content is a map of texts with its XML beside it (`..._raw`).
    """
    return pa.schema(list(Struct(cls.__xml__).type))


def row_schema(object_types: Sequence[str]) -> pa.Schema:
    """The columns of the rows that these object types give, the stubs being loaded.

    Raises:
        ConfigError: an object type that no stub knows.
    """
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
    """What our columns of rows of objects are called beside the fields of a class, none where there is no one class."""
    names = [column.name for column in (*OF_OBJECT, *OF_MESSAGE)]
    return {name: f"{name}_" if name in fields_of_class else name for name in names}


def own_columns(columns: Collection[str]) -> dict[str, str]:
    """What our columns are called in a table of one object type, given all its columns."""
    names = (column.name for column in (*NAMES, *RELATIONS, *NOTES, *_ORIGIN))
    return {name: f"{name}_" if f"{name}_" in columns else name for name in names}


def struct_name(table: ClassTable) -> str:
    """The struct column of an object type where there are several."""
    return label_of(table).lower()


def full_schema(options: SourceOptions) -> pa.Schema:
    """The columns that options lead to: all of the object types or `columns` out of them, and that of corrupt records.

    Raises:
        ConfigError: an object type, a stubs package or a column that there is not.
    """
    load_stubs(options.stubs)
    schema = row_schema(options.object_types)
    corrupt = options.corrupt_column
    if corrupt is not None:
        schema = schema.append(pa.field(corrupt, _TEXT))
    if not options.columns:
        return schema
    unknown = next((name for name in options.columns if name not in schema.names), None)
    if unknown is not None:
        raise ConfigError(f"columns: there is no {unknown!r}{hint(unknown, schema.names)}")
    own = () if corrupt is None else (corrupt,)
    return pa.schema([schema.field(name) for name in dict.fromkeys((*options.columns, *own))])
