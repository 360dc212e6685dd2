"""Whether a landing holds anything at all: tables do not give way to what an empty or unreadable landing brings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from mtosi_jms.errors import SpoolError, XmlError
from mtosi_jms.inventory import ALL, MESSAGE, Routes, is_object
from mtosi_jms.spark._discover import Reject
from mtosi_jms.spark._landed import verify
from mtosi_jms.spark._landing import Landing, PlannedFile, reject_of
from mtosi_jms.spark._messages import MessageReader
from mtosi_jms.spark._rows import MESSAGE_SCHEMA
from mtosi_jms.spark._tables import unknown_body
from mtosi_jms.spark.options import Mode, SourceOptions

_SHOWN: Final = 20


def check_readable(
    landing: Landing, options: SourceOptions, shown: Callable[[Reject], Reject] = lambda reject: reject
) -> None:
    """See that a landing holds a message that can be read to its end; the first one decides.

    Args:
        landing: what lies there.
        options: what is asked for.
        shown: how to tell a reject.

    Raises:
        SpoolError: there is none; the text names what was rejected, one file a line.
    """
    rejects = list(landing.rejects)
    for file in landing.files:
        reject = _reject(file, options)
        if reject is None:
            return
        rejects.append(reject)
    lines = ["no message in it can be read; tables stay as they are: see that the landing is there and mounted"]
    lines[0] += ", or say allow_empty (--allow-empty)"
    lines += [str(shown(reject)) for reject in rejects[:_SHOWN]]
    if len(rejects) > _SHOWN:
        lines.append(f"and {len(rejects) - _SHOWN} more")
    raise SpoolError(", ".join(options.paths), "\n".join(lines))


def _reject(file: PlannedFile, options: SourceOptions) -> Reject | None:
    """Why nothing can be read from a file, None where something can."""
    try:
        verify(file.path, options.whole_file_bytes)
    except (XmlError, SpoolError) as error:
        return reject_of(error, file.path)
    if options.object_types != (ALL,) or not options.reads(file.kind) or _has_objects(file, options):
        return None
    return unknown_body(file)


def _has_objects(file: PlannedFile, options: SourceOptions) -> bool:
    """Whether a message is of a kind that the stubs know, or holds objects all the same."""
    if Routes(is_object).reachable(file.body_tag) is not None:
        return True
    asked = replace(options, object_types=(MESSAGE,), mode=Mode.DROPMALFORMED)
    reader = MessageReader(asked, pa.schema([MESSAGE_SCHEMA.field("objects")]))
    return any(row for batch in reader.read((file,)) for row in batch.column(0).to_pylist())
