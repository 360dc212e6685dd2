"""The rules of the SOAP 1.1 envelope and of P36, one breach at a time."""

from __future__ import annotations

import pytest

from mtosi_jms.validation import Report, Validator

from .conftest import FAULT, envelope

REQUEST = "<mer:getManagedElementRequest><mer:meRef/></mer:getManagedElementRequest>"


def messages(report: Report) -> list[str]:
    assert report.well_formed
    return [issue.message for issue in report.issues if issue.kind == "envelope"]


def test_a_request_is_valid(own: Validator) -> None:
    assert own.validate_bytes(envelope()) == Report("", well_formed=True)


def test_a_fault_without_a_soap_header_is_valid(own: Validator) -> None:
    assert own.validate_bytes(envelope(None, FAULT)).valid


def test_a_bare_element_is_judged_itself(own: Validator) -> None:
    report = own.validate_bytes(b'<h:header xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><h:no/></h:header>')
    assert [issue.path for issue in report.issues] == ["/header/no"]


def test_the_children_of_a_fault_detail_are_judged(own: Validator) -> None:
    report = own.validate_bytes(envelope(None, FAULT.replace("msg:reason>", "msg:cause>")))
    (issue,) = report.issues
    assert issue.path == "/Envelope/Body/Fault/detail/getManagedElementException/entityNotFound/cause"
    assert issue.kind == "schema"


@pytest.mark.obligation("P36")
@pytest.mark.parametrize(("count", "header"), [(0, ""), (2, "<hdr:header/><hdr:header/>")])
def test_p36_exactly_one_mtosi_header(own: Validator, count: int, header: str) -> None:
    (message,) = messages(own.validate_bytes(envelope(header)))
    assert message.startswith(f"holds {count} MTOSI headers")


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("<soap:Body/>", "a second Body"),
        ("<soap:Header><hdr:header/></soap:Header>", "a second Header"),
        ("<plain/>", "plain has no place"),
        ("<soap:Other/>", "Other has no place"),
        ("text", "Envelope holds text, 'text'"),
    ],
)
def test_what_may_not_follow_the_body(own: Validator, after: str, words: str) -> None:
    found = messages(own.validate_bytes(envelope(after=after)))
    assert any(words in message for message in found)


def test_a_header_stands_before_the_body(own: Validator) -> None:
    document = envelope(None, after="<soap:Header><hdr:header/></soap:Header>")
    assert messages(own.validate_bytes(document)) == ["the Header has to stand before the Body"]


def test_qualified_elements_may_follow_the_body(own: Validator) -> None:
    assert own.validate_bytes(envelope(after='<x:trailer xmlns:x="urn:x"/>')).valid


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "the Body is empty"),
        (REQUEST + REQUEST, "more than one element"),
        (REQUEST + "stray", "Body holds text, 'stray'"),
    ],
)
def test_what_a_body_holds(own: Validator, body: str, words: str) -> None:
    (message,) = messages(own.validate_bytes(envelope(body=body)))
    assert words in message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("faultcode>", "soap:faultcode>", "faultcode of a SOAP 1.1 Fault has no namespace"),
        ("<faultcode>soap:Server</faultcode>", "", "the Fault has no faultcode"),
        ("<faultstring>no such element</faultstring>", "", "the Fault has no faultstring"),
        ("<faultcode>soap:Server</faultcode>", "<faultcode/>", "faultcode has to hold a name"),
        ("soap:Server", "other:Server", "the prefix 'other' of the fault code is not declared"),
        ("<detail>", "<faultcode>Server</faultcode><detail>", "a second faultcode"),
        ("<detail>", "<Reason/><detail>", "Reason has no place in a Fault"),
        ("</detail>", "</detail><faultactor>urn:x</faultactor>", "faultactor stands after detail"),
        ("<detail>", "<detail>words", "detail holds text, 'words'"),
    ],
)
def test_what_a_fault_holds(own: Validator, old: str, new: str, words: str) -> None:
    assert old in FAULT
    (message,) = messages(own.validate_bytes(envelope(None, FAULT.replace(old, new))))
    assert words in message


def test_a_fault_code_without_a_prefix_is_accepted(own: Validator) -> None:
    assert own.validate_bytes(envelope(None, FAULT.replace("soap:Server", "Client"))).valid


def test_an_envelope_without_a_body(own: Validator) -> None:
    report = own.validate_bytes(b'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"/>')
    assert messages(report) == ["the envelope has no Body"]


def test_a_soap_1_2_envelope_is_named_as_such(own: Validator) -> None:
    report = own.validate_bytes(b'<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body/></s:Envelope>')
    (message,) = messages(report)
    assert "SOAP 1.2" in message


def test_an_issue_of_the_envelope_has_line_and_path(own: Validator) -> None:
    document = envelope(None, FAULT.replace("faultstring>", "soap:faultstring>"))
    (issue,) = own.validate_bytes(document).issues
    assert issue.path == "/Envelope/Body/Fault/faultstring"
    assert issue.line is not None
    assert b"soap:faultstring" in document.splitlines()[issue.line - 1]
