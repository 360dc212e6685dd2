"""A copy of sources that other readers understand too: each defect is mended as the generator reads it.

Every file is a copy of its source with the smallest edits; nothing comes from the generator's model but its decisions:
which file an import means, which of two definitions counts, which message an operation has. So libxml2, xmlschema and
zeep can read a set that they refuse as it is, and what they make of it is apart from our reading.

All files lie in one folder. A namespace of several files gets one more, which includes them: libxml2 and xmlschema read
one file for each namespace. Schemas inside a WSDL become files. A name that is used and never defined is declared.
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
    """A mended copy on disk.

    Attributes:
        folder: where it lies.
        wsdls: every WSDL, by its name in findings.
        schemas: for each target namespace one file with all its definitions.
        schema: a schema that imports all of these.
        services: what the generator found, those without operations too.
        findings: what was wrong with the sources.
    """

    folder: Path
    wsdls: Mapping[str, Path]
    schemas: Mapping[str, Path]
    schema: Path
    services: tuple[Service, ...]
    findings: tuple[Finding, ...]


def mend(sources: Sequence[Path | str], folder: Path | str, *, bindings: Bindings = "jms") -> Mended:
    """Write a mended copy of sources.

    Args:
        sources: WSDLs, XML Schemas and folders of them.
        folder: where the copy goes; made if it does not exist. Other files there are left alone.
        bindings: `jms`, or `all` to take other SOAP bindings too.

    Raises:
        SchemaError: no sources, one that does not exist, schemas nested too deep, or a folder that cannot be written.
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
