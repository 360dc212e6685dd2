"""Judging as a tree and as a stream: the same findings, and an end in sight however many there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms.cli import main
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.validation import Explainer, SchemaSet, Validator
from mtosi_jms.validation._judge import Finding, judge, readable
from mtosi_jms.xmlbind import ElementPaths

from .conftest import envelope

SCHEMA = etree.XMLSchema(
    etree.fromstring(
        """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" xmlns:t="urn:t"
elementFormDefault="qualified"><xs:element name="list"><xs:complexType><xs:sequence>
<xs:element name="item" maxOccurs="unbounded"><xs:complexType><xs:simpleContent><xs:extension base="xs:int">
<xs:attribute name="kind" type="xs:NCName"/></xs:extension></xs:simpleContent></xs:complexType></xs:element>
<xs:element name="end" minOccurs="0"/></xs:sequence></xs:complexType></xs:element></xs:schema>"""
    )
)

DOCUMENTS = {
    "valid": "<list xmlns='urn:t'>\n<item>1</item>\n<item>2</item>\n</list>",
    "values": "<list xmlns='urn:t'>\n<item>x</item>\n<item>2</item>\n<item>y</item></list>",
    "attributes": "<t:list xmlns:t='urn:t'>\n<t:item kind='a'>1</t:item>\n"
    "<t:item other='1' kind='1 2'>1</t:item></t:list>",
    "unexpected": "<list xmlns='urn:t'>\n<item>1</item>\n<end/>\n<item>2</item>\n<more/></list>",
    "missing": "<list xmlns='urn:t'>\n</list>",
    "text": "<list xmlns='urn:t'>\n<item>1</item>words</list>",
    "nested": "<list xmlns='urn:t'>\n<item>1<item>2</item></item>\n<item/></list>",
    "prefixes": "<a:list xmlns:a='urn:t'>\n<b:item xmlns:b='urn:t'>1</b:item>\n<b:item xmlns:b='urn:t'>x</b:item>\n"
    "<a:item>y</a:item></a:list>",
    "undeclared": "<other xmlns='urn:t'/>",
}


def found(text: str, large: int, limit: int = 100) -> list[tuple[int | None, str, str]]:
    root = etree.fromstring(text)
    findings, _ = judge(root, SCHEMA, limit, ElementPaths(), large)
    return [(finding.line, finding.path.partition("/@")[0], finding.message) for finding in findings]


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_tree_and_stream_find_the_same(name: str) -> None:
    as_tree = found(DOCUMENTS[name], large=1_000)
    assert found(DOCUMENTS[name], large=1) == as_tree
    assert bool(as_tree) is (name != "valid")


def damage(root: etree._Element, place: int, how: str) -> None:
    """Break a document in one place."""
    elements = list(root.iter())
    element = elements[place % len(elements)]
    match how:
        case "rename":
            element.tag = f"{element.tag}X"
        case "text":
            element.text = "junk"
        case "tail" if element is not root:
            element.tail = "junk"
        case "attribute":
            element.set("wrong", "1")
        case "nil":
            element.set("{http://www.w3.org/2001/XMLSchema-instance}nil", "true")
        case "child":
            etree.SubElement(element, "{urn:x}child")
        case "repeat" if element is not root:
            element.addnext(etree.fromstring(etree.tostring(element, with_tail=False)))


DAMAGE = st.tuples(
    st.integers(0, 50), st.sampled_from(["rename", "text", "tail", "attribute", "nil", "child", "repeat"])
)


@given(st.lists(DAMAGE, min_size=1, max_size=5))
def test_tree_and_stream_find_the_same_in_any_damaged_document(damages: list[tuple[int, str]]) -> None:
    root = etree.fromstring("<t:list xmlns:t='urn:t'>" + "\n<t:item kind='k'>1</t:item>" * 4 + "<t:end/></t:list>")
    for place, how in damages:
        damage(root, place, how)
    text = etree.tostring(root, encoding="unicode")
    assert found(text, large=1) == found(text, large=1_000)


def test_the_element_at_fault_is_told_from_its_equals() -> None:
    places = [(line, path) for line, path, _ in found(DOCUMENTS["values"], large=1_000)]
    assert places == [(2, "/list/item[1]"), (4, "/list/item[3]")]


@pytest.mark.parametrize("large", [1, 1_000])
def test_no_more_than_the_limit_is_given_and_the_rest_is_told(large: int) -> None:
    root = etree.fromstring("<list xmlns='urn:t'>" + "<item>x</item>" * 20 + "</list>")
    findings, more = judge(root, SCHEMA, 7, ElementPaths(), large)
    assert (len(findings), more) == (7, True)
    findings, more = judge(root, SCHEMA, 1_000, ElementPaths(), large)
    assert not more
    assert len(findings) >= 20


def test_judging_leaves_the_document_as_it_was() -> None:
    for large in (1, 1_000):
        root = etree.fromstring(f"<wrap xmlns:p='urn:p'>{DOCUMENTS['unexpected']}tail</wrap>")
        before = etree.tostring(root)
        judge(root[0], SCHEMA, 10, ElementPaths(), large)
        assert etree.tostring(root) == before


def test_lines_beyond_the_reach_of_libxml2_are_right() -> None:
    count = 70_000
    text = "<list xmlns='urn:t'>\n" + "<item>1</item>\n" * count + "<item>x</item>\n</list>"
    assert {(line, path) for line, path, _ in found(text, large=5_000)} == {(count + 2, f"/list/item[{count + 1}]")}


def test_a_large_reply_with_a_mistake_in_each_element_is_cut_off(own: Validator) -> None:
    wrong = "<nam:rdn><nam:type>MD</nam:type><nam:val>EMS1</nam:val></nam:rdn>\n" * 20_000
    body = f"<mer:getManagedElementRequest><mer:meRef>{wrong}</mer:meRef></mer:getManagedElementRequest>"
    report = own.validate_bytes(envelope(body=body))
    assert len(report.issues) == own.max_issues + 1
    assert [issue.kind for issue in report.issues[-2:]] == ["schema", "more"]
    assert report.issues[999].path.endswith("/meRef/rdn[1000]/val")


def test_messages_use_the_prefixes_of_the_document() -> None:
    element = etree.fromstring("<a xmlns='urn:default' xmlns:p='urn:p'/>")
    assert readable("Element '{urn:p}x': expected ( {urn:default}y, {urn:q}z ).", element) == (
        "Element 'p:x': expected ( y, {urn:q}z )."
    )
    hdr = "{http://www.tmforum.org/mtop/fmw/xsd/hdr/v1}header"
    fdr = "{http://www.tmforum.org/mtop/nrf/xsd/fdfr/v1}fdfr"
    assert readable(f"Expected is one of ( {hdr}, {fdr} ).", None) == "Expected is one of ( hdr:header, fdfr:fdfr )."


def test_a_finding_knows_its_element() -> None:
    root = etree.fromstring(DOCUMENTS["attributes"])
    findings, _ = judge(root, SCHEMA, 10, ElementPaths())
    assert all(isinstance(finding, Finding) and finding.element is root[1] for finding in findings)


# Why a document is invalid, in words.

EXPLAINED = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:a" xmlns="urn:a"
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
    path.write_text(EXPLAINED)
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
