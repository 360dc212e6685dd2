"""Why a document is invalid, in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtosi_jms.cli import main
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.validation import Explainer, SchemaSet

SCHEMA = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:a" xmlns="urn:a"
    elementFormDefault="qualified">
<xs:element name="order"><xs:complexType><xs:sequence>
  <xs:element name="customer " type="xs:string"/>
  <xs:element name="item" type="ItemType" minOccurs="0" maxOccurs="unbounded"/>
  <xs:element name="note" type="xs:string" minOccurs="0"/>
  <xs:element name="password" type="CodeType" minOccurs="0"/>
</xs:sequence></xs:complexType></xs:element>
<xs:complexType name="ItemType"><xs:attribute name="count" type="xs:int" use="required"/></xs:complexType>
<xs:simpleType name="CodeType"><xs:restriction base="xs:string">
  <xs:pattern value="[A-Z]{3}"/>
</xs:restriction></xs:simpleType>
</xs:schema>
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    pytest.importorskip("xmlschema")
    path = tmp_path / "schemas" / "a.xsd"
    path.parent.mkdir()
    path.write_text(SCHEMA)
    return path


def explain(schema: Path, content: str) -> list[tuple[str, tuple[str, ...], int | None]]:
    document = schema.parent.parent / "document.xml"
    document.write_text(f'<a:order xmlns:a="urn:a">{content}</a:order>')
    found = Explainer(SchemaSet.load(schema.parent)).explain_file(document)
    assert all(one.file == str(schema) for one in found)
    return [(f"{one.path}: {one.reason}", one.expected, one.schema_line) for one in found]


def test_a_wrong_child_names_those_that_may_stand_there(schema: Path) -> None:
    wrong = explain(schema, "<a:customer/><a:comment/>")
    expected = ("a:item (0..unbounded)", "a:note (0..1)", "a:password (0..1)")
    assert wrong == [("/order/comment: Unexpected child with tag 'a:comment' at position 2", expected, 3)]


def test_a_missing_child_is_named(schema: Path) -> None:
    ((reason, expected, line),) = explain(schema, "")
    assert reason.startswith("/order: The content of element 'a:order' is not complete")
    assert (expected, line) == (("a:customer",), 3)


def test_a_missing_attribute_is_named(schema: Path) -> None:
    ((reason, expected, line),) = explain(schema, "<a:customer/><a:item/>")
    assert (reason, expected, line) == ("/order/item: missing required attribute 'count'", (), 9)


def test_no_credential_is_shown(schema: Path) -> None:
    ((reason, _, line),) = explain(schema, "<a:customer/><a:password>s3cret</a:password>")
    assert (reason, line) == ("/order/password: the value is not allowed", 11)


def test_the_command_prints_reasons_below_the_issues(schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = schema.parent.parent / "document.xml"
    document.write_text('<a:order xmlns:a="urn:a">\n<a:customer/>\n<a:comment/></a:order>')
    arguments = ["validate", str(document), "--schemas", str(schema.parent), "--explain"]
    assert main(arguments) == 1
    issue, why = capsys.readouterr().out.splitlines()
    assert issue.startswith(f"{document}:3: /order/comment: ")
    assert why.strip() == (
        "Unexpected child with tag 'a:comment' at position 2;"
        f" expected: a:item (0..unbounded), a:note (0..1), a:password (0..1) ({schema}:3)"
    )
    assert main([*arguments, "--json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["explanations"]
    assert one["schema"] == {"file": str(schema), "line": 3}


def test_a_valid_document_and_one_that_is_not_xml_need_no_explanation(schema: Path, tmp_path: Path) -> None:
    assert explain(schema, "<a:customer/>") == []
    (tmp_path / "no.xml").write_text("<a")
    assert Explainer(SchemaSet.load(schema.parent)).explain_file(tmp_path / "no.xml") == []


def test_without_xmlschema_the_extra_is_named(schema: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xmlschema", None)
    with pytest.raises(MissingExtraError, match=r"xmlschema is not installed: pip install 'mtosi-jms\[codegen\]'"):
        Explainer(SchemaSet.load(schema.parent))
