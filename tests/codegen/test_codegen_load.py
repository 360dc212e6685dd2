"""Finding and reading source files: which count, which lose, where an import leads."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen import generate
from mtosi_codegen.findings import Findings
from mtosi_codegen.load import Sources, load
from mtosi_codegen.load.rivals import looks_stale
from mtosi_jms.errors import SchemaError

Make = Callable[..., str]


def _names(sources: Sources) -> list[str]:
    return [document.name for document in sources.documents]


def test_a_schema_that_nothing_imports_counts(tree: Any, xsd: Make) -> None:
    folder = tree({"b/one.xsd": xsd("", "urn:one"), "a/two.xsd": xsd("", "urn:two")})
    assert _names(load([folder], Findings())) == ["a/two.xsd", "b/one.xsd"]


def test_names_are_relative_to_the_common_folder(tree: Any, xsd: Make) -> None:
    folder = tree({"wsdl/one.xsd": xsd("", "urn:one"), "xsd/two.xsd": xsd("", "urn:two")})
    both = load([folder / "xsd", folder / "wsdl"], Findings())
    assert _names(both) == ["wsdl/one.xsd", "xsd/two.xsd"]
    assert both.digest == load([folder], Findings()).digest


def test_the_digest_follows_content_and_name_only(tree: Any, xsd: Make) -> None:
    text = xsd("", "urn:one")
    here, there = tree({"one.xsd": text}), tree({"one.xsd": text})
    assert here != there
    assert load([here], Findings()).digest == load([there], Findings()).digest
    assert load([here], Findings()).digest != load([tree({"two.xsd": text})], Findings()).digest
    assert load([here], Findings()).digest != load([tree({"one.xsd": text + " "})], Findings()).digest


def test_a_jms_wsdl_is_known_by_its_binding_not_by_its_name(tree: Any, wsdl: Make, ask: dict[str, str]) -> None:
    folder = tree(
        {
            "service.definition": wsdl(ask["binding"]),
            "plain.wsdl": wsdl(ask["port"]),
            "notes.txt": "no XML at all",
            ".hidden/copy.wsdl": wsdl(ask["binding"]),
        }
    )
    assert [root.name for root in load([folder], Findings()).roots] == ["service.definition"]


def test_an_http_binding_counts_only_when_asked_for(tree: Any, wsdl: Make, ask: dict[str, str]) -> None:
    http = ask["binding"].replace("soap/jms", "soap/http")
    folder = tree({"a.wsdl": wsdl(http)})
    assert load([folder], Findings()).roots == ()
    assert [root.name for root in load([folder], Findings(), "all").roots] == ["a.wsdl"]


def test_utf16_and_byte_order_marks_are_read(tree: Any, xsd: Make) -> None:
    folder = tree(
        {
            "wide.xsd": xsd('<x:element name="a" type="x:string"/>', "urn:wide")
            .replace('version="1.0"', 'version="1.0" encoding="UTF-16"')
            .encode("utf-16"),
            "marked.xsd": b"\xef\xbb\xbf" + xsd("", "urn:marked").encode(),
        }
    )
    findings = Findings()
    assert _names(load([folder], findings)) == ["marked.xsd", "wide.xsd"]
    assert len(findings) == 0


def test_what_a_wsdl_reaches_wins_over_rivals(
    tree: Any, wsdl: Make, xsd: Make, ask: dict[str, str], messages: str
) -> None:
    folder = tree(
        {
            "service.wsdl": wsdl(ask["types"] + ask["messages"] + ask["port"] + ask["binding"]),
            "messages.xsd": messages,
            "aaa.xsd": messages.replace("what", "other"),
            "more.xsd": xsd('<x:element name="extra" type="x:string"/>', "urn:m"),
        }
    )
    findings = Findings()
    assert _names(load([folder], findings)) == ["messages.xsd", "more.xsd", "service.wsdl"]
    assert [(finding.rule, finding.file) for finding in findings] == [("rival-left-out", "aaa.xsd")]


def test_of_unreached_rivals_the_fresh_one_wins(tree: Any, xsd: Make) -> None:
    text = xsd('<x:element name="a" type="x:string"/>')
    folder = tree({"A-old.xsd": text, "B.xsd": text, "examples/A.xsd": text, "A - Copy.xsd": text})
    assert _names(load([folder], Findings())) == ["B.xsd"]


@pytest.mark.parametrize(
    ("name", "stale"),
    [
        ("xsd/Service-old.xsd", True),
        ("xsd/ITU-T-Definitions - Copy.xsd", True),
        ("xml/Md1-1.xsd", True),
        ("xsd/Messages - old.xsd", True),
        ("xsd/Threshold.xsd", False),
        ("xsd/Goldmine.xsd", False),
        ("samples/x.xsd", True),
        ("Copyright.xsd", False),
    ],
)
def test_stale_names(name: str, stale: bool) -> None:
    assert looks_stale(name) is stale


def test_an_include_without_namespace_takes_the_includers(tree: Any, xsd: Make) -> None:
    part = xsd('<x:complexType name="P"><x:sequence><x:element name="e" type="Q"/></x:sequence></x:complexType>'
               '<x:simpleType name="Q"><x:restriction base="x:string"/></x:simpleType>', "")  # fmt: skip
    folder = tree(
        {
            "one.xsd": xsd('<x:include schemaLocation="part.xsd"/>', "urn:one"),
            "two.xsd": xsd('<x:include schemaLocation="part.xsd"/>', "urn:two"),
            "part.xsd": part,
        }
    )
    result = generate([folder])
    assert not result.findings
    assert sorted(module.namespace for module in result.model.modules) == ["urn:one", "urn:two"]


def test_included_and_imported_in_a_circle(tree: Any, xsd: Make) -> None:
    folder = tree(
        {
            "one.xsd": xsd('<x:import namespace="urn:two" schemaLocation="two.xsd"/>', "urn:one"),
            "two.xsd": xsd('<x:import namespace="urn:one" schemaLocation="one.xsd"/>', "urn:two"),
        }
    )
    assert _names(load([folder / "one.xsd"], Findings())) == ["one.xsd", "two.xsd"]


def test_a_location_with_blanks_encoded(tree: Any, xsd: Make) -> None:
    folder = tree(
        {
            "one.xsd": xsd('<x:import namespace="urn:two" schemaLocation="two%20b.xsd"/>', "urn:one"),
            "two b.xsd": xsd("", "urn:two"),
        }
    )
    findings = Findings()
    assert _names(load([folder / "one.xsd"], findings)) == ["one.xsd", "two b.xsd"]
    assert len(findings) == 0


def test_a_source_that_does_not_exist() -> None:
    with pytest.raises(SchemaError, match="no such file or folder"):
        load([Path("nowhere")], Findings())


def test_no_sources() -> None:
    with pytest.raises(SchemaError, match="no sources"):
        load([], Findings())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tree: Any, xsd: Make) -> None:
    folder = tree({"a.xsd": xsd("")})
    (folder / "a.xsd").chmod(0)
    findings = Findings()
    assert load([folder], findings).documents == ()
    assert [finding.rule for finding in findings] == ["unreadable"]
