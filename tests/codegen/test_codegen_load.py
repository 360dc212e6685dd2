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
from mtosi_codegen.load.locate import looks_stale
from mtosi_jms.compression import NOT_REGULAR
from mtosi_jms.errors import SchemaError
from mtosi_jms.namespaces import XSD

from .conftest import ASK, MESSAGES, wsdl, xsd


def _names(sources: Sources) -> list[str]:
    return [document.name for document in sources.documents]


def test_a_schema_that_nothing_imports_counts(tree: Any) -> None:
    folder = tree({"b/one.xsd": xsd("", "urn:one"), "a/two.xsd": xsd("", "urn:two")})
    assert _names(load([folder], Findings())) == ["a/two.xsd", "b/one.xsd"]


def test_names_are_relative_to_the_common_folder(tree: Any) -> None:
    folder = tree({"wsdl/one.xsd": xsd("", "urn:one"), "xsd/two.xsd": xsd("", "urn:two")})
    both = load([folder / "xsd", folder / "wsdl"], Findings())
    assert _names(both) == ["wsdl/one.xsd", "xsd/two.xsd"]
    assert both.digest == load([folder], Findings()).digest


def test_the_digest_follows_content_and_name_only(tree: Any) -> None:
    text = xsd("", "urn:one")
    here, there = tree({"one.xsd": text}), tree({"one.xsd": text})
    assert here != there
    assert load([here], Findings()).digest == load([there], Findings()).digest
    assert load([here], Findings()).digest != load([tree({"two.xsd": text})], Findings()).digest
    assert load([here], Findings()).digest != load([tree({"one.xsd": text + " "})], Findings()).digest


@pytest.mark.obligation("P23", "C39")
def test_a_jms_wsdl_is_known_by_its_binding_not_by_its_name(tree: Any) -> None:
    folder = tree(
        {
            "service.definition": wsdl(ASK["binding"]),
            "plain.wsdl": wsdl(ASK["port"]),
            "notes.txt": "no XML at all",
            ".hidden/copy.wsdl": wsdl(ASK["binding"]),
        }
    )
    assert [root.name for root in load([folder], Findings()).roots] == ["service.definition"]


def test_utf16_and_byte_order_marks_are_read(tree: Any) -> None:
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


def test_what_a_wsdl_reaches_wins_over_rivals(tree: Any) -> None:
    folder = tree(
        {
            "service.wsdl": wsdl(ASK["types"] + ASK["messages"] + ASK["port"] + ASK["binding"]),
            "messages.xsd": MESSAGES,
            "aaa.xsd": MESSAGES.replace("what", "other"),
            "more.xsd": xsd('<x:element name="extra" type="x:string"/>', "urn:m"),
        }
    )
    findings = Findings()
    assert _names(load([folder], findings)) == ["messages.xsd", "more.xsd", "service.wsdl"]
    assert [(finding.rule, finding.file) for finding in findings] == [("rival-left-out", "aaa.xsd")]


def test_of_unreached_rivals_the_fresh_one_wins(tree: Any) -> None:
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


def test_an_include_without_namespace_takes_the_includers(tree: Any) -> None:
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


PART = f'<x:schema xmlns:x="{XSD}">%s<x:simpleType name="Part"><x:list itemType="x:int"/></x:simpleType></x:schema>'
WHOLE = f'<x:schema xmlns:x="{XSD}"><x:include schemaLocation="p.xsd"/><x:element name="e" type="Part"/></x:schema>'


@pytest.mark.parametrize(
    "files",
    [
        {"w.xsd": WHOLE, "p.xsd": PART % ""},
        {"w.xsd": WHOLE, "p.xsd": PART % '<x:include schemaLocation="w.xsd"/>'},
        {"w.xsd": WHOLE, "p.xsd": PART % "", "p-old.xsd": PART % "", "old/w.xsd": WHOLE},
    ],
)
def test_schemas_without_namespace_in_parts(tree: Any, files: dict[str, str]) -> None:
    findings = Findings()
    units = load([tree(files)], findings).units
    assert sorted((unit.document.name, unit.namespace) for unit in units) == [("p.xsd", ""), ("w.xsd", "")]
    assert {finding.rule for finding in findings} <= {"rival-left-out", "import-namespace", "location-missing"}


