"""Whatever is put in, a report comes out: lines, paths, undeclared elements, hostile and broken documents."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.validation import Issue, Validator
from mtosi_jms.xmlbind import XmlLimits

from .conftest import envelope

HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"


def only_issue(validator: Validator, data: bytes) -> Issue:
    (issue,) = validator.validate_bytes(data, "x.xml").issues
    return issue


# Lines, paths, words


def test_line_path_and_prefixes_are_those_of_the_document(own: Validator) -> None:
    document = envelope().replace(b"mer:meRef>", b"mer:meName>").replace(b"xmlns:nam", b"xmlns:mer0='urn:x' xmlns:nam")
    issue = only_issue(own, document)
    assert issue.line == document[: document.index(b"<mer:meName>")].count(b"\n") + 1
    assert issue.path == "/Envelope/Body/getManagedElementRequest/meName"
    assert issue.message == "Element 'mer:meName': This element is not expected. Expected is ( mer:meRef )."


def test_positions_are_counted_among_equal_siblings(own: Validator) -> None:
    document = envelope().replace(b"<nam:value>NE-7</nam:value>", b"<nam:value>NE-7</nam:value><nam:x/>")
    assert only_issue(own, document).path.endswith("/meRef/rdn[2]/x")


def test_elements_of_a_default_namespace_are_found(own: Validator) -> None:
    body = """<getManagedElementRequest xmlns="http://www.tmforum.org/mtop/mri/xsd/mer/v1"><meRef>
<rdn xmlns="http://www.tmforum.org/mtop/fmw/xsd/nam/v1"><type>MD</type><value>E</value></rdn>
<rdn xmlns="http://www.tmforum.org/mtop/fmw/xsd/nam/v1"><type>ME</type><kind/></rdn></meRef></getManagedElementRequest>"""
    issue = only_issue(own, envelope(body=body))
    assert issue.path == "/Envelope/Body/getManagedElementRequest/meRef/rdn[2]/kind"
    assert issue.message == "Element 'kind': This element is not expected. Expected is ( value )."


def test_an_attribute_at_fault_is_part_of_the_path_or_message(own: Validator) -> None:
    issue = only_issue(own, f'<h:header xmlns:h="{HDR}" wrong="1"/>'.encode())
    assert issue.path.startswith("/header")
    assert "wrong" in issue.message


def test_namespaces_in_scope_at_a_part_count_for_its_values(own: Validator) -> None:
    body = """<mer:getManagedElementRequest><mer:meRef xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
xsi:type="nam:NamingAttributeType"/></mer:getManagedElementRequest>"""
    messages = [issue.message for issue in own.validate_bytes(envelope(body=body)).issues]
    assert not any("xsi:type" in message or "QName" in message for message in messages)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b'<a xmlns="urn:unknown"/>', "none has the namespace urn:unknown"),
        (b"<a/>", "it is in no namespace"),
        (f'<heade xmlns="{HDR}"/>'.encode(), "did you mean header?"),
        (f'<header xmlns="{HDR[:-1]}9"/>'.encode(), f"did you mean {HDR}?"),
    ],
)
def test_an_element_that_no_schema_declares_is_an_issue(own: Validator, document: bytes, words: str) -> None:
    issue = only_issue(own, document)
    assert issue.kind == "undeclared"
    assert words in issue.message


def test_an_undeclared_body_is_not_taken_for_valid(own: Validator) -> None:
    issue = only_issue(own, envelope(body='<v:ask xmlns:v="urn:vendor"/>'))
    assert (issue.kind, issue.path) == ("undeclared", "/Envelope/Body/ask")


# Other forms of the same document


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings_are_read(own: Validator, encoding: str) -> None:
    declared = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "iso-8859-1": "ISO-8859-1"}[encoding]
    text = envelope().decode().replace("NE-7", "Zürich").replace('encoding="UTF-8"', f'encoding="{declared}"')
    assert own.validate_bytes(text.encode(encoding)).valid


def test_comments_instructions_and_cdata_change_nothing(own: Validator) -> None:
    document = envelope().replace(b"NE-7", b"<![CDATA[NE]]><!-- and -->-<?pi?>7")
    assert own.validate_bytes(document).valid


# Bad input


@pytest.mark.parametrize(
    ("data", "kind", "line"),
    [
        (b"", "malformed", 1),
        (b" \n ", "malformed", 1),
        (b"not xml", "malformed", 1),
        (b"<a>\n<b>\n</a>", "malformed", 3),
        (b"<a>\n", "malformed", 2),
        (b'<?xml version="1.0" encoding="UTF-8"?>\n<a>\xff</a>', "malformed", 2),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "malformed", 1),
        (b"\x00\x01\x02", "malformed", None),
        (gzip.compress(b"<a/>", mtime=0), "malformed", None),
        (b"<!DOCTYPE a><a/>", "forbidden", 1),
        (b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>', "forbidden", 1),
        (b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>', "forbidden", 1),
        (b"<a>" * 10_000 + b"</a>" * 10_000, "forbidden", None),
        (b"<a>" * 100_000, "forbidden", None),
    ],
)
def test_bad_documents_have_one_typed_issue(own: Validator, data: bytes, kind: str, line: int | None) -> None:
    report = own.validate_bytes(data, "bad.xml")
    (issue,) = report.issues
    assert not report.well_formed
    assert not report.valid
    assert issue.kind == kind
    assert issue.message
    if line is not None:
        assert issue.line == line


def test_files_that_cannot_be_read(own: Validator, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    for path, words in [
        (tmp_path, "directory"),
        (tmp_path / "gone.xml", "No such file"),
        (tmp_path / "pipe.xml", "pipe"),
    ]:
        report = own.validate_file(path)
        (issue,) = report.issues
        assert (report.file, issue.kind, issue.line) == (str(path), "unreadable", None)
        assert words in issue.message


def test_a_file_that_is_too_large_is_refused_unread(own: Validator, tmp_path: Path) -> None:
    small = Validator(own.schemas, limits=XmlLimits(max_bytes=1000))
    path = tmp_path / "large.xml"
    path.touch()
    os.truncate(path, 1 << 40)
    (issue,) = small.validate_file(path).issues
    assert issue.kind == "forbidden"
    assert "1000 bytes" in issue.message


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"<a>{text}</a>".encode("utf-8", "replace")))
def test_any_bytes_give_a_report(data: bytes) -> None:
    report = _VALIDATOR.validate_bytes(data, "any")
    assert not report.valid
    assert report.issues


@given(st.data())
def test_any_truncation_gives_a_malformed_report(data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(_DOCUMENT) - 1))
    report = _VALIDATOR.validate_bytes(_DOCUMENT[:end], "cut")
    assert not report.well_formed
    assert report.issues[0].kind == "malformed"


@pytest.fixture(scope="module", autouse=True)
def _for_properties(own: Validator) -> None:
    global _VALIDATOR, _DOCUMENT
    _VALIDATOR, _DOCUMENT = own, envelope()


_VALIDATOR: Validator
_DOCUMENT: bytes
