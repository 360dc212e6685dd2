"""Mended copies: what libxml2, xmlschema and zeep refuse in a source they read in its copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from mtosi_codegen.mend import Mended, mend

xmlschema = pytest.importorskip("xmlschema")
pytest.importorskip("zeep")

RELEASES = [("2.0", 242, 109), ("4.0", 289, 126)]


def load_xmlschema(path: Path) -> Any:
    return xmlschema.XMLSchema10(str(path), allow="local", use_fallback=False)


def load_zeep(path: Path) -> Any:
    """A WSDL as zeep reads it: a message that does not resolve is a warning, and so an error."""
    from zeep.transports import Transport
    from zeep.wsdl import Document

    return Document(str(path), Transport())


def port_operations(path: Path) -> int:
    return sum(len(port.operations) for port in load_zeep(path).port_types.values())


@pytest.fixture(scope="module", params=RELEASES, ids=[name for name, *_ in RELEASES])
def release(shared: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    name, operations, wsdls = request.param
    mended = mend([shared / "mtosi" / name], tmp_path_factory.mktemp("mended"))
    assert sum(len(service.operations) for service in mended.services) == operations
    assert len(mended.wsdls) == wsdls
    return mended


def test_libxml2_reads_a_release(release: Mended) -> None:
    etree.XMLSchema(etree.parse(str(release.schema)))


def test_xmlschema_reads_a_release_and_finds_every_message(release: Mended) -> None:
    elements = load_xmlschema(release.schema).maps.elements
    for service in release.services:
        for operation in service.operations:
            names = (operation.request, operation.response, *operation.fault_elements)
            assert {str(name) for name in names if name} <= set(elements)


def test_zeep_reads_wsdls_that_had_defects(release: Mended) -> None:
    found = [finding.file for finding in release.findings if finding.file.endswith("PortType.wsdl")]
    assert found
    for name in found:
        assert port_operations(release.wsdls[name])


@pytest.mark.endurance
def test_zeep_reads_each_wsdl_of_a_release(release: Mended) -> None:
    total = sum(port_operations(path) for path in release.wsdls.values())
    assert total == sum(len(service.operations) for service in release.services)


@pytest.mark.endurance
def test_each_namespace_of_a_release_stands_alone(release: Mended) -> None:
    for path in release.schemas.values():
        etree.XMLSchema(etree.parse(str(path)))
        load_xmlschema(path)


def test_the_shipped_profile(root: Path, tmp_path: Path) -> None:
    mended = mend([root / "wsdl", root / "xsd"], tmp_path / "mended")
    etree.XMLSchema(etree.parse(str(mended.schema)))
    assert len(load_xmlschema(mended.schema).maps.elements) > 100
    for path in mended.wsdls.values():
        assert port_operations(path)
    assert not mended.findings