def test_a_schema_without_namespace_that_is_imported_and_included(tree: Any) -> None:
    folder = tree(
        {
            "one.xsd": xsd('<x:include schemaLocation="w.xsd"/>', "urn:one"),
            "two.xsd": xsd('<x:import schemaLocation="w.xsd"/>', "urn:two"),
            "w.xsd": WHOLE,
            "p.xsd": PART % "",
        }
    )
    spaces = {(unit.document.name, unit.namespace) for unit in load([folder], Findings()).units}
    assert spaces >= {("w.xsd", "urn:one"), ("p.xsd", "urn:one"), ("w.xsd", ""), ("p.xsd", "")}


def test_a_location_with_blanks_encoded(tree: Any) -> None:
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
def test_a_file_without_permission(tree: Any) -> None:
    folder = tree({"a.xsd": xsd("")})
    (folder / "a.xsd").chmod(0)
    findings = Findings()
    assert load([folder], findings).documents == ()
    assert [finding.rule for finding in findings] == ["unreadable"]


def _refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Nobody may list or read what has this name; the tests may run as root, who may read everything."""

    def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(path: Any = ".", *args: Any, **options: Any) -> Any:
            if isinstance(path, (str, os.PathLike)) and Path(path).name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return call(path, *args, **options)

        return wrapper

    for owner, call in ((os, "scandir"), (os, "listdir"), (os, "open"), (Path, "open")):
        monkeypatch.setattr(owner, call, refusing(getattr(owner, call)))


@pytest.mark.parametrize(
    ("name", "file", "repair"),
    [
        ("closed", "closed", "not generated: folder left out"),
        ("b.xsd", "closed/b.xsd", "not generated: file left out"),
        ("notes", "closed/notes", "not generated: file left out"),
    ],
)
def test_what_may_not_be_read_is_a_finding_each(
    tree: Any, monkeypatch: pytest.MonkeyPatch, name: str, file: str, repair: str
) -> None:
    element = xsd('<x:element name="a" type="x:string"/>', "urn:a")
    folder = tree({"a.xsd": element, "closed/b.xsd": xsd("", "urn:b"), "closed/notes": "no XML"})
    _refuse(monkeypatch, name)
    result = generate([folder])
    assert [str(finding) for finding in result.findings] == [f"{file}: unreadable: Permission denied; {repair}"]
    assert result.failed
    assert "urn_a/types.py" in result.files


def test_a_source_folder_that_may_not_be_listed_is_named(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree({"closed/a.xsd": xsd("", "urn:a")}) / "closed"
    _refuse(monkeypatch, "closed")
    (finding,) = generate([folder]).findings
    assert (finding.rule, finding.file, finding.failed) == ("unreadable", folder.as_posix(), True)


def test_an_import_is_found_in_a_folder_that_may_not_be_listed(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    main = xsd('<x:import namespace="urn:b" schemaLocation="closed/b.xsd"/>', "urn:a")
    folder = tree({"in/a.xsd": main, "in/closed/b.xsd": xsd("", "urn:b")})
    _refuse(monkeypatch, "closed")
    findings = Findings()
    assert _names(load([folder / "in" / "a.xsd"], findings)) == ["a.xsd", "closed/b.xsd"]
    assert {finding.rule for finding in findings} == {"unreadable"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_read(tree: Any) -> None:
    folder = tree({"a.xsd": xsd('<x:import namespace="urn:b" schemaLocation="p"/>', "urn:a")})
    for name in ("p", "p.xsd"):
        os.mkfifo(folder / name)
    findings = Findings()
    assert _names(load([folder], findings)) == ["a.xsd"]
    assert [(finding.rule, finding.file, finding.message) for finding in findings if finding.failed] == [
        ("unreadable", "p.xsd", NOT_REGULAR)
    ]
    findings = Findings()
    assert load([folder / "p"], findings).documents == ()
    assert [(finding.rule, finding.message) for finding in findings] == [("unreadable", NOT_REGULAR)]


_LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("content", "line", "rule", "message"),
    [
        (b"", 1, "not-xml", "Document is empty"),
        (b"<x>\n<y>\n</x>", 3, "not-xml", "Opening and ending tag mismatch: y line 2 and x"),
        (b"<x/>", 0, "not-xml", "no WSDL and no XML Schema"),
        (f'<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a0 "ha">{_LAUGHS}]><x>&a11;</x>'.encode(), 2, "dtd", "(DTD)"),
        ('<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE x><x/>'.encode("utf-16"), 1, "dtd", "(DTD)"),
    ],
)
def test_a_bad_file_named_as_a_source_is_one_finding(
    tree: Any, content: bytes, line: int, rule: str, message: str
) -> None:
    file = tree({"bad.xsd": content}) / "bad.xsd"
    findings = Findings()
    load([file], findings)
    (finding,) = findings
    assert (finding.rule, finding.file, finding.line, finding.failed) == (rule, "bad.xsd", line, True)
    assert message in finding.message
    assert "<string>" not in str(finding)
    assert ", line" not in finding.message


def test_a_source_that_cannot_be_asked_for(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree({"a.xsd": xsd("", "urn:a"), "b.xsd": xsd("", "urn:b")})
    stat = Path.stat

    def refuse(path: Path, **options: Any) -> os.stat_result:
        if path.name == "b.xsd":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    for sources, read in (([folder / "a.xsd", folder / "b.xsd"], ["a.xsd"]), ([folder / "b.xsd"], [])):
        findings = Findings()
        assert _names(load(sources, findings)) == read
        (finding,) = findings
        assert (finding.rule, finding.file) == ("unreadable", (folder / "b.xsd").as_posix())
        assert finding.failed


W3C = """<!DOCTYPE x:schema
  PUBLIC "-//W3C//DTD XMLSchema 200102//EN" "http://127.0.0.1:9/XMLSchema.dtd" [
 <!-- don't ]> -->
 <!ATTLIST x:schema xmlns:t CDATA #FIXED "urn:t">
 <!ENTITY t 'urn:t'> <!ENTITY % p ''>
 <!ELEMENT x:schema ANY> <!NOTATION n SYSTEM "]>">
]>
"""
DOCTYPES = [W3C, "<!DOCTYPE schema>\n", "<!DOCTYPE x:schema [ ]>\n", '<!DOCTYPE x:schema SYSTEM "file:///dev/zero">\n']


@pytest.mark.obligation("GEN5")
@pytest.mark.parametrize("doctype", DOCTYPES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_a_schema_or_wsdl_with_a_document_type_is_read_without_it(build: Any, doctype: str, encoding: str) -> None:
    declaration = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n{doctype}'
    files = {"oracle.wsdl": wsdl("".join(ASK.values())), "messages.xsd": MESSAGES}
    result = build(
        {name: text.replace('<?xml version="1.0"?>\n', declaration).encode(encoding) for name, text in files.items()}
    )
    assert [(finding.rule, finding.file) for finding in result.findings] == [("dtd", name) for name in sorted(files)]
    assert not result.failed
    assert [len(service.operations) for service in result.services] == [1]


def test_attributes_that_a_document_type_declares_are_there(build: Any) -> None:
    text = xsd('<x:element name="e" type="t:S"/>\n<x:element name="f" type="u:S"/>\n<x:complexType name="S"/>')
    text = text.replace(' xmlns:t="urn:t"', "").replace("?>\n", f"?>\n{W3C}", 1)
    noted, broken, *_ = build(text).findings
    assert (noted.rule, broken.rule) == ("dtd", "qname-prefix")
    assert broken.line == text.count("\n", 0, text.index('name="f"')) + 1


@pytest.mark.obligation("GEN5")
@pytest.mark.parametrize(
    "subset",
    [
        '<!ENTITY a "b">&a;',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:9/"> %a;',
        "<!ENTITY % a '<!ENTITY &#37; b \"c\">'> %a;",
        f'<!ENTITY a0 "ha">{_LAUGHS}',
        '<!ATTLIST x:element type CDATA "&a;"> <!ENTITY a "b">',
        pytest.param(f'<!ATTLIST x:schema id CDATA "{"a" * 40_000_000}">', id="a default as long as many documents"),
        "<!ENTITY",
        "<!ELSE>",
    ],
)
def test_a_schema_whose_document_type_has_more_than_attributes_is_left_out(build: Any, subset: str) -> None:
    subset, used, _ = subset.partition("&a;") if subset.endswith("&a;") else (subset, "", "")
    content = f'<x:element name="e"><x:annotation><x:documentation>{used}</x:documentation></x:annotation></x:element>'
    text = xsd(content).replace("?>\n", f"?>\n<!DOCTYPE x:schema [{subset}]>\n", 1)
    result = build({"bad.xsd": text, "good.xsd": xsd('<x:element name="e" type="x:string"/>', "urn:good")})
    (finding,) = [finding for finding in result.findings if finding.failed]
    assert (finding.rule, finding.file, finding.line) == ("dtd", "bad.xsd", 2)
