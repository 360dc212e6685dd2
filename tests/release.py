"""Where the releases of MTOSI are, and their schemas, many in one: what conftest.py's fixtures of them stand on."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from lxml import etree

XSD: Final = "http://www.w3.org/2001/XMLSchema"
SHARED: Final = Path(os.environ.get("MTOSI_SHARED") or Path(__file__).resolve().parents[2] / "shared").resolve()
"""The folder of reference material, which may not be there: MTOSI_SHARED, else `shared` beside the checkout."""


def namespace_of(file: Path) -> str:
    return str(etree.parse(file).getroot().get("targetNamespace"))


def driver(folder: Path, files: list[Path]) -> Path:
    """A schema that imports all the files, one for each namespace."""
    imports = {namespace_of(file): file for file in files}
    assert len(imports) == len(files), "two files of one namespace"
    lines = [f'<xsd:import namespace="{name}" schemaLocation="{file.as_uri()}"/>' for name, file in imports.items()]
    target = folder / "driver.xsd"
    target.write_text(f'<xsd:schema xmlns:xsd="{XSD}">{"".join(lines)}</xsd:schema>', encoding="utf-8")
    return target


def release_driver(folder: Path, release: Path) -> Path:
    """A schema that imports all of a release's, from a copy without the blanks around some of its names."""
    copies = []
    for file in sorted(release.glob("*/IIS/xsd/*.xsd")):
        target = folder / file.relative_to(release)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(re.sub(rb'(\s(?:name|ref|type|base)=")\s*([^"]*?)\s*"', rb'\1\2"', file.read_bytes()))
        copies.append(target)
    return driver(folder, copies)


def services_of(package: str) -> dict[str, Any]:
    """The stubs of all services of a generated package, by name."""
    places = [path.split(":") for path in import_module(package).__services__]
    return {name: getattr(import_module(f"{package}.{module}"), name) for module, name in places}
