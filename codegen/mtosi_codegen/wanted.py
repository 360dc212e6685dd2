"""The operations that a user names: `operation`, or `Service.operation`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from mtosi_codegen.findings import Finding
from mtosi_codegen.model import Service
from mtosi_jms.errors import SchemaError

UNKNOWN: Final = "operation-unknown"
"""The rule of the error about a name that no service has."""


def names_of(service: Service, operation: str) -> set[str]:
    """The names by which a user can ask for an operation of a service."""
    return {operation, f"{service.name}.{operation}"}


def require(wanted: Iterable[str], services: Sequence[Service], findings: Iterable[Finding]) -> None:
    """Check that a service has each operation. One that could not be joined counts: its own finding says why.

    Args:
        findings: those of the sources; if parts of them were left out, the error says so.

    Raises:
        SchemaError: no service has one of them; the text names similar ones, and `rule` is `UNKNOWN`.
    """
    known: set[str] = set()
    for service in services:
        for operation in (*(operation.name for operation in service.operations), *service.failed):
            known |= names_of(service, operation)
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        text = "; ".join(f"no operation {name!r}{_hint(name, known)}" for name in unknown)
        lost = any(finding.failed for finding in findings)
        raise SchemaError(text + ("; mtosi-codegen inspect shows what the sources lack" if lost else ""), rule=UNKNOWN)


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), 3)
    return f"; did you mean {', '.join(near)}?" if near else ""
