"""Stub classes as Arrow schemas, and objects as rows of them. No Spark here.

Columns of a typed row, in this order:

| columns | what |
|---|---|
| `name_text` | the full name, `MD=EMS1/ME=NE-7` |
| `parent_names` | full names of the objects around it, outermost first |
| the fields of the class | typed and nested, named as in the class; open content as a map, and as XML in `..._raw` |
| `related` | nested layout: names of other objects by the name of their list (`supported_ptp_ref_list`) |
| `quality` | nested layout: the indicator of quality |
| `unknown` | what the schema does not know or what does not fit: where it stood, and the XML or text |
| `warnings` | rule, message, path and line of each departure from the schema |
| `header_...` | header fields as text; `security` never |
| `correlation_id`, `batch_number`, `end_of_reply` | the sequence; the correlationId as it came |
| `complete` | whether the sequence is complete; null where that is not known |
| `source_file`, `source_line`, `source_position` | file, line of the object, its number in the file from 1 |

Where a class has a field of the same name, the field keeps it and the other column gets a trailing `_`.
With several object types at once each has one struct column, named in lower case (`me`, `ptp`), null in rows of other
types, and `object_type` comes first. The long form has `object_type`, `attributes` (a map of texts by path) and `xml`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import pyarrow as pa

from mtosi_jms.inventory import ALL, MESSAGE, class_for, label_of
from mtosi_jms.spark._columns import Struct
from mtosi_jms.spark._envelope import HEADER_COLUMNS, EnvelopeFacts
from mtosi_jms.spark._values import list_type
from mtosi_jms.xmlbind import ClassTable, XmlObject

TEXT: Final = pa.string()
TEXTS: Final = list_type(TEXT)
TEXT_MAP: Final = pa.map_(TEXT, TEXT)
RELATED: Final = pa.map_(TEXT, TEXTS)
QUALITY: Final = pa.struct([("is_suspect", pa.bool_()), ("is_descendant", pa.bool_()), ("reason", TEXT)])
UNKNOWN: Final = list_type(pa.struct([("path", TEXT), ("content", TEXT)]))
WARNINGS: Final = list_type(pa.struct([("rule", TEXT), ("message", TEXT), ("path", TEXT), ("line", pa.int64())]))

HEADER_FIELDS: Final = [pa.field(name, TEXT) for name in HEADER_COLUMNS.values()]
SEQUENCE_FIELDS: Final = [
    pa.field("correlation_id", TEXT),
    pa.field("batch_number", pa.int64()),
    pa.field("end_of_reply", pa.bool_()),
    pa.field("complete", pa.bool_()),
]
FILE_FIELD: Final = pa.field("source_file", TEXT)
PLACE_FIELDS: Final = [FILE_FIELD, pa.field("source_line", pa.int64()), pa.field("source_position", pa.int64())]
_NAMES: Final = [pa.field("name_text", TEXT), pa.field("parent_names", TEXTS)]
_RELATIONS: Final = [pa.field("related", RELATED), pa.field("quality", QUALITY)]
_REPORTS: Final = [pa.field("unknown", UNKNOWN), pa.field("warnings", WARNINGS)]
_TYPE_FIELD: Final = pa.field("object_type", TEXT)
_LONG: Final = [pa.field("attributes", TEXT_MAP), pa.field("xml", TEXT)]

MESSAGE_SCHEMA: Final = pa.schema(
    [
        pa.field("kind", TEXT),
        pa.field("body_element", TEXT),
        pa.field("objects", pa.map_(TEXT, pa.int64())),
        pa.field("body_digest", TEXT),
        pa.field("duplicate_files", TEXTS),
        *HEADER_FIELDS,
        *SEQUENCE_FIELDS,
        FILE_FIELD,
        pa.field("size", pa.int64()),
        pa.field("body", pa.binary()),
    ]
)
"""One row an envelope. `body_element` is a Clark name; `objects` counts the objects by type; `duplicate_files` are
copies that were left out; `size` is in bytes as landed; `body` is the envelope as it came, unpacked, null where it is
larger than `wholeFileBytes`."""


def arrow_schema(cls: type[XmlObject]) -> pa.Schema:
    """The fields of a stub class as Arrow columns.

    Args:
        cls: any generated class.

    Returns:
        Typed, nested columns named as the fields of the class. Types that hold themselves, substitution groups and
        content without a schema are XML text; open content is a map of texts with its XML beside it (`..._raw`).
    """
    return pa.schema(list(Struct(cls.__xml__).type))


def corrupt_field(name: str) -> pa.Field:
    """The column of rejected files: `file:line: reason`."""
    return pa.field(name, TEXT)


def row_schema(object_types: Sequence[str]) -> pa.Schema:
    """The columns of the rows that these object types give, the stubs being loaded.

    Raises:
        ConfigError: an object type that no stub knows.
    """
    if object_types == (MESSAGE,):
        return MESSAGE_SCHEMA
    tail = [*HEADER_FIELDS, *SEQUENCE_FIELDS, *PLACE_FIELDS]
    if object_types == (ALL,):
        return pa.schema([_TYPE_FIELD, *_NAMES, *_LONG, *_RELATIONS, *tail])
    tables = [class_for(name) for name in object_types]
    if len(tables) > 1:
        structs = [pa.field(struct_name(table), Struct(table).type) for table in tables]
        return pa.schema([_TYPE_FIELD, *_NAMES, *structs, *_RELATIONS, *_REPORTS, *tail])
    fields = list(Struct(tables[0]).type)
    shown = shown_names([field.name for field in fields])
    free = [field.with_name(shown[field.name]) for field in (*_NAMES, *_RELATIONS, *_REPORTS, *tail)]
    return pa.schema([*free[:2], *fields, *free[2:]])


def shown_names(fields: Collection[str]) -> dict[str, str]:
    """Our own columns, and what they are called beside the fields of a class.

    Args:
        fields: names of the fields of the class; none where there is no one class.
    """
    tail = [*HEADER_FIELDS, *SEQUENCE_FIELDS, *PLACE_FIELDS]
    names = [field.name for field in (_TYPE_FIELD, *_NAMES, *_LONG, *_RELATIONS, *_REPORTS, *tail)]
    return {name: f"{name}_" if name in fields else name for name in names}


def struct_name(table: ClassTable) -> str:
    """The struct column of an object type where there are several."""
    return label_of(table).lower()


def message_values(facts: EnvelopeFacts | None, source_file: str | None, complete: bool | None) -> dict[str, Any]:
    """The columns that are the same in all rows of a message.

    Args:
        facts: None for a rejected file.
    """
    values: dict[str, Any] = {"source_file": source_file}
    if facts is not None:
        values.update({column: facts.header.get(field) for field, column in HEADER_COLUMNS.items()})
        values["correlation_id"] = facts.correlation_id
        values["batch_number"] = facts.batch_number
        values["end_of_reply"] = facts.end_of_reply
        values["complete"] = complete
    return values
