"""The result of a run: the JSON report that the command line promises, and lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from mtosi_codegen.findings import Finding
from mtosi_codegen.model import Operation, Service
from mtosi_codegen.pipeline import Result


def as_json(result: Result, seconds: float) -> dict[str, Any]:
    """The report as JSON values."""
    return {
        "services": [_service(service, result) for service in result.services],
        "types": len(result.model.classes) + len(result.model.enums),
        "modules": sum(1 for path in result.files if not path.endswith("__init__.py")),
        "operations": sum(len(service.operations) for service in result.services),
        "findings": [finding.as_json() for finding in result.findings],
        "seconds": round(seconds, 3),
    }


def status_of(service: Service, findings: list[Finding]) -> str:
    """Return the status of a service.

    Returns:
        `ok`; `repaired` if its files have findings; `partial` if only some of its operations were generated; `failed`
        if none was.
    """
    if service.failed:
        return "partial" if service.operations else "failed"
    return "repaired" if findings else "ok"


def _service(service: Service, result: Result) -> dict[str, Any]:
    findings = findings_of(service, result)
    return {
        "name": service.name,
        "wsdl": service.wsdl,
        "namespace": service.namespace,
        "address": service.address,
        "transport": service.transport,
        "status": status_of(service, findings),
        "module": service.module,
        "operations": [_operation(operation) for operation in service.operations],
        "findings": [finding.as_json() for finding in findings],
    }


def findings_of(service: Service, result: Result) -> list[Finding]:
    """The findings about the files that a service reaches."""
    files = set(service.files)
    return [finding for finding in result.findings if finding.file in files]


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "name": operation.name,
        "mep": operation.mep,
        "request": str(operation.request),
        "response": str(operation.response) if operation.response else None,
        "fault": str(operation.fault) if operation.fault else None,
        "method": operation.python_name,
    }


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun; the plural is `many`, or `one` with an s."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def summary(result: Result, seconds: float) -> str:
    """One line about a run."""
    services = result.services
    count = sum(len(service.operations) for service in services)
    states = Counter(status_of(service, findings_of(service, result)) for service in services)
    text = f"{counted(len(services), 'service')}, {counted(count, 'operation')}, "
    text += f"{counted(len(result.model.classes), 'class', 'classes')}, "
    text += f"{counted(len(result.model.enums), 'enumeration')}, {counted(len(result.findings), 'finding')}, "
    lost = {"in part": states["partial"], "failed": states["failed"]}
    text += f"{seconds:.1f} s"
    return text + "".join(f"; {counted(count, 'service')} {how}" for how, count in lost.items() if count)


def table(result: Result) -> Iterator[tuple[str, str, str, str, str]]:
    """Service, operation, pattern, request and response for each operation."""
    for service in result.services:
        for operation in service.operations:
            response = operation.response.local if operation.response else ""
            yield service.name, operation.name, operation.mep, operation.request.local, response
