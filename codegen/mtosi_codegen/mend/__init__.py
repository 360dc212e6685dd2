"""Writes a copy of sources that other XML tools can read: each defect is repaired as the generator understands it.

Every file is a copy of its source with minimal edits. The copy takes only decisions from the generator's model: which
file an import means, which of two definitions is used, which message an operation has. libxml2, xmlschema and zeep can
then read a set that they refuse as shipped, and their reading stays independent of ours.

All files lie in one folder. libxml2 and xmlschema read one file for each namespace, so a namespace with several files
gets one more file, which includes the others. Schemas inside a WSDL become files. A name that is used and never defined
is declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mtosi_codegen.findings import Finding, Findings
from mtosi_codegen.load import Bindings
from mtosi_codegen.mend.folder import Folder
from mtosi_codegen.mend.schemas import mend_schemas
from mtosi_codegen.mend.wsdls import mend_wsdls
from mtosi_codegen.model import Service
from mtosi_codegen.pipeline import read_model
from mtosi_codegen.write import write_files
from mtosi_jms.errors import SchemaError

__all__ = ["Mended", "mend"]


@dataclass(frozen=True, slots=True)
class Mended:
    """A repaired copy on disk.

    Attributes:
        wsdls: path of every WSDL, by its name in findings.
        schemas: for each target namespace, the file with all its definitions.
        schema: a schema that imports all of these.
        services: the services that the generator found, also those without operations.
    """

    folder: Path
    wsdls: Mapping[str, Path]
    schemas: Mapping[str, Path]
    schema: Path
    services: tuple[Service, ...]
    findings: tuple[Finding, ...]


def mend(sources: Sequence[Path | str], folder: Path | str, *, bindings: Bindings = "jms") -> Mended:
    """Write a repaired copy of sources.

    Args:
        folder: folder for the copy; created if it does not exist. Other files in it stay.
        bindings: `jms`, or `all` to take other SOAP bindings too.

    Raises:
        SchemaError: there are no sources, a source does not exist, schemas are nested too deep, a definition is too
            large for any library, or the folder cannot be written.
    """
    findings = Findings()
    try:
        read, services, model = read_model(sources, bindings, None, findings)
        copied = Folder(read)
        mend_schemas(copied)
        mend_wsdls(copied, services, model)
        files = copied.files()
    except RecursionError:
        raise SchemaError("the sources are nested too deep") from None
    for finding in findings:
        if finding.rule == "too-large" and finding.failed:  # other libraries write it out
            raise SchemaError(finding.message, file=finding.file, line=finding.line, rule=finding.rule)
    target = Path(folder)
    write_files(target, files, {})
    return Mended(
        target,
        {document.name: target / name for document, name in copied.wsdl_files.items()},
        {namespace: target / name for namespace, name in copied.heads.items()},
        target / copied.driver,
        tuple(services),
        tuple(findings),
    )
