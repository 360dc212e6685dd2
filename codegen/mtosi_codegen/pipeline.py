"""The steps of the generator in order: load, model, passes, render. The module `write` writes the files."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mtosi_codegen import passes
from mtosi_codegen.findings import Finding, Findings
from mtosi_codegen.load import Bindings, Sources, load
from mtosi_codegen.model import Model, Service
from mtosi_codegen.passes.dedupe import collect
from mtosi_codegen.render import render
from mtosi_codegen.wsdl.join import services_of
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


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run of the generator.

    Attributes:
        files: text of each file by its path below the package, with `/`.
        services: every service that was found, also those without operations.
    """

    files: dict[str, str]
    model: Model
    services: tuple[Service, ...]
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether anything could not be generated."""
        return any(finding.failed for finding in self.findings)

    def __repr__(self) -> str:
        return f"<Result {len(self.files)} files, {len(self.services)} services, {len(self.findings)} findings>"


def generate(
    sources: Sequence[Path | str],
    *,
    bindings: Bindings = "jms",
    operations: Sequence[str] | None = None,
    templates: Path | None = None,
) -> Result:
    """Generate a package from WSDLs, XML Schemas and folders of them; nothing is written.

    Args:
        bindings: `jms`, or `all` to take other SOAP bindings too.
        operations: names of the operations to generate, as `Service.operation` or `operation`; None for all.
        templates: folder of templates that replace the built-in ones.

    Raises:
        SchemaError: there are no sources, a source does not exist, no service has one of the operations, schemas are
            nested too deep, or a template is wrong.
        MissingExtraError: a library of the extra `codegen` is not installed.
    """
    findings = Findings()
    try:
        return _generate(sources, bindings, operations, templates, findings)
    except RecursionError:
        raise SchemaError("the sources are nested too deep") from None


def _generate(
    sources: Sequence[Path | str],
    bindings: Bindings,
    operations: Sequence[str] | None,
    templates: Path | None,
    findings: Findings,
) -> Result:
    read, services, model = read_model(sources, bindings, operations, findings)
    return Result(render(model, read.digest, templates), model, tuple(services), tuple(findings))


def read_model(
    sources: Sequence[Path | str], bindings: Bindings, operations: Sequence[str] | None, findings: Findings
) -> tuple[Sources, list[Service], Model]:
    """Return the sources that were read, every service, and the model to render. Raises SchemaError: no service has one
    of the operations."""
    read = load(sources, findings, bindings)
    schema = collect(read.units, findings)
    services = services_of(read, schema, findings, bindings)
    if operations is not None:
        services = _chosen(services, operations, findings)
    model = Model(schema, services, findings, only_operations=operations is not None)
    passes.run(model)
    model.services = [service for service in services if service.operations]
    return read, services, model


def _chosen(services: list[Service], wanted: Sequence[str], findings: Findings) -> list[Service]:
    """The services, reduced to the wanted operations."""
    names = {name.strip() for name in wanted if name.strip()}
    require(sorted(names), services, findings)
    for service in services:
        service.operations = [one for one in service.operations if names & names_of(service, one.name)]
        service.failed = [name for name in service.failed if names & names_of(service, name)]
    return [service for service in services if service.operations or service.failed]
