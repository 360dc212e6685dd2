"""Whether anything can be read from a landing, so that nobody takes an unmounted folder for an empty network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from mtosi_jms.errors import SpoolError, XmlError
from mtosi_jms.inventory import ALL, MESSAGE, Routes, is_object
from mtosi_jms.namespaces import split_clark
from mtosi_jms.tables.columns import row_schema
from mtosi_jms.tables.envelope import reject_of, verify
from mtosi_jms.tables.files import Reject
from mtosi_jms.tables.landing import Plan, PlannedFile
from mtosi_jms.tables.options import Mode, SourceOptions
from mtosi_jms.tables.reader import MessageReader

__all__ = ["Shown", "check_readable", "nothing_readable", "refusal", "unknown_body"]

Shown = Callable[[Reject], Reject]
"""Changes the path of a reject into what the user would write."""
_LISTED: Final = 20


def check_readable(plan: Plan, options: SourceOptions, shown: Shown = lambda reject: reject) -> None:
    """Check that at least one message of a landing can be read. Raises SpoolError: none can, see `nothing_readable`."""
    rejects: list[Reject] = []
    for file in plan.files:
        reject = refusal(file, options)
        if reject is None:
            return
        rejects.append(reject)
    raise nothing_readable(options, [*plan.rejects, *rejects], shown)


def nothing_readable(options: SourceOptions, rejects: Sequence[Reject], shown: Shown) -> SpoolError:
    """Return the error of a landing without a readable message; it lists the first rejects, one for each line."""
    lines = ["no message in it can be read; tables stay as they are: see that the landing is there and mounted"]
    lines[0] += ", or say allow_empty (--allow-empty)"
    lines += [str(shown(reject)) for reject in rejects[:_LISTED]]
    if len(rejects) > _LISTED:
        lines.append(f"and {len(rejects) - _LISTED} more")
    return SpoolError(", ".join(options.paths), "\n".join(lines))


def refusal(file: PlannedFile, options: SourceOptions) -> Reject | None:
    """Return why nothing can be read from a file; None if something can. The stubs must be loaded."""
    try:
        verify(file.path, options.whole_file_bytes)
    except (XmlError, SpoolError) as error:
        return reject_of(error, file.path)
    if options.object_types != (ALL,) or not options.reads(file.kind) or _has_objects(file, options):
        return None
    return unknown_body(file.path, file.body_tag)


def _has_objects(file: PlannedFile, options: SourceOptions) -> bool:
    """Whether the stubs know the body element of a message, or the message has objects anyway."""
    if Routes(is_object).reachable(file.body_tag) is not None:
        return True
    settings = replace(options, object_types=(MESSAGE,), mode=Mode.DROPMALFORMED)
    reader = MessageReader(settings, pa.schema([row_schema((MESSAGE,)).field("objects")]))
    return any(row for batch in reader.read((file,)) for row in batch.column(0).to_pylist())


def unknown_body(path: str, body_tag: str) -> Reject:
    """Return the reject of a message whose body element no stub knows and that has no object."""
    namespace, local = split_clark(body_tag)
    reason = f"wrong kind: no stub knows its body element {local} ({namespace or 'no namespace'})"
    return Reject(path, None, f"{reason}, nor any object in it")
