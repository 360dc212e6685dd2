"""Mended copies: what libxml2, xmlschema and zeep refuse in a source they read in its copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from mtosi_codegen.mend import Mended, mend

from .conftest import ASK, MESSAGES, wsdl, xsd

xmlschema = pytest.importorskip("xmlschema")
pytest.importorskip("zeep")

RELEASES = [
    pytest.param(("2.0", 242, 109), marks=pytest.mark.endurance, id="2.0"),
    pytest.param(("4.0", 289, 126), id="4.0"),
]


def load_xmlschema(path: Path) -> Any:
    return xmlschema.XMLSchema10(str(path), allow="local", use_fallback=False)


def load_zeep(path: Path) -> Any:
    """A WSDL as zeep reads it: a message that does not resolve is a warning, and so an error."""
    from zeep.transports import Transport
    from zeep.wsdl import Document

    return Document(str(path), Transport())


def port_operations(path: Path) -> int:
    return sum(len(port.operations) for port in load_zeep(path).port_types.values())


@pytest.fixture(scope="module", params=RELEASES)
def release(shared: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    name, operations, wsdls = request.param
    mended = mend([shared / "mtosi" / name], tmp_path_factory.mktemp("mended"))
    assert sum(len(service.operations) for service in mended.services) == operations
    assert len(mended.wsdls) == wsdls
    return mended


def test_libxml2_reads_a_release(release: Mended) -> None:
    etree.XMLSchema(etree.parse(str(release.schema)))


@pytest.mark.endurance
def test_xmlschema_reads_a_release_and_finds_every_message(release: Mended) -> None:
    elements = load_xmlschema(release.schema).maps.elements
    for service in release.services:
        for operation in service.operations:
            names = (operation.request, operation.response, *operation.fault_elements)
            assert {str(name) for name in names if name} <= set(elements)


@pytest.mark.endurance
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


# Defects one by one: each source as it is makes libxml2 refuse it or zeep lose the operation


def all_read(mended: Mended) -> Any:
    etree.XMLSchema(etree.parse(str(mended.schema)))
    return load_xmlschema(mended.schema).maps


@pytest.mark.parametrize(
    "body",
    [
        (
            '<x:element name=" spaced " type="x:string"/><x:element name="user" type="t:U"/>'
            '<x:complexType name="U"><x:sequence><x:element ref=" t:spaced "/></x:sequence></x:complexType>'
        ),
        '<x:element name="colons" type="x:t:string"/>',
        '<x:element name="prefix" type="nowhere:int"/>',
        (
            '<x:element name="lost" type="t:Lost"/><x:element name="derived"><x:complexType><x:complexContent>'
            '<x:extension base="t:LostBase"><x:sequence><x:element ref="t:lostElement"/><x:group ref="t:lostGroup"/>'
            '</x:sequence><x:attribute ref="t:lostAttribute"/><x:attributeGroup ref="t:lostGroup"/></x:extension>'
            "</x:complexContent></x:complexType></x:element>"
        ),
        '<x:element name="listed" type="t:L"/><x:simpleType name="L"><x:list itemType="t:LostItem"/></x:simpleType>',
        (
            '<x:element name="count"><x:complexType><x:sequence><x:element name="a" type="x:int" minOccurs="many"/>'
            "</x:sequence></x:complexType></x:element>"
        ),
        '<x:element name="twice" type="x:int"/><x:element name="twice" type="x:string"/>',
        '<x:element name="speaks"><x:complexType><x:attribute ref="xml:lang"/></x:complexType></x:element>',
    ],
    ids=["blanks", "colons", "prefix", "undefined", "undefined-simple", "occurrence", "twice", "xml-lang"],
)
def test_a_schema_with_a_defect(tree: Callable[..., Path], tmp_path: Path, body: str) -> None:
    mended = mend([tree({"a.xsd": xsd(body, "urn:t")})], tmp_path / "mended")
    names = {name.partition("}")[2] for name in all_read(mended).elements if name.startswith("{urn:t}")}
    assert names - {"lostElement"} <= {
        "spaced", "user", "colons", "prefix", "lost", "derived", "listed", "count", "twice", "speaks"
    }  # fmt: skip
    assert names


def test_imports_lead_to_the_copies(tree: Callable[..., Path], tmp_path: Path) -> None:
    links = (
        '<x:import namespace="urn:b" schemaLocation="http://example.com/b.xsd"/>'
        r'<x:include schemaLocation="PARTS\common.XSD"/>'
    )
    elements = '<x:element name="a" type="b:B" xmlns:b="urn:b"/><x:element name="c" type="t:Common"/>'
    files = {
        "a.xsd": xsd(links + elements),
        "parts/Common.xsd": xsd('<x:simpleType name="Common"><x:restriction base="x:int"/></x:simpleType>', ""),
        "b one.xsd": xsd('<x:complexType name="B"><x:sequence/></x:complexType>', "urn:b"),
        "b two.xsd": xsd('<x:element name="more" type="t:B"/>', "urn:b"),
    }
    maps = all_read(mend([tree(files)], tmp_path / "mended"))
    assert {"{urn:t}a", "{urn:t}c", "{urn:b}more"} <= set(maps.elements)


def test_a_wsdl_with_schemas_inside_and_messages_that_miss(tree: Callable[..., Path], tmp_path: Path) -> None:
    inner = MESSAGES.partition("?>")[2]
    pieces = dict(ASK, types=f"<w:types>{inner}</w:types>")
    pieces["port"] = pieces["port"].replace("t:askRequest", "m:askRequest").replace("t:askResponse", "t:AskResponse")
    pieces["messages"] = pieces["messages"].replace('element="m:askResponse"', 'element="m:askReponse"')
    pieces["binding"] = pieces["binding"].replace('operation name="ask"', 'operation name="Ask"')
    mended = mend([tree({"a.wsdl": wsdl("".join(pieces.values()))})], tmp_path / "mended")
    assert {finding.rule for finding in mended.findings} >= {"message-namespace", "operation-drift"}
    all_read(mended)
    (path,) = mended.wsdls.values()
    (port,) = load_zeep(path).port_types.values()
    operation = port.operations["ask"]
    (part,) = operation.output_message.parts.values()
    assert part.element.name == "askResponse"
    assert set(operation.fault_messages) == {"f"}
    assert 'name="Ask"' not in path.read_text()


def test_an_own_folder_is_written_twice_with_the_same_bytes(root: Path, tmp_path: Path) -> None:
    def written() -> dict[str, bytes]:
        mend([root / "wsdl"], tmp_path / "mended")
        return {path.name: path.read_bytes() for path in (tmp_path / "mended").iterdir()}

    assert written() == written()
