"""Each rule of the findings: a source with the defect, where it is reported, and what is done about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen import RULES, Result

from .conftest import ASK, MESSAGES, wsdl

Case = tuple[str, dict[str, str], str, int, str]
PREFIXES = (
    'xmlns:x="http://www.w3.org/2001/XMLSchema" xmlns:w="http://schemas.xmlsoap.org/wsdl/" '
    'xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:t="urn:t" xmlns:o="urn:o"'
)
ELEMENT = '<x:element name="e" type="x:string"/>'
GROUP = '<x:group name="G"><x:sequence/></x:group>'
USE = '<x:element name="e" type="o:S"/>'


def _schema(*lines: str, namespace: str = "urn:t") -> str:
    return "\n".join([f'<x:schema {PREFIXES} targetNamespace="{namespace}">', *lines, "</x:schema>"])


OTHER = _schema(
    '<x:simpleType name="S"><x:restriction base="x:int"/></x:simpleType>',
    namespace="urn:o",
)


def _import(location: str, namespace: str = "urn:o") -> str:
    return _schema(f'<x:import namespace="{namespace}" schemaLocation="{location}"/>', USE)


def _wsdl(*lines: str, style: str = "document", binding: str = "ask", port_type: str = "t:P") -> str:
    return "\n".join(
        [
            f'<w:definitions {PREFIXES} targetNamespace="urn:t">',
            *lines,
            f'<w:binding name="B" type="{port_type}"><s:binding transport="urn:jms" style="{style}"/>',
            f'<w:operation name="{binding}"/></w:binding></w:definitions>',
        ]
    )


def _service(
    element: str = "t:e", message: str = "t:m", operation: str = "ask", fault: str = "", part: str = "", **more: str
) -> str:
    part = part or f'<w:part name="p" element="{element}"/>'
    return _wsdl(
        f"<w:types>{_schema(ELEMENT)}</w:types>",
        f'<w:message name="m">{part}</w:message>',
        '<w:portType name="P">',
        f'<w:operation name="{operation}"><w:input message="{message}"/>{fault}</w:operation>',
        "</w:portType>",
        **more,
    )


PORT_TYPE_ENDS = '<w:operation name="ask"><w:input name="again" message="t:m"/></w:operation></w:portType>'
BINDING_ENDS = '<w:operation name="ask"/></w:binding>'

CASES: list[Case] = [
    ("not-xml", {"a.xsd": "<x:schema"}, "a.xsd", 1, "not generated"),
    ("dtd", {"a.xsd": f'<!DOCTYPE x [<!ENTITY a SYSTEM "b">]>{_schema(USE)}'}, "a.xsd", 1, "not generated"),
    ("encoding-blank", {"a.xsd": '\n <?xml version="1.0"?>' + _schema()}, "a.xsd", 1, "left out"),
    ("location-backslash", {"a.xsd": _import(".\\b\\o.xsd"), "b/o.xsd": OTHER}, "a.xsd", 2, "read as './b/o.xsd'"),
    ("location-case", {"a.xsd": _import("B/O.xsd"), "b/o.XSD": OTHER}, "a.xsd", 2, "read b/o.XSD"),
    ("location-remote", {"a.xsd": _import("http://example.com/o.xsd"), "o.xsd": OTHER}, "a.xsd", 2, "read o.xsd"),
    ("location-missing", {"a.xsd": _import("../x/old-o.xsd"), "b/o.xsd": OTHER}, "a.xsd", 2, "read b/o.xsd"),
    ("import-namespace", {"a.xsd": _import("o.xsd", "urn:O"), "o.xsd": OTHER}, "a.xsd", 2, "of the file is used"),
    (
        "import-without-location",
        {"a.xsd": _schema('<x:import namespace="urn:o"/>', USE), "o.xsd": OTHER},
        "a.xsd",
        2,
        "read o.xsd",
    ),
    ("import-missing", {"a.xsd": _schema(USE, USE.replace('"e"', '"f"')), "o.xsd": OTHER}, "a.xsd", 2, "o.xsd is used"),
    ("rival-left-out", {"a.xsd": OTHER, "a-old.xsd": OTHER.replace("int", "string")}, "a-old.xsd", 0, "left out"),
    (
        "definition-conflict",
        {
            "a.xsd": _schema('<x:include schemaLocation="b.xsd"/>', ELEMENT),
            "b.xsd": _schema("<x:element name='e' type='x:int'/>"),
        },
        "b.xsd",
        2,
        "a.xsd counts",
    ),
    ("name-blanks", {"a.xsd": _schema("<x:element name=' e' type='x:string'/>")}, "a.xsd", 2, "read as 'e'"),
    (
        "value-blanks",
        {
            "a.xsd": _schema(
                "<x:simpleType name='S'><x:restriction base='x:string'>",
                "<x:enumeration value='A '/></x:restriction></x:simpleType>",
            )
        },
        "a.xsd",
        3,
        "kept as it is",
    ),
    ("qname-colons", {"a.xsd": _schema("<x:element name='e' type='t:x:int'/>")}, "a.xsd", 2, "read as 'x:int'"),
    ("qname-prefix", {"a.xsd": _schema("<x:element name='e' type='zz:int'/>")}, "a.xsd", 2, "without namespace"),
    ("type-unresolved", {"a.xsd": _schema("<x:element name='e' type='t:No'/>")}, "a.xsd", 2, "raw XML"),
    (
        "element-unresolved",
        {"a.xsd": _schema("<x:complexType name='T'><x:sequence><x:element ref='t:no'/></x:sequence></x:complexType>")},
        "a.xsd",
        2,
        "raw XML",
    ),
    (
        "group-unresolved",
        {"a.xsd": _schema("<x:complexType name='T'><x:group ref='t:No'/></x:complexType>")},
        "a.xsd",
        2,
        "left out",
    ),
    (
        "attribute-unresolved",
        {"a.xsd": _schema("<x:complexType name='T'><x:attribute ref='t:no'/></x:complexType>")},
        "a.xsd",
        2,
        "text",
    ),
    (
        "base-unresolved",
        {
            "a.xsd": _schema(
                "<x:complexType name='T'><x:complexContent><x:extension base='t:No'/>"
                "</x:complexContent></x:complexType>"
            )
        },
        "a.xsd",
        2,
        "derived from nothing",
    ),
    (
        "cycle",
        {
            "a.xsd": _schema(
                "<x:complexType name='T'><x:complexContent><x:extension base='t:T'/></x:complexContent></x:complexType>"
            )
        },
        "a.xsd",
        2,
        "derived from nothing",
    ),
    (
        "pattern-unsupported",
        {
            "a.xsd": _schema(
                "<x:simpleType name='S'><x:restriction base='x:string'><x:pattern value='[a'/>"
                "</x:restriction></x:simpleType>"
            )
        },
        "a.xsd",
        2,
        "not checked",
    ),
    (
        "repeated-in-extension",
        {
            "a.xsd": _schema(
                "<x:complexType name='B'><x:sequence><x:element name='e' type='x:int'/></x:sequence></x:complexType>",
                "<x:complexType name='T'><x:complexContent><x:extension base='t:B'>",
                "<x:sequence><x:element name='f' type='x:int'/>",
                "<x:element name='e' type='x:int' form='unqualified'/>",
                "</x:sequence></x:extension></x:complexContent></x:complexType>",
            )
        },
        "a.xsd",
        5,
        "kept as XML",
    ),
    ("xsd-unsupported", {"a.xsd": _schema("<x:element name='1'/>")}, "a.xsd", 2, "left out"),
    (
        "xsd-1.1",
        {"a.xsd": _schema("<x:complexType name='T'>", "<x:assert test='@a'/></x:complexType>")},
        "a.xsd",
        3,
        "not",
    ),
    (
        "redefine-undefined",
        {"a.xsd": _schema("<x:redefine schemaLocation='b.xsd'>", f"{GROUP}</x:redefine>"), "b.xsd": _schema()},
        "a.xsd",
        3,
        "taken as a definition",
    ),
    ("binding-type-missing", {"a.wsdl": _wsdl(port_type="t:No")}, "a.wsdl", 2, "not generated"),
    ("operation-drift", {"a.wsdl": _service(operation="aks_it", binding="asks_it")}, "a.wsdl", 10, "'aks_it'"),
    (
        "operation-overloaded",
        {
            "a.wsdl": _service()
            .replace("<w:input", '<w:input name="first"')
            .replace("</w:portType>", PORT_TYPE_ENDS)
            .replace("</w:binding>", BINDING_ENDS)
        },
        "a.wsdl",
        10,
        "taken in the order of the port type",
    ),
    ("operation-undefined", {"a.wsdl": _service(binding="whatever")}, "a.wsdl", 10, "not generated"),
    ("operation-unbound", {"a.wsdl": _service(binding="whatever")}, "a.wsdl", 7, "left out"),
    (
        "message-namespace",
        {"a.wsdl": _service(message="o:m")},
        "a.wsdl",
        7,
        "{urn:t}m is used",
    ),
    ("message-undefined", {"a.wsdl": _service(message="t:zzz")}, "a.wsdl", 7, "not generated"),
    ("message-part", {"a.wsdl": _service(part='<w:part name="p"/>')}, "a.wsdl", 5, "not generated"),
    (
        "fault-undefined",
        {"a.wsdl": _service(fault='<w:fault name="f" message="t:zzz"/>')},
        "a.wsdl",
        7,
        "left out",
    ),
    (
        "service-name",
        {"a.wsdl": _service(), "b.wsdl": _service()},
        "b.wsdl",
        9,
        "service named 'b'",
    ),
    ("binding-style", {"a.wsdl": _service(style="odd")}, "a.wsdl", 10, "document/literal"),
    ("operation-reversed", {"a.wsdl": _service().replace("w:input", "w:output")}, "a.wsdl", 7, "left out"),
    (
        "binding-unserved",
        {"a.wsdl": _service().replace('<s:binding transport="urn:jms" style="document"/>', "")},
        "a.wsdl",
        9,
        "nothing serves it",
    ),
    (
        "no-service",
        {"a.wsdl": _service().replace('<w:operation name="ask"/>', "")},
        "a.wsdl",
        9,
        "left out",
    ),
]
COVERED_ELSEWHERE = {"unreadable", "too-large", "operation-shared", "soap-jms"}


@pytest.mark.parametrize(("rule", "files", "file", "line", "repair"), CASES, ids=[case[0] for case in CASES])
def test_a_defect_is_reported_with_file_line_and_repair(
    build: Callable[..., Result], rule: str, files: dict[str, str], file: str, line: int, repair: str
) -> None:
    result = build(files)
    found = [finding for finding in result.findings if finding.rule == rule]
    assert [(finding.file, finding.line) for finding in found] == [(file, line)], list(map(str, result.findings))
    assert repair in found[0].repair
    assert found[0].message
    for path, text in result.files.items():
        compile(text, path, "exec")


SHIPPED = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"


@pytest.mark.parametrize(
    ("use", "subject"),
    [
        ("<x:element name='e' type='n:T'/>", "type {ns}T"),
        ("<x:element name='e' substitutionGroup='n:T'/>", "substitution head {ns}T"),
        ("<x:complexType name='C'><x:sequence><x:element ref='n:T'/></x:sequence></x:complexType>", "element {ns}T"),
        ("<x:complexType name='C'><x:group ref='n:T'/></x:complexType>", "group {ns}T"),
        ("<x:complexType name='C'><x:attribute ref='n:T'/></x:complexType>", "attribute {ns}T"),
        ("<x:complexType name='C'><x:attributeGroup ref='n:T'/></x:complexType>", "attribute group {ns}T"),
        (
            "<x:complexType name='C'><x:complexContent><x:extension base='n:T'/></x:complexContent></x:complexType>",
            "base type {ns}T",
        ),
    ],
)
def test_a_name_whose_namespace_nothing_imports(build: Callable[..., Result], use: str, subject: str) -> None:
    for namespace, hint in (("urn:n", ""), (SHIPPED, "; the shipped xsd/fmw/hdr.xsd does")):
        (finding,) = build(_schema(use).replace("<x:schema", f'<x:schema xmlns:n="{namespace}"', 1)).findings
        name = subject.replace("ns", namespace)
        assert finding.message == f"{name} is not defined: nothing that the sources import declares its namespace{hint}"


def test_an_operation_whose_namespace_nothing_imports(build: Callable[..., Result]) -> None:
    findings = build({"a.wsdl": wsdl("".join({**ASK, "types": ""}.values()))}).findings
    what = "is not defined: nothing that the sources import declares its namespace"
    assert [finding.message for finding in findings if finding.failed] == [
        f"operation 'ask': element {{urn:m}}ask{role} {what}" for role in ("Request", "Response")
    ]


def test_a_wsdl_whose_import_is_lost_takes_the_source_of_that_namespace(build: Callable[..., Result]) -> None:
    result = build({"a.wsdl": wsdl("".join({**ASK, "types": ""}.values())), "messages.xsd": MESSAGES})
    assert not result.failed
    assert [str(finding) for finding in result.findings] == [
        "a.wsdl:3: import-missing: namespace urn:m is used here, and the file does not import it; messages.xsd is used"
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"a.xsd": _schema('<x:include schemaLocation="b.xsd"/>'), "b.xsd": _schema(USE.replace("o:S", "t:S"), ELEMENT)},
        {
            "a.xsd": _schema('<x:include schemaLocation="b.xsd"/>', '<x:element name="f" type="t:B"/>'),
            "b.xsd": f'<x:schema {PREFIXES}><x:complexType name="B"><x:sequence><x:element ref="t:f"/></x:sequence>'
            "</x:complexType></x:schema>",
        },
        {"a.xsd": _import("o.xsd", "urn:O"), "o.xsd": OTHER},
    ],
    ids=["include", "include without a namespace", "wrong namespace"],
)
def test_a_namespace_that_a_file_has_otherwise(build: Callable[..., Result], files: dict[str, str]) -> None:
    assert "import-missing" not in {finding.rule for finding in build(files).findings}


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} | COVERED_ELSEWHERE == set(RULES)


def test_every_rule_is_explained(root: Path) -> None:
    page = (root / "docs" / "generator.md").read_text(encoding="utf-8")
    assert [rule for rule in RULES if f"`{rule}`" not in page] == []


def test_a_broken_import_of_messages_takes_the_file_that_defines_them(build: Callable[..., Result]) -> None:
    def imported(location: str) -> str:
        return f'<w:import namespace="urn:w" location="{location}"/>'

    result = build(
        {
            "call/CallJms.wsdl": wsdl(imported("OraclePortType.wsdl") + ASK["binding"]),
            "call/CallPortType.wsdl": wsdl(imported("OracleMessages.wsdl") + ASK["port"]),
            "call/CallMessages.wsdl": wsdl(ASK["types"] + ASK["messages"], "urn:c"),
            "call/messages.xsd": MESSAGES,
            "oracle/OraclePortType.wsdl": wsdl(ASK["port"].replace('name="ask"', 'name="tell"')),
            "oracle/OracleMessages.wsdl": wsdl(ASK["messages"].replace("ask", "tell")),
        }
    )
    (service,) = result.services
    assert (service.name, service.failed, len(service.operations)) == ("Call", [], 1)
    assert [finding.rule for finding in result.findings] == [
        "location-missing",
        "service-name",
        "import-namespace",
        "location-missing",
    ]
    assert "read call/CallPortType.wsdl" in result.findings[0].repair


def test_definitions_whose_name_xml_does_not_allow(build: Any, package: Any) -> None:
    names = ("", "1x", "a b", "a:b")
    body = "".join(f"<x:element name='{name}' type='x:int'/>" for name in names) + "<x:element type='x:int'/>"
    inner = f"<x:complexType name='C'><x:sequence>{body}<x:element name='good.name' type='x:int'/></x:sequence>"
    result = build(_schema(f"{body}{inner}<x:attribute name='-'/></x:complexType>"))
    assert [finding.rule for finding in result.findings] == ["xsd-unsupported"] * 6
    (cls,) = result.model.classes
    assert [field.xml.local for field in cls.fields] == ["good.name"]
    assert package(result)
